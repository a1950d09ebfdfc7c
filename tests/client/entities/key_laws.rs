//! The laws of keys, for random values: different lists of values give different keys, a key reads
//! back as the values that it was made of, it contains nothing that is forbidden in a key, and keys
//! of fixed width sort as their values do.
//!
//! Each test prints its seed; `SEED` runs that seed.

use std::cmp::Reverse;
use std::fmt::Debug;
use std::ops::Bound;

use fastrand::Rng;
use harness::seeded;
use tablesdk::action::QueryEntities;
use tablesdk::key::{Desc, EntityKey, Escaped, KeyPart, Shard};
use tablesdk::{
    DynamicEntity, Guid, PropertyValue, Stored, TableEntity, Timestamp, WritableEntity,
};
use time::{Date, Duration};

use crate::every_type::bits;
use crate::on_both_transports;

/// As the service compares keys.
fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn instant(rng: &mut Rng) -> Timestamp {
    let (first, last) = (Timestamp::MIN.unix_ticks(), Timestamp::MAX.unix_ticks());
    let ticks = match rng.u8(..6) {
        0 => first,
        1 => last,
        2 => 0,
        // Whole seconds, which print without a fraction elsewhere.
        3 => rng.i64(first / 10_000_000..=last / 10_000_000) * 10_000_000,
        _ => rng.i64(first..=last),
    };
    Timestamp::from_unix_ticks(ticks).unwrap()
}

/// A string of characters that are special in keys and separators.
pub(crate) fn text(rng: &mut Rng) -> String {
    let alphabet = "aab_=-/\\#?%2F\u{1}\u{7f}\u{9f} é\u{D7FF}\u{E000}\u{FFFF}😀".chars();
    let alphabet: Vec<char> = alphabet.collect();
    let letters = (0..rng.usize(..6)).map(|_| rng.choice(&alphabet).unwrap());
    letters.collect()
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '/' | '\\' | '#' | '?') || character.is_control()
}

/// The key parts of a type have its width, are read back as their values, and have the same order.
fn check_part<P: KeyPart + Debug + Clone + PartialEq, O: Ord>(
    values: &[P],
    order: impl Fn(&P) -> O,
) {
    let texts: Vec<String> = values.iter().map(|value| value.to_key().unwrap()).collect();
    for (value, text) in values.iter().zip(&texts) {
        assert_eq!(Some(text.len()), P::WIDTH, "{value:?}: {text:?}");
        assert_eq!(P::from_key(text).as_ref(), Ok(value), "{text:?}");
        assert!(!text.contains(is_forbidden), "{text:?}");
        // There is one key part for each value: if another string is read, it is that of another
        // value.
        for other in [
            text.to_uppercase(),
            text.to_lowercase(),
            format!("+{text}"),
            format!(" {text}"),
            text.replace('0', "9"),
        ] {
            if let Ok(read) = P::from_key(&other) {
                assert_eq!(read.to_key().unwrap(), other);
            }
        }
    }
    for (a, a_text) in values.iter().zip(&texts) {
        for (b, b_text) in values.iter().zip(&texts) {
            let (by_text, by_value) = (units(a_text).cmp(&units(b_text)), order(a).cmp(&order(b)));
            let by_value = if P::DESCENDING {
                by_value.reverse()
            } else {
                by_value
            };
            assert_eq!(by_text, by_value, "{a:?}, {b:?}: {a_text:?}, {b_text:?}");
        }
    }
}

#[test]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "any bits are a number of the type"
)]
fn parts_of_fixed_width_sort_as_their_values() {
    let mut rng = seeded();
    let rng = &mut rng;
    macro_rules! integers {
        ($($type:ident)+) => {
            $({
                let values: Vec<$type> = (0..40).map(|_| bits(rng) as $type).collect();
                check_part(&values, |value| *value);
                let values: Vec<_> = values.into_iter().map(Desc).collect();
                check_part(&values, |value| value.0);
            })+
        };
    }
    integers!(u8 u16 u32 u64 i8 i16 i32 i64);
    let instants: Vec<_> = (0..40).map(|_| instant(rng)).collect();
    check_part(&instants, |value| *value);
    let descending: Vec<_> = instants.iter().copied().map(Desc).collect();
    check_part(&descending, |value| value.0);
    let guids: Vec<_> = (0..40)
        .map(|_| Guid::from_bytes(rng.u128(..).to_be_bytes()))
        .collect();
    check_part(&guids, |guid| guid.to_bytes());
    check_part(&[false, true], |value| *value);
    let shards: Vec<_> = Shard::<11>::all().collect();
    check_part(&shards, |value| *value);

    let day = |days: i64| {
        Date::from_calendar_date(1601, time::Month::January, 1).unwrap() + Duration::days(days)
    };
    let days: Vec<_> = (0..40).map(|_| day(rng.i64(0..3_067_671))).collect();
    check_part(&days, |value| *value);
    let days: Vec<_> = days.into_iter().map(Desc).collect();
    check_part(&days, |value| value.0);
    let instants: Vec<_> = instants
        .iter()
        .map(|at| time::OffsetDateTime::from_value((*at).into()).unwrap())
        .collect();
    check_part(&instants, |value| *value);
}

