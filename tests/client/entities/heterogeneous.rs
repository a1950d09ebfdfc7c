//! Entities of several types in one table: distinguished by their entity type, read as enums, and
//! never confused.

use tablesdk::entity::EntityProblem;
use tablesdk::{
    DynamicEntity, ETag, ErrorKind, Properties, TableClient, TableEntity, TableProperties, Value,
    WritableEntity,
};

use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
    row: String,
    title: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    salary: Option<f64>,
    #[table(flatten, prefix = "Home_")]
    home: Option<Address>,
}

#[derive(Debug, Clone, PartialEq, TableProperties)]
struct Address {
    city: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Contractor", alias = "Consultant")]
pub(crate) struct Contractor {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    pub(crate) id: String,
    name: String,
    pub(crate) rate: i64,
    #[table(rest)]
    other: Properties,
}

/// Known entity types only.
#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Row {
    Department(Department),
    Employee(Employee),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
}

/// Any entity type.
#[derive(Debug, Clone, PartialEq, TableEntity)]
enum AnyRow {
    Department(Department),
    Employee(Employee),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
    #[table(other)]
    Other(DynamicEntity),
}

fn department() -> Department {
    Department {
        id: "Sales".into(),
        row: "0".into(),
        title: "Sales and marketing".into(),
    }
}

fn ada() -> Employee {
    Employee {
        department: "Sales".into(),
        id: "1".into(),
        name: "Ada".into(),
        salary: Some(50_000.0),
        home: Some(Address {
            city: "London".into(),
        }),
    }
}

pub(crate) fn alan() -> Contractor {
    Contractor {
        department: "Sales".into(),
        id: "2".into(),
        name: "Alan".into(),
        rate: 90,
        other: Properties::new(),
    }
}

/// An entity type without a struct.
fn ship() -> DynamicEntity {
    let ship = DynamicEntity::new("Sales", "3").with("EntityType", "Ship");
    ship.with("masts", 3)
}

fn freelancer() -> DynamicEntity {
    DynamicEntity::new("Sales", "4")
        .with("EntityType", "Freelancer")
        .with("name", "Grace")
        .with("rate", 120_i64)
        .with("visits", 7)
}

async fn raw(table: &TableClient, id: &str) -> DynamicEntity {
    let entity = table.get::<DynamicEntity>(("Sales", id)).await;
    entity.unwrap().unwrap().into_inner()
}

