//! The differences between Azurite and the service, and the tests that fail at Azurite because of them.
//!
//! The guide `emulators` lists the same differences for users, line by line. More of Azurite's responses to raw requests are in
//! `tests/conformance/azurite.md`.

use crate::elsewhere::{Difference, Differences, Known};

/// The known differences.
pub const DIFFERENCES: Differences = Differences {
    server: "Azurite-Table/3.35.0",
    list: &[
        Difference {
            matter: "The case of table names",
            elsewhere: "Matters in URLs: `people` is not found where `People` was created.",
            service: "Does not matter.",
            known: Known::Documented("1.2"),
            tests: &[(
                "operations::tables::names_of_tables_ignore_case",
                "same.table_exists()",
            )],
        },
        Difference {
            matter: "The order of the list of tables",
            elsewhere: "Capitals come before small letters.",
            service: "Is that of the names in small letters.",
            known: Known::Recorded("4.1"),
            tests: &[(
                "operations::tables::tables_are_listed_by_prefix_in_order",
                r#"left: ["Alpha2", "alpha1", "alpha3", "beta"]"#,
            )],
        },
        Difference {
            matter: "The length of a text",
            elsewhere: "At most 65,535 bytes of UTF-8.",
            service: "At most 32,768 units of UTF-16.",
            known: Known::Documented("5.1"),
            tests: &[(
                "entities::edm_types::texts_are_as_long_as_they_have_units_of_utf16",
                "PropertyValueTooLarge",
            )],
        },
        Difference {
            matter: "Negative zero",
            elsewhere: "Comes back as `0`.",
            service: "Comes back as it was stored.",
            known: Known::Unsure("5.3"),
            tests: &[(
                "entities::edm_types::zeros_keep_their_sign",
                "the sign is lost",
            )],
        },
        Difference {
            matter: "Doubles in filters, with an exponent or infinite",
            elsewhere: "Find the wrong rows: those without the property.",
            service: "Are compared as numbers.",
            known: Known::Documented("6.2"),
            tests: &[
                (
                    "entities::edm_types::doubles_of_any_magnitude_are_compared",
                    "double eq -1e300",
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
            matter: "Int64 in filters, where a row has an Int32: columns with `mixed_integers`",
            elsewhere: "Miss rows, or are answered with 500 and no code.",
            service: "Do not match that row, and others as ever.",
            known: Known::Unsure("6.2"),
            tests: &[(
                "entities::round_trips::columns_of_both_widths_are_compared_as_numbers",
                "count ",
            )],
        },
        Difference {
            matter: "Commas in keys, in batches",
            elsewhere: "Cut the key: an upsert stores another entity, and other changes find none.",
            service: "Are part of the key.",
            known: Known::Recorded("1.2"),
            tests: &[(
                "entities::keys::every_awkward_key_is_changed_in_a_batch",
                "404 ResourceNotFound",
            )],
        },
        Difference {
            matter: "Line separators (U+0085, U+2028, U+2029) in texts, in batches",
            elsewhere: "End the entity: the batch is refused with `PropertiesNeedValue`.",
            service: "Are part of the text.",
            known: Known::Documented("7.2"),
            tests: &[(
                "operations::batches::texts_of_several_lines_are_in_batches",
                "PropertiesNeedValue",
            )],
        },
        Difference {
            matter: "Table SAS: a range of keys",
            elsewhere: "Is ignored: the bearer sees and changes the whole table.",
            service: "Is all that the bearer sees and changes.",
            known: Known::Recorded("3.9"),
            tests: &[(
                "operations::shared_access::a_range_of_keys_is_what_the_bearer_sees",
                r#"left: ["1", "2", "3"]"#,
            )],
        },
        Difference {
            matter: "Table SAS: upserts",
            elsewhere: "Take the permission to update.",
            service: "Take the permissions to add and to update.",
            known: Known::Documented("3.9"),
            tests: &[(
                "operations::shared_access::an_upsert_takes_the_permissions_of_both",
                "unwrap_err()` on an `Ok` value",
            )],
        },
        Difference {
            matter: "Table SAS: the table itself",
            elsewhere: "Can be deleted by who may delete entities.",
            service: "Is out of reach.",
            known: Known::Documented("3.9"),
            tests: &[(
                "operations::shared_access::the_table_itself_is_out_of_the_bearers_reach",
                "unwrap_err()` on an `Ok` value",
            )],
        },
        Difference {
            matter: "Stored access policies that leave something out",
            elsewhere: "Are refused, with 400 and no code; start, expiry and permissions have to be there.",
            service: "Are stored, and the signature says the rest.",
            known: Known::Recorded("4.4"),
            tests: &[
                (
                    "operations::administration::policies_leave_out_what_they_like",
                    "400 Bad Request",
                ),
                (
                    "operations::shared_access::a_policy_is_completed_and_not_overruled",
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
                "operations::administration::properties_are_there_before_they_are_set",
                "read: true, write: true, delete: true",
            )],
        },
    ],
};
