//! Every limit that the service documents.
//!
//! See <https://learn.microsoft.com/azure/storage/tables/scalability-targets> and
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model>.

/// The longest partition key or row key, in UTF-16 units (1 KiB).
pub const KEY_UNITS_MAX: usize = 512;

/// The most properties of an entity, in addition to `PartitionKey`, `RowKey` and `Timestamp`.
pub const PROPERTIES_MAX: usize = 252;

/// The longest name of a property, in UTF-16 units.
pub const PROPERTY_NAME_UNITS_MAX: usize = 255;

/// The longest string value, in UTF-16 units (64 KiB).
pub const STRING_UNITS_MAX: usize = 32 * 1024;

/// The longest binary value, in bytes.
pub const BINARY_BYTES_MAX: usize = 64 * 1024;

/// The largest entity, in bytes as the service counts them.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;

/// The largest body of a request, in bytes.
pub const REQUEST_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The shortest name of a table, in characters.
pub const TABLE_NAME_LENGTH_MIN: usize = 3;

/// The longest name of a table, in characters.
pub const TABLE_NAME_LENGTH_MAX: usize = 63;

/// The most entities, or tables, that one page holds; also the largest `$top`.
pub const PAGE_ITEMS_MAX: usize = 1000;

/// The size of a page's body at which the service ends the page, in bytes.
pub const PAGE_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The most stored access policies that a table may have.
pub const POLICIES_MAX: usize = 5;

/// The longest id of a stored access policy, in characters.
pub const POLICY_ID_LENGTH_MAX: usize = 64;

/// The longest time for which logs and metrics may be kept, in days.
pub const RETENTION_DAYS_MAX: u16 = 365;

/// The most CORS rules that a service may have.
pub const CORS_RULES_MAX: usize = 5;

/// The largest set of CORS rules, in bytes of their strings.
pub const CORS_BYTES_MAX: usize = 2 * 1024;

/// The largest document of XML that is read, in bytes: many times what the largest valid one has.
pub const XML_BYTES_MAX: usize = 64 * 1024;

/// The most changes in one entity group transaction.
pub const BATCH_CHANGES_MAX: usize = 100;

/// The longest URL that clients send, in bytes. The service reads about as much.
pub const URL_BYTES_MAX: usize = 32 * 1024;

/// The longest string of a filter, in bytes: more than fits into a URL.
pub const FILTER_BYTES_MAX: usize = 64 * 1024;

/// The longest `x-ms-client-request-id`, in bytes.
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// How far the date of a signed request may lie from the server's clock, in seconds.
pub const CLOCK_SKEW_SECONDS_MAX: u64 = 15 * 60;

/// How long an operation may take, in seconds; also the largest `timeout`.
pub const OPERATION_SECONDS_MAX: u64 = 30;

/// The most names in `$select`.
pub const SELECT_NAMES_MAX: usize = 252;
