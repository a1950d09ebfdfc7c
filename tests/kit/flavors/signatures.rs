//! Differences of authentication and of shared access signatures.

use harness::raw::RawClient;
use tablesdk::sas::{Permissions, TableSasBuilder};
use tablesdk::{SharedKey, TableServiceClient, Timestamp};
use tablesdk_server::TableServer;

use super::{Subject, differences, outcome};

const ENTITY: &str = "/People(PartitionKey='p',RowKey='r')";

/// A signature for the table, as a query string.
fn sas(subject: &Subject, sas: impl FnOnce(TableSasBuilder) -> TableSasBuilder) -> String {
    let client = &subject.client;
    let endpoint = format!("http://{}/{}", client.address, client.key.account());
    // The client signs nothing that has expired at its own time.
    let past = TableServer::in_process();
    past.clock().set(time("2018-01-01"));
    let service = TableServiceClient::builder(endpoint).credential(client.key.clone());
    let service = service.clock(past.clock());
    let table = service.build().unwrap().table("People");
    sas(table.sas().expires_at(time("2099-01-01")))
        .sign()
        .unwrap()
        .sas()
        .expose()
        .to_owned()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

differences! {
    "A signature that is not right, and a request without one":
    async fn a_wrong_signature(subject: &Subject) -> ["403 AuthenticationFailed", "403 AuthenticationFailed", "403 AuthorizationFailure"] {
        let key = SharedKey::new(subject.client.key.account(), "c2VjcmV0").unwrap();
        let client = RawClient { key, ..subject.client };
        let guest = Subject { client, server: None };
        let wrong = guest.send("GET /Tables", &[], "").await;
        let none = subject.request(false, "GET /Tables", &[], "").await;
        assert_eq!(outcome(&wrong), outcome(&none));
        outcome(&wrong)
    }

    "A shared access signature that has expired":
    async fn an_expired_sas(subject: &Subject) -> ["403 AuthenticationFailed", "403 AuthenticationFailed", "403 AuthorizationFailure"] {
        let sas = sas(subject, |sas| sas.allow(Permissions::READ).expires_at(time("2019-01-01")));
        outcome(&subject.send_sas("GET", ENTITY, &sas, "").await)
    }

    "The range of keys of a shared access signature":
    async fn the_keys_of_a_sas(subject: &Subject) -> ["404 ResourceNotFound", "501 NotImplemented", "200"] {
        let sas = sas(subject, |sas| sas.allow(Permissions::READ).partition("other"));
        outcome(&subject.send_sas("GET", ENTITY, &sas, "").await)
    }

    "The addresses of a shared access signature":
    async fn the_addresses_of_a_sas(subject: &Subject) -> ["403 AuthorizationSourceIPMismatch", "403 AuthorizationSourceIPMismatch", "200"] {
        let other: std::net::IpAddr = "10.0.0.1".parse().unwrap();
        let sas = sas(subject, |sas| sas.allow(Permissions::READ).ip(other..=other));
        outcome(&subject.send_sas("GET", ENTITY, &sas, "").await)
    }

    "An upsert by a shared access signature without the permission to add":
    async fn an_upsert_by_sas(subject: &Subject) -> ["403 AuthorizationPermissionMismatch", "403 Forbidden", "204"] {
        let sas = sas(subject, |sas| sas.allow(Permissions::UPDATE));
        outcome(&subject.send_sas("PUT", ENTITY, &sas, "{}").await)
    }

    "A shared access signature of a table that deletes the table":
    async fn a_sas_deletes_its_table(subject: &Subject) -> ["403 AuthorizationFailure", "403 AuthorizationFailure", "204"] {
        let sas = sas(subject, |sas| sas.allow(Permissions::DELETE));
        outcome(&subject.send_sas("DELETE", "/Tables('People')", &sas, "").await)
    }
}
