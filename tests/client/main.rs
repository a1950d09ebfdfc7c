//! The client and the server together: their behaviour as a program sees it, over HTTP, in process, and with any other service
//! that the environment names.

mod administration;
mod answers;
mod attributes;
mod azurite;
mod bad_input;
mod batches;
mod bulk;
mod concurrency;
mod continuations;
mod delivery;
mod dynamic;
mod every;
mod exactly_once;
mod faults;
mod heterogeneous;
mod honesty;
mod key_laws;
mod key_templates;
mod keys;
mod late_requests;
mod observability;
mod paging;
mod projections;
mod queries;
mod reading_and_changing;
mod resilience;
mod rotation;
mod round_trips;
mod seams;
mod secondary;
mod shared_access;
mod tables;
mod tls;
mod tokens;
mod tracked;
mod types;
mod values;
mod verbs;
mod wrong_bodies;
mod wrong_shapes;

use tablesdk::TableEntity;

/// The entity of most tests.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    age: i32,
    email: Option<String>,
}

impl Employee {
    fn new(id: &str, name: &str, age: i32) -> Self {
        Self {
            department: "Sales".to_owned(),
            id: id.to_owned(),
            name: name.to_owned(),
            age,
            email: None,
        }
    }
}

/// Runs a test twice: over HTTP, and without a socket. And, if it is asked for, at another endpoint: [`harness::elsewhere`].
macro_rules! on_both_transports {
    ($($(#[$attribute:meta])* async fn $name:ident($subject:ident: Subject) $body:block)*) => {
        $($(#[$attribute])* mod $name {
            #[allow(unused_imports, reason = "not every test needs its file's")]
            use super::*;

            async fn test($subject: harness::Subject) $body

            #[tokio::test]
            async fn over_http() {
                test(harness::Subject::over_http().await).await;
            }

            #[tokio::test]
            async fn in_process() {
                test(harness::Subject::in_process()).await;
            }

            #[test]
            #[ignore = "needs another endpoint: tests/interop/run.sh"]
            fn elsewhere() {
                harness::elsewhere::run(module_path!(), &crate::azurite::DIFFERENCES, test);
            }
        })*
    };
}

use on_both_transports;
