//! Data series: slots, their names and types, writes without a read, and the largest series.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use futures::future::join_all;
use harness::{Subject, client};
use serde_json::json;
use tablesdk::series::Series;
use tablesdk::{
    DynamicEntity, ErrorKind, Guid, PropertyValue, RetryPolicy, TableClient, TableEntity,
    TableProperties, Timestamp,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct Day {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

fn day(hours: Series<i32, 24>) -> Day {
    Day {
        employee: "ann".into(),
        day: "2024-03-15".into(),
        hours,
    }
}

fn key() -> tablesdk::key::Key<Day> {
    Day::key("ann", "2024-03-15")
}

async fn hours(table: &TableClient) -> Vec<(usize, i32)> {
    let day = table.get(key()).await.unwrap().unwrap();
    let filled = day.hours.filled();
    filled.map(|(slot, value)| (slot, *value)).collect()
}

on_both_transports! {
    async fn each_write_sets_its_slot_alone(subject: Subject) {
        let table = subject.table().await;
        table.upsert_merge(&day(Series::from([(9, 42)]))).await.unwrap();
        table.upsert_merge(&day(Series::from([(23, 1), (0, 2)]))).await.unwrap();
        table.patch(key()).set(|d| d.hours.slot(10), 17).set(|d| d.hours.slot(9), 43).await.unwrap();
        table.upsert_merge(&day(Series::new())).await.unwrap();
        assert_eq!(hours(&table).await, [(0, 2), (9, 43), (10, 17), (23, 1)]);

        let stored = table.get::<DynamicEntity>(("ann", "2024-03-15")).await.unwrap().unwrap();
        let mut names: Vec<_> = stored.properties().iter().map(|(name, _)| name.to_owned()).collect();
        names.sort();
        assert_eq!(names, ["H00", "H09", "H10", "H23"]);
        assert_eq!(stored.properties().read::<i32>("H09").unwrap(), 43);

        // A change that is based on a read clears slots, too.
        let change = |day: &mut Day| {
            *day.hours[9].get_or_insert(0) += 1;
            *day.hours[11].get_or_insert(0) += 1;
            day.hours[10] = None;
            Ok(())
        };
        table.modify(key(), change).await.unwrap();
        assert_eq!(hours(&table).await, [(0, 2), (9, 44), (11, 1), (23, 1)]);
        let mut tracked = table.get(key()).tracked().await.unwrap().unwrap();
        tracked.hours[9] = Some(45);
        table.merge(&mut tracked).changed_only().await.unwrap();
        assert_eq!(hours(&table).await, [(0, 2), (9, 45), (11, 1), (23, 1)]);
    }

    async fn slots_are_columns(subject: Subject) {
        let table = subject.table().await;
        for (number, count) in [(1, 5), (2, 50), (3, 500)] {
            let mut day = day(Series::from([(9, count), (17, 1)]));
            day.day = format!("2024-03-{number:02}");
            table.insert(&day).await.unwrap();
        }
        let days = || table.query::<Day>().partition("ann");
        let found = days().filter(|d| d.hours.slot(9).between(6..600) & d.hours.slot(17).eq(1));
        let found = found.select(|d| (d.day, d.hours.slot(9), d.hours.slot(10))).collect().await.unwrap();
        assert_eq!(found, [("2024-03-02".into(), Some(50), None), ("2024-03-03".into(), Some(500), None)]);
        let one = days().select(|d| d.hours.slot(17)).collect().await.unwrap();
        assert_eq!(one, [Some(1); 3]);
        assert_eq!(Day::columns().hours.slot(7).name(), "H07");
    }

    async fn the_largest_series_has_252_slots(subject: Subject) {
        let table = subject.table().await;
        let largest = values::<i64, 252>((0..252).map(|slot| (slot, i64::MAX)).collect());
        table.insert(&largest).await.unwrap();
        let read = table.get::<Values<i64, 252>>(("a", "b")).await.unwrap().unwrap();
        assert_eq!(*read, largest);
        assert_eq!(Values::<i64, 252>::columns().values.slot(251).name(), "V251");
        // And the largest by its bytes: 1 MiB, with its names and keys.
        let text = |units: usize| "x".repeat(units);
        let of = |rest: usize| {
            let mut series: Series<String, 17> = (0..15).map(|slot| (slot, text(32_768))).collect();
            series[15] = Some(text(rest));
            Values { row: "c".into(), ..values(series) }
        };
        let rest = (1 << 20) - 4 - 4 - 15 * (8 + 6 + 4 + 65_536) - (8 + 6 + 4);
        table.insert(&of(rest / 2)).await.unwrap();
        let error = table.upsert_replace(&of(rest / 2 + 1)).await.unwrap_err();
        assert!(error.to_string().contains("the entity takes 1048578 bytes, more than the 1048576"), "{error}");
    }

    async fn a_property_that_is_no_slot_is_not_read(subject: Subject) {
        let table = subject.table().await;
        let names = ["H05", "H5", "H24", "H005", "Hx5", "H", "h06"];
        let entity = names.into_iter().fold(DynamicEntity::new("ann", "2024-03-15"), |e, name| e.with(name, 1));
        table.insert(&entity).await.unwrap();
        assert_eq!(hours(&table).await, [(5, 1)]);
        // A change keeps them.
        table.modify(key(), |day| { day.hours[5] = None; Ok(()) }).await.unwrap();
        let stored = table.get::<DynamicEntity>(("ann", "2024-03-15")).await.unwrap().unwrap();
        let stored: Vec<_> = stored.properties().iter().map(|(name, _)| name).collect();
        assert_eq!(stored.len(), names.len() - 1, "{stored:?}");
        assert!(!stored.contains(&"H05"));
        // A slot of another type is an error.
        table.upsert_replace(&DynamicEntity::new("ann", "2024-03-15").with("H05", "many")).await.unwrap();
        let error = table.get(key()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("\"H05\""), "{error}");
    }
}

/// A series of that type.
#[derive(Debug, PartialEq, TableEntity)]
#[table(partition_key = "{partition}", row_key = "{row}")]
struct Values<T: PropertyValue + Send + Sync + 'static, const N: usize> {
    partition: String,
    row: String,
    #[table(flatten, prefix = "V")]
    values: Series<T, N>,
}

fn values<T: PropertyValue + Send + Sync + 'static, const N: usize>(
    values: Series<T, N>,
) -> Values<T, N> {
    Values {
        partition: "a".into(),
        row: "b".into(),
        values,
    }
}

