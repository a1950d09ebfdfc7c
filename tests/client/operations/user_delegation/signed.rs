//! Signatures: each of their parameters, against the server, and the vectors of a program in
//! Python.

use std::net::{IpAddr, Ipv4Addr};

use harness::raw::{RawClient, Response};
use serde_json::Value;
use tablesdk::sas::UserDelegationKey;
use tablesdk_protocol::auth::sas::{Sas as Fields, SasProtocol, SignedSas};

use super::*;

const VECTORS: &str = include_str!("../../../fixtures/delegation-vectors.json");

/// Each parameter is changed, dropped and doubled, in a signature that has all of them.
#[tokio::test]
async fn every_parameter_is_signed() {
    let server = server().await;
    let people = table(&server, "7:raudk").await;
    let service = client(&server, token("7:raudk"));
    let key = service
        .user_delegation_key(DAY)
        .for_users_of(id(2))
        .await
        .unwrap();
    let now = people.now();
    let sas = people
        .sas()
        .allow(all())
        .keys(Employee::key("Sales", "001")..=Employee::key("Sales", "999"))
        .starts_at(now)
        .expires_in(HOUR)
        .ip(Ipv4Addr::LOCALHOST)
        .for_user(id(9));
    let url = sas.sign_with(&key).unwrap();
    // The only protocol that the builder names is the one that this test does not use.
    let Fields::Table(mut fields) = SignedSas::parse(url.sas().expose()).unwrap().into_sas() else {
        panic!("{url:?}");
    };
    fields.protocol = Some(SasProtocol::HttpsAndHttp);
    let query = Fields::Table(fields).sign(key.key()).expose().to_string();
    let raw = RawClient::of(&server);
    let ask = |query: String| {
        let raw = &raw;
        async move {
            let line = format!("GET /People()?{query}");
            let headers = [
                "Authorization: Bearer 9:@2",
                "x-ms-version: 2020-12-06",
                "Accept: application/json",
            ];
            raw.send(false, &line, &headers, "").await.unwrap()
        }
    };
    let response: Response = ask(query.clone()).await;
    assert_eq!(response.status, 200, "{response:?}");
    // The name of a table is compared, and signed, without regard to case.
    assert_eq!(
        ask(query.replace("tn=People", "tn=PEOPLE")).await.status,
        200
    );

    let pairs: Vec<&str> = query.split('&').collect();
    assert_eq!(pairs.len(), 20);
    for (index, pair) in pairs.iter().enumerate() {
        let (name, value) = pair.split_once('=').unwrap();
        let with = |pair: Option<String>| {
            let mut pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
            pairs.splice(index..=index, pair);
            pairs.join("&")
        };
        let changed = match name {
            "sv" | "skv" => "2026-02-06",
            "tn" => "Persons",
            "sp" => "r",
            "st" | "skt" => "2026-03-01T11:00:00Z",
            "se" | "ske" => "2026-03-02T11:00:00Z",
            "skoid" | "sktid" | "skdutid" | "sduoid" => "c9da6455-213d-42c9-9a79-3e9149a57833",
            "sks" => "b",
            "sip" => "127.0.0.0-127.0.0.9",
            "spr" => "https",
            "spk" | "srk" => "0",
            "epk" | "erk" => "Z",
            "sig" => "5tI7rv%2BQAZXnSgCzkMiIaE%2FjE065jB0BYdM8PMBV6RU%3D",
            _ => panic!("{name} is a new parameter"),
        };
        let doubled = format!("{pair}&{pair}");
        for (what, query) in [
            ("changed", with(Some(format!("{name}={changed}")))),
            ("emptied", with(Some(format!("{name}=")))),
            ("dropped", with(None)),
            ("doubled", with(Some(doubled))),
            (
                "doubled with another value",
                with(Some(format!("{pair}&{name}={changed}"))),
            ),
            (
                "in capitals",
                with(Some(format!("{}={value}", name.to_uppercase()))),
            ),
        ] {
            let response = ask(query).await;
            // Without a signature, the token is the credential, and it allows nothing.
            let is_unsigned = name == "sig"
                && !what.contains("doubled")
                && what != "changed"
                && what != "emptied";
            let code = if is_unsigned {
                "AuthorizationPermissionMismatch"
            } else {
                "AuthenticationFailed"
            };
            assert_eq!(
                (response.status, response.code()),
                (403, code),
                "{name} {what}"
            );
        }
    }
    let with_policy = ask(format!("{query}&si=readers")).await;
    assert_eq!(
        (with_policy.status, with_policy.code()),
        (403, "AuthenticationFailed")
    );
    server.clock().advance(HOUR);
    assert_eq!(ask(query).await.code(), "AuthenticationFailed");
}

