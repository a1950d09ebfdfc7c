//! Shared access signatures: what a client signs, what it does not sign, and which operations a
//! signature permits.

use std::error::Error as _;
use std::iter;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use harness::Subject;
use serde_json::Value;
use tablesdk::credential::{AccessToken, TokenRequest};
use tablesdk::sas::{
    AccountPermissions, Permissions, ResourceTypes, SasUrl, Services, StoredAccessPolicy,
    TableSasBuilder,
};
use tablesdk::{
    Credential, ETag, EntraId, ErrorCode, ErrorKind, RetryPolicy, Sas, SharedKey, TableClient,
    TableServiceClient, Timestamp,
};
use tablesdk_server::TableServer;

use crate::{Employee, on_both_transports};

const VECTORS: &str = include_str!("../../fixtures/auth-vectors.json");

/// A client with the key of the vectors, in their time.
fn of_the_vectors() -> (Value, TableServiceClient) {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let account = vectors["account"].as_str().unwrap().to_owned();
    let key = SharedKey::new(&*account, vectors["key_base64"].as_str().unwrap()).unwrap();
    let clock = TableServer::in_process().clock();
    clock.set("2019-06-01".parse().unwrap());
    let service = TableServiceClient::builder(format!("https://{account}.table.core.windows.net"))
        .credential(key)
        .clock(clock)
        .build()
        .unwrap();
    (vectors, service)
}

/// A field of a vector, if it has one.
fn field<'v>(vector: &'v Value, name: &str) -> Option<&'v str> {
    let value = vector["fields"][name].as_str();
    value.filter(|value| !value.is_empty())
}