/// Every part but the last has a fixed width.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    partition_key = "p",
    row_key = "{shard}{number:03}-{signed}{at}{flag}:{id}{name}"
)]
struct Fixed {
    at: Desc<Timestamp>,
    flag: bool,
    id: Guid,
    name: String,
    number: u16,
    shard: Shard<4>,
    signed: i32,
}

impl Fixed {
    fn random(rng: &mut Rng) -> Self {
        // Few values of each, so that later parts are compared, too.
        let few = |rng: &mut Rng| u16::from(rng.u8(..2));
        Self {
            at: Desc(if rng.bool() {
                Timestamp::UNIX_EPOCH
            } else {
                instant(rng)
            }),
            flag: rng.bool(),
            id: Guid::from_bytes(u128::from(few(rng)).to_be_bytes()),
            name: text(rng).replace(is_forbidden, ""),
            number: few(rng) * 999,
            shard: Shard::new(rng.u32(..2)).unwrap(),
            signed: i32::from(few(rng)) - 1,
        }
    }

    fn order(&self) -> impl Ord + use<> {
        (
            (self.shard, self.number, self.signed),
            (
                Reverse(self.at.0),
                self.flag,
                self.id.to_bytes(),
                units(&self.name),
            ),
        )
    }
}

/// A part of variable width ends at its separator.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "{a}_{b}", row_key = "{{{c}--{d:04}}}")]
struct Separated<S: KeyPart> {
    a: S,
    b: S,
    c: S,
    d: u32,
}

impl<S: KeyPart> Separated<S> {
    fn random(rng: &mut Rng, part: fn(String) -> S) -> Self {
        Self {
            a: part(text(rng)),
            b: part(text(rng)),
            c: part(text(rng)),
            d: rng.u32(..3),
        }
    }
}

/// Keys differ where values differ, read back, and are keys.
fn check_keys<E: WritableEntity + Debug + PartialEq>(entities: &[E]) -> Vec<EntityKey> {
    let keys = entities.iter().map(|entity| entity.entity_key().unwrap());
    let keys: Vec<_> = keys.collect();
    for (entity, key) in entities.iter().zip(&keys) {
        let dynamic = DynamicEntity::from_entity(entity).unwrap();
        assert_eq!(&dynamic.to_entity::<E>().unwrap(), entity);
        let text = format!("{}{}", key.partition_key(), key.row_key());
        assert!(!text.contains(is_forbidden), "{text:?}");
        for (other, other_key) in entities.iter().zip(&keys) {
            let are_equal = entity == other;
            assert_eq!(are_equal, key == other_key, "{entity:?}, {other:?}: {key}");
        }
    }
    keys
}

