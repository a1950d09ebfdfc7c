//! Random values of every Rust type that maps to a property: each value is read back unchanged, and
//! filters order the values as Rust does. Each run prints its seed.

use fastrand::Rng;
use harness::{Subject, seeded};
use tablesdk::{DynamicEntity, TableClient, TableEntity, Value};

use crate::every_type::{Every, random, text};
use crate::on_both_transports;

async fn filled(rng: &mut Rng, subject: &Subject, count: usize) -> (TableClient, Vec<Every>) {
    let table = subject.table().await;
    let rows: Vec<_> = (0..count).map(|row| random(rng, row)).collect();
    for row in &rows {
        table.insert(row).await.unwrap();
    }
    (table, rows)
}

on_both_transports! {
    async fn every_type_is_read_back_unchanged(subject: Subject) {
        let mut rng = seeded();
        let (table, rows) = filled(&mut rng, &subject, 150).await;
        let read = table.query::<Every>().collect().await.unwrap();
        assert_eq!(read.len(), rows.len());
        for (read, row) in read.iter().zip(&rows) {
            assert_eq!(**read, *row);
            // To the bit, which equality of numbers is not.
            assert_eq!(
                (read.f64.to_bits(), read.f32.to_bits()),
                (row.f64.to_bits(), row.f32.to_bits())
            );
            // Equal decimals may differ in their scale.
            assert_eq!(read.decimal.scale(), row.decimal.scale());
            // Through an entity without a struct, and back.
            let dynamic = DynamicEntity::from_entity(row).unwrap();
            assert_eq!(dynamic.to_entity::<Every>().unwrap(), *row);
        }
    }

    async fn nan_is_read_back(subject: Subject) {
        let table = subject.table().await;
        let row = Every {
            f64: f64::NAN,
            f32: f32::NAN,
            ..random(&mut seeded(), 0)
        };
        table.insert(&row).await.unwrap();
        let read = table.get(Every::key("p", "0000")).await.unwrap().unwrap();
        assert_eq!(read.f64.to_bits(), f64::NAN.to_bits());
        assert!(read.f32.is_nan());
        // A NaN compares with nothing.
        let found = table
            .query::<Every>()
            .filter(|e| e.f64.eq(f64::NAN) | e.f64.ge(f64::NEG_INFINITY));
        assert!(found.collect().await.unwrap().is_empty());
    }
}

/// Asserts that each comparison of the field with one of its values finds the entities that satisfy
/// it.
macro_rules! assert_ordered {
    ($table:ident, $rows:ident, $rng:ident: $($field:ident $(by $key:expr)?),+) => {$(
        let pivot = &$rows[$rng.usize(..$rows.len())].$field;
        #[allow(unused_mut, unused_assignments, reason = "not every type needs a key of its own")]
        let expected = |holds: fn(std::cmp::Ordering) -> bool| -> Vec<&str> {
            let matching = $rows.iter().filter(|row| {
                let mut ordering = row.$field.partial_cmp(pivot);
                $(let key = $key; ordering = Some(key(&row.$field).cmp(&key(pivot)));)?
                ordering.is_some_and(holds)
            });
            matching.map(|row| row.row.as_str()).collect()
        };
        let column = Every::columns().$field;
        for (filter, expected) in [
            (column.eq(pivot), expected(std::cmp::Ordering::is_eq)),
            (column.ne(pivot), expected(std::cmp::Ordering::is_ne)),
            (column.gt(pivot), expected(std::cmp::Ordering::is_gt)),
            (column.ge(pivot), expected(std::cmp::Ordering::is_ge)),
            (column.lt(pivot), expected(std::cmp::Ordering::is_lt)),
            (column.le(pivot), expected(std::cmp::Ordering::is_le)),
            (column.between(pivot..=pivot), expected(std::cmp::Ordering::is_eq)),
        ] {
            let shown = filter.to_string();
            let found = $table.query::<Every>().filter(|_| filter).select(|e| e.row).collect().await.unwrap();
            assert_eq!(found, expected, "{}: {shown}", stringify!($field));
        }
    )+};
}

