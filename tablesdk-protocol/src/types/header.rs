//! Names of headers: no other file spells one out.

use std::str;

use http::{HeaderName, header};

/// The client's own name for an operation of a batch, echoed.
pub const CONTENT_ID: HeaderName = HeaderName::from_static("content-id");
/// The checksum of a body.
pub const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// How a part of a batch is encoded: always `binary`.
pub const CONTENT_TRANSFER_ENCODING: HeaderName =
    HeaderName::from_static("content-transfer-encoding");
/// The newest version of the OData protocol that a client reads.
pub const MAX_DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("maxdataserviceversion");
/// The version of the OData protocol of a request or response.
pub const DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("dataserviceversion");
/// The URL of an entity or table that was created.
pub const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
/// The code of an error, in addition to the one in the body.
pub const X_MS_ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
/// `Prefer`: a response with the created entity or table, or without.
pub const PREFER: HeaderName = HeaderName::from_static("prefer");
/// How long to wait before the next attempt, in milliseconds.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
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
/// The date of a request, instead of `Date`.
pub const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
/// The service's name for a request.
pub const X_MS_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
/// How long to wait before the next attempt, in milliseconds, as Cosmos DB spells it.
pub const X_MS_RETRY_AFTER_MS: HeaderName = HeaderName::from_static("x-ms-retry-after-ms");
/// The version of the service's protocol.
pub const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
/// The method that a POST stands for.
pub const X_HTTP_METHOD: HeaderName = HeaderName::from_static("x-http-method");

/// The name in the case that the service and its clients write it in, where text is compared with
/// more care than HTTP demands: in the parts of a batch.
// SERVICE: a client in JavaScript looks for `ETag:` in exactly this case.
pub fn spelling(name: &HeaderName) -> &str {
    let spelled = SPELLINGS.iter().find(|(known, _)| known == name);
    spelled.map_or(name.as_str(), |(_, spelling)| spelling)
}

/// The value of a header as a string: `None` unless it consists of visible ASCII characters and
/// blanks, as that of most headers.
pub fn text(value: &[u8]) -> Option<&str> {
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    // Without an early end, so that many bytes are looked at together.
    let all = value.iter().fold(true, |all, byte| all & is_text(*byte));
    all.then(|| str::from_utf8(value).ok()).flatten()
}

static SPELLINGS: [(HeaderName, &str); 15] = [
    (header::ACCEPT, "Accept"),
    (header::CACHE_CONTROL, "Cache-Control"),
    (header::CONTENT_TYPE, "Content-Type"),
    (CONTENT_ID, "Content-ID"),
    (header::ETAG, "ETag"),
    (header::IF_MATCH, "If-Match"),
    (header::LOCATION, "Location"),
    (header::X_CONTENT_TYPE_OPTIONS, "X-Content-Type-Options"),
    (DATA_SERVICE_ID, "DataServiceId"),
    (DATA_SERVICE_VERSION, "DataServiceVersion"),
    (PREFER, "Prefer"),
    (PREFERENCE_APPLIED, "Preference-Applied"),
    (
        X_MS_CONTINUATION_NEXT_PARTITION_KEY,
        "x-ms-continuation-NextPartitionKey",
    ),
    (
        X_MS_CONTINUATION_NEXT_ROW_KEY,
        "x-ms-continuation-NextRowKey",
    ),
    (CONTENT_TRANSFER_ENCODING, "Content-Transfer-Encoding"),
];
