//! Changes in several partitions and tables.

use serde::{Deserialize, Serialize};
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{DynamicEntity, TableClient};

use super::Costs;

#[derive(Serialize, Deserialize)]
struct Renamed {
    department: u32,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

const SECTION: &str = "Eventually consistent transactions";

pub(super) async fn run(costs: &mut Costs) {
    steps(costs).await;
    messages(costs).await;
    archive(costs).await;
}

fn department(id: u32) -> DynamicEntity {
    DynamicEntity::new("Sales", format!("{id:06}")).with("Title", "Sales and service")
}

fn title(id: u32) -> DynamicEntity {
    DynamicEntity::new(format!("{id:06}"), "title").with("Title", "Sales and service")
}

async fn steps(costs: &mut Costs) {
    let (table, titles) = (costs.table("Divisions").await, costs.table("Titles").await);
    costs.task(SECTION, "an entity, and one in another table");
    let at_once = async {
        let batch = table.batch("Sales").insert(&department(1));
        let step = Step::upsert_replace(&titles, &title(1));
        batch.step(step).await.unwrap();
    };
    costs.way("`batch` with `step`", at_once).await;
    let later = async {
        let batch = table.batch("Sales").insert(&department(2));
        let step = Step::upsert_replace(&titles, &title(2));
        batch.step(step).leave_steps().await.unwrap();
    };
    costs
        .way("`batch` with `step` and `leave_steps`", later)
        .await;
    let worker = async {
        let drain = Outbox::new(&table).drain().partition("Sales");
        assert_eq!(drain.await.unwrap().applied, 1);
    };
    costs
        .way("and a worker, of that partition: `drain`", worker)
        .await;
    let idle = async {
        assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 0);
    };
    costs
        .way(
            "a worker that finds nothing, of all partitions: `drain`",
            idle,
        )
        .await;
    let by_hand = async {
        table.insert(&department(3)).await.unwrap();
        titles.upsert_replace(&title(3)).await.unwrap();
    };
    costs
        .way(
            "naive: one after the other, of which one may be lost",
            by_hand,
        )
        .await;
}

async fn messages(costs: &mut Costs) {
    let table = costs.table("Notified").await;
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
    costs
        .way(
            "`step` and `leave_steps`, and `drain` of that partition",
            message,
        )
        .await;
}

fn employee(id: u32) -> DynamicEntity {
    DynamicEntity::new("Sales", format!("{id:06}")).with("LastName", "Jones")
}

async fn archive(costs: &mut Costs) {
    let archive = costs.table("Archive").await;
    let employees = |first: u32| (first..first + 100).map(employee).collect();
    let table = costs.table_with("Archived", employees(0)).await;
    costs.task(SECTION, "archive an employee who was read");
    let stored = async |id: u32| {
        let key = ("Sales".to_owned(), format!("{id:06}"));
        table.get::<DynamicEntity>(key).await.unwrap().unwrap()
    };
    let read = stored(0).await;
    let one = async { drop(table.move_to(&archive, read).await.unwrap()) };
    costs.way("`move_to`", one).await;
    let read = stored(1).await;
    let by_hand = async {
        archive.insert(&*read).await.unwrap();
        assert!(table.delete_stored(&read).await.unwrap());
    };
    costs
        .way("naive: `insert` and `delete_stored`", by_hand)
        .await;

    let table = costs.table_with("Formers", employees(1_000)).await;
    costs.task(SECTION, "archive 100 employees");
    let all = |table: &TableClient| table.query::<DynamicEntity>().partition("Sales");
    let many = async { drop(all(&table).move_to(&archive).await.unwrap()) };
    costs.way("`move_to` of a query", many).await;
    let table = costs.table_with("FormersByHand", employees(2_000)).await;
    let by_hand = async {
        for read in all(&table).collect().await.unwrap() {
            archive.insert(&*read).await.unwrap();
            assert!(table.delete_stored(&read).await.unwrap());
        }
    };
    costs
        .way("naive: `insert` and `delete_stored` for each", by_hand)
        .await;
}
