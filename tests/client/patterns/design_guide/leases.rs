//! Leases, sequences and counters.

use std::time::Duration;

use futures::future::try_join_all;
use tablesdk::DynamicEntity;
use tablesdk::counter::Counter;
use tablesdk::lease::Lease;
use tablesdk::sequence::Sequence;

use super::Costs;

pub(super) async fn run(costs: &mut Costs) {
    leases(costs).await;
    sequences(costs).await;
    counters(costs).await;
}

async fn leases(costs: &mut Costs) {
    let table = costs.table("Locks").await;
    let acquire = || Lease::acquire(&table, ("payroll", "lock"), Duration::from_secs(60));
    drop(acquire().await.unwrap().unwrap().release().await);
    costs.task("Leases", "one of several clients does something");
    let mut lease = None;
    let acquired = async { lease = acquire().await.unwrap() };
    costs.way("`acquire` a free lease", acquired).await;
    let mut lease = lease.expect("it is free");
    let renewed = async { lease.renew().await.unwrap() };
    costs.way("`renew`", renewed).await;
    let run = DynamicEntity::new("payroll", "run");
    let fenced = async {
        let batch = lease.fence(table.batch("payroll")).insert(&run);
        drop(batch.await.unwrap());
    };
    costs.way("an insert with `fence`", fenced).await;
    let released = async { lease.release().await.unwrap() };
    costs.way("`release`", released).await;
    let naive = async {
        let lock = DynamicEntity::new("payroll", "naive");
        table.insert(&lock).await.unwrap();
        table.delete(("payroll", "naive")).await.unwrap();
    };
    let way = "naive: insert and delete an entity, which a stopped client leaves";
    costs.way(way, naive).await;
}

async fn sequences(costs: &mut Costs) {
    let table = costs.table("Numbers").await;
    let sequence = |name, block| Sequence::new(&table, ("numbers", name)).block(block);
    for name in ["claims", "naive"] {
        assert_eq!(sequence(name, 1).next().await.unwrap(), 1);
    }
    costs.task("Sequences", "100 unique numbers");
    let hundred = async |sequence: Sequence| {
        for _ in 0..100 {
            sequence.next().await.unwrap();
        }
    };
    let blocks = hundred(sequence("claims", 100));
    costs.way("`Sequence` with `block(100)`", blocks).await;
    let single = hundred(sequence("naive", 1));
    costs.way("naive: `modify` for each number", single).await;
}

async fn counters(costs: &mut Costs) {
    let table = costs.table("Views").await;
    let counter = Counter::new(&table, ("home", "views"));
    counter.add(1).await.unwrap();
    costs.task("Counters", "add 100 times");
    let concurrent = async {
        try_join_all((0..100).map(|_| counter.add(1)))
            .await
            .unwrap();
    };
    costs.way("`Counter`, concurrent calls", concurrent).await;
    let sequential = async {
        for _ in 0..100 {
            counter.add(1).await.unwrap();
        }
    };
    costs
        .way("`Counter`, one after the other", sequential)
        .await;
    let page = DynamicEntity::new("home", "page").with("Views", 0_i64);
    table.insert(&page).await.unwrap();
    let modify = || {
        table.modify(("home", "page"), |page: &mut DynamicEntity| {
            let views: i64 = page.properties().read("Views")?;
            page.properties_mut().set("Views", views + 1);
            Ok(())
        })
    };
    let once = async {
        for _ in 0..100 {
            modify().exactly_once().await.unwrap();
        }
    };
    costs.way("`modify` with `exactly_once`", once).await;
    let naive = async {
        for _ in 0..100 {
            modify().await.unwrap();
        }
    };
    let way = "naive: `modify`, which counts a lost response twice or not at all";
    costs.way(way, naive).await;
    costs.task("Counters", "read the number");
    let value = async { assert_eq!(counter.value().await.unwrap(), 201) };
    costs.way("`Counter::value`, of one shard", value).await;
}
