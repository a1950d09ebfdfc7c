//! The types of the fields of an entity: a property, or an `Option` of one.

use tablesdk_protocol::wire::json::RawProperty;
use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::{PropertyValue, ValueError};
use crate::sealed::Seal;

/// The type of a field: a [`PropertyValue`], or an `Option` of one. `None` is an absent property.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of an entity",
    label = "not one of the types that map onto an EDM type",
    note = "a newtype or an enum can be: add `#[derive(tablesdk::PropertyValue)]` to it",
    note = "types of other crates need a feature of `tablesdk`: `uuid` for `uuid::Uuid`, `decimal` for `rust_decimal::Decimal`, and `chrono`, `jiff` or `time` for the instants and days of that crate",
    note = "any other type can with `#[table(json)]`, `#[table(with = \"module\")]`, or not at all with `#[table(skip)]`"
)]
pub trait Field: Sized + Send + 'static {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The type of the value when there is one.
    type Value: PropertyValue;

    /// The type it is stored as.
    const EDM_TYPE: EdmType;

    /// True if the property may be absent.
    const OPTIONAL: bool;

    /// The value to store; `None` to store none.
    ///
    /// # Errors
    ///
    /// When the stored type cannot hold it.
    fn to_value(&self) -> Result<Option<ValueRef<'_>>, ValueError>;

    /// Reads the stored value back; `Ok(None)` when it is absent but may not be.
    ///
    /// # Errors
    ///
    /// When it is of another type, or does not fit.
    fn from_value(value: Option<Value>) -> Result<Option<Self>, ValueError>;

    #[doc(hidden)]
    fn from_json(property: &RawProperty<'_>) -> Option<Self>;
}

impl<T: PropertyValue + Send + 'static> Field for T {
    const SEAL: Seal = Seal;

    type Value = T;

    const EDM_TYPE: EdmType = T::EDM_TYPE;
    const OPTIONAL: bool = false;

    fn to_value(&self) -> Result<Option<ValueRef<'_>>, ValueError> {
        PropertyValue::to_value(self).map(Some)
    }

    fn from_value(value: Option<Value>) -> Result<Option<Self>, ValueError> {
        value.map(T::from_value).transpose()
    }

    fn from_json(property: &RawProperty<'_>) -> Option<Self> {
        T::from_json(property)
    }
}

impl<T: PropertyValue + Send + 'static> Field for Option<T> {
    const SEAL: Seal = Seal;

    type Value = T;

    const EDM_TYPE: EdmType = T::EDM_TYPE;
    const OPTIONAL: bool = true;

    fn to_value(&self) -> Result<Option<ValueRef<'_>>, ValueError> {
        self.as_ref().map(PropertyValue::to_value).transpose()
    }

    fn from_value(value: Option<Value>) -> Result<Option<Self>, ValueError> {
        value.map(T::from_value).transpose().map(Some)
    }

    fn from_json(property: &RawProperty<'_>) -> Option<Self> {
        T::from_json(property).map(Some)
    }
}
