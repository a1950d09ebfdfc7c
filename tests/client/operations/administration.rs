//! Settings and figures of an account and its tables: stored access policies, service properties
//! and service statistics.

use std::time::{Duration, SystemTime};

use harness::Subject;
use harness::proxy::{Proxy, Reply};
use tablesdk::sas::{Permissions, StoredAccessPolicy};
use tablesdk::service_properties::{
    CorsRule, GeoReplicationStatus, Logging, Metrics, ServiceProperties,
};
use tablesdk::{ErrorCode, ErrorKind, TableServiceClient, TableServiceClientBuilder, Timestamp};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use crate::on_both_transports;

on_both_transports! {
    async fn policies_are_read_back_as_set(subject: Subject) {
        let table = subject.table().await;
        assert!(table.access_policy().await.unwrap().is_empty());
        let start: Timestamp = "2030-01-01T00:00:00.1234567Z".parse().unwrap();
        let policies = [
            StoredAccessPolicy::new("b").allow(Permissions::DELETE),
            StoredAccessPolicy::new("a"),
            StoredAccessPolicy::new("<&>\"' ä"),
            StoredAccessPolicy::new("x".repeat(64)),
        ];
        let end = start.saturating_add(Duration::from_secs(1));
        let whole = |policy: StoredAccessPolicy| policy.allow(Permissions::READ).starts_at(start).expires_at(end);
        let policies = policies.map(whole);
        table.set_access_policy(policies.clone()).await.unwrap();
        assert_eq!(table.access_policy().await.unwrap(), policies);
        table.set_access_policy([]).await.unwrap();
        assert!(table.access_policy().await.unwrap().is_empty());
    }

    async fn policies_may_omit_settings(subject: Subject) {
        let table = subject.table().await;
        let policies = [
            StoredAccessPolicy::new("b").allow(Permissions::READ),
            StoredAccessPolicy::new("a").expires_at("2030-01-01".parse::<Timestamp>().unwrap()),
            StoredAccessPolicy::new("nothing"),
        ];
        table.set_access_policy(policies.clone()).await.unwrap();
        assert_eq!(table.access_policy().await.unwrap(), policies);
    }

    async fn policies_of_a_missing_table_are_an_error(subject: Subject) {
        let table = subject.service.table("Nowhere");
        let error = table.access_policy().await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::TableNotFound));
        assert!(table.set_access_policy([]).await.unwrap_err().is_table_not_found());
    }

    async fn service_properties_have_initial_values(subject: Subject) {
        let initial = subject.service.properties().await.unwrap();
        assert_eq!(initial, ServiceProperties::initial());
    }

    async fn set_properties_changes_only_what_it_contains(subject: Subject) {
        let service = &subject.service;
        let initial = service.properties().await.unwrap();
        let rule = CorsRule::new("https://a.example")
            .allow_origin("https://b.example")
            .allow_method("GET")
            .allow_method("PUT")
            .allow_header("x-ms-*")
            .expose_header("etag")
            .max_age_in_seconds(500);
        let change = ServiceProperties::default()
            .with_logging(Logging::default().reads().writes().deletes().retain_days(30))
            .with_cors([rule.clone()]);
        service.set_properties(change.clone()).await.unwrap();
        let now = service.properties().await.unwrap();
        assert_eq!(now, change.or(initial.clone()));
        assert_eq!(now.cors, Some(vec![rule]));

        let change = ServiceProperties::default()
            .with_hour_metrics(Metrics::default())
            .with_minute_metrics(Metrics::enabled().include_apis().retain_days(1))
            .with_cors([]);
        service.set_properties(change.clone()).await.unwrap();
        let now = service.properties().await.unwrap();
        assert_eq!(now.hour_metrics, Some(Metrics::default()));
        assert_eq!(now.minute_metrics.unwrap().include_apis, Some(true));
        assert_eq!(now.cors, Some(Vec::new()));
        assert_eq!(now.logging.unwrap().retention_days, Some(30));
        assert_eq!(Metrics::enabled().include_apis, Some(false));
        service.set_properties(initial.clone()).await.unwrap();
        assert_eq!(service.properties().await.unwrap(), initial);
    }

    async fn statistics_report_the_last_sync_time(subject: Subject) {
        let stats = subject.service.stats().await.unwrap();
        assert_eq!(stats.status, GeoReplicationStatus::Live);
        assert!(stats.last_sync_time.is_some());
    }
}