#[tokio::test]
async fn addresses_protocols_and_times_of_the_key_are_checked() {
    let server = server().await;
    let people = table(&server, "7:rk").await;
    let elsewhere = read(&people).ip(Ipv4Addr::new(10, 0, 0, 1));
    let secure = read(&people).https_only();
    let raw = RawClient::of(&server);
    for (sas, code) in [
        (elsewhere, "AuthorizationSourceIPMismatch"),
        (secure, "AuthorizationProtocolMismatch"),
    ] {
        let url = sas.delegate().await.unwrap();
        let line = format!("GET /People()?{}", url.sas().expose());
        let response = raw
            .send(false, &line, &["Accept: application/json"], "")
            .await
            .unwrap();
        assert_eq!((response.status, response.code()), (403, code));
    }
    // A signature of a foreign program may outlive its key.
    let key = client(&server, token("7:rk"))
        .user_delegation_key(HOUR)
        .await
        .unwrap();
    let url = read(&people).expires_in(HOUR / 2).sign_with(&key).unwrap();
    let Fields::Table(mut fields) = SignedSas::parse(url.sas().expose()).unwrap().into_sas() else {
        panic!("{url:?}");
    };
    fields.expiry = Some(people.now().saturating_add(DAY).into());
    let longer = Sas::new(&Fields::Table(fields).sign(key.key()).expose()).unwrap();
    let guest = client(&server, longer).table("People");
    assert_eq!(guest.query::<Employee>().count().await.unwrap(), 1);
    server.clock().advance(HOUR);
    assert!(
        guest
            .query::<Employee>()
            .count()
            .await
            .unwrap_err()
            .is_denied()
    );
}

#[tokio::test]
async fn a_replaced_account_key_revokes_its_delegations() {
    let (old, new) = ("b25l", "dHdv");
    let server = server_of(Flavor::Storage, &[old]).await;
    let people = table(&server, "7:rk").await;
    let url = read(&people).delegate().await.unwrap();
    // Another server over the same database has the key as the second one of the account.
    let both = server_of(Flavor::Storage, &[new, old]).await;
    table(&both, "7:rk").await;
    assert_eq!(
        guest(&both, &url)
            .query::<Employee>()
            .count()
            .await
            .unwrap(),
        1
    );
    let rotated = server_of(Flavor::Storage, &[new]).await;
    table(&rotated, "7:rk").await;
    let error = guest(&rotated, &url)
        .query::<Employee>()
        .count()
        .await
        .unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "AuthenticationFailed");
}

/// The client signs what a program in Python signed: `tests/fixtures/delegation_vectors.py`.
#[test]
fn signatures_equal_the_vectors() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let clock = TableServer::in_process().clock();
    clock.set("2026-03-01T06:00:00Z".parse().unwrap());
    for vector in vectors["vectors"].as_array().unwrap() {
        let query = vector["query"].as_str().unwrap();
        let field = |name: &str| vector["fields"][name].as_str();
        let Fields::Table(parsed) = SignedSas::parse(query).unwrap().into_sas() else {
            panic!("{query}");
        };
        let mut delegation = *parsed.delegation.unwrap();
        delegation.user_id = None;
        let value = vectors["key_base64"].as_str().unwrap();
        let key = UserDelegationKey::new(ACCOUNT, delegation, value).unwrap();
        let service =
            TableServiceClient::builder(format!("https://{ACCOUNT}.table.core.windows.net"));
        let service = service
            .credential(Credential::Anonymous)
            .clock(clock.clone())
            .build()
            .unwrap();
        let table = service.table(field("tn").unwrap());
        let letters = field("sp").unwrap();
        let one = [
            Permissions::READ,
            Permissions::ADD,
            Permissions::UPDATE,
            Permissions::DELETE,
        ];
        let one = one
            .into_iter()
            .filter(|one| letters.contains(&one.to_string()));
        let time = |name| field(name).map(|text| text.parse::<Timestamp>().unwrap());
        let mut sas = one.fold(table.sas(), TableSasBuilder::allow);
        sas = sas.expires_at(time("se").unwrap());
        if let Some(start) = time("st") {
            sas = sas.starts_at(start);
        }
        if let Some(range) = field("sip") {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let ip = |text: &str| text.parse::<IpAddr>().unwrap();
            sas = sas.ip(ip(first)..=ip(last));
        }
        if field("spr").is_some() {
            sas = sas.https_only();
        }
        if let Some(user) = field("sduoid") {
            sas = sas.for_user(user.parse().unwrap());
        }
        sas = match [field("spk"), field("srk"), field("epk"), field("erk")] {
            [Some(first), Some(row), Some(last), Some(last_row)] => {
                sas.keys((first, row)..=(last, last_row))
            }
            [Some(first), None, Some(last), None] => sas.partitions(first..=last),
            [Some(first), Some(row), None, None] => sas.keys((first, row)..),
            [None, None, Some(last), Some(row)] => sas.keys(..=(last, row)),
            _ => sas,
        };
        let url = sas.sign_with(&key).unwrap();
        assert_eq!(url.sas().expose(), query);
        assert_eq!(Some(&**url.expose()), vector["url"].as_str());
    }
}
