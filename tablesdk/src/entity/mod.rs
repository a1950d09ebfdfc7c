//! Structs as entities: schemas, readers and writers of properties, and the errors of both.
//!
//! Most programs derive [`TableEntity`] and need nothing of this module. It is for entities without
//! a struct ([`DynamicColumns`], [`Exact`]), for fields of a type of your own ([`Ordered`],
//! [`Text`]), and for what an error says ([`EntityError`], [`ValueError`]). The [guide to
//! entities](crate::guide::entities) comes first.
//!
//! Knows nothing of HTTP or of credentials.

pub(crate) mod attached;
pub(crate) mod column_scope;
pub(crate) mod dynamic;
pub(crate) mod encrypted;
pub(crate) mod entity_type;
mod error;
pub(crate) mod field;
pub(crate) mod field_codec;
pub(crate) mod flatten;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod properties;
pub(crate) mod property;
mod reader;
pub(crate) mod schema;
#[cfg(feature = "serde")]
mod serialize;
pub(crate) mod standalone;
pub(crate) mod stored;
mod table_form;
pub(crate) mod traits;
pub(crate) mod variant;
pub(crate) mod variants;
mod writer;

pub use crate::value_error::ValueError;
pub use dynamic::{DynamicColumn, DynamicColumns};
pub use entity_type::EntityType;
pub use error::{EntityError, EntityProblem};
pub(crate) use field::Field;
pub use properties::IntoProperty;
#[cfg(feature = "json")]
pub use property::Json;
#[cfg(feature = "decimal")]
pub use property::ordered_decimal;
pub use property::{Ordered, Text, u64_as_int64};
pub use reader::PropertyReader;
pub use schema::{PropertySchema, Schema};
#[cfg(feature = "serde")]
pub use serialize::Exact;
pub use standalone::Standalone;
pub use tablesdk_protocol::ValueRef;
pub use writer::PropertyWriter;

pub(crate) use column_scope::ColumnScope;
pub(crate) use dynamic::{DynamicEntity, DynamicSelection};
pub(crate) use field_codec::FieldAccess;
pub(crate) use json::JsonField;
pub(crate) use properties::Properties;
pub(crate) use property::PropertyValue;
pub(crate) use reader::{key_text, value_of};
pub(crate) use stored::{Stored, check_unchanged, is_same_version, read_key};
pub(crate) use traits::{TableEntity, WritableEntity};
pub(crate) use variant::{EntityVariant, VariantAccess};
pub(crate) use variants::VariantRows;
pub(crate) use writer::{
    STEP_OF, entity_bytes, property_bytes, values_of, whole_values, write, write_entity,
    write_stamped, write_values, write_whole,
};
