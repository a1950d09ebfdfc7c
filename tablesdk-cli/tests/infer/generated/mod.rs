//! The modules, as `infer` prints them.

#![expect(
    unnameable_types,
    unreachable_pub,
    reason = "a program decides which modules are public"
)]
#![expect(
    clippy::large_stack_arrays,
    clippy::pub_underscore_fields,
    clippy::struct_field_names,
    reason = "the names and the number of the properties are those of the tables"
)]

pub mod archive;
pub mod claims;
pub mod company;
pub mod departments;
pub mod employees;
pub mod files;
pub mod logins;
pub mod messages;
pub mod mixed;
pub mod names;
pub mod orders;
pub mod outbox;
pub mod readings;
pub mod remarks;
pub mod reviews;
pub mod sessions;
pub mod titles;
pub mod types;
pub mod wide;
pub mod words;