/// Writes one slot of that type, and reads it.
async fn round_trip<T>(value: T)
where
    T: PropertyValue + Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let table = Subject::in_process().table().await;
    let typed = values(Series::<T, 3>::from([(1, value.clone())]));
    table.insert(&typed).await.unwrap();
    let read = table.get::<Values<T, 3>>(("a", "b")).await.unwrap();
    assert_eq!(*read.unwrap().values, [None, Some(value), None]);
}

#[tokio::test]
async fn slots_have_every_type_that_a_field_has() {
    round_trip(true).await;
    round_trip(7_u8).await;
    round_trip(i64::MIN).await;
    round_trip(18.5_f64).await;
    round_trip(String::from("ä\"")).await;
    round_trip(vec![0_u8, 255]).await;
    round_trip(Guid::from_bytes([7; 16])).await;
    round_trip(Duration::from_millis(1500)).await;
    round_trip("2024-03-15T10:20:30Z".parse::<Timestamp>().unwrap()).await;
    round_trip(time::macros::date!(2024 - 03 - 15)).await;
}

#[tokio::test]
async fn a_slot_that_does_not_exist_is_an_input_error() {
    let server = TableServer::in_process();
    let (table, journal) = (client(&server).table("Days"), server.journal());
    let days = || table.query::<Day>().partition("ann");
    let at = |slot| move |d: <Day as TableEntity>::Columns| d.hours.slot(slot);
    let missing = "there is no slot 24: the series has the slots 0 to 23";
    let written = day(Series::from([(1, 1), (24, 2), (99, 3)]));
    let equal = days().filter(|d| d.hours.slot(24).eq(1));
    let between = days().filter(|d| d.hours.slot(24).between(..));
    let selected = days().select(|d| (d.day, d.hours.slot(24)));
    for error in [
        table.upsert_merge(&written).await.unwrap_err(),
        table.patch(key()).set(at(24), 1).await.unwrap_err(),
        equal.count().await.unwrap_err(),
        between.count().await.unwrap_err(),
        days().select(at(24)).collect().await.unwrap_err(),
        selected.collect().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        let error = error.to_string();
        let is_right = error.ends_with(missing) && error.contains("\"H\": ");
        assert!(is_right, "{error}");
    }
    assert_eq!(journal.requests().count(), 0);
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(partition_key = "{partition}", row_key = "{row}")]
struct Nested {
    partition: String,
    row: String,
    #[table(flatten, prefix = "In")]
    inner: Option<Inner>,
    #[table(flatten, prefix = "A")]
    few: Series<bool, 1>,
    #[table(flatten, prefix = "B")]
    ten: Option<Series<i32, 10>>,
    #[table(flatten, prefix = "C")]
    eleven: Series<i32, 11>,
}

