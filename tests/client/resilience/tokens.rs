//! Tokens of Microsoft Entra ID: requested once, renewed ahead of time, requested from another
//! tenant if the service names one, and never sent over HTTP without TLS.
//!
//! A server in this process replaces the service, at an `https` URL. The test controls the clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use harness::client_with;
use harness::proxy::{Proxy, Reply, refusal};
use http::Response;
use tablesdk::credential::{AccessToken, TokenRequest};
use tablesdk::transport::{Backend, Clock as _, Transport};
use tablesdk::{EntraId, ErrorKind, RetryPolicy, TableServiceClient, Timestamp};
use tablesdk_server::testing::{Op, VirtualClock};
use tablesdk_server::{TableServer, TokenGrant, TokenRefusal};
use tokio::sync::Semaphore;

use crate::with_header;

const HTTPS: &str = "https://devstoreaccount1.table.core.windows.net";

/// Gives out `token-1`, `token-2` and so on, each good for an hour, once there is leave to.
struct Issuer {
    clock: VirtualClock,
    asked: Mutex<Vec<TokenRequest>>,
    given: AtomicUsize,
    leave: Semaphore,
    fails: AtomicUsize,
}

impl Issuer {
    fn new(clock: VirtualClock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            asked: Mutex::default(),
            given: AtomicUsize::new(0),
            leave: Semaphore::new(Semaphore::MAX_PERMITS),
            fails: AtomicUsize::new(0),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn last_request(&self) -> TokenRequest {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

/// A credential with tokens of the issuer.
fn tokens_of(issuer: &Arc<Issuer>) -> EntraId {
    let issuer = Arc::clone(issuer);
    EntraId::new(move |request: TokenRequest| {
        let issuer = Arc::clone(&issuer);
        async move {
            issuer.asked.lock().unwrap().push(request);
            issuer.leave.acquire().await?.forget();
            let (fails, order) = (&issuer.fails, Ordering::SeqCst);
            let failed = fails.fetch_update(order, order, |left| left.checked_sub(1));
            if failed.is_ok() {
                return Err("the issuer is not there".into());
            }
            let number = issuer.given.fetch_add(1, Ordering::SeqCst) + 1;
            let expires_at = issuer.clock.now().saturating_add(Duration::from_secs(3600));
            AccessToken::new(format!("token-{number}"), expires_at)
        }
    })
}

/// A server that accepts these tokens. Its clock is frozen.
fn accepting(tokens: &Arc<Mutex<Vec<String>>>) -> TableServer {
    let tokens = Arc::clone(tokens);
    let verify = move |_: &str, token: &str| {
        let is_accepted = tokens
            .lock()
            .unwrap()
            .iter()
            .any(|accepted| accepted == token);
        is_accepted
            .then(TokenGrant::all)
            .ok_or(TokenRefusal::Invalid)
    };
    let server = TableServer::builder().token_verifier(verify).in_process();
    let server = server.unwrap();
    server.clock().set("2030-01-01".parse().unwrap());
    server
}

fn client(
    server: &TableServer,
    entra_id: EntraId,
    transport: impl Transport + 'static,
) -> TableServiceClient {
    client_with(server, |_| {
        TableServiceClient::builder(HTTPS)
            .credential(entra_id)
            .transport(transport)
            .clock(server.clock())
            .retry(RetryPolicy::none())
    })
}

/// A server that accepts the listed tokens, and a client with tokens of the issuer.
struct Setup {
    clock: VirtualClock,
    issuer: Arc<Issuer>,
    good: Arc<Mutex<Vec<String>>>,
    proxy: Proxy,
    service: TableServiceClient,
    _server: TableServer,
}

fn setup(entra_id: impl FnOnce(EntraId) -> EntraId) -> Setup {
    let good = Arc::new(Mutex::new(vec!["token-1".to_owned()]));
    let server = accepting(&good);
    let clock = server.clock();
    let issuer = Issuer::new(clock.clone());
    let proxy = Proxy::new(server.transport());
    let entra_id = entra_id(tokens_of(&issuer));
    let service = client(&server, entra_id, proxy.clone());
    Setup {
        clock,
        issuer,
        good,
        proxy,
        service,
        _server: server,
    }
}

fn plain() -> Setup {
    setup(|entra_id| entra_id)
}

/// Lets tasks that are ready run.
async fn settle() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn concurrent_requests_share_one_token_request() {
    let setup = plain();
    setup.issuer.leave.forget_permits(usize::MAX);
    let names = (0..64).map(|index| setup.service.table(format!("table{index}")));
    let creating = names.map(|table| async move { table.create_table().await });
    let creating = tokio::spawn(try_join_all(creating.collect::<Vec<_>>()));
    settle().await;
    assert_eq!((setup.issuer.asked(), setup.proxy.sent().len()), (1, 0));
    setup.issuer.leave.add_permits(1);
    creating.await.unwrap().unwrap();
    assert_eq!(setup.service.tables().collect().await.unwrap().len(), 64);
    assert_eq!(setup.issuer.asked(), 1);
    let request = setup.issuer.last_request();
    assert_eq!(request.scopes(), ["https://storage.azure.com/.default"]);
    assert_eq!(request.tenant(), None);
}

#[tokio::test]
async fn a_dropped_request_does_not_cancel_the_token() {
    let setup = plain();
    setup.issuer.leave.forget_permits(usize::MAX);
    let first = setup.service.clone();
    let first = tokio::spawn(async move { first.tables().collect().await });
    settle().await;
    let second = setup.service.clone();
    let second = tokio::spawn(async move { second.tables().collect().await });
    settle().await;
    first.abort();
    settle().await;
    setup.issuer.leave.add_permits(1);
    assert!(second.await.unwrap().unwrap().is_empty());
    assert_eq!(setup.issuer.asked(), 1);
}

#[tokio::test]
async fn a_token_is_renewed_in_the_background() {
    let setup = plain();
    setup.service.tables().collect().await.unwrap();
    // An hour less than five minutes and half as much: not due yet.
    setup.clock.advance(Duration::from_secs(3600 - 450 - 1));
    setup.service.tables().collect().await.unwrap();
    settle().await;
    assert_eq!(setup.issuer.asked(), 1);

    // Due: one request asks in the background, and all requests use the old token.
    setup.clock.advance(Duration::from_secs(200));
    setup.issuer.leave.forget_permits(usize::MAX);
    for _ in 0..10 {
        setup.service.tables().collect().await.unwrap();
        settle().await;
    }
    assert_eq!(setup.issuer.asked(), 2);

    setup.good.lock().unwrap().push("token-2".to_owned());
    setup.issuer.leave.add_permits(1);
    settle().await;
    setup.good.lock().unwrap().remove(0);
    setup.service.tables().collect().await.unwrap();
    assert_eq!(setup.issuer.asked(), 2);
}

#[tokio::test]
async fn a_failed_renewal_is_retried_later() {
    let setup = plain();
    setup.service.tables().collect().await.unwrap();
    setup.clock.advance(Duration::from_secs(3600 - 300 + 1));
    setup.issuer.fails.store(2, Ordering::SeqCst);
    for _ in 0..5 {
        setup.service.tables().collect().await.unwrap();
        settle().await;
    }
    assert_eq!(setup.issuer.asked(), 2);
    setup.clock.advance(Duration::from_secs(30));
    for _ in 0..5 {
        setup.service.tables().collect().await.unwrap();
        settle().await;
    }
    assert_eq!(setup.issuer.asked(), 3);

    // Expired: requests wait for a token, and fail with its error.
    setup.clock.advance(Duration::from_secs(3600));
    setup.issuer.fails.store(1, Ordering::SeqCst);
    let failures = join_all((0..8).map(|_| setup.service.tables().collect())).await;
    assert_eq!(setup.issuer.asked(), 4);
    for failure in failures {
        let error = failure.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credential);
        assert_eq!(error.operation(), Some("query tables"));
        let words = "the credential gave no token: the issuer is not there";
        assert!(format!("{error:?}").ends_with(words), "{error:?}");
    }
    setup.good.lock().unwrap().push("token-2".to_owned());
    setup.service.tables().collect().await.unwrap();
}

#[tokio::test]
async fn a_credential_that_panics_is_an_error() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let credential = move |_: TokenRequest| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let text = match call {
                0 => panic!("the test wants it so"),
                1 => String::new(),
                2 => "two words".to_owned(),
                _ => "good".to_owned(),
            };
            AccessToken::new(text, "2100-01-01".parse::<Timestamp>()?)
        }
    };
    let server = accepting(&Arc::new(Mutex::new(vec!["good".to_owned()])));
    let service = client(&server, EntraId::new(credential), server.transport());
    for _ in 0..3 {
        let error = service.tables().collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credential);
        assert!(!format!("{error:?}").contains("two words"));
    }
    service.tables().collect().await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_silent_credential_ends_with_the_deadline() {
    let setup = plain();
    setup.issuer.leave.forget_permits(usize::MAX);
    let table = setup.service.table("People");
    let error = table.create_table().await.unwrap_err();
    assert!(error.is_timeout());
    // Known not to have been created: no unknown outcome.
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(setup.proxy.sent().is_empty());
    // The minute of the credential is up after a while, and the next one is asked.
    tokio::time::advance(Duration::from_secs(60)).await;
    settle().await;
    setup.issuer.leave.add_permits(1);
    table.create_table().await.unwrap();
    assert_eq!(setup.issuer.asked(), 2);
}

