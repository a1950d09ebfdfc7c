//! The service's error codes: name, status and message in one table. Unknown codes are kept, not
//! lost.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/table-service-error-codes>.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident, $status:ident, $message:literal;)*) => {
        /// The code of an error of the service, such as `EntityAlreadyExists`.
        ///
        /// ```
        /// # use tablesdk_protocol::ErrorCode;
        /// assert_eq!(ErrorCode::TableNotFound.as_str(), "TableNotFound");
        /// // One that is newer than this library is kept as it came.
        /// assert_eq!(ErrorCode::Other("OnStrike".to_owned()).as_str(), "OnStrike");
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
            /// A code that this library does not know.
            Other(String),
        }

        impl ErrorCode {
            /// All codes that this library knows.
            pub const KNOWN: &[Self] = &[$(Self::$variant),*];

            /// The code as the wire spells it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                    Self::Other(code) => code,
                }
            }

            /// The status that comes with the code.
            pub fn status(&self) -> StatusCode {
                match self {
                    $(Self::$variant => StatusCode::$status,)*
                    Self::Other(_) => StatusCode::BAD_REQUEST,
                }
            }

            /// The message of the service for this code.
            pub fn message(&self) -> &'static str {
                match self {
                    $(Self::$variant => $message,)*
                    Self::Other(_) => "The request could not be processed.",
                }
            }

            /// Reads a code from the wire.
            pub fn from_wire(code: &str) -> Self {
                match code {
                    $(stringify!($variant) => Self::$variant,)*
                    _ => Self::Other(code.to_owned()),
                }
            }
        }
    };
}

