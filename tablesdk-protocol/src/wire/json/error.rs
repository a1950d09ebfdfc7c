//! Why a payload, or one property in it, cannot be read.

use std::fmt::{self, Display};

use crate::types::EdmType;

/// Why a payload cannot be read as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Two members give the type of one property.
    #[error("a property has two type annotations")]
    AnnotatedTwice,
    /// Not JSON, or not of the form of the payload.
    #[error("malformed JSON: {0}")]
    Malformed(serde_json::Error),
    /// Many times more members than an entity can have.
    #[error("more members than any entity has")]
    TooManyMembers,
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error)
    }
}

/// A property whose value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("property {name:?}: {problem}{}", FoundSuffix(found))]
pub struct PropertyError {
    pub(super) name: String,
    pub(super) problem: PropertyProblem,
    /// The value that was found, cut short; empty if the problem is enough.
    pub(super) found: String,
}

struct FoundSuffix<'a>(&'a str);

impl Display for FoundSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            found => write!(f, ", found {found}"),
        }
    }
}

impl PropertyError {
    /// The name of the property.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The reason why the value cannot be read.
    pub const fn problem(&self) -> PropertyProblem {
        self.problem
    }
}

/// A reason why the value of a property cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PropertyProblem {
    /// A date outside the years 1601 to 9999.
    #[error("the date lies outside the years 1601 to 9999")]
    DateOutOfRange,
    /// A number beyond every finite double.
    #[error("the number is beyond Edm.Double")]
    DoubleOutOfRange,
    /// The JSON value cannot be of that type.
    #[error("the value is not of type {edm_type}")]
    Mismatch {
        /// The type it should have.
        edm_type: EdmType,
    },
    /// An array or object.
    #[error("the value is an array or object, which no property can hold")]
    Nested,
    /// An integer beyond Int32 that has lost its annotation.
    #[error(
        "an integer beyond Edm.Int32 needs an annotation: Edm.Int64, with the number in quotes, or Edm.Double"
    )]
    UnannotatedInteger,
    /// An annotation that does not name one of the eight EDM types.
    #[error("its annotation is not one of the eight EDM types")]
    UnknownType,
}
