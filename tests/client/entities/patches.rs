//! A patch writes no entity type. So it is refused where the entity would be read without what it
//! sets: an entity of an older version, of another variant, or of another type.

use tablesdk::entity::{EntityError, EntityProblem};
use tablesdk::{DynamicEntity, Error, ErrorKind, TableClient, TableEntity, Value};

use crate::heterogeneous::{Contractor, PersonV2, alan, by_row_key, old};
use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Known {
    Person(PersonV2),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Any {
    Person(PersonV2),
    #[table(alias = "Freelancer")]
    Contractor(Contractor),
    #[table(other)]
    Other(DynamicEntity),
}

fn new(id: &str) -> PersonV2 {
    let mut old = old("Ada Lovelace");
    old.id = id.into();
    old.try_into().unwrap()
}

fn contractor(id: &str) -> Contractor {
    let mut contractor = alan();
    contractor.id = id.into();
    contractor
}

async fn properties(table: &TableClient, partition: &str, id: &str) -> Vec<(String, Value)> {
    let row = table.get::<DynamicEntity>((partition, id)).await.unwrap();
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
        table.insert(&old("Ada Lovelace")).await.unwrap();
        let before = properties(&table, "UK", "1").await;
        let patch = || table.patch(PersonV2::key("UK", "1")).set(|e| e.last, "Ada Lovelace");
        let error = patch().await.unwrap_err();
        assert_names_modify(&error);
        let text = format!("{error:?}");
        assert!(text.contains("the entity is a \"Person\" by its property \"EntityType\", and the patch is for \"Person.v2\" or \"Resident\""), "{text}");
        let etag = table.get(PersonV2::key("UK", "1")).await.unwrap().unwrap().etag().clone();
        for error in [
            patch().if_match(&etag).await.unwrap_err(),
            patch().exactly_once().await.unwrap_err(),
            table.patch::<Any>(("UK", "1")).set(|e| e.person.last, "Ada Lovelace").await.unwrap_err(),
        ] {
            assert_names_modify(&error);
        }
        assert_eq!(properties(&table, "UK", "1").await, before);

        // As the message says.
        table.modify(PersonV2::key("UK", "1"), |e| {
            e.last = "L.".into();
            Ok(())
        }).await.unwrap();
        patch().await.unwrap();
        assert_eq!(table.get(PersonV2::key("UK", "1")).await.unwrap().unwrap().last, "Ada Lovelace");
    }

    async fn a_patch_of_another_variant_is_refused(subject: Subject) {
        let table = subject.table().await;
        table.insert(&contractor("1")).await.unwrap();
        table.insert(&DynamicEntity::new("Sales", "2")).await.unwrap();
        let before = properties(&table, "Sales", "1").await;
        for error in [
            table.patch::<Known>(("Sales", "1")).set(|e| e.person.last, "Ada").await.unwrap_err(),
            table.patch::<Any>(("Sales", "1")).set(|e| e.person.last, "Ada").await.unwrap_err(),
            table.patch::<PersonV2>(("Sales", "1")).set(|e| e.last, "Ada").await.unwrap_err(),
            table.patch::<Any>(("Sales", "2")).set(|e| e.contractor.rate, 1).await.unwrap_err(),
        ] {
            assert_names_modify(&error);
        }
        assert_eq!(properties(&table, "Sales", "1").await, before);
        assert_eq!(properties(&table, "Sales", "2").await, []);

        let error = table.patch::<Known>(("Sales", "1")).set(|e| e.contractor.rate, 1).set(|e| e.person.last, "Ada").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(format!("{error:?}").contains("`last` is of another one"), "{error:?}");

        table.patch::<Any>(("Sales", "1")).set(|e| e.contractor.rate, 91).await.unwrap();
        assert_eq!(table.get(Contractor::key("Sales", "1")).await.unwrap().unwrap().rate, 91);
    }

    async fn a_patch_sets_properties_under_every_name_of_the_type(subject: Subject) {
        let table = subject.table().await;
        for (id, name) in [("1", "Person.v2"), ("2", "Resident")] {
            let row = DynamicEntity::from_entity(&new(id)).unwrap().with("EntityType", name);
            table.insert(&row).await.unwrap();
            table.patch(PersonV2::key("UK", id)).set(|e| e.last, "Grace").await.unwrap();
            assert_eq!(table.get(PersonV2::key("UK", id)).await.unwrap().unwrap().last, "Grace");
        }
        let freelancer = DynamicEntity::from_entity(&contractor("3")).unwrap().with("EntityType", "Freelancer");
        table.insert(&freelancer).await.unwrap();
        table.patch::<Known>(("Sales", "3")).set(|e| e.contractor.rate, 91).await.unwrap();
        let read = table.get::<Known>(("Sales", "3")).await.unwrap().unwrap();
        assert!(matches!(&*read, Known::Contractor(contractor) if contractor.rate == 91));
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
        table.insert(&old("Ada Lovelace")).await.unwrap();
        let second = table.insert(&new("2")).await.unwrap();
        let before = properties(&table, "UK", "1").await;
        let key = |id: &str| PersonV2::key("UK", id);
        let error = table
            .batch("UK")
            .insert(&new("3"))
            .patch(key("1"), |patch| patch.set(|e| e.last, "Grace"))
            .await
            .unwrap_err();
        assert_names_modify(&error);
        assert_eq!((error.batch_index(), error.key().unwrap().row_key().as_str()), (Some(1), "1"));
        assert_eq!(properties(&table, "UK", "1").await, before);
        assert!(table.get(key("3")).await.unwrap().is_none());

        let batch = || {
            let batch = table.batch("UK").upsert_replace(&new("3"));
            batch.patch_if(key("2"), second.etag(), |patch| patch.set(|e| e.last, "Grace"))
        };
        let result = batch().await.unwrap();
        let read = table.get(key("2")).await.unwrap().unwrap();
        assert_eq!((read.last.as_str(), Some(read.etag())), ("Grace", result.etags()[1].as_ref()));
        let error = batch().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
        assert_eq!(error.batch_index(), Some(1));

        let patch = |id: &str| table.batch("UK").patch(key(id), |patch| patch.set(|e| e.last, "Alan"));
        patch("2").exactly_once().await.unwrap();
        assert_eq!(table.get(key("2")).await.unwrap().unwrap().last, "Alan");
        let error = patch("9").await.unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
        let error = table.batch("UK").patch(key("2"), |patch| patch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let error = table.batch("Marketing").patch(key("2"), |patch| patch.set(|e| e.last, "Alan")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn a_patch_with_an_etag_fails_if_the_entity_changed(subject: Subject) {
        let table = subject.table().await;
        let stored = table.insert(&new("1")).await.unwrap();
        let patch = || table.patch(PersonV2::key("UK", "1")).set(|e| e.last, "Grace").if_match(stored.etag());
        let etag = patch().await.unwrap();
        let error = patch().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
        let read = table.get(PersonV2::key("UK", "1")).await.unwrap().unwrap();
        assert_eq!((read.last.as_str(), read.etag()), ("Grace", &etag));
    }
}