#[derive(Clone, Debug, PartialEq, TableProperties)]
struct Inner {
    // Its names begin with the prefix of the struct.
    #[table(flatten)]
    values: Series<f64, 101>,
}

#[tokio::test]
async fn series_are_flattened_as_structs_are() {
    let properties = Nested::SCHEMA.properties();
    let names = properties
        .iter()
        .map(|p| (p.name().into_owned(), p.is_optional()));
    let names: Vec<_> = names.collect();
    assert_eq!(names.len(), 101 + 1 + 10 + 11);
    for name in ["In000", "In100", "A0", "B0", "B9", "C00", "C10"] {
        assert!(names.contains(&(name.to_owned(), true)), "{name}");
    }
    let table = Subject::in_process().table().await;
    let empty = Nested {
        partition: "a".into(),
        row: "b".into(),
        inner: None,
        few: Series::new(),
        ten: None,
        eleven: Series::default(),
    };
    table.insert(&empty).await.unwrap();
    let key = || Nested::key("a", "b");
    assert_eq!(*table.get(key()).await.unwrap().unwrap(), empty);
    let patch = table.patch(key()).set(|n| n.inner.values.slot(100), 0.5);
    patch.set(|n| n.ten.slot(3), 3).await.unwrap();
    let read = table.get(key()).await.unwrap().unwrap();
    let inner = read.inner.as_ref().unwrap();
    assert_eq!(inner.values, Series::from([(100, 0.5)]));
    assert_eq!(read.ten, Some(Series::from([(3, 3)])));
}

#[derive(Debug, TableEntity)]
#[table(projection, partition_key = "{employee}", row_key = "{day}")]
struct Hours {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

#[derive(Debug, TableEntity)]
#[table(entity_type = "Absence")]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct Absence {
    employee: String,
    day: String,
    #[table(flatten, prefix = "A")]
    hours: Series<bool, 24>,
}

#[derive(Debug, TableEntity)]
#[table(entity_type = "Presence")]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct Presence {
    employee: String,
    day: String,
    #[table(flatten, prefix = "P")]
    hours: Series<i32, 24>,
    note: Option<String>,
}

#[derive(Debug, TableEntity)]
enum Entry {
    Absence(Absence),
    Presence(Presence),
}

#[tokio::test]
async fn projections_and_variants_have_series() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let entity = DynamicEntity::new("ann", "2024-03-14")
        .with("H03", 3)
        .with("Note", "x".repeat(1_000));
    table.insert(&entity).await.unwrap();
    let journal = subject.server().journal();
    let hours = table.query::<Hours>().partition("ann").one().await.unwrap();
    assert_eq!(hours.unwrap().hours, Series::from([(3, 3)]));
    let bytes: usize = journal.requests().iter().map(|it| it.bytes_out).sum();
    assert!(bytes < 1_000, "only the slots are requested: {bytes}");

    let absence = Absence {
        employee: "bob".into(),
        day: "2024-03-14".into(),
        hours: Series::from([(9, true)]),
    };
    let presence = Presence {
        employee: "bob".into(),
        day: "2024-03-15".into(),
        hours: Series::from([(9, 60)]),
        note: None,
    };
    table.insert(&absence).await.unwrap();
    table.insert(&presence).await.unwrap();
    let entries = || table.query::<Entry>().partition("bob");
    let found = entries().filter(|e| e.presence.hours.slot(9).eq(60));
    let found = found.collect().await.unwrap();
    assert!(matches!(&*found[0], Entry::Presence(_)), "{found:?}");
    let slots = entries().select(|e| e.absence.hours.slot(9));
    assert_eq!(slots.collect().await.unwrap(), [Some(true)]);
    assert_eq!(entries().collect().await.unwrap().len(), 2);
}

