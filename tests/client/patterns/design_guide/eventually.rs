//! Changes in several tables.

use tablesdk::{DynamicEntity, TableClient};

use super::Costs;

const SECTION: &str = "Eventually consistent transactions";

pub(super) async fn run(costs: &mut Costs) {
    archive(costs).await;
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
