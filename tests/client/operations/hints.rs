//! Hints: an error with one usual cause says what to do about it.

use bytes::Bytes;
use harness::Employee;
use http::Request;
use tablesdk::transport::{Transport, TransportError, TransportFuture};
use tablesdk::{DynamicEntity, ETag, RetryPolicy, SharedKey, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

/// An empty table, and the start of the messages about it.
async fn table() -> (TableServer, TableClient, String) {
    let server = TableServer::in_process();
    let service = TableServiceClient::in_process(&server);
    let table = service.table("Company");
    table.create_table().await.unwrap();
    let (_, place) = service.endpoint().as_str().split_once("://").unwrap();
    let place = format!("in \"Company\" at {place}");
    (server, table, place)
}

/// Each connection is refused.
#[derive(Debug)]
struct NoServer;

impl Transport for NoServer {
    fn send(&self, _: Request<Bytes>) -> TransportFuture<'_> {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        Box::pin(async { Err(TransportError::not_sent(refused)) })
    }
}

#[tokio::test]
async fn a_refused_connection_to_the_port_of_the_emulator_says_what_to_start() {
    let get = async |endpoint: &str| {
        let service = TableServiceClient::builder(endpoint)
            .credential(SharedKey::new("devstoreaccount1", "c2VjcmV0").unwrap())
            .transport(NoServer)
            .retry(RetryPolicy::none());
        let table = service.build().unwrap().table("Employees");
        table.get::<Employee>(("Sales", "1")).await.unwrap_err()
    };
    let error = get("http://127.0.0.1:10002/devstoreaccount1").await;
    assert_eq!(
        error.to_string(),
        "get entity in \"Employees\" at 127.0.0.1:10002/devstoreaccount1 (\"Sales\", \"1\"): the request could not be sent: connection refused; \
         no server runs on the port of the emulator: start `tablesdk-server` or Azurite"
    );
    // A server of the program's own.
    let error = get("http://127.0.0.1:10003/devstoreaccount1").await;
    assert!(
        error.to_string().ends_with(": connection refused"),
        "{error}"
    );
}

#[tokio::test]
async fn an_entity_that_is_too_large_says_where_there_is_room() {
    let (_server, table, place) = table().await;
    let start = format!("insert entity {place} (\"a\", \"1\"): ");
    let entity = DynamicEntity::new("a", "1");
    let chunk = "x".repeat(32_768);
    let many = (0..253).fold(entity.clone(), |entity, index| {
        entity.with(format!("P{index}"), 1)
    });
    let large = (0..16).fold(entity, |entity, index| {
        entity.with(format!("P{index:02}"), &chunk)
    });
    for (entity, because) in [
        (
            many,
            "253 properties are more than the 252 that an entity may have; a struct marked `wide` may have more",
        ),
        (
            large,
            "the entity takes 1048872 bytes, more than the 1048576 that the service stores; \
             a struct marked `wide` takes more, and `Objects` puts large values into an object store",
        ),
    ] {
        let error = table.insert(&entity).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{start}{because}"));
    }
}

#[tokio::test]
async fn operators_of_other_languages_lead_to_those_of_odata() {
    let (_server, table, place) = table().await;
    for (odata, position, symbol, instead) in [
        ("Age > 3", 4, ">", "gt"),
        ("Age < 3", 4, "<", "lt"),
        ("Age>=3", 3, ">=", "ge"),
        ("Age <= 3", 4, "<=", "le"),
        ("Age = 3", 4, "=", "eq"),
        ("Age == 3", 4, "==", "eq"),
        ("Age != 3", 4, "!=", "ne"),
        ("Age <> 3", 4, "<>", "ne"),
        ("Age gt 3 && Age lt 5", 9, "&&", "and"),
        ("(Age gt 3)||Age lt 5", 10, "||", "or"),
        ("!(Age gt 3)", 0, "!", "not"),
    ] {
        let query = table.query::<Employee>().odata(odata);
        let error = query.collect().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "query entities {place}: the OData filter {odata:?} cannot be read: \
                 syntax error at position {position}: OData has no `{symbol}`: write `{instead}`"
            )
        );
    }
    let query = table.query::<Employee>().odata("Name eq \"Ada\"");
    let error = query.collect().await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("at position 8: OData has no `\"`: write `'`"),
        "{error}"
    );
}

#[test]
fn an_if_match_header_that_is_not_one_etag_says_what_to_do() {
    let form = "an ETag is one string in double quotes, which belong to it, such as `W/\"datetime'2024-03-15T10%3A20%3A30.1234567Z'\"`";
    for (text, message) in [
        ("0x8D", form),
        ("W/datetime'2024-03-15T10%3A20%3A30.1234567Z'", form),
        ("", form),
        ("*", "uses `ETag::ANY`"),
        ("\"1\", \"2\"", "this is a list of several"),
        ("\"a\nb\"", "cannot contain the character '\\n'"),
    ] {
        let error = text.parse::<ETag>().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
