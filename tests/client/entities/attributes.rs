//! The effect of each field attribute on the table: the name and value of the stored property, and
//! the value that is read back.

use serde::{Deserialize, Serialize};
use tablesdk::entity::ValueError;
use tablesdk::{
    DynamicEntity, ETag, Properties, TableClient, TableEntity, TableProperties, Timestamp, Value,
};
use time::OffsetDateTime;

use crate::json::of_every_type;
use crate::on_both_transports;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Tags {
    names: Vec<String>,
    weight: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Money {
    cents: i64,
}

mod cents {
    use super::{Money, ValueError};

    pub(super) type Property = i64;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the form that the attribute asks for"
    )]
    pub(super) fn to_property(money: &Money) -> Result<Property, ValueError> {
        Ok(money.cents)
    }

    pub(super) fn from_property(cents: Property) -> Result<Money, ValueError> {
        if cents < 0 {
            return Err(ValueError::out_of_range(cents, "money is not negative"));
        }
        Ok(Money { cents })
    }
}

#[derive(Debug, Clone, PartialEq, TableProperties)]
#[table(rename_all = "PascalCase")]
struct Address {
    city: String,
    #[table(alias = "Zip")]
    postal_code: Option<String>,
    #[table(flatten, prefix = "Geo_")]
    place: Option<Place>,
    #[table(skip)]
    seen: bool,
}

#[derive(Debug, Clone, PartialEq, TableProperties)]
#[table(rename_all = "snake_case")]
struct Place {
    north: f64,
    east: f64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(alias = "Nick", alias = "Handle")]
    nickname: Option<String>,
    #[table(default)]
    remote: bool,
    #[table(default = "Self::usual_limit")]
    limit: i32,
    #[table(skip)]
    cached: u64,
    #[table(skip, default = "computed")]
    computed: u64,
    #[table(flatten)]
    home: Address,
    #[table(flatten, prefix = "Work_")]
    work: Option<Address>,
    #[table(json, default)]
    tags: Tags,
    #[table(json, rename = "Raw")]
    maybe: Option<Vec<i32>>,
    #[table(with = "cents")]
    pay: Money,
    r#type: i32,
    #[table(rest)]
    other: Properties,
    #[table(etag)]
    etag: Option<ETag>,
    #[table(timestamp)]
    at: Option<OffsetDateTime>,
}

const fn computed() -> u64 {
    7
}

impl Person {
    const fn usual_limit() -> i32 {
        100
    }
}

fn ada() -> Person {
    Person {
        country: "UK".into(),
        id: "1".into(),
        nickname: Some("Countess".into()),
        remote: true,
        limit: 5,
        cached: 99,
        computed: 99,
        home: Address {
            city: "London".into(),
            postal_code: None,
            place: Some(Place {
                north: 51.5,
                east: -0.1,
            }),
            seen: true,
        },
        work: None,
        tags: Tags {
            names: vec!["maths".into()],
            weight: Some(u64::MAX),
        },
        maybe: None,
        pay: Money { cents: 1250 },
        r#type: 3,
        other: Properties::from_iter([("Extra", Value::Int64(5))]),
        etag: None,
        at: None,
    }
}

/// The struct as it is read back: fields that are not stored have their defaults.
fn stored(mut person: Person, of: &Person) -> Person {
    person.cached = 0;
    person.computed = 7;
    person.home.seen = false;
    if let Some(work) = &mut person.work {
        work.seen = false;
    }
    person.etag.clone_from(&of.etag);
    person.at = of.at;
    person
}

async fn raw(table: &TableClient, id: &str) -> Vec<String> {
    let entity = table.get::<DynamicEntity>(("UK", id)).await.unwrap();
    let entity = entity.unwrap();
    let properties = entity.properties().iter();
    properties
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect()
}