#[tokio::test]
async fn invalid_policies_and_properties_are_not_sent() {
    let (subject, table, _) = Subject::with_table(tablesdk::RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let six = (0..6).map(|id| StoredAccessPolicy::new(id.to_string()));
    let policy = StoredAccessPolicy::new;
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(400_000_000_000);
    let start: Timestamp = "2030-01-01".parse().unwrap();
    for (policies, words) in [
        (six.collect::<Vec<_>>(), "at most five"),
        (vec![policy("a"), policy("a")], "two stored access policies"),
        (vec![policy("")], "1 to 64"),
        (vec![policy(&"x".repeat(65))], "1 to 64"),
        (vec![policy("a\n")], "1 to 64"),
        (vec![policy("a").expires_at(far)], "1601"),
        (
            vec![policy("a").starts_at(start).expires_at(start)],
            "expires before it starts",
        ),
    ] {
        let error = table.set_access_policy(policies).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert_eq!(error.operation(), Some("set access policy"));
        assert!(format!("{error:?}").contains(words), "{error:?}");
    }
    let rule = || CorsRule::new("*").allow_method("GET");
    let headers = rule().allow_header("a*").allow_header("b*");
    let headers = headers.allow_header("c*");
    let none = ServiceProperties::default;
    for properties in [
        none().with_cors(std::iter::repeat_with(rule).take(6)),
        none().with_cors([rule().allow_method("BREW")]),
        none().with_cors([CorsRule::new("*")]),
        none().with_cors([headers]),
        none().with_logging(Logging::default().retain_days(0)),
        none().with_minute_metrics(Metrics::enabled().retain_days(366)),
    ] {
        let error = subject.service.set_properties(properties).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
    }
    assert!(journal.requests().is_empty());
}

const SECONDARY: &str = "https://devstoreaccount1-secondary.table.core.windows.net";

#[tokio::test]
async fn statistics_need_a_known_secondary() {
    let server = TableServer::in_process();
    let client = |endpoint: &str, secondary: Option<&str>| {
        let builder = TableServiceClient::builder(endpoint)
            .credential(server.credential())
            .transport(server.transport());
        match secondary {
            Some(secondary) => builder.secondary_endpoint(secondary).build(),
            None => builder.build(),
        }
    };
    for endpoint in [
        "https://tables.contoso.example",
        "https://a.table.cosmos.azure.com",
    ] {
        let error = client(endpoint, None).unwrap().stats().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
    let nonsense = client(server.endpoint(), Some("nonsense"));
    assert_eq!(nonsense.unwrap_err().kind(), ErrorKind::Configuration);

    let (endpoint, key) = (server.endpoint(), server.credential());
    let text = format!(
        "AccountName={};AccountKey={};TableEndpoint={endpoint};TableSecondaryEndpoint={endpoint}-secondary",
        key.account(),
        &*key.expose()
    );
    let builder = TableServiceClientBuilder::from_connection_string(&text).unwrap();
    for service in [
        client("https://tables.contoso.example", Some(SECONDARY)),
        client("https://devstoreaccount1.table.core.windows.net", None),
        builder.transport(server.transport()).build(),
    ] {
        let stats = service.unwrap().stats().await.unwrap();
        assert_eq!(stats.status, GeoReplicationStatus::Live);
    }
}

#[tokio::test]
async fn reads_use_the_configured_secondary() {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let service = TableServiceClient::builder("https://tables.contoso.example/devstoreaccount1")
        .secondary_endpoint(SECONDARY)
        .secondary_reads()
        .credential(server.credential())
        .transport(proxy.clone());
    let service = service.build().unwrap();
    let table = service.table("Tests");
    table.create_table().await.unwrap();
    proxy.plan(Op::QueryTables, [Reply::Refuse]);
    assert!(table.table_exists().await.unwrap());
    assert_eq!(proxy.count(Op::QueryTables), 2);
    // Statistics come from the secondary, and settings from the primary.
    let stats = service.stats().await.unwrap();
    assert_eq!(stats.status, GeoReplicationStatus::Live);
    assert!(service.properties().await.is_ok());
    assert!(table.access_policy().await.unwrap().is_empty());
}
