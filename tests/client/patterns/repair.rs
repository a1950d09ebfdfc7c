//! `repair` after writes of programs that do not know the index, beside writers, and under faults.

use std::time::Duration;

use fastrand::Rng;
use harness::company::indexed::{ByEmail, Employee, checked, rows};
use harness::{Subject, seeds};
use tablesdk::index::RepairReport;
use tablesdk::{DynamicEntity, ETag, RetryPolicy, TableClient, TableEntity};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::on_both_transports;

/// Its index uses the text in front of another one's row keys.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "customer_{number}")]
#[table(index(OfCustomer, row_key = "email_{email}", unique))]
struct Customer {
    department: String,
    number: u32,
    email: String,
}

/// An employee as a program writes it that does not know the indexes.
pub(crate) fn foreign(id: u32, name: &str, email: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", format!("empid_{id:06}"))
        .with("LastName", name)
        .with("Email", email)
        .with("Age", 36)
}

/// The numbers of entries that are missing, stale and without their entity.
pub(crate) fn counts(report: &RepairReport) -> (u64, u64, u64) {
    (report.missing, report.stale, report.orphaned)
}

on_both_transports! {
    async fn a_repair_mends_what_other_programs_did(subject: Subject) {
        let table = subject.table().await;
        for (id, name) in [(1, "Lovelace"), (2, "Hopper"), (3, "Turing"), (4, "Byron")] {
            let email = format!("{id}@contoso.com");
            table.insert(&Employee::new(id, name, Some(&email))).await.unwrap();
        }
        // Nothing is wrong: nothing is written.
        let before = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.entities, report.entries, counts(&report)), (4, 8, (0, 0, 0)));
        assert!(report.is_right());
        let after = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        assert_eq!(before.etag(), after.etag());

        table.insert(&foreign(5, "Dijkstra", "5@contoso.com")).await.unwrap(); // 2 are missing
        table.delete(("Sales", "empid_000002")).await.unwrap(); // 2 have no entity
        table.merge_if(&foreign(3, "Turing", "alan@contoso.com"), ETag::ANY).await.unwrap(); // 1 is missing, 1 has no entity, 1 is stale
        let older = DynamicEntity::new("Sales", "empid_000004").with("Age", 37);
        table.merge_if(&older, ETag::ANY).await.unwrap(); // 2 are stale
        table.merge_if(&DynamicEntity::new("Sales", "name_Turing_000003").with("Age", 1), ETag::ANY).await.unwrap(); // it is stale already

        let stored = rows(&table).await;
        let dry = table.repair::<Employee>().dry_run().await.unwrap();
        assert_eq!(counts(&dry), (3, 3, 3), "the entry by name is stale twice");
        assert_eq!(rows(&table).await.len(), stored.len());
        let mut progress = Vec::new();
        let report = table.repair::<Employee>().progress(|report| progress.push(report.mended())).await.unwrap();
        assert_eq!(counts(&report), (3, 3, 3));
        assert_eq!(progress, [6, 8, 9], "an entity's entries, and those of each index");
        assert_eq!(checked(&table).await.len(), 4);
        assert_eq!(table.repair::<Employee>().await.unwrap().mended(), 0);
    }

    async fn a_repair_of_a_partition_leaves_the_others_as_they_are(subject: Subject) {
        let table = subject.table().await;
        table.insert(&foreign(1, "Lovelace", "ada@contoso.com")).await.unwrap();
        let legal = DynamicEntity::new("Legal", "empid_000002").with("LastName", "Hopper").with("Age", 36);
        table.insert(&legal).await.unwrap();
        let report = table.repair::<Employee>().partition("Sales").await.unwrap();
        assert_eq!((report.entities, report.missing), (1, 2));
        let report = table.repair::<Employee>().dry_run().await.unwrap();
        assert_eq!((report.entities, report.missing), (2, 1));
    }

    async fn two_owners_are_reported_and_left_as_they_are(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        table.insert(&foreign(2, "Byron", "ada@contoso.com")).await.unwrap();
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(counts(&report), (1, 0, 0), "the entry by name");
        let [conflict] = &report.conflicts[..] else { panic!("{report:?}") };
        let row_key = |key: &tablesdk::key::EntityKey| key.row_key().as_str().to_owned();
        assert_eq!(conflict.index, "ByEmail");
        assert_eq!(row_key(&conflict.entry), "email_ada@contoso.com");
        assert_eq!((row_key(&conflict.owner), row_key(&conflict.other)), ("empid_000001".into(), "empid_000002".into()));
        assert!(!report.is_right());
        assert_eq!(table.get(ByEmail::key("Sales", "ada@contoso.com")).await.unwrap().unwrap().id, 1);

        // The program decides.
        let mut byron = table.get(Employee::key("Sales", 2)).await.unwrap().unwrap();
        byron.email = None;
        table.replace(&mut byron).await.unwrap();
        checked(&table).await;
    }

    async fn an_entity_that_cannot_be_read_keeps_its_entries(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        let unreadable = DynamicEntity::new("Sales", "empid_000001").with("Age", "thirty-six");
        table.merge_if(&unreadable, ETag::ANY).await.unwrap();
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((report.entities, counts(&report)), (0, (0, 0, 0)));
        assert!(report.unreadable[0].contains("empid_000001"), "{report:?}");
        assert_eq!(rows(&table).await.len(), 3);
        let taken = table.insert(&Employee::new(2, "Byron", Some("ada@contoso.com"))).await.unwrap_err();
        assert_eq!(taken.index(), Some("ByEmail"));
    }

    async fn what_is_no_entry_is_kept(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        // Another program uses the same text in front of its row keys.
        let letter = DynamicEntity::new("Sales", "email_letter").with("Text", "Dear Ada");
        table.insert(&letter).await.unwrap();
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(counts(&report), (0, 0, 0));
        assert!(report.unreadable[0].contains(r#"("Sales", "email_letter") cannot be read as an entry of the index ByEmail"#), "{report:?}");
        let taken = table.insert(&Employee::new(2, "Byron", Some("letter"))).await.unwrap_err();
        assert_eq!(taken.index(), Some("ByEmail"));
        assert!(rows(&table).await.contains_key("email_letter"));

        // A damaged entry is written again.
        let damaged = DynamicEntity::new("Sales", "email_ada@contoso.com").with("Id", "one");
        table.merge_if(&damaged, ETag::ANY).await.unwrap();
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(counts(&report), (0, 1, 0));
        table.delete(("Sales", "email_letter")).await.unwrap();
        checked(&table).await;
    }

    async fn an_entity_whose_entry_cannot_be_written_does_not_end_the_repair(subject: Subject) {
        let table = subject.table().await;
        for (id, email) in [(1, "ada@contoso.com"), (2, "a/b"), (3, "alan@contoso.com")] {
            table.insert(&foreign(id, "Doe", email)).await.unwrap();
        }
        let report = table.repair::<Employee>().dry_run().await.unwrap();
        assert!(!report.is_right());
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(counts(&report), (4, 0, 0));
        assert!(report.unreadable[0].contains("its entry in the index ByEmail"), "{report:?}");
        assert!(!report.is_right());
        table.delete(("Sales", "empid_000002")).await.unwrap();
        checked(&table).await;
        let report = table.repair::<Employee>().dry_run().await.unwrap();
        assert!(report.is_right());
    }

    async fn an_entity_of_another_type_under_the_key_of_an_entry_is_left_alone(subject: Subject) {
        let table = subject.table().await;
        table.insert(&foreign(1, "Lovelace", "ada@contoso.com")).await.unwrap();
        let mailbox = DynamicEntity::new("Sales", "email_ada@contoso.com").with("Unread", 7);
        table.insert(&mailbox).await.unwrap();
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((counts(&report), report.conflicts.len()), ((1, 0, 0), 1));
        let mut ada = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        ada.age += 1;
        table.replace(&mut ada).await.unwrap();
        assert!(table.delete_stored(&ada).await.unwrap());
        let left = table.query::<DynamicEntity>().partition("Sales").values().one().await.unwrap();
        assert_eq!(left.unwrap().properties().read::<i32>("Unread").unwrap(), 7);
    }

    async fn indexes_of_two_types_with_the_same_text_leave_each_other_alone(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        let customer = |email: &str| Customer { department: "Sales".into(), number: 1, email: email.into() };
        let taken = table.insert(&customer("ada@contoso.com")).await.unwrap_err();
        assert_eq!(taken.index(), Some("OfCustomer"));
        table.insert(&customer("byron@contoso.com")).await.unwrap();
        let report = table.repair::<Customer>().await.unwrap();
        assert_eq!((counts(&report), report.unreadable.len()), ((0, 0, 0), 1));
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!((counts(&report), report.unreadable.len()), ((0, 0, 0), 1));
        assert!(table.get(ByEmail::key("Sales", "ada@contoso.com")).await.unwrap().is_some());
        assert!(table.get(OfCustomer::key("Sales", "byron@contoso.com")).await.unwrap().is_some());
    }
}

/// Writes, with and without the indexes, of random employees.
async fn write(table: &TableClient, rng: &mut Rng) {
    let id = rng.u32(1..6);
    let email = format!("{}@contoso.com", rng.u8(0..4));
    let name = ["Lovelace", "King"][usize::from(rng.bool())];
    // Errors are those of rivals and faults.
    match rng.u8(0..6) {
        0 => drop(table.upsert_replace(&foreign(id, name, &email)).await),
        1 => drop(table.delete(("Sales", format!("empid_{id:06}"))).await),
        2 => drop(table.delete(("Sales", format!("email_{email}"))).await),
        3 => drop(table.insert(&Employee::new(id, name, Some(&email))).await),
        4 => {
            let change = |e: &mut Employee| {
                e.last_name = name.into();
                e.email = None;
                Ok(())
            };
            drop(table.modify(Employee::key("Sales", id), change).await);
        }
        _ => {
            if let Ok(Some(found)) = table.get(Employee::key("Sales", id)).await {
                drop(table.delete_stored(&found).await);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_random_foreign_writes_and_faults_a_repair_makes_it_right() {
    for seed in seeds("TABLESDK_REPAIR_SEED", 8) {
        println!("TABLESDK_REPAIR_SEED={seed}");
        fastrand::seed(seed);
        let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
        let late = Fault::reset().applied_after(Duration::from_secs(5));
        let batches = faults.on(Op::Batch).probability(0.1).seed(seed);
        batches.inject(late);
        faults.chaos(seed);
        let writer = async {
            let mut rng = Rng::with_seed(seed);
            for _ in 0..200 {
                write(&table, &mut rng).await;
                sleep(Duration::from_millis(rng.u64(..50))).await;
            }
        };
        let repairer = async {
            loop {
                // Its errors are those of faults.
                drop(table.repair::<Employee>().concurrency(3).await);
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = writer => {}
            () = repairer => unreachable!(),
        }
        faults.clear();
        sleep(Duration::from_secs(60)).await;
        // What a foreign program gave two owners has to be decided first.
        let report = table.repair::<Employee>().await.unwrap();
        for conflict in &report.conflicts {
            let other = conflict.other.row_key().as_str();
            let id: u32 = other.strip_prefix("empid_").unwrap().parse().unwrap();
            let other = table.get(Employee::key("Sales", id)).await.unwrap();
            let mut other = other.unwrap();
            other.email = None;
            table.replace(&mut other).await.unwrap();
        }
        checked(&table).await;
        assert_eq!(table.repair::<Employee>().await.unwrap().mended(), 0);
    }
}
