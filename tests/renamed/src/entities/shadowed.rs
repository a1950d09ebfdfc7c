//! Every attribute, with a path of the crate, and with the names of the prelude shadowed.

#![no_implicit_prelude]
#![forbid(dead_code, deprecated, nonstandard_style, unused)]

use crate::entities::other_name::sdk::{PropertyValue, TableEntity, TableProperties};

/// Shadows.
#[derive(Clone, Copy, Debug)]
pub struct String;
/// Shadows.
#[derive(Clone, Copy, Debug)]
pub struct Option;
/// Shadows.
#[derive(Clone, Copy, Debug)]
pub struct Result;
/// Shadows.
pub trait Default {}
/// Shadows.
pub trait Into {}

/// A newtype.
#[derive(Clone, Debug, PartialEq, Eq, PropertyValue)]
#[table(crate = "crate::entities::other_name::sdk")]
pub struct Id(pub ::std::string::String);

/// A generic newtype with a name.
#[derive(Clone, Copy, Debug, PropertyValue)]
#[table(crate = "crate::entities::other_name::sdk")]
pub struct Wrapped<T> {
    /// Inside.
    pub r#type: T,
}

/// An enum.
#[derive(Clone, Debug, PartialEq, Eq, PropertyValue)]
#[table(crate = "crate::entities::other_name::sdk", rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PropertyValue)]
#[table(crate = "crate::entities::other_name::sdk")]
pub enum Forgetful {
    /// One.
    r#One,
    /// Others.
    #[table(other)]
    Other,
}

/// Flattened.
#[derive(Debug, TableProperties)]
#[table(crate = "crate::entities::other_name::sdk", rename_all = "PascalCase")]
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
#[table(crate = "crate::entities::other_name::sdk", rename_all = "snake_case")]
pub struct Within {
    /// JSON.
    #[table(json)]
    pub json: ::std::vec::Vec<i32>,
    /// Own.
    #[table(with = "super::cents")]
    pub pay: super::Money,
}

/// Everything.
#[derive(Debug, TableEntity)]
#[table(crate = "crate::entities::other_name::sdk", rename_all = "camelCase")]
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
    #[table(alias = "old_name", alias = "older_name", default = "seven")]
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
    /// JSON.
    #[table(json, rename = "JSON", default)]
    pub json: ::std::option::Option<T>,
    /// Own.
    #[table(with = "super::cents")]
    pub pay: super::Money,
    /// Rest.
    #[table(rest)]
    pub rest: crate::entities::other_name::sdk::Properties,
    /// Version.
    #[table(etag)]
    pub etag: ::std::option::Option<crate::entities::other_name::sdk::ETag>,
    /// Version.
    #[table(timestamp)]
    pub at: ::std::option::Option<crate::entities::other_name::sdk::Timestamp>,
    /// Not stored.
    #[table(skip, default = "bytes")]
    pub bytes: [u8; N],
}

/// A part.
#[derive(Debug, TableEntity)]
#[table(crate = "crate::entities::other_name::sdk", projection)]
pub struct Part {
    /// One.
    pub name: ::std::string::String,
    /// Within.
    #[table(flatten)]
    pub within: Within,
}

/// A part with keys.
#[derive(Debug, TableEntity)]
#[table(crate = "crate::entities::other_name::sdk", projection)]
pub struct KeyOnly {
    /// Key.
    #[table(row_key)]
    pub id: Id,
}

const fn seven() -> i64 {
    7
}

const fn bytes<const N: usize>() -> [u8; N] {
    [0; N]
}