on_both_transports! {
    async fn filters_order_values_as_rust_does(subject: Subject) {
        let mut rng = seeded();
        let (table, rows) = filled(&mut rng, &subject, 60).await;
        let utf16 = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        assert_ordered!(
            table, rows, rng:
            string by |text: &String| utf16(text),
            i8, i16, i32, i64, u8, u16, u32, u64, ticks, time, time_date, chrono,
            chrono_date, jiff, jiff_date, duration, ordered_decimal, u64_as_int64
        );
    }

    async fn filters_order_floats_as_rust_does(subject: Subject) {
        let mut rng = seeded();
        let (table, rows) = filled(&mut rng, &subject, 60).await;
        for _ in 0..8 {
            assert_ordered!(table, rows, rng: f32, f64);
        }
    }

    async fn filters_order_bytes_as_rust_does(subject: Subject) {
        let mut rng = seeded();
        let (table, rows) = filled(&mut rng, &subject, 60).await;
        for _ in 0..8 {
            assert_ordered!(table, rows, rng: vec, bytes);
        }
    }

    async fn filters_order_guids_as_rust_does(subject: Subject) {
        let mut rng = seeded();
        let (table, rows) = filled(&mut rng, &subject, 60).await;
        for _ in 0..8 {
            assert_ordered!(table, rows, rng: guid, uuid);
        }
    }

    async fn starts_with_finds_the_prefixes_of_strings(subject: Subject) {
        let mut rng = seeded();
        let (table, rows) = filled(&mut rng, &subject, 60).await;
        for _ in 0..20 {
            let prefix = text(&mut rng);
            let expected: Vec<_> = rows
                .iter()
                .filter(|row| row.name.0.starts_with(&prefix))
                .map(|row| row.row.as_str())
                .collect();
            let query = table
                .query::<Every>()
                .filter(|e| e.name.starts_with(&prefix));
            assert_eq!(
                query.select(|e| e.row).collect().await.unwrap(),
                expected,
                "{prefix:?}"
            );
        }
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
struct Counter {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    #[table(mixed_integers)]
    count: Option<i64>,
}

on_both_transports! {
    /// Other clients store small numbers as Int32 and large ones as Int64, in one column.
    async fn mixed_integers_are_compared_as_numbers(subject: Subject) {
        let mut rng = seeded();
        let table = subject.table().await;
        let near = |rng: &mut Rng| match rng.u8(..4) {
            0 => i64::from(i32::MAX) + rng.i64(-2..=2),
            1 => i64::from(i32::MIN) + rng.i64(-2..=2),
            2 => rng.i64(-3..=3),
            _ => rng.i64(..),
        };
        let mut counts = Vec::new();
        for row in 0..80 {
            let count = near(&mut rng);
            let mut entity = DynamicEntity::new("p", format!("{row:04}"));
            let value = match i32::try_from(count) {
                Ok(small) if rng.bool() => Value::Int32(small),
                _ => Value::Int64(count),
            };
            if row > 0 {
                entity.properties_mut().set("count", value);
                counts.push((format!("{row:04}"), count));
            }
            table.insert(&entity).await.unwrap();
        }
        for _ in 0..40 {
            let pivot = near(&mut rng);
            let column = Counter::columns().count;
            for (filter, holds) in [
                (column.eq(pivot), i64::eq as fn(&i64, &i64) -> bool),
                (column.ne(pivot), i64::ne),
                (column.gt(pivot), i64::gt),
                (column.ge(pivot), i64::ge),
                (column.lt(pivot), i64::lt),
                (column.le(pivot), i64::le),
            ] {
                let shown = filter.to_string();
                let found = table
                    .query::<Counter>()
                    .filter(|_| filter)
                    .select(|e| (e.row, e.count))
                    .collect()
                    .await
                    .unwrap_or_else(|error| panic!("{shown}: {error:?}"));
                let expected = counts.iter().filter(|(_, count)| holds(count, &pivot));
                let expected: Vec<_> = expected
                    .map(|(row, count)| (row.clone(), Some(*count)))
                    .collect();
                assert_eq!(found, expected, "{shown}");
            }
        }
    }
}
