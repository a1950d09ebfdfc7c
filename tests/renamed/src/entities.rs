//! Entities of every kind, beside that of `shadowed`.

use renamed::entity::{EntityError, ValueError};
use renamed::index::CopyOf;
use renamed::key::{Desc, Escaped, Shard};
use renamed::{DynamicEntity, TableEntity, Timestamp};
use serde::{Deserialize, Serialize};

use crate::values::{Celsius, Colour, OuterId, Secret};
use shadowed::{Forgetful, Id, Status, Wrapped};

pub mod shadowed;

mod other_name {
    pub(super) use renamed as sdk;
}

/// Fields that a lint might report, beside those of `shadowed`.
#[derive(Clone, Debug, TableEntity)]
#[table(crate = "renamed", rename_all = "PascalCase")]
pub struct Employee {
    /// A key that is an enum.
    #[table(partition_key)]
    pub status: Status,
    /// A key that is a newtype of a newtype.
    #[table(row_key)]
    pub id: OuterId,
    /// A name of its own, and an old one.
    #[table(rename = "FullName", alias = "Name", alias = "NAME")]
    pub name: String,
    /// In years, see [`Employee::name`].
    #[doc(alias = "years")]
    pub age: Option<i32>,
    /// A default of its own.
    #[table(default = "Self::usual_level")]
    pub level: Forgetful,
    /// Not stored, and made by a function.
    #[table(skip, default = "std::time::Instant::now")]
    pub read_at: std::time::Instant,
    /// JSON.
    #[table(json)]
    pub tags: Vec<Tag>,
    /// A conversion of its own.
    #[table(with = "cents")]
    pub pay: Money,
    /// A newtype with a name.
    pub temperature: Celsius,
    /// An enum that knows its texts.
    pub colour: Colour,
    /// A type of another crate.
    pub started: chrono_like::Started,
    /// Gone soon.
    #[deprecated = "use `pay`"]
    pub salary: Option<f64>,
    pub(crate) internal: Wrapped<i64>,
    secret: Option<Secret>,
}

pub mod chrono_like {
    //! A type that is known by an alias alone.

    /// An alias.
    pub type Started = Option<renamed::Timestamp>;
}

/// Only keys.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(crate = "renamed")]
pub struct Marker {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
}

/// Any type of serde.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    text: String,
}

/// A type with a conversion of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(pub i128);

mod cents {
    use super::{Money, ValueError};

    pub(super) type Property = i64;

    pub(super) fn to_property(money: &Money) -> Result<Property, ValueError> {
        i64::try_from(money.0).map_err(ValueError::unwritable)
    }

    pub(super) fn from_property(cents: Property) -> Result<Money, ValueError> {
        if cents < 0 {
            return Err(ValueError::out_of_range(cents, "money is not negative"));
        }
        Ok(Money(i128::from(cents)))
    }
}

impl Employee {
    const fn usual_level() -> Forgetful {
        Forgetful::One
    }
}

/// Keys of several fields, of every kind of part.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(crate = "renamed", rename_all = "PascalCase")]
#[table(
    partition_key = "{status}-{shard}",
    row_key = "{{{at}}}_{badge:06}_{path}"
)]
pub struct Claim {
    /// A part that is an enum.
    pub status: Status,
    /// A part that spreads.
    pub shard: Shard<16>,
    /// Newest first.
    pub at: Desc<Timestamp>,
    /// Stored, too.
    #[table(store, rename = "BadgeNumber")]
    pub badge: u32,
    /// Any text.
    pub path: Escaped<String>,
    /// No part of a key.
    pub r#final: bool,
}

/// Parts of keys in forms, a key that is one part, and conversions of the library.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(crate = "renamed")]
#[table(partition_key = "{at:desc}", row_key = "{match:escaped}_{number:04}")]
pub struct Forms<T>
where
    T: Clone,
{
    /// Newest first.
    pub at: Timestamp,
    /// Any string.
    pub r#match: T,
    /// Padded.
    pub number: u16,
    /// As Int64.
    #[table(with = "renamed::entity::u64_as_int64")]
    pub size: u64,
    /// As Int64, or absent.
    #[table(with = "renamed::entity::u64_as_int64::option")]
    pub limit: Option<u64>,
}

/// One key by a template, and one of a field.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(crate = "renamed", row_key = "{type}_{number:04}")]
pub struct Half<T>
where
    T: Clone,
{
    #[table(partition_key)]
    partition: Id,
    r#type: OuterId,
    number: u16,
    /// Generic.
    pub value: Option<T>,
}

