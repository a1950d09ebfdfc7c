//! Responses of every wrong shape: each gives an error that names the property, the entity's key, the expected and the actual
//! value. The client does not panic, and does not silently use a default.

use bytes::Bytes;
use tablesdk::entity::{EntityError, EntityProblem};
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{
    DynamicEntity, Error, ErrorKind, Properties, TableClient, TableEntity, TableProperties,
    TableServiceClient,
};

/// Answers every request with one body.
#[derive(Debug)]
struct Answering(Bytes);

impl Transport for Answering {
    fn send(&self, _: http::Request<Bytes>) -> TransportFuture<'_> {
        let response = http::Response::builder()
            .status(200)
            .header("content-type", "application/json;odata=minimalmetadata")
            .body(self.0.clone())
            .unwrap();
        Box::pin(async { Ok(response) })
    }
}

pub(crate) fn answering(body: String) -> TableClient {
    answering_bytes(body.into_bytes())
}

pub(crate) fn answering_bytes(body: Vec<u8>) -> TableClient {
    TableServiceClient::builder("https://acct.table.core.windows.net")
        .transport(Answering(body.into()))
        .build()
        .unwrap()
        .table("People")
}

#[derive(Debug, PartialEq, TableEntity)]
pub(crate) struct Person {
    #[table(partition_key)]
    pub(crate) country: String,
    #[table(row_key)]
    pub(crate) id: String,
    pub(crate) age: i32,
    #[table(alias = "salary_old", default)]
    pub(crate) salary: i64,
    #[table(flatten, prefix = "home_")]
    pub(crate) home: Home,
    #[table(json, default)]
    pub(crate) tags: Vec<String>,
    pub(crate) born: Option<time::Date>,
}

#[derive(Debug, PartialEq, TableProperties)]
pub(crate) struct Home {
    pub(crate) city: String,
    pub(crate) floor: Option<u8>,
}

#[derive(Debug, PartialEq, TableEntity)]
struct Keeper {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(rest)]
    rest: Properties,
}

pub(crate) const ENVELOPE: &str = r#""odata.etag":"W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"","PartitionKey":"UK","RowKey":"7","Timestamp":"2024-03-15T10:20:30.5Z""#;

/// Both ways in which an entity comes: alone, and on a page. They differ in what they say was tried.
pub(crate) async fn read<E: TableEntity + std::fmt::Debug>(members: &str) -> Vec<Result<E, Error>> {
    let entity = format!("{{{ENVELOPE}{members}}}");
    let page = format!("{{\"value\":[{entity}]}}");
    let got = answering(entity).get::<E>(("UK", "7")).await;
    let queried = answering(page).query::<E>().collect().await;
    vec![
        got.map(|entity| entity.unwrap().into_inner()),
        queried.map(|mut entities| entities.remove(0).into_inner()),
    ]
}

#[track_caller]
pub(crate) fn assert_error<E: std::fmt::Debug>(
    outcomes: Vec<Result<E, Error>>,
    words: &str,
    shape: &str,
) {
    for outcome in outcomes {
        let error = outcome.expect_err(shape);
        assert_eq!(error.kind(), ErrorKind::Response, "{shape}: {error:?}");
        let key = error
            .key()
            .unwrap_or_else(|| panic!("{shape}: no key in {error:?}"));
        assert_eq!(
            (key.partition_key().as_str(), key.row_key().as_str()),
            ("UK", "7")
        );
        let shown = format!("{error:?}");
        assert!(shown.contains("(\"UK\", \"7\")"), "{shape}: {shown}");
        assert!(shown.contains(words), "{shape}: {shown}\nlacks: {words}");
    }
}

const GOOD: &str = r#","age":36,"home_city":"London""#;

#[tokio::test]
async fn the_right_shape_is_read() {
    for outcome in read::<Person>(GOOD).await {
        let person = outcome.unwrap();
        assert_eq!(
            (person.age, person.salary, person.home.floor),
            (36, 0, None)
        );
    }
}

