//! `transaction`: what is read, what is checked, when the closure runs again, and which errors end
//! it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use harness::{Subject, client_with};
use tablesdk::action::{ClosureError, OperationReport, RunTransaction, Transaction};
use tablesdk::{
    DynamicEntity, ETag, ErrorKind, RetryPolicy, Stored, TableClient, TableEntity, Timestamp,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use crate::{Employee, on_both_transports};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", row_key = "department")]
struct Department {
    #[table(partition_key)]
    name: String,
    headcount: i32,
    on_call: i32,
}

#[derive(Debug, PartialEq)]
struct NoDepartment;

impl std::fmt::Display for NoDepartment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no such department")
    }
}

impl std::error::Error for NoDepartment {}

async fn with_department(subject: &Subject) -> TableClient {
    let table = subject.table().await;
    insert_department(&table).await;
    table
}

async fn insert_department(table: &TableClient) {
    let sales = Department {
        name: "Sales".to_owned(),
        headcount: 0,
        on_call: 2,
    };
    table.insert(&sales).await.unwrap();
}

async fn department(table: &TableClient) -> Stored<Department> {
    let found = table.get(Department::key("Sales")).await;
    found.unwrap().expect("it was inserted")
}

/// A transaction reads the department.
async fn read(tx: &Transaction) -> Result<Stored<Department>, ClosureError> {
    let found = tx.get(Department::key("Sales")).await?;
    found.ok_or(NoDepartment.into())
}

/// Another client changes the department.
async fn write_department(table: &TableClient) {
    let change = table.patch(Department::key("Sales"));
    change.set(|d| d.on_call, 7).await.unwrap();
}

/// A change of an entity that was read.
type Write = for<'t> fn(&'t Transaction, &Stored<Employee>) -> &'t Transaction;

