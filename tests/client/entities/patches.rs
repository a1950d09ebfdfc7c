//! A patch writes no entity type. So it is refused where the entity would be read without what it sets: an entity of an older
//! version, of another variant, or of another type.

use tablesdk::entity::{EntityError, EntityProblem};
use tablesdk::{DynamicEntity, Error, ErrorKind, TableClient, TableEntity, Value};

use crate::heterogeneous::by_row_key;
use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Employee", alias = "Worker")]
struct EmployeeV1 {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Employee.v2", alias = "Staff", from = "EmployeeV1")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    full_name: String,
}

impl From<EmployeeV1> for Employee {
    fn from(old: EmployeeV1) -> Self {
        Self {
            department: old.department,
            id: old.id,
            full_name: old.name,
        }
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Contractor")]
struct Contractor {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    rate: i64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Person {
    Employee(Employee),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Company {
    Employee(Employee),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
    #[table(other)]
    Other(DynamicEntity),
}

fn old(id: &str) -> EmployeeV1 {
    EmployeeV1 {
        department: "Sales".into(),
        id: id.into(),
        name: "Ada".into(),
    }
}

fn new(id: &str) -> Employee {
    old(id).into()
}

fn contractor(id: &str) -> Contractor {
    Contractor {
        department: "Sales".into(),
        id: id.into(),
        rate: 90,
    }
}

async fn properties(table: &TableClient, id: &str) -> Vec<(String, Value)> {
    let row = table.get::<DynamicEntity>(("Sales", id)).await.unwrap();
    let row = row.unwrap();
    let properties = row.properties().iter();
    properties
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

fn assert_names_modify(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
    let cause = error.downcast_ref::<EntityError>().unwrap();
    let is_patch = matches!(cause.problem(), EntityProblem::PatchOfOtherType { .. });
    assert!(is_patch, "{error:?}");
    assert!(format!("{error:?}").contains("use `modify`"), "{error:?}");
}

on_both_transports! {
    async fn a_patch_of_an_older_version_is_refused(subject: Subject) {
        let table = subject.table().await;
        table.insert(&old("1")).await.unwrap();
        let before = properties(&table, "1").await;
        let patch = || table.patch(Employee::key("Sales", "1")).set(|e| e.full_name, "Ada Lovelace");
        let error = patch().await.unwrap_err();
        assert_names_modify(&error);
        let text = format!("{error:?}");
        assert!(text.contains("the entity is a \"Employee\" by its property \"EntityType\", and the patch is for \"Employee.v2\" or \"Staff\""), "{text}");
        let etag = table.get(Employee::key("Sales", "1")).await.unwrap().unwrap().etag().clone();
        for error in [
            patch().if_match(&etag).await.unwrap_err(),
            patch().exactly_once().await.unwrap_err(),
            table.patch::<Company>(("Sales", "1")).set(|e| e.employee.full_name, "Ada Lovelace").await.unwrap_err(),
        ] {
            assert_names_modify(&error);
        }
        assert_eq!(properties(&table, "1").await, before);

        // As the message says.
        table.modify(Employee::key("Sales", "1"), |e| {
            e.full_name = "Ada L.".into();
            Ok(())
        }).await.unwrap();
        patch().await.unwrap();
        assert_eq!(table.get(Employee::key("Sales", "1")).await.unwrap().unwrap().full_name, "Ada Lovelace");
    }

    async fn a_patch_of_another_variant_is_refused(subject: Subject) {
        let table = subject.table().await;
        table.insert(&contractor("1")).await.unwrap();
        table.insert(&DynamicEntity::new("Sales", "2")).await.unwrap();
        let before = properties(&table, "1").await;
        for error in [
            table.patch::<Person>(("Sales", "1")).set(|e| e.employee.full_name, "Ada").await.unwrap_err(),
            table.patch::<Company>(("Sales", "1")).set(|e| e.employee.full_name, "Ada").await.unwrap_err(),
            table.patch::<Employee>(("Sales", "1")).set(|e| e.full_name, "Ada").await.unwrap_err(),
            table.patch::<Company>(("Sales", "2")).set(|e| e.contractor.rate, 1).await.unwrap_err(),
        ] {
            assert_names_modify(&error);
        }
        assert_eq!(properties(&table, "1").await, before);
        assert_eq!(properties(&table, "2").await, []);

        let error = table.patch::<Person>(("Sales", "1")).set(|e| e.contractor.rate, 1).set(|e| e.employee.full_name, "Ada").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(format!("{error:?}").contains("`full_name` is of another one"), "{error:?}");

        table.patch::<Company>(("Sales", "1")).set(|e| e.contractor.rate, 91).await.unwrap();
        assert_eq!(table.get(Contractor::key("Sales", "1")).await.unwrap().unwrap().rate, 91);
    }

    async fn a_patch_sets_properties_under_every_name_of_the_type(subject: Subject) {
        let table = subject.table().await;
        for (id, name) in [("1", "Employee.v2"), ("2", "Staff")] {
            let mut row = DynamicEntity::from_entity(&new(id)).unwrap();
            row.properties_mut().set("EntityType", name);
            table.insert(&row).await.unwrap();
            table.patch(Employee::key("Sales", id)).set(|e| e.full_name, "Grace").await.unwrap();
            assert_eq!(table.get(Employee::key("Sales", id)).await.unwrap().unwrap().full_name, "Grace");
        }
        let mut freelancer = DynamicEntity::from_entity(&contractor("3")).unwrap();
        freelancer.properties_mut().set("EntityType", "Freelancer");
        table.insert(&freelancer).await.unwrap();
        table.patch::<Person>(("Sales", "3")).set(|e| e.contractor.rate, 91).await.unwrap();
        let read = table.get::<Person>(("Sales", "3")).await.unwrap().unwrap();
        assert!(matches!(&*read, Person::Contractor(contractor) if contractor.rate == 91));
        // Read alone, it is no contractor.
        let error = table.patch(Contractor::key("Sales", "3")).set(|e| e.rate, 92).await.unwrap_err();
        assert_names_modify(&error);
        let error = table.patch(Contractor::key("Sales", "9")).set(|e| e.rate, 92).await.unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
    }

    async fn a_patch_of_another_row_key_is_refused_before_it_is_sent(subject: Subject) {
        let table = subject.table().await;
        table.insert(&by_row_key::Employee { department: "Sales".into(), id: 7, salary: 1.0 }).await.unwrap();
        let key = || by_row_key::Employee::key("Sales", 7);
        for error in [
            table.patch::<by_row_key::Row>(key().of()).set(|e| e.department.budget, 1.0).await.unwrap_err(),
            table.patch::<by_row_key::Department>(("Sales", "empid_000007")).set(|e| e.budget, 1.0).await.unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.attempts()), (ErrorKind::Input, 0));
            assert!(format!("{error:?}").contains("expected one that begins with \"dept_\""), "{error:?}");
        }
        table.patch::<by_row_key::Row>(key().of()).set(|e| e.employee.salary, 2.0).await.unwrap();
        let salary = table.get(key()).await.unwrap().unwrap().salary;
        assert!((salary - 2.0).abs() < f64::EPSILON);
    }

    async fn patches_in_batches_are_checked(subject: Subject) {
        let table = subject.table().await;
        table.insert(&old("1")).await.unwrap();
        let second = table.insert(&new("2")).await.unwrap();
        let before = properties(&table, "1").await;
        let key = |id: &str| Employee::key("Sales", id);
        let error = table
            .batch("Sales")
            .insert(&new("3"))
            .patch(key("1"), |patch| patch.set(|e| e.full_name, "Grace"))
            .await
            .unwrap_err();
        assert_names_modify(&error);
        assert_eq!((error.batch_index(), error.key().unwrap().row_key().as_str()), (Some(1), "1"));
        assert_eq!(properties(&table, "1").await, before);
        assert!(table.get(key("3")).await.unwrap().is_none());

        let batch = || {
            let batch = table.batch("Sales").upsert_replace(&new("3"));
            batch.patch_if(key("2"), second.etag(), |patch| patch.set(|e| e.full_name, "Grace"))
        };
        let result = batch().await.unwrap();
        let read = table.get(key("2")).await.unwrap().unwrap();
        assert_eq!((read.full_name.as_str(), Some(read.etag())), ("Grace", result.etags()[1].as_ref()));
        let error = batch().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
        assert_eq!(error.batch_index(), Some(1));

        let patch = |id: &str| table.batch("Sales").patch(key(id), |patch| patch.set(|e| e.full_name, "Alan"));
        patch("2").exactly_once().await.unwrap();
        assert_eq!(table.get(key("2")).await.unwrap().unwrap().full_name, "Alan");
        let error = patch("9").await.unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
        let error = table.batch("Sales").patch(key("2"), |patch| patch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let error = table.batch("Marketing").patch(key("2"), |patch| patch.set(|e| e.full_name, "Alan")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn a_patch_with_an_etag_fails_if_the_entity_changed(subject: Subject) {
        let table = subject.table().await;
        let stored = table.insert(&new("1")).await.unwrap();
        let patch = || table.patch(Employee::key("Sales", "1")).set(|e| e.full_name, "Grace").if_match(stored.etag());
        let etag = patch().await.unwrap();
        let error = patch().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
        let read = table.get(Employee::key("Sales", "1")).await.unwrap().unwrap();
        assert_eq!((read.full_name.as_str(), read.etag()), ("Grace", &etag));
    }
}
