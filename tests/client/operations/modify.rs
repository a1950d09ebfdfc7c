//! The closures of `modify` and `resolve`: what they may borrow, how they fail, and what is
//! returned of them.

use std::num::ParseIntError;
use std::time::Duration;

use harness::Subject;
use tablesdk::{DynamicEntity, ETag, ErrorCode, ErrorKind, RetryPolicy, Stored};
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

fn key() -> tablesdk::key::Key<Employee> {
    Employee::key("Sales", "1")
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
        let error = table.modify(key(), |e| {
            e.age = e.name.parse()?;
            Ok(())
        }).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Aborted);
        assert!(error.downcast_ref::<ParseIntError>().is_some());
        assert!(error.downcast_ref::<std::fmt::Error>().is_none());
    }

    async fn or_insert_changes_a_new_entity(subject: Subject) {
        let table = subject.table().await;
        let mut made = 0;
        let modified = table.modify(key(), |e| {
            e.age += 1;
            Ok(e.age)
        });
        let modified = modified.or_insert(|| {
            made += 1;
            Employee::ada()
        });
        let (stored, age) = modified.await.unwrap().into_parts();
        assert_eq!((stored.age, age, made), (37, 37, 1));
        assert_eq!(Employee::find(&table).await.unwrap(), stored);

        let never = || -> Employee { unreachable!("it exists") };
        let again = table.modify(key(), Employee::grow_older).or_insert(never).await.unwrap();
        assert_eq!(again.age, 38);

        let other = table.modify(Employee::key("Sales", "2"), |_| Ok(())).or_insert(Employee::ada);
        let error = other.await.unwrap_err();
        assert_eq!((error.kind(), error.key().unwrap().row_key().as_str()), (ErrorKind::Input, "2"));
        assert!(error.to_string().contains("the entity to insert has another key"), "{error}");

        let aborted = table.modify(Employee::key("Sales", "3"), |_| Err::<(), _>("no".into()));
        let aborted = aborted.or_insert(|| Employee::new("3", "Alan", 41)).await.unwrap_err();
        assert_eq!(aborted.kind(), ErrorKind::Aborted);
        assert_eq!(table.query::<Employee>().count().await.unwrap(), 1);
    }

    async fn only_the_version_of_if_match_is_modified(subject: Subject) {
        let table = subject.table().await;
        let missing = table.modify(key(), Employee::grow_older).if_match(ETag::ANY).await;
        assert!(missing.unwrap_err().is_not_found());
        let old = table.insert(&Employee::ada()).await.unwrap().etag().clone();
        let modified = table.modify(key(), Employee::grow_older).if_match(&old).await.unwrap();
        assert_eq!((modified.age, modified.etag()), (37, Employee::find(&table).await.unwrap().etag()));

        let mut calls = 0;
        let count = |e: &mut Employee| {
            calls += 1;
            e.grow_older()
        };
        let error = table.modify(key(), count).if_match(&old).exactly_once().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error}");
        assert_eq!(error.code(), Some(&ErrorCode::UpdateConditionNotSatisfied));
        assert_eq!((error.operation(), error.key().unwrap().row_key().as_str()), (Some("modify entity"), "1"));
        assert_eq!(calls, 0, "it is no version for the closure");
        assert_eq!(Employee::find(&table).await.unwrap().age, 37);

        // The ETag of a page may be the timestamp in another spelling.
        let etag = Employee::find(&table).await.unwrap().etag().clone();
        if etag.timestamp().is_some() {
            let spelling = ETag::from_opaque(etag.as_str().replace("%3A", ":"));
            assert_ne!(spelling, etag);
            let keep = table.modify(key(), |_| Ok(())).if_match(spelling);
            assert_eq!(keep.await.unwrap().age, 37);
        }

        let any = table.modify(key(), Employee::grow_older).if_match(ETag::ANY);
        assert_eq!(any.await.unwrap().age, 38);
        let both = table.modify(key(), Employee::grow_older).or_insert(Employee::ada).if_match(ETag::ANY);
        let error = both.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("leave one of them out"), "{error}");
        let unsendable = table.modify(key(), Employee::grow_older).if_match(ETag::from_opaque("\n"));
        assert_eq!(unsendable.await.unwrap_err().kind(), ErrorKind::Input);
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

/// Another client writes the entity between the read and the write: with an ETag it is not read
/// again.
#[tokio::test(start_paused = true)]
async fn if_match_does_not_start_over_after_a_rival() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    let read = table.insert(&Employee::ada()).await.unwrap();
    for (etag, age) in [(read.etag(), None), (&ETag::ANY, Some(51))] {
        faults
            .on(Op::UpdateEntity)
            .nth(1)
            .inject(Fault::delay(Duration::from_secs(1)));
        let between = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            other.upsert_merge(&Employee::new("1", "Ada", 50)).await
        };
        let mut calls = 0;
        let grow = |e: &mut Employee| {
            calls += 1;
            e.grow_older()
        };
        let modify = table.modify(key(), grow).if_match(etag);
        let (modified, between) = tokio::join!(modify, between);
        between.unwrap();
        if let Some(age) = age {
            assert_eq!((modified.unwrap().age, calls), (age, 2));
        } else {
            assert!(modified.unwrap_err().is_precondition_failed());
            assert_eq!((Employee::find(&table).await.unwrap().age, calls), (50, 1));
        }
    }
}

/// Another client inserts or deletes the entity between the read and the write: the round starts
/// over.
#[tokio::test(start_paused = true)]
async fn or_insert_starts_over_after_a_rival() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    let slow = || Fault::delay(Duration::from_secs(1));
    let grow = Employee::grow_older;

    faults.on(Op::InsertEntity).nth(1).inject(slow());
    let between = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        other.upsert_merge(&Employee::new("1", "Ada", 50)).await
    };
    let modify = table.modify(key(), grow).or_insert(Employee::ada);
    let (modified, between) = tokio::join!(modify, between);
    between.unwrap();
    assert_eq!(modified.unwrap().age, 51);

    faults.on(Op::UpdateEntity).nth(1).inject(slow());
    let between = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        other.delete(key()).await
    };
    let modify = table.modify(key(), grow).or_insert(Employee::ada);
    let (modified, between) = tokio::join!(modify, between);
    assert!(between.unwrap());
    assert_eq!(modified.unwrap().age, 37);
}

/// Many writers of one counter that does not exist at first: each counts once.
#[tokio::test(start_paused = true)]
async fn or_insert_by_many_writers_counts_each_once() {
    let (_subject, table, _faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let writers = (0..16).map(|_| async {
        for _ in 0..10 {
            let count = table.modify(key(), Employee::grow_older);
            let count = count.or_insert(|| Employee::new("1", "Ada", 0));
            count
                .rounds(1000)
                .deadline(Duration::from_secs(36_000))
                .await
                .unwrap();
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(Employee::find(&table).await.unwrap().age, 160);
}
