//! The sample "index entities" of the design guide, word by word: its keys, its steps, and the
//! requests that they are.

use tablesdk::{TableClient, TableEntity};
use tablesdk_server::testing::{Journal, Op};

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id}"
)]
struct Employee {
    department: String,
    id: String,
    last_name: String,
}

/// The index entity: the ids of the employees with a last name, separated by commas.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "{last_name}")]
struct Named {
    department: String,
    last_name: String,
    #[table(rename = "EmployeeIDs")]
    employee_ids: String,
}

fn employee(id: &str, last_name: &str) -> Employee {
    Employee {
        department: "Sales".into(),
        id: id.into(),
        last_name: last_name.into(),
    }
}

fn named(last_name: &str, employee_ids: &str) -> Named {
    Named {
        department: "Sales".into(),
        last_name: last_name.into(),
        employee_ids: employee_ids.into(),
    }
}

/// The employees 223 and 301, whose last name is Jones, and 330, whose last name is Smith.
async fn fill(table: &TableClient) {
    let sales = table
        .batch("Sales")
        .insert(&employee("000223", "Jones"))
        .insert(&employee("000301", "Jones"))
        .insert(&employee("000330", "Smith"))
        .insert(&named("Jones", "000223,000301"))
        .insert(&named("Smith", "000330"));
    sales.await.unwrap();
}

async fn ids(table: &TableClient, last_name: &str) -> String {
    let list = table.get(Named::key("Sales", last_name)).await.unwrap();
    list.unwrap().into_inner().employee_ids
}

fn without(list: &str, id: &str) -> String {
    let ids: Vec<_> = list.split(',').filter(|other| *other != id).collect();
    ids.join(",")
}

/// The requests since the journal began: "read Jones", or the changes of a transaction.
fn steps(journal: &Journal) -> Vec<String> {
    let steps = journal.requests().into_iter().map(|request| {
        let entities = request.entities.iter();
        let row_keys = entities.map(|it| format!("{} {}", it.op, it.key.row_key().as_str()));
        let row_keys: Vec<_> = row_keys.collect();
        row_keys.join(", ")
    });
    steps.collect()
}

on_both_transports! {
    async fn index_entities_an_employee_is_added(subject: Subject) {
        let table = subject.table().await;
        fill(&table).await;
        let journal = subject.server().journal();
        let add = table.transaction("Sales", async |tx| {
            let mut list = tx.get(Named::key("Sales", "Jones")).await?.ok_or("no list")?;
            list.employee_ids = format!("000152,{}", list.employee_ids);
            tx.insert(&employee("000152", "Jones")).replace(list);
            Ok(())
        });
        add.await.unwrap();
        let expected = ["QueryEntity Jones", "UpdateEntity Jones, InsertEntity 000152"];
        assert_eq!(steps(&journal), expected);
        assert_eq!(ids(&table, "Jones").await, "000152,000223,000301");
    }

    async fn index_entities_someone_else_has_just_modified_the_index_entity(subject: Subject) {
        let table = subject.table().await;
        fill(&table).await;
        let other = table.clone();
        let journal = subject.server().journal();
        let add = table.transaction("Sales", async |tx| {
            let mut list = tx.get(Named::key("Sales", "Jones")).await?.ok_or("no list")?;
            if list.employee_ids == "000223,000301" {
                other.upsert_replace(&named("Jones", "000223,000301,000400")).await?;
            }
            list.employee_ids = format!("000152,{}", list.employee_ids);
            tx.insert(&employee("000152", "Jones")).replace(list);
            Ok(())
        });
        add.await.unwrap();
        assert_eq!(journal.requests().op(Op::Batch).count(), 2);
        assert_eq!(ids(&table, "Jones").await, "000152,000223,000301,000400");
    }

    async fn index_entities_an_employee_is_deleted(subject: Subject) {
        let table = subject.table().await;
        fill(&table).await;
        let journal = subject.server().journal();
        let delete = table.transaction("Sales", async |tx| {
            let mut list = tx.get(Named::key("Sales", "Jones")).await?.ok_or("no list")?;
            list.employee_ids = without(&list.employee_ids, "000223");
            tx.delete(Employee::key("Sales", "000223")).replace(list);
            Ok(())
        });
        delete.await.unwrap();
        let expected = ["QueryEntity Jones", "UpdateEntity Jones, DeleteEntity 000223"];
        assert_eq!(steps(&journal), expected);
        assert_eq!(ids(&table, "Jones").await, "000301");
    }

    async fn index_entities_a_last_name_changes_three_entities(subject: Subject) {
        let table = subject.table().await;
        fill(&table).await;
        let journal = subject.server().journal();
        let rename = table.transaction("Sales", async |tx| {
            let mut employee = tx.get(Employee::key("Sales", "000223")).await?.ok_or("nobody")?;
            let mut before = tx.get(Named::key("Sales", "Jones")).await?.ok_or("no list")?;
            let mut after = tx.get(Named::key("Sales", "Smith")).await?.ok_or("no list")?;
            employee.last_name = "Smith".into();
            before.employee_ids = without(&before.employee_ids, "000223");
            after.employee_ids = format!("000223,{}", after.employee_ids);
            tx.replace(employee).replace(before).replace(after);
            Ok(())
        });
        rename.await.unwrap();
        let steps = steps(&journal);
        assert_eq!(steps.len(), 4, "three reads and a transaction: {steps:?}");
        let changed = "UpdateEntity 000223, UpdateEntity Jones, UpdateEntity Smith";
        assert_eq!(steps[3], changed);
        assert_eq!(ids(&table, "Jones").await, "000301");
        assert_eq!(ids(&table, "Smith").await, "000223,000330");
    }

    async fn index_entities_all_employees_named_jones_are_looked_up(subject: Subject) {
        let table = subject.table().await;
        fill(&table).await;
        let journal = subject.server().journal();
        let list = table.get(Named::key("Sales", "Jones")).await.unwrap().unwrap();
        let keys = list.employee_ids.split(',').map(|id| Employee::key("Sales", id));
        let found = table.get_many(keys).await.unwrap();
        let found: Vec<_> = found.into_iter().map(|it| it.unwrap().into_inner()).collect();
        assert_eq!(found, [employee("000223", "Jones"), employee("000301", "Jones")]);
        assert_eq!(journal.requests().len(), 1 + 2);
        journal.assert_no_scans();
    }
}