#[tokio::test]
async fn each_wrong_shape_is_an_error_that_names_it() {
    for (members, words) in [
        // missing and null
        (
            r#","home_city":"x""#,
            r#"property "age" is missing, expected Edm.Int32"#,
        ),
        (
            r#","age":null,"home_city":"x""#,
            r#"property "age" is missing, expected Edm.Int32"#,
        ),
        (
            r#","age":1"#,
            r#"property "home_city" is missing, expected Edm.String"#,
        ),
        (
            r#","age":1,"home_city":null"#,
            r#"property "home_city" is missing, expected Edm.String"#,
        ),
        // another type
        (
            r#","age":"36","home_city":"x""#,
            r#"property "age": expected Edm.Int32, found Edm.String"#,
        ),
        (
            r#","age":36.0,"home_city":"x""#,
            r#"property "age": expected Edm.Int32, found Edm.Double"#,
        ),
        (
            r#","age":true,"home_city":"x""#,
            r#"property "age": expected Edm.Int32, found Edm.Boolean"#,
        ),
        (
            r#","age":3000000000,"home_city":"x""#,
            r#"property "age": expected Edm.Int32, found Edm.Int64"#,
        ),
        (
            r#","age@odata.type":"Edm.Int64","age":"36","home_city":"x""#,
            r#"property "age": expected Edm.Int32, found Edm.Int64"#,
        ),
        (
            r#","age":1,"home_city@odata.type":"Edm.Guid","home_city":"c9da6455-213d-42c9-9a79-3e9149a57833""#,
            r#"property "home_city": expected Edm.String, found Edm.Guid"#,
        ),
        // a default does not hide a wrong type, under neither name
        (
            r#","age":1,"home_city":"x","salary":"much""#,
            r#"property "salary": expected Edm.Int64, found Edm.String"#,
        ),
        (
            r#","age":1,"home_city":"x","salary_old":1.5"#,
            r#"property "salary_old": expected Edm.Int64, found Edm.Double"#,
        ),
        // beyond the range of the field's type
        (
            r#","age":1,"home_city":"x","home_floor":256"#,
            r#"property "home_floor": the value 256 is out of range: a u8 is from 0 to 255"#,
        ),
        (
            r#","age":1,"home_city":"x","home_floor":-1"#,
            r#"property "home_floor": the value -1 is out of range"#,
        ),
        (
            r#","age":1,"home_city":"x","born@odata.type":"Edm.DateTime","born":"2024-03-15T00:00:01Z""#,
            r#"property "born": the value 2024-03-15T00:00:01Z cannot be read: a date alone is stored as midnight"#,
        ),
        // twice
        (
            r#","age":1,"age":1,"home_city":"x""#,
            r#"property "age" came twice"#,
        ),
        (
            r#","age":1,"age":null,"home_city":"x""#,
            r#"property "age" came twice"#,
        ),
        (
            r#","age":1,"home_city":"x","home_city":"y""#,
            r#"property "home_city" came twice"#,
        ),
        (
            r#","age":1,"home_city":"x","salary_old":1,"salary_old":1"#,
            r#"property "salary_old" came twice"#,
        ),
        (
            r#","age":1,"home_city":"x","RowKey":"7""#,
            r#"property "RowKey" came twice"#,
        ),
        // annotations: behind the value, contradicting it, unknown
        (
            r#","age":"36","home_city":"x","age@odata.type":"Edm.Int64""#,
            r#"property "age": expected Edm.Int32, found Edm.Int64"#,
        ),
        (
            r#","age@odata.type":"Edm.Int32","age":"x","home_city":"x""#,
            r#"property "age": the value is not of type Edm.Int32, found "x"; expected Edm.Int32"#,
        ),
        (
            r#","age@odata.type":"Edm.Byte","age":1,"home_city":"x""#,
            r#"property "age": its annotation is not one of the eight EDM types, found "Edm.Byte"; expected Edm.Int32"#,
        ),
        (
            r#","age":1,"home_city@odata.type":"Collection(Edm.String)","home_city":"x""#,
            r#"property "home_city": its annotation is not one of the eight EDM types, found "Collection(Edm.String)"; expected Edm.String"#,
        ),
        (
            r#","age":1,"home_city":"x","born@odata.type":"Edm.DateTime","born":"0001-01-01T00:00:00Z""#,
            r#"property "born": the date lies outside the years 1601 to 9999, found "0001-01-01T00:00:00Z"; expected Edm.DateTime"#,
        ),
        (
            r#","age":1,"home_city":"x","salary":18446744073709551615"#,
            r#"property "salary": the integer is beyond Edm.Int64, found 18446744073709551615; expected Edm.Int64"#,
        ),
        // nested
        (
            r#","age":[1],"home_city":"x""#,
            r#"property "age": the value is an array or object, which no property can hold; expected Edm.Int32"#,
        ),
        (
            r#","age":1,"home_city":{"name":"x"}"#,
            r#"property "home_city": the value is an array or object"#,
        ),
        // JSON within a text
        (
            r#","age":1,"home_city":"x","tags":"[1""#,
            r#"property "tags": the value "[1" cannot be read: "#,
        ),
        (
            r#","age":1,"home_city":"x","tags":"{}""#,
            r#"property "tags": the value "{}" cannot be read: invalid type: map, expected a sequence"#,
        ),
        (
            r#","age":1,"home_city":"x","tags":"[\"a\"] x""#,
            r#"property "tags": the value "[\"a\"] x" cannot be read: trailing characters"#,
        ),
    ] {
        assert_error(read::<Person>(members).await, words, members);
    }
}