macro_rules! entity {
    ($name:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        /// Made by a macro.
        #[derive(Clone, Debug, TableEntity)]
        #[table(crate = "renamed")]
        pub struct $name {
            #[table(partition_key)]
            partition: String,
            #[table(row_key)]
            row: String,
            $(
                /// Made by a macro.
                pub $field: $ty,
            )*
        }
    };
}

entity!(Made {
    count: i64,
    name: Option<String>,
});

mod private {
    //! An entity that is visible only in the parent module, with names that a lint reports.

    use renamed::TableEntity;

    #[derive(Debug, TableEntity)]
    #[table(crate = "renamed")]
    #[expect(non_snake_case, reason = "the names of the table")]
    pub(super) struct Legacy {
        #[table(partition_key)]
        pub(super) PK: String,
        #[table(row_key)]
        pub(super) RK: String,
        pub(super) SomeValue: i32,
    }

    pub(super) const fn of(value: i32) -> Legacy {
        Legacy {
            PK: String::new(),
            RK: String::new(),
            SomeValue: value,
        }
    }
}

/// Converts an entity of the private type into a dynamic one.
///
/// # Errors
///
/// It does not fail in practice.
pub fn legacy(value: i32) -> Result<DynamicEntity, EntityError> {
    DynamicEntity::from_entity(&private::of(value))
}

/// An entity with copies.
#[derive(Clone, Debug, TableEntity)]
#[table(crate = "renamed")]
#[table(partition_key = "{team}", row_key = "member_{id:04}")]
#[table(copy(Mail), copy(Head))]
pub struct Member {
    /// The partition.
    pub team: String,
    /// Its number.
    pub id: u32,
    /// Copied.
    pub r#type: Option<String>,
}

/// A copy that is an entity.
#[derive(Clone, Debug, TableEntity)]
#[table(crate = "renamed", partition_key = "{team}", row_key = "mail_{id:04}")]
pub struct Mail {
    /// The partition.
    pub team: String,
    /// The number of the member.
    pub id: u32,
}

/// A part of a team.
#[derive(Clone, Debug, TableEntity)]
#[table(crate = "renamed", projection)]
#[table(partition_key = "{team}", row_key = "team_")]
pub struct Head {
    /// The partition.
    pub team: String,
    /// Raw.
    pub r#type: Option<String>,
}

impl CopyOf<Member> for Mail {
    fn copies_of(member: &Member) -> impl IntoIterator<Item = Self> {
        [Self {
            team: member.team.clone(),
            id: member.id,
        }]
    }
}

impl CopyOf<Member> for Head {
    fn copies_of(member: &Member) -> impl IntoIterator<Item = Self> {
        member.r#type.clone().map(|r#type| Self {
            team: member.team.clone(),
            r#type: Some(r#type),
        })
    }
}

#[cfg(test)]
mod tests {
    use renamed::{TableEntity as _, Value};

    use super::shadowed::{Everything, KeyOnly, Part};
    use super::*;