error_codes! {
    /// 415: Atom was asked for; the service speaks JSON.
    AtomFormatNotSupported, UNSUPPORTED_MEDIA_TYPE, "Atom format is not supported.";
    /// 403: no credential, or one that does not hold.
    AuthenticationFailed, FORBIDDEN, "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
    /// 403: the credential does not cover this request.
    AuthorizationFailure, FORBIDDEN, "This request is not authorized to perform this operation.";
    /// 403: the shared access signature lacks the permission.
    AuthorizationPermissionMismatch, FORBIDDEN, "This request is not authorized to perform this operation using this permission.";
    /// 403: the shared access signature does not hold over this protocol.
    AuthorizationProtocolMismatch, FORBIDDEN, "This request is not authorized to perform this operation using this protocol.";
    /// 403: the account SAS does not hold for this kind of resource.
    AuthorizationResourceTypeMismatch, FORBIDDEN, "This request is not authorized to perform this operation using this resource type.";
    /// 403: the account SAS does not hold for the table service.
    AuthorizationServiceMismatch, FORBIDDEN, "This request is not authorized to perform this operation using this service.";
    /// 403: the shared access signature does not hold for the address of the client.
    AuthorizationSourceIPMismatch, FORBIDDEN, "This request is not authorized to perform this operation using this source IP.";
    /// 400: the operations of a batch name more than one partition.
    CommandsInBatchActOnDifferentPartitions, BAD_REQUEST, "All commands in a batch must operate on same entity group.";
    /// 412: the condition is an ETag without a time, which no entity has.
    ConditionNotMet, PRECONDITION_FAILED, "The condition specified using HTTP conditional header(s) is not met.";
    /// 403: no CORS rule covers what a page of another origin wants to send.
    CorsPreflightFailure, FORBIDDEN, "CORS not enabled or no matching rule found for this request.";
    /// 400: the same property twice in one entity.
    DuplicatePropertiesSpecified, BAD_REQUEST, "A property is specified more than one time.";
    /// 409: insert of a key that exists.
    EntityAlreadyExists, CONFLICT, "The specified entity already exists.";
    /// 404: documented for a missing entity; the service returns `ResourceNotFound`.
    EntityNotFound, NOT_FOUND, "The entity to update was not found.";
    /// 400: more than 1 MiB.
    EntityTooLarge, BAD_REQUEST, "The entity is larger than the maximum allowed size (1MB).";
    /// 403: the shared access signature lacks the permission, on Cosmos DB.
    Forbidden, FORBIDDEN, "The signature does not permit this operation.";
    /// 403: for instance a write on the secondary.
    InsufficientAccountPermissions, FORBIDDEN, "The account being accessed does not have sufficient permissions to execute this operation.";
    /// 500: the service failed.
    InternalError, INTERNAL_SERVER_ERROR, "The server encountered an internal error. Please retry the request.";
    /// 400: an `Authorization` header that cannot be read; 401 with a challenge for a bearer token.
    InvalidAuthenticationInfo, BAD_REQUEST, "Authentication information is not given in the correct format. Check the value of Authorization header.";
    /// 400: the same entity twice in one batch.
    InvalidDuplicateRow, BAD_REQUEST, "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.";
    /// 400: a header's value is malformed.
    InvalidHeaderValue, BAD_REQUEST, "The value for one of the HTTP headers is not in the correct format.";
    /// 400: most of what is malformed.
    InvalidInput, BAD_REQUEST, "One of the request inputs is not valid.";
    /// 400: the checksum of the body is malformed.
    InvalidMd5, BAD_REQUEST, "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded.";
    /// 400: a query parameter's value is malformed.
    InvalidQueryParameterValue, BAD_REQUEST, "Value for one of the query parameters specified in the request URI is invalid.";
    /// 400: the name of a table breaks the rules.
    InvalidResourceName, BAD_REQUEST, "The specifed resource name contains invalid characters.";
    /// 400: the URL cannot be read.
    InvalidUri, BAD_REQUEST, "The requested URI does not represent any resource on the server.";
    /// 400: the XML of an access policy or of service properties breaks the rules.
    InvalidXmlDocument, BAD_REQUEST, "XML specified is not syntactically valid.";
    /// 400: a value in XML breaks the rules.
    InvalidXmlNodeValue, BAD_REQUEST, "The value for one of the XML nodes is not in the correct format.";
    /// 415: JSON in a version of the protocol that does not have it.
    JsonFormatNotSupported, UNSUPPORTED_MEDIA_TYPE, "JSON format is not supported.";
    /// 415: verbose JSON was asked for.
    JsonVerboseFormatNotSupported, UNSUPPORTED_MEDIA_TYPE, "JSON Verbose format is not supported.";
    /// 400: the body has another checksum than the request says.
    Md5Mismatch, BAD_REQUEST, "The MD5 value specified in the request did not match with the MD5 value calculated by the server.";
    /// 415: the body has a type that the service does not read.
    MediaTypeNotSupported, UNSUPPORTED_MEDIA_TYPE, "None of the provided media types are supported";
    /// 405: the resource does not have this verb.
    MethodNotAllowed, METHOD_NOT_ALLOWED, "The requested method is not allowed on the specified resource.";
    /// 401: no credential at all.
    NoAuthenticationInformation, UNAUTHORIZED, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    /// 501: the service does not do this.
    NotImplemented, NOT_IMPLEMENTED, "The requested operation is not implemented on the specified resource.";
    /// 500: longer than 30 seconds; the outcome of a write is unknown.
    OperationTimedOut, INTERNAL_SERVER_ERROR, "The operation could not be completed within the permitted time.";
    /// 400: a name's length, a key's characters, a date out of range.
    OutOfRangeInput, BAD_REQUEST, "One of the request inputs is out of range.";
    /// 400: a query parameter's value is out of range.
    OutOfRangeQueryParameterValue, BAD_REQUEST, "A query parameter specified in the request URI is outside the permissible range.";
    /// 400: a key is missing.
    PropertiesNeedValue, BAD_REQUEST, "The values are not specified for all properties in the entity.";
    /// 400: a property's name breaks the rules.
    PropertyNameInvalid, BAD_REQUEST, "The property name is invalid.";
    /// 400: a property's name is longer than 255 characters.
    PropertyNameTooLong, BAD_REQUEST, "The property name exceeds the maximum allowed length (255).";
    /// 400: a value is larger than 64 KiB, or a key longer than 1 KiB.
    PropertyValueTooLarge, BAD_REQUEST, "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";
    /// 413: more than 4 MiB.
    RequestBodyTooLarge, PAYLOAD_TOO_LARGE, "The request body is too large and exceeds the maximum permissible limit.";
    /// 404: a missing entity, or a missing table that was to be deleted.
    ResourceNotFound, NOT_FOUND, "The specified resource does not exist.";
    /// 503: throttled, or unavailable for a moment.
    ServerBusy, SERVICE_UNAVAILABLE, "The server is currently unable to receive requests. Please retry your request.";
    /// 409: create of a table that exists.
    TableAlreadyExists, CONFLICT, "The table specified already exists.";
    /// 409: create of a table whose deletion is not complete.
    TableBeingDeleted, CONFLICT, "The specified table is being deleted.";
    /// 404: an operation on entities of a missing table.
    TableNotFound, NOT_FOUND, "The table specified does not exist.";
    /// 400: more than 252 properties.
    TooManyProperties, BAD_REQUEST, "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.";
    /// 429: throttled, by Cosmos DB.
    TooManyRequests, TOO_MANY_REQUESTS, "The request rate is too large. Please retry after some time.";
    /// 405: no resource of the service has this verb.
    UnsupportedHttpVerb, METHOD_NOT_ALLOWED, "The resource doesn't support specified Http Verb.";
    /// 412: the entity has another ETag.
    UpdateConditionNotSatisfied, PRECONDITION_FAILED, "The update condition specified in the request was not satisfied.";
    /// 400: more than one `X-HTTP-Method`.
    XMethodIncorrectCount, BAD_REQUEST, "More than one X-HTTP-Method is specified.";
    /// 400: an `X-HTTP-Method` that may not be tunnelled.
    XMethodIncorrectValue, BAD_REQUEST, "The specified X-HTTP-Method is invalid.";
    /// 400: an `X-HTTP-Method` on a verb other than POST.
    XMethodNotUsingPost, BAD_REQUEST, "The request uses X-HTTP-Method with an HTTP verb other than POST.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error response of the service: status, code and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    status: StatusCode,
    code: ErrorCode,
    message: Cow<'static, str>,
}

impl ServiceError {
    /// The code with another message than its usual one.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: code.status(),
            code,
            message: message.into(),
        }
    }

    /// The same error with another status than the code's usual one.
    #[must_use]
    pub const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The status of the response.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The code in the response.
    pub const fn code(&self) -> &ErrorCode {
        &self.code
    }

    /// The message in the response, without the request id and time that the wire appends.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The code with its usual status and message.
impl From<ErrorCode> for ServiceError {
    fn from(code: ErrorCode) -> Self {
        Self {
            status: code.status(),
            message: Cow::Borrowed(code.message()),
            code,
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {}",
            self.status.as_u16(),
            self.code,
            self.message
        )
    }
}

impl std::error::Error for ServiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_is_kept() {
        assert_eq!(
            ErrorCode::from_wire("EntityAlreadyExists"),
            ErrorCode::EntityAlreadyExists
        );
        let unknown = ErrorCode::from_wire("FromTheFuture");
        assert_eq!(unknown, ErrorCode::Other("FromTheFuture".to_owned()));
        assert_eq!(unknown.as_str(), "FromTheFuture");
    }
}
