//! Input that breaks a rule is rejected before a request is sent. The error names the wrong input
//! and the rule.

use harness::Subject;
use tablesdk::{
    Error, ErrorCode, ErrorKind, SharedKey, TableClient, TableEntity, TableServiceClient,
};
use tablesdk_server::TableServer;

use crate::Employee;

fn table(name: &str) -> TableClient {
    service().table(name)
}

fn service() -> TableServiceClient {
    TableServiceClient::in_process(&TableServer::in_process())
}

fn assert_rejected<T: std::fmt::Debug>(outcome: Result<T, Error>, because: &str) {
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Input, 0));
    assert!(error.operation().is_some(), "{error:?}");
    let text = format!("{error:?}");
    assert!(text.contains(because), "{text} lacks {because:?}");
}

#[tokio::test]
async fn malformed_keys_are_rejected() {
    let table = table("People");
    let because = "513 UTF-16 units are more than the 512 that a key may have";
    let get = table.get(Employee::key("x".repeat(513), "1"));
    assert_rejected(get.await, because);
    let because = "row key \"a/b\": the character '/' at byte 1 is forbidden in keys";
    assert_rejected(table.delete(("Sales", "a/b")).await, because);
}

#[tokio::test]
async fn every_verb_rejects_invalid_table_names() {
    for (name, because) in [
        ("ab", "its length of 2 is not from 3 to 63"),
        (
            "my-table",
            "the character '-' is neither an ASCII letter nor a digit",
        ),
        ("1table", "it starts with the digit 1"),
        ("tables", "it is reserved by the service"),
    ] {
        let because = &*format!("table name \"{name}\": {because}");
        let table = table(name);
        assert_rejected(table.create_table().await, because);
        assert_rejected(table.create_table().if_missing().await, because);
        assert_rejected(table.delete_table().await, because);
        assert_rejected(table.insert(&Employee::ada()).await, because);
        assert_rejected(table.get(Employee::key("Sales", "1")).await, because);
        assert_rejected(table.delete(("Sales", "1")).await, because);
        assert_rejected(table.query::<Employee>().collect().await, because);
    }
}

#[tokio::test]
async fn an_invalid_value_is_rejected_with_its_name() {
    #[derive(Debug, TableEntity)]
    struct Big {
        #[table(partition_key)]
        partition: String,
        #[table(row_key)]
        row: String,
        text: String,
        bytes: Vec<u8>,
        at: time::OffsetDateTime,
    }
    let mut big = Big {
        partition: String::new(),
        row: String::new(),
        text: "é".repeat(32_769),
        bytes: vec![0; 65_537],
        at: time::macros::datetime!(0001-01-01 00:00 UTC),
    };
    let table = table("People");
    let because =
        "property \"text\": the value is too large: a property holds at most 32768 UTF-16 units";
    assert_rejected(table.insert(&big).await, because);
    big.text.clear();
    let because =
        "property \"bytes\": the value is too large: a property holds at most 65536 bytes";
    assert_rejected(table.insert(&big).await, because);
    big.bytes.clear();
    let because = "property \"at\": the value 0001-01-01 0:00:00.0 +00:00:00 is out of range: Edm.DateTime is from 1601 to 9999";
    assert_rejected(table.insert(&big).await, because);
    let query = table.query::<Big>().filter(|b| b.at.gt(big.at));
    let because = "the filter compares \"at\" with a literal that cannot be stored";
    assert_rejected(query.collect().await, because);
}

#[tokio::test]
async fn a_url_that_is_too_long_is_rejected() {
    let because = "the service reads 32768";
    let table = table("People");
    for length in [11_000, 32_768] {
        let name = "é".repeat(length);
        let query = table.query::<Employee>().filter(|e| e.name.eq(&*name));
        assert_rejected(query.collect().await, because);
    }
    let tables = service().tables().starting_with("é".repeat(32_000));
    assert_rejected(tables.collect().await, because);
    let endpoint = format!("https://host/{}", "x".repeat(2048));
    let error = TableServiceClient::builder(endpoint).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn an_invalid_page_size_is_rejected() {
    for size in [0, 1001] {
        let because = format!("a page size of {size} is not from 1 to 1000");
        let query = table("People").query::<Employee>().page_size(size);
        assert_rejected(query.collect().await, &because);
    }
}

#[tokio::test]
async fn a_changed_key_field_is_rejected() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let mut ada = table.insert(&Employee::ada()).await.unwrap();
    ada.id = "2".to_owned();
    let because = "the row key changed from \"1\" to \"2\" since the entity was read";
    assert_rejected(table.replace(&mut ada).await, because);
    assert_rejected(table.merge(&mut ada).await, because);
    let ids = table.query::<Employee>().select(|e| e.id).collect().await;
    assert_eq!(ids.unwrap(), ["1"]);
}

#[tokio::test]
async fn a_wrong_account_key_is_denied_and_not_shown() {
    let subject = Subject::over_http().await;
    let wrong = "d3JvbmcgYWNjb3VudCBrZXk=";
    let key = SharedKey::new(subject.server().credential().account(), wrong).unwrap();
    let service = TableServiceClient::builder(subject.server().endpoint())
        .credential(key)
        .build()
        .unwrap();
    let error = service.table("People").create_table().await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    assert_eq!(error.code(), Some(&ErrorCode::AuthenticationFailed));
    let right = subject.server().credential().expose().to_string();
    for shown in [
        format!("{error} {error:?} {service:?}"),
        format!("{:?}", subject.server()),
    ] {
        assert!(!shown.contains(wrong) && !shown.contains(&right), "{shown}");
    }
    assert!(subject.service.tables().collect().await.unwrap().is_empty());
}

#[test]
fn an_invalid_endpoint_is_rejected() {
    for endpoint in ["", "acct", "ftp://acct", "https://acct.example/?sig=secret"] {
        let error = TableServiceClient::builder(endpoint).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{endpoint}");
        assert!(!format!("{error:?}").contains("secret"));
    }
}
