//! Changes in several partitions and tables.

use serde::{Deserialize, Serialize};
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{DynamicEntity, TableClient, TableEntity};

use super::Costs;

#[derive(Serialize, Deserialize)]
struct Renamed {
    department: u32,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

const SECTION: &str = "Eventually consistent transactions";

pub(super) fn run(costs: &mut Costs) {
    steps(costs);
    messages(costs);
    archive(costs);
}

fn department(id: u32) -> DynamicEntity {
    DynamicEntity::new("Sales", format!("{id:06}")).with("Title", "Sales and service")
}

fn title(id: u32) -> DynamicEntity {
    DynamicEntity::new(format!("{id:06}"), "title").with("Title", "Sales and service")
}

fn steps(costs: &mut Costs) {
    let (table, titles) = (costs.table("Divisions"), costs.table("Titles"));
    costs.task(SECTION, "an entity, and one in another table");
    let batch = |id| {
        let batch = table.batch("Sales").insert(&department(id));
        batch.step(Step::upsert_replace(&titles, &title(id)))
    };
    costs.way("`batch` with `step`", batch(1)).unwrap();
    let way = "`batch` with `step` and `leave_steps`";
    costs.way(way, batch(2).leave_steps()).unwrap();
    let drain = Outbox::new(&table).drain().partition("Sales");
    let worker = costs.way("and a worker, of that partition: `drain`", drain);
    assert_eq!(worker.unwrap().applied, 1);
    let way = "a worker that finds nothing, of all partitions: `drain`";
    let idle = costs.way(way, Outbox::new(&table).drain());
    assert_eq!(idle.unwrap().applied, 0);
    let by_hand = async {
        table.insert(&department(3)).await.unwrap();
        titles.upsert_replace(&title(3)).await.unwrap();
    };
    let way = "naive: one after the other, of which one may be lost";
    costs.way(way, by_hand);
}

fn messages(costs: &mut Costs) {
    let table = costs.table("Notified");
    costs.task(SECTION, "an entity, and a message that a worker handles");
    let message = async {
        let batch = table.batch("Sales").insert(&department(1));
        let message = Step::message(&Renamed { department: 1 });
        batch.step(message).leave_steps().await.unwrap();
        let outbox = Outbox::new(&table).on(async |renamed: Received<Renamed>| {
            assert_eq!(renamed.department, 1);
            Ok(())
        });
        assert_eq!(outbox.drain().partition("Sales").await.unwrap().applied, 1);
    };
    let way = "`step` and `leave_steps`, and `drain` of that partition";
    costs.way(way, message);
}

/// Moves employees to other keys, within their partition and to another one.
fn move_key(costs: &mut Costs) {
    let table = costs.table("Moved");
    let ways = [
        ("within a partition", "Sales", "000001"),
        ("between two", "Legal", "000001"),
    ];
    for (way, department, id) in ways {
        costs.task(
            SECTION,
            &format!("move an employee who was read to another key, {way}"),
        );
        let mut read = costs.run(table.insert(&moved("Sales", "000000"))).unwrap();
        (read.department, read.id) = (department.to_owned(), id.to_owned());
        costs.way("`move_key`", table.move_key(&mut read)).unwrap();
        let read = costs.run(table.insert(&moved("Sales", "000002"))).unwrap();
        let by_hand = async {
            table.insert(&moved(department, "000003")).await.unwrap();
            assert!(table.delete_stored(&read).await.unwrap());
        };
        costs.way("naive: `insert` and `delete_stored`", by_hand);
    }
}

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "{id}",
    rename_all = "PascalCase"
)]
struct Moved {
    department: String,
    id: String,
    last_name: String,
}

fn moved(department: &str, id: &str) -> Moved {
    Moved {
        department: department.to_owned(),
        id: id.to_owned(),
        last_name: "Jones".to_owned(),
    }
}

/// So many employees, from that id on.
pub(super) fn employees(first: u32, count: u32) -> impl Iterator<Item = DynamicEntity> {
    (first..first + count)
        .map(|id| DynamicEntity::new("Sales", format!("{id:06}")).with("LastName", "Jones"))
}

/// Archives all entities without a move.
pub(super) async fn archive_by_hand(table: &TableClient, archive: &TableClient) {
    for read in table.query::<DynamicEntity>().collect().await.unwrap() {
        archive.insert(&*read).await.unwrap();
        assert!(table.delete_stored(&read).await.unwrap());
    }
}

fn archive(costs: &mut Costs) {
    let archive = costs.table("Archive");
    let table = costs.table_with("Archived", employees(0, 2));
    costs.task(SECTION, "archive an employee who was read");
    let read = async |row_key: &str| {
        let found = table.get::<DynamicEntity>(("Sales", row_key)).await;
        found.unwrap().unwrap()
    };
    let moved = table.move_to(&archive, costs.run(read("000000")));
    costs.way("`move_to`", moved).unwrap();
    let read = costs.run(read("000001"));
    let by_hand = async {
        archive.insert(&*read).await.unwrap();
        assert!(table.delete_stored(&read).await.unwrap());
    };
    costs.way("naive: `insert` and `delete_stored`", by_hand);

    move_key(costs);
    costs.task(SECTION, "archive 100 employees");
    let table = costs.table_with("Formers", employees(1_000, 100));
    let all = table.query::<DynamicEntity>().partition("Sales");
    let moved = costs.way("`move_to` of a query", all.move_to(&archive));
    assert!(moved.unwrap().is_success());
    let table = costs.table_with("FormersByHand", employees(2_000, 100));
    let way = "naive: `insert` and `delete_stored` for each";
    costs.way(way, archive_by_hand(&table, &archive));
}
