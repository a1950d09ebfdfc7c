//! The verbs of a wide table.

use std::time::Duration;

use futures::TryStreamExt as _;

use tablesdk::chunked::Chunked;
use tablesdk::series::Series;
use tablesdk::wide::StoredWide;
use tablesdk::{DynamicEntity, ErrorKind, TableEntity, Value};

use super::{MessageYear, is_second_part_missing, messages, numbers, rows, year};
use crate::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(wide, partition_key = "{owner}", row_key = "{title}")]
struct Album {
    owner: String,
    title: String,
    #[table(flatten, prefix = "Cover")]
    cover: Chunked<Vec<u8>>,
    #[table(flatten, prefix = "Photo")]
    photo: Chunked<Vec<u8>>,
    #[table(flatten, prefix = "Text")]
    text: Option<Chunked<String>>,
    #[table(flatten, prefix = "D")]
    days: Series<i32, 366>,
}

on_both_transports! {
    async fn chunks_and_series_are_properties_of_a_wide_entity(subject: Subject) {
        let table = subject.service.table("Albums");
        table.create_table().await.unwrap();
        let albums = table.wide::<Album>();
        let album = Album {
            owner: "ann".to_owned(),
            title: "2024".to_owned(),
            cover: Chunked(vec![1; 1_000_000]),
            photo: Chunked(vec![2; 1_000_000]),
            text: Some(Chunked("text".repeat(100_000))),
            days: Series::from([(0, 17), (365, 4)]),
        };
        let mut stored = albums.insert(&album).await.unwrap();
        assert_eq!(*albums.get(stored.key()).await.unwrap().unwrap(), album);
        let some = albums.select(stored.key(), |a| (a.photo, a.days.slot(365)));
        let some = some.await.unwrap();
        assert_eq!(some, Some((album.photo.clone(), Some(4))));
        stored.text = None;
        albums.replace(&mut stored).await.unwrap();
        assert_eq!(albums.get(stored.key()).await.unwrap().unwrap(), stored);
    }

    async fn a_wide_entity_is_written_and_read_as_a_whole(subject: Subject) {
        let table = subject.service.table("Messages");
        table.create_table().await.unwrap();
        let years = table.wide::<MessageYear>();
        let key = || MessageYear::key("ann", 2024);
        assert_eq!(years.get(key()).await.unwrap(), None);

        let inserted = years.insert(&year("ann", 1)).await.unwrap();
        assert_eq!(*inserted, year("ann", 1));
        assert!(years.insert(&year("ann", 2)).await.unwrap_err().is_conflict());
        let mut found = years.get(key()).await.unwrap().unwrap();
        assert_eq!(found, inserted);

        found.first.most = Some(17);
        found.second.most = None;
        years.replace(&mut found).await.unwrap();
        assert_eq!(years.get(key()).await.unwrap().unwrap(), found);
        let mut stale = inserted;
        let error = years.replace(&mut stale).await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error}");
        assert!(years.delete_stored(&stale).await.unwrap_err().is_precondition_failed());

        let add = |year: &mut MessageYear| {
            *year.first.most.get_or_insert(0) += 1;
            Ok(())
        };
        let modified = years.modify(key(), add).await.unwrap();
        assert_eq!(modified.first.most, Some(18));
        assert_eq!(years.get(key()).await.unwrap().unwrap(), modified);
        let selected = years.select(key(), |y| (y.year, y.first.most, y.second.most, y.first.days.slot(0)));
        assert_eq!(selected.await.unwrap(), Some((2024, Some(18), None, Some(1))));

        years.upsert_replace(&year("ann", 3)).await.unwrap();
        years.upsert_replace(&year("bob", 4)).await.unwrap();
        assert_eq!(*years.get(key()).await.unwrap().unwrap(), year("ann", 3));
        let all: Vec<_> = years.stream("bob").try_collect().await.unwrap();
        assert_eq!(all.into_iter().map(StoredWide::into_inner).collect::<Vec<_>>(), [year("bob", 4)]);

        assert!(years.delete(key()).await.unwrap());
        assert!(!years.delete(key()).await.unwrap());
        assert_eq!(years.clean_up_siblings("ann", Duration::ZERO).await.unwrap(), 0);
        assert!(years.modify(key(), add).await.unwrap_err().is_not_found());
        let left = table.query::<DynamicEntity>().partition("ann").count().await.unwrap();
        assert_eq!(left, 0, "the siblings are deleted with the head");
    }

    async fn a_map_is_a_wide_entity(subject: Subject) {
        let table = subject.service.table("Messages");
        table.create_table().await.unwrap();
        let maps = table.wide::<DynamicEntity>();
        let map = numbers("map", 600);
        maps.insert(&map).await.unwrap();
        let found = maps.get(("ann", "map")).await.unwrap().unwrap();
        assert_eq!(found.properties(), map.properties());
        assert_eq!(DynamicEntity::etag(&found), Some(found.etag()));
        let some = maps.select(("ann", "map"), |e| e.properties(["P00599", "P00000", "P00601"]));
        let some = some.await.unwrap().unwrap();
        let some: Vec<_> = some.properties().iter().map(|(name, value)| (name, value.clone())).collect();
        assert_eq!(some, [("P00000", Value::Int32(0)), ("P00599", Value::Int32(599))]);
    }
}