on_both_transports! {
    async fn attributes_determine_the_stored_properties(subject: Subject) {
        let table = subject.table().await;
        table.insert(&ada()).await.unwrap();
        assert_eq!(
            raw(&table, "1").await,
            [
                "Nickname: String(\"Countess\")",
                "Remote: Boolean(true)",
                "Limit: Int32(5)",
                "City: String(\"London\")",
                "Geo_north: Double(51.5)",
                "Geo_east: Double(-0.1)",
                "Tags: String(\"{\\\"names\\\":[\\\"maths\\\"],\\\"weight\\\":18446744073709551615}\")",
                "Pay: Int64(1250)",
                "Type: Int32(3)",
                "Extra: Int64(5)",
            ]
        );
    }

    async fn a_stored_struct_is_read_back(subject: Subject) {
        let table = subject.table().await;
        let rich = Person {
            work: Some(Address { city: "Ealing".into(), postal_code: Some("W5".into()), place: None, seen: false }),
            maybe: Some(vec![1, 2]),
            ..ada()
        };
        for person in [ada(), rich] {
            table.upsert_replace(&person).await.unwrap();
            let read = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
            assert_eq!(*read, stored(person, &read));
        }
    }

    async fn an_absent_property_has_its_default(subject: Subject) {
        let table = subject.table().await;
        let bare = DynamicEntity::new("UK", "1").with("City", "Paris").with("Pay", 7).with("Type", 1);
        table.insert(&bare).await.unwrap();
        let read = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
        assert!(!read.remote);
        assert_eq!((read.limit, read.computed, read.pay.cents), (100, 7, 7));
        assert_eq!((&read.work, &read.home.place, &read.maybe), (&None, &None, &None));
        assert_eq!(read.tags, Tags::default());
        assert!(read.other.is_empty());
    }

    async fn an_alias_is_read_if_the_name_is_missing(subject: Subject) {
        let table = subject.table().await;
        let mut old = DynamicEntity::from_entity(&Person { nickname: None, ..ada() }).unwrap();
        old.properties_mut().set("Handle", "oldest");
        table.upsert_replace(&old).await.unwrap();
        let nickname = || async {
            let one = table.query::<Person>().select(|e| e.nickname).collect().await.unwrap();
            let person = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
            assert_eq!(one, std::slice::from_ref(&person.nickname));
            person.nickname.clone()
        };
        assert_eq!(nickname().await.as_deref(), Some("oldest"));
        // The order of the aliases counts, not that of the stored properties.
        old.properties_mut().set("Nick", "older");
        table.upsert_replace(&old).await.unwrap();
        assert_eq!(nickname().await.as_deref(), Some("older"));
        old.properties_mut().set("Nickname", "new");
        table.upsert_replace(&old).await.unwrap();
        assert_eq!(nickname().await.as_deref(), Some("new"));
        // A replace removes the aliases, which are not part of the rest.
        let mut person = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
        assert_eq!(person.other.len(), 1);
        table.replace(&mut person).await.unwrap();
        let names = raw(&table, "1").await.join(" ");
        assert!(names.contains("Nickname") && !names.contains("Nick:") && !names.contains("Handle"), "{names}");
    }

    async fn the_rest_survives_a_replace(subject: Subject) {
        let table = subject.table().await;
        let strange = of_every_type().properties().clone();
        let person = Person { other: strange.clone(), ..ada() };
        table.insert(&person).await.unwrap();
        let mut read = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
        assert_eq!(read.other, strange);
        read.limit = 6;
        table.replace(&mut read).await.unwrap();
        let again = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
        assert_eq!((&again.other, again.limit), (&strange, 6));
    }

    async fn etag_and_timestamp_fields_are_not_written(subject: Subject) {
        let table = subject.table().await;
        let mut stored = table.insert(&ada()).await.unwrap();
        assert_eq!(stored.etag.as_ref(), Some(stored.etag()));
        assert!(stored.at.is_some());
        let first = stored.etag().clone();
        table.replace(&mut stored).await.unwrap();
        assert_ne!(stored.etag.as_ref(), Some(&first));
        assert_eq!(stored.etag.as_ref(), Some(stored.etag()));
        let read = table.get(Person::key("UK", "1")).await.unwrap().unwrap();
        assert_eq!((&read.etag, read.at), (&stored.etag, stored.at));
        assert_eq!(read.at.map(|at| Timestamp::try_from(at).unwrap()), read.timestamp());
        // The timestamp is a column, too.
        let at = read.at.unwrap();
        let found = table.query::<Person>().filter(|e| e.at.ge(at)).select(|e| (e.id, e.at)).collect().await.unwrap();
        assert_eq!(found, [("1".to_owned(), Some(at))]);
    }

    async fn columns_of_flattened_structs_filter_and_select(subject: Subject) {
        let table = subject.table().await;
        table.insert(&ada()).await.unwrap();
        let query = table.query::<Person>().filter(|e| {
            e.home.city.starts_with("Lon") & e.home.place.north.between(51.0..52.0) & e.pay.ge(1000) & !e.work.city.ge("")
        });
        let found = query.select(|e| (e.home.city, e.home.place.east, e.tags, e.pay)).collect().await.unwrap();
        assert_eq!(found, [("London".to_owned(), -0.1, ada().tags, 1250)]);
        let tags = table.query::<Person>().select(|e| e.tags).collect().await.unwrap();
        assert_eq!(tags, [ada().tags]);
        assert_eq!(Person::columns().work.place.north.name(), "Work_Geo_north");
    }

    async fn the_rest_rejects_names_that_are_taken_or_invalid(subject: Subject) {
        let table = subject.table().await;
        for (name, because) in [
            ("Limit", "property \"Limit\": the value cannot be stored: a field is stored under its name"),
            ("Work_City", "a field is stored under its name"),
            ("RowKey", "property \"RowKey\": the value cannot be stored: the service has a property of its own under its name"),
            ("a-b", "property \"a-b\": the value cannot be stored"),
            ("", "property \"\": the value cannot be stored"),
        ] {
            let person = Person { other: Properties::from_iter([(name, 1)]), ..ada() };
            let error = format!("{:?}", table.insert(&person).await.unwrap_err());
            assert!(error.contains(because), "{error}");
        }
    }

    async fn a_custom_conversion_may_fail(subject: Subject) {
        let table = subject.table().await;
        let poor = Person { pay: Money { cents: -1 }, ..ada() };
        table.upsert_replace(&poor).await.unwrap();
        let error = table.get(Person::key("UK", "1")).await.unwrap_err();
        let because = "property \"Pay\": the value -1 is out of range: money is not negative";
        assert!(format!("{error:?}").contains(because), "{error:?}");
        assert_eq!(error.key().unwrap().row_key().as_str(), "1");
    }
}

