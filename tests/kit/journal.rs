//! The journal: what it knows of each request.

use std::time::Duration;

use harness::client_with;
use tablesdk::transport::Clock as _;
use tablesdk::{
    DynamicEntity, ErrorCode, RetryPolicy, SharedKey, TableEntity, TableServiceClientBuilder,
    Timestamp,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{AccessClass, Cost, Fault, LintKind, Op, RecordedRequest};

use crate::{Employee, Subject, eager, over_http_and_in_process};

over_http_and_in_process! {
    async fn requests_are_recorded_with_their_meaning(subject: Subject) {
        let journal = subject.server.journal();
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        table.insert(&Employee::ada()).await.unwrap_err();
        let batch = table.batch("Sales").insert(&Employee::new("2", "Grace", 50));
        batch.upsert_merge(&Employee::ada()).await.unwrap();
        table.get::<Employee>(Employee::key("Sales", "1")).await.unwrap();
        let query = table.query::<Employee>().filter(|e| e.age.gt(40)).take(7);
        query.collect().await.unwrap();
        table.batch("Sales").insert(&Employee::ada()).await.unwrap_err();

        let requests = journal.requests();
        let ops: Vec<_> = requests.iter().map(|request| request.op.unwrap().to_string()).collect();
        let expected = "CreateTable InsertEntity InsertEntity Batch QueryEntity QueryEntities Batch";
        assert_eq!(ops.join(" "), expected);
        assert!(requests.iter().all(|request| request.table.as_deref() == Some("People")));
        let refused = requests.clone().error_code(&ErrorCode::EntityAlreadyExists);
        let statuses: Vec<_> = refused.iter().map(|request| request.status).collect();
        assert_eq!(statuses, [Some(409), Some(202)]);
        let batch = &requests[3];
        let changes: Vec<_> = batch.entities.iter().map(|entity| entity.op).collect();
        assert_eq!(changes, [Op::InsertEntity, Op::InsertOrMergeEntity]);
        assert_eq!(batch.partition_key.as_deref(), Some("Sales"));
        assert_eq!(batch.entities[0].key.row_key().as_str(), "2");
        assert_eq!(requests[4].access(), Some(AccessClass::Point));
        let query = requests[5].query.as_ref().unwrap();
        assert_eq!(query.filter.as_deref(), Some("Age gt 40"));
        assert_eq!(query.access, AccessClass::Scan);
        assert_eq!((requests[5].entities_returned, requests[5].entities_examined), (1, 2));
        assert!(requests[5].bytes_out > 100 && requests[3].bytes_in > 100);
        assert!(requests.to_string().contains("QueryEntities People, scan (Age gt 40): 200, 1 of 2"));
    }

    async fn retries_are_counted_by_their_id(subject: Subject) {
        let table = subject.table(eager()).await;
        let journal = subject.server.journal();
        let faults = subject.server.faults();
        faults.on(Op::InsertOrReplaceEntity).times(2).inject(Fault::error(ErrorCode::ServerBusy));
        table.upsert_replace(&Employee::ada()).await.unwrap();
        table.upsert_replace(&Employee::ada()).await.unwrap();
        let upserts = journal.requests().op(Op::InsertOrReplaceEntity);
        let attempts: Vec<_> = upserts.iter().map(|request| request.attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 1]);
        assert_eq!(journal.requests().retries().count(), 2);
        assert_eq!(upserts.status(503).count(), 2);
    }

    async fn a_journal_ends_when_it_is_dropped(subject: Subject) {
        let first = subject.server.journal();
        let table = subject.table(RetryPolicy::none()).await;
        let second = subject.server.journal();
        table.insert(&Employee::ada()).await.unwrap();
        assert_eq!((first.requests().count(), second.requests().count()), (2, 1));
        first.clear();
        drop(second);
        table.insert(&Employee::ada()).await.unwrap_err();
        assert_eq!(first.requests().count(), 1);
    }

    async fn queries_by_key_are_no_scans(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let journal = subject.server.journal();
        table.query::<Employee>().partition("Sales").collect().await.unwrap();
        journal.assert_no_scans();
        assert_eq!(journal.requests().access(AccessClass::Partition).count(), 1);
    }

    async fn the_cost_counts_each_request_in_its_class(subject: Subject) {
        let journal = subject.server.journal();
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        table.insert(&Employee::ada()).await.unwrap_err();
        let batch = table.batch("Sales").insert(&Employee::new("2", "Grace", 50));
        batch.insert(&Employee::new("3", "Alan", 40)).await.unwrap();
        table.get::<Employee>(Employee::key("Sales", "1")).await.unwrap();
        assert!(table.get::<Employee>(Employee::key("Sales", "9")).await.unwrap().is_none());
        let pages = table.query::<Employee>().partition("Sales").page_size(1);
        assert_eq!(pages.collect().await.unwrap().len(), 3);
        table.delete(Employee::key("Sales", "1")).await.unwrap();
        assert!(table.table_exists().await.unwrap());
        let throttled = subject.server.faults().on(Op::InsertEntity);
        throttled.times(1).inject(Fault::error(ErrorCode::ServerBusy));
        table.insert(&Employee::ada()).await.unwrap_err();
        let lost = subject.server.faults().on(Op::InsertEntity);
        lost.times(1).inject(Fault::reset());
        table.insert(&Employee::ada()).await.unwrap_err();

        let requests = journal.requests();
        let cost = requests.cost();
        // The table is a write, too, and the insert that was refused.
        assert_eq!((cost.writes, cost.batches, cost.deletes), (3, 1, 1), "{requests}");
        // A key that is not there is a read, and the end of a query that was not known before.
        assert_eq!((cost.queries, cost.lists, cost.unbilled), (3, 0, 2), "{requests}");
        assert_eq!(cost.reads, 3, "{requests}");
        assert_eq!(cost.transactions() + cost.unbilled, requests.count() as u64);
        let sum = |bytes: fn(&RecordedRequest) -> usize| requests.iter().map(bytes).sum::<usize>();
        assert_eq!(cost.bytes_in, sum(|it| it.bytes_in) as u64);
        assert_eq!(cost.bytes_out, sum(|it| it.bytes_out) as u64);
        let by_request = requests.iter().map(|it| requests.clone().filter(|one| one == it).cost());
        assert_eq!(by_request.sum::<Cost>(), cost);
        let shown = cost.to_string();
        assert!(shown.contains("transactions           11\n"), "{shown}");
        assert_eq!(shown.lines().count(), 10);
    }
}