#[tokio::test]
async fn what_no_struct_models_is_not_lost_in_silence_either() {
    for (members, words) in [
        (r#","a":1,"a":2"#, r#"property "a" came twice"#),
        (
            r#","a":[1]"#,
            r#"property "a": the value is an array or object"#,
        ),
        (
            r#","a@odata.type":"Edm.Decimal","a":"1""#,
            r#"property "a": its annotation is not one of the eight EDM types, found "Edm.Decimal""#,
        ),
        (
            r#","a":1e999"#,
            r#"property "a": the number is beyond Edm.Double, found 1e999"#,
        ),
    ] {
        assert_error(read::<Keeper>(members).await, words, members);
        assert_error(read::<DynamicEntity>(members).await, words, members);
    }
}

#[tokio::test]
async fn more_properties_than_an_entity_has_are_not_collected() {
    let members: Vec<_> = (0..4_000).map(|index| format!(",\"p{index}\":1")).collect();
    let members = members.concat();
    let words = "253 properties are more than the 252 that an entity may have";
    assert_error(read::<Keeper>(&members).await, words, "4000 properties");
    assert_error(
        read::<DynamicEntity>(&members).await,
        words,
        "4000 properties",
    );
}

#[tokio::test]
async fn nesting_without_end_is_an_error() {
    for open in ["[", "{\"a\":"] {
        let members = format!(
            r#","age":1,"home_city":"x","deep":{}"#,
            open.repeat(200_000)
        );
        for outcome in read::<Person>(&members).await {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Response);
        }
    }
    // As a text it is the field's business, which bounds it as well.
    let text = "[".repeat(20_000);
    let members = format!(r#","age":1,"home_city":"x","tags":"{text}""#);
    assert_error(
        read::<Person>(&members).await,
        "property \"tags\": the value \"[[[",
        "deep JSON in a text",
    );
}

#[tokio::test]
async fn long_values_do_not_flood_the_error() {
    let text = "x".repeat(30_000);
    let members = format!(r#","age":1,"home_city":"x","tags":"{text}""#);
    for outcome in read::<Person>(&members).await {
        let shown = format!("{:?}", outcome.unwrap_err());
        assert!(
            shown.contains("property \"tags\"") && shown.len() < 400,
            "{shown}"
        );
    }
}

#[tokio::test]
async fn an_entity_without_a_key_or_version_is_none() {
    for (body, words) in [
        (
            r#"{"odata.etag":"x","PartitionKey":"UK","age":1,"home_city":"x"}"#,
            r#"property "RowKey" is missing, expected Edm.String"#,
        ),
        (
            r#"{"odata.etag":"x","PartitionKey":5,"RowKey":"7","age":1,"home_city":"x"}"#,
            r#"property "PartitionKey": the value is not of type Edm.String, found 5"#,
        ),
        (
            r#"{"odata.etag":"x","PartitionKey":null,"RowKey":"7","age":1,"home_city":"x"}"#,
            r#"property "PartitionKey" is missing"#,
        ),
        (
            r#"{"PartitionKey":"UK","RowKey":"7","age":1,"home_city":"x"}"#,
            "the answer has no ETag for the entity",
        ),
        (
            r#"{"odata.etag":"x","PartitionKey":"UK","RowKey":"7","Timestamp":"yesterday","age":1,"home_city":"x"}"#,
            r#"property "Timestamp": the value is not of type Edm.DateTime, found "yesterday""#,
        ),
    ] {
        let error = answering(body.to_owned())
            .get::<Person>(("UK", "7"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response, "{body}");
        assert!(format!("{error:?}").contains(words), "{body}: {error:?}");
    }
}

#[tokio::test]
async fn columns_that_are_selected_are_as_strict() {
    for (members, words) in [
        (
            r#","age":null,"salary":5"#,
            r#"property "age" is missing, expected Edm.Int32"#,
        ),
        (
            r#","age":"1","salary":5"#,
            r#"property "age": expected Edm.Int32, found Edm.String"#,
        ),
        (
            r#","age":1,"salary":[5]"#,
            r#"property "salary": the value is an array or object"#,
        ),
        (
            r#","age":1,"salary_old":"5""#,
            r#"property "salary_old": expected Edm.Int64, found Edm.String"#,
        ),
    ] {
        let page = format!("{{\"value\":[{{{ENVELOPE}{members}}}]}}");
        let query = answering(page)
            .query::<Person>()
            .select(|e| (e.age, e.salary));
        assert_error(vec![query.collect().await], words, members);
    }
}

#[test]
fn the_problem_can_be_told_apart_by_a_program() {
    let row = DynamicEntity::new("UK", "7");
    let error: EntityError = row.to_entity::<Person>().unwrap_err();
    assert!(matches!(
        error.problem(),
        EntityProblem::MissingProperty { property, .. } if property == "age"
    ));
}
