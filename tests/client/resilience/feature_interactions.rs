//! Combinations of two features: the guarantees of each feature hold when the other one is used as
//! well.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use harness::{Subject, client_with};
use http::Request;
use tablesdk::action::BulkReport;
use tablesdk::sas::Permissions;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{
    DynamicEntity, ErrorKind, Properties, RetryPolicy, TableClient, TableEntity, Timestamp, Value,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, start};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Clerk")]
struct Clerk {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Guest")]
struct Guest {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    host: Option<String>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Person {
    Clerk(Clerk),
    Guest(Guest),
}

async fn insert<const N: usize>(table: &TableClient, id: &str, properties: [(&str, Value); N]) {
    let entity = DynamicEntity::new("Sales", id);
    let entity = entity.with_properties(properties.into_iter().collect());
    table.insert(&entity).await.unwrap();
}

async fn properties(table: &TableClient, id: &str) -> Properties {
    let entity = table.get::<DynamicEntity>(("Sales", id)).await;
    entity.unwrap().unwrap().properties().clone()
}

/// A clerk with a property that only guests have.
async fn clerk_with_a_host(table: &TableClient) {
    let properties = [
        ("EntityType", Value::from("Clerk")),
        ("name", Value::from("Ada")),
        ("host", Value::from("Grace")),
        ("badge", Value::Int32(7)),
    ];
    insert(table, "1", properties).await;
}

#[tokio::test]
async fn a_tracked_enum_can_become_another_variant() {
    for host in [None, Some("Alan".to_owned())] {
        let subject = Subject::in_process();
        let table = subject.table().await;
        clerk_with_a_host(&table).await;
        let get = table.get::<Person>(("Sales", "1")).tracked().await;
        let mut person = get.unwrap().unwrap();
        *person = Person::Guest(Guest {
            department: "Sales".into(),
            id: "1".into(),
            name: "Ada".into(),
            host: host.clone(),
        });
        table.merge(&mut person).changed_only().await.unwrap();
        let stored = table.get::<Person>(("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(stored, person);
        // A property that neither variant has stays.
        let stored = properties(&table, "1").await;
        assert_eq!(stored.get("badge"), Some(&Value::Int32(7)));
        assert_eq!(stored.get("host").cloned(), host.map(Value::String));
        table.merge(&mut person).changed_only().await.unwrap();
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Porter")]
struct PorterV1 {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    door: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Porter.v2", alias = "Doorman.v2", from = "PorterV1")]
struct Porter {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    last: String,
    door: i32,
}

impl From<PorterV1> for Porter {
    fn from(old: PorterV1) -> Self {
        Self {
            department: old.department,
            id: old.id,
            last: old.name,
            door: old.door,
        }
    }
}

#[tokio::test]
async fn a_tracked_old_version_is_written_as_the_new_one() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let old = PorterV1 {
        department: "Sales".into(),
        id: "1".into(),
        name: "Lovelace".into(),
        door: 1,
    };
    table.insert(&old).await.unwrap();
    let aliased = [
        ("EntityType", Value::from("Doorman.v2")),
        ("last", Value::from("Lovelace")),
        ("door", Value::Int32(1)),
    ];
    insert(&table, "2", aliased).await;
    for id in ["1", "2"] {
        let get = table.get(Porter::key("Sales", id)).tracked().await;
        let mut porter = get.unwrap().unwrap();
        // No field has changed.
        table.merge(&mut porter).changed_only().await.unwrap();
        porter.last = "King".into();
        table.merge(&mut porter).changed_only().await.unwrap();
        let stored = table.get(Porter::key("Sales", id)).await.unwrap().unwrap();
        assert_eq!(stored, porter);
        let stored = properties(&table, id).await;
        let names: Vec<_> = stored.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["EntityType", "door", "last"]);
        porter.door = 2;
        table.merge(&mut porter).changed_only().await.unwrap();
        let stored = table.get(Porter::key("Sales", id)).await.unwrap().unwrap();
        assert_eq!(stored.door, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn changed_only_and_exactly_once_combine() {
    for order in 0..2 {
        let (subject, table, faults) = start().await;
        table.insert(&Employee::ada()).await.unwrap();
        let get = table.get(Employee::key("Sales", "1")).tracked().await;
        let mut ada = get.unwrap().unwrap();
        ada.age = 37;
        faults.next(Op::Batch, Fault::lost_response());
        let journal = subject.server().journal();
        let merge = table.merge(&mut ada);
        let done = match order {
            0 => merge.exactly_once().changed_only().await,
            _ => merge.changed_only().exactly_once().await,
        };
        done.unwrap();
        let sent = journal.requests();
        assert_eq!(
            sent.clone().op(Op::MergeEntity).count(),
            0,
            "a batch brings the marker"
        );
        assert_eq!(sent.op(Op::Batch).count(), 2);
        // Tracking goes on.
        ada.age = 38;
        let get = Employee::find(&table).await;
        assert_eq!(get.unwrap().age, 37);
    }
}

#[tokio::test]
async fn a_failed_closure_of_a_query_that_reads_by_key_is_an_error_of_the_caller() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    table.insert(&Employee::ada()).await.unwrap();
    let query = table.query::<Employee>().partition("Sales");
    let resolved = query
        .filter(|e| e.id.eq("1"))
        .resolve(|_| Err::<(), _>("no".into()));
    let error = resolved.collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Aborted, "{error:?}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "1");
}

#[tokio::test]
async fn a_failed_explain_has_the_error_of_the_query() {
    let subject = Subject::in_process();
    let table = subject.service.table("Tests");
    let query = || table.query::<Employee>().odata("Age gt");
    let explained = format!("{:?}", query().explain().unwrap_err());
    let read = format!("{:?}", query().collect().await.unwrap_err());
    assert_eq!(explained, read);
    assert!(explained.contains("Age gt"), "{explained}");
}

#[tokio::test(start_paused = true)]
async fn parallel_partitions_do_not_time_out_while_consumed() {
    for in_order in [true, false] {
        let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
        for department in ["a", "b", "c"] {
            for id in 0..4 {
                let row = DynamicEntity::new(department, id.to_string());
                table.insert(&row).await.unwrap();
            }
        }
        // The requests of the partitions end in turn.
        let delays = [5, 20, 35].map(|millis| Fault::delay(Duration::from_millis(millis)));
        faults.on_any().inject_each(delays.into_iter().cycle());
        let query = table.query::<DynamicEntity>().page_size(2);
        let query = query.partitions(["a", "b", "c"]);
        let query = if in_order { query.in_order() } else { query };
        let mut items = query.stream();
        let mut count = 0;
        while let Some(_item) = items.try_next().await.unwrap() {
            count += 1;
            // Far longer than a request may take.
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        assert_eq!(count, 12);
    }
}

/// Other uses are in `entities`, `heterogeneous.rs`.
#[tokio::test]
async fn every_use_of_a_typed_query_keeps_its_entity_type() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    for number in 0..6 {
        let type_name = if number < 3 { "Clerk" } else { "Guest" };
        let properties = [("EntityType", type_name.into()), ("name", "Ada".into())];
        insert(&table, &number.to_string(), properties).await;
    }
    let guests = || table.query::<Guest>().partition("Sales");
    let prefetched = guests().take(2).prefetch().collect().await;
    assert_eq!(prefetched.unwrap().len(), 2);
    assert!(!guests().filter(|e| e.id.eq("1")).exists().await.unwrap());
    assert!(guests().filter(|e| e.id.eq("4")).exists().await.unwrap());
    let query = table.query::<Guest>().partitions(["Sales"]);
    assert_eq!(query.collect().await.unwrap().len(), 3);
    let query = guests().row_ranges(["2", "4"]).in_order();
    assert_eq!(query.collect().await.unwrap().len(), 3);
    let page = guests().page_size(1).take(1).page(None).await.unwrap();
    let everybody = table.query::<Person>().partition("Sales").take(1);
    let error = everybody.page(page.next).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let dry = guests().delete_all().dry_run().await.unwrap();
    assert_eq!(dry.progress().read, 3);
    let report = guests().take(2).delete_all().await.unwrap();
    assert_eq!(report.progress().written, 2);
    assert!(guests().delete_all().await.unwrap().is_success());
    let left = table.query::<Person>().collect().await.unwrap();
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|one| matches!(**one, Person::Clerk(_))));
}

/// Counts the requests in flight, which get no response.
#[derive(Debug)]
struct Silent(Arc<()>);

impl Transport for Silent {
    fn send(&self, _: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let _request = Arc::clone(&self.0);
            std::future::pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_operation_sends_no_more_requests() {
    let server = TableServer::in_process();
    let in_flight = Arc::default();
    let transport = Silent(Arc::clone(&in_flight));
    let table = client_with(&server, |builder| builder.transport(transport)).table("Tests");
    let query = || table.query::<Employee>().partitions(["a", "b", "c"]);
    let rows = || (0..300).map(|id| Employee::new(&id.to_string(), "Ada", id));
    let keys = || (0..30).map(|id| Employee::key("Sales", id.to_string()));
    let soon = Duration::from_millis(1);
    for index in 0..4 {
        let started = async {
            match index {
                0 => drop(query().collect().await),
                1 => drop(query().in_order().collect().await),
                2 => drop(table.bulk().insert(stream::iter(rows())).await),
                _ => drop(table.get_many(keys()).await),
            }
        };
        tokio::time::timeout(soon, started).await.unwrap_err();
        // Tasks that were aborted are dropped when they are next looked at.
        tokio::time::sleep(soon).await;
        assert_eq!(Arc::strong_count(&in_flight), 2, "{index}");
    }
}

#[tokio::test]
async fn modify_may_set_a_property_of_no_earlier_variant() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    clerk_with_a_host(&table).await;
    let into_other = |row: &mut Anybody| {
        let mut other = DynamicEntity::new("Sales", "1");
        other.properties_mut().set("badge", 8);
        *row = Anybody::Other(other);
        Ok(())
    };
    let modified = table.modify(("Sales", "1"), into_other).await.unwrap();
    let stored = properties(&table, "1").await;
    assert_eq!(stored.get("badge"), Some(&Value::Int32(8)));
    assert!(matches!(&**modified, Anybody::Other(_)));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
enum Anybody {
    Clerk(Clerk),
    #[table(other)]
    Other(DynamicEntity),
}

/// Programs hold several of them in one future of their own.
#[tokio::test]
async fn futures_are_small_and_send() {
    fn size<F: Future + Send>(future: &F) -> usize {
        size_of_val(future)
    }
    let subject = Subject::in_process();
    let table = subject.table().await;
    let query = || table.query::<Employee>().partition("Sales");
    let rows = || vec![Employee::ada()];
    for (size, what) in [
        (size(&query().collect()), "collect"),
        (size(&query().page(None)), "page"),
        (size(&query().one()), "one"),
        (size(&query().count()), "count"),
        (size(&query().partitions(["a"]).collect()), "partitions"),
        (size(&table.batch("Sales").into_future()), "batch"),
        (
            size(&table.bulk().insert(stream::iter(rows())).into_future()),
            "bulk",
        ),
        (size(&subject.service.tables().page(None)), "tables"),
    ] {
        assert!(size <= 1024, "{what} is {size} bytes large");
    }
}

#[tokio::test]
async fn bulk_with_a_sas_for_some_keys_fails_for_the_others() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let row = |partition: &str| DynamicEntity::new(partition, "1");
    let partitions = ["a", "b", "c", "d"];
    let all = || partitions.map(row);
    let by_signature = |permissions| {
        let sas = table.sas().allow(permissions).partitions("b"..="c");
        let sas = sas.expires_in(Duration::from_secs(3600)).sign().unwrap();
        let builder = sas.builder().transport(subject.server().transport());
        builder.build().unwrap().table("Tests")
    };
    let everything = Permissions::READ | Permissions::ADD | Permissions::UPDATE;
    let bearer = by_signature(everything | Permissions::DELETE);
    let report = bearer
        .bulk()
        .upsert_replace(stream::iter(all()))
        .await
        .unwrap();
    let count = |report: &BulkReport| (report.progress().written, report.failures().len());
    assert_eq!(count(&report), (2, 2));
    let report = table.bulk().upsert_replace(stream::iter(all())).await;
    assert!(report.unwrap().is_success());
    let keys = partitions.map(|partition| (partition, "1"));
    let report = bearer.bulk().delete(stream::iter(keys)).await.unwrap();
    assert_eq!(count(&report), (2, 2));
    for failure in report.failures() {
        assert!(failure.error().is_denied(), "{failure:?}");
    }

    // What it may not do with any key ends the run.
    let reader = by_signature(Permissions::READ);
    for run in [
        reader.bulk().upsert_replace(stream::iter(all())),
        reader.bulk().delete(stream::iter(keys)),
    ] {
        let error = run.concurrency(1).await.unwrap_err();
        assert!(error.error().unwrap().is_denied());
        assert_eq!(error.report().failures().len(), 1);
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
struct Timed {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(timestamp)]
    changed: Option<Timestamp>,
    door: i32,
}

/// The service would ignore it.
#[tokio::test]
async fn a_patch_of_the_timestamp_is_rejected() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let time: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let patch = table.patch(Timed::key("Sales", "1"));
    let patch = patch.set(|e| e.door, 1).set(|e| e.changed, time);
    let error = patch.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(format!("{error:?}").contains("Timestamp"), "{error:?}");
}

#[tokio::test]
async fn the_debug_output_of_a_patch_has_no_values() {
    let subject = Subject::in_process();
    let patch = subject.service.table("Tests");
    let patch = patch.patch(Employee::key("Sales", "1"));
    let shown = format!("{:?}", patch.set(|e| e.name, "Lovelace"));
    assert!(
        shown.contains("Name") && !shown.contains("Lovelace"),
        "{shown}"
    );
}
