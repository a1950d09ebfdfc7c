//! Tracked entities: a merge sends only the changed properties, and never loses what other clients
//! wrote.

use harness::Subject;
use tablesdk::{ErrorKind, Properties, RetryPolicy, TableEntity};
use tablesdk_server::testing::Op;

use crate::{Employee, on_both_transports};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Narrow {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    age: i32,
    email: Option<String>,
}

#[tokio::test]
async fn only_changed_properties_are_sent() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let employee = Employee {
        email: Some("a@b".into()),
        ..Employee::ada()
    };
    table.insert(&employee).await.unwrap();
    let mut taken = 0;
    let mut take = || {
        let sent = proxy.sent().split_off(taken);
        taken += sent.len();
        sent
    };
    let narrow = table.get(Narrow::key("Sales", "1")).tracked();
    let mut narrow = narrow.await.unwrap().unwrap();

    take();
    let read = narrow.etag().clone();
    let etag = table.merge(&mut narrow).changed_only().await.unwrap();
    assert!(take().is_empty(), "nothing differs");
    assert_eq!((&etag, narrow.etag()), (&read, &read));

    narrow.age = 37;
    let etag = table.merge(&mut narrow).changed_only().await.unwrap();
    assert_eq!(narrow.etag(), &etag);
    assert_ne!(etag, read);
    let keys = r#""PartitionKey":"Sales","RowKey":"1""#;
    let sent = take();
    assert_eq!((sent.len(), sent[0].op), (1, Op::MergeEntity));
    assert_eq!(sent[0].body, format!(r#"{{{keys},"Age":37}}"#));

    // Tracking goes on from what was written; what became `None` goes, and what the struct does not
    // have stays.
    table.merge(&mut narrow).changed_only().await.unwrap();
    assert!(take().is_empty());
    (narrow.age, narrow.email) = (38, None);
    let merge = table.merge(&mut narrow).changed_only();
    merge.changed_only().await.unwrap();
    let sent = take();
    assert_eq!((sent.len(), sent[0].op), (1, Op::UpdateEntity));
    assert_eq!(sent[0].body, format!(r#"{{{keys},"Age":38,"Name":"Ada"}}"#));
    let stored = Employee::find(&table).await.unwrap();
    assert_eq!(*stored, Employee::new("1", "Ada", 38));
    assert_eq!(stored.etag(), narrow.etag());

    take();
    narrow.email = Some("new@b".into());
    table.merge(&mut narrow).changed_only().await.unwrap();
    assert_eq!(take()[0].body, format!(r#"{{{keys},"Email":"new@b"}}"#));
}

on_both_transports! {
    async fn another_clients_write_is_detected(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let key = || Employee::key("Sales", "1");
        let mut mine = table.get(key()).tracked().await.unwrap().unwrap();
        table.patch(key()).set(|e| e.name, "Other").await.unwrap();
        mine.age = 37;
        let error = table.merge(&mut mine).changed_only().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
        // The value is still tracked: it is compared with what it was read as.
        let fresh = table.get(key()).tracked().await.unwrap().unwrap();
        assert_eq!(fresh, table.get(key()).await.unwrap().unwrap(), "tracking is no part of the value");
        assert!(table.get(Employee::key("Sales", "2")).tracked().await.unwrap().is_none());
        let missing = subject.service.table("Missing");
        assert!(missing.get(key()).tracked().await.unwrap_err().is_table_not_found());
        assert_eq!(missing.get::<Employee>(("a/b", "1")).tracked().await.unwrap_err().kind(), ErrorKind::Input);
    }

    async fn a_property_of_the_rest_can_be_removed(subject: Subject) {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(rename_all = "PascalCase")]
        struct Open {
            #[table(partition_key)]
            department: String,
            #[table(row_key)]
            id: String,
            #[table(rest)]
            rest: Properties,
        }

        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let mut open = table.get(Open::key("Sales", "1")).tracked().await.unwrap().unwrap();
        open.rest.remove("Age");
        open.rest.set("Name", "Grace");
        table.merge(&mut open).changed_only().await.unwrap();
        let stored = table.get(Open::key("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(stored, open);
        assert_eq!(stored.rest.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["Name"]);
    }
}

#[tokio::test]
async fn an_untracked_entity_is_rejected() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let key = || Employee::key("Sales", "1");
    let mut plain = table.get(key()).await.unwrap().unwrap();
    let mut written = table.get(key()).tracked().await.unwrap().unwrap();
    table.replace(&mut written).await.unwrap();
    let mut moved = table.get(key()).tracked().await.unwrap().unwrap();
    let mut replaced = moved.clone();
    moved.id = "2".into();
    let journal = subject.server().journal();
    let read_it = "read the entity with `get(…).tracked()`";
    let replace = table.replace(&mut replaced).changed_only();
    for (changed, words) in [
        (table.merge(&mut plain).changed_only(), read_it),
        (table.merge(&mut written).changed_only(), read_it),
        (replace, "a replace writes everything"),
        (
            table.merge(&mut moved).changed_only(),
            "the row key changed",
        ),
    ] {
        let error = changed.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(format!("{error:?}").contains(words), "{error:?}");
        assert!(error.key().is_some());
    }
    assert!(journal.requests().is_empty());
    let shown = format!("{replaced:?}");
    assert!(shown.contains("tracked: true"), "{shown}");
}
