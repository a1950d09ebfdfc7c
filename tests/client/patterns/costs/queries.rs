//! Design for querying and for data modification.

use futures::{TryStreamExt as _, stream};
use tablesdk::{TableClient, TableEntity};

use super::Costs;

#[derive(Clone, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    remarks: String,
    age: i32,
}

fn employees(department: &str) -> impl Iterator<Item = Employee> {
    (0..1_000).map(move |id| Employee {
        department: department.into(),
        id,
        last_name: "Jones".into(),
        email: format!("{id}@{department}.contoso.com"),
        remarks: "r".repeat(100),
        age: 36,
    })
}

pub(super) fn run(costs: &mut Costs) {
    let departments = ["Finance", "IT", "Legal", "Marketing", "Sales"];
    let table = costs.table_with("Employees", departments.into_iter().flat_map(employees));
    find(costs, &table);
    read(costs, &table);
    change(costs, &table);
    insert(costs);
}

fn find(costs: &mut Costs, table: &TableClient) {
    costs.task("Design for querying", "one of 5 × 1,000 employees");
    let get = table.get(Employee::key("Sales", 500));
    assert!(costs.way("point query: `get`", get).unwrap().is_some());
    let sales = || table.query::<Employee>().partition("Sales");
    let range = sales().rows(Employee::rows().id(500..510));
    costs.read("range query, of 10: `rows`", 10, range.collect());
    let email = "500@Sales.contoso.com";
    let scan = sales().filter(|e| e.email.eq(email)).collect();
    costs.read("partition scan: `partition` and `filter`", 1, scan);
    let scan = table.query::<Employee>().filter(|e| e.email.eq(email));
    costs.read("table scan: `filter`", 1, scan.collect());
}

fn read(costs: &mut Costs, table: &TableClient) {
    let task = "1,000 of a partition";
    costs.task("Retrieving large numbers of entities", task);
    let sales = || table.query::<Employee>().partition("Sales");
    costs.read("`stream`", 1_000, sales().stream().try_collect::<Vec<_>>());
    costs.read("`page_size(100)`", 1_000, sales().page_size(100).collect());
    let single = table.get_many((0..1_000).map(|id| Employee::key("Sales", id)));
    costs.read("one by one: `get_many`", 1_000, single);

    costs.task("Server-side projection", "the emails of 1,000");
    costs.read("`select`", 1_000, sales().select(|e| e.email).collect());
    costs.read("naive: whole entities", 1_000, sales().collect());
}

fn change(costs: &mut Costs, table: &TableClient) {
    costs.task("Merge or replace", "the age of an employee who was read");
    let key = || Employee::key("Sales", 1);
    let patch = table.patch(key()).set(|e| e.age, 37);
    costs.way("`patch`, without a read", patch).unwrap();
    let mut read = costs.run(table.get(key()).tracked()).unwrap().unwrap();
    read.age = 38;
    let merge = table.merge(&mut read).changed_only();
    costs.way("`merge` with `changed_only`", merge).unwrap();
    read.age = 39;
    costs.way("`replace`", table.replace(&mut read)).unwrap();

    costs.task("Managing concurrency", "a year more for one of 1,000");
    let older = table.modify(key(), |e| {
        e.age += 1;
        Ok(())
    });
    costs.way("`modify`: no change is lost", older).unwrap();
    let overwrite = async {
        let mut read = table.get(key()).await.unwrap().unwrap().into_inner();
        read.age += 1;
        table.upsert_replace(&read).await.unwrap();
    };
    costs.way("naive: `get` and `upsert_replace`", overwrite);
}

fn insert(costs: &mut Costs) {
    let (section, task) = (
        "Asynchronous and parallel operations",
        "insert 1,000 of a partition",
    );
    costs.task(section, task);
    let table = costs.table("Inserted");
    let bulk = table.bulk().insert(stream::iter(employees("Sales")));
    assert!(costs.way("`bulk().insert`", bulk).unwrap().is_success());
    let single = async {
        for employee in employees("IT") {
            table.insert(&employee).await.unwrap();
        }
    };
    costs.way("naive: `insert`", single);
}
