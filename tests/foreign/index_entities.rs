//! Index entities of the design guide beside a program in Python: each of the two keeps the lists
//! that the other one reads, in the partition, in another table and in an object store.

// Its functions are those that the example calls.
#[path = "../../examples/index_entities/lists.rs"]
mod lists;

use harness::Subject;
use object_store::local::LocalFileSystem;
use tablesdk::TableClient;
use tablesdk::objects::Objects;
use tablesdk::outbox::{Outbox, Received};

use self::lists::{Employee, InCompany, InDepartment, Members, NameChanged};
use crate::child::run_python_with;

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_and_keeps_lists_of_keys() {
    let subject = Subject::over_http().await;
    let employees = subject.table().await;
    let company_lists = subject.service.table("LastNames");
    company_lists.create_table().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let objects = Objects::new(store, "last-names");
    for (department, id) in [("Sales", 152), ("Sales", 223), ("Legal", 7)] {
        let jones = employee(department, id, "Jones");
        lists::hire(&employees, &jones).await.unwrap();
    }
    drain(&employees, &company_lists, &objects).await;
    let long = Members((0..100_000).map(|id| ("Sales".to_owned(), id)).collect());
    let long = InCompany::new("Li", &long, &objects).await.unwrap();
    company_lists.insert(&long).await.unwrap();

    let connection_string = subject.server().connection_string();
    let path = folder.path().to_str().unwrap();
    run_python_with("index_entities.py", &[&connection_string, path]).await;

    // Hired by the program: 301 in Sales. Renamed by it: 223, to Smith.
    let in_sales = async |name| {
        let found = lists::of_department(&employees, "Sales", name).await;
        ids(found.unwrap())
    };
    assert_eq!(in_sales("Jones").await, ["Sales 152", "Sales 301"]);
    assert_eq!(in_sales("Smith").await, ["Sales 223"]);
    let in_company = async |name| {
        let found = lists::of_company(&employees, &company_lists, &objects, name).await;
        ids(found.unwrap())
    };
    let jones = ["Legal 7", "Sales 152", "Sales 301"];
    assert_eq!(in_company("Jones").await, jones);
    assert_eq!(in_company("Smith").await, ["Sales 223"]);
    let list = company_lists.get(InCompany::key("Li", "Li")).await.unwrap();
    let long = list.unwrap().members(&objects).await.unwrap();
    assert_eq!(long.0.len(), 100_001);
    assert!(long.0.contains(&("Legal".to_owned(), 8)));

    // Our client goes on where the program ended.
    lists::rename(&employees, ("Sales", 301), "Smith")
        .await
        .unwrap();
    lists::dismiss(&employees, ("Sales", 152)).await.unwrap();
    drain(&employees, &company_lists, &objects).await;
    assert_eq!(in_company("Jones").await, ["Legal 7"]);
    assert_eq!(in_company("Smith").await, ["Sales 223", "Sales 301"]);
    let list = employees.get(InDepartment::key("Sales", "Jones")).await;
    assert!(list.unwrap().unwrap().employee_ids.is_empty());
}

async fn drain(employees: &TableClient, company_lists: &TableClient, objects: &Objects) {
    let parts = (employees.clone(), company_lists.clone(), objects.clone());
    let outbox = Outbox::new(employees).on(move |changed: Received<NameChanged>| {
        let (employees, company_lists, objects) = parts.clone();
        async move { lists::keep_company_list(&employees, &company_lists, &objects, &changed).await }
    });
    assert_eq!(outbox.drain().await.unwrap().waiting, 0);
}

fn employee(department: &str, id: u32, last_name: &str) -> Employee {
    Employee {
        department: department.to_owned(),
        id,
        last_name: last_name.to_owned(),
        email: None,
    }
}

fn ids(found: Vec<Employee>) -> Vec<String> {
    let found = found.into_iter();
    found
        .map(|it| format!("{} {}", it.department, it.id))
        .collect()
}
