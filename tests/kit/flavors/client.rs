//! The client works with each flavor: merges, batches, throttling and errors.

use std::time::Duration;

use harness::{Employee, client, client_with};
use tablesdk::sas::Permissions;
use tablesdk::transport::Backend;
use tablesdk::{DynamicEntity, ETag, ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Flavor, Op, Throttle};
use tokio::time::Instant;

/// A server, and a client of a new table there.
async fn of(flavor: Flavor) -> (TableServer, TableClient) {
    let server = TableServer::builder().flavor(flavor);
    let server = server.in_process().unwrap();
    let table = client(&server).table("People");
    table.create_table().await.unwrap();
    (server, table)
}

/// The verbs that most programs use.
async fn assert_verbs_work(table: &TableClient) {
    let ada = Employee::ada();
    let mut inserted = table.insert(&ada).await.unwrap();
    let found = Employee::find(table).await.unwrap();
    assert_eq!(found.etag(), inserted.etag());
    assert_eq!(found.timestamp(), inserted.timestamp());

    let grace = Employee::grace();
    table.upsert_merge(&grace).await.unwrap();
    table.merge_if(&grace, ETag::ANY).await.unwrap();
    table.upsert_replace(&ada).await.unwrap();
    let conflict = table.replace(&mut inserted).await.unwrap_err();
    let changed = Some(&ErrorCode::UpdateConditionNotSatisfied);
    assert_eq!(conflict.code(), changed);
    let mut found = Employee::find(table).await.unwrap();
    table.replace(&mut found).await.unwrap();
    let key = Employee::key("Sales", "1");
    table.modify(key, Employee::grow_older).await.unwrap();

    let batch = table.batch("Sales").merge_if(&grace, ETag::ANY);
    let batch = batch.insert(&Employee::new("2", "Barbara", 40));
    let batch = batch.upsert_merge(&Employee::new("3", "Jean", 60));
    batch.await.unwrap();
    let repeated = table.batch("Sales").delete(Employee::key("Sales", "2"));
    let repeated = repeated.insert(&ada).await.unwrap_err();
    assert_eq!(repeated.code(), Some(&ErrorCode::EntityAlreadyExists));

    let all = table.query::<Employee>().partition("Sales");
    assert_eq!(all.collect().await.unwrap().len(), 3);
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 3);
    table.delete(Employee::key("Sales", "3")).await.unwrap();
    assert!(table.table_exists().await.unwrap());
    table.delete_table().await.unwrap();
    assert!(!table.table_exists().await.unwrap());
}

#[tokio::test]
async fn verbs_work_on_each_flavor() {
    for flavor in [Flavor::Storage, Flavor::CosmosDb, Flavor::Azurite] {
        let (_server, table) = of(flavor).await;
        assert_verbs_work(&table).await;
    }
}

