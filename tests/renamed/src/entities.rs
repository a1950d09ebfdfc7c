//! `TableEntity` and `TableProperties`, with every attribute.

use renamed::entity::{EntityError, ValueError};
use renamed::index::CopyOf;
use renamed::key::{Desc, Escaped, Shard};
use renamed::{DynamicEntity, ETag, Properties, TableEntity, TableProperties, Timestamp};
use serde::{Deserialize, Serialize};

use crate::values::{Celsius, Colour, Id, Level, OuterId, Region, Secret, Wrapped};

/// An entity with every attribute, of every kind of field.
#[derive(Clone, Debug, TableEntity)]
#[table(crate = "renamed", rename_all = "PascalCase")]
pub struct Employee {
    /// A key that is an enum.
    #[table(partition_key)]
    pub region: Region,
    /// A key that is a newtype.
    #[table(row_key)]
    pub id: OuterId,
    /// A name of its own, and an old one.
    #[table(rename = "FullName", alias = "Name", alias = "NAME")]
    pub name: String,
    /// In years, see [`Employee::name`].
    #[doc(alias = "years")]
    pub age: Option<i32>,
    /// Raw.
    pub r#type: u8,
    /// The type's default.
    #[table(default)]
    pub remote: bool,
    /// A default of its own.
    #[table(default = "Self::usual_level")]
    pub level: Level,
    /// Not stored.
    #[table(skip)]
    pub cached: u64,
    /// Not stored, and made by a function.
    #[table(skip, default = "std::time::Instant::now")]
    pub read_at: std::time::Instant,
    /// Two structs with prefixes.
    #[table(flatten, prefix = "Home")]
    pub home: Address,
    /// Perhaps.
    #[table(flatten, prefix = "Work")]
    pub work: Option<Address>,
    /// JSON.
    #[table(json)]
    pub tags: Vec<Tag>,
    /// JSON that may be absent.
    #[table(json, default)]
    pub history: Option<Tag>,
    /// A conversion of its own.
    #[table(with = "cents")]
    pub pay: Money,
    /// Both integers.
    #[table(mixed_integers)]
    pub badge: Option<i64>,
    /// Newtypes and enums.
    pub temperature: Celsius,
    /// An enum that knows its texts.
    pub colour: Colour,
    /// What other crates have.
    pub started: chrono_like::Started,
    /// Gone soon.
    #[deprecated = "use `pay`"]
    pub salary: Option<f64>,
    /// What the struct does not model.
    #[table(rest)]
    pub other: Properties,
    /// The version.
    #[table(etag)]
    pub etag: Option<ETag>,
    /// Its time.
    #[table(timestamp)]
    pub written: Option<Timestamp>,
    pub(crate) internal: Wrapped<i64>,
    secret: Option<Secret>,
}

pub mod chrono_like {
    //! A type that is known by an alias alone.

    /// An alias.
    pub type Started = Option<renamed::Timestamp>;
}

/// What is flattened.
#[derive(Clone, Debug, PartialEq, Eq, TableProperties)]
#[table(crate = "renamed", rename_all = "PascalCase")]
pub struct Address {
    /// A city.
    #[table(alias = "Town")]
    pub city: String,
    /// Perhaps.
    pub street: Option<String>,
    /// Within.
    #[table(flatten, prefix = "At")]
    pub place: Place,
    /// JSON.
    #[table(json, default)]
    pub notes: Vec<String>,
    /// Not stored.
    #[table(skip)]
    pub seen: bool,
}

/// What is flattened into what is flattened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TableProperties)]
#[table(crate = "renamed")]
pub struct Place {
    /// Of 360.
    #[table(rename = "Lat", default)]
    pub latitude: i32,
    /// Of 360.
    #[table(rename = "Lon", default = "Self::greenwich")]
    pub longitude: i32,
}

impl Place {
    const fn greenwich() -> i32 {
        0
    }
}

/// A part of an employee.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(crate = "renamed", projection, rename_all = "PascalCase")]
pub struct WhoAndWhere {
    /// Its name.
    pub full_name: String,
    /// Where it lives.
    #[table(flatten, prefix = "Home")]
    pub home: Address,
}

/// A part with a key and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(crate = "renamed", projection)]
pub struct RowKeyOnly {
    #[table(row_key)]
    id: Id,
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

/// A generic entity.
#[derive(Clone, Debug, TableEntity)]
#[table(crate = "renamed")]
pub struct Reading<T, const N: usize, U = i32>
where
    T: Clone,
{
    /// Which.
    #[table(partition_key)]
    pub device: String,
    /// When.
    #[table(row_key)]
    pub at: String,
    /// What.
    pub value: T,
    /// Perhaps.
    pub perhaps: Option<U>,
    /// Flattened.
    #[table(flatten)]
    pub labelled: Labelled<T>,
    /// Not stored.
    #[table(skip, default = "zeros")]
    pub buffer: [u8; N],
}

/// A generic struct that is flattened.
#[derive(Clone, Debug, TableProperties)]
#[table(crate = "renamed")]
pub struct Labelled<T> {
    /// What.
    #[table(default)]
    pub label: Wrapped<T>,
}

impl<T: Default> Default for Wrapped<T> {
    fn default() -> Self {
        Self {
            r#type: T::default(),
        }
    }
}

const fn zeros<const N: usize>() -> [u8; N] {
    [0; N]
}

/// Any type of serde.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    text: String,
}