#[test]
fn keys_of_fixed_parts_sort_as_their_values() {
    let mut rng = seeded();
    let entities: Vec<_> = (0..150).map(|_| Fixed::random(&mut rng)).collect();
    let keys = check_keys(&entities);
    for (a, a_key) in entities.iter().zip(&keys) {
        for (b, b_key) in entities.iter().zip(&keys) {
            let by_value = a.order().cmp(&b.order());
            assert_eq!(a_key.cmp(b_key), by_value, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn keys_with_separators_are_unambiguous() {
    let mut rng = seeded();
    let rng = &mut rng;
    let entities = (0..400).map(|_| Separated::random(rng, |text| text));
    let (made, refused): (Vec<_>, Vec<_>) =
        entities.partition(|entity| entity.entity_key().is_ok());
    assert!(made.len() > 20 && refused.len() > 20);
    check_keys(&made);
    for entity in refused {
        let Separated { a, b, c, .. } = &entity;
        let ends_early = format!("{c}--").find("--") != Some(c.len());
        let is_bad = a.contains('_')
            || ends_early
            || [a, b, c].iter().any(|text| text.contains(is_forbidden));
        let error = entity.entity_key().unwrap_err();
        assert!(is_bad, "{entity:?} was refused: {error}");
    }
}

#[test]
fn escaped_strings_may_contain_any_character() {
    let mut rng = seeded();
    let rng = &mut rng;
    let entities = (0..200).map(|_| Separated::random(rng, Escaped));
    let entities: Vec<_> = entities.collect();
    check_keys(&entities);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "p", row_key = "log_{at}_{device}")]
struct Log {
    at: Desc<u16>,
    device: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "q", row_key = "{floor}{room:02}")]
struct Room {
    floor: i8,
    room: u8,
}

fn ends<T>(rng: &mut Rng, mut value: impl FnMut(&mut Rng) -> T) -> (Bound<T>, Bound<T>) {
    let mut end = |rng: &mut Rng| match rng.u8(..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(value(rng)),
        _ => Bound::Excluded(value(rng)),
    };
    (end(rng), end(rng))
}

async fn read_all<E: TableEntity>(query: QueryEntities<E>) -> Vec<E> {
    let found = query.collect().await.unwrap();
    found.into_iter().map(Stored::into_inner).collect()
}

fn holds<T: PartialOrd>((from, to): &(Bound<T>, Bound<T>), value: &T) -> bool {
    let after = match from {
        Bound::Unbounded => true,
        Bound::Included(end) => value >= end,
        Bound::Excluded(end) => value > end,
    };
    let before = match to {
        Bound::Unbounded => true,
        Bound::Included(end) => value <= end,
        Bound::Excluded(end) => value < end,
    };
    after && before
}

on_both_transports! {
    async fn ranges_of_row_keys_equal_filters_of_values(subject: Subject) {
        let mut rng = seeded();
        let rng = &mut rng;
        let table = subject.service.table("Rows");
        table.create_table().await.unwrap();
        let device = |rng: &mut Rng| text(rng).replace(|c| is_forbidden(c) || c == '_', "");
        let (mut logs, mut rooms) = (Vec::new(), Vec::new());
        for _ in 0..80 {
            let log = Log { at: Desc(rng.u16(..6)), device: device(rng) };
            let room = Room { floor: rng.i8(-3..3), room: rng.u8(..4) };
            table.upsert_replace(&log).await.unwrap();
            table.upsert_replace(&room).await.unwrap();
            logs.push(log);
            rooms.push(room);
        }
        logs.sort_by_key(|log| (Reverse(log.at.0), units(&log.device)));
        logs.dedup();
        rooms.sort_by_key(|room| (room.floor, room.room));
        rooms.dedup();
        for _ in 0..60 {
            let range = ends(rng, |rng| rng.u16(..6));
            let mut expected = logs.clone();
            expected.retain(|log| holds(&range, &log.at.0));
            let found = read_all(table.query::<Log>().partition("p").rows(Log::rows().at(range))).await;
            assert_eq!(found, expected, "{range:?}");

            let (at, range) = (rng.u16(..6), ends(rng, device));
            let units_of = (
                range.0.as_ref().map(|text| units(text)),
                range.1.as_ref().map(|text| units(text)),
            );
            let mut expected = logs.clone();
            expected.retain(|log| log.at.0 == at && holds(&units_of, &units(&log.device)));
            let rows = Log::rows().at(at).device(range.clone());
            let found = read_all(table.query::<Log>().partition("p").rows(rows)).await;
            assert_eq!(found, expected, "{at} {range:?}");

            let range = ends(rng, |rng| rng.i8(-3..3));
            let mut expected = rooms.clone();
            expected.retain(|room| holds(&range, &room.floor));
            let found = read_all(table.query::<Room>().partition(Room::partition()).rows(Room::rows().floor(range))).await;
            assert_eq!(found, expected, "{range:?}");
        }
    }
}

#[derive(Debug, PartialEq, TableEntity)]
struct Numbered {
    #[table(partition_key)]
    day: time::Date,
    #[table(row_key)]
    at: Desc<u32>,
}

on_both_transports! {
    /// A key that is one field is a column, which compares as the field's values do.
    async fn columns_of_keys_compare_as_their_values(subject: Subject) {
        let table = subject.service.table("Numbers");
        table.create_table().await.unwrap();
        let day = time::macros::date!(2024 - 03 - 15);
        for at in [1, 10, 2] {
            table.insert(&Numbered { day, at: Desc(at) }).await.unwrap();
        }
        let filter = Numbered::columns().at.gt(1) & Numbered::columns().day.ge(day);
        assert_eq!(filter.to_string(), "RowKey lt '4294967294' and PartitionKey ge '2024-03-15'");
        let query = table.query::<Numbered>().filter(|e| e.at.between(2..=10));
        let found = query.select(|e| (e.day, e.at)).collect().await.unwrap();
        assert_eq!(found, [(day, Desc(10)), (day, Desc(2))]);
        let query = table.query::<Numbered>().partition(Numbered::partition(day));
        assert_eq!(query.first().await.unwrap().unwrap().at, Desc(10));
    }
}

/// A key has at most 512 UTF-16 units, whatever it is made of.
#[tokio::test]
async fn a_key_that_is_too_long_is_rejected() {
    let longest = "é".repeat(512 - "log_00000_".len());
    let key = |device: &str| {
        let (at, device) = (Desc(0), device.to_owned());
        Log { at, device }.entity_key()
    };
    let row_key = key(&longest).unwrap().row_key().to_string();
    assert_eq!(row_key.chars().count(), 512);
    let error = key(&format!("{longest}é")).unwrap_err();
    assert!(error.to_string().contains("513 UTF-16 units"), "{error}");
    let escaped = Escaped("/".repeat(171));
    assert_eq!(escaped.to_key().unwrap().len(), 513);
}
