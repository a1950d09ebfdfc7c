//! The eight EDM types, up to their limits, in typed structs and in filters.

use tablesdk::{Guid, TableEntity, Timestamp};
use time::OffsetDateTime;
use time::macros::datetime;

use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, TableEntity)]
struct Everything {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    string: String,
    boolean: bool,
    int32: i32,
    int64: i64,
    double: f64,
    guid: Guid,
    instant: OffsetDateTime,
    ticks: Timestamp,
    binary: Vec<u8>,
    small: u8,
    #[table(rename = "Wide")]
    unsigned: u32,
    nothing: Option<i64>,
}

fn ordinary() -> Everything {
    Everything {
        partition: "p".into(),
        row: "ordinary".into(),
        string: "naïve 😀 \"quoted\" \\ \n".into(),
        boolean: true,
        int32: -5,
        int64: 9_007_199_254_740_993,
        double: 5.0,
        guid: "c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap(),
        instant: datetime!(2024-03-15 10:20:30.1234567 UTC),
        ticks: "2020-01-01T01:02:00Z".parse().unwrap(),
        binary: b"binary".to_vec(),
        small: 255,
        unsigned: u32::MAX,
        nothing: None,
    }
}

fn lowest() -> Everything {
    Everything {
        row: "lowest".into(),
        string: String::new(),
        boolean: false,
        int32: i32::MIN,
        int64: i64::MIN,
        double: f64::MIN,
        guid: Guid::default(),
        instant: datetime!(1601-01-01 00:00 UTC),
        ticks: Timestamp::MIN,
        binary: Vec::new(),
        small: 0,
        unsigned: 0,
        nothing: Some(i64::MIN),
        ..ordinary()
    }
}

fn highest() -> Everything {
    Everything {
        row: "highest".into(),
        string: "z".repeat(32_768),
        int32: i32::MAX,
        int64: i64::MAX,
        double: f64::MAX,
        guid: Guid::from_bytes([0xFF; 16]),
        instant: datetime!(9999-12-31 23:59:59.9999999 UTC),
        ticks: Timestamp::MAX,
        binary: vec![0xFF; 65_536],
        nothing: Some(i64::MAX),
        ..ordinary()
    }
}

on_both_transports! {
    async fn every_type_reads_back_as_it_was_written(subject: Subject) {
        let table = subject.table().await;
        for value in [ordinary(), lowest(), highest()] {
            table.insert(&value).await.unwrap();
            let key = Everything::key("p", value.row.as_str());
            let read = table.get(key).await.unwrap().unwrap();
            assert_eq!(*read, value);
        }
    }

    async fn nan_and_infinities_are_read_back(subject: Subject) {
        let table = subject.table().await;
        for double in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::MIN_POSITIVE, 1e300] {
            table.upsert_replace(&Everything { double, ..ordinary() }).await.unwrap();
            let read = table.get(Everything::key("p", "ordinary")).await.unwrap().unwrap();
            assert_eq!(read.double.to_bits(), double.to_bits(), "{double}");
        }
    }

    async fn negative_zero_keeps_its_sign(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Everything { double: -0.0, ..ordinary() }).await.unwrap();
        let read = table.get(Everything::key("p", "ordinary")).await.unwrap().unwrap();
        assert!(read.double.is_sign_negative(), "the sign is lost");
    }

    async fn the_limit_of_strings_counts_utf16_units(subject: Subject) {
        let table = subject.table().await;
        for string in ["é".repeat(32_768), "😀".repeat(16_384)] {
            let value = Everything { string, ..ordinary() };
            table.upsert_replace(&value).await.unwrap();
            let read = table.get(Everything::key("p", "ordinary")).await.unwrap().unwrap();
            assert_eq!(*read, value);
        }
    }

    async fn filters_compare_doubles_of_any_magnitude(subject: Subject) {
        let table = subject.table().await;
        let doubles = [-1e300, -5e-324, 1e-7, 1e21];
        for (row, double) in doubles.into_iter().enumerate() {
            let row = row.to_string();
            table.insert(&Everything { row, double, ..ordinary() }).await.unwrap();
        }
        for (place, double) in doubles.into_iter().enumerate() {
            for (filter, count) in [
                (Everything::columns().double.eq(double), 1),
                (Everything::columns().double.lt(double), place),
                (Everything::columns().double.ge(double), doubles.len() - place),
            ] {
                let shown = filter.to_string();
                let found = table.query::<Everything>().filter(|_| filter).count().await.unwrap();
                assert_eq!(found, count, "{shown}");
            }
        }
    }

    async fn filters_compare_every_type(subject: Subject) {
        let table = subject.table().await;
        for value in [ordinary(), lowest(), highest()] {
            table.insert(&value).await.unwrap();
        }
        let o = ordinary();
        let e = Everything::columns();
        for filter in [
            e.string.eq(&o.string),
            e.boolean.eq(true) & e.int32.lt(0),
            e.int32.eq(-5),
            e.int64.eq(9_007_199_254_740_993),
            e.double.eq(5.0),
            e.guid.eq(o.guid) & e.guid.gt(Guid::default()),
            e.instant.eq(o.instant) & e.instant.ge(datetime!(2024-03-15 10:20:30.1234567 UTC)),
            e.ticks.eq(o.ticks),
            e.binary.eq(&o.binary),
            e.small.eq(255) & e.unsigned.eq(u32::MAX) & e.int32.lt(0),
            // An entity that lacks the property matches no comparison, and every negated one.
            !(e.nothing.ge(i64::MIN)),
            e.row.gt("lowest") & e.partition.eq("p"),
        ] {
            let shown = filter.to_string();
            let rows = table.query::<Everything>().filter(|_| filter).select(|e| e.row).collect().await.unwrap();
            assert_eq!(rows, ["ordinary"], "{shown}");
        }
    }
}

#[test]
fn the_schema_lists_names_and_types() {
    let properties = Everything::SCHEMA.properties().into_iter();
    let shown: Vec<_> = properties
        .map(|p| format!("{} {} {}", p.name(), p.edm_type(), p.is_optional()))
        .collect();
    assert_eq!(Everything::SCHEMA.entity(), "Everything");
    assert_eq!(
        shown,
        [
            "string Edm.String false",
            "boolean Edm.Boolean false",
            "int32 Edm.Int32 false",
            "int64 Edm.Int64 false",
            "double Edm.Double false",
            "guid Edm.Guid false",
            "instant Edm.DateTime false",
            "ticks Edm.DateTime false",
            "binary Edm.Binary false",
            "small Edm.Int32 false",
            "Wide Edm.Int64 false",
            "nothing Edm.Int64 true",
        ]
    );
}
