//! User delegation: a client with tokens gets a key, signs with it, and hands out what it signed.
//!
//! The server runs in this process behind an `https` URL, on a frozen clock, and listens on a
//! socket, too. Its tokens name a user, a letter for each right, and a tenant.

mod signed;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tablesdk::credential::{AccessToken, SasSource, TokenRequest};
use tablesdk::sas::{Permissions, SasUrl, TableSasBuilder};
use tablesdk::{
    Credential, EntraId, ErrorKind, Guid, RetryPolicy, Sas, TableClient, TableServiceClient,
    Timestamp,
};
use tablesdk_server::testing::{Flavor, Journal, Op};
use tablesdk_server::{
    SharedKey, TableServer, TableServerBuilder, TokenAction, TokenGrant, TokenRefusal,
};

use crate::Employee;

const ACCOUNT: &str = "devstoreaccount1";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn id(number: u8) -> Guid {
    Guid::from_bytes([number; 16])
}

/// A token such as `7:raudk`: the user of that number in the tenant 1, and its rights. `k` is the
/// right to a key; `8:r@2` is of the tenant 2; `-:k` names no user.
fn verify(_: &str, token: &str) -> Result<TokenGrant, TokenRefusal> {
    let (user, rights) = token.split_once(':').ok_or(TokenRefusal::Invalid)?;
    let (rights, tenant) = rights.split_once('@').unwrap_or((rights, "1"));
    let known = [
        ('r', TokenAction::ReadEntities),
        ('a', TokenAction::AddEntities),
        ('u', TokenAction::UpdateEntities),
        ('d', TokenAction::DeleteEntities),
        ('c', TokenAction::CreateTables),
        ('k', TokenAction::GetUserDelegationKey),
    ];
    let granted = known.iter().filter(|(letter, _)| rights.contains(*letter));
    let grant = granted.fold(TokenGrant::none(), |grant, (_, action)| grant.with(*action));
    Ok(match user.parse() {
        Ok(user) => grant.of_user(id(tenant.parse().unwrap()), id(user)),
        Err(_) => grant,
    })
}

fn employee(department: &str, id: &str) -> Employee {
    Employee {
        department: department.to_owned(),
        ..Employee::new(id, "Ada", 36)
    }
}

async fn server() -> TableServer {
    server_of(Flavor::Storage, &[]).await
}

/// A server with these keys, or its own.
async fn server_of(flavor: Flavor, keys: &[&str]) -> TableServer {
    let builder = TableServer::builder().flavor(flavor);
    let builder = builder.token_verifier(verify).tokens_over_http();
    let accounts = keys.iter().map(|key| SharedKey::new(ACCOUNT, key).unwrap());
    let builder = accounts.fold(builder, TableServerBuilder::account);
    let server = builder.start().await.unwrap();
    server.clock().set("2026-03-01T12:00:00Z".parse().unwrap());
    server
}

fn token(text: &str) -> EntraId {
    let text = text.to_owned();
    EntraId::new(move |_: TokenRequest| {
        let text = text.clone();
        async move { AccessToken::new(text, Timestamp::MAX) }
    })
}

fn client(server: &TableServer, credential: impl Into<Credential>) -> TableServiceClient {
    TableServiceClient::builder(format!("https://{ACCOUNT}.table.core.windows.net"))
        .credential(credential)
        .transport(server.transport())
        .clock(server.clock())
        .retry(RetryPolicy::none())
        .build()
        .unwrap()
}

/// The table of the tests, with an entity, as a client with this token sees it.
async fn table(server: &TableServer, text: &str) -> TableClient {
    let owner = client(server, server.credential()).table("People");
    owner.create_table().await.unwrap();
    let ada = employee("Sales", "001");
    owner.insert(&ada).await.unwrap();
    client(server, token(text)).table("People")
}

fn guest(server: &TableServer, url: &SasUrl) -> TableClient {
    client(server, url.sas().clone()).table("People")
}

fn read(table: &TableClient) -> TableSasBuilder {
    table.sas().allow(Permissions::READ).expires_in(HOUR)
}

fn keys_got(journal: &Journal) -> usize {
    let requests = journal.requests();
    requests.op(Op::GetUserDelegationKey).count()
}

fn all() -> Permissions {
    Permissions::READ | Permissions::ADD | Permissions::UPDATE | Permissions::DELETE
}

