//! Moves to another key: what is written, what stays, and what is sent.

use futures::stream;
use harness::client;
use harness::company::indexed::{ByEmail, Employee as Indexed, checked, rows};
use tablesdk::action::CurrentState;
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, TableClient};
use tablesdk_server::TableServer;

use super::moves::{Plain, tables};
use super::other_partitions::{Employee, employee, exact, none_missing};
use super::staff::{self, Department, Staff};
use super::unique_over_partitions;
use crate::on_both_transports;

/// The version of the entity in each department.
pub(crate) async fn versions(table: &TableClient, id: &str) -> Vec<(String, i64)> {
    let found = table.query::<Plain>().values().collect().await;
    let found = found.expect("the table can be read").into_iter();
    let found = found.filter(|found| found.id == id);
    found
        .map(|found| (found.department, found.version))
        .collect()
}

fn of(found: &[(&str, i64)]) -> Vec<(String, i64)> {
    let found = found.iter();
    found
        .map(|(department, version)| ((*department).to_owned(), *version))
        .collect()
}

on_both_transports! {
    async fn an_entity_moves_to_another_partition_with_all_its_properties(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let whole = DynamicEntity::from_entity(&Plain::new("1", 1)).unwrap()
            .with("Badge", 7_i64)
            .with("Photo", vec![0_u8, 255]);
        table.insert(&whole).await.unwrap();
        let mut found = Plain::find(&table, "1").await.unwrap();
        let before = found.etag().clone();
        found.department = "Legal".into();
        found.version = 2;
        let etag = table.move_key(&mut found).await.unwrap();
        assert_eq!((found.etag() == &etag, etag == before), (true, false));
        assert_eq!(found.key().partition_key().as_str(), "Legal");
        assert_eq!(versions(&table, "1").await, of(&[("Legal", 2)]));
        let stored = table.get::<DynamicEntity>(("Legal", "1")).await.unwrap().unwrap();
        assert_eq!(stored.properties(), whole.with("version", 2_i64).properties());
        // It has its new version.
        found.version = 3;
        table.replace(&mut found).await.unwrap();
    }

    async fn an_entity_moves_within_its_partition(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let whole = DynamicEntity::from_entity(&Plain::new("1", 1)).unwrap().with("Badge", 7_i64);
        table.insert(&whole).await.unwrap();
        let mut found = Plain::find(&table, "1").await.unwrap();
        found.id = "2".into();
        table.move_key(&mut found).await.unwrap();
        assert!(Plain::find(&table, "1").await.is_none());
        let stored = table.get::<DynamicEntity>(("Sales", "2")).await.unwrap().unwrap();
        assert_eq!(stored.properties(), whole.properties());
        found.version = 3;
        table.replace(&mut found).await.unwrap();
    }

    async fn a_value_with_the_same_key_is_replaced(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let whole = DynamicEntity::from_entity(&Plain::new("1", 1)).unwrap().with("Badge", 7_i64);
        table.insert(&whole).await.unwrap();
        let mut found = Plain::find(&table, "1").await.unwrap();
        found.version = 2;
        table.move_key(&mut found).await.unwrap();
        let stored = table.get::<DynamicEntity>(("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(stored.properties(), whole.with("version", 2_i64).properties());
        assert_eq!(stored.etag(), found.etag());
    }

    async fn a_move_that_ended_is_finished_or_found_done(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        for id in ["1", "2"] {
            let mut first = table.insert(&Plain::new(id, 1)).await.unwrap();
            first.department = "Legal".into();
            let mut again = first.clone();
            if id == "1" {
                // It ended between its two writes.
                table.insert(&*first).await.unwrap();
            } else {
                table.move_key(&mut first).await.unwrap();
            }
            table.move_key(&mut again).await.unwrap();
            assert_eq!(versions(&table, id).await, of(&[("Legal", 1)]));
            again.version = 2;
            table.replace(&mut again).await.unwrap();
        }
    }

    async fn another_entity_under_the_new_key_is_a_conflict(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        for (department, id) in [("Legal", "1"), ("Sales", "2")] {
            let stored = table.insert(&Plain::new("1", 2)).await.unwrap();
            let other = Plain { department: department.into(), ..Plain::new(id, 1) };
            table.insert(&other).await.unwrap();
            let moved = || {
                let mut moved = stored.clone();
                (moved.department, moved.id) = (department.into(), id.into());
                moved
            };
            let error = table.move_key(&mut moved()).await.unwrap_err();
            assert_eq!(error.code(), Some(&ErrorCode::EntityAlreadyExists), "{error}");
            assert_eq!((error.operation(), error.key().unwrap().row_key().as_str()), (Some("move entity"), id));
            let Some(CurrentState::Present(there)) = error.current() else { panic!("{error}") };
            assert_eq!(there.read::<Plain>().unwrap().version, 1);
            assert_eq!(Plain::find(&table, "1").await.unwrap().version, 2);

            let mut moved = moved();
            table.move_key(&mut moved).overwrite().await.unwrap();
            assert!(Plain::find(&table, "1").await.is_none());
            let there = table.get(Plain::key(department, id)).await.unwrap().unwrap();
            assert_eq!((there.version, there.etag()), (2, moved.etag()));
        }
    }

    async fn an_entity_that_was_changed_or_deleted_is_not_moved(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        for (department, id) in [("Legal", "1"), ("Sales", "2")] {
            let mut stale = table.insert(&Plain::new("1", 1)).await.unwrap();
            let mut newer = stale.clone();
            newer.version = 2;
            table.replace(&mut newer).await.unwrap();
            (stale.department, stale.id) = (department.into(), id.into());
            let error = table.move_key(&mut stale).await.unwrap_err();
            assert!(error.is_precondition_failed(), "{error}");
            assert_eq!(error.key().unwrap().row_key().as_str(), "1");
            table.delete(Plain::key("Sales", "1")).await.unwrap();
            let error = table.move_key(&mut stale).await.unwrap_err();
            assert!(error.is_not_found(), "{error}");
            assert_eq!(table.query::<Plain>().count().await.unwrap(), 0);
            assert_eq!(stale.key().row_key().as_str(), "1", "a failed move leaves the stored key");
        }
    }

    async fn entries_of_indexes_and_copies_move_with_the_entity(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        // The entry of a unique index passes from the one to the other.
        let mut ada = table.insert(&Indexed::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        ada.id = 2;
        table.move_key(&mut ada).await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        let found = table.get(ByEmail::key("Sales", "ada@contoso.com")).follow().await.unwrap();
        assert_eq!(found.unwrap().id, 2);
        ada.email = Some("king@contoso.com".into());
        ada.id = 3;
        table.move_key(&mut ada).await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        ada.department = "Legal".into();
        table.move_key(&mut ada).await.unwrap();
        assert_eq!(checked(&table).await.len(), 0);
        let found = table.get(ByEmail::key("Legal", "king@contoso.com")).follow().await.unwrap();
        assert_eq!(found.unwrap().id, 3);
        assert!(table.repair::<Indexed>().await.unwrap().is_right());
    }

    async fn the_entry_of_another_entity_is_a_conflict(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let mut ada = table.insert(&Indexed::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        let legal = Indexed { department: "Legal".into(), ..Indexed::new(9, "King", Some("ada@contoso.com")) };
        table.insert(&legal).await.unwrap();
        ada.department = "Legal".into();
        let error = table.move_key(&mut ada).await.unwrap_err();
        assert_eq!((error.is_conflict(), error.index()), (true, Some("ByEmail")));
        table.insert(&Indexed::new(9, "King", Some("king@contoso.com"))).await.unwrap();
        ada.department = "Sales".into();
        (ada.id, ada.email) = (2, Some("king@contoso.com".into()));
        let error = table.move_key(&mut ada).await.unwrap_err();
        assert_eq!((error.is_conflict(), error.index()), (true, Some("ByEmail")), "{error}");
        assert_eq!(checked(&table).await.len(), 2);
        assert!(table.get(Indexed::key("Sales", 1)).await.unwrap().is_some());
    }

    async fn a_query_is_moved_to_another_partition_in_batches(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let entities = || (0..250).map(|id| {
            DynamicEntity::new("Sales", format!("{id:03}")).with("version", i64::from(id)).with("Badge", 7)
        });
        assert!(table.bulk().insert(stream::iter(entities())).await.unwrap().is_success());
        let late = || table.query::<Plain>().filter(|e| e.version.ge(50)).select(|e| e.id);
        let to_legal = |e: &mut Plain| e.department = "Legal".into();
        let dry = late().move_keys(to_legal).dry_run().await.unwrap();
        assert_eq!((dry.progress().read, dry.progress().requests), (200, 0));
        let mut moved = 0;
        let run = late().move_keys(to_legal).concurrency(1).progress(|it| moved = it.written);
        let report = run.await.unwrap();
        assert!(report.is_success(), "{report:?}");
        // Batches of 99 inserts, and batches of as many deletes.
        assert_eq!((report.progress().written, report.progress().requests), (200, 6));
        assert_eq!(moved, 200);
        let legal = table.query::<DynamicEntity>().partition("Legal").values().collect().await.unwrap();
        let expected: Vec<_> = entities().skip(50).collect();
        assert_eq!(legal.len(), 200);
        assert!(legal.iter().zip(&expected).all(|(found, expected)| {
            found.row_key() == expected.row_key() && found.properties() == expected.properties()
        }));
        let again = table.query::<Plain>().move_keys(to_legal).await.unwrap();
        assert_eq!((again.progress().written, again.progress().skipped), (50, 200));
        assert_eq!(table.query::<Plain>().partition("Legal").count().await.unwrap(), 250);
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 250, "no marker is left");
    }

    async fn a_query_moves_each_entity_once_although_it_finds_it_again(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let entities = (0..250).map(|id| Plain::new(&format!("{id:03}"), id));
        assert!(table.bulk().insert(stream::iter(entities)).await.unwrap().is_success());
        let sales = table.query::<Plain>().partition("Sales").page_size(20);
        let run = sales.move_keys(|e| e.id.insert(0, 'x')).concurrency(1);
        let report = run.await.unwrap();
        // A transaction has at most 50 entities; fewer where the run waits for the next page.
        let progress = report.progress();
        assert_eq!((progress.written, progress.read, progress.skipped), (250, 250, 0));
        assert!(progress.requests >= 5, "{progress:?}");
        let found = table.query::<Plain>().values().collect().await.unwrap();
        assert_eq!(found.len(), 250);
        assert!(found.iter().all(|e| e.id == format!("x{:03}", e.version)));
    }

    async fn what_cannot_be_moved_stays_and_is_reported(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        for id in 0..120 {
            table.insert(&Plain::new(&format!("{id:03}"), id)).await.unwrap();
        }
        let there = |id: i64, version| Plain { department: "Legal".into(), ..Plain::new(&format!("{id:03}"), version) };
        // As a run leaves it that ended in between, and entities of others.
        for id in 10..20 {
            table.insert(&there(id, id)).await.unwrap();
        }
        for id in [3, 110] {
            table.insert(&there(id, -1)).await.unwrap();
        }
        let sales = || table.query::<Plain>().partition("Sales");
        let to_legal = |e: &mut Plain| {
            e.department = "Legal".into();
            if e.version == 50 {
                e.id = "5/0".into();
            }
        };
        let report = sales().move_keys(to_legal).await.unwrap();
        assert_eq!((report.progress().written, report.progress().failed), (117, 3), "{report:?}");
        let mut failed: Vec<_> = report.failures().iter().map(|it| {
            (it.key().unwrap().row_key().as_str(), it.error().kind(), it.is_outcome_unknown())
        }).collect();
        failed.sort_unstable_by_key(|it| it.0);
        let service = ErrorKind::Service;
        assert_eq!(failed, [("003", service, false), ("050", ErrorKind::Input, false), ("110", service, false)]);
        assert!(report.failures().iter().all(|it| it.key().unwrap().partition_key().as_str() == "Sales"));
        assert_eq!(sales().count().await.unwrap(), 3);
        let report = sales().move_keys(|e| e.department = "Legal".into()).overwrite().await.unwrap();
        assert_eq!((report.progress().written, report.progress().failed), (3, 0));
        let legal = table.query::<Plain>().values().collect().await.unwrap();
        assert!(legal.len() == 120 && legal.iter().all(|e| e.id == format!("{:03}", e.version)));
    }

    async fn entities_of_a_query_move_with_their_entries(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        for id in 1..=60 {
            let email = format!("{id}@contoso.com");
            table.insert(&Indexed::new(id, "Jones", Some(&email))).await.unwrap();
        }
        let sales = || table.query::<Indexed>().partition("Sales");
        let report = sales().move_keys(|e| e.id += 100).await.unwrap();
        assert_eq!(report.progress().written, 60, "{report:?}");
        let found = checked(&table).await;
        assert!(found.len() == 60 && found.iter().all(|e| e.id > 100));
        let report = sales().move_keys(|e| e.department = "Legal".into()).await.unwrap();
        assert_eq!(report.progress().written, 60, "{report:?}");
        assert_eq!(rows(&table).await.len(), 0);
        let entries = table.query::<ByEmail>().partition("Legal").count().await.unwrap();
        assert_eq!(entries, 60);
        assert!(table.repair::<Indexed>().await.unwrap().is_right());
    }

    async fn a_key_that_breaks_a_rule_is_refused_before_anything_is_sent(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        let mut stored = table.insert(&Plain::new("1", 1)).await.unwrap();
        for id in ["a/b".to_owned(), "x".repeat(600)] {
            stored.id = id;
            let error = table.move_key(&mut stored).await.unwrap_err();
            assert_eq!((error.kind(), error.attempts()), (ErrorKind::Input, 0), "{error}");
        }
        stored.id = "1".into();
        let missing = subject.service.table("Nowhere");
        stored.department = "Legal".into();
        assert!(missing.move_key(&mut stored).await.unwrap_err().is_table_not_found());
    }
}

#[tokio::test]
async fn entries_in_other_partitions_follow() {
    let server = TableServer::in_process();
    let (table, _) = tables(&client(&server)).await;
    let mut jones = table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
    for (department, id) in [("Legal", 1), ("Legal", 2), ("Sales", 1)] {
        (jones.department, jones.id) = (department.into(), id);
        table.move_key(&mut jones).await.unwrap();
        none_missing(&table).await;
        exact(&table).await;
        let found = table.query::<Employee>().values().collect().await.unwrap();
        assert_eq!(found, [jones.clone().into_inner()]);
    }
}

#[tokio::test]
async fn an_entity_with_a_unique_value_over_partitions_stays() {
    let server = TableServer::in_process();
    let (table, _) = tables(&client(&server)).await;
    let ada = unique_over_partitions::employee(1, "ada@contoso.com");
    let mut ada = table.insert(&ada).await.unwrap();
    let journal = server.journal();
    journal.clear();
    ada.id = 2;
    let error = table.move_key(&mut ada).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert!(error.to_string().contains("ByEmail"), "{error}");
    assert_eq!(journal.requests().count(), 0);
}

#[tokio::test]
async fn copies_of_every_kind_follow() {
    let server = TableServer::in_process();
    let (table, _) = tables(&client(&server)).await;
    staff::open(&table).await;
    let mut ada = table.insert(&staff::ada()).await.unwrap();
    // The badge has no part of the key: the copy passes from the one to the other.
    ada.id = 2;
    table.move_key(&mut ada).await.unwrap();
    assert_eq!(staff::checked(&table).await, [ada.clone().into_inner()]);
    let legal = Department {
        department: "Legal".to_owned(),
        ..staff::department(&table).await
    };
    ada.department = "Legal".to_owned();
    let error = table.move_key(&mut ada).await.unwrap_err();
    assert_eq!(error.index(), Some("ManagerOf"), "{error}");
    assert_eq!(staff::checked(&table).await.len(), 1);
    table.insert(&legal).await.unwrap();
    table.move_key(&mut ada).await.unwrap();
    assert_eq!(staff::checked(&table).await.len(), 0);
    assert!(table.repair::<Staff>().await.unwrap().is_right());
    ada.department = "Sales".to_owned();
    table.move_key(&mut ada).await.unwrap();
    assert_eq!(staff::checked(&table).await, [ada.into_inner()]);
}

#[tokio::test]
async fn a_move_is_two_requests_in_a_partition_and_four_between_two() {
    let server = TableServer::in_process();
    let journal = server.journal();
    let (table, _) = tables(&client(&server)).await;
    let mut stored = table.insert(&Plain::new("1", 1)).await.unwrap();
    for (department, id, requests) in [("Sales", "2", 2), ("Legal", "2", 4), ("Legal", "2", 2)] {
        (stored.department, stored.id) = (department.into(), id.into());
        journal.clear();
        table.move_key(&mut stored).await.unwrap();
        assert_eq!(journal.requests().count(), requests, "{department}, {id}");
    }
}
