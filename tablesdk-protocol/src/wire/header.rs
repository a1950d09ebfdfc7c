//! Names of headers: no other file spells one out.

use http::HeaderName;

/// The checksum of a body.
pub const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// The version of the OData protocol that a request or answer speaks.
pub const DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("dataserviceversion");
/// The URL of an entity or table that was created.
pub const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
/// The code of an error, beside the one in its body.
pub const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
/// Whether the content of what was created should come back.
pub const PREFER: HeaderName = HeaderName::from_static("prefer");
/// Which preference was honoured.
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// The client's own name for a request, echoed.
pub const X_MS_CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
/// The partition key at which the next page starts.
pub const X_MS_CONTINUATION_NEXT_PARTITION_KEY: HeaderName =
    HeaderName::from_static("x-ms-continuation-nextpartitionkey");
/// The row key at which the next page starts.
pub const X_MS_CONTINUATION_NEXT_ROW_KEY: HeaderName =
    HeaderName::from_static("x-ms-continuation-nextrowkey");
/// The table at which the next page starts.
pub const X_MS_CONTINUATION_NEXT_TABLE_NAME: HeaderName =
    HeaderName::from_static("x-ms-continuation-nexttablename");
/// The date of a request, in the place of `Date`.
pub const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
/// The service's name for a request.
pub const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
/// The version of the service's protocol.
pub const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
/// The method that a POST stands for.
pub const X_HTTP_METHOD: HeaderName = HeaderName::from_static("x-http-method");
