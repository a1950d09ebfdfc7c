//! Forms of parts in templates, `{email:escaped}` and `{at:desc}`: the keys are those of the types
//! `Escaped` and `Desc`, and the fields keep their own types.

use harness::seeded;
use tablesdk::entity::EntityError;
use tablesdk::key::{Desc, Escaped, KeyPart};
use tablesdk::{DynamicEntity, ErrorKind, PropertyValue, TableEntity, Timestamp, WritableEntity};
use time::OffsetDateTime;
use time::macros::datetime;

use crate::key_laws::text;
use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, PropertyValue)]
struct Path(String);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    partition_key = "{email:escaped}",
    row_key = "claim_{at:desc}_{path:escaped}_{number:04}"
)]
struct Claim {
    email: String,
    at: OffsetDateTime,
    path: Path,
    number: u32,
    amount: f64,
}

/// The same keys, by types of their own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "{email}", row_key = "claim_{at}_{path}_{number:04}")]
struct WrappedClaim {
    email: Escaped<String>,
    at: Desc<OffsetDateTime>,
    path: Escaped<String>,
    number: u32,
}

fn claim(email: &str, at: OffsetDateTime, path: &str, number: u32) -> Claim {
    Claim {
        email: email.to_owned(),
        at,
        path: Path(path.to_owned()),
        number,
        amount: 12.5,
    }
}

const MARCH: OffsetDateTime = datetime!(2024-03-15 10:20:30.1234567 UTC);

#[test]
fn keys_of_forms_are_those_of_the_types() -> Result<(), EntityError> {
    // (DateTime.MaxValue.Ticks - ticks).ToString("D19")
    let key = claim("ada/x@example.org", MARCH, "a_b=c/d", 7).entity_key()?;
    assert_eq!(key.partition_key().as_str(), "ada=2Fx@example.org");
    assert_eq!(
        key.row_key().as_str(),
        "claim_2516918027698765432_a=5Fb=3Dc=2Fd_0007"
    );

    let mut rng = seeded();
    for _ in 0..300 {
        let (email, path) = (text(&mut rng), text(&mut rng));
        let ticks = rng.i64(Timestamp::MIN.unix_ticks()..Timestamp::MAX.unix_ticks());
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ticks) * 100).unwrap();
        let number = rng.u32(..10_000);
        let plain = claim(&email, at, &path, number);
        let wrapped = WrappedClaim {
            email: Escaped(email),
            at: Desc(at),
            path: Escaped(path),
            number,
        };
        assert_eq!(plain.entity_key()?, wrapped.entity_key()?);
        let dynamic = DynamicEntity::from_entity(&plain)?;
        assert_eq!(dynamic.to_entity::<Claim>()?, plain);
    }
    let last = Desc(Timestamp::MAX).to_key();
    assert_eq!(last.unwrap(), "0000000000000000000");
    Ok(())
}

/// Keys that are one part in a form are columns of the field's type.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "{shelf:03}", row_key = "{at:desc}")]
struct Arrival {
    shelf: u16,
    at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "{owner:escaped}", row_key = "{at:desc}{owner_kind}")]
struct Generic<T: KeyPart, U: tablesdk::key::KeyNumber> {
    owner: T,
    at: U,
    #[table(store)]
    owner_kind: String,
}

/// A part in a form that is stored as a property, too, has the type of the field there.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "p", row_key = "{at:desc}")]
struct Logged {
    #[table(store)]
    at: time::Date,
}

fn timestamp(text: &str) -> Timestamp {
    text.parse().unwrap()
}

on_both_transports! {
    async fn fields_of_escaped_and_descending_parts_keep_their_types(subject: Subject) {
        let table = subject.table().await;
        let email = "ada#1@example.org";
        let days: Vec<_> = (0..4).map(|day| MARCH + time::Duration::days(day)).collect();
        for at in &days {
            for path in ["a/b", "a_b"] {
                table.insert(&claim(email, *at, path, 1)).await.unwrap();
            }
        }
        // A key takes the values themselves.
        let key = Claim::key(email, days[1], Path("a/b".into()), 1);
        let stored = table.get(key).await.unwrap().unwrap();
        assert_eq!(*stored, claim(email, days[1], "a/b", 1));
        assert_eq!(stored.entity_key().unwrap(), *stored.key());

        // The newest come first, and a range is one of values.
        let query = || table.query::<Claim>().partition(Claim::partition(email));
        assert_eq!(query().first().await.unwrap().unwrap().at, days[3]);
        let since = query().rows(Claim::rows().at(days[2]..)).select(|e| (e.at, e.number));
        assert_eq!(since.collect().await.unwrap(), [(days[3], 1), (days[3], 1), (days[2], 1), (days[2], 1)]);
        let one = query().rows(Claim::rows().at(days[2]).path(Path("a_b".into())));
        assert_eq!(one.select(|e| e.path).collect().await.unwrap(), [Path("a_b".into())]);

        let error = table.insert(&claim("", MARCH, "a", 10_000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn a_key_that_is_one_part_in_a_form_is_a_column(subject: Subject) {
        let table = subject.table().await;
        let at = |day: u8| timestamp(&format!("2024-03-{day:02}T00:00:00Z"));
        for day in 1..=4 {
            table.insert(&Arrival { shelf: 7, at: at(day) }).await.unwrap();
        }
        let e = Arrival::columns();
        let filter = e.shelf.eq(7) & e.at.gt(at(2));
        assert_eq!(filter.to_string(), "PartitionKey eq '007' and RowKey lt '2516929631999999999'");
        let found = table.query::<Arrival>().filter(|e| e.shelf.eq(7) & e.at.between(at(2)..at(4)));
        assert_eq!(found.select(|e| e.at).collect().await.unwrap(), [at(3), at(2)]);
        let error = table.query::<Arrival>().filter(|e| e.shelf.eq(1000)).collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn a_stored_part_in_a_form_is_stored_as_its_value(subject: Subject) {
        let table = subject.table().await;
        let at = time::macros::date!(2024 - 03 - 15);
        table.insert(&Logged { at }).await.unwrap();
        let found = table.query::<Logged>().filter(|e| e.at.ge(at)).collect().await.unwrap();
        assert_eq!(*found[0], Logged { at });
        let dynamic = table.query::<DynamicEntity>().one().await.unwrap().unwrap();
        assert_eq!(dynamic.properties().read::<time::Date>("at").unwrap(), at);
        assert_eq!(dynamic.row_key(), "2516918399999999999");
    }
}

#[test]
fn generic_fields_may_be_parts_in_a_form() -> Result<(), EntityError> {
    let entity = Generic {
        owner: "a/b".to_owned(),
        at: 5_u8,
        owner_kind: "x".to_owned(),
    };
    let key = entity.entity_key()?;
    assert_eq!(
        (key.partition_key().as_str(), key.row_key().as_str()),
        ("a=2Fb", "250x")
    );
    let range = Generic::<String, u8>::rows().at(..=5);
    assert!(format!("{range:?}").contains("250"), "{range:?}");
    Ok(())
}