/// A challenge, as the service words it.
fn challenge(authorization: &str, resource: &str) -> Response<Bytes> {
    let value = format!("Bearer authorization_uri={authorization} resource_id={resource}");
    let answer = refusal(401, "InvalidAuthenticationInfo");
    with_header(answer, ("www-authenticate", &value))
}

#[tokio::test]
async fn the_tenant_of_the_service_is_used() {
    let setup = plain();
    setup.good.lock().unwrap()[0] = "token-2".to_owned();
    let tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47";
    let login = format!("https://login.microsoftonline.com/{tenant}/oauth2/authorize");
    let answer = challenge(&login, "https://storage.azure.com");
    setup.proxy.plan(Op::CreateTable, [Reply::Respond(answer)]);
    setup.service.table("People").create_table().await.unwrap();
    assert_eq!(setup.proxy.count(Op::CreateTable), 2);
    assert_eq!(setup.issuer.asked(), 2);
    assert_eq!(setup.issuer.last_request().tenant(), Some(tenant));
    // From now on without asking.
    setup.service.table("Places").create_table().await.unwrap();
    assert_eq!(setup.proxy.count(Op::CreateTable), 3);
}

#[tokio::test]
async fn a_challenge_of_another_host_gets_no_token() {
    let microsoft = "https://login.microsoftonline.com/t/oauth2/authorize";
    let storage = "https://storage.azure.com";
    for (login, resource) in [
        (microsoft, "https://management.azure.com"),
        (microsoft, "https://evil.example"),
        (microsoft, "https://storage.azure.com.evil.example"),
        ("https://login.evil.example/t/oauth2/authorize", storage),
        ("http://login.microsoftonline.com/t", storage),
    ] {
        let setup = plain();
        let answer = challenge(login, resource);
        setup.proxy.plan(Op::CreateTable, [Reply::Respond(answer)]);
        let create = setup.service.table("People").create_table();
        let error = create.await.unwrap_err();
        assert_eq!(error.status().unwrap(), 401, "{login} {resource}");
        assert_eq!((setup.issuer.asked(), setup.proxy.sent().len()), (1, 1));
    }
}