fn permissions(letters: &str) -> Permissions {
    let (read, add) = (Permissions::READ, Permissions::ADD);
    let all = [read, add, Permissions::UPDATE, Permissions::DELETE];
    let given = all.iter().filter(|one| letters.contains(&one.to_string()));
    given.fold(Permissions::default(), |all, one| all | *one)
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Sets the fields that both builders have.
macro_rules! with_fields {
    ($sas:ident, $vector:expr) => {
        if let Some(start) = field($vector, "st") {
            $sas = $sas.starts_at(time(start));
        }
        if let Some(expiry) = field($vector, "se") {
            $sas = $sas.expires_at(time(expiry));
        }
        if field($vector, "spr") == Some("https") {
            $sas = $sas.https_only();
        }
        if let Some(range) = field($vector, "sip") {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            $sas = $sas.ip(ip(first)..=ip(last));
        }
    };
}

#[test]
fn table_sas_equal_the_vectors() {
    let (vectors, service) = of_the_vectors();
    let mut compared = 0;
    for vector in vectors["table_sas"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        // The client signs its own version only.
        if field(vector, "sv") != Some("2019-02-02") {
            continue;
        }
        let table = service.table(field(vector, "tn").unwrap());
        let mut sas = table.sas();
        if let Some(id) = field(vector, "si") {
            sas = sas.with_partial_policy(id);
        }
        if let Some(letters) = field(vector, "sp") {
            sas = sas.allow(permissions(letters));
        }
        with_fields!(sas, vector);
        sas = match (field(vector, "spk"), field(vector, "epk")) {
            (Some(first), Some(last)) => {
                let keys = (field(vector, "srk"), field(vector, "erk"));
                match keys {
                    (Some(row), Some(last_row)) => sas.keys((first, row)..=(last, last_row)),
                    (None, None) if first == last => sas.partition(first),
                    (None, None) => sas.partitions(first..=last),
                    keys => panic!("{keys:?}"),
                }
            }
            (Some(first), None) => sas.keys((first, field(vector, "srk").unwrap_or_default())..),
            (None, Some(last)) => sas.keys(..=(last, field(vector, "erk").unwrap())),
            (None, None) => sas,
        };
        let url = sas.sign().unwrap();
        let expected = vector["query"].as_str();
        assert_eq!(Some(url.sas().expose()), expected, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

#[test]
fn account_sas_equal_the_vectors() {
    let (vectors, service) = of_the_vectors();
    let mut compared = 0;
    for vector in vectors["account_sas"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        let letters = field(vector, "sp").unwrap();
        let mut sas = service.sas();
        for (one, letter) in [
            (AccountPermissions::READ, 'r'),
            (AccountPermissions::WRITE, 'w'),
            (AccountPermissions::DELETE, 'd'),
            (AccountPermissions::LIST, 'l'),
            (AccountPermissions::ADD, 'a'),
            (AccountPermissions::CREATE, 'c'),
            (AccountPermissions::UPDATE, 'u'),
        ] {
            if letters.contains(letter) {
                sas = sas.allow(one);
            }
        }
        for (kind, letter) in [
            (ResourceTypes::SERVICE, 's'),
            (ResourceTypes::CONTAINER, 'c'),
            (ResourceTypes::OBJECT, 'o'),
        ] {
            if field(vector, "srt").unwrap().contains(letter) {
                sas = sas.on(kind);
            }
        }
        if field(vector, "ss") == Some("bqtf") {
            sas = sas.services(Services::all());
        }
        with_fields!(sas, vector);
        let url = sas.sign().unwrap();
        // The client signs its own version only, and does not name both protocols, which is the
        // default.
        let is_ours = field(vector, "sv") == Some("2019-02-02")
            && field(vector, "spr") != Some("https,http")
            && field(vector, "ses").is_none();
        if is_ours {
            let expected = vector["query"].as_str();
            assert_eq!(Some(url.sas().expose()), expected, "{name}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}

/// A table, and a client of it with nothing but the signature.
fn guest(subject: &Subject, sas: TableSasBuilder) -> TableClient {
    let url: SasUrl = sas.sign().unwrap().expose().parse().unwrap();
    let service = subject.reach(url.builder()).build();
    service.unwrap().table(url.table().unwrap())
}

const HOUR: Duration = Duration::from_secs(3600);

on_both_transports! {
    async fn a_sas_grants_its_permissions_only(subject: Subject) {
        let table = subject.table().await;
        for (given, allowed) in [
            (Permissions::READ, "r"),
            (Permissions::ADD, "a"),
            (Permissions::DELETE, "d"),
            (Permissions::ADD | Permissions::UPDATE, "aus"),
            (Permissions::all(), "ruads"),
        ] {
            let ada = Employee::ada();
            table.upsert_replace(&ada).await.unwrap();
            table.delete(Employee::key("Sales", "2")).await.unwrap();
            let guest = guest(&subject, table.sas().allow(given).expires_in(HOUR));
            for (letter, outcome) in [
                ('r', guest.get(Employee::key("Sales", "1")).await.map(drop)),
                ('u', guest.replace_if(&ada, ETag::ANY).await.map(drop)),
                ('s', guest.upsert_merge(&ada).await.map(drop)),
                ('a', guest.insert(&Employee::new("2", "Grace", 45)).await.map(drop)),
                ('d', guest.delete(("Sales", "1")).await.map(drop)),
            ] {
                let refused = outcome.err().map(|error| error.code().unwrap().clone());
                let is_denied = !allowed.contains(letter);
                let expected = is_denied.then_some(ErrorCode::AuthorizationPermissionMismatch);
                assert_eq!(refused, expected, "{given:?} {letter}");
            }
        }
    }

    async fn a_table_sas_cannot_change_the_table(subject: Subject) {
        let table = subject.table().await;
        let sas = table.sas().allow(Permissions::all()).expires_in(HOUR);
        let guest = guest(&subject, sas);
        assert!(guest.access_policy().await.unwrap_err().is_denied());
        assert!(guest.set_access_policy([]).await.unwrap_err().is_denied());
        assert!(guest.create_table().await.unwrap_err().is_denied());
        assert!(guest.delete_table().await.unwrap_err().is_denied());
    }

    async fn an_upsert_needs_the_permissions_to_add_and_update(subject: Subject) {
        let table = subject.table().await;
        let ada = Employee::ada();
        table.insert(&ada).await.unwrap();
        let sas = table.sas().allow(Permissions::UPDATE).expires_in(HOUR);
        let guest = guest(&subject, sas);
        guest.replace_if(&ada, ETag::ANY).await.unwrap();
        for error in [
            guest.upsert_merge(&ada).await.unwrap_err(),
            guest.upsert_replace(&ada).await.unwrap_err(),
        ] {
            assert_eq!(error.code(), Some(&ErrorCode::AuthorizationPermissionMismatch));
        }
    }

    async fn a_sas_is_limited_to_its_range_of_keys(subject: Subject) {
        let table = subject.table().await;
        for id in ["1", "2", "3"] {
            table.insert(&Employee::new(id, "Ada", 36)).await.unwrap();
        }
        let sas = table.sas().allow(Permissions::all()).expires_in(HOUR);
        let key = Employee::key("Sales", "2");
        let guest = guest(&subject, sas.keys(key.clone()..=key));
        let seen = guest.query::<Employee>().collect().await.unwrap();
        assert_eq!(seen.iter().map(|e| &*e.id).collect::<Vec<_>>(), ["2"]);
        assert!(Employee::find(&guest).await.is_none());
        let error = guest.upsert_replace(&Employee::new("3", "Eve", 1)).await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::AuthorizationFailure));
        guest.upsert_replace(&Employee::new("2", "Eve", 1)).await.unwrap();

        for (keys, count) in [
            (table.sas().keys(("Sales", "2")..), 2),
            (table.sas().keys(..=("Sales", "2")), 2),
            (table.sas().keys(("Sales", "")..=("Sales", "9")), 3),
            (table.sas().partition("Sales"), 3),
            (table.sas().partition("Legal"), 0),
            (table.sas().partitions("Legal"..="Sales"), 3),
            (table.sas().partitions("A"..="Legal"), 0),
            // The last one counts.
            (table.sas().partition("Legal").partition("Sales"), 3),
        ] {
            let guest = self::guest(&subject, keys.allow(Permissions::READ).expires_in(HOUR));
            assert_eq!(guest.query::<Employee>().count().await.unwrap(), count);
        }
    }
}

/// A policy that says all there is to say.
fn whole(later: SystemTime) -> StoredAccessPolicy {
    StoredAccessPolicy::new("whole")
        .allow(Permissions::READ)
        .starts_at(SystemTime::UNIX_EPOCH)
        .expires_at(later)
}

on_both_transports! {
    async fn a_policy_can_be_revoked(subject: Subject) {
        let table = subject.table().await;
        table.set_access_policy([whole(SystemTime::now() + HOUR)]).await.unwrap();
        let bearer = guest(&subject, table.sas().with_policy("whole"));
        let count = bearer.query::<Employee>().count();
        assert_eq!(count.await.unwrap(), 0);
        let error = bearer.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_denied(), "{error:?}");
        let other = guest(&subject, table.sas().with_policy("other"));
        assert!(other.query::<Employee>().count().await.unwrap_err().is_denied());
        table.set_access_policy([]).await.unwrap();
        assert!(bearer.query::<Employee>().count().await.unwrap_err().is_denied());
    }

    async fn a_sas_completes_but_does_not_override_its_policy(subject: Subject) {
        let table = subject.table().await;
        let read = async |sas: TableSasBuilder| {
            guest(&subject, sas).query::<Employee>().count().await
        };
        let partial = StoredAccessPolicy::new("partial").allow(Permissions::READ);
        let policies = [whole(SystemTime::now() + HOUR), partial];
        table.set_access_policy(policies).await.unwrap();
        read(table.sas().with_partial_policy("partial").expires_in(HOUR)).await.unwrap();
        for sas in [
            // A setting is in both, or in neither.
            table.sas().with_partial_policy("whole").expires_in(HOUR),
            table.sas().with_policy("partial"),
        ] {
            let error = read(sas).await.unwrap_err();
            assert_eq!(error.code(), Some(&ErrorCode::AuthenticationFailed));
        }
    }

    async fn an_account_sas_grants_its_resources_only(subject: Subject) {
        let sas = subject.service.sas().on(ResourceTypes::CONTAINER | ResourceTypes::OBJECT);
        let sas = sas.allow(AccountPermissions::CREATE | AccountPermissions::LIST).allow(AccountPermissions::ADD);
        let url = sas.starts_in(Duration::ZERO).expires_in(HOUR).sign().unwrap();
        let guest = subject.reach(url.builder()).build().unwrap();
        let table = guest.table("People");
        assert!(table.create_table().if_missing().await.unwrap());
        assert_eq!(guest.tables().collect().await.unwrap(), ["People"]);
        table.insert(&Employee::ada()).await.unwrap();
        let error = table.get(Employee::key("Sales", "1")).await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::AuthorizationPermissionMismatch));
        let error = guest.properties().await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::AuthorizationResourceTypeMismatch));
    }
}

#[test]
fn a_useless_sas_is_not_signed() {
    let (_, service) = of_the_vectors();
    let table = service.table("people");
    let sas = || table.sas().allow(Permissions::READ).expires_in(HOUR);
    let of_policy = |name: &str| table.sas().with_policy(name);
    let within_a_second = sas().starts_in(Duration::from_millis(100));
    let nothing = table.sas().allow(Permissions::default());
    let no_table = service.table("no table").sas();
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(400_000_000_000);
    let from_policy = "come from the stored access policy";
    for (sas, words) in [
        (table.sas().expires_in(HOUR), "allows nothing"),
        (nothing.expires_in(HOUR), "allows nothing"),
        (table.sas().allow(Permissions::READ), "never expires"),
        (sas().starts_in(HOUR), "expires before it starts"),
        (sas().starts_in(2 * HOUR), "expires before it starts"),
        (sas().expires_at(time("2019-05-31")), "has expired already"),
        (sas().expires_in(Duration::ZERO), "has expired already"),
        (
            within_a_second.expires_in(Duration::from_millis(900)),
            "expires before it starts",
        ),
        (sas().expires_at(far), "1601"),
        (sas().keys(("B", "1")..=("A", "1")), "end before they start"),
        (sas().keys(("A", "")..=("A", "")), "empty row key"),
        (sas().keys(("A/", "1")..), "partition key"),
        (sas().partition(""), "empty partition key"),
        (sas().partitions(""..="x"), "empty partition key"),
        (sas().partitions("B"..="A"), "end before they start"),
        (sas().ip(ip("10.0.0.2")..=ip("10.0.0.1")), "addresses"),
        (sas().ip(ip("10.0.0.2")..=ip("::1")), "addresses"),
        (sas().with_policy("readers"), from_policy),
        (of_policy("readers").allow(Permissions::READ), from_policy),
        (of_policy("readers").starts_in(HOUR), from_policy),
        (of_policy(""), "1 to 64 characters"),
        (of_policy(&"x".repeat(65)), "1 to 64 characters"),
        (no_table.with_policy("readers"), "no table"),
    ] {
        let text = format!("{sas:?}");
        let error = sas.sign().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{text}");
        assert!(format!("{error:?}").contains(words), "{text} {error:?}");
        assert_eq!(error.operation(), Some("sign shared access signature"));
    }
    let everything = || service.sas().on(ResourceTypes::all());
    let account = || everything().allow(AccountPermissions::READ);
    let of_nothing = service.sas().allow(AccountPermissions::READ);
    let of_blobs = account().services(Services::BLOB);
    let late = account().expires_in(HOUR).starts_in(HOUR);
    for (sas, words) in [
        (account(), "never expires"),
        (everything().expires_in(HOUR), "allows nothing"),
        (of_nothing.expires_in(HOUR), "no kind of resource"),
        (of_blobs.expires_in(HOUR), "does not hold for tables"),
        (late, "expires before it starts"),
    ] {
        let error = sas.sign().unwrap_err();
        assert!(format!("{error:?}").contains(words), "{error:?}");
    }
}

#[test]
fn only_an_account_key_signs() {
    let no_token = |_: TokenRequest| async {
        AccessToken::new("x", "2100-01-01".parse::<tablesdk::Timestamp>()?)
    };
    for credential in [
        Credential::Anonymous,
        Sas::new("sig=c2ln").unwrap().into(),
        EntraId::new(no_token).into(),
    ] {
        let service = TableServiceClient::builder("https://acct.table.core.windows.net")
            .credential(credential)
            .build()
            .unwrap();
        let table = service.table("people").sas().allow(Permissions::READ);
        let account = service.sas().allow(AccountPermissions::READ);
        let account = account.on(ResourceTypes::all()).expires_in(HOUR);
        for result in [table.expires_in(HOUR).sign(), account.sign()] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Configuration);
        }
    }
}

