//! The few payloads that are XML: stored access policies, service properties, statistics and the model, and their errors.
//!
//! Reading is bounded in size and depth and expands no entities. What is read is checked, so that a document is either
//! valid as a whole or refused. See
//! <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>.

mod metadata;
mod reader;
mod service_properties;
mod service_stats;
mod signed_identifiers;
mod writer;

pub use metadata::write_metadata;
pub use service_properties::{read_service_properties, write_service_properties};
pub use service_stats::{read_service_stats, write_service_stats};
pub use signed_identifiers::{read_signed_identifiers, write_signed_identifiers};

pub(super) use reader::Element;
pub(super) use writer::Writer;

use bytes::Bytes;

use crate::{ErrorCode, ServiceError, ServicePropertiesError, SignedIdentifierError};

/// A document as the body of a request: without the byte order mark that answers have.
// SERVICE: what clients send has none.
pub(crate) fn request_body(document: Vec<u8>) -> Bytes {
    let document = Bytes::from(document);
    let mark = "\u{FEFF}".as_bytes();
    match document.strip_prefix(mark) {
        Some(rest) => document.slice_ref(rest),
        None => document,
    }
}

/// Why a payload is not the document that it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    /// Not well-formed, too large, too deep, or with a document type or entities of its own.
    #[error("not a plain document of XML")]
    Malformed,
    /// An element that does not belong where it is, or is there twice.
    #[error("the element {name} does not belong there")]
    Unexpected {
        /// Its name.
        name: String,
    },
    /// An element that has to be there is not.
    #[error("the element {name} is missing")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// An element whose text has another form than it should have.
    #[error("the element {name} has a value that it cannot have")]
    Value {
        /// Its name.
        name: String,
    },
    /// Properties that exceed a limit.
    #[error(transparent)]
    Properties(#[from] ServicePropertiesError),
    /// Stored access policies that exceed a limit.
    #[error(transparent)]
    SignedIdentifiers(#[from] SignedIdentifierError),
}

/// Whatever is wrong with a document.
// SERVICE: the codes that tell more (`InvalidXmlNodeValue`, `MissingRequiredXmlNode`) are documented and were not seen.
impl From<XmlError> for ServiceError {
    fn from(_: XmlError) -> Self {
        ErrorCode::InvalidXmlDocument.into()
    }
}