#[test]
fn the_schema_lists_flattened_and_optional_properties() {
    let properties = Person::SCHEMA.properties();
    let shown = properties.iter().map(|property| {
        let optional = if property.is_optional() { "?" } else { "" };
        format!("{}{optional} {}", property.name(), property.edm_type())
    });
    let expected = "Nickname? Edm.String, Remote? Edm.Boolean, Limit? Edm.Int32, \
        City Edm.String, PostalCode? Edm.String, Geo_north Edm.Double, Geo_east Edm.Double, \
        Work_City Edm.String, Work_PostalCode? Edm.String, \
        Work_Geo_north Edm.Double, Work_Geo_east Edm.Double, \
        Tags? Edm.String, Raw? Edm.String, Pay Edm.Int64, Type Edm.Int32";
    assert_eq!(shown.collect::<Vec<_>>().join(", "), expected);
}

/// Any type can be the parameter of a generic entity whose bounds it satisfies.
#[derive(Debug, Clone, PartialEq, TableEntity)]
struct Sample<T, G, J> {
    #[table(partition_key)]
    series: String,
    #[table(row_key)]
    at: String,
    value: T,
    #[table(default)]
    usual: T,
    #[table(flatten, prefix = "x_")]
    group: G,
    #[table(json)]
    json: J,
    #[table(skip)]
    skipped: Option<T>,
}

on_both_transports! {
    async fn an_entity_may_be_generic(subject: Subject) {
        let table = subject.table().await;
        let place = Place { north: 1.0, east: 2.0 };
        let sample = Sample {
            series: "a".into(),
            at: "1".into(),
            value: 5_i64,
            usual: 6,
            group: Some(place),
            json: vec![Some(1), None],
            skipped: None,
        };
        table.insert(&sample).await.unwrap();
        let query = table.query::<Sample<i64, Option<Place>, Vec<Option<i32>>>>();
        let read = query.filter(|e| e.value.eq(5) & e.group.north.lt(2.0)).collect().await.unwrap();
        assert_eq!(*read[0], sample);
    }
}
