//! The eight EDM types up to their limits, in typed structs and in filters. `round_trips` has
//! random values of them.

use fastrand::Rng;
use tablesdk::{Guid, TableEntity, Timestamp};
use time::macros::datetime;

use crate::every_type::{Every, random};
use crate::on_both_transports;

fn ordinary() -> Every {
    Every {
        row: "ordinary".into(),
        boolean: true,
        perhaps_int64: None,
        ..random(&mut Rng::with_seed(0), 0)
    }
}

fn lowest() -> Every {
    Every {
        row: "lowest".into(),
        string: String::new(),
        boolean: false,
        i32: i32::MIN,
        i64: i64::MIN,
        f64: f64::MIN,
        guid: Guid::default(),
        time: datetime!(1601-01-01 00:00 UTC),
        ticks: Timestamp::MIN,
        vec: Vec::new(),
        u8: 0,
        u32: 0,
        perhaps_int64: Some(0),
        ..ordinary()
    }
}

fn highest() -> Every {
    Every {
        row: "highest".into(),
        string: "z".repeat(32_768),
        i32: i32::MAX,
        i64: i64::MAX,
        f64: f64::MAX,
        guid: Guid::from_bytes([0xFF; 16]),
        time: datetime!(9999-12-31 23:59:59.9999999 UTC),
        ticks: Timestamp::MAX,
        vec: vec![0xFF; 65_536],
        u8: u8::MAX,
        u32: u32::MAX,
        perhaps_int64: Some(i64::MAX.unsigned_abs()),
        ..ordinary()
    }
}

on_both_transports! {
    async fn the_limits_of_every_type_read_back(subject: Subject) {
        let table = subject.table().await;
        for value in [ordinary(), lowest(), highest()] {
            table.insert(&value).await.unwrap();
            let read = table.get(Every::key("p", value.row.as_str())).await.unwrap().unwrap();
            assert_eq!(*read, value);
        }
    }

    async fn negative_zero_keeps_its_sign(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Every { f64: -0.0, ..ordinary() }).await.unwrap();
        let read = table.get(Every::key("p", "ordinary")).await.unwrap().unwrap();
        assert!(read.f64.is_sign_negative(), "the sign is lost");
    }

    async fn the_limit_of_strings_counts_utf16_units(subject: Subject) {
        let table = subject.table().await;
        for string in ["é".repeat(32_768), "😀".repeat(16_384)] {
            let value = Every { string, ..ordinary() };
            table.upsert_replace(&value).await.unwrap();
            let read = table.get(Every::key("p", "ordinary")).await.unwrap().unwrap();
            assert_eq!(*read, value);
        }
    }

    async fn filters_compare_doubles_of_any_magnitude(subject: Subject) {
        let table = subject.table().await;
        let doubles = [-1e300, -5e-324, 1e-7, 1e21];
        for (row, f64) in doubles.into_iter().enumerate() {
            let row = row.to_string();
            table.insert(&Every { row, f64, ..ordinary() }).await.unwrap();
        }
        for (place, double) in doubles.into_iter().enumerate() {
            for (filter, count) in [
                (Every::columns().f64.eq(double), 1),
                (Every::columns().f64.lt(double), place),
                (Every::columns().f64.ge(double), doubles.len() - place),
            ] {
                let shown = filter.to_string();
                let found = table.query::<Every>().filter(|_| filter).count().await.unwrap();
                assert_eq!(found, count, "{shown}");
            }
        }
    }

    /// `round_trips` compares the other types.
    async fn filters_compare_booleans_keys_and_absent_properties(subject: Subject) {
        let table = subject.table().await;
        for value in [ordinary(), lowest(), highest()] {
            table.insert(&value).await.unwrap();
        }
        let e = Every::columns();
        for filter in [
            e.boolean.eq(true) & e.row.ne("highest"),
            // An entity that lacks the property matches no comparison, and every negated one.
            !(e.perhaps_int64.ge(0)),
            e.row.gt("lowest") & e.partition.eq("p"),
        ] {
            let shown = filter.to_string();
            let rows = table.query::<Every>().filter(|_| filter).select(|e| e.row).collect().await.unwrap();
            assert_eq!(rows, ["ordinary"], "{shown}");
        }
    }
}

#[test]
fn the_schema_lists_names_and_types() {
    let properties = Every::SCHEMA.properties();
    assert_eq!(Every::SCHEMA.entity(), "Every");
    for (name, edm_type) in [
        ("string", "Edm.String"),
        ("boolean", "Edm.Boolean"),
        ("i32", "Edm.Int32"),
        ("i64", "Edm.Int64"),
        ("f64", "Edm.Double"),
        ("guid", "Edm.Guid"),
        ("time", "Edm.DateTime"),
        ("ticks", "Edm.DateTime"),
        ("vec", "Edm.Binary"),
        ("u8", "Edm.Int32"),
        ("u32", "Edm.Int64"),
    ] {
        let property = properties.iter().find(|property| property.name() == name);
        assert_eq!(property.unwrap().edm_type().to_string(), edm_type, "{name}");
    }
}