/// A type with a conversion of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(i128);

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
    const fn usual_level() -> Level {
        Level::Low
    }
}

/// Keys of several fields, of every kind of part.
#[derive(Clone, Debug, PartialEq, Eq, TableEntity)]
#[table(
    crate = "renamed",
    rename_all = "PascalCase",
    partition_key = "{region}-{shard}",
    row_key = "{{{at}}}_{badge:06}_{path}"
)]
pub struct Claim {
    /// A part that is an enum.
    pub region: Region,
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
#[table(
    crate = "renamed",
    partition_key = "{at:desc}",
    row_key = "{match:escaped}_{number:04}"
)]
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

#[cfg(test)]
mod tests {
    use renamed::{TableEntity as _, Value};

    use super::*;

    fn stored() -> DynamicEntity {
        let mut row = DynamicEntity::new("west", "7");
        row.properties_mut().extend([
            ("NAME", Value::from("Ada")),
            ("Type", Value::Int32(3)),
            ("HomeTown", Value::from("London")),
            ("HomeAtLat", Value::Int32(51)),
            ("Tags", Value::from(r#"[{"text":"maths"}]"#)),
            ("Pay", Value::Int64(1250)),
            ("Badge", Value::Int32(7)),
            ("Temperature", Value::Double(36.6)),
            ("Colour", Value::from("VERDANT")),
            ("Internal", Value::Int64(5)),
            ("Unknown", Value::Boolean(true)),
        ]);
        row
    }

    #[test]
    fn everything_is_read_and_written() -> Result<(), EntityError> {
        let ada: Employee = stored().to_entity()?;
        assert_eq!(ada.region, Region::Other("west".into()));
        assert_eq!(ada.id, OuterId::from(Id("7".into())));
        assert_eq!((ada.level, ada.colour), (Level::Low, Colour::Green));
        assert_eq!((ada.work.as_ref(), ada.pay), (None, Money(1250)));
        assert_eq!((ada.home.place.latitude, ada.home.place.longitude), (51, 0));
        assert_eq!(
            (ada.internal.r#type, ada.secret.map(|secret| secret.0)),
            (5, None)
        );

        let again: Employee = stored().to_entity()?;
        let written = DynamicEntity::from_entity(&again)?;
        assert_eq!(
            written.properties().get("FullName"),
            Some(&Value::from("Ada"))
        );
        assert_eq!(
            written.properties().get("Colour"),
            Some(&Value::from("GREEN"))
        );
        assert_eq!(
            written.properties().get("Unknown"),
            Some(&Value::Boolean(true))
        );
        Ok(())
    }

    #[test]
    fn filters_have_the_names() {
        let e = Employee::columns();
        let filter = e.home.city.eq("London") & e.id.starts_with("7") & e.pay.ge(5) & e.badge.eq(5);
        assert_eq!(
            filter.to_string(),
            "HomeCity eq 'London' and RowKey ge '7' and RowKey lt '8' and Pay ge 5L and Badge eq 5"
        );
        let r = Reading::<i64, 3>::columns();
        assert_eq!(
            (r.value.eq(1) & r.labelled.label.eq(Wrapped { r#type: 2 })).to_string(),
            "value eq 1L and label eq 2L"
        );
        assert_eq!(
            private::Legacy::columns().SomeValue.eq(5).to_string(),
            "SomeValue eq 5"
        );
        assert_eq!(WhoAndWhere::columns().full_name.name(), "FullName");
        assert_eq!(RowKeyOnly::columns().id.name(), "RowKey");
        assert_eq!(Made::columns().count.name(), "count");
        assert_eq!(Marker::SCHEMA.properties().len(), 0);
    }

    #[test]
    fn what_nobody_sees_is_written() -> Result<(), EntityError> {
        let row = legacy(5)?;
        let read: private::Legacy = row.to_entity()?;
        assert_eq!(
            (read.PK.as_str(), read.RK.as_str(), read.SomeValue),
            ("", "", 5)
        );
        Ok(())
    }

    #[test]
    fn keys_are_made_and_read() -> Result<(), EntityError> {
        let claim = Claim {
            region: Region::North,
            shard: Shard::of("x"),
            at: Desc(Timestamp::UNIX_EPOCH),
            badge: 7,
            path: Escaped("a/b".into()),
            r#final: true,
        };
        let row = DynamicEntity::from_entity(&claim)?;
        assert!(
            row.row_key().ends_with("}_000007_a=2Fb"),
            "{}",
            row.row_key()
        );
        assert_eq!(row.properties().read::<u32>("BadgeNumber").ok(), Some(7));
        assert_eq!(row.to_entity::<Claim>()?, claim);
        assert_eq!(
            Claim::columns().badge.eq(7).to_string(),
            "BadgeNumber eq 7L"
        );

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
        let filter = Forms::<String>::columns()
            .at
            .ge(Timestamp::UNIX_EPOCH)
            .to_string();
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
            .err()
            .map(|error| error.to_string());
        let words = "property \"Pay\": the value -1 is out of range: money is not negative";
        assert_eq!(error.as_deref(), Some(words));
    }
}

/// An entity with copies.
#[derive(Clone, Debug, TableEntity)]
#[table(
    crate = "renamed",
    partition_key = "{team}",
    row_key = "member_{id:04}"
)]
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
#[table(
    crate = "renamed",
    projection,
    partition_key = "{team}",
    row_key = "team_"
)]
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