    fn stored() -> DynamicEntity {
        let mut row = DynamicEntity::new("west", "7");
        row.properties_mut().extend([
            ("NAME", Value::from("Ada")),
            ("Tags", Value::from(r#"[{"text":"maths"}]"#)),
            ("Pay", Value::Int64(1250)),
            ("Temperature", Value::Double(36.6)),
            ("Colour", Value::from("VERDANT")),
            ("Internal", Value::Int64(5)),
        ]);
        row
    }

    #[test]
    fn everything_is_read_and_written() -> Result<(), EntityError> {
        let ada: Employee = stored().to_entity()?;
        assert_eq!(ada.status, Status::Other("west".into()));
        assert_eq!(ada.id, OuterId::from(Id("7".into())));
        assert_eq!((ada.level, ada.colour), (Forgetful::One, Colour::Green));
        let secret = ada.secret.as_ref().map(|secret| &secret.0);
        assert_eq!(
            (ada.pay, ada.internal.r#type, secret),
            (Money(1250), 5, None)
        );

        let written = DynamicEntity::from_entity(&ada)?;
        let get = |name| written.properties().get(name);
        assert_eq!(get("FullName"), Some(&Value::from("Ada")));
        assert_eq!(get("Colour"), Some(&Value::from("GREEN")));
        Ok(())
    }

    #[test]
    fn defaults_and_aliases_are_used_where_names_are_shadowed() -> Result<(), EntityError> {
        let mut row = DynamicEntity::new("west", "7");
        row.properties_mut().extend([
            ("forgetful", Value::from("One")),
            ("Town", Value::from("London")),
            ("Match", Value::Int64(1)),
            ("mixed", Value::Int32(7)),
            ("pay", Value::Int64(1250)),
            ("Unknown", Value::Boolean(true)),
        ]);
        let read: Everything<i64, 3> = row.to_entity()?;
        assert_eq!((read.r#type, read.value, read.bytes), (7, 0, [0; 3]));
        assert_eq!((&*read.home.city, read.home.r#match), ("London", 1));
        assert_eq!((read.forgetful, read.pay), (Forgetful::One, Money(1250)));
        let unknown = read.rest.get("Unknown");
        assert_eq!(
            (read.mixed, unknown),
            (Some(7), Some(&Value::Boolean(true)))
        );
        assert!(read.work.is_none() && read.home.within.is_none());
        Ok(())
    }

    #[test]
    fn filters_have_the_names() {
        let columns = Everything::<i64, 3>::columns();
        let filter = columns.home.r#match.ge(5)
            & columns.mixed.eq(5)
            & columns.work.within.pay.eq(5)
            & columns.id.starts_with("x");
        assert_eq!(
            filter.to_string(),
            "Match ge 5L and mixed eq 5 and w_In_pay eq 5L and RowKey ge 'x' and RowKey lt 'y'"
        );
        assert!(format!("{columns:?}").starts_with("EverythingColumns"));
        assert_eq!(Everything::<i64, 3>::SCHEMA.properties().len(), 14);
        let e = Employee::columns();
        let values = e.internal.eq(Wrapped { r#type: 2 }) & e.colour.eq(Colour::Blue);
        assert_eq!(values.to_string(), "Internal eq 2L and Colour eq 'bleu'");
        let legacy = private::Legacy::columns().SomeValue.eq(5);
        assert_eq!(legacy.to_string(), "SomeValue eq 5");
        assert_eq!(Part::columns().name.name(), "name");
        assert_eq!(KeyOnly::columns().id.name(), "RowKey");
        assert_eq!(Made::columns().count.name(), "count");
        assert_eq!(Marker::SCHEMA.properties().len(), 0);
    }

    #[test]
    fn what_nobody_sees_is_written() -> Result<(), EntityError> {
        let row = legacy(5)?;
        let read: private::Legacy = row.to_entity()?;
        assert_eq!((&*read.PK, &*read.RK, read.SomeValue), ("", "", 5));
        Ok(())
    }

    #[test]
    fn keys_are_made_and_read() -> Result<(), EntityError> {
        let claim = Claim {
            status: Status::Gone,
            shard: Shard::of("x"),
            at: Desc(Timestamp::UNIX_EPOCH),
            badge: 7,
            path: Escaped("a/b".into()),
            r#final: true,
        };
        let row = DynamicEntity::from_entity(&claim)?;
        let key = row.row_key();
        assert!(key.ends_with("}_000007_a=2Fb"), "{key}");
        assert_eq!(row.properties().read::<u32>("BadgeNumber").ok(), Some(7));
        assert_eq!(row.to_entity::<Claim>()?, claim);
        let badge = Claim::columns().badge.eq(7);
        assert_eq!(badge.to_string(), "BadgeNumber eq 7L");

        let forms = Forms {
            at: Timestamp::UNIX_EPOCH,
            r#match: "a/b_".to_owned(),
            number: 7,
            size: 1,
            limit: None,
        };
        let written = DynamicEntity::from_entity(&forms)?;
        assert_eq!(written.row_key(), "a=2Fb=5F_0007");
        assert_eq!(written.to_entity::<Forms<String>>()?, forms);
        let at = Forms::<String>::columns().at;
        let filter = at.ge(Timestamp::UNIX_EPOCH).to_string();
        assert_eq!(filter, "PartitionKey le '2534023007999999999'");

        let half = DynamicEntity::new("p", "a_0005").to_entity::<Half<i64>>()?;
        assert_eq!(
            (half.partition, half.r#type, half.number),
            (Id("p".into()), OuterId::from(Id("a".into())), 5)
        );
        Ok(())
    }

    #[test]
    fn what_a_conversion_refuses_is_told() {
        let mut row = stored();
        row.properties_mut().extend([("Pay", Value::Int64(-1))]);
        let error = row
            .to_entity::<Employee>()
            .map_err(|error| error.to_string());
        let words = "property \"Pay\": the value -1 is out of range: money is not negative";
        assert_eq!(error.err().as_deref(), Some(words));
    }
}
