//! Continuation tokens that do not advance: a scan that returns to an earlier position ends with an
//! error. In process.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use harness::Subject;
use harness::proxy::{Proxy, Reply, service_response};
use http::Response;
use tablesdk::{DynamicEntity, Error, ErrorKind, RetryPolicy};
use tablesdk_server::testing::Op;

/// More requests than any of these scans needs.
const REQUESTS_MAX: usize = 200;

/// A page of a list of entities or tables, and the token that it gives.
fn page(item: &str, token: &str) -> Response<Bytes> {
    service_response(200)
        .header("x-ms-continuation-NextPartitionKey", token)
        .header("x-ms-continuation-NextRowKey", "row")
        .header("x-ms-continuation-NextTableName", token)
        .body(format!("{{\"value\":[{item}]}}").into())
        .unwrap()
}

/// Gives these tokens again and again, each with an empty page or one of that item.
fn go_round(proxy: &Proxy, tokens: &'static [&'static str], item: &'static str) {
    let mut requests = 0;
    proxy.choose(move |op| {
        if !matches!(op, Op::QueryEntities | Op::QueryTables) {
            return Reply::Forward;
        }
        assert!(requests < REQUESTS_MAX, "it goes on for ever");
        requests += 1;
        Reply::Respond(page(item, tokens[(requests - 1) % tokens.len()]))
    });
}

fn assert_stuck<T: std::fmt::Debug>(name: &str, outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Response, "{name}: {error:?}");
    let text = format!("{error:?}");
    assert!(text.contains("continuation token"), "{name}: {text}");
}

/// The token with other bytes behind those that identify its query.
fn changed(token: &str, position: &[u8]) -> String {
    let (version, encoded) = token.split_once('.').unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(encoded).unwrap();
    let changed = [&bytes[..8], position].concat();
    format!("{version}.{}", URL_SAFE_NO_PAD.encode(changed))
}

/// Who changes a token makes a mistake of input, and not one of the service.
#[tokio::test]
async fn a_page_token_that_was_changed_is_an_error_of_input() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    for id in 1..=5 {
        let entity = DynamicEntity::new("Sales", id.to_string());
        table.insert(&entity).await.unwrap();
    }
    let query = || table.query::<DynamicEntity>().partition("Sales");
    let page = query().take(2).page(None).await.unwrap();
    let token = page.next.unwrap().to_string();
    for position in [
        &b"no key"[..],
        b"1!4!YQ-",
        b"1!8!U2FsZXM-\xffno key",
        b"\xff",
        b"",
    ] {
        let changed = changed(&token, position);
        let error = query().page_after(Some(&changed)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{position:?}: {error}");
        let text = error.to_string();
        assert!(text.contains("query entities"), "{text}");
        assert!(text.contains("page token"), "{text}");
        assert_eq!((error.attempts(), error.table()), (1, Some("Tests")));
    }
    let rest = query().page_after(Some(&token)).await.unwrap();
    assert_eq!(rest.items.len(), 3);

    for name in ["Other1", "Other2"] {
        subject.service.table(name).create_table().await.unwrap();
    }
    let tables = || subject.service.tables().page_size(1);
    let token = tables().page(None).await.unwrap().next.unwrap().to_string();
    let changed = changed(&token, b"a/b");
    let error = tables().page_after(Some(&changed)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert!(error.to_string().contains("page token"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_does_not_advance_ends_every_scan() {
    let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let query = || table.query::<DynamicEntity>();
    for tokens in [&["a"][..], &["a", "b"], &["a", "b", "c", "d", "e"]] {
        go_round(&proxy, tokens, "");
        assert_stuck("collect", query().collect().await);
        assert_stuck("prefetch", query().prefetch().collect().await);
        assert_stuck("take", query().take(5).collect().await);
        assert_stuck("first", query().first().await);
        assert_stuck("one", query().one().await);
        assert_stuck("exists", query().exists().await);
        assert_stuck("count", query().count().await);
        assert_stuck("page", query().page(None).await);
        assert_stuck("partitions", query().partitions(["a", "b"]).collect().await);
        let deleted = query().delete_all().await.unwrap_err();
        assert_eq!(deleted.error().unwrap().kind(), ErrorKind::Response);
        assert_stuck("tables", subject.service.tables().collect().await);
        assert_stuck("clean_up_markers", table.clean_up_markers("Sales").await);
        proxy.clear();
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_token_with_items_ends_the_scan() {
    let (subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let entity = r#"{"PartitionKey":"a","RowKey":"1","odata.etag":"W/\"1\""}"#;
    let (query, tables) = (
        || table.query::<DynamicEntity>(),
        || subject.service.tables(),
    );
    for tokens in [&["a"][..], &["a", "b", "c"]] {
        go_round(&proxy, tokens, entity);
        assert_stuck("collect", query().collect().await);
        go_round(&proxy, tokens, r#"{"TableName":"People"}"#);
        assert_stuck("tables", tables().collect().await);
    }
    // A page that returns its own token.
    go_round(&proxy, &["a"], entity);
    let token = query().page(None).await.unwrap().next;
    assert_stuck("page", query().page(token).await);
    go_round(&proxy, &["a"], r#"{"TableName":"People"}"#);
    let token = tables().page(None).await.unwrap().next;
    assert_stuck("tables", tables().page(token).await);
}

#[tokio::test(start_paused = true)]
async fn many_empty_pages_are_followed() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let pages = (0..500).map(|number| Reply::Respond(page("", &number.to_string())));
    proxy.plan(Op::QueryEntities, pages);
    let last = service_response(200).body(r#"{"value":[]}"#.into());
    proxy.plan(Op::QueryEntities, [Reply::Respond(last.unwrap())]);
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    assert_eq!(proxy.count(Op::QueryEntities), 501);
}
