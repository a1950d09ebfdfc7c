//! Insert, get, replace, merge, upsert and delete entities.
//!
//! The bytes of answers, and every refusal with its code. How conditions and merges work in all their combinations is
//! tested in the engine, without HTTP.

use super::*;
use crate::request::memory::{MemoryBudget, MemoryBudgets, RequestMemory};

#[tokio::test(start_paused = true)]
async fn a_large_entity_is_read_once_there_is_memory_for_it() {
    let client = Client::new();
    let call = async |method: &str, path: &str, body: &str, memory: Option<&Arc<RequestMemory>>| {
        let mut request = client.request(method, path, &[], body);
        client.sign(&mut request, Scheme::SharedKey);
        if let Some(memory) = memory {
            request.extensions_mut().insert(Arc::clone(memory));
        }
        client.service.call(request).await
    };
    let created = call("POST", "/acct/Tables", r#"{"TableName":"people"}"#, None).await;
    assert_eq!(created.status(), 201);
    let text = "x".repeat(30_000);
    let entity = format!(r#"{{"PartitionKey":"p","RowKey":"r","a":"{text}"}}"#);
    assert_eq!(
        call("POST", "/acct/people", &entity, None).await.status(),
        201
    );

    let budgets = Arc::new(MemoryBudgets {
        bodies: MemoryBudget::new(0),
        responses: MemoryBudget::new(80_000),
    });
    let peer = std::net::IpAddr::from([127, 0, 0, 1]);
    let held = budgets
        .responses
        .share("acct", peer)
        .reserve(20_000)
        .await
        .unwrap();
    let memory = RequestMemory::new(&budgets, peer);
    let path = "/acct/people(PartitionKey='p',RowKey='r')";
    let mut get = std::pin::pin!(call("GET", path, "", Some(&memory)));
    let waits = tokio::time::timeout(Duration::from_secs(20), get.as_mut()).await;
    assert!(waits.is_err(), "there is no memory for it");
    drop(held);
    let response = get.await;
    assert!(body(&response).contains(&text));
    let reserved = memory.take_response(response.body().len()).unwrap();
    drop(reserved);
    budgets
        .responses
        .share("acct", peer)
        .reserve(40_000)
        .await
        .unwrap();
}

const ENTITY: &str = "people(PartitionKey='O''Brien',RowKey='a%20b')";

fn insert(client: &Client) -> Response<Bytes> {
    let body = r#"{"PartitionKey":"O'Brien","RowKey":"a b","n":1,"d":1.0,"big":"5","big@odata.type":"Edm.Int64","gone":null}"#;
    client.send("POST", "people", &[], body)
}

#[test]
fn an_insert_answers_with_or_without_content() {
    let client = Client::with_table();
    client.advance(1);
    let written = "2024-03-15T10:20:31Z";
    let inserted = insert(&client);
    assert_eq!(inserted.status(), 201);
    assert_eq!(header(&inserted, "etag"), Some(&*etag(written)));
    let location = format!("http://127.0.0.1:10002/acct/{ENTITY}");
    assert_eq!(header(&inserted, "location"), Some(&*location));
    assert_eq!(
        body(&inserted),
        format!(
            r#"{{"PartitionKey":"O'Brien","RowKey":"a b","Timestamp":"{written}","n":1,"d":1.0,"big":"5"}}"#
        )
    );

    let prefer = [("prefer", "return-no-content")];
    let entity = r#"{"PartitionKey":"","RowKey":""}"#;
    let inserted = client.send("POST", "PEOPLE", &prefer, entity);
    assert_eq!((inserted.status().as_u16(), body(&inserted)), (204, ""));
    let location = "http://127.0.0.1:10002/acct/PEOPLE(PartitionKey='',RowKey='')";
    assert_eq!(header(&inserted, "dataserviceid"), Some(location));
    let etag = etag("2024-03-15T10:20:31.0000001Z");
    assert_eq!(header(&inserted, "etag"), Some(&*etag));
}

#[test]
fn an_insert_is_refused_in_the_order_of_the_service() {
    let client = Client::with_table();
    assert_eq!(insert(&client).status(), 201);
    let large: Vec<_> = (0..17)
        .map(|index| format!(r#""p{index}":"{}""#, "x".repeat(32 * 1024)))
        .collect();
    let large = format!(r#"{{"PartitionKey":"p","RowKey":"r",{}}}"#, large.join(","));
    for (resource, body, expected) in [
        (
            "people",
            r#"{"PartitionKey":"O'Brien","RowKey":"a b"}"#,
            (409, "EntityAlreadyExists"),
        ),
        ("people", "{", (400, "InvalidInput")),
        ("nobody", "{", (400, "InvalidInput")),
        ("nobody", "{}", (404, "TableNotFound")),
        ("people", "{}", (400, "PropertiesNeedValue")),
        (
            "people",
            r#"{"PartitionKey":"a/b","RowKey":""}"#,
            (400, "OutOfRangeInput"),
        ),
        (
            "people",
            r#"{"PartitionKey":"","RowKey":"","a-b":1}"#,
            (400, "PropertyNameInvalid"),
        ),
        ("people", &large, (400, "EntityTooLarge")),
    ] {
        let response = client.send("POST", resource, &[], body);
        assert_eq!(
            status_and_code(&response),
            expected,
            "{resource} {body:.60}"
        );
    }
}

#[test]
fn an_entity_is_read_with_the_properties_that_are_selected() {
    let client = Client::with_table();
    insert(&client);
    let entity = client.send("GET", ENTITY, &[], "");
    assert_eq!(entity.status(), 200);
    // The table took the first timestamp.
    let written = "2024-03-15T10:20:30.0000001Z";
    assert_eq!(header(&entity, "etag"), Some(&*etag(written)));
    assert_eq!(
        body(&entity),
        format!(
            r#"{{"PartitionKey":"O'Brien","RowKey":"a b","Timestamp":"{written}","n":1,"d":1.0,"big":"5"}}"#
        )
    );
    let selected = client.send("GET", &format!("{ENTITY}?$select=nope,n"), &[], "");
    assert_eq!(body(&selected), r#"{"nope":null,"n":1}"#);
    // Metadata is no property: it would stand in the answer twice.
    for name in ["big@odata.type", "odata.etag", "n,odata.metadata"] {
        let selected = client.send("GET", &format!("{ENTITY}?$select={name}"), &[], "");
        let refused = (400, "InvalidInput");
        assert_eq!(status_and_code(&selected), refused, "{name}");
    }
    let full = ("accept", "application/json;odata=fullmetadata");
    let full = client.send("GET", ENTITY, &[full], "");
    let id = format!(r#""odata.id":"http://127.0.0.1:10002/acct/{ENTITY}""#);
    assert!(body(&full).contains(&id), "{}", body(&full));
    for (resource, code) in [
        ("people(PartitionKey='x',RowKey='')", "ResourceNotFound"),
        ("nobody(PartitionKey='x',RowKey='')", "TableNotFound"),
    ] {
        let missing = client.send("GET", resource, &[], "");
        assert_eq!(status_and_code(&missing), (404, code));
    }
}

#[test]
fn the_four_updates_keep_the_table_of_the_service() {
    let any = ("if-match", "*");
    let foreign = ("if-match", "W/\"datetime'2012-06-15T22%3A51%3A44Z'\"");
    let none = ("x-unknown", "ignored");
    let merge = ("x-http-method", "MERGE");
    for (method, tunnel, is_merge) in [
        ("PUT", none, false),
        ("PATCH", none, true),
        ("MERGE", none, true),
        ("POST", merge, true),
    ] {
        let client = Client::with_table();
        let update = |condition, body| client.send(method, ENTITY, &[tunnel, condition], body);
        for condition in [any, foreign] {
            let response = update(condition, r#"{"n":2}"#);
            assert_eq!(
                status_and_code(&response),
                (404, "ResourceNotFound"),
                "{method}"
            );
        }
        let inserted = update(none, r#"{"n":1,"kept":true}"#);
        assert_eq!((inserted.status().as_u16(), body(&inserted)), (204, ""));
        let current = header(&inserted, "etag").unwrap();

        let response = update(foreign, r#"{"n":2}"#);
        assert_eq!(
            status_and_code(&response),
            (412, "UpdateConditionNotSatisfied")
        );
        // Keys in the body say nothing, of whatever type they are.
        let updated = update(("if-match", current), r#"{"n":2,"PartitionKey":5}"#);
        assert_eq!(updated.status(), 204);
        assert!(header(&updated, "etag") > Some(current));
        let entity = client.send("GET", &format!("{ENTITY}?$select=n,kept"), &[], "");
        let kept = if is_merge { "true" } else { "null" };
        assert_eq!(body(&entity), format!(r#"{{"n":2,"kept":{kept}}}"#));

        for (condition, body, expected) in [
            (
                ("if-match", current),
                "{}",
                (412, "UpdateConditionNotSatisfied"),
            ),
            (("if-match", "\"strong\""), "{}", (400, "InvalidInput")),
            (("if-none-match", "*"), "{}", (400, "InvalidInput")),
            (any, r#"{"a":[]}"#, (400, "InvalidInput")),
            (any, r#"{"a b":1}"#, (400, "PropertyNameInvalid")),
        ] {
            let response = update(condition, body);
            assert_eq!(
                status_and_code(&response),
                expected,
                "{method} {condition:?} {body}"
            );
        }
        let missing = "nobody(PartitionKey='',RowKey='')";
        let response = client.send(method, missing, &[tunnel], "{}");
        assert_eq!(status_and_code(&response), (404, "TableNotFound"));
    }
}

#[test]
fn an_empty_merge_changes_the_timestamp_alone() {
    let client = Client::with_table();
    let before = insert(&client);
    for merged in [
        client.send("MERGE", ENTITY, &[("if-match", "*")], "{}"),
        client.send("MERGE", ENTITY, &[("if-match", "*")], ""),
        client.send("PATCH", ENTITY, &[("if-match", "*")], r#"{"n":null}"#),
    ] {
        assert_eq!(merged.status(), 204);
        assert!(header(&merged, "etag") > header(&before, "etag"));
    }
    let entity = client.send("GET", &format!("{ENTITY}?$select=n"), &[], "");
    assert_eq!(body(&entity), r#"{"n":1}"#);
}

#[test]
fn a_merge_counts_the_properties_of_its_result() {
    let client = Client::with_table();
    let numbers = |range: std::ops::Range<u32>| {
        let members: Vec<_> = range.map(|number| format!("\"p{number}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    let send = |body: &str| client.send("PATCH", ENTITY, &[], body);
    assert_eq!(send(&numbers(0..252)).status(), 204);
    assert_eq!(send(&numbers(0..252)).status(), 204);
    let response = send(&numbers(252..253));
    assert_eq!(status_and_code(&response), (400, "TooManyProperties"));
}

#[test]
fn a_delete_needs_a_condition_that_holds() {
    let client = Client::with_table();
    let any = ("if-match", "*");
    let foreign = ("if-match", "W/\"0x8D\"");
    for condition in [any, foreign] {
        let response = client.send("DELETE", ENTITY, &[condition], "");
        assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
    }
    insert(&client);
    let response = client.send("DELETE", ENTITY, &[], "");
    assert_eq!(status_and_code(&response), (400, "InvalidInput"));
    let response = client.send("DELETE", ENTITY, &[foreign], "");
    assert_eq!(
        status_and_code(&response),
        (412, "UpdateConditionNotSatisfied")
    );
    let deleted = client.send("DELETE", ENTITY, &[any], "");
    assert_eq!((deleted.status().as_u16(), body(&deleted)), (204, ""));
    assert_eq!(header(&deleted, "etag"), None);
    let response = client.send("GET", ENTITY, &[], "");
    assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
    let missing = "nobody(PartitionKey='',RowKey='')";
    let response = client.send("DELETE", missing, &[any], "");
    assert_eq!(status_and_code(&response), (404, "TableNotFound"));
}