#[tokio::test]
async fn a_key_signs_for_a_table() {
    let server = server().await;
    let people = table(&server, "7:raudk").await;
    let service = client(&server, token("7:raudk"));
    let key = service.user_delegation_key(DAY).await.unwrap();
    assert_eq!((key.tenant_id(), key.object_id()), (id(1), id(7)));
    assert_eq!(key.expires_at().to_string(), "2026-03-02T12:00:00Z");
    assert_eq!(key.starts_at().to_string(), "2026-03-01T11:45:00Z");
    let sas = people
        .sas()
        .allow(all())
        .partition("Sales")
        .expires_in(HOUR);
    let url = sas.sign_with(&key).unwrap();
    let guest = guest(&server, &url);
    assert_eq!(guest.query::<Employee>().count().await.unwrap(), 1);
    guest.insert(&employee("Sales", "002")).await.unwrap();
    let elsewhere = guest.insert(&employee("Legal", "002")).await;
    assert_eq!(
        elsewhere.unwrap_err().code().unwrap().as_str(),
        "AuthorizationFailure"
    );
    // A whole URL does, too, over HTTP.
    let text = url.expose().replace(
        "https://devstoreaccount1.table.core.windows.net",
        server.endpoint(),
    );
    let over_http = TableClient::from_sas_url(&text).unwrap();
    assert_eq!(over_http.query::<Employee>().count().await.unwrap(), 2);
}

#[tokio::test]
async fn a_signature_ends_with_its_time() {
    let server = server().await;
    let people = table(&server, "7:rk").await;
    let guest = guest(&server, &read(&people).delegate().await.unwrap());
    assert_eq!(guest.query::<Employee>().count().await.unwrap(), 1);
    server.clock().advance(HOUR);
    let error = guest.query::<Employee>().count().await.unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "AuthenticationFailed");
}

#[tokio::test]
async fn a_signature_allows_no_more_than_its_signer() {
    let server = server().await;
    let people = table(&server, "7:rk").await;
    let sas = people.sas().allow(all()).expires_in(HOUR);
    let guest = guest(&server, &sas.delegate().await.unwrap());
    assert_eq!(guest.query::<Employee>().count().await.unwrap(), 1);
    let error = guest.insert(&employee("Sales", "002")).await.unwrap_err();
    assert_eq!(
        error.code().unwrap().as_str(),
        "AuthorizationPermissionMismatch"
    );
}

#[tokio::test]
async fn callers_at_the_same_time_share_one_key_for_six_days() {
    let server = server().await;
    let journal = server.journal();
    let people = table(&server, "7:rk").await;
    let signed = join_all((0..8).map(|_| read(&people).delegate().into_future())).await;
    assert!(signed.iter().all(Result::is_ok));
    assert_eq!(keys_got(&journal), 1);
    server.clock().advance(5 * DAY + 23 * HOUR);
    read(&people).delegate().await.unwrap();
    assert_eq!(keys_got(&journal), 1);
    // It would outlive the key.
    server.clock().advance(Duration::from_secs(1));
    let url = read(&people).delegate().await.unwrap();
    assert_eq!(keys_got(&journal), 2);
    assert_eq!(
        guest(&server, &url)
            .query::<Employee>()
            .count()
            .await
            .unwrap(),
        1
    );
    let week = people.sas().allow(Permissions::READ).expires_in(DAY * 7);
    week.delegate().await.unwrap();
    assert_eq!(keys_got(&journal), 3);
}

#[tokio::test]
async fn a_client_asks_for_the_next_signature_before_its_own_expires() {
    let server = server().await;
    let journal = server.journal();
    let people = table(&server, "7:rk").await;
    let signed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&signed);
    let source = SasSource::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let sas = read(&people).delegate();
        async move { Ok(sas.await?.sas().clone()) }
    });
    let guest = client(&server, source).table("People");
    let count = || async { guest.query::<Employee>().count().await.unwrap() };
    assert_eq!((count().await, count().await), (1, 1));
    assert_eq!(signed.load(Ordering::SeqCst), 1);
    server.clock().advance(Duration::from_secs(3_599));
    assert_eq!(count().await, 1);
    tokio::task::yield_now().await;
    // The next one was asked for in the meantime; this one has expired.
    server.clock().advance(Duration::from_secs(2));
    assert_eq!(count().await, 1);
    assert_eq!(signed.load(Ordering::SeqCst), 2);
    assert_eq!(keys_got(&journal), 1);
}

