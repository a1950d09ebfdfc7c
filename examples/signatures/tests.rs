//! The service and the programs of its users, against a server in the process of the test.

use std::cell::RefCell;
use std::io;
use std::sync::Once;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Request};
use serde_json::Value;
use tablesdk::sas::SasUrl;
use tablesdk::{ErrorCode, ErrorKind, Stored, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tower::ServiceExt as _;

use crate::api::{USER, routes};
use crate::signatures::{LIFETIME, Note, OpenError, Signatures};

/// Ids that could be taken for those of others, for several, or for something else than an id.
const USERS: [&str; 20] = [
    "a",
    "ab",
    "A",
    "a/../b",
    "a/b",
    "../a",
    "a%2Fb",
    "a=2Fb",
    "a'",
    "a' or PartitionKey ne '",
    "a\"",
    "a&epk=user_b",
    "a b",
    "a\tb",
    "a#b",
    "a?b",
    "user_a",
    "á",
    "a\u{301}",
    "日本",
];

struct Service {
    server: TableServer,
    api: Router,
}

impl Service {
    async fn open() -> Self {
        let server = TableServer::in_process();
        let api = routes(open(&server, 1).await.unwrap());
        Self { server, api }
    }

    async fn call(&self, uri: &str, users: &[&[u8]]) -> (u16, String) {
        let mut request = Request::builder().method("POST").uri(uri);
        for user in users {
            request = request.header(USER, HeaderValue::from_bytes(user).unwrap());
        }
        let request = request.body(Body::empty()).unwrap();
        let response = self.api.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.into()).unwrap())
    }

    async fn url(&self, user: &str, add: bool) -> String {
        let uri = format!("/signature?add={add}");
        let (status, body) = self.call(&uri, &[user.as_bytes()]).await;
        assert_eq!(status, 200, "{user}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        body["url"].as_str().unwrap().to_owned()
    }

    /// The client that the program of a user makes of a URL.
    fn client(&self, url: &str) -> TableClient {
        let url: SasUrl = url.parse().unwrap();
        let builder = url.builder().transport(self.server.transport());
        builder.build().unwrap().table(url.table().unwrap())
    }

    async fn client_of(&self, user: &str) -> TableClient {
        self.client(&self.url(user, true).await)
    }
}

async fn open(server: &TableServer, generation: u32) -> Result<Signatures, OpenError> {
    Signatures::open(&TableServiceClient::in_process(server), generation).await
}

fn note(user: &str, id: &str) -> Note {
    Note {
        user: user.to_owned(),
        id: id.to_owned(),
        text: format!("a note of {user}"),
    }
}

#[tokio::test]
async fn no_user_sees_or_writes_anything_of_another_whatever_their_ids_are() {
    let service = Service::open().await;
    let mut clients = Vec::new();
    for user in USERS {
        let client = service.client_of(user).await;
        client.insert(&note(user, "1")).await.unwrap();
        clients.push((user, client));
    }
    for (user, client) in &clients {
        let seen = client.query::<Note>().collect().await.unwrap();
        let seen: Vec<_> = seen.into_iter().map(Stored::into_inner).collect();
        assert_eq!(seen, [note(user, "1")]);
        for other in USERS.iter().filter(|other| *other != user) {
            let found = client.get(Note::key(*other, "1")).await.unwrap();
            assert_eq!(found, None, "{user} reads of {other}");
            let query = client.query::<Note>().partition(Note::partition(*other));
            assert_eq!(query.count().await.unwrap(), 0, "{user} lists {other}");
            let error = client.insert(&note(other, "2")).await.unwrap_err();
            assert_eq!(error.code(), Some(&ErrorCode::AuthorizationFailure));
        }
    }
}

#[tokio::test]
async fn a_signature_allows_what_was_asked_for_and_no_change_of_a_note() {
    let service = Service::open().await;
    let adder = service.client_of("ada").await;
    adder.insert(&note("ada", "1")).await.unwrap();
    let reader = service.client(&service.url("ada", false).await);
    let key = || Note::key("ada", "1");
    assert!(reader.get(key()).await.unwrap().is_some());
    for error in [
        reader.insert(&note("ada", "2")).await.unwrap_err(),
        adder.upsert_replace(&note("ada", "1")).await.unwrap_err(),
        adder.delete(key()).await.unwrap_err(),
    ] {
        assert_eq!(
            error.code(),
            Some(&ErrorCode::AuthorizationPermissionMismatch)
        );
    }
}

#[tokio::test]
async fn a_url_that_was_changed_is_refused() {
    let service = Service::open().await;
    let url = service.url("ada", false).await;
    for (part, instead) in [
        ("epk=user_ada", "epk=user_z"),
        ("spk=user_ada", "spk=user_a"),
        ("&spk=user_ada", ""),
        ("sp=r", "sp=raud"),
        ("si=clients-1", "si=clients-2"),
        ("Notes", "Others"),
    ] {
        let changed = url.replace(part, instead);
        assert_ne!(changed, url, "{part}");
        let client = service.client(&changed);
        let error = client.query::<Note>().count().await.unwrap_err();
        assert!(error.is_denied(), "{part}: {error}");
    }
}

