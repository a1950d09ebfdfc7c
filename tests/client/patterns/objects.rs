//! Values in an object store: what an entity names, what a read refuses, and what a clean-up
//! deletes.

use std::time::Duration;

use bytes::Bytes;
use harness::{Subject, client};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::{
    DynamicEntity, ErrorKind, PropertyValue as _, RetryPolicy, TableClient, TableEntity, Timestamp,
    Value,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::on_both_transports;
use super::scenarios::objects::EmployeesWithPhotos;
use super::scenarios::{Before, Scenario};
use super::test_store::{StoreFault, TestStore};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
pub(crate) struct Employee {
    department: String,
    id: u32,
    pub(crate) photo: Option<ObjectRef>,
    scan: Option<ObjectRef>,
}

impl Employee {
    async fn photo(&self, photos: &Objects) -> Bytes {
        let photo = self.photo.as_ref().expect("there is one");
        photos.get(photo).await.unwrap()
    }

    pub(crate) fn new(id: u32, photo: &ObjectRef) -> Self {
        Self {
            department: "Sales".into(),
            id,
            photo: Some(photo.clone()),
            scan: None,
        }
    }
}

on_both_transports! {
    async fn an_entity_names_an_object(subject: Subject) {
        let table = subject.table().await;
        let folder = tempfile::tempdir().unwrap();
        let folder = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        for photos in [Objects::new(InMemory::new(), "photos"), Objects::new(folder, "of/employees 日")] {
            for value in [Vec::new(), vec![1], vec![7; 3_000_000]] {
                let photo = photos.put(value.clone()).await.unwrap();
                assert_eq!(photo.size(), value.len() as u64);
                table.upsert_replace(&Employee::new(1, &photo)).await.unwrap();
                let read = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
                assert_eq!(*read, Employee::new(1, &photo));
                assert_eq!(read.photo(&photos).await, value);
            }
        }
        let stored = table.get::<DynamicEntity>(("Sales", "000001")).await.unwrap().unwrap();
        let text = stored.properties().read::<String>("Photo").unwrap();
        assert!(text.starts_with("of/employees 日/") && text.contains("?length=3000000&sha256="), "{text}");
        let found = table.query::<Employee>().filter(|e| e.photo.eq(ObjectRef::from_value(Value::from(text)).unwrap()));
        assert_eq!(found.count().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn what_is_not_the_object_that_was_put_is_an_error() {
    let store = TestStore::new();
    let photos = Objects::new(store.clone(), "photos");
    let photo = photos.put("a photo").await.unwrap();
    for other in ["a", "another photo", "A photo"] {
        store.write(photo.name(), other).await;
        let error = photos.get(&photo).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ObjectStore);
        let expected = format!(
            "get object: object {:?} is not what was put: it does not have the length and the checksum of its reference",
            photo.name()
        );
        assert_eq!(error.to_string(), expected);
    }
    store.write(photo.name(), "a photo").await;
    let before = store.requests();
    assert_eq!(photos.get(&photo).await.unwrap(), "a photo");
    assert_eq!(store.requests(), before + 1);

    let name = "photos/00000000-0000-4000-8000-000000000000";
    let gone = Value::String(photo.to_string().replace(photo.name(), name));
    let gone = ObjectRef::from_value(gone).unwrap();
    let error = photos.get(&gone).await.unwrap_err();
    let expected = format!(
        "get object: object {name:?} was not found: if its entity was replaced meanwhile, read the entity again"
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    let cause = error.downcast_ref::<object_store::Error>();
    assert!(matches!(cause, Some(object_store::Error::NotFound { .. })));

    for other in ["photo", "photos/of", "scans"] {
        let error = Objects::new(store.clone(), other).get(&photo).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let expected = format!(
            "get object: object {:?} is not below the prefix {other:?}",
            photo.name()
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn a_prefix_that_is_no_path_is_refused() {
    let table = Subject::in_process().table().await;
    for (prefix, problem) in [
        ("", "is empty: give the objects a name of their own"),
        ("/", "starts or ends with a slash"),
        ("photos/", "starts or ends with a slash"),
        ("/photos", "starts or ends with a slash"),
        (
            "a//b",
            "is not a path: Path \"a//b\" contained empty path segment",
        ),
    ] {
        let photos = Objects::new(InMemory::new(), prefix);
        let put = photos.put("").await.unwrap_err();
        let query = table.query::<Employee>().select(|e| e.photo);
        let clean_up = photos.clean_up_objects(query).await.unwrap_err();
        for (operation, error) in [("put object", put), ("clean up objects", clean_up)] {
            assert_eq!(error.kind(), ErrorKind::Input);
            let expected = format!("{operation}: the prefix {prefix:?} {problem}");
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[tokio::test]
async fn a_string_that_is_no_reference_is_an_error() {
    let photo = Objects::new(InMemory::new(), "photos").put("").await;
    let text = photo.unwrap().to_string();
    assert!(ObjectRef::from_value(Value::from(text.as_str())).is_ok());
    let digest = text.split_once("sha256=").unwrap().1;
    for other in [
        text.replace("length=0", "length=00"),
        text.replace("length=0", "length=+0"),
        text.replace("length=0", "length="),
        text.replace("length=0", "length=18446744073709551616"),
        text.replace(digest, &digest.to_uppercase()),
        text.replace(digest, &digest[1..]),
        text.replace(digest, &format!("{digest}0")),
        text.replace(digest, &format!("é{}", &digest[2..])),
        text.replace("photos/", ""),
        text.replace("photos/", "/"),
        text.replace("photos/", "photos//"),
        text.replace("photos/", "photos/../"),
        text.replace("photos/", "photos/x"),
        text.to_uppercase(),
        String::new(),
    ] {
        let error = ObjectRef::from_value(Value::from(other.as_str()));
        let error = error.expect_err(&other).to_string();
        assert!(error.ends_with("cannot be read: a reference to an object is stored as its path with a GUID, its length and its SHA-256: photos/GUID?length=…&sha256=…"), "{error}");
    }
}

/// A table, and objects of that age: two that employees name, one that none names.
async fn company(age: Duration) -> (TableServer, TableClient, TestStore, Objects) {
    let server = TableServer::in_process();
    let table = client(&server).table("Company");
    table.create_table().await.unwrap();
    let store = TestStore::new();
    let photos = Objects::new(store.clone(), "photos");
    let ada = photos.put("ada").await.unwrap();
    let scan = photos.put("scan").await.unwrap();
    photos.put("unnamed").await.unwrap();
    let ada = Employee {
        scan: Some(scan),
        ..Employee::new(1, &ada)
    };
    table.insert(&ada).await.unwrap();
    store.advance(age);
    (server, table, store, photos)
}

#[tokio::test]
async fn only_old_objects_without_an_entity_are_deleted() {
    let (_server, table, store, photos) = company(25 * HOUR).await;
    for path in [
        "photos/notes.txt",
        "photos/older/00000000-0000-4000-8000-000000000000",
        "photos/00000000-0000-4000-8000-00000000000G",
        "photos/ABCDEF00-0000-4000-8000-000000000000",
        "photos2/00000000-0000-4000-8000-000000000000",
        "00000000-0000-4000-8000-000000000000",
    ] {
        store.write(path, "of another program").await;
    }
    store.advance(25 * HOUR);
    let recent = photos.put("recent").await.unwrap();
    let before = store.paths().await;
    let both = || table.query::<Employee>().select(|e| (e.photo, e.scan));

    let mut seen = Vec::new();
    let dry = photos.clean_up_objects(both()).dry_run();
    let dry = dry.progress(|report| seen.push(report.clone()));
    let dry = dry.await.unwrap();
    assert_eq!(seen.last(), Some(&dry));
    assert_eq!((dry.objects, dry.recent, dry.in_use), (4, 1, 2));
    assert_eq!((dry.deleted, dry.deleted_bytes, dry.entities), (1, 7, 2));
    assert_eq!(store.paths().await, before, "a dry run");

    let report = photos.clean_up_objects(both()).await.unwrap();
    assert_eq!(report, dry);
    assert_eq!(store.paths().await.len(), before.len() - 1);
    assert!(photos.get(&recent).await.is_ok());
    let ada = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    assert_eq!(ada.photo(&photos).await, "ada");
    let scan = ada.scan.as_ref().unwrap();
    assert_eq!(photos.get(scan).await.unwrap(), "scan");

    // All are in use after one read.
    let again = photos.clean_up_objects(both()).await.unwrap();
    assert_eq!((again.deleted, again.entities), (0, 1));
    // The object of the entity itself.
    assert!(table.delete_stored(&ada).await.unwrap());
    let last = photos.clean_up_objects(both()).older_than(HOUR);
    let last = last.await.unwrap();
    assert_eq!((last.objects, last.deleted, last.recent), (3, 2, 1));
}

#[tokio::test]
async fn the_age_is_by_the_clock_of_the_store() {
    let (_server, table, store, photos) = company(Duration::ZERO).await;
    let clean_up = || {
        let query = table.query::<Employee>().select(|e| (e.photo, e.scan));
        photos.clean_up_objects(query)
    };
    let recent = clean_up().await.unwrap().recent;
    assert_eq!(recent, 3, "the clock is years ahead");
    store.advance(HOUR);
    let report = clean_up().older_than(HOUR).dry_run().await.unwrap();
    assert_eq!(report.deleted, 1, "a moment more than an hour");
    let day = clean_up().older_than(HOUR + Duration::from_secs(60));
    assert_eq!(day.await.unwrap().recent, 3);
    let younger = clean_up().older_than(Duration::from_secs(3599));
    let error = younger.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let expected = "clean up objects: objects younger than an hour cannot be cleaned up: their entity may be written in a moment";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn nothing_is_deleted_when_an_entity_may_be_missed() {
    let (server, table, store, photos) = company(25 * HOUR).await;
    let query = || table.query::<Employee>().select(|e| (e.photo, e.scan));
    let before = store.paths().await;
    for query in [query().take(1), query().skip_unreadable(|_| ())] {
        let error = photos.clean_up_objects(query).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let reason = "all entities must be read: `take` and `skip_unreadable` leave some out";
        assert!(error.to_string().ends_with(reason), "{error}");
    }
    let odd = DynamicEntity::new("Sales", "000002").with("Photo", "photos/other");
    table.insert(&odd).await.unwrap();
    let error = photos.clean_up_objects(query()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    table.delete(("Sales", "000002")).await.unwrap();

    let missing = client(&server).table("Missing").query::<Employee>();
    let clean_up = photos.clean_up_objects(query());
    let clean_up = clean_up.also(missing.select(|e| e.photo));
    assert!(clean_up.await.unwrap_err().is_table_not_found());
    assert_eq!(store.paths().await, before);
    assert_eq!(photos.clean_up_objects(query()).await.unwrap().deleted, 1);
}

/// An employee gets another number, from behind the reader to before it. In the other table, one is
/// moved behind the reader's back.
#[tokio::test(start_paused = true)]
async fn an_entity_that_moves_during_the_read_keeps_its_object() {
    let (server, table, store, photos) = company(Duration::ZERO).await;
    let grace = photos.put("grace").await.unwrap();
    let grace = table.insert(&Employee::new(9, &grace)).await.unwrap();
    let archive = client(&server).table("Archive");
    archive.create_table().await.unwrap();
    store.advance(25 * HOUR);

    let second_page = server.faults().on(Op::QueryEntities).nth(2);
    let delayed = second_page.inject(Fault::delay(Duration::from_secs(5)));
    let query = table.query::<Employee>().page_size(1);
    let clean_up = photos.clean_up_objects(query.select(|e| (e.photo, e.scan)));
    let renumber = async {
        sleep(Duration::from_secs(1)).await;
        let renumbered = Employee {
            id: 0,
            ..(*grace).clone()
        };
        let batch = table.batch("Sales").insert(&renumbered);
        batch.delete_stored(&grace).await.unwrap();
    };
    let (report, ()) = tokio::join!(clean_up, renumber);
    assert_eq!(delayed.hits(), 1);
    assert_eq!(report.unwrap().deleted, 1);
    let grace = table.get(Employee::key("Sales", 0)).await.unwrap().unwrap();
    assert_eq!(grace.photo(&photos).await, "grace");

    server.faults().clear();
    let between = server.faults().on(Op::QueryEntities).nth(1);
    let delayed = between.inject(Fault::delay(Duration::from_secs(5)));
    let clean_up = photos
        .clean_up_objects(table.query::<Employee>().select(|e| (e.photo, e.scan)))
        .also(archive.query::<Employee>().select(|e| e.photo));
    let retire = async {
        sleep(Duration::from_secs(1)).await;
        table.move_to(&archive, grace).await.unwrap()
    };
    let (report, grace) = tokio::join!(clean_up, retire);
    assert_eq!(delayed.hits(), 1);
    assert_eq!(report.unwrap().deleted, 0);
    assert_eq!(grace.photo(&photos).await, "grace");
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{user}", row_key = "session")]
struct Session {
    user: String,
    #[table(expires)]
    until: Timestamp,
    avatar: ObjectRef,
}

#[tokio::test]
async fn an_expired_entity_keeps_its_object() {
    let (_server, table, store, photos) = company(25 * HOUR).await;
    let session = Session {
        user: "ann".into(),
        until: "2001-01-01T00:00:00Z".parse().unwrap(),
        avatar: photos.put("avatar").await.unwrap(),
    };
    table.insert(&session).await.unwrap();
    store.advance(25 * HOUR);
    let sessions = || table.query::<Session>().partition("ann");
    assert_eq!(sessions().count().await.unwrap(), 0);
    let clean_up = photos.clean_up_objects(sessions().select(|s| s.avatar));
    assert_eq!(clean_up.await.unwrap().in_use, 1);
    assert_eq!(photos.get(&session.avatar).await.unwrap(), "avatar");
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_store_leaves_no_entity_without_its_object() {
    for fault in [StoreFault::NotSent, StoreFault::ResponseLost] {
        for write in EmployeesWithPhotos::WRITES {
            for nth in 1.. {
                let server = TableServer::in_process();
                let scenario = EmployeesWithPhotos::new(&server, Before::Write(write.name)).await;
                let mut table = scenario.open(&server, RetryPolicy::none());
                scenario.store.fail(nth, fault);
                let result = scenario.write(&mut table, write.name).await;
                let has_failed = scenario.store.has_failed();
                scenario.store.heal();
                scenario.settle(&server, &mut table).await;
                if !has_failed {
                    result.expect(write.name);
                    let least = if write.name == "clean up" { 5 } else { 1 };
                    assert!(nth >= least, "{write:?}: {nth}");
                    break;
                }
                let failure = result.expect_err(write.name);
                assert_eq!(failure.kind, ErrorKind::ObjectStore);
            }
        }
    }
}