#[tokio::test]
async fn a_signature_that_the_service_refuses_is_replaced_once() {
    let server = server().await;
    let people = client(&server, server.credential()).table("People");
    people.create_table().await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let source = SasSource::new(move || {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        let signed = read(&people).sign();
        async move {
            let sas = signed?.sas().clone();
            // The first one was made with a key that is gone.
            let broken = sas.expose().replace("sig=", "sig=A");
            if number == 0 {
                Ok(Sas::new(&broken)?)
            } else {
                Ok(sas)
            }
        }
    });
    let guest = client(&server, source).table("People");
    assert_eq!(guest.query::<Employee>().count().await.unwrap(), 0);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_signature_for_one_user_needs_the_token_of_that_user() {
    let server = server().await;
    let people = table(&server, "7:rk").await;
    let url = read(&people).for_user(id(9)).delegate().await.unwrap();
    let ask = |entra_id: EntraId| {
        let table = client(&server, entra_id.with_sas(url.sas().clone())).table("People");
        async move { table.query::<Employee>().count().await }
    };
    assert_eq!(ask(token("9:")).await.unwrap(), 1);
    for wrong in ["8:raud", "9:@2", "-:raud"] {
        let error = ask(token(wrong)).await.unwrap_err();
        assert_eq!(
            error.code().unwrap().as_str(),
            "AuthenticationFailed",
            "{wrong}"
        );
    }
    let error = guest(&server, &url)
        .query::<Employee>()
        .count()
        .await
        .unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "AuthenticationFailed");

    // A user of another tenant, for which the key is.
    let service = client(&server, token("7:rk"));
    let key = service
        .user_delegation_key(DAY)
        .for_users_of(id(2))
        .await
        .unwrap();
    let url = read(&people).for_user(id(9)).sign_with(&key).unwrap();
    let ask = |entra_id: EntraId| {
        let table = client(&server, entra_id.with_sas(url.sas().clone())).table("People");
        async move { table.query::<Employee>().count().await }
    };
    assert_eq!(ask(token("9:@2")).await.unwrap(), 1);
    assert!(ask(token("9:")).await.unwrap_err().is_denied());
}

#[tokio::test]
async fn a_key_is_for_users_of_tokens_alone() {
    let server = server().await;
    for (credential, code) in [
        (
            Credential::from(server.credential()),
            "AuthenticationFailed",
        ),
        (token("7:raud").into(), "AuthorizationPermissionMismatch"),
        (token("-:raudk").into(), "AuthorizationFailure"),
    ] {
        let error = client(&server, credential)
            .user_delegation_key(DAY)
            .await
            .unwrap_err();
        assert_eq!(error.code().unwrap().as_str(), code);
    }
    let error = client(&server, token("-:k"))
        .user_delegation_key(DAY)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("names no user"), "{error}");
    for (flavor, code) in [
        (Flavor::CosmosDb, "NotImplemented"),
        (Flavor::Azurite, "NotImplemented"),
    ] {
        let server = server_of(flavor, &[]).await;
        let error = client(&server, token("7:k"))
            .user_delegation_key(DAY)
            .await
            .unwrap_err();
        assert_eq!(error.code().unwrap().as_str(), code, "{flavor:?}");
    }
}

#[tokio::test]
async fn mistakes_are_named_before_anything_is_sent() {
    let server = server().await;
    let journal = server.journal();
    let people = table(&server, "7:rk").await;
    let service = client(&server, token("7:rk"));
    let key = service.user_delegation_key(HOUR).await.unwrap();
    let sent = journal.requests().count();
    assert_eq!(sent, 3);
    for lifetime in [
        Duration::ZERO,
        DAY * 7 + Duration::from_secs(1),
        Duration::MAX,
    ] {
        let error = service.user_delegation_key(lifetime).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("seven days"), "{error}");
    }
    let other = TableServiceClient::builder("https://other.table.core.windows.net")
        .credential(token("7:rk"))
        .clock(server.clock())
        .build()
        .unwrap()
        .table("People");
    for (sas, problem) in [
        (
            read(&people).expires_in(HOUR * 2),
            "valid longer than the user delegation key",
        ),
        (people.sas().with_policy("readers"), "stored access policy"),
        (
            read(&people).with_partial_policy("readers"),
            "stored access policy",
        ),
        (people.sas().allow(Permissions::READ), "never expires"),
        (people.sas().expires_in(HOUR), "allows nothing"),
        (read(&other), "another account"),
    ] {
        let error = sas.sign_with(&key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains(problem), "{error}");
    }
    for (sas, problem) in [
        (people.sas().with_policy("readers"), "stored access policy"),
        (read(&people).expires_in(DAY * 8), "seven days"),
        (people.sas().allow(Permissions::READ), "never expires"),
    ] {
        let error = sas.delegate().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains(problem), "{error}");
    }
    let owner = client(&server, server.credential()).table("People");
    let error = read(&owner).for_user(id(9)).sign().unwrap_err();
    assert!(error.to_string().contains("one user"), "{error}");
    let error = read(&owner).delegate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert_eq!(journal.requests().count(), sent);
}

#[tokio::test]
async fn no_value_of_a_key_is_shown() {
    let server = server().await;
    let people = table(&server, "7:rk").await;
    let service = client(&server, token("7:rk"));
    let key = service.user_delegation_key(HOUR).await.unwrap();
    let value = key.key().expose();
    read(&people).delegate().await.unwrap();
    let url = read(&people).sign_with(&key).unwrap();
    let shown = format!(
        "{key:?} {service:?} {people:?} {url:?} {:?}",
        token("7:k").with_sas(url.sas().clone())
    );
    let signature = url.sas().expose().rsplit_once("sig=").unwrap().1.to_owned();
    assert!(
        !shown.contains(&**value) && !shown.contains(&signature),
        "{shown}"
    );
    assert!(shown.contains("expires_at"), "{shown}");
}
