#![doc = include_str!("../README.md")]
#![doc = include_str!("docs/front_page.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "derive", feature = "json", feature = "reqwest")),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the documentation describes the client with at least its default features"
    )
)]

#[macro_use]
pub mod action;
pub mod credential;
pub mod entity;
pub mod guide;
pub mod key;
pub mod query;
pub mod sas;
pub mod service_properties;
#[cfg(feature = "reqwest")]
pub mod testing;
pub mod transport;

mod client;
mod connection_string;
mod error;
mod filter;
mod other_names;
mod patterns;
mod pipeline;
mod random;
mod sealed;
mod shared_call;
mod stub;
mod value_error;

// The names that other SDKs have are written at the re-export: the search of rustdoc does not find
// them at a type whose own module is private.
#[doc(alias = "CloudTable")]
pub use client::TableClient;
#[doc(alias("CloudStorageAccount", "CloudTableClient"))]
pub use client::TableServiceClient;
#[doc(alias = "TableClientOptions")]
pub use client::TableServiceClientBuilder;
pub use credential::kinds::Credential;
#[doc(alias = "AzureSasCredential")]
pub use credential::sas::Sas;
#[doc(alias("AzureActiveDirectory", "DefaultAzureCredential"))]
pub use credential::token::EntraId;
#[doc(alias = "DynamicTableEntity")]
pub use entity::dynamic::DynamicEntity;
pub use entity::flatten::TableProperties;
pub use entity::properties::Properties;
pub use entity::property::PropertyValue;
pub use entity::stored::Stored;
#[doc(alias = "ITableEntity")]
pub use entity::traits::TableEntity;
pub use entity::traits::WritableEntity;
#[doc(alias(
    "HttpResponseError",
    "RequestFailedException",
    "RestError",
    "StorageException"
))]
pub use error::Error;
pub use error::ErrorKind;
#[cfg(feature = "encryption")]
pub use patterns::encryption;
#[cfg(feature = "object-store")]
pub use patterns::objects;
pub use patterns::{
    chunked, counter, expiry, index, lease, moves, outbox, rolling, sequence, series, wide,
};
#[doc(alias = "TableRequestOptions")]
pub use pipeline::RetryPolicy;
#[cfg(feature = "derive")]
#[doc = include_str!("docs/property_value.md")]
pub use tablesdk_derive::PropertyValue;
#[cfg(feature = "derive")]
#[doc = include_str!("docs/table_entity.md")]
#[doc = include_str!("docs/entity_type.md")]
#[cfg_attr(feature = "encryption", doc = include_str!("docs/encrypt.md"))]
pub use tablesdk_derive::TableEntity;
#[cfg(feature = "derive")]
#[doc = include_str!("docs/table_properties.md")]
pub use tablesdk_derive::TableProperties;
#[doc(alias("IfMatchCondition", "MatchConditions"))]
pub use tablesdk_protocol::ETag;
#[doc(alias = "TableErrorCode")]
pub use tablesdk_protocol::ErrorCode;
#[doc(alias = "EntityProperty")]
pub use tablesdk_protocol::Value;
#[doc(alias("AzureNamedKeyCredential", "TableSharedKeyCredential"))]
pub use tablesdk_protocol::auth::SharedKey;
pub use tablesdk_protocol::{EdmType, Guid, Timestamp};

/// The result of an operation.
///
/// ```
#[doc = include_str!("docs/employees.md")]
/// use tablesdk::TableClient;
///
/// async fn head_count(table: &TableClient) -> tablesdk::Result<usize> {
///     table.query::<Employee>().count().await
/// }
/// assert_eq!(head_count(&table).await?, 0);
/// # Ok(())
/// # }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The items that the code of the derive uses. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::__stub as stub;
    pub use crate::entity::attached::{Attach, Extensions, Facts, Memory, Remembered};
    pub use crate::entity::column_scope::ColumnScope;
    pub use crate::entity::dynamic::DynamicSelection;
    pub use crate::entity::entity_type::upgrade;
    pub use crate::entity::field::Field;
    pub use crate::entity::field_codec::{
        DefaultField, ETagAccess, ETagField, FieldAccess, RestAccess, Slot, default_of, etag_field,
        field, rest_field, string, text_ref, with_field, with_from_value, with_to_value,
    };
    pub use crate::entity::flatten::TableProperties;
    pub use crate::entity::json::{JsonField, json_field};
    pub use crate::entity::key::{
        EntityKey, Escaped, Given, IntoKeyPart, Key, KeyAccess, KeyKind, KeyNumber, KeyPart,
        KeyPiece, KeyRange, KeyReader, KeyTemplate, KeyWriter, Partition, PartsBefore, RowRange,
        Rows, entity_key, key_desc, key_escaped, key_number, key_part,
    };
    pub use crate::entity::properties::RestField;
    pub use crate::entity::schema::SchemaPart;
    pub use crate::entity::standalone::Standalone;
    pub use crate::entity::variant::{
        EntityVariant, OtherVariant, VariantAccess, check_other, projected_variant, schema_of,
        variant,
    };
    pub use crate::entity::variants::{Discriminator, VariantRows, VariantSchema};
    pub use crate::entity::{
        EntityError, EntityType, Ordered, PropertyReader, PropertyWriter, Schema, Text, ValueError,
        ValueRef,
    };
    pub use crate::filter::Filter;
    pub use crate::patterns::encryption::column::EncryptedColumn;
    pub use crate::patterns::encryption::encrypts;
    pub use crate::patterns::expiry::entry::Expires;
    pub use crate::patterns::expiry::hides::expires;
    pub use crate::patterns::index::attach::{attach, extensions, remember, reserved};
    pub use crate::patterns::index::copy::{Copied, check_copy};
    pub use crate::patterns::index::entry::{EntryKeyPart, Index, IndexEntry, Indexed};
    pub use crate::patterns::index::unverified::Unverified;
    pub use crate::query::Column;
    pub use crate::query::json_column::JsonColumn;
    pub use crate::query::key_part_column::KeyPartColumn;
    pub use crate::query::resolve::Resolve;
    pub use crate::query::select::{SelectColumn, SelectionError, Whole};
    pub use crate::query::selections::Values;
    pub use crate::sealed::Derived;
    pub use crate::stub::Stub;
    pub use std::string::String;
    pub use tablesdk_protocol::wire::json::RawProperty;
    pub use tablesdk_protocol::{ETag, EdmType, Timestamp, Value};
}

/// Runs the program in the workspace's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;