#[tokio::test]
async fn the_tenant_of_the_caller_is_kept() {
    let setup = setup(|entra_id| {
        entra_id
            .tenant("mine")
            .audience("https://storage.azure.us/")
    });
    let login = "https://login.microsoftonline.com/other/oauth2/authorize";
    let answer = challenge(login, "https://storage.azure.com");
    setup.good.lock().unwrap().push("token-2".to_owned());
    setup.proxy.plan(Op::CreateTable, [Reply::Respond(answer)]);
    setup.service.table("People").create_table().await.unwrap();
    let request = setup.issuer.last_request();
    assert_eq!(request.tenant(), Some("mine"));
    assert_eq!(request.scopes(), ["https://storage.azure.us/.default"]);
}

#[tokio::test]
async fn a_rejected_token_is_replaced_once() {
    let setup = plain();
    setup.service.tables().collect().await.unwrap();
    // Taken back, whatever its time.
    *setup.good.lock().unwrap() = vec!["token-2".to_owned()];
    setup.service.tables().collect().await.unwrap();
    assert_eq!(setup.issuer.asked(), 2);
    assert_eq!(setup.proxy.count(Op::QueryTables), 3);

    // An account that accepts no token: the issuer is not asked for each request.
    setup.good.lock().unwrap().clear();
    for _ in 0..20 {
        let error = setup.service.tables().collect().await.unwrap_err();
        assert_eq!(error.code().unwrap().as_str(), "InvalidAuthenticationInfo");
    }
    assert!(setup.issuer.asked() <= 3, "{}", setup.issuer.asked());
}

