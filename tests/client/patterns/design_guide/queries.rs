//! Design for querying and for data modification.

use futures::{TryStreamExt as _, stream};
use tablesdk::{TableClient, TableEntity};

use super::Costs;

#[derive(Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    remarks: String,
    age: i32,
}

fn employee(department: &str, id: u32) -> Employee {
    Employee {
        department: department.into(),
        id,
        last_name: "Jones".into(),
        email: format!("{id}@{department}.contoso.com"),
        remarks: "r".repeat(100),
        age: 36,
    }
}

fn employees(department: &str) -> Vec<Employee> {
    (0..1_000).map(|id| employee(department, id)).collect()
}

pub(super) async fn run(costs: &mut Costs) {
    let departments = ["Finance", "IT", "Legal", "Marketing", "Sales"];
    let all = departments
        .iter()
        .flat_map(|name| employees(name))
        .collect();
    let table = costs.table_with("Employees", all).await;
    find(costs, &table).await;
    read(costs, &table).await;
    change(costs, &table).await;
    insert(costs).await;
}

async fn find(costs: &mut Costs, table: &TableClient) {
    costs.task("Design for querying", "one of 5 × 1,000 employees");
    let key = || Employee::key("Sales", 500);
    let get = async || assert!(table.get(key()).await.unwrap().is_some());
    costs.way("point query: `get`", get()).await;
    let range = async || {
        let rows = Employee::rows().id(500..510);
        let found = table.query::<Employee>().partition("Sales").rows(rows);
        assert_eq!(found.collect().await.unwrap().len(), 10);
    };
    costs.way("range query, of 10: `rows`", range()).await;
    let email = "500@Sales.contoso.com";
    let scan = async || {
        let query = table.query::<Employee>().partition("Sales");
        let found = query.filter(|e| e.email.eq(email)).collect().await.unwrap();
        assert_eq!(found.len(), 1);
    };
    costs
        .way("partition scan: `partition` and `filter`", scan())
        .await;
    let scan = async || {
        let query = table.query::<Employee>().filter(|e| e.email.eq(email));
        assert_eq!(query.collect().await.unwrap().len(), 1);
    };
    costs.way("table scan: `filter`", scan()).await;
}

async fn read(costs: &mut Costs, table: &TableClient) {
    costs.task(
        "Retrieving large numbers of entities",
        "1,000 of a partition",
    );
    let sales = || table.query::<Employee>().partition("Sales");
    let all = async || {
        let found: Vec<_> = sales().stream().try_collect().await.unwrap();
        assert_eq!(found.len(), 1_000);
    };
    costs.way("`stream`", all()).await;
    let pages = async || assert_eq!(sales().page_size(100).collect().await.unwrap().len(), 1_000);
    costs.way("`page_size(100)`", pages()).await;
    let keys = || (0..1_000).map(|id| Employee::key("Sales", id));
    let single = async || assert_eq!(table.get_many(keys()).await.unwrap().len(), 1_000);
    costs.way("one by one: `get_many`", single()).await;

    costs.task("Server-side projection", "the emails of 1,000");
    let emails = async || {
        let emails = sales().select(|e| e.email).collect().await.unwrap();
        assert_eq!(emails.len(), 1_000);
    };
    costs.way("`select`", emails()).await;
    let whole = async || assert_eq!(sales().collect().await.unwrap().len(), 1_000);
    costs.way("naive: whole entities", whole()).await;
}

async fn change(costs: &mut Costs, table: &TableClient) {
    costs.task("Merge or replace", "the age of an employee who was read");
    let key = || Employee::key("Sales", 1);
    let patch = table.patch(key()).set(|e| e.age, 37);
    costs
        .way("`patch`, without a read", async {
            drop(patch.await.unwrap());
        })
        .await;
    let mut read = table.get(key()).tracked().await.unwrap().unwrap();
    read.age = 38;
    let merge = table.merge(&mut read).changed_only();
    costs
        .way("`merge` with `changed_only`", async {
            merge.await.unwrap();
        })
        .await;
    read.age = 39;
    let replace = table.replace(&mut read);
    costs
        .way("`replace`", async {
            replace.await.unwrap();
        })
        .await;

    costs.task("Managing concurrency", "a year more for one of 1,000");
    let older = table.modify(key(), |e| {
        e.age += 1;
        Ok(())
    });
    costs
        .way("`modify`: no change is lost", async {
            drop(older.await.unwrap());
        })
        .await;
    let overwrite = async || {
        let mut read = table.get(key()).await.unwrap().unwrap().into_inner();
        read.age += 1;
        table.upsert_replace(&read).await.unwrap();
    };
    costs
        .way("naive: `get` and `upsert_replace`", overwrite())
        .await;
}

async fn insert(costs: &mut Costs) {
    costs.task(
        "Asynchronous and parallel operations",
        "insert 1,000 of a partition",
    );
    let table = costs.table("Inserted").await;
    let bulk = async || {
        let report = table.bulk().insert(stream::iter(employees("Sales"))).await;
        assert!(report.unwrap().is_success());
    };
    costs.way("`bulk().insert`", bulk()).await;
    let single = async || {
        for employee in employees("IT") {
            table.insert(&employee).await.unwrap();
        }
    };
    costs.way("naive: `insert`", single()).await;
}
