//! Leases, sequences and counters.

use std::time::Duration;

use futures::future::try_join_all;
use tablesdk::DynamicEntity;
use tablesdk::counter::Counter;
use tablesdk::lease::Lease;
use tablesdk::sequence::Sequence;

use super::Costs;

pub(super) fn run(costs: &mut Costs) {
    leases(costs);
    sequences(costs);
    counters(costs);
}

fn leases(costs: &mut Costs) {
    let table = costs.table("Locks");
    let acquire = || Lease::acquire(&table, ("payroll", "lock"), Duration::from_secs(60));
    let before = costs.run(acquire()).unwrap().unwrap();
    costs.run(before.release()).unwrap();
    costs.task("Leases", "one of several clients does something");
    let lease = costs.way("`acquire` a free lease", acquire()).unwrap();
    let mut lease = lease.expect("it is free");
    costs.way("`renew`", lease.renew()).unwrap();
    let run = DynamicEntity::new("payroll", "run");
    let fenced = lease.fence(table.batch("payroll")).insert(&run);
    costs.way("an insert with `fence`", fenced).unwrap();
    costs.way("`release`", lease.release()).unwrap();
    let naive = async {
        let lock = DynamicEntity::new("payroll", "naive");
        table.insert(&lock).await.unwrap();
        table.delete(("payroll", "naive")).await.unwrap();
    };
    let way = "naive: insert and delete an entity, which a stopped client leaves";
    costs.way(way, naive);
}

fn sequences(costs: &mut Costs) {
    let table = costs.table("Numbers");
    let sequence = |name, block| Sequence::new(&table, ("numbers", name)).block(block);
    for name in ["claims", "naive"] {
        assert_eq!(costs.run(sequence(name, 1).next()).unwrap(), 1);
    }
    costs.task("Sequences", "100 unique numbers");
    let hundred = async |sequence: Sequence| {
        for _ in 0..100 {
            sequence.next().await.unwrap();
        }
    };
    let blocks = hundred(sequence("claims", 100));
    costs.way("`Sequence` with `block(100)`", blocks);
    let single = hundred(sequence("naive", 1));
    costs.way("naive: `modify` for each number", single);
}

fn counters(costs: &mut Costs) {
    let table = costs.table("Views");
    let counter = Counter::new(&table, ("home", "views"));
    costs.run(counter.add(1)).unwrap();
    costs.task("Counters", "add 100 times");
    let concurrent = try_join_all((0..100).map(|_| counter.add(1)));
    let way = "`Counter`, concurrent calls";
    costs.way(way, concurrent).unwrap();
    let sequential = async {
        for _ in 0..100 {
            counter.add(1).await.unwrap();
        }
    };
    costs.way("`Counter`, one after the other", sequential);
    costs.insert(
        &table,
        [DynamicEntity::new("home", "page").with("Views", 0_i64)],
    );
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
    costs.way("`modify` with `exactly_once`", once);
    let naive = async {
        for _ in 0..100 {
            modify().await.unwrap();
        }
    };
    let way = "naive: `modify`, which counts a lost response twice or not at all";
    costs.way(way, naive);
    costs.task("Counters", "read the number");
    let value = costs.way("`Counter::value`, of one shard", counter.value());
    assert_eq!(value.unwrap(), 201);
}
