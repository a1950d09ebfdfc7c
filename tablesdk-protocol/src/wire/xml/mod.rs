//! The few bodies that are XML: stored access policies, service properties, statistics, user
//! delegation keys and the metadata document.
//!
//! serde derives how a document is read and written. Before that, `plain.rs` bounds its size and
//! depth and refuses document types and entities. A document is valid as a whole or refused: it has
//! no unknown and no repeated elements. See
//! <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>.

mod metadata;
mod plain;
mod service_properties;
mod service_stats;
mod signed_identifiers;
mod user_delegation_key;

pub use metadata::write_metadata;
pub use service_properties::{read_service_properties, write_service_properties};
pub use service_stats::{read_service_stats, write_service_stats};
pub use signed_identifiers::{read_signed_identifiers, write_signed_identifiers};
pub use user_delegation_key::{
    read_key_info, read_user_delegation_key, write_key_info, write_user_delegation_key,
};

pub(super) use plain::plain;

use std::str::FromStr;

use bytes::Bytes;
use quick_xml::se::{EmptyElementHandling, Serializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde::ser::Serialize;

use crate::auth::SignedIdentifierError;
use crate::types::{ErrorCode, ServiceError, ServicePropertiesError};

/// A document as the body of a request: without the byte order mark that responses have.
// SERVICE: clients send none.
pub(crate) fn request_body(document: Vec<u8>) -> Bytes {
    let document = Bytes::from(document);
    let mark = BYTE_ORDER_MARK.as_bytes();
    match document.strip_prefix(mark) {
        Some(rest) => document.slice_ref(rest),
        None => document,
    }
}

/// Reads a document that has this root element.
fn read<T: DeserializeOwned>(document: &[u8], root: &str) -> Result<T, XmlError> {
    let (name, document) = plain(document)?;
    if name != root {
        let message = format!("the root element is {name}, not {root}");
        return Err(XmlError::Form { message });
    }
    quick_xml::de::from_str(&document).map_err(|error| XmlError::Form {
        message: error.to_string(),
    })
}

/// Writes a document with this root element, as the service does: with a byte order mark and
/// without white space between elements.
fn write(root: &str, value: &impl Serialize) -> Vec<u8> {
    let mut document = format!("{BYTE_ORDER_MARK}{DECLARATION}");
    let mut serializer = Serializer::with_root(&mut document, Some(root))
        .expect("the root has the name of an element");
    serializer.empty_element_handling(EmptyElementHandling::SelfClosedWithSpace);
    value
        .serialize(serializer)
        .expect("structs of strings have a form in XML");
    document.into_bytes()
}

/// Deserializes the content of an element. White space around it is ignored; numbers have no sign.
fn parse<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_signed = text.trim().starts_with('+');
    parse_content(&text, |text| text.parse().ok().filter(|_| !is_signed)).map_err(D::Error::custom)
}

fn parse_content<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, XmlError> {
    parse(text.trim()).ok_or_else(|| XmlError::Form {
        message: format!("{text:?} is not a value of its element"),
    })
}

/// An empty element counts as absent.
fn parse_optional<T>(
    text: Option<String>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, XmlError> {
    let text = text.filter(|text| !text.is_empty());
    text.map(|text| parse_content(&text, parse)).transpose()
}

pub(super) const BYTE_ORDER_MARK: &str = "\u{FEFF}";
/// The first line of a document.
pub(super) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// The reason why a body is not the expected document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    /// Not well-formed, too large, too deep, or with a document type or entities of its own.
    #[error("not a plain document of XML")]
    Malformed,
    /// An element that is missing, repeated or unknown, or has a value that it cannot have.
    #[error("not a document of this operation: {message}")]
    Form {
        /// A description of the error.
        message: String,
    },
    /// Properties that exceed a limit.
    #[error(transparent)]
    Properties(#[from] ServicePropertiesError),
    /// Stored access policies that exceed a limit.
    #[error(transparent)]
    SignedIdentifiers(#[from] SignedIdentifierError),
}

// SERVICE: too many origins or headers of a CORS rule are an invalid value; that other items of a
// rule are, too, is assumed. `MissingRequiredXmlNode` is documented, but was not seen.
impl From<XmlError> for ServiceError {
    fn from(error: XmlError) -> Self {
        match error {
            XmlError::Properties(ServicePropertiesError::CorsItem) => {
                ErrorCode::InvalidXmlNodeValue.into()
            }
            _ => ErrorCode::InvalidXmlDocument.into(),
        }
    }
}