#[test]
fn a_series_is_a_value_of_its_own() {
    let mut series: Series<i32, 4> = [(1, 1), (3, 3), (1, 2)].into_iter().collect();
    assert_eq!(*series, [None, Some(2), None, Some(3)]);
    assert_eq!(format!("{series:?}"), "{1: 2, 3: 3}");
    assert_eq!(series.filled().next_back(), Some((3, &3)));
    assert_eq!(json!(series), json!([null, 2, null, 3]));
    let read: Series<i32, 4> = serde_json::from_value(json!([null, 2, null, 3])).unwrap();
    assert_eq!(read, series);
    for other in [json!([1, 2, 3]), json!([1, 2, 3, 4, 5]), json!({})] {
        assert!(serde_json::from_value::<Series<i32, 4>>(other).is_err());
    }
    series.extend([(0, 0), (4, 4)]);
    assert_ne!(read, series);
    let shown = r#"{0: 0, 1: 2, 3: 3, 4: "no such slot"}"#;
    assert_eq!(format!("{series:?}"), shown);
    assert!(serde_json::to_value(&series).is_err());
}

#[test]
fn numbers_and_instants_have_an_entity_and_a_slot() {
    type Numbered = Series<(), 240>;
    type Week = Series<(), 7>;
    assert_eq!(Numbered::slot_of(0), (0, 0));
    assert_eq!(Numbered::slot_of(u64::MAX), (u64::MAX / 240, 15));
    let day = Duration::from_secs(86_400);
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    for (instant, start, slot) in [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", 0),
        ("1970-01-07T23:59:59.9999999Z", "1970-01-01T00:00:00Z", 6),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-25T00:00:00Z", 6),
        ("2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", 0),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-30T00:00:00Z", 1),
    ] {
        let found = Week::slot_at(at(instant), day).unwrap();
        assert_eq!(found, (at(start), slot), "{instant}");
    }
    let (start, slot) = Week::slot_at(SystemTime::UNIX_EPOCH + 9 * day, day).unwrap();
    assert_eq!((start, slot), (at("1970-01-08T00:00:00Z"), 2));
    // 1601-01-01 was a Monday, and its week begins before what the service stores.
    for (instant, length) in [
        ("1601-01-01T00:00:00Z", day),
        ("2024-01-01T00:00:00Z", Duration::ZERO),
        ("2024-01-01T00:00:00Z", Duration::from_nanos(150)),
        ("2024-01-01T00:00:00Z", Duration::MAX),
    ] {
        assert!(Week::slot_at(at(instant), length).is_err(), "{length:?}");
    }
}

/// Blind merges of slots that are written once: whatever is lost, repeated or late, each slot has
/// its value or none.
#[tokio::test(start_paused = true)]
async fn merges_of_different_slots_never_disturb_each_other() {
    for seed in harness::seeds("SEED", 20) {
        println!("SEED={seed}");
        let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
        let late = Fault::reset().applied_after(Duration::from_secs(5));
        let merges = faults.on(Op::InsertOrMergeEntity);
        let late = merges.probability(0.2).seed(seed).inject(late);
        let writers = (0..4).map(|writer| {
            let (table, mut rng) = (&table, Rng::with_seed(seed ^ (writer << 8)));
            async move {
                let mut sent = Vec::new();
                for slot in (0..24_usize).filter(|slot| *slot as u64 % 4 == writer) {
                    let count = i32::try_from(slot).unwrap() * 100;
                    let day = day(Series::from([(slot, count)]));
                    let result = table.upsert_merge(&day).await;
                    sent.push((slot, count, result.is_ok()));
                    sleep(Duration::from_millis(rng.u64(..3000))).await;
                }
                sent
            }
        });
        let sent = join_all(writers).await.concat();
        sleep(Duration::from_secs(60)).await;
        let hours = hours(&table).await;
        for (slot, count, is_acknowledged) in sent {
            match hours.iter().find(|(known, _)| *known == slot) {
                Some((_, value)) => assert_eq!(*value, count),
                None => assert!(!is_acknowledged, "{slot}"),
            }
        }
        assert!(late.hits() > 0);
    }
}

/// A slot that is written twice, as the documentation says: a late duplicate brings the first value
/// back.
#[tokio::test(start_paused = true)]
async fn a_late_duplicate_brings_the_first_value_of_a_slot_back() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let late = Fault::reset().applied_after(Duration::from_secs(60));
    let late = faults.next(Op::InsertOrMergeEntity, late);
    let write = async |value| {
        let day = day(Series::from([(9, value)]));
        table.upsert_merge(&day).await.unwrap();
    };
    write(1).await;
    assert_eq!(late.hits(), 1);
    write(2).await;
    assert_eq!(hours(&table).await, [(9, 2)]);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(hours(&table).await, [(9, 1)]);
}