on_both_transports! {
    async fn every_verb_of_a_transaction_writes(subject: Subject) {
        let table = with_department(&subject).await;
        for id in 1..=6 {
            table.insert(&Employee::new(&id.to_string(), "Ada", id)).await.unwrap();
        }
        let aged = |id: &str| Employee { email: Some("x".into()), ..Employee::new(id, "Aged", 99) };
        table.transaction("Sales", async |tx| {
            let mut read = Vec::new();
            for id in ["1", "2", "3"] {
                read.push(tx.get(Employee::key("Sales", id)).await?.expect("it was inserted"));
            }
            let [mut one, mut two, three] = <[_; 3]>::try_from(read).unwrap();
            one.age = 10;
            two.age = 20;
            tx.replace(one).merge(two).delete_stored(&three);
            tx.delete(Employee::key("Sales", "4")).upsert_replace(&aged("5")).upsert_merge(&aged("6"));
            tx.insert(&aged("7"));
            Ok(())
        }).await.unwrap();
        let found = table.query::<Employee>().rows(Employee::rows().id("0".."a")).collect().await.unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.id.as_str(), it.age)).collect();
        assert_eq!(found, [("1", 10), ("2", 20), ("5", 99), ("6", 99), ("7", 99)]);
    }

    async fn every_verb_on_an_entity_that_was_read_is_conditional(subject: Subject) {
        let writes: [Write; 6] = [
            |tx, e| tx.replace(e.clone()),
            |tx, e| tx.merge(e.clone()),
            |tx, e| tx.upsert_replace(&**e),
            |tx, e| tx.upsert_merge(&**e),
            |tx, e| tx.delete_stored(e),
            |tx, e| tx.delete(e.key()),
        ];
        let table = subject.table().await;
        for write in writes {
            for is_deleted in [false, true] {
                table.upsert_replace(&Employee::ada()).await.unwrap();
                let rounds = AtomicU32::new(0);
                let seen = table.transaction("Sales", async |tx| {
                    let read = tx.get(Employee::key("Sales", "1")).await?;
                    if rounds.fetch_add(1, Ordering::Relaxed) == 0 {
                        if is_deleted {
                            table.delete(("Sales", "1")).await?;
                        } else {
                            table.upsert_replace(&Employee::grace()).await?;
                        }
                    }
                    let name = read.as_ref().map(|it| it.name.clone());
                    if let Some(read) = read {
                        write(&tx, &read);
                    }
                    Ok(name)
                }).await.unwrap();
                assert_eq!(seen.as_deref(), (!is_deleted).then_some("Grace"));
                assert_eq!(rounds.into_inner(), 2);
            }
        }
    }

    async fn an_inserted_entity_that_was_read_as_missing_starts_the_transaction_over(subject: Subject) {
        let table = with_department(&subject).await;
        let etag = ETag::from_timestamp(Timestamp::UNIX_EPOCH);
        let ada = Stored::from_parts(Employee::ada(), etag).unwrap();
        let writes: [Write; 3] = [
            |tx, e| tx.insert(&**e),
            |tx, e| tx.upsert_replace(&**e),
            |tx, e| tx.upsert_merge(&**e),
        ];
        for write in writes {
            let rounds = AtomicU32::new(0);
            let is_ours = table.transaction("Sales", async |tx| {
                if tx.get(Employee::key("Sales", "1")).await?.is_some() {
                    return Ok(false);
                }
                if rounds.fetch_add(1, Ordering::Relaxed) == 0 {
                    table.insert(&Employee::grace()).await?;
                }
                write(&tx, &ada);
                Ok(true)
            }).await.unwrap();
            assert!(!is_ours);
            assert_eq!(rounds.into_inner(), 1, "the second round reads the other client's entity");
            assert_eq!(Employee::find(&table).await.unwrap().name, "Grace");
            table.delete(("Sales", "1")).await.unwrap();
        }
    }

    async fn an_entity_that_was_only_read_is_checked(subject: Subject) {
        let table = with_department(&subject).await;
        for id in ["1", "2"] {
            table.insert(&Employee::new(id, "on call", 1)).await.unwrap();
        }
        // Each doctor leaves only if the other one stays: write skew would let both leave.
        let leave = async |own: &str, other: &str| {
            table.transaction("Sales", async |tx| {
                let other = tx.get(Employee::key("Sales", other)).await?.expect("it was inserted");
                let mut own = tx.get(Employee::key("Sales", own)).await?.expect("it was inserted");
                if other.age == 1 {
                    own.age = 0;
                    tx.replace(own);
                }
                Ok(())
            }).rounds(100).await
        };
        let (one, two) = tokio::join!(leave("1", "2"), leave("2", "1"));
        one.and(two).unwrap();
        let (one, two) = tokio::join!(table.get(Employee::key("Sales", "1")), table.get(Employee::key("Sales", "2")));
        assert_eq!(one.unwrap().unwrap().age + two.unwrap().unwrap().age, 1);
    }

    async fn a_check_makes_a_version_and_changes_no_property(subject: Subject) {
        let table = with_department(&subject).await;
        let before = department(&table).await;
        table.transaction("Sales", async |tx| {
            read(&tx).await?;
            tx.insert(&Employee::ada());
            Ok(())
        }).await.unwrap();
        let after = department(&table).await;
        assert_eq!(*after, *before);
        assert_ne!(after.etag(), before.etag());
        // The properties that no struct here has, too.
        let entity = table.get::<DynamicEntity>(("Sales", "department")).await.unwrap().unwrap();
        assert_eq!(entity.properties().len(), 2);
    }

    async fn a_deleted_entity_that_was_only_read_starts_the_transaction_over(subject: Subject) {
        let table = with_department(&subject).await;
        let error = table.transaction("Sales", async |tx| {
            read(&tx).await?;
            table.delete(Department::key("Sales")).await?;
            tx.insert(&Employee::ada());
            Ok(())
        }).await.unwrap_err();
        assert!(error.downcast_ref::<NoDepartment>().is_some(), "{error:?}");
        assert!(Employee::find(&table).await.is_none());
    }

    async fn a_stale_entity_from_outside_does_not_start_the_transaction_over(subject: Subject) {
        let table = with_department(&subject).await;
        let stale = department(&table).await;
        write_department(&table).await;
        for is_read in [false, true] {
            let rounds = AtomicU32::new(0);
            let error = table.transaction("Sales", async |tx| {
                rounds.fetch_add(1, Ordering::Relaxed);
                if is_read {
                    read(&tx).await?;
                }
                tx.replace(stale.clone());
                Ok(())
            }).await.unwrap_err();
            assert!(error.is_precondition_failed(), "{error:?}");
            assert_eq!(rounds.into_inner(), 1);
        }
    }

    async fn a_race_starts_over_in_every_order_of_the_changes(subject: Subject) {
        let table = with_department(&subject).await;
        for (is_insert_first, hired) in [(true, 2), (false, 4)] {
            let rounds = AtomicU32::new(0);
            let number = |headcount: i32| Employee::new(&headcount.to_string(), "Ada", 36);
            table.transaction("Sales", async |tx| {
                let mut d = read(&tx).await?;
                d.headcount += 1;
                let employee = number(d.headcount);
                if rounds.fetch_add(1, Ordering::Relaxed) == 0 {
                    // The same, by another client: both are refused, and one of them shows the
                    // race.
                    table.insert(&employee).await?;
                    let change = table.patch(Department::key("Sales"));
                    change.set(|d| d.headcount, d.headcount).await?;
                }
                if is_insert_first {
                    tx.insert(&employee).replace(d);
                } else {
                    tx.replace(d).insert(&employee);
                }
                Ok(())
            }).await.unwrap();
            assert_eq!(rounds.into_inner(), 2);
            assert_eq!(department(&table).await.headcount, hired);
        }
    }

    async fn an_insert_that_was_not_read_is_the_callers_conflict_and_has_its_index(subject: Subject) {
        let table = with_department(&subject).await;
        table.insert(&Employee::ada()).await.unwrap();
        for is_exact in [false, true] {
            let rounds = AtomicU32::new(0);
            let hire = table.transaction("Sales", async |tx| {
                rounds.fetch_add(1, Ordering::Relaxed);
                let mut d = read(&tx).await?;
                d.headcount += 1;
                tx.upsert_merge(&Employee::new("2", "Grace", 50)).insert(&Employee::ada()).replace(d);
                Ok(())
            });
            let error = if is_exact { hire.exactly_once().await } else { hire.await }.unwrap_err();
            assert!(error.is_conflict(), "{error:?}");
            assert!(is_exact || error.attempts() == 2, "{error:?}");
            assert_eq!(rounds.into_inner(), 1);
            // As the closure made the changes, without checks and marker.
            assert_eq!((error.batch_index(), error.operation()), (Some(1), Some("insert entity")));
            assert_eq!(error.key().unwrap().row_key().as_str(), "1");
            assert!(error.to_string().starts_with("change 2 of 3: insert entity"), "{error}");
            assert_eq!(department(&table).await.headcount, 0);
        }
        let refused = table.transaction("Sales", async |tx| {
            let d = read(&tx).await?;
            tx.insert(&Employee::new("3", "Alan", 41)).replace(d.clone());
            tx.insert(&Employee::new("4", "Alan", 41)).merge(d);
            Ok(())
        }).await.unwrap_err();
        assert_eq!((refused.kind(), refused.batch_index()), (ErrorKind::Input, Some(3)), "{refused:?}");
    }

    async fn the_last_conflict_is_the_error_after_all_rounds(subject: Subject) {
        let table = with_department(&subject).await;
        for is_written in [true, false] {
            let error = table.transaction("Sales", async |tx| {
                let d = read(&tx).await?;
                write_department(&table).await;
                if is_written {
                    tx.replace(d);
                }
                tx.upsert_merge(&Employee::ada());
                Ok(())
            }).rounds(3).await.unwrap_err();
            assert!(error.is_precondition_failed(), "{error:?}");
            assert_eq!(error.attempts(), 6, "a read and a batch in each round");
            assert_eq!(error.key().unwrap().row_key().as_str(), "department");
            let operation = if is_written { "replace entity" } else { "check entity" };
            assert_eq!((error.operation(), error.batch_index()), (Some(operation), is_written.then_some(0)));
        }
        let none = table.transaction("Sales", async |_| Ok(())).rounds(0).await;
        assert_eq!(none.unwrap_err().kind(), ErrorKind::Input);
    }

    async fn an_error_of_the_closure_writes_nothing(subject: Subject) {
        let table = with_department(&subject).await;
        let error = table.transaction("Sales", async |tx| {
            tx.insert(&Employee::ada()).insert(&Employee::ada());
            Err::<(), _>(NoDepartment.into())
        }).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Aborted, Some("transaction")));
        assert_eq!(error.downcast_ref(), Some(&NoDepartment));

        // An error of the client is returned as it is.
        let missing = subject.service.table("Missing");
        let error = table.transaction("Sales", async |tx| {
            tx.insert(&Employee::ada());
            missing.insert(&Employee::ada()).await?;
            Ok(())
        }).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Service, Some("insert entity")));
        let error = missing.transaction("Sales", async |tx| {
            tx.insert(&Employee::ada());
            tx.get(Department::key("Sales")).await?;
            Ok(())
        }).await.unwrap_err();
        assert_eq!(error.code().unwrap().as_str(), "TableNotFound");
        assert_eq!((error.operation(), error.attempts()), (Some("transaction"), 1));
        assert!(Employee::find(&table).await.is_none());
    }

    async fn an_entity_of_another_type_is_an_error_of_the_read(subject: Subject) {
        let table = with_department(&subject).await;
        let error = table.transaction("Sales", async |tx| {
            tx.get::<Employee>(("Sales", "department")).await?;
            Ok(())
        }).await.unwrap_err();
        assert_eq!(error.key().unwrap().row_key().as_str(), "department");
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Data, 1), "{error:?}");
    }

    async fn a_second_read_returns_the_same_version_as_any_type(subject: Subject) {
        let table = with_department(&subject).await;
        let (first, second, missing) = table.transaction("Sales", async |tx| {
            let first = read(&tx).await?;
            let missing = tx.get(Employee::key("Sales", "1")).await?.is_none();
            write_department(&table).await;
            table.insert(&Employee::ada()).await?;
            let second = tx.get::<DynamicEntity>(("Sales", "department")).await?.ok_or(NoDepartment)?;
            let still_missing = tx.get(Employee::key("Sales", "1")).await?.is_none();
            Ok((first, second, (missing, still_missing)))
        }).await.unwrap();
        assert_eq!(first.etag(), second.etag());
        assert_eq!(second.properties().read::<i32>("OnCall").unwrap(), 2);
        assert_eq!(missing, (true, true));
    }

    async fn a_missing_entity_is_checked_by_its_insert_alone(subject: Subject) {
        let table = with_department(&subject).await;
        let rounds = AtomicU32::new(0);
        table.transaction("Sales", async |tx| {
            rounds.fetch_add(1, Ordering::Relaxed);
            assert!(tx.get(Employee::key("Sales", "1")).await?.is_none());
            table.insert(&Employee::ada()).await?;
            tx.insert(&Employee::new("2", "Grace", 50));
            Ok(())
        }).await.unwrap();
        // As the documentation says.
        assert_eq!(rounds.into_inner(), 1);
    }

    async fn another_partition_is_refused_by_name(subject: Subject) {
        let table = with_department(&subject).await;
        let elsewhere = Employee { department: "Legal".into(), ..Employee::ada() };
        let read = table.transaction("Sales", async |tx| {
            tx.get(Employee::key("Legal", "1")).await?;
            Ok(())
        }).await.unwrap_err();
        let written = table.transaction("Sales", async |tx| {
            tx.upsert_merge(&Employee::ada()).insert(&elsewhere);
            Ok(())
        }).await.unwrap_err();
        for (error, index) in [(read, None), (written, Some(1))] {
            assert_eq!((error.kind(), error.batch_index()), (ErrorKind::Input, index), "{error:?}");
            assert_eq!(error.key().unwrap().partition_key().as_str(), "Legal");
            assert!(error.to_string().contains(r#"not in the partition "Sales""#), "{error:?}");
        }
        let error = table.transaction("a/b", async |_| Ok(())).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Input && error.to_string().contains("'/'"), "{error:?}");
        assert!(Employee::find(&table).await.is_none());
    }
}