#[derive(Debug, TableEntity)]
#[table(partition_key = "{user}", row_key = "{id:06}")]
struct Session {
    user: String,
    id: u32,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

/// A program that must not scan, and removes what has expired.
#[tokio::test]
async fn a_removal_of_expired_entities_by_buckets_is_no_scan() {
    let server = TableServer::in_process();
    let service = client_with(&server, TableServiceClientBuilder::deny_scans);
    let table = service.table("Sessions");
    table.create_table().await.unwrap();
    let journal = server.journal();
    let now = server.clock().now();
    for id in 0..3 {
        let user = "ann".to_owned();
        let until = now.saturating_add(Duration::from_secs(60));
        table.insert(&Session { user, id, until }).await.unwrap();
    }
    server.clock().advance(Duration::from_secs(3600));
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!(report.removed, 3);
    journal.assert_no_scans();
    let lints = journal.lints();
    assert!(lints.iter().all(|lint| lint.kind != LintKind::Scan));
    // The requests are recorded as what the server does.
    assert_eq!(journal.requests().access(AccessClass::Scan).count(), 1);
}

/// A range that ends outside of the client's own partitions reads the program's.
#[tokio::test]
async fn a_range_of_partitions_is_a_scan() {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::none()).await;
    let journal = subject.server.journal();
    for filter in [
        "PartitionKey ge '~tablesdk.' and PartitionKey lt '~u'",
        "PartitionKey ge 'a' and PartitionKey lt '~tablesdk.expiry.'",
        "PartitionKey ge '~tablesdk.expiry.'",
        "PartitionKey lt '~tablesdk.z' or PartitionKey ge '~tablesdk.a'",
    ] {
        let query = table.query::<DynamicEntity>().odata(filter);
        query.collect().await.unwrap();
    }
    assert_eq!(journal.lints()[0].requests, 4);
}

#[tokio::test]
#[should_panic(expected = "QueryEntities People, scan (no filter): 200, 0 of 0 entities")]
async fn a_scan_is_reported() {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::none()).await;
    let journal = subject.server.journal();
    table.query::<DynamicEntity>().collect().await.unwrap();
    journal.assert_no_scans();
}

#[tokio::test]
async fn a_refused_credential_is_recorded() {
    let server = TableServer::in_process();
    let journal = server.journal();
    let wrong = SharedKey::new("devstoreaccount1", "c2VjcmV0").unwrap();
    let builder = TableServiceClientBuilder::in_process(&server).credential(wrong);
    let service = builder.build().unwrap();
    service.tables().collect().await.unwrap_err();
    let requests = journal.requests();
    assert_eq!((requests[0].op, requests[0].status), (None, Some(403)));
}
