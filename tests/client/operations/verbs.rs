//! Each verb on one entity: what it returns, and what the table holds afterwards.

use tablesdk::{ETag, ErrorCode, TableEntity};

use crate::{Employee, on_both_transports};

/// A later version of `Employee`, for the same entities.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Badge {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    badge: i64,
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

    async fn a_replace_removes_all_other_properties(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Employee { email: Some("ada@contoso.com".into()), ..Employee::ada() }).await.unwrap();
        let first = ada.etag().clone();
        ada.email = None;
        ada.age = 37;
        table.replace(&mut ada).await.unwrap();
        assert_ne!(ada.etag(), &first);
        let read = Employee::find(&table).await.unwrap();
        assert_eq!(read, ada);
        assert_eq!((read.age, &read.email), (37, &None));
        // The new ETag is good for the next write.
        ada.age = 38;
        table.replace(&mut ada).await.unwrap();
    }

    async fn a_merge_keeps_other_properties(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Employee { email: Some("ada@contoso.com".into()), ..Employee::ada() }).await.unwrap();
        ada.email = None;
        ada.age = 37;
        table.merge(&mut ada).await.unwrap();
        let badge = Badge { department: "Sales".into(), id: "1".into(), badge: 7 };
        table.merge_if(&badge, ETag::ANY).await.unwrap();
        let read = Employee::find(&table).await.unwrap();
        assert_eq!((read.age, read.email.as_deref()), (37, Some("ada@contoso.com")));
        assert_eq!(*table.get(Badge::key("Sales", "1")).await.unwrap().unwrap(), badge);
    }

    async fn every_conditional_verb_rejects_an_old_etag(subject: Subject) {
        let table = subject.table().await;
        let mut stale = table.insert(&Employee::ada()).await.unwrap();
        let etag = table.upsert_replace(&Employee::new("1", "Ada", 37)).await.unwrap();
        let before = stale.clone();
        for error in [
            table.replace(&mut stale).await.unwrap_err(),
            table.merge(&mut stale).await.unwrap_err(),
            table.delete_stored(&stale).await.unwrap_err(),
        ] {
            assert!(error.is_precondition_failed(), "{error}");
            assert_eq!(error.code(), Some(&ErrorCode::UpdateConditionNotSatisfied));
        }
        assert_eq!(stale, before, "a refused write leaves the value and its ETag as they were");
        let read = Employee::find(&table).await.unwrap();
        assert_eq!((read.age, read.etag()), (37, &etag));
        assert!(table.delete_stored(&read).await.unwrap());
        assert!(!table.delete_stored(&read).await.unwrap());
    }

    async fn upserts_insert_and_update(subject: Subject) {
        let table = subject.table().await;
        let with_email = Employee { email: Some("ada@contoso.com".into()), ..Employee::ada() };
        table.upsert_merge(&with_email).await.unwrap();
        table.upsert_merge(&Employee::new("1", "Ada", 37)).await.unwrap();
        let read = Employee::find(&table).await.unwrap();
        assert_eq!((read.age, read.email.as_deref()), (37, Some("ada@contoso.com")));
        let etag = table.upsert_replace(&Employee::new("1", "Ada", 38)).await.unwrap();
        let read = Employee::find(&table).await.unwrap();
        assert_eq!((read.age, &read.email, read.etag()), (38, &None, &etag));
        table.upsert_replace(&Employee::new("2", "Grace", 50)).await.unwrap();
        assert!(table.get(Employee::key("Sales", "2")).await.unwrap().is_some());
    }

    async fn unconditional_writes_need_the_entity(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee::ada();
        for error in [
            table.replace_if(&ada, ETag::ANY).await.unwrap_err(),
            table.merge_if(&ada, ETag::ANY).await.unwrap_err(),
        ] {
            assert!(error.is_not_found(), "{error}");
            assert_eq!(error.code(), Some(&ErrorCode::ResourceNotFound));
        }
        table.insert(&ada).await.unwrap();
        table.replace_if(&Employee::new("1", "Ada", 37), ETag::ANY).await.unwrap();
        assert_eq!(Employee::find(&table).await.unwrap().age, 37);
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