#[tokio::test]
async fn a_transaction_has_100_changes_and_checks() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    for id in 0..3 {
        let read = Employee::new(&format!("read{id}"), "Ada", id);
        table.insert(&read).await.unwrap();
    }
    let transaction = |written: usize| {
        table.transaction("Sales", move |tx| async move {
            for id in 0..3 {
                let key = Employee::key("Sales", format!("read{id}"));
                tx.get(key).await?.expect("it was inserted");
            }
            for id in 0..written {
                tx.upsert_merge(&Employee::new(&format!("written{id}"), "Ada", 36));
            }
            Ok(())
        })
    };
    for error in [
        transaction(98).await.unwrap_err(),
        transaction(97).exactly_once().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
        assert!(error.to_string().contains("3 checks"), "{error:?}");
    }
    assert_eq!(journal.requests().op(Op::Batch).count(), 0);
    transaction(97).await.unwrap();
    transaction(96).exactly_once().await.unwrap();
    assert_eq!(journal.requests().op(Op::Batch).count(), 2);
    // Without a read as well.
    let error = table.transaction("Sales", async |tx| {
        for id in 0..101 {
            tx.insert(&Employee::new(&format!("new{id}"), "Ada", 36));
        }
        Ok(())
    });
    let error = error.await.unwrap_err();
    assert!(error.to_string().contains("101"), "{error:?}");
    assert_eq!(journal.requests().op(Op::Batch).count(), 2);
}