#[tokio::test]
async fn the_siblings_of_a_version_are_deleted_with_it() {
    let (server, table) = messages().await;
    let years = table.wide::<MessageYear>();
    years.insert(&year("ann", 1)).await.unwrap();
    let before = rows(&server);
    assert_eq!(before.len(), 2, "{before:?}");
    let is_sibling = before[1].starts_with("2024!") && before[1].ends_with("!01");
    assert!(is_sibling, "{before:?}");
    years.upsert_replace(&year("ann", 2)).await.unwrap();
    let after = rows(&server);
    assert_eq!((after.len(), &after[0]), (2, &before[0]));
    assert_ne!(after[1], before[1]);
}

/// A sibling that another program deleted.
#[tokio::test]
async fn a_damaged_entity_is_an_error_and_can_be_written() {
    let (server, table) = messages().await;
    let years = table.wide::<MessageYear>();
    let key = || MessageYear::key("ann", 2024);
    let delete_sibling = async || {
        let sibling = rows(&server).pop().unwrap();
        assert!(table.delete(("ann", sibling)).await.unwrap());
    };
    years.insert(&year("ann", 1)).await.unwrap();
    delete_sibling().await;
    let first_day = years.select(key(), |y| y.first.days.slot(0)).await;
    assert_eq!(first_day.unwrap(), Some(Some(1)));
    let all: Result<Vec<_>, _> = years.stream("ann").try_collect().await;
    for error in [
        years.get(key()).await.unwrap_err(),
        years.select(key(), |y| y.second.most).await.unwrap_err(),
        all.unwrap_err(),
    ] {
        assert!(is_second_part_missing(&error), "{error}");
        assert_eq!(error.kind(), ErrorKind::Data);
    }
    years.upsert_replace(&year("ann", 2)).await.unwrap();
    assert_eq!(*years.get(key()).await.unwrap().unwrap(), year("ann", 2));
    delete_sibling().await;
    assert!(years.delete(key()).await.unwrap());
    assert!(rows(&server).is_empty());
}

/// Row keys that sort between a head and its siblings, or look as if.
#[tokio::test]
async fn other_entities_may_be_between_a_head_and_its_siblings() {
    let (_server, table) = messages().await;
    let maps = table.wide::<DynamicEntity>();
    let keys = ["a", "a b", "a!", "a!b", "a0", "aa"];
    for row_key in keys {
        maps.insert(&numbers(row_key, 300)).await.unwrap();
    }
    let plain = numbers("a plain entity", 1);
    table.insert(&plain).await.unwrap();
    for row_key in keys {
        let found = maps.get(("ann", row_key)).await.unwrap().unwrap();
        assert_eq!(found.properties().len(), 300, "{row_key}");
    }
    let plain = maps.get(("ann", "a plain entity")).await.unwrap().unwrap();
    assert_eq!(plain.properties().len(), 1);
    let mut all: Vec<_> = maps.stream("ann").try_collect().await.unwrap();
    all.sort_by(|one, other| one.row_key().cmp(other.row_key()));
    let found = all.iter().map(|it| (it.row_key(), it.properties().len()));
    let mut expected = keys.map(|row_key| (row_key, 300)).to_vec();
    expected.insert(2, ("a plain entity", 1));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

/// A number that is stored and cannot be read.
mod write_only {
    use tablesdk::entity::ValueError;

    pub(super) type Property = i32;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        clippy::unnecessary_wraps,
        reason = "the derive calls it so"
    )]
    pub(super) fn to_property(number: &i32) -> Result<i32, ValueError> {
        Ok(*number)
    }

    pub(super) fn from_property(_: i32) -> Result<i32, ValueError> {
        Err(ValueError::unreadable("it", "never"))
    }
}

#[derive(Clone, Debug, TableEntity)]
#[table(wide, partition_key = "{owner}", row_key = "{title}")]
struct Sealed {
    owner: String,
    title: String,
    #[table(with = "write_only")]
    number: i32,
}

#[tokio::test]
async fn an_entity_that_cannot_be_read_back_is_not_inserted() {
    let (server, table) = messages().await;
    let sealed = Sealed {
        owner: "ann".to_owned(),
        title: "2024".to_owned(),
        number: 1,
    };
    let error = table.wide().insert(&sealed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let message = "it could be written, but not be read again: property \"number\"";
    assert!(error.to_string().contains(message), "{error}");
    assert_eq!(rows(&server), Vec::<String>::new());
}
