//! [`Flavor`]: which service the server behaves like, one predicate for each difference.
//!
//! Each predicate is used where the difference shows. The table in the guide `testing` lists the
//! same differences with their sources.

use tablesdk_protocol::filter::FilterSyntax;
use tablesdk_protocol::limits::{ENTITY_BYTES_MAX, REQUEST_BODY_BYTES_MAX};
use tablesdk_protocol::operation::RequestRules;
use tablesdk_protocol::wire::error_body::ErrorForm;
use tablesdk_protocol::wire::json::EntityStyle;
use tablesdk_protocol::{
    ETag, ErrorCode, Logging, Metrics, ServiceError, ServiceProperties, TableName, Timestamp,
};

/// The service that a server behaves like, as far as a client can see a difference.
///
/// A program that may run on another service than Azure Table storage is tested with the flavor of
/// that service. The [guide to
/// testing](https://docs.rs/tablesdk/latest/tablesdk/guide/testing/#flavors) lists all differences,
/// and those that are not reproduced.
///
/// ```
/// use tablesdk_server::TableServer;
/// use tablesdk_server::testing::Flavor;
///
/// let server = TableServer::builder().flavor(Flavor::CosmosDb).in_process()?;
/// # drop(server);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flavor {
    /// Azure Table storage.
    #[default]
    Storage,
    /// Azure Cosmos DB for Table: no `PATCH`, 429 instead of 503, no settings of the service and of
    /// tables, larger entities, few headers. A client of `tablesdk` over a socket needs
    /// `Backend::Cosmos`; one in process has it.
    CosmosDb,
    /// Azurite, the emulator of the Azure tools: less is checked, such as the keys and addresses of
    /// shared access signatures.
    Azurite,
}

impl Flavor {
    /// The rules by which requests are decoded.
    pub(crate) const fn request_rules(self) -> RequestRules {
        RequestRules {
            accepts_patch: !self.is_cosmos_db(),
            refuses_large_top: !self.is_azurite(),
            filter_syntax: match self {
                Self::Storage => FilterSyntax::Service,
                Self::CosmosDb => FilterSyntax::CosmosDb,
                Self::Azurite => FilterSyntax::Azurite,
            },
            ignores_format: self.is_cosmos_db(),
            keeps_blanks_of_select: self.is_cosmos_db(),
            limits_cors_rules: !self.is_azurite(),
        }
    }

    /// How entities are read and written.
    pub(crate) const fn entity_style(self) -> EntityStyle {
        match self {
            Self::Storage => EntityStyle::Storage,
            Self::CosmosDb => EntityStyle::CosmosDb,
            Self::Azurite => EntityStyle::Azurite,
        }
    }

    /// How the messages of errors are written.
    pub(crate) const fn error_form(self) -> ErrorForm {
        if self.is_cosmos_db() {
            ErrorForm::Cosmos
        } else {
            ErrorForm::Storage
        }
    }

    /// Returns true if a response does not show the code of this error: it is about a name that no
    /// table can have.
    pub(crate) fn omits_code(self, error: &ServiceError) -> bool {
        self.is_azurite() && is_about_table_name(error)
    }

    /// The error that a response has: its code and its message may be others. Of the result, this
    /// makes the same.
    pub(crate) fn error(self, error: ServiceError) -> ServiceError {
        if !self.is_cosmos_db() {
            return error;
        }
        let code = match error.code() {
            ErrorCode::AuthorizationPermissionMismatch => ErrorCode::Forbidden,
            ErrorCode::TableNotFound => ErrorCode::ResourceNotFound,
            code => code.clone(),
        };
        if error.message() != error.code().message() {
            return ServiceError::new(code, error.message().to_owned()).with_status(error.status());
        }
        let message = match code {
            ErrorCode::InvalidInput => "One of the input values is invalid.",
            ErrorCode::NotImplemented => "The requested operation is not supported.",
            ErrorCode::PropertiesNeedValue => "PartitionKey/RowKey cannot be empty",
            ErrorCode::TableAlreadyExists => "The specified table already exists.",
            ErrorCode::TooManyRequests => {
                "Message: {\"Errors\":[\"Request rate is large. More Request Units may be needed, so no changes were made. \
                Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429\"]}"
            }
            _ => return ServiceError::from(code).with_status(error.status()),
        };
        ServiceError::new(code, message).with_status(error.status())
    }

    /// The error of a request that could not be authenticated.
    pub(crate) fn authentication_error(self, error: ServiceError) -> ServiceError {
        let is_general = matches!(
            error.code(),
            ErrorCode::AuthenticationFailed
                | ErrorCode::InvalidAuthenticationInfo
                | ErrorCode::NoAuthenticationInformation
        );
        if self.is_azurite() && is_general {
            return ErrorCode::AuthorizationFailure.into();
        }
        error
    }