fn moved(ada: &Stored<Employee>) -> Stored<Employee> {
    let mut moved = ada.clone();
    moved.id = "3".into();
    moved
}

#[tokio::test]
async fn changes_that_contradict_a_read_are_refused() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let ada = table.insert(&Employee::ada()).await.unwrap();
    let cases: [(&str, Write, &str); 5] = [
        ("1", |tx, ada| tx.insert(&**ada), "replace or merge it"),
        ("2", |tx, _| tx.delete(("Sales", "2")), "insert it"),
        (
            "1",
            |tx, ada| tx.delete_stored(ada).upsert_merge(&**ada),
            "only once",
        ),
        ("1", |tx, ada| tx.replace(moved(ada)), "row key changed"),
        ("1", |tx, _| tx.delete(("Sales", "a#b")), "'#'"),
    ];
    for (id, write, words) in cases {
        // Whether the read comes before the change or after it.
        for is_read_first in [true, false] {
            let error = table.transaction("Sales", async |tx| {
                if is_read_first {
                    tx.get(Employee::key("Sales", id)).await?;
                }
                write(&tx, &ada);
                tx.get(Employee::key("Sales", id)).await?;
                Ok(())
            });
            let error = error.await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
            assert!(error.to_string().contains(words), "{error:?}: {words}");
            assert!(error.batch_index().is_some(), "{error:?}");
        }
    }
    assert_eq!(journal.requests().op(Op::Batch).count(), 0);
}

