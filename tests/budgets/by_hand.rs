//! How often the client allocates for an operation, beside a program that does the same with
//! reqwest and `serde_json` by hand.
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
        let read = table.get::<Employee>(("sales", row)).await;
        read.unwrap().unwrap()
    });
    let by_hand = count(&runtime, 50, async || floor.point_read(row).await.unwrap());
    assert_near(
        "point read",
        ours,
        by_hand,
        by_hand * POINT_READ_PERCENT / 100,
    );

    let new = &employees[0];
    let ours = count(&runtime, 50, async || table.insert(new).await.unwrap());
    let by_hand = count(&runtime, 50, async || floor.insert(new).await.unwrap());
    assert_near("insert", ours, by_hand, by_hand * INSERT_PERCENT / 100);

    let entities = u64::from(PAGE);
    let ours = count(&runtime, 4, async || {
        let page = table.query::<Employee>().partition("sales").page(None);
        assert_eq!(page.await.unwrap().items.len(), PAGE as usize);
    });
    let dynamic = count(&runtime, 4, async || {
        let page = table.query::<DynamicEntity>();
        let page = page.filter(|e| e.property("PartitionKey").eq("sales"));
        assert_eq!(page.page(None).await.unwrap().items.len(), PAGE as usize);
    });
    let by_hand = count(&runtime, 4, async || floor.page().await.unwrap());
    // The key that an entity is stored under.
    let most = by_hand + 2 * entities + PAGE_EXTRA;
    assert_near("page", ours, by_hand, most);
    // The name of each property, and the list of them.
    let most = by_hand + 13 * entities + PAGE_EXTRA;
    assert_near("page without a struct", dynamic, by_hand, most);

    let ours = count(&runtime, 10, async || {
        fixed::insert_all(&table, &employees).await.unwrap()
    });
    let by_hand = count(&runtime, 10, async || {
        floor.batch(&employees).await.unwrap()
    });
    assert_near("batch of 100", ours, by_hand, by_hand + BATCH_EXTRA);
}

fn assert_near(operation: &str, ours: u64, by_hand: u64, most: u64) {
    println!("{operation}: {ours} allocations, {by_hand} by hand");
    assert!(
        ours <= most,
        "{operation}: {ours}, {by_hand} by hand, at most {most}"
    );
}

const POINT_READ_PERCENT: u64 = 95;
const INSERT_PERCENT: u64 = 90;
const PAGE_EXTRA: u64 = 100;
const BATCH_EXTRA: u64 = 360;