#[tokio::test]
async fn a_token_is_not_sent_over_http() {
    let server = TableServer::in_process();
    let issuer = Issuer::new(server.clock());
    let entra_id = || tokens_of(&issuer);
    let build = |endpoint: &str, transport: Arc<dyn Transport>| {
        TableServiceClient::builder(endpoint).transport(transport)
    };
    for endpoint in [
        "http://devstoreaccount1.table.core.windows.net",
        "http://127.0.0.1:10002/devstoreaccount1",
    ] {
        let proxy = Proxy::new(server.transport());
        let transport: Arc<dyn Transport> = Arc::new(proxy.clone());
        let builder = build(endpoint, Arc::clone(&transport)).credential(entra_id());
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        // Nor by a later change of the credential.
        let service = build(endpoint, transport)
            .credential(server.credential())
            .build()
            .unwrap();
        assert!(service.update_credential(entra_id()).is_err());
        let _ = service.tables().collect().await;
        assert_eq!(issuer.asked(), 0);
        for sent in proxy.sent() {
            let value = sent.headers["authorization"].to_str().unwrap();
            assert!(value.starts_with("SharedKey "), "{value}");
        }
    }
    // Nor to a secondary.
    let with_secondary = |endpoint: &str| {
        let builder = build(HTTPS, server.transport());
        builder.secondary_endpoint(endpoint).secondary_reads()
    };
    let https = with_secondary("https://elsewhere.example").credential(entra_id());
    https.build().unwrap();
    let http = || with_secondary("http://elsewhere.example");
    let error = http().credential(entra_id()).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("https"), "{error}");
    let later = http().build().unwrap();
    let error = later.update_credential(entra_id()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);

    for nonsense in ["", "two words"] {
        for entra_id in [entra_id().tenant(nonsense), entra_id().audience(nonsense)] {
            let builder = TableServiceClient::builder(HTTPS).credential(entra_id);
            let error = builder.build().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
        }
    }
}

#[tokio::test]
async fn the_audience_depends_on_cloud_and_backend() {
    let cosmos = Some(Backend::Cosmos);
    for (host, backend, audience) in [
        ("a.table.core.usgovcloudapi.net", None, "storage.azure.us"),
        ("a.table.core.chinacloudapi.cn", None, "storage.azure.cn"),
        ("a.table.cosmos.azure.com:443", None, "cosmos.azure.com"),
        ("tables.example", cosmos, "cosmos.azure.com"),
    ] {
        let server = TableServer::in_process();
        let issuer = Issuer::new(server.clock());
        let mut builder = TableServiceClient::builder(format!("https://{host}"))
            .credential(tokens_of(&issuer))
            .transport(server.transport());
        if let Some(backend) = backend {
            builder = builder.backend(backend);
        }
        let service = builder.build().unwrap();
        assert!(service.tables().collect().await.is_err());
        let scope = format!("https://{audience}/.default");
        assert_eq!(issuer.last_request().scopes(), [scope]);
    }
}

#[tokio::test]
async fn no_output_contains_a_token() {
    let setup = plain();
    setup.service.tables().collect().await.unwrap();
    let expires_at: Timestamp = "2100-01-01".parse().unwrap();
    let token = AccessToken::new("token-1", expires_at).unwrap();
    setup.good.lock().unwrap().clear();
    let error = setup.service.tables().collect().await.unwrap_err();
    let entra_id = tokens_of(&setup.issuer);
    let service = &setup.service;
    let shown = format!(
        "{service:?} {error:?} {error} {token:?} {entra_id:?} {:?}",
        setup.proxy.sent()
    );
    assert!(!shown.contains("token-"), "{shown}");
}

/// A credential as `azure_identity` has them.
#[derive(Debug)]
struct Official;

#[async_trait::async_trait]
impl azure_core::credentials::TokenCredential for Official {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<azure_core::credentials::TokenRequestOptions<'_>>,
    ) -> azure_core::Result<azure_core::credentials::AccessToken> {
        assert!(options.is_none());
        let kind = azure_core::error::ErrorKind::Credential;
        match scopes {
            ["https://storage.azure.com/.default"] => {
                let expires_on = time::macros::datetime!(2030-01-01 01:00 UTC);
                let token = azure_core::credentials::AccessToken::new("token-1", expires_on);
                Ok(token)
            }
            _ => Err(azure_core::Error::with_message(kind, "not signed in")),
        }
    }
}

#[tokio::test]
async fn credentials_of_azure_identity_work() {
    let server = accepting(&Arc::new(Mutex::new(vec!["token-1".to_owned()])));
    let client = |entra_id| client(&server, entra_id, server.transport());
    let official = || EntraId::from_azure(Arc::new(Official));
    client(official()).tables().collect().await.unwrap();

    let service = client(official().audience("https://storage.azure.us"));
    let error = service.tables().collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credential);
    assert!(format!("{error:?}").contains("not signed in"), "{error:?}");
}