#[tokio::test]
async fn a_transaction_without_changes_sends_no_batch() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    insert_department(&table).await;
    let journal = subject.server().journal();
    let headcount = table.transaction("Sales", async |tx| {
        let d = read(&tx).await?;
        Ok(d.headcount)
    });
    assert_eq!(headcount.exactly_once().await.unwrap(), 0);
    assert_eq!(journal.requests().count(), 1);
    assert_eq!(
        table.transaction("Sales", async |_| Ok(1)).await.unwrap(),
        1
    );
    assert_eq!(journal.requests().count(), 1);
}

#[tokio::test]
async fn joined_reads_send_one_request_for_each_entity() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    insert_department(&table).await;
    table.insert(&Employee::ada()).await.unwrap();
    let read = table.transaction("Sales", async |tx| {
        let department = || tx.get(Department::key("Sales"));
        let (one, two, ada) = tokio::try_join!(department(), department(), async {
            tx.get(Employee::key("Sales", "1")).await
        })?;
        // A read whose future was dropped.
        drop(tx.get(Employee::key("Sales", "2")));
        assert_eq!(one, two);
        Ok(one.is_some() && ada.is_some())
    });
    assert!(read.await.unwrap());
    assert_eq!(journal.requests().op(Op::QueryEntity).count(), 2);
}