    /// The error for a table that is read by its name, and is missing.
    pub(crate) const fn missing_table(self) -> ErrorCode {
        if self.is_azurite() {
            ErrorCode::TableNotFound
        } else {
            ErrorCode::ResourceNotFound
        }
    }

    /// Returns true if a table is found only by its name in the case in which it was created.
    pub(crate) const fn has_case_sensitive_tables(self) -> bool {
        !self.is_storage()
    }

    /// Returns true if a table is deleted, and its policies are accessed, by its name in any case.
    pub(crate) const fn manages_tables_in_any_case(self) -> bool {
        !self.is_cosmos_db()
    }

    /// The error for a request that exceeds a rate.
    pub(crate) const fn throttling_error(self) -> ErrorCode {
        if self.is_cosmos_db() {
            ErrorCode::TooManyRequests
        } else {
            ErrorCode::ServerBusy
        }
    }

    /// Returns true if a response says in milliseconds, too, when to retry.
    pub(crate) fn has_retry_after_ms(self, code: &ErrorCode) -> bool {
        self.is_cosmos_db() && *code == ErrorCode::TooManyRequests
    }

    /// Returns true if there are service properties, statistics, and access policies of tables.
    pub(crate) const fn has_settings(self) -> bool {
        !self.is_cosmos_db()
    }

    /// The properties of a service for which none were set.
    pub(crate) fn initial_properties(self) -> ServiceProperties {
        let initial = ServiceProperties::initial();
        if self.is_azurite() {
            return initial
                .with_logging(Logging::default().reads().writes().deletes())
                .with_hour_metrics(Metrics::default());
        }
        initial
    }

    /// The ETag of what was written at that time.
    pub(crate) fn etag(self, timestamp: Timestamp) -> ETag {
        if self.is_cosmos_db() {
            ETag::from_padded_timestamp(timestamp)
        } else {
            ETag::from_timestamp(timestamp)
        }
    }

    /// Returns true if the response to an upsert has a `Content-Type`, although it has no content.
    pub(crate) const fn types_upserts(self) -> bool {
        self.is_cosmos_db()
    }

    /// Returns true if responses have headers that no operation needs, such as the client's id of
    /// the request.
    pub(crate) const fn has_common_headers(self) -> bool {
        !self.is_cosmos_db()
    }

    /// Returns true if every error has its code in a header, too.
    pub(crate) const fn repeats_error_codes(self) -> bool {
        self.is_azurite()
    }

