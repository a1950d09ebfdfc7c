//! The closures of `modify` and `resolve`: what they may borrow, how they fail, and what is returned of them.

use std::error::Error;
use std::fmt;
use std::num::ParseIntError;
use std::time::Duration;

use harness::Subject;
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, Stored};
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

fn key() -> tablesdk::key::Key<Employee> {
    Employee::key("Sales", "1")
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct TooYoung {
    name: &'static str,
    age: i32,
    least: i32,
}

impl fmt::Display for TooYoung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, age, least } = self;
        write!(f, "{name} is {age} years old, and not {least}")
    }
}

impl Error for TooYoung {}

/// A function of a program, which knows nothing of tables.
fn retire(employee: &mut Employee, least: i32) -> Result<(), TooYoung> {
    let age = employee.age;
    if age < least {
        let name = "Ada";
        return Err(TooYoung { name, age, least });
    }
    employee.name.push_str(", retired");
    Ok(())
}

on_both_transports! {
    async fn the_closure_of_modify_borrows_from_the_caller(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let name = String::from("Ada Lovelace");
        let mut seen = Vec::new();
        table.modify(key(), |e| {
            seen.push(e.age);
            e.name.clone_from(&name);
            Ok(())
        }).await.unwrap();
        assert_eq!(seen, [36]);
        assert_eq!(Employee::find(&table).await.unwrap().name, name);
    }

    async fn modify_returns_the_entity_and_the_value_of_the_closure(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let modified = table.modify(key(), |e| {
            let before = e.age;
            e.age += 1;
            Ok(before)
        }).await.unwrap();
        assert_eq!(modified.age, 37, "it derefs to the entity");
        let (mut ada, before) = modified.into_parts();
        assert_eq!((before, &ada), (36, &Employee::find(&table).await.unwrap()));
        ada.age = 38;
        table.replace(&mut ada).await.unwrap();

        // Without a value, it is written as any other entity.
        let mut ada = table.modify(key(), Employee::grow_older).await.unwrap();
        table.replace(&mut ada).await.unwrap();
        let stored: Stored<Employee> = ada.clone().into_stored();
        assert_eq!(stored.into_inner(), ada.into_inner());
    }

    async fn the_closure_of_modify_fails_with_any_error(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let error = table.modify(key(), |e| Ok(retire(e, 65)?)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CalledOff);
        let cause = error.downcast_ref::<TooYoung>().copied();
        assert_eq!(cause, Some(TooYoung { name: "Ada", age: 36, least: 65 }));
        assert!(error.downcast_ref::<ParseIntError>().is_none());
        assert_eq!(Employee::find(&table).await.unwrap().name, "Ada");

        let error = table.modify(key(), |e| {
            e.age = e.name.parse()?;
            Ok(())
        }).await.unwrap_err();
        assert!(error.downcast_ref::<ParseIntError>().is_some());
        table.modify(key(), |e| Ok(retire(e, 30)?)).await.unwrap();
    }

    async fn the_closure_of_resolve_borrows_from_the_caller(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let property = String::from("Age");
        let get = table.get::<DynamicEntity>(("Sales", "1"));
        let age = get.resolve(|e| Ok(e.properties().read::<i32>(&property)?)).await.unwrap();
        assert_eq!(age, Some(36));
    }
}

#[tokio::test(start_paused = true)]
async fn the_closure_of_modify_runs_once_per_round() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let changed = Fault::error(ErrorCode::UpdateConditionNotSatisfied);
    let slow = Fault::delay(Duration::from_secs(1));
    faults.on(Op::UpdateEntity).inject_each([changed, slow]);
    let other = subject.other().table("Tests");
    let mut seen = Vec::new();
    let modify = table.modify(key(), |e| {
        seen.push(e.age);
        e.age += 1;
        Ok(seen.len())
    });
    let between = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        other.upsert_merge(&Employee::new("1", "Ada", 50)).await
    };
    let (modified, between) = tokio::join!(modify, between);
    between.unwrap();
    let (ada, rounds) = modified.unwrap().into_parts();
    assert_eq!(
        (ada.age, rounds),
        (51, 3),
        "the value is that of the last round"
    );
    assert_eq!(seen, [36, 36, 50], "each round has its own read");
}
