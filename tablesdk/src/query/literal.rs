//! What a column can be compared with: values of its own type, and texts and bytes without a copy.

use tablesdk_protocol::Value;

use crate::entity::{PropertyValue, ValueError};

/// A literal that a column of type `T` can be compared with.
#[diagnostic::on_unimplemented(
    message = "a column of type `{T}` cannot be compared with `{Self}`",
    label = "a literal of another type than the column",
    note = "the service compares values of one type; give a value of type `{T}`"
)]
pub trait Literal<T> {
    /// The literal as the filter holds it.
    ///
    /// # Errors
    ///
    /// When the stored type cannot hold it.
    fn into_value(self) -> Result<Value, ValueError>;
}

impl<T: PropertyValue> Literal<T> for T {
    fn into_value(self) -> Result<Value, ValueError> {
        Ok(self.to_value()?.into_value())
    }
}

impl<T: PropertyValue> Literal<T> for &T {
    fn into_value(self) -> Result<Value, ValueError> {
        Ok(self.to_value()?.into_value())
    }
}

impl Literal<String> for &str {
    fn into_value(self) -> Result<Value, ValueError> {
        Ok(Value::from(self))
    }
}

impl Literal<Vec<u8>> for &[u8] {
    fn into_value(self) -> Result<Value, ValueError> {
        Ok(Value::Binary(self.to_owned()))
    }
}