#[tokio::test]
async fn a_handle_that_outlives_its_closure_is_of_no_use() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let tx = table.transaction("Sales", async |tx| Ok(tx)).await.unwrap();
    let error = tx.get(Employee::key("Sales", "1")).await.unwrap_err();
    assert!(error.to_string().contains("has returned"), "{error:?}");
    tx.insert(&Employee::ada());
    assert!(journal.requests().is_empty());
}

/// A web handler: its future is `Send`, borrows what it is given, and passes its own errors on.
async fn hire(table: &TableClient, employee: &Employee, note: &str) -> Result<i32, ClosureError> {
    let headcount = table
        .transaction(Employee::partition(&employee.department), async |tx| {
            let mut d = read(&tx).await?;
            d.headcount += 1;
            let headcount = d.headcount;
            tx.replace(d).insert(&Employee {
                email: Some(note.to_owned()),
                ..employee.clone()
            });
            Ok(headcount)
        })
        .rounds(100)
        .await?;
    Ok(headcount)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_borrows_can_be_spawned() {
    let subject = Subject::in_process();
    let table = with_department(&subject).await;
    let tasks = (0..8).map(|id| {
        let table = table.clone();
        tokio::spawn(async move {
            let employee = Employee::new(&id.to_string(), "Ada", id);
            let note = format!("hired as number {id}");
            hire(&table, &employee, &note).await
        })
    });
    let mut counts = BTreeSet::new();
    for task in futures::future::join_all(tasks).await {
        counts.insert(task.unwrap().unwrap());
    }
    assert_eq!(counts, (1..=8).collect());
    assert_eq!(department(&table).await.headcount, 8);
}

async fn promote(tx: Transaction) -> Result<i32, ClosureError> {
    let ada = tx.get(Employee::key("Sales", "1")).await?;
    let mut ada = ada.ok_or("she left")?;
    ada.age += 1;
    let age = ada.age;
    tx.replace(ada);
    Ok(age)
}

fn promotion(table: &TableClient) -> RunTransaction<'static, i32> {
    table.transaction("Sales", promote)
}

#[tokio::test]
async fn closures_of_every_form_are_accepted() {
    let subject = Subject::in_process();
    let table = with_department(&subject).await;
    let employee = &Employee::ada();
    // A reference is moved, owned values are cloned for each round.
    let moves = table.transaction("Sales", async move |tx| {
        tx.upsert_merge(employee);
        Ok(())
    });
    moves.await.unwrap();
    let clones = table.transaction("Sales", |tx| {
        let employee = employee.clone();
        async move {
            tx.upsert_merge(&employee);
            Ok(())
        }
    });
    clones.await.unwrap();
    // A function, and an action that borrows nothing.
    assert_eq!(promotion(&table).await.unwrap(), 37);
}

#[tokio::test]
async fn a_transaction_is_reported_as_one_operation() {
    let server = TableServer::in_process();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    let service = client_with(&server, |builder| {
        builder.on_operation(move |report: &OperationReport| {
            seen.lock().unwrap().push(report.clone());
        })
    });
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    insert_department(&table).await;
    let rounds = AtomicU32::new(0);
    reports.lock().unwrap().clear();
    table
        .transaction("Sales", async |tx| {
            read(&tx).await?;
            if rounds.fetch_add(1, Ordering::Relaxed) == 0 {
                write_department(&table).await;
            }
            tx.insert(&Employee::ada());
            Ok(())
        })
        .await
        .unwrap();
    let reports = reports.lock().unwrap();
    let [of_patch, report] = &reports[..] else {
        panic!("{reports:?}")
    };
    assert_ne!(of_patch.operation, "transaction");
    assert_eq!(
        (report.operation, report.table.as_deref()),
        ("transaction", Some("Tests"))
    );
    assert_eq!((report.attempts, report.entities), (4, 2));
    assert_eq!(report.error, None);
}