/// Sorted, since not every backend does that.
fn names(entity: &DynamicEntity) -> Vec<&str> {
    let names = entity.properties().iter().map(|(name, _)| name);
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

async fn company(table: &TableClient) {
    table.insert(&department()).await.unwrap();
    table.insert(&ada()).await.unwrap();
    table.insert(&alan()).await.unwrap();
}

on_both_transports! {
    async fn an_enum_reads_what_structs_wrote(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        let rows = table.query::<Row>().partition("Sales").collect().await.unwrap();
        let rows: Vec<Row> = rows.into_iter().map(tablesdk::Stored::into_inner).collect();
        assert_eq!(rows, [Row::Department(department()), Row::Employee(ada()), Row::Contractor(alan())]);

        let row = table.get::<Row>(("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(*row, Row::Employee(ada()));
        let row = table.get(Employee::key("Sales", "1").of::<Row>()).await.unwrap().unwrap();
        assert_eq!(*row, Row::Employee(ada()));
    }

    async fn the_entity_type_is_a_property(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        let raw = raw(&table, "2").await;
        assert_eq!(names(&raw), ["EntityType", "name", "rate"]);
        assert_eq!(raw.properties().get("EntityType"), Some(&Value::from("Contractor")));
        // The rest does not contain the entity type.
        let alan = table.get::<Contractor>(("Sales", "2")).await.unwrap().unwrap();
        assert!(alan.other.is_empty());
    }

    async fn a_wrong_entity_type_names_key_expected_and_found(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        let error = table.get::<Employee>(("Sales", "2")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert_eq!(error.key().unwrap().row_key().as_str(), "2");
        let text = format!("{error:?}");
        assert!(text.contains("the entity is a \"Contractor\" by its property \"EntityType\", expected \"Employee\""), "{text}");

        let mut plain = DynamicEntity::new("Sales", "1").with("name", "Ada");
        table.upsert_replace(&plain).await.unwrap();
        let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("the entity tells no type, as it has no property \"EntityType\", expected \"Employee\""), "{text}");
        let error = table.get::<Row>(("Sales", "1")).await.unwrap_err();
        assert!(format!("{error:?}").contains("expected \"Department\" or \"Employee\" or \"Contractor\" or \"Consultant\" or \"Freelancer\""), "{error:?}");

        plain.properties_mut().set("EntityType", 5);
        table.upsert_replace(&plain).await.unwrap();
        for error in [
            table.get::<Employee>(("Sales", "1")).await.unwrap_err(),
            table.get::<Row>(("Sales", "1")).await.unwrap_err(),
        ] {
            let text = format!("{error:?}");
            assert!(text.contains("\"EntityType\"") && text.contains("Edm.String"), "{text}");
        }
        let row = table.get::<AnyRow>(("Sales", "1")).await.unwrap().unwrap();
        assert!(matches!(&*row, AnyRow::Other(other) if other.properties().get("EntityType") == Some(&Value::Int32(5))));
    }

    async fn a_query_of_a_struct_finds_its_entity_type_only(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        table.insert(&ship()).await.unwrap();
        let query = || table.query::<Employee>();
        assert_eq!(query().collect().await.unwrap().len(), 1);
        assert_eq!(query().count().await.unwrap(), 1);
        assert!(query().exists().await.unwrap());
        assert_eq!(query().first().await.unwrap().unwrap().name, "Ada");
        assert_eq!(query().one().await.unwrap().unwrap().name, "Ada");
        assert_eq!(query().select(|e| e.name).collect().await.unwrap(), ["Ada"]);
        assert_eq!(query().take(5).page_size(1).collect().await.unwrap().len(), 1);
        // A filter of the caller does not add other types.
        let either = || query().filter(|e| e.salary.ge(0.0) | e.name.ne("")).partition("Sales");
        assert_eq!(either().count().await.unwrap(), 1);
        assert_eq!(query().odata("name eq 'Alan' or name eq 'Ada'").count().await.unwrap(), 1);
        let text = format!("{:?}", either());
        assert!(text.contains("EntityType eq 'Employee' and PartitionKey eq 'Sales' and (salary ge 0.0 or name ne '')"), "{text}");
        // Both of its names.
        assert!(format!("{:?}", table.query::<Contractor>()).contains("EntityType eq 'Contractor' or EntityType eq 'Consultant'"));
    }

    async fn pages_of_a_struct_have_its_entity_type_only(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        for id in 5..9 {
            let employee = Employee { id: id.to_string(), ..ada() };
            table.insert(&employee).await.unwrap();
        }
        let mut seen = Vec::new();
        let mut token = None;
        loop {
            let page = table.query::<Employee>().take(2).page(token.take()).await.unwrap();
            seen.extend(page.items.into_iter().map(|e| e.id.clone()));
            match page.next {
                Some(next) => token = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, ["1", "5", "6", "7", "8"]);
        // A token of a query of one struct is rejected by a query of another.
        let page = table.query::<Employee>().take(1).page(None).await.unwrap();
        assert!(table.query::<Contractor>().take(1).page(page.next).await.is_err());
    }

    async fn an_unknown_entity_type_is_an_error_or_other(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        table.insert(&ship()).await.unwrap();
        let error = table.query::<Row>().collect().await.unwrap_err();
        assert_eq!(error.key().unwrap().row_key().as_str(), "3");
        assert!(format!("{error:?}").contains("the entity is a \"Ship\""), "{error:?}");
        let known = table.query::<Row>().filter(|row| row.is_department() | row.is_employee() | row.is_contractor());
        assert_eq!(known.collect().await.unwrap().len(), 3);

        let rows = table.query::<AnyRow>().collect().await.unwrap();
        let AnyRow::Other(other) = &*rows[3] else { panic!("{rows:?}") };
        assert_eq!(names(other), ["EntityType", "masts"]);
        assert_eq!(table.query::<AnyRow>().filter(|row| !row.is_other()).count().await.unwrap(), 3);
    }

    async fn an_alias_of_the_type_is_replaced_on_write(subject: Subject) {
        let table = subject.table().await;
        table.insert(&freelancer()).await.unwrap();
        let mut grace = table.get::<Row>(("Sales", "4")).await.unwrap().unwrap();
        let Row::Contractor(contractor) = &mut *grace else { panic!("{grace:?}") };
        assert_eq!(contractor.other.get("visits"), Some(&Value::Int32(7)));
        assert_eq!(contractor.other.len(), 1, "the rest does not contain the type");
        contractor.rate = 130;
        table.replace(&mut grace).await.unwrap();
        let raw = raw(&table, "4").await;
        assert_eq!(raw.properties().get("EntityType"), Some(&Value::from("Contractor")));
        assert_eq!(raw.properties().get("visits"), Some(&Value::Int32(7)));
        // The struct has its own alias, and not that of the variant.
        let mut row = freelancer();
        row.properties_mut().set("EntityType", "Consultant");
        assert!(row.to_entity::<Contractor>().is_ok());
        assert!(freelancer().to_entity::<Contractor>().is_err());
    }

    async fn every_verb_takes_an_enum(subject: Subject) {
        let table = subject.table().await;
        let mut row = table.insert(&Row::Employee(ada())).await.unwrap();
        assert_eq!(*row, Row::Employee(ada()));
        assert_eq!(row.entity_key().unwrap().row_key().as_str(), "1");
        let Row::Employee(employee) = &mut *row else { unreachable!() };
        employee.salary = None;
        table.merge(&mut row).await.unwrap();
        table.replace(&mut row).await.unwrap();
        table.upsert_merge(&Row::Contractor(alan())).await.unwrap();
        table.upsert_replace(&Row::Department(department())).await.unwrap();
        table.replace_if(&Row::Department(department()), ETag::ANY).await.unwrap();
        table.merge_if(&Row::Department(department()), ETag::ANY).await.unwrap();
        let mut stored = table.get::<Row>(("Sales", "2")).await.unwrap().unwrap();
        table
            .batch("Sales")
            .insert(&AnyRow::Other(ship()))
            .replace(&mut stored)
            .upsert_merge(&Employee { id: "9".into(), ..ada() })
            .await
            .unwrap();
        let rows = table.query::<AnyRow>().collect().await.unwrap();
        assert_eq!(rows.len(), 5);
        assert!(table.delete_stored(&rows[0]).await.unwrap());
        let many = table.get_many(["1", "7"].map(|id| Employee::key("Sales", id).of::<Row>())).await.unwrap();
        assert!(matches!(many[0].as_deref(), Some(Row::Employee(employee)) if employee.salary.is_none()));
        assert!(many[1].is_none());
    }

    async fn modify_keeps_unknown_properties_of_an_enum(subject: Subject) {
        let table = subject.table().await;
        table.insert(&DynamicEntity::from_entity(&ada()).unwrap().with("desk", 12)).await.unwrap();
        table.modify::<Row, _>(("Sales", "1"), |row| {
            let Row::Employee(employee) = row else { return Err("no employee".into()) };
            employee.salary = None;
            Ok(())
        }).await.unwrap();
        assert_eq!(names(&raw(&table, "1").await), ["EntityType", "Home_city", "desk", "name"]);

        table.modify::<Row, _>(("Sales", "1"), |row| {
            *row = Row::Department(Department { id: "Sales".into(), row: "1".into(), title: "Desks".into() });
            Ok(())
        }).await.unwrap();
        assert_eq!(names(&raw(&table, "1").await), ["EntityType", "desk", "title"]);
        // An entity of another type is not modified.
        let error = table.modify::<Employee, _>(("Sales", "1"), |_| Ok(())).await.unwrap_err();
        assert!(format!("{error:?}").contains("\"Department\""), "{error:?}");
    }

    async fn columns_of_a_variant_imply_its_entity_type(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        // A department of the same property.
        let raw = DynamicEntity::from_entity(&department()).unwrap().with("name", "Ada");
        table.upsert_replace(&raw).await.unwrap();
        table.insert(&ship()).await.unwrap();
        let count = |query: tablesdk::action::QueryEntities<AnyRow>| query.count();
        let query = || table.query::<AnyRow>();
        assert_eq!(count(query().filter(|row| row.employee.name.eq("Ada"))).await.unwrap(), 1);
        assert_eq!(count(query().filter(|row| row.is_department() | row.other.property("masts").ge(2))).await.unwrap(), 2);
        assert_eq!(count(query().filter(|row| row.is_other() & row.row_key.ge("0"))).await.unwrap(), 1);
        assert_eq!(count(query().filter(|row| (row.is_employee() | row.is_contractor()) & row.row_key.ge("2"))).await.unwrap(), 1);
        assert_eq!(count(query().filter(|row| row.employee.home.city.starts_with("Lon"))).await.unwrap(), 1);

        let names = query().select(|row| (row.contractor.name, row.contractor.rate, row.row_key));
        assert_eq!(names.collect().await.unwrap(), [("Alan".to_owned(), 90, "2".to_owned())]);
        let both = query().select(|row| (row.contractor.name, row.department.title));
        let error = both.collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let text = format!("{error:?}");
        assert!(text.contains("AnyRow::Contractor") && text.contains("AnyRow::Department"), "{text}");
    }

    async fn a_projection_selects_and_checks_the_entity_type(subject: Subject) {
        #[derive(Debug, PartialEq, TableEntity)]
        #[table(projection, entity_type = "Employee")]
        struct Name {
            name: String,
        }
        #[derive(Debug, PartialEq, TableEntity)]
        #[table(projection, entity_type = "Department")]
        struct Title {
            title: String,
        }
        #[derive(Debug, PartialEq, TableEntity)]
        #[table(projection)]
        enum Slim {
            Name(Name),
            Title(Title),
        }
        let table = subject.table().await;
        company(&table).await;
        let names = table.query::<Name>().collect().await.unwrap();
        assert_eq!((names.len(), &*names[0]), (1, &Name { name: "Ada".into() }));
        assert!(table.get::<Name>(("Sales", "1")).await.unwrap().is_some());
        let error = table.get::<Name>(("Sales", "2")).await.unwrap_err();
        assert!(format!("{error:?}").contains("\"Contractor\""), "{error:?}");

        let slim = table.query::<Slim>().filter(|row| row.is_name() | row.is_title()).collect().await.unwrap();
        assert_eq!(slim.len(), 2);
        assert_eq!(*slim[0], Slim::Title(Title { title: "Sales and marketing".into() }));
        assert!(table.get::<Slim>(("Sales", "2")).await.is_err());
    }

    async fn resolve_maps_each_entity(subject: Subject) {
        let table = subject.table().await;
        company(&table).await;
        let types = table.query::<DynamicEntity>().resolve(|row| {
            Ok((row.key().row_key().as_str().to_owned(), row.properties().read::<String>("EntityType")?))
        });
        let types = types.take(2).page_size(1).collect().await.unwrap();
        assert_eq!(types, [("0".to_owned(), "Department".to_owned()), ("1".to_owned(), "Employee".to_owned())]);
        // A query of a struct finds its entity type only.
        let names = table.query::<Employee>().resolve(|row| Ok(row.properties().read::<String>("name")?));
        assert_eq!(names.collect().await.unwrap(), ["Ada"]);

        let refused = table.query::<DynamicEntity>().resolve(|row| {
            if row.properties().get("title").is_some() { Ok(()) } else { Err("not a department".into()) }
        });
        let error = refused.collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Aborted);
        assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        assert!(format!("{error:?}").ends_with("not a department"), "{error:?}");

        let get = |row: &'static str| table.get::<DynamicEntity>(("Sales", row));
        let name = get("1").resolve(|row| Ok(row.properties().read::<String>("name")?)).await.unwrap();
        assert_eq!(name.as_deref(), Some("Ada"));
        assert!(get("7").resolve(|_| Ok(())).await.unwrap().is_none());
        let error = get("1").resolve::<()>(|_| Err("no".into())).await.unwrap_err();
        assert_eq!((error.kind(), error.key().is_some()), (ErrorKind::Aborted, true));
    }
}

/// The first version: one name.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Person", alias = "Human")]
pub(crate) struct PersonV1 {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    pub(crate) id: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Person.v2", alias = "Resident", from = "PersonV1")]
pub(crate) struct PersonV2 {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    first: String,
    pub(crate) last: String,
}

/// The first version becomes the second, and that becomes this one.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Person.v3", from = "PersonV2")]
struct PersonV3 {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    initials: String,
    last: String,
}

impl TryFrom<PersonV1> for PersonV2 {
    type Error = String;

    fn try_from(old: PersonV1) -> Result<Self, String> {
        let Some((first, last)) = old.name.split_once(' ') else {
            return Err(format!("{:?} is no first and last name", old.name));
        };
        let (first, last) = (first.to_owned(), last.to_owned());
        Ok(Self {
            country: old.country,
            id: old.id,
            first,
            last,
        })
    }
}

impl From<PersonV2> for PersonV3 {
    fn from(old: PersonV2) -> Self {
        let initials = old.first.chars().take(1).collect();
        Self {
            country: old.country,
            id: old.id,
            initials,
            last: old.last,
        }
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Registry {
    #[table(alias = "Citizen")]
    Person(PersonV3),
    Department(Department),
}

pub(crate) fn old(name: &str) -> PersonV1 {
    PersonV1 {
        country: "UK".into(),
        id: "1".into(),
        name: name.into(),
    }
}

on_both_transports! {
    async fn older_versions_are_read_as_the_newest(subject: Subject) {
        let table = subject.table().await;
        table.insert(&DynamicEntity::from_entity(&old("Ada Lovelace")).unwrap().with("desk", 12)).await.unwrap();
        let mut second = PersonV2::try_from(old("Alan Turing")).unwrap();
        second.id = "2".into();
        table.insert(&second).await.unwrap();
        let mut third = PersonV3::from(second.clone());
        third.id = "3".into();
        table.insert(&third).await.unwrap();
        let human = PersonV1 { id: "4".into(), ..old("Grace Hopper") };
        let human = DynamicEntity::from_entity(&human).unwrap().with("EntityType", "Human");
        table.insert(&human).await.unwrap();

        let read = table.get::<PersonV3>(("UK", "1")).await.unwrap().unwrap();
        assert_eq!((read.initials.as_str(), read.last.as_str()), ("A", "Lovelace"));
        let all = table.query::<PersonV3>().collect().await.unwrap();
        let lasts: Vec<_> = all.iter().map(|person| person.last.as_str()).collect();
        assert_eq!(lasts, ["Lovelace", "Turing", "Turing", "Hopper"]);
        assert!(matches!(&*table.get::<Registry>(("UK", "4")).await.unwrap().unwrap(), Registry::Person(person) if person.last == "Hopper"));
        // An old program reads the old version, and no newer one.
        assert!(table.get::<PersonV2>(("UK", "3")).await.is_err());
        assert_eq!(table.query::<PersonV1>().count().await.unwrap(), 2);

        // It is written in the new version: old properties are removed, and unknown ones stay.
        let modified = table.modify::<PersonV3, _>(("UK", "1"), |person| {
            person.initials.push('L');
            Ok(())
        });
        modified.await.unwrap();
        let raw = table.get::<DynamicEntity>(("UK", "1")).await.unwrap().unwrap();
        assert_eq!(names(&raw), ["EntityType", "desk", "initials", "last"]);
        assert_eq!(raw.properties().get("initials"), Some(&Value::from("AL")));
        assert_eq!(raw.properties().get("EntityType"), Some(&Value::from("Person.v3")));
    }

    async fn a_failed_conversion_of_a_version_is_an_error(subject: Subject) {
        let table = subject.table().await;
        table.insert(&old("Ada")).await.unwrap();
        let error = table.get::<PersonV3>(("UK", "1")).await.unwrap_err();
        assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        let text = format!("{error:?}");
        assert!(text.contains("the entity is of an older version, which cannot become `PersonV2`: \"Ada\" is no first and last name"), "{text}");
    }
}

#[test]
fn the_schema_lists_the_entity_types() {
    let entity_type = PersonV3::SCHEMA.entity_type().unwrap();
    assert_eq!(
        entity_type.names(),
        ["Person.v3", "Person.v2", "Resident", "Person", "Human"]
    );
    assert!(Row::SCHEMA.entity_type().is_none());
    assert!(DynamicEntity::SCHEMA.entity_type().is_none());
}

#[test]
fn the_property_of_the_entity_type_can_be_renamed() {
    #[derive(Debug, PartialEq, TableEntity)]
    #[table(entity_type = "Meter", entity_type_property = "Kind")]
    struct Meter {
        #[table(partition_key)]
        place: String,
        #[table(row_key)]
        id: String,
    }
    let meter = Meter {
        place: "a".into(),
        id: "b".into(),
    };
    let raw = DynamicEntity::from_entity(&meter).unwrap();
    assert_eq!(raw.properties().get("Kind"), Some(&Value::from("Meter")));
    assert_eq!(raw.to_entity::<Meter>().unwrap(), meter);
}

#[test]
fn the_rest_cannot_contain_the_entity_type() {
    let mut alan = alan();
    alan.other.set("EntityType", "Employee");
    let error = DynamicEntity::from_entity(&alan).unwrap_err();
    let because = "the entity type is stored under its name";
    assert!(error.to_string().contains(because), "{error}");
}

#[test]
fn a_missing_entity_type_has_its_own_problem() {
    let mut raw = DynamicEntity::from_entity(&ada()).unwrap();
    raw.properties_mut().remove("EntityType");
    let error = raw.to_entity::<Employee>().unwrap_err();
    let problem = error.problem();
    let is_missing = matches!(problem, EntityProblem::WrongEntityType { found: None, .. });
    assert!(is_missing, "{error}");
}

#[test]
fn an_enum_may_be_generic() {
    #[derive(Debug, PartialEq, TableEntity)]
    #[table(entity_type = "Value")]
    struct Holder<T> {
        #[table(partition_key)]
        place: String,
        #[table(row_key)]
        id: String,
        value: T,
    }
    #[derive(Debug, PartialEq, TableEntity)]
    enum Either<T> {
        Value(Holder<T>),
        Department(Department),
    }
    let holder = Holder {
        place: "a".into(),
        id: "b".into(),
        value: 5_i64,
    };
    let raw = DynamicEntity::from_entity(&holder).unwrap();
    assert_eq!(
        raw.to_entity::<Either<i64>>().unwrap(),
        Either::Value(holder)
    );
    assert_eq!(
        Either::<i64>::columns().value.value.ge(5).to_string(),
        "EntityType eq 'Value' and value ge 5L"
    );
}

/// Structs without an entity type, which differ in their row keys.
pub(super) mod by_row_key {
    use tablesdk::entity::EntityProblem;
    use tablesdk::{DynamicEntity, TableClient, TableEntity};

    use crate::on_both_transports;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(partition_key = "{name}", row_key = "dept_")]
    pub(crate) struct Department {
        pub(crate) name: String,
        pub(crate) budget: f64,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(partition_key = "{department}", row_key = "empid_{id:06}")]
    pub(crate) struct Employee {
        pub(crate) department: String,
        pub(crate) id: u32,
        pub(crate) salary: f64,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        partition_key = "{department}",
        row_key = "empreview_{id:06}_{year:04}"
    )]
    pub(crate) struct Review {
        pub(crate) department: String,
        pub(crate) id: u32,
        pub(crate) year: u32,
        pub(crate) stars: i32,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(by = "row_key")]
    pub(crate) enum Row {
        Department(Department),
        Employee(Employee),
        Review(Review),
        #[table(other)]
        Other(DynamicEntity),
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(by = "row_key")]
    enum Person {
        Employee(Employee),
        Review(Review),
    }

    fn rows() -> [Row; 3] {
        let department = || "Sales".to_owned();
        [
            Row::Department(Department {
                name: department(),
                budget: 10.0,
            }),
            Row::Employee(Employee {
                department: department(),
                id: 1,
                salary: 5.0,
            }),
            Row::Review(Review {
                department: department(),
                id: 1,
                year: 1843,
                stars: 5,
            }),
        ]
    }

    async fn fill(table: &TableClient) {
        for row in rows() {
            table.insert(&row).await.unwrap();
        }
    }

    on_both_transports! {
        async fn the_prefix_of_the_row_key_selects_the_variant(subject: Subject) {
            let table = subject.table().await;
            fill(&table).await;
            let query = || table.query::<Row>();
            let read = query().collect().await.unwrap();
            let read: Vec<_> = read.into_iter().map(tablesdk::Stored::into_inner).collect();
            assert_eq!(read, rows());

            table.insert(&DynamicEntity::new("Sales", "emp")).await.unwrap();
            let read = query().collect().await.unwrap();
            assert_eq!(read.len(), 4);
            assert!(read.iter().any(|row| matches!(&**row, Row::Other(_))));
            assert_eq!(query().filter(|row| !row.is_other()).count().await.unwrap(), 3);
            assert_eq!(table.query::<Person>().filter(|row| row.is_employee() | row.is_review()).count().await.unwrap(), 2);

            let error = table.query::<Person>().collect().await.unwrap_err();
            assert_eq!(error.key().unwrap().row_key().as_str(), "dept_");
            let text = format!("{error:?}");
            assert!(text.contains("the row key \"dept_\" begins like those of no variant: expected one that begins with \"empid_\" or \"empreview_\""), "{text}");
            // A malformed row key with a known prefix is an error.
            table.insert(&DynamicEntity::new("Sales", "empid_x")).await.unwrap();
            assert!(table.get::<Row>(("Sales", "empid_x")).await.is_err());
        }

        async fn a_query_of_a_struct_is_a_range_of_row_keys(subject: Subject) {
            let table = subject.table().await;
            fill(&table).await;
            for id in [2, 3] {
                table.insert(&Employee { department: "Sales".into(), id, salary: 7.0 }).await.unwrap();
            }
            let employees = || table.query::<Employee>();
            assert_eq!(employees().count().await.unwrap(), 3);
            assert_eq!(employees().partition("Sales").filter(|e| e.salary.ge(6.0)).count().await.unwrap(), 2);
            assert_eq!(table.query::<Department>().collect().await.unwrap().len(), 1);
            // A malformed row key with a known prefix is not ignored.
            table.insert(&DynamicEntity::new("Sales", "empid_x")).await.unwrap();
            assert!(employees().collect().await.is_err());

            let filter = |query: tablesdk::action::QueryEntities<Employee>| query.explain().unwrap().filter().unwrap().to_owned();
            assert_eq!(filter(employees()), "RowKey ge 'empid_' and RowKey lt 'empid`'");
            // A narrower range replaces it.
            let narrow = || employees().partition("Sales").rows(Employee::rows().id(2..=3));
            assert_eq!(filter(narrow()), "PartitionKey eq 'Sales' and RowKey ge 'empid_000002' and RowKey le 'empid_000003'");
            assert_eq!(narrow().count().await.unwrap(), 2);
            let one = employees().partition("Sales").rows(Employee::rows().id(2));
            assert_eq!(filter(one), "PartitionKey eq 'Sales' and RowKey eq 'empid_000002'");
        }

        async fn columns_of_a_variant_imply_its_row_keys(subject: Subject) {
            let table = subject.table().await;
            fill(&table).await;
            let query = || table.query::<Row>();
            assert_eq!(query().filter(|row| row.employee.salary.ge(5.0) | row.is_department()).count().await.unwrap(), 2);
            let selected = query().select(|row| (row.review.id, row.review.year, row.review.stars));
            assert_eq!(selected.collect().await.unwrap(), [(1, 1843, 5)]);
        }
    }

    #[test]
    fn the_condition_of_a_variant_is_a_row_key_range() {
        let row = Row::columns();
        assert_eq!(
            row.employee.salary.lt(1.0).to_string(),
            "RowKey ge 'empid_' and RowKey lt 'empid`' and salary lt 1.0"
        );
        assert_eq!(
            row.is_other().to_string(),
            "not (RowKey ge 'dept_' and RowKey lt 'dept`' or RowKey ge 'empid_' and RowKey lt 'empid`' or RowKey ge 'empreview_' and RowKey lt 'empreview`')"
        );
    }

    #[test]
    fn an_unknown_row_key_has_its_own_problem() {
        let row = DynamicEntity::new("Sales", "zzz");
        let error = row.to_entity::<Person>().unwrap_err();
        let is_unknown = matches!(error.problem(), EntityProblem::UnknownRowKey { .. });
        assert!(is_unknown, "{error}");
    }
}
