//! Every attribute, with another path of the crate, and with the names of the prelude shadowed.
#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    unused_results,
    missing_debug_implementations,
    single_use_lifetimes,
    clippy::all,
    clippy::pedantic
)]
#![forbid(dead_code, deprecated, nonstandard_style, unused)]

mod renamed {
    pub(crate) use tablesdk as sdk;
}

/// Names that generated code must not mistake for the prelude's.
pub mod shadow {
    #![no_implicit_prelude]

    use crate::renamed::sdk::{PropertyValue, TableEntity, TableProperties};

    /// Shadows.
    #[derive(Debug)]
    pub struct String;
    /// Shadows.
    #[derive(Debug)]
    pub struct Option;
    /// Shadows.
    #[derive(Debug)]
    pub struct Result;
    /// Shadows.
    pub trait Default {}
    /// Shadows.
    pub trait Into {}

    /// A newtype.
    #[derive(Debug, PropertyValue)]
    #[table(crate = "crate::renamed::sdk")]
    pub struct Id(pub ::std::string::String);

    /// A generic newtype with a name.
    #[derive(Debug, PropertyValue)]
    #[table(crate = "crate::renamed::sdk")]
    pub struct Wrapped<T> {
        /// Inside.
        pub r#type: T,
    }

    /// An enum.
    #[derive(Debug, PropertyValue)]
    #[table(crate = "crate::renamed::sdk", rename_all = "kebab-case")]
    pub enum Status {
        /// One.
        OnLeave,
        /// Two.
        #[table(rename = "gone", alias = "left")]
        Gone,
        /// Others.
        #[table(other)]
        Other(::std::string::String),
    }

    /// An enum that forgets.
    #[derive(Debug, PropertyValue)]
    #[table(crate = "crate::renamed::sdk")]
    pub enum Forgetful {
        /// One.
        r#One,
        /// Others.
        #[table(other)]
        Other,
    }

    /// Flattened.
    #[derive(Debug, TableProperties)]
    #[table(crate = "crate::renamed::sdk", rename_all = "PascalCase")]
    pub struct Home<T> {
        /// A city.
        #[table(alias = "Town", default)]
        pub city: ::std::string::String,
        /// Raw.
        pub r#match: T,
        /// Within.
        #[table(flatten, prefix = "In_")]
        pub within: ::std::option::Option<Within>,
        /// Not stored.
        #[table(skip)]
        pub skipped: ::std::vec::Vec<T>,
    }

    /// Flattened twice.
    #[derive(Debug, TableProperties)]
    #[table(crate = "crate::renamed::sdk", rename_all = "snake_case")]
    pub struct Within {
        /// JSON.
        #[table(json)]
        pub json: ::std::vec::Vec<i32>,
        /// Own.
        #[table(with = "super::own")]
        pub own: super::Own,
    }

    /// Nothing is stored.
    #[derive(Debug, TableProperties)]
    #[table(crate = "crate::renamed::sdk")]
    pub struct Empty {
        /// Not stored.
        #[table(skip)]
        pub skipped: u8,
    }

    /// Everything.
    #[derive(Debug, TableEntity)]
    #[table(crate = "crate::renamed::sdk", rename_all = "camelCase")]
    pub struct Everything<T, const N: usize>
    where
        T: ::std::fmt::Debug,
    {
        /// Key.
        #[table(partition_key)]
        pub status: Status,
        /// Key.
        #[table(row_key)]
        pub id: Id,
        /// Forgets.
        pub forgetful: Forgetful,
        /// Alias and default.
        #[table(alias = "old_name", alias = "older_name", default = "super::seven")]
        pub r#type: i64,
        /// Default.
        #[table(default)]
        pub value: T,
        /// Mixed.
        #[table(mixed_integers)]
        pub mixed: ::std::option::Option<i64>,
        /// Flattened.
        #[table(flatten)]
        pub home: Home<T>,
        /// Flattened.
        #[table(flatten, prefix = "w_")]
        pub work: ::std::option::Option<Home<Wrapped<i64>>>,
        /// Flattened, nothing.
        #[table(flatten)]
        pub empty: Empty,
        /// JSON.
        #[table(json, rename = "JSON", default)]
        pub json: ::std::option::Option<T>,
        /// Own.
        #[table(with = "super::own")]
        pub own: super::Own,
        /// Rest.
        #[table(rest)]
        pub rest: crate::renamed::sdk::Properties,
        /// Version.
        #[table(etag)]
        pub etag: ::std::option::Option<crate::renamed::sdk::ETag>,
        /// Version.
        #[table(timestamp)]
        pub at: ::std::option::Option<crate::renamed::sdk::Timestamp>,
        /// Not stored.
        #[table(skip, default = "super::bytes")]
        pub bytes: [u8; N],
    }

    /// A part.
    #[derive(Debug, TableEntity)]
    #[table(crate = "crate::renamed::sdk", projection)]
    pub struct Part {
        /// One.
        pub name: ::std::string::String,
        /// Within.
        #[table(flatten)]
        pub within: Within,
    }

    /// A part with keys.
    #[derive(Debug, TableEntity)]
    #[table(crate = "crate::renamed::sdk", projection)]
    pub struct KeyOnly {
        /// Key.
        #[table(row_key)]
        pub id: Id,
    }
}

const fn seven() -> i64 {
    7
}

const fn bytes<const N: usize>() -> [u8; N] {
    [0; N]
}

/// A type of its own.
#[derive(Debug)]
pub struct Own;

mod own {
    use tablesdk::entity::ValueError;

    pub(crate) type Property = Option<i32>;

    pub(crate) const fn to_property(_: &super::Own) -> Result<Property, ValueError> {
        Ok(Some(5))
    }

    pub(crate) const fn from_property(_: Property) -> Result<super::Own, ValueError> {
        Ok(super::Own)
    }
}

fn main() {
    use tablesdk::TableEntity as _;

    let columns = shadow::Everything::<i64, 3>::columns();
    let filter = columns.home.r#match.ge(5)
        & columns.mixed.eq(5)
        & columns.work.within.own.eq(5)
        & columns.id.starts_with("x");
    assert_eq!(
        filter.to_string(),
        "Match ge 5L and mixed eq 5 and w_In_own eq 5 and RowKey ge 'x' and RowKey lt 'y'"
    );
    assert_eq!(shadow::Everything::<i64, 3>::SCHEMA.properties().len(), 14);
    assert!(format!("{columns:?}").starts_with("EverythingColumns"));
}
