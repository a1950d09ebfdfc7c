//! How often the client allocates for an operation, beside a program that does the same with reqwest and `serde_json` by hand.
//!
//! Both run on the thread of the test and ask a server of fixed bytes on another thread.

use std::hint::black_box;

use tablesdk::{DynamicEntity, TableServiceClient};
use tokio::runtime::{Builder, Runtime};

use crate::entity::Employee;
use crate::fixed::{self, ACCOUNT, KEY, PAGE, Responses};
use crate::floor::Floor;

/// How often an operation allocates, after the connection is there.
fn count<T>(runtime: &Runtime, times: u64, mut operation: impl AsyncFnMut() -> T) -> u64 {
    let mut run = |times| {
        let counted = allocation_counter::measure(|| {
            runtime.block_on(async {
                for _ in 0..times {
                    black_box(operation().await);
                }
            });
        });
        counted.count_total
    };
    run(2);
    let (fewer, more) = (run(times), run(2 * times));
    // Rounded, because some structures grow now and then.
    (more - fewer + times / 2) / times
}

#[test]
fn the_client_allocates_hardly_more_than_requests_by_hand() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let responses = runtime.block_on(Responses::record()).unwrap();
    let origin = format!("http://{}", fixed::start(responses).unwrap());
    let service = TableServiceClient::from_connection_string(&format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={origin}/{ACCOUNT}"
    ));
    let table = service.unwrap().table("people");
    let floor = Floor::new(&origin).unwrap();
    let employees: Vec<_> = (0..100).map(Employee::new).collect();
    let row = "0000000007";

    let ours = count(&runtime, 50, async || {
        table
            .get::<Employee>(("sales", row))
            .await
            .unwrap()
            .unwrap()
    });
    let by_hand = count(&runtime, 50, async || floor.point_read(row).await.unwrap());
    println!("point read: {ours} allocations, {by_hand} by hand");
    assert!(
        ours * 100 <= by_hand * POINT_READ_PERCENT,
        "{ours} {by_hand}"
    );

    let ours = count(&runtime, 50, async || {
        table.insert(&employees[0]).await.unwrap()
    });
    let by_hand = count(&runtime, 50, async || {
        floor.insert(&employees[0]).await.unwrap()
    });
    println!("insert: {ours} allocations, {by_hand} by hand");
    assert!(ours * 100 <= by_hand * INSERT_PERCENT, "{ours} {by_hand}");

    let entities = u64::from(PAGE);
    let ours = count(&runtime, 4, async || {
        let page = table.query::<Employee>().partition("sales").page(None);
        assert_eq!(page.await.unwrap().items.len(), PAGE as usize);
    });
    let dynamic = count(&runtime, 4, async || {
        let page = table
            .query::<DynamicEntity>()
            .filter(|e| e.property("PartitionKey").eq("sales"));
        assert_eq!(page.page(None).await.unwrap().items.len(), PAGE as usize);
    });
    let by_hand = count(&runtime, 4, async || floor.page().await.unwrap());
    println!("page: {ours} allocations, {dynamic} without a struct, {by_hand} by hand");
    // The key that an entity is stored under.
    assert!(
        ours <= by_hand + 2 * entities + PAGE_EXTRA,
        "{ours} {by_hand}"
    );
    // The name of each property, and the list of them.
    assert!(
        dynamic <= by_hand + 13 * entities + PAGE_EXTRA,
        "{dynamic} {by_hand}"
    );

    let ours = count(&runtime, 10, async || {
        fixed::insert_all(&table, &employees).await.unwrap()
    });
    let by_hand = count(&runtime, 10, async || {
        floor.batch(&employees).await.unwrap()
    });
    println!("batch of 100: {ours} allocations, {by_hand} by hand");
    assert!(ours <= by_hand + BATCH_EXTRA, "{ours} {by_hand}");
}

const POINT_READ_PERCENT: u64 = 120;
const INSERT_PERCENT: u64 = 120;
const PAGE_EXTRA: u64 = 100;
const BATCH_EXTRA: u64 = 900;