#[tokio::test]
async fn a_client_of_storage_cannot_merge_on_cosmos_db() {
    let (server, table) = of(Flavor::CosmosDb).await;
    table.insert(&Employee::ada()).await.unwrap();
    let service = client_with(&server, |builder| builder.backend(Backend::Storage));
    let merge = service
        .table("People")
        .merge_if(&Employee::ada(), ETag::ANY);
    let error = merge.await.unwrap_err();
    let status = error.status().map(|status| status.as_u16());
    assert_eq!(status, Some(400), "{error:?}");
    let advice = "`backend(Backend::Cosmos)`";
    assert!(error.to_string().contains(advice), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_client_waits_as_long_as_cosmos_db_asks() {
    let (server, table) = of(Flavor::CosmosDb).await;
    table.insert(&Employee::ada()).await.unwrap();
    let journal = server.journal();
    server.faults().throttle(Throttle::none().per_partition(1));
    let began = Instant::now();
    for _ in 0..4 {
        assert!(Employee::find(&table).await.is_some());
    }
    // One at once, and one each second.
    let reads = journal.requests().op(Op::QueryEntity);
    assert_eq!(reads.error_code(&ErrorCode::TooManyRequests).count(), 3);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn errors_of_cosmos_db_have_codes_and_messages() {
    let (server, table) = of(Flavor::CosmosDb).await;
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let missing = service.table("Missing").insert(&Employee::ada());
    let missing = missing.await.unwrap_err();
    assert_eq!(missing.code(), Some(&ErrorCode::ResourceNotFound));
    let text = missing.to_string();
    assert!(
        text.contains("The specified resource does not exist."),
        "{text}"
    );
    assert!(!text.contains("RequestID"), "{text}");

    table.insert(&Employee::ada()).await.unwrap();
    let repeated = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(repeated.code(), Some(&ErrorCode::EntityAlreadyExists));

    server.faults().throttle(Throttle::none().per_account(0));
    let throttled = service.table("People").get::<Employee>(("Sales", "1"));
    let throttled = throttled.await.unwrap_err();
    assert!(throttled.is_throttled(), "{throttled}");
    assert_eq!(throttled.kind(), ErrorKind::Service);
    server.faults().clear();

    let properties = service.properties().await.unwrap_err();
    assert_eq!(properties.code(), Some(&ErrorCode::NotImplemented));
    let text = properties.to_string();
    assert!(text.contains("has no service properties"), "{text}");
}

/// Six entities of 450 KB are more than a batch of Cosmos DB may have.
#[tokio::test]
async fn a_batch_for_cosmos_db_has_at_most_2_mib() {
    let (server, table) = of(Flavor::CosmosDb).await;
    let text = "x".repeat(32 * 1024);
    let large = |row: &str| {
        (0..14).fold(DynamicEntity::new("p", row), |entity, index| {
            entity.with(format!("P{index}"), text.as_str())
        })
    };
    let rows = ["1", "2", "3", "4", "5", "6"];
    let batch = table.batch("p");
    let batch = rows
        .iter()
        .fold(batch, |batch, row| batch.insert(&large(row)));
    let error = batch.await.unwrap_err();
    assert!(error.to_string().contains("larger than 2097152"), "{error}");

    let journal = server.journal();
    let entities = futures::stream::iter(rows.map(large));
    let report = table.bulk().insert(entities).await.unwrap();
    assert!(report.is_success(), "{report:?}");
    let refused = journal
        .requests()
        .error_code(&ErrorCode::RequestBodyTooLarge);
    assert_eq!(refused.count(), 0);
}

#[tokio::test]
async fn what_cosmos_db_does_not_have_is_said_before_a_request() {
    let (server, table) = of(Flavor::CosmosDb).await;
    let journal = server.journal();
    let sas = table.sas().allow(Permissions::READ).partition("Sales");
    let error = sas.expires_in(Duration::from_secs(60)).sign().unwrap_err();
    assert!(error.to_string().contains("a range of keys"), "{error}");
    let scan = table.query::<Employee>().explain().unwrap();
    assert!(!scan.is_ordered());
    let order = "order: none between partitions";
    assert!(scan.to_string().contains(order), "{scan}");
    let partition = table.query::<Employee>().partition("Sales");
    assert!(partition.explain().unwrap().is_ordered());
    let (_server, table) = of(Flavor::Storage).await;
    assert!(table.query::<Employee>().explain().unwrap().is_ordered());
    assert_eq!(journal.requests().count(), 0);
}

/// An ETag has seven digits, and one without the zeros at its end is the same condition.
#[tokio::test]
async fn an_etag_is_an_instant() {
    let (server, table) = of(Flavor::CosmosDb).await;
    server.clock().freeze();
    server.clock().set("2099-03-15T10:20:30Z".parse().unwrap());
    let inserted = table.insert(&Employee::ada()).await.unwrap();
    let etag = inserted.etag().as_str();
    assert_eq!(etag, "W/\"datetime'2099-03-15T10%3A20%3A30.0000000Z'\"");
    let etag = etag.replace("30.0000000Z", "30Z").parse().unwrap();
    let mut ada = tablesdk::Stored::from_parts(Employee::ada(), etag).unwrap();
    table.replace(&mut ada).await.unwrap();
}
