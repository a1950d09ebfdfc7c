//! No log contains a key, a signature, a token or the value of a property.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream;
use harness::log::{Log, Records};
use harness::proxy::Proxy;
use tablesdk::credential::{AccessToken, TokenRequest};
use tablesdk::sas::{AccountPermissions, ResourceTypes};
use tablesdk::transport::{ReqwestTransport, Transport};
use tablesdk::{
    Credential, DynamicEntity, ETag, EntraId, ErrorCode, RetryPolicy, Sas, TableClient,
    TableServiceClient, Timestamp,
};
use tablesdk_server::testing::{Fault, Faults, Op};
use tablesdk_server::{TableServer, TokenGrant, TokenRefusal};

use crate::Employee;

/// Runs operations of every kind, many of which fail.
async fn suite(service: &TableServiceClient, faults: &Faults) {
    let table = &service.table("Tests");
    let key = || Employee::key("Sales", "1");
    let _ = table.create_table().if_missing().await;
    let ada = Employee::ada();
    faults.next(Op::InsertEntity, Fault::lost_response());
    let _ = table.insert(&ada).await;
    let _ = table.insert(&ada).await;
    faults.next(Op::QueryEntity, Fault::error(ErrorCode::ServerBusy));
    let _ = table.get(key()).await;
    let _ = table.upsert_replace(&ada).await;
    let _ = table.upsert_merge(&ada).await;
    let _ = table.patch(key()).set(|e| e.age, 37).await;
    let _ = table.merge_if(&ada, ETag::ANY).await;
    let _ = table.replace_if(&ada, ETag::ANY).await;
    if let Ok(Some(mut stored)) = table.get(key()).tracked().await {
        stored.age += 1;
        let _ = table.merge(&mut stored).changed_only().await;
        let _ = table.replace(&mut stored.clone()).await;
        let _ = table.delete_stored(&stored).await;
    }
    faults.next(Op::Batch, Fault::lost_response());
    let _ = table.insert(&ada).exactly_once().await;
    let _ = table.modify(key(), Employee::grow_older).await;
    let _ = table.clean_up_markers("Sales").await;
    let employees = (0..120).map(|id| Employee::new(&id.to_string(), "Bulk", id));
    let _ = table.bulk().upsert_replace(stream::iter(employees)).await;
    let _ = table.get_many([key(), key()]).await;
    let query = table.query::<Employee>().filter(|e| e.age.ge(5));
    let _ = query.page_size(50).collect().await;
    let query = table.query::<Employee>().partitions(["Sales", "x"]);
    let _ = query.in_order().collect().await;
    let page = table.query::<Employee>().page_size(5).page(None).await;
    if let Ok(Some(token)) = page.map(|page| page.next) {
        let _ = table.query::<Employee>().page(token).await;
    }
    let batch = table.batch("Sales").insert(&ada);
    let _ = batch.delete(("Sales", "none")).await;
    faults.on(Op::DeleteEntity).times(2).inject(Fault::reset());
    let _ = table.delete(("Sales", "1")).await;
    let _ = table.query::<DynamicEntity>().delete_all().await;
    let _ = table.table_exists().await;
    let _ = table.access_policy().await;
    let _ = table.set_access_policy([]).await;
    let _ = service.tables().collect().await;
    if let Ok(properties) = service.properties().await {
        let _ = service.set_properties(properties).await;
    }
    let _ = service.stats().await;
    let guest = table.sas().expires_in(Duration::from_secs(600)).sign();
    if let Ok(guest) = guest {
        let _ = TableClient::from_sas_url(&guest.expose());
    }
    let _ = table.delete_table().await;
}

/// Every operation that the client has, by its name.
const OPERATIONS: &str = "batch, clean up markers, create table, delete entity, delete table, \
    get access policy, get entity, get service properties, get service stats, insert entity, \
    merge entity, modify entity, patch entity, query entities, query tables, replace entity, \
    set access policy, set service properties, table_exists, upsert_merge entity, \
    upsert_replace entity";

/// The signatures and tokens of all requests.
fn secrets_of(proxy: &Proxy) -> Vec<String> {
    let mut secrets = Vec::new();
    for sent in proxy.sent() {
        if let Some(value) = sent.headers.get("authorization") {
            let (_, secret) = value.to_str().unwrap().rsplit_once([':', ' ']).unwrap();
            secrets.push(secret.to_owned());
        }
        if let Some((_, signature)) = sent.url.split_once("sig=") {
            secrets.push(signature.split('&').next().unwrap().to_owned());
        }
    }
    secrets
}

