//! The service's rules, one module an operation, over real bytes and on any endpoint.
//!
//! Written from the service's documentation and from recordings of it, with a client of its own
//! that shares no code with ours: it signs, asks and reads by itself. Runs on every storage of our
//! server; `TABLESDK_CONFORMANCE_ENDPOINT` holds the connection string of another endpoint to run
//! on. A rule that fails does not end the run: each module lists all that failed.
//!
//! The number in front of a rule groups it: 0 what is often got wrong, 1 addresses, 2 headers and
//! formats, 3 access, 4 operations, 5 data and its limits, 6 queries, 7 entity group transactions,
//! 8 errors, 11 what clients rely on.
//!
//! A rule is a *choice* if the behaviour of the service is not certain: our server must follow it;
//! at another endpoint, a difference is reported but is not a failure.

mod client;
mod cors;
mod run;
mod sign;

use run::run;

macro_rules! operations {
    ($($name:ident),* $(,)?) => {
        $(
            mod $name;

            #[tokio::test]
            async fn $name() {
                run(stringify!($name), async |suite| $name::check(suite).await).await;
            }
        )*
    };
}

operations!(
    addressing,
    batch,
    create_table,
    delete_entity,
    delete_table,
    formats,
    get_entity,
    get_table,
    insert_entity,
    limits,
    query_entities,
    query_tables,
    service_properties,
    service_stats,
    shared_access_signature,
    shared_key,
    table_acl,
    types,
    update_entity,
    user_delegation_key,
);
