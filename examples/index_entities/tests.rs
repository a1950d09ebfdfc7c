//! Lists that several clients and workers keep at the same time.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use object_store::memory::InMemory;
use tablesdk::objects::Objects;
use tablesdk::{ErrorKind, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::sleep;

use crate::lists::{
    Employee, InCompany, InDepartment, Members, NameChanged, dismiss, hire, keep_company_list,
    of_company, of_department, rename,
};

struct Company {
    employees: TableClient,
    lists: TableClient,
    objects: Objects,
    server: TableServer,
}

impl Company {
    async fn new() -> Self {
        let server = TableServer::in_process();
        let service = TableServiceClient::in_process(&server);
        let (employees, lists) = (service.table("Employees"), service.table("LastNames"));
        employees.create_table().await.unwrap();
        lists.create_table().await.unwrap();
        Self {
            employees,
            lists,
            objects: Objects::new(InMemory::new(), "last-names"),
            server,
        }
    }

    async fn handle(&self, id: u32, last_name: &str) {
        let changed = NameChanged {
            department: "Sales".into(),
            id,
            last_name: last_name.into(),
        };
        let (employees, lists) = (&self.employees, &self.lists);
        let kept = keep_company_list(employees, lists, &self.objects, &changed).await;
        kept.unwrap();
    }

    async fn listed(&self, last_name: &str) -> Vec<u32> {
        let list = self
            .lists
            .get(InCompany::key(last_name, last_name))
            .await
            .unwrap();
        let members = list.unwrap().members(&self.objects).await.unwrap();
        members.0.into_iter().map(|(_, id)| id).collect()
    }
}

fn jones(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        last_name: "Jones".into(),
        email: None,
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_hire_at_the_same_time_lose_no_id() {
    let company = Company::new().await;
    let employees = &company.employees;
    let hired = (1..=8).map(async |id| hire(employees, &jones(id)).await);
    try_join_all(hired).await.unwrap();
    let found = of_department(employees, "Sales", "Jones").await.unwrap();
    assert_eq!(
        found.iter().map(|it| it.id).collect::<Vec<_>>(),
        (1..=8).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_handled_twice_late_and_together_agree_with_the_employees() {
    let company = Company::new().await;
    let employees = &company.employees;
    for id in 1..=3 {
        hire(employees, &jones(id)).await.unwrap();
    }
    let early = join_all((1..=3).map(|id| company.handle(id, "Jones")));
    let changes = async {
        rename(employees, ("Sales", 2), "Smith").await.unwrap();
        dismiss(employees, ("Sales", 3)).await.unwrap();
    };
    futures::join!(early, changes);
    let late = [
        (2, "Jones"),
        (2, "Smith"),
        (3, "Jones"),
        (1, "Jones"),
        (2, "Jones"),
    ];
    join_all(late.map(|(id, name)| company.handle(id, name))).await;
    assert_eq!(company.listed("Jones").await, [1]);
    assert_eq!(company.listed("Smith").await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_read_the_employee_before_a_change_does_not_undo_it() {
    let company = Company::new().await;
    let employees = &company.employees;
    for id in [1, 2] {
        hire(employees, &jones(id)).await.unwrap();
    }
    company.handle(2, "Jones").await;
    // The write of the first worker arrives after those of the second one.
    let faults = company.server.faults();
    let delay = Fault::delay(Duration::from_secs(10));
    let delayed = faults.on_writes().table("LastNames").times(1).inject(delay);
    let first = company.handle(1, "Jones");
    let second = async {
        sleep(Duration::from_secs(5)).await;
        rename(employees, ("Sales", 1), "Smith").await.unwrap();
        company.handle(1, "Jones").await;
        company.handle(1, "Smith").await;
    };
    futures::join!(first, second);
    assert_eq!(delayed.hits(), 1);
    assert_eq!(company.listed("Jones").await, [2]);
    assert_eq!(company.listed("Smith").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_says_too_much_is_read_without_it() {
    let company = Company::new().await;
    hire(&company.employees, &jones(1)).await.unwrap();
    // Another name, and no employee: written by a program that did not keep the list.
    let mut other = jones(2);
    other.last_name = "Smith".into();
    company.employees.insert(&other).await.unwrap();
    let list = InDepartment {
        department: "Sales".into(),
        last_name: "Jones".into(),
        employee_ids: [1, 2, 3].into(),
    };
    company.employees.upsert_replace(&list).await.unwrap();
    let found = of_department(&company.employees, "Sales", "Jones").await;
    assert_eq!(found.unwrap(), [jones(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_room_refuses_the_employee_before_anything_is_sent() {
    let company = Company::new().await;
    let full = InDepartment {
        department: "Sales".into(),
        last_name: "Jones".into(),
        employee_ids: (0..4_681).collect(),
    };
    company.employees.insert(&full).await.unwrap();
    let error = hire(&company.employees, &jones(4_681)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("EmployeeIDs"), "{error}");
    let stored = company.employees.get(Employee::key("Sales", 4_681)).await;
    assert!(stored.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_is_in_an_object_while_it_is_too_long_for_a_property() {
    let company = Company::new().await;
    // Lines of 12 characters and a line feed: 2,520 of them are 32,759 characters.
    let members = |count| Members((0..count).map(|id| ("Sales".to_owned(), id)).collect());
    for (count, is_object) in [(2_520, false), (2_521, true), (100_000, true)] {
        let members = members(count);
        let list = InCompany::new("Jones", &members, &company.objects)
            .await
            .unwrap();
        company.lists.upsert_replace(&list).await.unwrap();
        let list = company
            .lists
            .get(InCompany::key("Jones", "Jones"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(list.employee_details_object.is_some(), is_object, "{count}");
        assert_eq!(list.employee_details.is_none(), is_object, "{count}");
        assert!(
            list.members(&company.objects).await.unwrap() == members,
            "{count}"
        );
    }
    // The employees of the long list do not exist, and one message removes one of them.
    company.handle(5, "Jones").await;
    assert_eq!(company.listed("Jones").await.len(), 99_999);
}

#[tokio::test(start_paused = true)]
async fn employees_of_all_departments_are_found_by_their_last_name() {
    let company = Company::new().await;
    let mut legal = jones(1);
    legal.department = "Legal".into();
    for employee in [&jones(1), &legal] {
        hire(&company.employees, employee).await.unwrap();
    }
    let members = [("Legal".to_owned(), 1), ("Sales".to_owned(), 1)];
    let list = InCompany::new("Jones", &Members(members.into()), &company.objects).await;
    company.lists.insert(&list.unwrap()).await.unwrap();
    let (employees, lists) = (&company.employees, &company.lists);
    let found = of_company(employees, lists, &company.objects, "Jones").await;
    assert_eq!(found.unwrap(), [legal, jones(1)]);
}