#[tokio::test]
async fn a_signature_ends_after_a_quarter_of_an_hour() {
    let service = Service::open().await;
    let clock = service.server.clock();
    clock.freeze();
    let client = service.client_of("ada").await;
    clock.advance(LIFETIME.saturating_sub(Duration::from_secs(2)));
    assert_eq!(client.query::<Note>().count().await.unwrap(), 0);
    clock.advance(Duration::from_secs(3));
    let error = client.query::<Note>().count().await.unwrap_err();
    assert!(error.is_denied(), "{error}");
}

#[tokio::test]
async fn a_signature_of_an_account_with_https_is_for_https_alone() {
    let server = TableServer::in_process();
    let service = TableServiceClient::builder("https://devstoreaccount1.table.core.windows.net")
        .credential(server.credential())
        .transport(server.transport())
        .build()
        .unwrap();
    let signatures = Signatures::open(&service, 1).await.unwrap();
    let url = signatures.sign("ada", false).unwrap().url;
    assert!(url.contains("&spr=https&"), "{url}");
}

#[tokio::test]
async fn a_service_that_could_sign_nothing_does_not_start() {
    let service = Service::open().await;
    let url: SasUrl = service.url("ada", true).await.parse().unwrap();
    let cosmos_db = TableServiceClient::builder("https://acct.table.cosmos.azure.com")
        .credential(service.server.credential());
    for (builder, expected) in [
        (url.builder(), ErrorKind::Configuration),
        (cosmos_db, ErrorKind::Input),
    ] {
        let journal = service.server.journal();
        let client = builder.transport(service.server.transport());
        let opened = Signatures::open(&client.build().unwrap(), 1).await;
        let error = opened.err().expect("it cannot sign");
        assert!(matches!(&error, OpenError::Table(error) if error.kind() == expected));
        assert_eq!(journal.requests().count(), 0);
    }
}

#[tokio::test]
async fn a_higher_generation_ends_the_signatures_of_lower_ones() {
    let service = Service::open().await;
    let old = service.client_of("ada").await;
    assert_eq!(old.query::<Note>().count().await.unwrap(), 0);
    // Another instance of the same generation changes nothing.
    open(&service.server, 1).await.unwrap();
    assert_eq!(old.query::<Note>().count().await.unwrap(), 0);

    let signatures = open(&service.server, 2).await.unwrap();
    let error = old.query::<Note>().count().await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    let new = service.client(&signatures.sign("ada", false).unwrap().url);
    assert_eq!(new.query::<Note>().count().await.unwrap(), 0);

    // An instance with the old configuration cannot make them valid again.
    let error = open(&service.server, 1).await.err().unwrap();
    assert!(matches!(error, OpenError::Revoked), "{error}");
    assert!(old.query::<Note>().count().await.is_err());
}

#[tokio::test]
async fn neither_errors_nor_the_log_show_a_key_a_signature_or_another_user() {
    capture_log();
    let service = Service::open().await;
    let key = account_key(&service.server);
    let of_grace = service.url("grace", true).await;
    let of_ada = service.url("ada", true).await;
    let log_of_both = logged();
    assert!(log_of_both.contains(r#"user="ada""#), "{log_of_both}");

    let too_long = "x".repeat(600);
    let mut shown = vec![log_of_both.replace(r#"user="grace""#, "")];
    for (uri, users, expected) in [
        ("/signature", &[][..], 401),
        ("/signature", &[b"".as_slice()], 401),
        ("/signature", &[b"ada", b"grace"], 401),
        ("/signature", &[b"\xff"], 401),
        ("/signature", &[too_long.as_bytes()], 400),
        ("/signature?add=maybe", &[b"ada"], 400),
        ("/signature/grace", &[b"ada"], 404),
    ] {
        let (status, body) = service.call(uri, users).await;
        assert_eq!(status, expected, "{uri}: {body}");
        shown.extend([body, logged()]);
    }

    // A configuration with which nothing can be signed: a client that has a signature itself, and
    // no key.
    let mut without_key = open(&service.server, 1).await.unwrap();
    without_key.table = service.client(&of_grace);
    let failing = Service {
        api: routes(without_key),
        ..service
    };
    logged();
    let (status, body) = failing.call("/signature", &[b"ada"]).await;
    assert_eq!((status, &*body), (500, "the request failed"));
    let log = logged();
    assert!(log.contains("not signed"), "{log}");
    shown.extend([body, log]);

    for text in shown {
        for (what, secret) in [
            ("key", &*key),
            ("signature", signature(&of_grace)),
            ("signature", signature(&of_ada)),
            ("user", "grace"),
        ] {
            assert!(!text.contains(secret), "a {what}: {text}");
        }
    }
}

fn account_key(server: &TableServer) -> String {
    let text = server.connection_string();
    let key = text.split_once("AccountKey=").unwrap().1;
    key.split(';').next().unwrap().to_owned()
}

/// The value of `sig`, as it stands in the URL.
fn signature(url: &str) -> &str {
    let rest = url.split_once("sig=").unwrap().1;
    let signature = rest.split('&').next().unwrap();
    // Without the padding, which may be escaped in another way elsewhere.
    signature.split('%').max_by_key(|part| part.len()).unwrap()
}

/// Logs everything of the process. Each thread, and so each test, has a log of its own.
fn capture_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(|| Log)
            .init();
    });
}

/// The log of this thread since the last call.
fn logged() -> String {
    let bytes = LOG.with_borrow_mut(std::mem::take);
    String::from_utf8(bytes).unwrap()
}

thread_local! {
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
