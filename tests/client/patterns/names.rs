//! The names under which entries and copies are stored: a struct can be renamed, and the entities
//! that are stored stay as they are.

use tablesdk::index::CopyOf;
use tablesdk::{DynamicEntity, Properties, TableClient, TableEntity};

use super::on_both_transports;
use super::other_partitions::{Employee, employee};
use super::staff::{Staff, checked};

/// An [`Employee`] under other names.
#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(
    PersonByEmail,
    row_key = "email_{email}",
    unique,
    name = "Employee.ByEmail"
))]
#[table(index(
    PersonByName,
    partition_key = "name_{last_name}",
    row_key = "in_{department}_{id:06}",
    name = "Employee.ByName"
))]
struct Person {
    department: String,
    id: u32,
    last_name: Option<String>,
    email: Option<String>,
    age: i32,
}

/// A [`Staff`] under another name, with one of its copies.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "staff_{id:06}")]
#[table(copy(Ability, name = "Staff.Skilled"))]
struct Worker {
    department: String,
    id: u32,
    name: String,
    #[table(json)]
    skills: Vec<String>,
    is_manager: bool,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "skill_{skill}_{id:06}")]
struct Ability {
    department: String,
    skill: String,
    id: u32,
    name: String,
}

impl CopyOf<Worker> for Ability {
    fn copies_of(worker: &Worker) -> impl IntoIterator<Item = Self> {
        worker.skills.iter().map(|skill| Self {
            department: worker.department.clone(),
            skill: skill.clone(),
            id: worker.id,
            name: worker.name.clone(),
        })
    }
}

/// With an entity type, which the entries have instead of a mark.
#[derive(Clone, Debug, TableEntity)]
#[table(entity_type = "Customer")]
#[table(partition_key = "{region}", row_key = "customer_{number:04}")]
#[table(index(ByPhone, row_key = "phone_{phone}", unique, name = "CustomerByPhone"))]
#[table(copy(Caller, name = "the customer's phone"))]
struct Customer {
    region: String,
    number: u32,
    phone: String,
    #[table(rest)]
    others: Properties,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{region}", row_key = "caller_{phone}")]
struct Caller {
    region: String,
    phone: String,
}

impl CopyOf<Customer> for Caller {
    fn copies_of(customer: &Customer) -> impl IntoIterator<Item = Self> {
        let Customer { region, phone, .. } = customer.clone();
        [Self { region, phone }]
    }
}

/// The strings of a property, in the order of the entities that have it.
async fn strings(table: &TableClient, name: &str) -> Vec<String> {
    let all = table.query::<DynamicEntity>().values().collect().await;
    let all = all.unwrap().into_iter();
    let strings = all.filter(|entity| entity.properties().get(name).is_some());
    let strings = strings.map(|entity| entity.properties().read(name).unwrap());
    strings.collect()
}

on_both_transports! {
    async fn a_renamed_struct_keeps_its_entries(subject: Subject) {
        let table = subject.table().await;
        table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
        let report = table.repair::<Person>().dry_run().await.unwrap();
        assert!(report.is_right() && report.entries == 2, "{report:?}");

        let mut jones = table.get(PersonByName::key("Jones", "Sales", 1)).follow().await.unwrap().unwrap();
        jones.last_name = Some("Smith".into());
        table.replace(&mut jones).await.unwrap();
        assert_eq!(strings(&table, "TablesdkIndex").await, ["Employee.ByEmail", "Employee.ByName"]);
        assert!(table.repair::<Employee>().dry_run().await.unwrap().is_right());

        jones.email = Some("smith@contoso.com".into());
        table.replace(&mut jones).await.unwrap();
        assert!(table.delete_stored(&jones).await.unwrap());
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_renamed_struct_keeps_its_copies(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Staff::new(1, "Ada", &["Maths"])).await.unwrap();
        let report = table.repair::<Worker>().dry_run().await.unwrap();
        assert!(report.is_right() && report.entries == 1, "{report:?}");

        let mut ada = table.get(Worker::key("Sales", 1)).await.unwrap().unwrap();
        ada.name = "Lovelace".into();
        table.replace(&mut ada).await.unwrap();
        assert_eq!(strings(&table, "TablesdkCopy").await, ["Staff.Skilled"]);
        assert_eq!(checked(&table).await[0].name, "Lovelace");

        ada.skills = vec!["Welsh".into()];
        table.replace(&mut ada).await.unwrap();
        assert!(table.delete_stored(&ada).await.unwrap());
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_name_is_stored_as_it_is_given(subject: Subject) {
        let table = subject.table().await;
        let customer = Customer { region: "EU".into(), number: 7, phone: "+44-20".into(), others: Properties::new() };
        let customer = table.insert(&customer).await.unwrap();
        assert_eq!(strings(&table, "EntityType").await, ["Customer", "CustomerByPhone"]);
        assert_eq!(strings(&table, "TablesdkCopy").await, ["the customer's phone"]);
        let entry = table.get(ByPhone::key("EU", "+44-20")).follow().await.unwrap();
        assert_eq!(entry.expect("was inserted").number, 7);
        // By a program that does not know the copies.
        table.delete(customer.key().clone()).await.unwrap();
        let report = table.repair::<Customer>().await.unwrap();
        assert_eq!((report.orphaned, report.is_right()), (2, true));
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_part_of_the_key_wins_over_the_rest_in_an_entry(subject: Subject) {
        let table = subject.table().await;
        // By a program that also stores the number as a property.
        let foreign = DynamicEntity::new("EU", "customer_0007")
            .with("EntityType", "Customer")
            .with("phone", "+44-20")
            .with("number", "seven");
        table.insert(&foreign).await.unwrap();
        assert_eq!(table.repair::<Customer>().await.unwrap().missing, 2);
        let key = ByPhone::key("EU", "+44-20");
        let mut customer = table.get(key).follow().await.unwrap().unwrap();
        assert_eq!(customer.others.read::<String>("number").unwrap(), "seven");
        customer.phone = "+44-21".into();
        table.replace(&mut customer).await.unwrap();
        let entry = table.get(ByPhone::key("EU", "+44-21")).await.unwrap().unwrap();
        assert_eq!(entry.number, 7);
        assert!(table.repair::<Customer>().dry_run().await.unwrap().is_right());
    }
}
