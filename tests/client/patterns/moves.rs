//! Moves into another table: what is moved, what stays, and what is sent.

use futures::stream;
use harness::client;
use harness::company::indexed::{ByEmail, Employee, checked};
use tablesdk::action::CurrentState;
use tablesdk::outbox::Step;
use tablesdk::{DynamicEntity, ETag, ErrorCode, ErrorKind, Stored, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use crate::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
pub(crate) struct Plain {
    pub(crate) department: String,
    pub(crate) id: String,
    pub(crate) version: i64,
}

impl Plain {
    pub(crate) fn new(id: &str, version: i64) -> Self {
        Self {
            department: "Sales".to_owned(),
            id: id.to_owned(),
            version,
        }
    }

    pub(crate) async fn find(table: &TableClient, id: &str) -> Option<Stored<Self>> {
        let found = table.get(Self::key("Sales", id)).await;
        found.expect("the table can be read")
    }
}

pub(crate) async fn tables(service: &tablesdk::TableServiceClient) -> (TableClient, TableClient) {
    let (table, archive) = (service.table("Company"), service.table("Archive"));
    table.create_table().await.unwrap();
    archive.create_table().await.unwrap();
    (table, archive)
}

/// The version of an entity in each table.
pub(crate) async fn versions(id: &str, [one, two]: [&TableClient; 2]) -> [Option<i64>; 2] {
    let version = async |table| Plain::find(table, id).await.map(|found| found.version);
    [version(one).await, version(two).await]
}

on_both_transports! {
    async fn an_entity_is_moved_with_all_its_properties(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let whole = DynamicEntity::from_entity(&Plain::new("1", 1)).unwrap()
            .with("Badge", 7_i64)
            .with("Photo", vec![0_u8, 255])
            .with("Salary", 1.0)
            .with("Boss", tablesdk::Guid::from_bytes([7; 16]));
        table.insert(&whole).await.unwrap();
        let mut found = Plain::find(&table, "1").await.unwrap();
        // What was not written is not moved.
        found.version = 5;
        let before = found.etag().clone();
        let mut archived = table.move_to(&archive, found).await.unwrap();
        assert_eq!((archived.version, *archived.etag() == before), (1, false));
        assert!(Plain::find(&table, "1").await.is_none());
        let stored = archive.get::<DynamicEntity>(("Sales", "1")).await.unwrap().unwrap();
        assert_eq!(stored.properties(), whole.properties());
        // It has the ETag of the archive.
        archived.version = 2;
        archive.replace(&mut archived).await.unwrap();
    }

    async fn a_moved_entity_is_not_that_of_a_step_any_more(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let moved = async |row: &str| {
            let entity = DynamicEntity::new("Sales", row).with("version", 1);
            table.batch("Steps").step(Step::upsert_replace(&table, &entity)).await.unwrap();
            let found = table.get::<DynamicEntity>(("Sales", row)).await.unwrap().unwrap();
            assert!(found.properties().get("TablesdkStepOf").is_some());
            if row == "1" {
                drop(table.move_to(&archive, found).await.unwrap());
            } else {
                drop(table.query::<DynamicEntity>().move_to(&archive).await.unwrap());
            }
            let there = archive.get::<DynamicEntity>(("Sales", row)).await.unwrap().unwrap();
            assert!(there.properties().get("TablesdkStepOf").is_none(), "{there:?}");
        };
        moved("1").await;
        moved("2").await;
    }

    async fn another_entity_in_the_target_is_a_conflict(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let stored = table.insert(&Plain::new("1", 2)).await.unwrap();
        archive.insert(&Plain::new("1", 1)).await.unwrap();
        let error = table.move_to(&archive, stored.clone()).await.unwrap_err();
        assert!(error.is_conflict());
        assert_eq!((error.code(), error.table()), (Some(&ErrorCode::EntityAlreadyExists), Some("Archive")));
        let Some(CurrentState::Present(there)) = error.current() else { panic!("{error}") };
        assert_eq!(there.read::<Plain>().unwrap().version, 1);
        assert!(error.to_string().contains("what is there now is not what was sent: 409"), "{error}");
        assert_eq!(versions("1", [&table, &archive]).await, [Some(2), Some(1)]);

        table.move_to(&archive, stored).overwrite().await.unwrap();
        assert_eq!(versions("1", [&table, &archive]).await, [None, Some(2)]);
    }

    async fn a_move_that_ended_in_between_is_finished_by_the_next(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let stored = table.insert(&Plain::new("1", 2)).await.unwrap();
        let copy = archive.insert(&Plain::new("1", 2)).await.unwrap();
        let archived = table.move_to(&archive, stored).await.unwrap();
        assert_ne!(archived.etag(), copy.etag(), "a mover with an older version must fail");
        assert_eq!(versions("1", [&table, &archive]).await, [None, Some(2)]);
    }

    async fn an_entity_that_was_changed_or_deleted_is_not_moved(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let stale = table.insert(&Plain::new("1", 1)).await.unwrap();
        table.replace_if(&Plain::new("1", 2), ETag::ANY).await.unwrap();
        let error = table.move_to(&archive, stale.clone()).overwrite().await.unwrap_err();
        assert!(error.is_precondition_failed());
        assert_eq!((error.table(), error.operation()), (Some("Company"), Some("move entity")));
        table.delete(stale.key()).await.unwrap();
        let error = table.move_to(&archive, stale).await.unwrap_err();
        assert!(error.is_not_found());
        assert!(Plain::find(&archive, "1").await.is_none());
    }

    async fn entries_of_indexes_move_with_their_entity(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let ada = table.insert(&Employee::new(1, "Lovelace", Some("ada@contoso.com"))).await.unwrap();
        table.insert(&Employee::new(2, "Hopper", None)).await.unwrap();
        archive.insert(&Employee::new(1, "King", Some("king@contoso.com"))).await.unwrap();
        assert!(table.move_to(&archive, ada.clone()).await.unwrap_err().is_conflict());
        table.move_to(&archive, ada).overwrite().await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        let archived = checked(&archive).await;
        assert_eq!((archived.len(), archived[0].last_name.as_str()), (1, "Lovelace"));

        // The entry of another entity.
        archive.insert(&Employee::new(9, "Turing", Some("grace@contoso.com"))).await.unwrap();
        let grace = table.modify(Employee::key("Sales", 2), |e| {
            e.email = Some("grace@contoso.com".to_owned());
            Ok(())
        });
        let grace = grace.await.unwrap().into_stored();
        let error = table.move_to(&archive, grace).overwrite().await.unwrap_err();
        assert_eq!((error.is_conflict(), error.index()), (true, Some("ByEmail")));
        assert!(table.get(ByEmail::key("Sales", "grace@contoso.com")).await.unwrap().is_some());
        assert_eq!((checked(&table).await.len(), checked(&archive).await.len()), (1, 2));
    }

    async fn a_query_is_moved_in_batches(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        let entities = |department: &'static str| (0..250).map(move |id| {
            DynamicEntity::new(department, format!("{id:03}")).with("version", i64::from(id)).with("Badge", 7)
        });
        for department in ["Sales", "Legal"] {
            assert!(table.bulk().insert(stream::iter(entities(department))).await.unwrap().is_success());
        }
        let sales = || table.query::<Plain>().partition("Sales").filter(|e| e.version.ge(50)).select(|e| e.id);
        let (mut moved, mut calls) = (0, 0);
        let dry = sales().move_to(&archive).dry_run().await.unwrap();
        assert_eq!((dry.progress().read, dry.progress().requests), (200, 0));
        assert_eq!(archive.query::<DynamicEntity>().count().await.unwrap(), 0);

        let run = sales().move_to(&archive).concurrency(1).progress(|progress| {
            moved = progress.written;
            calls += 1;
        });
        let report = run.await.unwrap();
        assert!(report.is_success());
        assert_eq!((report.progress().written, report.progress().requests), (200, 4));
        assert_eq!((moved, calls), (200, 2));
        let found = archive.query::<DynamicEntity>().values().collect().await.unwrap();
        let expected: Vec<_> = entities("Sales").skip(50).collect();
        assert_eq!(found.len(), 200);
        assert!(found.iter().zip(&expected).all(|(found, expected)| found.properties() == expected.properties()));
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 300);
    }

    async fn what_the_target_has_is_adopted_or_refused(subject: Subject) {
        let (table, archive) = tables(&subject.service).await;
        for id in 0..120 {
            table.insert(&Plain::new(&format!("{id:03}"), id)).await.unwrap();
        }
        // As a run leaves it that ended in between, and entities of others.
        for id in 10..20 {
            archive.insert(&Plain::new(&format!("{id:03}"), id)).await.unwrap();
        }
        for id in [3, 110] {
            archive.insert(&Plain::new(&format!("{id:03}"), -1)).await.unwrap();
        }
        let sales = || table.query::<Plain>().partition("Sales");
        let report = sales().move_to(&archive).await.unwrap();
        assert_eq!((report.progress().written, report.progress().failed), (118, 2));
        for failure in report.failures() {
            assert!(failure.error().is_conflict() && !failure.is_outcome_unknown(), "{failure}");
        }
        let left: Vec<_> = sales().values().collect().await.unwrap();
        assert_eq!(left, [Plain::new("003", 3), Plain::new("110", 110)]);
        let report = sales().move_to(&archive).overwrite().await.unwrap();
        assert_eq!((report.progress().written, report.progress().failed), (2, 0));
        let found = archive.query::<Plain>().values().collect().await.unwrap();
        assert!(found.len() == 120 && found.iter().all(|e| e.id == format!("{:03}", e.version)));
    }

    async fn a_target_that_cannot_be_one_is_refused(subject: Subject) {
        let (table, _archive) = tables(&subject.service).await;
        let stored = table.insert(&Plain::new("1", 1)).await.unwrap();
        let same = subject.service.table("COMPANY");
        let error = table.move_to(&same, stored.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().ends_with("the target is the table itself"), "{error}");
        let error = table.query::<Plain>().move_to(&same).await.unwrap_err();
        assert_eq!(error.error().unwrap().kind(), ErrorKind::Input);

        let bad = subject.service.table("no name");
        let error = table.move_to(&bad, stored.clone()).await.unwrap_err();
        assert_eq!((error.kind(), error.table()), (ErrorKind::Input, Some("no name")));
        assert!(table.query::<Plain>().move_to(&bad).await.is_err());

        let missing = subject.service.table("Nowhere");
        let error = table.move_to(&missing, stored).await.unwrap_err();
        assert!(error.is_table_not_found());
        assert_eq!(error.table(), Some("Nowhere"));
        let error = table.query::<Plain>().move_to(&missing).await.unwrap_err();
        assert!(error.error().unwrap().is_table_not_found());
        assert_eq!(Plain::find(&table, "1").await.unwrap().version, 1);
    }
}