/// Runs all operations with a key, a shared access signature and, over HTTPS, a token. Returns the
/// secrets.
async fn with_every_credential<T: Transport + Clone + 'static>(
    server: &TableServer,
    endpoint: &str,
    transport: T,
) -> Vec<String> {
    let connection = server.connection_string();
    let account = TableServiceClient::from_connection_string(&connection).unwrap();
    let sas = account.sas().allow(AccountPermissions::all());
    let sas = sas
        .on(ResourceTypes::all())
        .expires_in(Duration::from_secs(3600));
    let sas = sas.sign().unwrap().expose();
    let (_, sas) = sas.split_once('?').unwrap();
    let token = |_: TokenRequest| async {
        let expires_at: Timestamp = "2100-01-01T00:00:00Z".parse()?;
        AccessToken::new(TOKEN, expires_at)
    };
    let mut credentials: Vec<Credential> =
        vec![server.credential().into(), Sas::new(sas).unwrap().into()];
    if endpoint.starts_with("https") {
        credentials.push(EntraId::new(token).into());
    }
    let operations = Arc::new(Mutex::new(BTreeSet::new()));
    let mut secrets = Vec::new();
    for credential in credentials {
        let proxy = Proxy::new(transport.clone());
        let hook = Arc::clone(&operations);
        let service = TableServiceClient::builder(endpoint)
            .transport(proxy.clone())
            .credential(credential)
            .retry(RetryPolicy::exponential().delay(Duration::ZERO))
            .on_operation(move |report| {
                hook.lock().unwrap().insert(report.operation);
            })
            .build()
            .unwrap();
        suite(&service, &server.faults()).await;
        secrets.extend(secrets_of(&proxy));
    }
    let operations: Vec<_> = operations.lock().unwrap().iter().copied().collect();
    assert_eq!(operations.join(", "), OPERATIONS);
    assert!(secrets.len() > 60, "{}", secrets.len());
    let (_, key) = connection.split_once("AccountKey=").unwrap();
    secrets.extend([key.split(';').next().unwrap().to_owned(), sas.to_owned()]);
    secrets
}

fn assert_without(log: &str, secrets: &[String]) {
    assert!(
        log.contains("db.collection.name=\"Tests\""),
        "the client logs"
    );
    for secret in secrets {
        assert!(secret.len() > 10);
        let decoded = secret
            .replace("%2B", "+")
            .replace("%2F", "/")
            .replace("%3D", "=");
        for secret in [secret, &decoded] {
            assert!(!log.contains(secret.as_str()), "{secret} was logged");
        }
    }
    assert!(!log.contains("Ada") && !log.contains("Bulk"));
    // The server, which logs its requests as well, shows the keys of entities.
    let mut of_client = log.lines().filter(|line| line.contains(" tablesdk: "));
    assert!(!of_client.any(|line| line.contains("Sales")));
}

const TOKEN: &str = "eyJ0aGUgdG9rZW4gb2YgYSB0ZXN0";

#[tokio::test(start_paused = true)]
async fn the_client_logs_no_secret() {
    let (log, _guard) = Log::start();
    let verify = |_: &str, token: &str| match token {
        TOKEN => Ok(TokenGrant::all()),
        _ => Err(TokenRefusal::Invalid),
    };
    let server = TableServer::builder().token_verifier(verify).in_process();
    let server = server.unwrap();
    let endpoint = "https://devstoreaccount1.table.core.windows.net";
    let secrets = with_every_credential(&server, endpoint, server.transport()).await;
    assert!(secrets.iter().any(|secret| secret == TOKEN));
    assert_without(&log.text(), &secrets);
}

/// The libraries below the client and the server see every URL and header.
#[tokio::test]
async fn the_libraries_for_http_log_no_secret() {
    Records::start();
    let (log, _guard) = Log::start();
    let server = TableServer::start().await.unwrap();
    let transport = ReqwestTransport::new().unwrap();
    let secrets = with_every_credential(&server, server.endpoint(), transport).await;
    let records = Records::take();
    assert!(records.contains("reqwest"), "{records}");
    assert_without(&(log.text() + &records), &secrets);
}
