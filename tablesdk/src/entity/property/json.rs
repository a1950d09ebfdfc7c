//! Any type of serde as one string, as a type and not by an attribute: for what is made of
//! properties, such as chunks.

use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::{PropertyValue, ValueError};

/// A value of any type of serde, stored as a string of JSON: for
/// [`Chunked`](crate::chunked::Chunked).
///
/// A field that is one property without these takes
/// [`#[table(json)]`](derive@crate::TableEntity#json), and no wrapper.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tablesdk::TableEntity;
/// use tablesdk::chunked::Chunked;
/// use tablesdk::entity::Json;
///
/// #[derive(Serialize, Deserialize)]
/// struct Answer {
///     question: u32,
///     text: String,
/// }
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{employee}", row_key = "{year:04}")]
/// struct Review {
///     employee: String,
///     year: u16,
///     #[table(flatten, prefix = "answers")]
///     answers: Chunked<Json<Vec<Answer>>>,
/// }
///
/// let answers = vec![Answer { question: 1, text: "Yes".into() }];
/// let review = Review { employee: "ann".into(), year: 2024, answers: Chunked(Json(answers)) };
/// assert_eq!(review.answers[0].text, "Yes");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Json<T>(
    /// The value.
    pub T,
);

impl<T: Serialize + DeserializeOwned> PropertyValue for Json<T> {
    const EDM_TYPE: EdmType = EdmType::String;

    const INCOMPARABLE: Option<&'static str> = Some(
        "it is stored as JSON, and the service sees it as one string; filter by another property",
    );

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        let text = serde_json::to_string(&self.0).map_err(ValueError::unwritable)?;
        Ok(ValueRef::String(text.into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let text = String::from_value(value)?;
        let value = serde_json::from_str(&text);
        value
            .map(Self)
            .map_err(|error| ValueError::unreadable(text, error))
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}
