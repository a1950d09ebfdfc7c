//! The differences between Cosmos DB and Azure Table storage, and the tests that fail on the flavor
//! `CosmosDb` because of them.
//!
//! The guide `cosmos_db` describes them for users. `tests/kit/flavors` compares the responses of
//! the flavor.

use tablesdk::transport::Backend;

use crate::elsewhere::{Difference, Differences, Known};

/// The known differences.
pub const DIFFERENCES: Differences = Differences {
    server: "Microsoft-HTTPAPI/",
    backend: Backend::Cosmos,
    list: &[
        Difference {
            matter: "A missing table",
            elsewhere: "Has the code of a missing entity, so that a read finds nothing, and is no error.",
            service: "Has a code of its own.",
            known: Known::Recorded("F"),
            tests: &[
                (
                    "operations::bulk::a_missing_table_ends_the_run",
                    "ResourceNotFound",
                ),
                (
                    "operations::paging::a_query_for_one_entity_is_a_read_by_key",
                    "on an `Ok` value: []",
                ),
                (
                    "operations::tracked::another_clients_write_is_detected",
                    "on an `Ok` value: None",
                ),
                (
                    "operations::transactions::an_error_of_the_closure_writes_nothing",
                    "(Some(\"insert entity\"), 2)",
                ),
                (
                    "operations::verbs::a_missing_table_is_an_error_a_missing_entity_is_not",
                    "on an `Ok` value: None",
                ),
                (
                    "patterns::encryption::operations::without_keys_nothing_is_sent_or_read",
                    "it exists",
                ),
                (
                    "patterns::moves::a_target_that_cannot_be_one_is_refused",
                    "is_table_not_found",
                ),
                (
                    "patterns::rolling::a_range_is_read_table_by_table_the_oldest_first",
                    "is_table_not_found",
                ),
            ],
        },
        Difference {
            matter: "Empty keys",
            elsewhere: "Are refused.",
            service: "Are keys.",
            known: Known::Recorded("F"),
            tests: &[
                (
                    "entities::key_templates::a_key_of_another_template_names_both",
                    "PropertiesNeedValue",
                ),
                (
                    "entities::keys::entities_are_ordered_by_utf16_units",
                    "PropertiesNeedValue",
                ),
                (
                    "entities::keys::unusual_keys_address_their_own_entities",
                    "PropertiesNeedValue",
                ),
                (
                    "entities::keys::unusual_keys_work_in_batches",
                    "PropertiesNeedValue",
                ),
            ],
        },
        Difference {
            matter: "Service properties, statistics and stored access policies",
            elsewhere: "Do not exist.",
            service: "Exist.",
            known: Known::Recorded("F"),
            tests: &[
                (
                    "operations::administration::policies_are_read_back_as_set",
                    "NotImplemented",
                ),
                (
                    "operations::administration::policies_may_omit_settings",
                    "NotImplemented",
                ),
                (
                    "operations::administration::policies_of_a_missing_table_are_an_error",
                    "NotImplemented",
                ),
                (
                    "operations::administration::service_properties_have_initial_values",
                    "NotImplemented",
                ),
                (
                    "operations::administration::set_properties_changes_only_what_it_contains",
                    "NotImplemented",
                ),
                (
                    "operations::administration::statistics_report_the_last_sync_time",
                    "the secondary cannot be derived",
                ),
                (
                    "operations::shared_access::a_policy_can_be_revoked",
                    "NotImplemented",
                ),
                (
                    "operations::shared_access::a_sas_completes_but_does_not_override_its_policy",
                    "NotImplemented",
                ),
                (
                    "operations::shared_access::a_table_sas_cannot_change_the_table",
                    "access_policy",
                ),
            ],
        },
        Difference {
            matter: "The range of keys of a shared access signature",
            elsewhere: "Is refused.",
            service: "Limits what the client can read and change.",
            known: Known::Recorded("F"),
            tests: &[(
                "operations::shared_access::a_sas_is_limited_to_its_range_of_keys",
                "refuses a shared access signature with a range of keys",
            )],
        },
        Difference {
            matter: "The permissions of a shared access signature",
            elsewhere: "Have another code where one is missing.",
            service: "Are refused with `AuthorizationPermissionMismatch`.",
            known: Known::Documented("E"),
            tests: &[
                (
                    "operations::shared_access::a_sas_grants_its_permissions_only",
                    "Forbidden",
                ),
                (
                    "operations::shared_access::an_account_sas_grants_its_resources_only",
                    "Forbidden",
                ),
                (
                    "operations::shared_access::an_upsert_needs_the_permissions_to_add_and_update",
                    "Forbidden",
                ),
            ],
        },
        Difference {
            matter: "The case of table names",
            elsewhere: "Matters.",
            service: "Does not matter.",
            known: Known::Documented("5.6"),
            tests: &[(
                "operations::tables::table_names_ignore_case",
                "same.table_exists()",
            )],
        },
    ],
};
