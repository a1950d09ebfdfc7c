//! The differences between Azurite and the service, and the tests that fail at Azurite because of
//! them.
//!
//! The guide `emulators` lists the same differences for users, line by line. More of Azurite's
//! responses to raw requests are in `tests/conformance/azurite.md`.

use tablesdk::transport::Backend;

use crate::elsewhere::{Difference, Differences, Known};

/// The known differences.
pub const DIFFERENCES: Differences = Differences {
    server: "Azurite-Table/3.37.0",
    backend: Backend::Storage,
    list: &[
        Difference {
            matter: "The case of table names",
            elsewhere: "Matters in URLs: `people` is not found where `People` was created.",
            service: "Does not matter.",
            known: Known::Documented("1.2"),
            tests: &[
                (
                    "operations::tables::table_names_ignore_case",
                    "same.table_exists()",
                ),
                (
                    "patterns::encryption::operations::without_keys_nothing_is_sent_or_read",
                    "TableNotFound",
                ),
            ],
        },
        Difference {
            matter: "The order of the list of tables",
            elsewhere: "Capitals come before lower-case letters.",
            service: "Is that of the names in lower case.",
            known: Known::Recorded("4.1"),
            tests: &[(
                "operations::tables::tables_are_listed_by_prefix_in_order",
                r#"left: ["Alpha2", "alpha1", "alpha3", "beta"]"#,
            )],
        },
        Difference {
            matter: "The length of a string",
            elsewhere: "At most 65,535 bytes of UTF-8.",
            service: "At most 32,768 units of UTF-16.",
            known: Known::Documented("5.1"),
            tests: &[(
                "entities::edm_types::the_limit_of_strings_counts_utf16_units",
                "PropertyValueTooLarge",
            )],
        },
        Difference {
            matter: "The size of an entity",
            elsewhere: "At most 1 MiB of JSON, with Base64, where it is updated; not checked where it is inserted.",
            service: "At most 1 MiB of keys, names and values.",
            known: Known::Documented("5.2"),
            tests: &[
                (
                    "patterns::chunked::the_default_holds_what_an_entity_can_hold",
                    "EntityTooLarge",
                ),
                (
                    "patterns::wide::limits::a_part_has_at_most_1_mib",
                    "EntityTooLarge",
                ),
                (
                    "patterns::wide::verbs::chunks_and_series_are_properties_of_a_wide_entity",
                    "EntityTooLarge",
                ),
            ],
        },
        Difference {
            matter: "Negative zero",
            elsewhere: "Is read back as `0`.",
            service: "Is read back as it was stored.",
            known: Known::Unsure("5.3"),
            tests: &[(
                "entities::edm_types::negative_zero_keeps_its_sign",
                "the sign is lost",
            )],
        },
        Difference {
            matter: "Doubles in filters, with an exponent or infinite",
            elsewhere: "Find the wrong entities: those without the property.",
            service: "Are compared as numbers.",
            known: Known::Documented("6.2"),
            tests: &[
                (
                    "entities::edm_types::filters_compare_doubles_of_any_magnitude",
                    "f64 eq -1e300",
                ),
                (
                    "entities::round_trips::filters_order_floats_as_rust_does",
                    "failed: f",
                ),
            ],
        },
        Difference {
            matter: "Guids and binary values in filters: less, greater",
            elsewhere: "Are compared by the letters of their Base64.",
            service: "Are compared byte by byte.",
            known: Known::Unsure("6.2"),
            tests: &[
                (
                    "entities::round_trips::filters_order_guids_as_rust_does",
                    " gt ",
                ),
                (
                    "entities::round_trips::filters_order_bytes_as_rust_does",
                    " gt ",
                ),
            ],
        },
        Difference {
            matter: "Int64 in filters, where an entity has an Int32: columns with `mixed_integers`",
            elsewhere: "Miss entities, or fail with 500 and no code.",
            service: "Do not match that entity, and match others as usual.",
            known: Known::Unsure("6.2"),
            tests: &[(
                "entities::round_trips::mixed_integers_are_compared_as_numbers",
                "count ",
            )],
        },
        Difference {
            matter: "Commas in keys, in batches",
            elsewhere: "Cut the key: an upsert stores another entity, and other changes find none.",
            service: "Are part of the key.",
            known: Known::Recorded("1.2"),
            tests: &[(
                "entities::keys::unusual_keys_work_in_batches",
                "404 ResourceNotFound",
            )],
        },
        Difference {
            matter: "Line separators (U+0085, U+2028, U+2029) in strings, in batches",
            elsewhere: "End the entity: the batch is rejected with `PropertiesNeedValue`.",
            service: "Are part of the string.",
            known: Known::Documented("7.2"),
            tests: &[(
                "operations::batches::strings_of_several_lines_work_in_batches",
                "PropertiesNeedValue",
            )],
        },
        Difference {
            matter: "Table SAS: a range of keys",
            elsewhere: "Is ignored: the client can read and change the whole table.",
            service: "Limits what the client can read and change.",
            known: Known::Recorded("3.9"),
            tests: &[(
                "operations::shared_access::a_sas_is_limited_to_its_range_of_keys",
                r#"left: ["1", "2", "3"]"#,
            )],
        },
        Difference {
            matter: "Table SAS: upserts",
            elsewhere: "Need the permission to update.",
            service: "Need the permissions to add and to update.",
            known: Known::Documented("3.9"),
            tests: &[(
                "operations::shared_access::an_upsert_needs_the_permissions_to_add_and_update",
                "unwrap_err()` on an `Ok` value",
            )],
        },
        Difference {
            matter: "Table SAS: the table itself",
            elsewhere: "Can be deleted with the permission to delete entities.",
            service: "Cannot be changed or deleted.",
            known: Known::Documented("3.9"),
            tests: &[(
                "operations::shared_access::a_table_sas_cannot_change_the_table",
                "unwrap_err()` on an `Ok` value",
            )],
        },
        Difference {
            matter: "Stored access policies without some settings",
            elsewhere: "Are rejected with 400 and no code; start, expiry and permissions are required.",
            service: "Are stored, and the SAS contains the rest.",
            known: Known::Recorded("4.4"),
            tests: &[
                (
                    "operations::administration::policies_may_omit_settings",
                    "400 Bad Request",
                ),
                (
                    "operations::shared_access::a_sas_completes_but_does_not_override_its_policy",
                    "400 Bad Request",
                ),
            ],
        },
        Difference {
            matter: "Service properties before they are set",
            elsewhere: "Logging is on, metrics are off.",
            service: "Logging is off, metrics by the hour are on for seven days.",
            known: Known::Recorded("4.6"),
            tests: &[(
                "operations::administration::service_properties_have_initial_values",
                "read: true, write: true, delete: true",
            )],
        },
    ],
};