    /// The protocol version of each response, if it is not that of the request.
    pub(crate) const fn own_version(self) -> Option<&'static str> {
        if self.is_azurite() {
            Some(AZURITE_VERSIONS[0])
        } else {
            None
        }
    }

    /// Returns true if a request may have this protocol version, which is well-formed.
    pub(crate) fn knows_version(self, version: &[u8]) -> bool {
        let mut known = AZURITE_VERSIONS.iter();
        !self.is_azurite() || known.any(|known| known.as_bytes() == version)
    }

    /// Returns true if a request for a resource of the account may have the name of a table before
    /// it, and is refused for another reason.
    pub(crate) const fn routes_misplaced(self) -> bool {
        !self.is_cosmos_db()
    }

    /// Returns true if a key in the body of an update is ignored, whatever its type.
    pub(crate) const fn ignores_keys_of_updates(self) -> bool {
        !self.is_cosmos_db()
    }

    /// Returns true if the properties of an entity are in the order of their names after an update,
    /// a merge or an upsert. After an insert, they are in the order of the request.
    pub(crate) const fn sorts_written_properties(self) -> bool {
        self.is_storage()
    }

    /// Returns true if a merge leaves the properties in their places. Otherwise those that it
    /// writes come last.
    pub(crate) const fn merges_in_place(self) -> bool {
        self.is_cosmos_db()
    }

    /// Returns true if the properties of an entity in a storage contain its keys, so that these
    /// keep their places among them.
    pub(crate) const fn stores_keys(self) -> bool {
        self.is_cosmos_db()
    }

    /// Returns true if a property in a storage is a key.
    pub(crate) fn stores_key(self, name: &str) -> bool {
        self.stores_keys() && matches!(name, "PartitionKey" | "RowKey")
    }

    /// Returns true if an entity with an empty key cannot be written.
    pub(crate) const fn refuses_empty_keys(self) -> bool {
        self.is_cosmos_db()
    }

    /// Returns true if the response to an operation of a batch has its `Content-ID`.
    pub(crate) const fn echoes_content_ids(self) -> bool {
        self.is_storage()
    }

    /// Returns true if a front end and the tables behind it respond in different forms: the front
    /// end with the message of an error in the first line, the tables with errors as XML if the
    /// request does not ask for JSON.
    pub(crate) const fn has_front_end(self) -> bool {
        self.is_storage()
    }

    /// Returns true if a gateway writes all responses: with few headers, always with JSON, and with
    /// special forms for batches and errors.
    pub(crate) const fn has_gateway(self) -> bool {
        self.is_cosmos_db()
    }

    /// Returns true if the error of the only operation of a batch has no index, if the entity is
    /// not as the operation needs it.
    pub(crate) const fn omits_index_of_only_operation(self) -> bool {
        self.is_storage()
    }

    /// Returns true if the ETag of a condition is compared as a string, and not as the instant in
    /// it.
    pub(crate) const fn compares_etags_as_strings(self) -> bool {
        self.is_azurite()
    }

    /// Returns true if an ETag without an instant has a special error.
    pub(crate) const fn has_condition_not_met(self) -> bool {
        self.is_storage()
    }

    /// The size of the largest entity, as the service counts.
    pub(crate) const fn entity_bytes_max(self) -> usize {
        match self {
            Self::Storage => ENTITY_BYTES_MAX,
            Self::CosmosDb => 2 * ENTITY_BYTES_MAX,
            // It is limited by the size of the request.
            Self::Azurite => usize::MAX,
        }
    }

    /// The size of the largest batch.
    pub(crate) const fn batch_bytes_max(self) -> usize {
        if self.is_cosmos_db() {
            2 * 1024 * 1024
        } else {
            REQUEST_BODY_BYTES_MAX
        }
    }

    /// Returns true if a batch may have changes of several partitions. They are applied together
    /// all the same.
    pub(crate) const fn batches_partitions(self) -> bool {
        self.is_azurite()
    }

    /// Returns true if the metadata of tables and of a list comes last.
    pub(crate) const fn has_metadata_last(self) -> bool {
        self.is_cosmos_db()
    }

    /// Returns true if there are user delegation keys, and signatures of them.
    pub(crate) const fn has_user_delegation(self) -> bool {
        self.is_storage()
    }

    /// Returns true if a shared access signature may have a range of keys.
    pub(crate) const fn has_sas_keys(self) -> bool {
        !self.is_cosmos_db()
    }

    /// Returns true if a shared access signature is limited to its range of keys.
    pub(crate) const fn checks_sas_keys(self) -> bool {
        !self.is_azurite()
    }

    /// Returns true if a shared access signature is limited to its addresses.
    pub(crate) const fn checks_sas_addresses(self) -> bool {
        !self.is_azurite()
    }

    /// Returns true if a signature needs the permission to add for an upsert.
    pub(crate) const fn upserts_add(self) -> bool {
        !self.is_azurite()
    }

    /// Returns true if a signature that may delete the entities of a table may delete the table.
    pub(crate) const fn table_sas_deletes_table(self) -> bool {
        self.is_azurite()
    }

    /// Returns true if a stored access policy may leave out some of its fields.
    pub(crate) const fn has_partial_policies(self) -> bool {
        !self.is_azurite()
    }

    const fn is_storage(self) -> bool {
        matches!(self, Self::Storage)
    }

    const fn is_azurite(self) -> bool {
        matches!(self, Self::Azurite)
    }

    pub(crate) const fn is_cosmos_db(self) -> bool {
        matches!(self, Self::CosmosDb)
    }
}

/// Returns true if no table can have the name that a request gives it.
fn is_about_table_name(error: &ServiceError) -> bool {
    let is_length = || {
        let of_length = TableName::new("").err().map(ServiceError::from);
        of_length.as_ref() == Some(error)
    };
    *error.code() == ErrorCode::InvalidResourceName || is_length()
}

/// The protocol versions that Azurite 3.37.0 knows, its own first.
const AZURITE_VERSIONS: [&str; 48] = [
    "2026-06-06",
    "2026-04-06",
    "2026-02-06",
    "2025-11-05",
    "2025-07-05",
    "2025-05-05",
    "2025-01-05",
    "2024-11-04",
    "2024-08-04",
    "2024-05-04",
    "2024-02-04",
    "2023-11-03",
    "2023-08-03",
    "2023-01-03",
    "2022-11-02",
    "2021-12-02",
    "2021-10-04",
    "2021-08-06",
    "2021-06-08",
    "2021-04-10",
    "2021-02-12",
    "2020-12-06",
    "2020-10-02",
    "2020-08-04",
    "2020-06-12",
    "2020-04-08",
    "2020-02-10",
    "2019-12-12",
    "2019-10-10",
    "2019-07-07",
    "2019-02-02",
    "2018-11-09",
    "2018-03-28",
    "2017-11-09",
    "2017-07-29",
    "2017-04-17",
    "2016-05-31",
    "2015-12-11",
    "2015-07-08",
    "2015-04-05",
    "2015-02-21",
    "2014-02-14",
    "2013-08-15",
    "2012-02-12",
    "2011-08-18",
    "2009-09-19",
    "2009-07-17",
    "2009-04-14",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_flavor_stays_the_same() {
        for flavor in [Flavor::Storage, Flavor::CosmosDb, Flavor::Azurite] {
            for code in ErrorCode::KNOWN {
                let error = flavor.error(code.clone().into());
                assert_eq!(flavor.error(error.clone()), error, "{flavor:?}");
            }
        }
    }
}