#[tokio::test]
async fn a_move_is_three_requests_or_six() {
    let server = TableServer::in_process();
    let journal = server.journal();
    let (table, archive) = tables(&client(&server)).await;
    // The second time, the copy of the first is there.
    for requests in [3, 6] {
        let stored = table.insert(&Plain::new("1", 1)).await.unwrap();
        journal.clear();
        table.move_to(&archive, stored).await.unwrap();
        assert_eq!(journal.requests().count(), requests);
    }
}

#[tokio::test]
async fn the_target_may_be_in_another_account() {
    let (here, there) = (TableServer::in_process(), TableServer::in_process());
    let (table, _) = tables(&client(&here)).await;
    let (_, archive) = tables(&client(&there)).await;
    for id in ["1", "2", "3"] {
        table.insert(&Plain::new(id, 1)).await.unwrap();
    }
    let first = Plain::find(&table, "1").await.unwrap();
    table.move_to(&archive, first).await.unwrap();
    let report = table.query::<Plain>().move_to(&archive).await.unwrap();
    assert_eq!(report.progress().written, 2);
    assert_eq!(archive.query::<Plain>().count().await.unwrap(), 3);
}

/// The credential may write the archive, and not delete what is archived.
#[tokio::test]
async fn the_copy_of_an_entity_that_may_not_be_deleted_is_removed() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    let stored = table.insert(&Plain::new("1", 1)).await.unwrap();
    let denied = Fault::error(ErrorCode::AuthorizationPermissionMismatch);
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    deletes.inject(denied);
    let error = table.move_to(&archive, stored).await.unwrap_err();
    assert!(error.is_denied());
    assert_eq!(versions("1", [&table, &archive]).await, [Some(1), None]);
}

#[tokio::test]
async fn the_input_of_a_move_is_the_query_alone() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    for id in ["1", "2", "3", "4"] {
        table.insert(&Plain::new(id, 1)).await.unwrap();
    }
    // A page fails after the first was read: what was read is moved.
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    server.faults().on(Op::QueryEntities).nth(2).inject(denied);
    let sales = table.query::<Plain>().partition("Sales").page_size(2);
    let error = sales.move_to(&archive).await.unwrap_err();
    assert!(error.error().unwrap().is_denied());
    assert_eq!(error.report().progress().written, 2);
    server.faults().clear();
    for table in [&table, &archive] {
        assert_eq!(table.query::<Plain>().count().await.unwrap(), 2);
    }
}
