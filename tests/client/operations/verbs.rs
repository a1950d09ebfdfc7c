//! Each verb on one entity: what it returns, and what the table holds afterwards. The ETag of a
//! conditional write may come from outside: from the `If-Match` header of a request, for instance.

use tablesdk::{ETag, ErrorCode, ErrorKind, Stored, TableEntity};

use crate::{Employee, on_both_transports};

/// An ETag as another program sends it back.
fn sent_back(etag: &ETag) -> ETag {
    etag.to_string().parse().unwrap()
}

/// `Employee` has no field for its ETag.
#[derive(Debug, TableEntity)]
struct Versioned {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(etag)]
    version: Option<ETag>,
}

on_both_transports! {
    async fn an_inserted_entity_reads_back_with_the_same_etag(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee::ada();
        let inserted = table.insert(&ada).await.unwrap();
        assert_eq!(*inserted, ada);
        let read = Employee::find(&table).await.unwrap();
        assert_eq!(read, inserted);
        assert_eq!(read.timestamp(), read.etag().timestamp());
        assert!(read.timestamp().is_some());
        assert_eq!(read.into_inner(), ada);
    }

    async fn a_second_insert_conflicts_and_changes_nothing(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let error = table.insert(&Employee::new("1", "Eve", 20)).await.unwrap_err();
        assert!(error.is_conflict());
        assert_eq!(error.code(), Some(&ErrorCode::EntityAlreadyExists));
        assert_eq!(error.operation(), Some("insert entity"));
        assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        assert!(error.request_id().is_some());
        assert_eq!(Employee::find(&table).await.unwrap().name, "Ada");
    }

    async fn an_update_replaces_or_merges_and_returns_the_new_etag(subject: Subject) {
        let table = subject.table().await;
        let with_email = Employee { email: Some("ada@contoso.com".into()), ..Employee::ada() };
        let new = Employee::new("1", "Ada", 37);
        for (verb, keeps_email) in [
            ("replace", false), ("merge", true), ("replace_if", false), ("merge_if", true),
            ("upsert_replace", false), ("upsert_merge", true),
        ] {
            // The first one inserts.
            let before = sent_back(&table.upsert_replace(&with_email).await.unwrap());
            let mut stored = Stored::from_parts(new.clone(), before.clone()).unwrap();
            let etag = match verb {
                "replace" => table.replace(&mut stored).await,
                "merge" => table.merge(&mut stored).await,
                "replace_if" => table.replace_if(&new, &before).await,
                "merge_if" => table.merge_if(&new, &before).await,
                "upsert_replace" => table.upsert_replace(&new).await,
                _ => table.upsert_merge(&new).await,
            }.unwrap();
            let read = Employee::find(&table).await.unwrap();
            assert_eq!((read.age, read.email.is_some(), read.etag()), (37, keeps_email, &etag), "{verb}");
            assert_ne!(etag, before, "{verb}");
            let is_known = matches!(verb, "replace" | "merge");
            assert_eq!(stored.etag(), if is_known { &etag } else { &before }, "{verb}");
        }
        table.upsert_merge(&Employee::new("2", "Grace", 50)).await.unwrap();
        assert!(table.get(Employee::key("Sales", "2")).await.unwrap().is_some());
    }

    async fn every_conditional_verb_rejects_an_old_etag(subject: Subject) {
        let table = subject.table().await;
        let mut stale = table.insert(&Employee::ada()).await.unwrap();
        let new = Employee::new("1", "Ada", 37);
        let etag = table.upsert_replace(&new).await.unwrap();
        let (before, old) = (stale.clone(), sent_back(stale.etag()));
        for error in [
            table.replace(&mut stale).await.unwrap_err(),
            table.merge(&mut stale).await.unwrap_err(),
            table.delete_stored(&stale).await.unwrap_err(),
            table.replace_if(&Employee::ada(), &old).await.unwrap_err(),
            table.merge_if(&Employee::ada(), &old).await.unwrap_err(),
            table.delete(Employee::key("Sales", "1")).if_match(&old).await.unwrap_err(),
        ] {
            assert!(error.is_precondition_failed(), "{error}");
            assert_eq!(error.code(), Some(&ErrorCode::UpdateConditionNotSatisfied));
        }
        assert_eq!(stale, before, "a refused write leaves the value and its ETag as they were");
        let read = Employee::find(&table).await.unwrap();
        assert_eq!((&*read, read.etag()), (&new, &etag));
        assert!(table.delete_stored(&read).await.unwrap());
        assert!(!table.delete_stored(&read).await.unwrap());
    }

    async fn conditional_writes_need_the_entity(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee::ada();
        let deleted = table.insert(&ada).await.unwrap().etag().clone();
        let key = || Employee::key("Sales", "1");
        assert!(table.delete(key()).if_match(&deleted).await.unwrap());
        for etag in [ETag::ANY, deleted] {
            for error in [
                table.replace_if(&ada, &etag).await.unwrap_err(),
                table.merge_if(&ada, &etag).await.unwrap_err(),
                table.patch(key()).set(|e| e.age, 1).if_match(&etag).await.unwrap_err(),
                table.batch("Sales").delete_if(key(), &etag).await.unwrap_err(),
            ] {
                assert!(error.is_not_found(), "{error}");
                assert_eq!(error.code(), Some(&ErrorCode::ResourceNotFound));
            }
            assert!(!table.delete(key()).if_match(etag).await.unwrap());
        }
    }

    async fn any_is_the_condition_of_an_entity_that_exists(subject: Subject) {
        let table = subject.table().await;
        let key = || Employee::key("Sales", "1");
        table.insert(&Employee::ada()).await.unwrap();
        table.replace_if(&Employee::new("1", "Ada", 37), ETag::ANY).await.unwrap();
        assert_eq!(table.get(key()).await.unwrap().unwrap().age, 37);
        table.patch(key()).set(|e| e.age, 1).if_match(ETag::ANY).await.unwrap();
        let batch = table.batch("Sales");
        batch.patch_if(key(), ETag::ANY, |patch| patch.set(|e| e.age, 2)).await.unwrap();
        let change = table.transaction("Sales", async |tx| {
            let ada = tx.get(key()).await?.expect("she works here");
            assert_eq!(ada.age, 2);
            tx.merge_if(&Employee { age: 3, ..Employee::ada() }, ETag::ANY);
            Ok(())
        });
        change.await.unwrap();
        assert_eq!(table.get(key()).await.unwrap().unwrap().age, 3);
        table.batch("Sales").delete_if(key(), ETag::ANY).await.unwrap();
        table.insert(&Employee::ada()).await.unwrap();
        assert!(table.delete(key()).if_match(ETag::ANY).await.unwrap());
    }

    async fn batches_take_etags_from_outside(subject: Subject) {
        let table = subject.table().await;
        let mut etags = Vec::new();
        for id in ["1", "2", "3"] {
            etags.push(sent_back(table.insert(&Employee::new(id, "Old", 1)).await.unwrap().etag()));
        }
        let batch = || {
            table
                .batch("Sales")
                .replace_if(&Employee::new("1", "New", 2), &etags[0])
                .merge_if(&Employee::new("2", "New", 2), &etags[1])
                .delete_if(Employee::key("Sales", "3"), &etags[2])
        };
        let result = batch().await.unwrap();
        let left = table.query::<Employee>().collect().await.unwrap();
        let left: Vec<_> = left.iter().map(|row| (row.name.as_str(), Some(row.etag().clone()))).collect();
        assert_eq!(left, [("New", result.etags()[0].clone()), ("New", result.etags()[1].clone())]);
        let error = batch().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error}");
        assert_eq!(error.batch_index(), Some(0));
    }

    async fn a_missing_table_is_an_error_a_missing_entity_is_not(subject: Subject) {
        let table = subject.table().await;
        assert!(Employee::find(&table).await.is_none());
        assert!(!table.delete(Employee::key("Sales", "1")).await.unwrap());
        let missing = subject.service.table("Missing");
        let mut stored = table.insert(&Employee::ada()).await.unwrap();
        for error in [
            missing.get(Employee::key("Sales", "1")).await.unwrap_err(),
            missing.get(Employee::key("Sales", "1")).tracked().await.unwrap_err(),
            missing.get_many([Employee::key("Sales", "1")]).await.unwrap_err(),
            missing.patch(Employee::key("Sales", "1")).set(|e| e.age, 1).await.unwrap_err(),
            missing.modify(Employee::key("Sales", "1"), |_: &mut Employee| Ok(())).await.unwrap_err(),
            missing.batch("Sales").delete(("Sales", "1")).await.unwrap_err(),
            missing.insert(&Employee::ada()).exactly_once().await.unwrap_err(),
            missing.delete(Employee::key("Sales", "1")).exactly_once().await.unwrap_err(),
            missing.replace_if(&Employee::ada(), ETag::ANY).await.unwrap_err(),
            missing.access_policy().await.unwrap_err(),
            missing.delete(Employee::key("Sales", "1")).await.unwrap_err(),
            missing.delete_stored(&stored).await.unwrap_err(),
            missing.insert(&Employee::ada()).await.unwrap_err(),
            missing.replace(&mut stored).await.unwrap_err(),
            missing.upsert_merge(&Employee::ada()).await.unwrap_err(),
            missing.query::<Employee>().collect().await.unwrap_err(),
            missing.query::<Employee>().one().await.unwrap_err(),
            missing.query::<Employee>().first().await.unwrap_err(),
            missing.query::<Employee>().count().await.unwrap_err(),
            missing.query::<Employee>().exists().await.unwrap_err(),
            missing.query::<Employee>().page(None).await.unwrap_err(),
            missing.query::<Employee>().filter(|e| e.id.eq("1")).partition("Sales").one().await.unwrap_err(),
            missing.clean_up_markers("Sales").await.unwrap_err(),
        ] {
            assert_eq!(error.code(), Some(&ErrorCode::TableNotFound), "{error}");
            assert!(error.is_table_not_found() && !error.is_not_found(), "{error}");
            assert_eq!(error.table(), Some("Missing"), "{error}");
            assert_eq!(error.endpoint(), Some(subject.service.endpoint()), "{error}");
        }
        assert!(!missing.table_exists().await.unwrap());
        assert!(!missing.delete_table().await.unwrap());
    }

    async fn every_write_returns_a_new_etag(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee::ada();
        let mut last = table.insert(&ada).await.unwrap().etag().clone();
        for _ in 0..100 {
            let etag = table.upsert_merge(&ada).await.unwrap();
            // At Azurite it may be that of an earlier time, if both writes are in one millisecond.
            assert_ne!(etag, last);
            last = etag;
        }
    }
}

#[test]
fn from_parts_computes_the_key_and_refuses_a_bad_one() {
    let etag: ETag = "W/\"datetime'2024-03-15T10%3A20%3A30Z'\"".parse().unwrap();
    let error = Stored::from_parts(Employee::new("a/b", "Ada", 1), etag.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(format!("{error:?}").contains("'/'"), "{error:?}");
    // A value has the ETag of a version.
    let error = Stored::from_parts(Employee::ada(), ETag::ANY).unwrap_err();
    assert_eq!(
        (error.kind(), error.key().is_some()),
        (ErrorKind::Input, true)
    );
    assert!(error.to_string().contains("`replace_if`"), "{error}");

    let entity = Versioned {
        department: "Sales".into(),
        id: "1".into(),
        version: None,
    };
    let stored = Stored::from_parts(entity, etag.clone()).unwrap();
    assert_eq!(stored.version.as_ref(), Some(&etag));
    assert_eq!(stored.key().row_key().as_str(), "1");
    let at = stored.timestamp().unwrap();
    assert_eq!(at.to_string(), "2024-03-15T10:20:30Z");
}
