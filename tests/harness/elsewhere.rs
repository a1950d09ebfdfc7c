//! Tests at an endpoint that is not ours: an emulator, or an empty account.
//!
//! `TABLESDK_TEST_ENDPOINT` is its connection string. Tests run there one after another, each in an
//! account without tables, and the tables that they create are deleted afterwards; an account that
//! is not empty before is not changed. The caller passes the known differences of the endpoint. A
//! test that is listed there must fail, and its message must contain the listed words.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, header};
use tablesdk::transport::{Backend, ReqwestTransport, Transport as _};
use tablesdk::{TableServiceClient, TableServiceClientBuilder};
use tokio::runtime::Builder;

use crate::Subject;

/// The variable of the environment.
const ENDPOINT: &str = "TABLESDK_TEST_ENDPOINT";

static TURN: Mutex<()> = Mutex::new(());

/// Something that the service does in one way and another endpoint in another.
#[derive(Debug)]
pub struct Difference {
    /// The subject of the difference.
    pub matter: &'static str,
    /// The behaviour of the endpoint.
    pub elsewhere: &'static str,
    /// The behaviour of the service.
    pub service: &'static str,
    /// The evidence for the behaviour of the service.
    pub known: Known,
    /// The tests that fail for this reason, and words of how they fail.
    pub tests: &'static [(&'static str, &'static str)],
}

/// The evidence for the behaviour of the service, as the numbers of the conformance suite group its
/// rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// There are recordings of the service that show it.
    Recorded(&'static str),
    /// Its documentation says so.
    Documented(&'static str),
    /// The behaviour of the service is not certain; `service` describes what our server does.
    Unsure(&'static str),
}

/// The known differences of an endpoint, which names itself in the header `Server`.
#[derive(Debug)]
pub struct Differences {
    /// The start of the header.
    pub server: &'static str,
    /// The backend that the client assumes.
    pub backend: Backend,
    /// The differences.
    pub list: &'static [Difference],
}

/// Runs a test at the endpoint of the environment. `name` is the path of the test, with the name of
/// the crate.
///
/// # Panics
///
/// If the test fails, and is not listed; if it is listed, and passes, or fails otherwise; if there
/// is no endpoint, or its account is not empty.
pub fn run(name: &str, known: &[&Differences], test: impl AsyncFnOnce(Subject)) {
    let connection_string = std::env::var(ENDPOINT);
    let connection_string = connection_string.unwrap_or_else(|_| panic!("{ENDPOINT} is not set"));
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let service = TableServiceClient::from_connection_string(&connection_string);
    let service = service.expect("the environment has a connection string");
    let server = runtime.block_on(server(&service));
    let known = known.iter().find(|known| server.starts_with(known.server));
    let backend = known.map_or(Backend::Storage, |known| known.backend);
    let service = TableServiceClientBuilder::from_connection_string(&connection_string);
    let service = service.and_then(|service| service.backend(backend).build());
    let service = service.expect("the same, for another service");

    let tables = runtime.block_on(service.tables().collect());
    let tables = tables.expect("tables are listed");
    assert!(tables.is_empty(), "there are tables already: {tables:?}");
    let subject = Subject::elsewhere(service.clone(), backend);
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test(subject))));
    runtime.block_on(async {
        for table in service.tables().collect().await.expect("tables are listed") {
            let deleted = service.table(table).delete_table().await;
            deleted.expect("a table is deleted");
        }
    });

    let listed = known.map_or(&[][..], |known| known.list).iter();
    let listed = listed.flat_map(|difference| difference.tests);
    let listed = listed.clone().find(|(test, _)| *test == name);
    match (outcome, listed) {
        (Ok(()), None) => {}
        (Err(panic), None) => resume_unwind(panic),
        (Ok(()), Some(_)) => panic!("{name} passes, and is listed among the differences"),
        (Err(panic), Some((_, words))) => {
            let message = crate::panic_message(panic.as_ref());
            assert!(
                message.contains(words),
                "{name} does not fail as it is listed, with {words:?}: {message}"
            );
            println!("KNOWN DIFFERENCE: {name}");
        }
    }
}

/// A name of a table that was never used.
pub fn name() -> String {
    format!("Tests{:016x}", fastrand::u64(..))
}

/// The product that an endpoint names.
async fn server(service: &TableServiceClient) -> String {
    let transport = ReqwestTransport::new().expect("a transport can be built");
    let request = Request::get(service.endpoint().as_str()).body(Bytes::new());
    let answer = transport.send(request.expect("an endpoint is a URL")).await;
    let answer = answer.expect("the endpoint answers");
    let name = answer.headers().get(header::SERVER);
    name.and_then(|name| name.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}
