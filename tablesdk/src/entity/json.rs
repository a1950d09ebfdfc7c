//! Fields of `#[table(json)]`: whatever serde knows, as one property of text.
//!
//! A value that is `null` in JSON, such as `None`, is an absent property, and is read so. Without
//! the feature there is nothing but the message that names it.

use super::FieldAccess;
use crate::sealed::Seal;

/// The type of a field marked `json`.
#[cfg_attr(
    feature = "json",
    diagnostic::on_unimplemented(
        message = "`{Self}` cannot be stored as JSON",
        label = "not a type that serde can write and read",
        note = "add `#[derive(serde::Serialize, serde::Deserialize)]` to it"
    )
)]
#[cfg_attr(
    not(feature = "json"),
    diagnostic::on_unimplemented(
        message = "`#[table(json)]` needs the feature `json` of `tablesdk`",
        label = "cannot be stored as JSON without it",
        note = "enable it: `tablesdk = {{ version = \"…\", features = [\"json\"] }}`"
    )
)]
pub trait JsonField: Sized + Send + 'static {
    #[doc(hidden)]
    const SEAL: Seal;

    #[doc(hidden)]
    const ACCESS: FieldAccess<Self>;
}

/// Access to a field that is stored as JSON.
pub const fn json_field<F: JsonField>() -> FieldAccess<F> {
    F::ACCESS
}

#[cfg(feature = "json")]
mod with_serde {
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use tablesdk_protocol::{Value, ValueRef};

    use super::JsonField;
    use crate::entity::field_codec::with_field;
    use crate::entity::{FieldAccess, PropertyValue, ValueError};
    use crate::sealed::Seal;

    impl<T: Serialize + DeserializeOwned + Send + 'static> JsonField for T {
        const SEAL: Seal = Seal;
        const ACCESS: FieldAccess<Self> = with_field::<Self, Option<String>>(to_value, from_value);
    }

    fn to_value<T: Serialize>(field: &T) -> Result<Option<ValueRef<'_>>, ValueError> {
        let text = serde_json::to_string(field).map_err(ValueError::unwritable)?;
        Ok((text != NULL).then(|| ValueRef::String(text.into())))
    }

    fn from_value<T: DeserializeOwned>(value: Option<Value>) -> Result<Option<T>, ValueError> {
        match value {
            // What has no null is missing.
            None => Ok(serde_json::from_str(NULL).ok()),
            Some(value) => {
                let text = String::from_value(value)?;
                match serde_json::from_str(&text) {
                    Ok(field) => Ok(Some(field)),
                    Err(error) => Err(ValueError::unreadable(text, error)),
                }
            }
        }
    }

    const NULL: &str = "null";
}
