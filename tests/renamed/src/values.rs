//! Property values beside those of `shadowed`.

use renamed::PropertyValue;

use crate::entities::shadowed::Id;

/// A newtype of a newtype.
#[derive(Clone, Debug, PartialEq, Eq, PropertyValue)]
#[table(crate = "renamed")]
pub struct OuterId(Id);

impl From<Id> for OuterId {
    fn from(id: Id) -> Self {
        Self(id)
    }
}

/// A newtype with a name for what it holds.
#[derive(Clone, Copy, Debug, PartialEq, PropertyValue)]
#[table(crate = "renamed")]
pub struct Celsius {
    /// Degrees.
    pub degrees: f64,
}

/// An enum that knows all its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PropertyValue)]
#[table(crate = "renamed", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum Colour {
    /// `DARK_RED`.
    DarkRed,
    /// `GREEN`, once `VERDANT`.
    #[table(alias = "VERDANT")]
    Green,
    /// `bleu`.
    #[table(rename = "bleu")]
    Blue,
    /// It is deprecated.
    #[deprecated = "out of fashion"]
    Mauve,
}

/// A value that is visible only in this crate.
#[derive(Clone, Debug, PropertyValue)]
#[table(crate = "renamed")]
pub(crate) struct Secret(pub(crate) Vec<u8>);