#[tokio::test]
async fn a_signature_is_never_shown() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let key = subject.server().credential().expose().to_string();
    let sas = table.sas().allow(Permissions::READ).expires_in(HOUR);
    let account = subject
        .service
        .sas()
        .on(ResourceTypes::all())
        .allow(AccountPermissions::READ);
    let shown = format!("{sas:?} {account:?} {:?}", subject.service);
    assert!(
        !shown.contains(&key) && shown.contains("devstoreaccount1"),
        "{shown}"
    );
    let url = sas.sign().unwrap();
    let token = url.sas().expose().to_owned();
    let (_, signature) = token.split_once("sig=").unwrap();

    let endpoint = subject.server().endpoint();
    let text = format!("TableEndpoint={endpoint};SharedAccessSignature=?{token}");
    let service = TableServiceClient::from_connection_string(&text).unwrap();
    let guest = TableClient::from_sas_url(&url.expose()).unwrap();
    let denied = guest.delete(("Sales", "1")).await.unwrap_err();
    let wrong_host = url.expose().replace("127.0.0.1", "127.0.0.1.invalid");
    let wrong_host: SasUrl = wrong_host.parse().unwrap();
    let unreachable = wrong_host.builder().retry(RetryPolicy::none());
    let unreachable = unreachable.build().unwrap().table("Tests");
    let unreachable = unreachable.delete(("a", "b")).await.unwrap_err();
    let mut causes = String::new();
    for error in [&denied, &unreachable] {
        let causes_of = iter::successors(error.source(), |cause| (*cause).source());
        causes_of.for_each(|cause| causes += &format!("{cause} {cause:?}"));
    }
    let shown = format!(
        "{causes} {denied} {denied:?} {unreachable} {unreachable:?} {service:?} {guest:?} {url:?} {wrong_host:?} {:?} {:?} {:?}",
        url.sas(),
        url.builder(),
        guest.sas(),
    );
    assert!(
        !shown.contains(signature) && !shown.contains(&key),
        "{shown}"
    );
    let count = service.table("Tests").query::<Employee>().count();
    assert_eq!(count.await.unwrap(), 0);
}
