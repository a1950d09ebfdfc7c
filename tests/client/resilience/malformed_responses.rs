//! Malformed responses: each is an error that names the entity, the property, and the expected and
//! the actual value. The client does not panic, does not use a default instead, and returns no
//! value that the response does not contain.

use std::fmt::Debug;

use bytes::Bytes;
use fastrand::Rng;
use harness::seeded;
use serde_json::Value as Json;
use tablesdk::series::Series;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{
    DynamicEntity, Error, ErrorKind, Guid, Properties, TableClient, TableEntity, TableProperties,
    TableServiceClient, Timestamp,
};

/// Gives every request the same response.
#[derive(Debug)]
struct Responding {
    body: Bytes,
    content_type: &'static str,
}

impl Transport for Responding {
    fn send(&self, _: http::Request<Bytes>) -> TransportFuture<'_> {
        let response = http::Response::builder()
            .header("content-type", self.content_type)
            .body(self.body.clone());
        Box::pin(async { Ok(response.unwrap()) })
    }
}

fn responding(body: impl Into<Bytes>) -> TableClient {
    responding_as("application/json;odata=minimalmetadata", body)
}

fn responding_as(content_type: &'static str, body: impl Into<Bytes>) -> TableClient {
    let body = body.into();
    let service = TableServiceClient::builder("https://acct.table.core.windows.net")
        .transport(Responding { body, content_type })
        .build();
    service.unwrap().table("People")
}

#[derive(Debug, TableEntity)]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    age: i32,
    #[table(alias = "salary_old", default)]
    salary: i64,
    #[table(flatten, prefix = "home_")]
    home: Home,
    #[table(json, default)]
    tags: Vec<String>,
    born: Option<time::Date>,
}

#[derive(Debug, TableProperties)]
struct Home {
    city: String,
    floor: Option<u8>,
}

#[derive(Debug, TableEntity)]
struct Open {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(rest)]
    rest: Properties,
}

const ENVELOPE: &str = r#""odata.etag":"W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"","PartitionKey":"UK","RowKey":"7","Timestamp":"2024-03-15T10:20:30.5Z""#;

/// Reads an entity with these properties in both ways: by its key, and on a page.
async fn read<E: TableEntity + Debug>(members: &str) -> [Result<E, Error>; 2] {
    let entity = format!("{{{ENVELOPE},{members}}}");
    let page = format!("{{\"value\":[{entity}]}}");
    let got = responding(entity).get::<E>(("UK", "7")).await;
    let queried = responding(page).query::<E>().collect().await;
    [
        got.map(|entity| entity.unwrap().into_inner()),
        queried.map(|mut entities| entities.remove(0).into_inner()),
    ]
}

#[track_caller]
fn assert_says(error: &Error, words: &str, case: &str) {
    let shown = format!("{error:?}");
    assert!(shown.contains(words), "{case}: {shown}\nlacks: {words}");
}

#[track_caller]
fn assert_errors<E: Debug>(
    outcomes: impl IntoIterator<Item = Result<E, Error>>,
    words: &str,
    case: &str,
) {
    for outcome in outcomes {
        let error = outcome.expect_err(case);
        // An entity of the service has a key.
        let expected = if words.contains("\"RowKey\"") {
            ErrorKind::Response
        } else {
            ErrorKind::Data
        };
        assert_eq!(error.kind(), expected, "{case}: {error:?}");
        assert_says(&error, words, case);
        assert_says(&error, "(\"UK\", \"7\")", case);
        assert_eq!(error.key().expect(case).row_key().as_str(), "7", "{case}");
    }
}

/// The lines of a table: the content of a response, and a part of the error.
fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.trim_matches('\n').lines();
    lines.map(|line| line.split_once(" => ").expect(line))
}

/// The types of values that each type of field rejects are in
/// `each_type_of_field_takes_its_own_values_alone`.
#[tokio::test]
async fn a_malformed_entity_is_an_error_that_names_the_property() {
    let table = r#"
"age":1 => property "home_city" is missing, expected Edm.String
"age":1,"home_city":"x","salary":"much" => property "salary": expected Edm.Int64, found Edm.String
"age":1,"home_city":"x","salary_old":1.5 => property "salary_old": expected Edm.Int64, found Edm.Double
"age":1,"home_city":"x","salary":18446744073709551615 => property "salary": expected Edm.Int64, found Edm.Double
"age":1,"home_city":"x","home_floor":256 => property "home_floor": the value 256 is out of range: a u8 is from 0 to 255
"age":1,"home_city":"x","home_floor":-1 => property "home_floor": the value -1 is out of range
"age":1,"home_city":"x","born@odata.type":"Edm.DateTime","born":"2024-03-15T00:00:01Z" => property "born": the value 2024-03-15T00:00:01Z cannot be read: a date alone is stored as midnight
"age":1,"home_city":"x","born@odata.type":"Edm.DateTime","born":"0001-01-01T00:00:00Z" => property "born": the date lies outside the years 1601 to 9999, found "0001-01-01T00:00:00Z"; expected Edm.DateTime
"age":1,"age":1,"home_city":"x" => property "age" came twice
"age":1,"age":null,"home_city":"x" => property "age" came twice
"age":1,"home_city":"x","home_city":"y" => property "home_city" came twice
"age":1,"home_city":"x","salary_old":1,"salary_old":1 => property "salary_old" came twice
"age":1,"home_city":"x","RowKey":"7" => property "RowKey" came twice
"age":1,"home_city":"x","tags":"[1" => property "tags": the value "[1" cannot be read
"age":1,"home_city":"x","tags":"{}" => property "tags": the value "{}" cannot be read: invalid type: map, expected a sequence
"age":1,"home_city":"x","tags":"[\"a\"] x" => property "tags": the value "[\"a\"] x" cannot be read: trailing characters
"#;
    for (members, words) in cases(table) {
        assert_errors(read::<Person>(members).await, words, members);
    }
}

#[derive(Debug, TableEntity)]
struct Day {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
}

#[tokio::test]
async fn a_malformed_slot_is_an_error_that_names_the_property() {
    let table = r#"
"H09":"much" => property "H09": expected Edm.Int32, found Edm.String
"H09":1.5 => property "H09": expected Edm.Int32, found Edm.Double
"H09":1,"H09":1 => property "H09" came twice
"H09":1,"H09":null => property "H09" came twice
"#;
    for (members, words) in cases(table) {
        assert_errors(read::<Day>(members).await, words, members);
    }
    for day in read::<Day>(r#""H09":null,"H10":2,"H24":"other""#).await {
        assert_eq!(day.unwrap().hours, Series::from([(10, 2)]));
    }
}

/// Two partitions cannot be merged if the row keys of one do not ascend.
#[tokio::test]
async fn a_partition_out_of_order_is_not_merged() {
    let entity = |row: &str| format!(r#"{{"PartitionKey":"UK","RowKey":"{row}","a":1}}"#);
    for (rows, is_in_order) in [
        (["1", "2", "3"], true),
        (["1", "3", "2"], false),
        (["1", "2", "2"], false),
    ] {
        let page = format!(r#"{{"value":[{}]}}"#, rows.map(entity).join(","));
        let query = responding(page).query::<Open>();
        let merged = query.select(|e| e.country).partitions(["UK"]).merged();
        let read = merged.collect().await;
        assert_eq!(read.is_ok(), is_in_order, "{rows:?}");
        if let Err(error) = read {
            assert_eq!(error.kind(), ErrorKind::Response);
            assert_says(&error, "do not ascend", "rows");
        }
    }
}

#[tokio::test]
async fn malformed_properties_without_a_field_are_errors() {
    let table = r#"
"a":1,"a":2 => property "a" came twice
"a":[1] => property "a": the value is an array or object
"a@odata.type":"Edm.Decimal","a":"1" => property "a": its annotation is not one of the eight EDM types, found "Edm.Decimal"
"a":1e999 => property "a": the number is beyond Edm.Double, found 1e999
"#;
    for (members, words) in cases(table) {
        assert_errors(read::<Open>(members).await, words, members);
        assert_errors(read::<DynamicEntity>(members).await, words, members);
    }
    let members: Vec<_> = (0..4_000).map(|index| format!("\"p{index}\":1")).collect();
    let (members, case) = (members.join(","), "4,000 properties");
    let words = "253 properties are more than the 252 that an entity may have";
    assert_errors(read::<Open>(&members).await, words, case);
    assert_errors(read::<DynamicEntity>(&members).await, words, case);
}

#[tokio::test]
async fn deep_nesting_is_an_error() {
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(200_000);
        let members = format!(r#""age":1,"home_city":"x","deep":{deep}"#);
        for outcome in read::<Person>(&members).await {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Response);
        }
    }
    // In the string of a JSON field.
    let deep = "[".repeat(20_000);
    let members = format!(r#""age":1,"home_city":"x","tags":"{deep}""#);
    let words = "property \"tags\": the value \"[[[";
    assert_errors(read::<Person>(&members).await, words, "JSON in a string");
}

#[tokio::test]
async fn an_error_shows_the_start_of_a_long_value() {
    let long = "x".repeat(30_000);
    let members = format!(r#""age":1,"home_city":"x","tags":"{long}""#);
    for outcome in read::<Person>(&members).await {
        let error = outcome.unwrap_err();
        assert_says(&error, "property \"tags\"", "a long value");
        assert!(format!("{error:?}").len() < 400, "{error:?}");
    }
}

#[tokio::test]
async fn an_entity_without_key_or_etag_is_an_error() {
    let table = r#"
{"odata.etag":"x","PartitionKey":"UK","age":1,"home_city":"x"} => property "RowKey" is missing, expected Edm.String
{"odata.etag":"x","PartitionKey":5,"RowKey":"7","age":1,"home_city":"x"} => property "PartitionKey": the value is not of type Edm.String, found 5
{"odata.etag":"x","PartitionKey":null,"RowKey":"7","age":1,"home_city":"x"} => property "PartitionKey" is missing
{"PartitionKey":"UK","RowKey":"7","age":1,"home_city":"x"} => the answer has no ETag for the entity
{"odata.etag":"x","PartitionKey":"UK","RowKey":"7","Timestamp":"yesterday","age":1,"home_city":"x"} => property "Timestamp": the value is not of type Edm.DateTime, found "yesterday"
"#;
    for (body, words) in cases(table) {
        let outcome = responding(body.to_owned()).get::<Person>(("UK", "7"));
        let error = outcome.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response, "{body}");
        assert_says(&error, words, body);
    }
}

#[tokio::test]
async fn selected_columns_are_read_as_strictly() {
    let table = r#"
"age":null,"salary":5 => property "age" is missing, expected Edm.Int32
"age":"1","salary":5 => property "age": expected Edm.Int32, found Edm.String
"age":1,"salary":[5] => property "salary": the value is an array or object
"age":1,"salary_old":"5" => property "salary_old": expected Edm.Int64, found Edm.String
"#;
    for (members, words) in cases(table) {
        let table = responding(format!("{{\"value\":[{{{ENVELOPE},{members}}}]}}"));
        let query = table.query::<Person>().select(|e| (e.age, e.salary));
        assert_errors([query.collect().await], words, members);
    }
}

/// The part of a page that is not an entity; the first two bodies are empty and a space.
#[tokio::test]
async fn a_malformed_page_is_an_error_that_names_the_position() {
    let table = r#"
 => EOF while parsing a value at line 1 column 0
  => EOF while parsing a value
<html>Welcome</html> => expected value at line 1 column 1
null => invalid type: null, expected an object with an array named value
5 => invalid type: integer `5`, expected an object with an array named value
"value" => expected an object with an array named value
[] => invalid type: sequence, expected an object with an array named value
{} => missing field `value`
{"Value":[]} => missing field `value`
{"value":null} => invalid type: null, expected an array of entities
{"value":{}} => invalid type: map, expected an array of entities
{"value":"[]"} => invalid type: string "[]", expected an array of entities
{"value":[null]} => invalid type: null, expected an object of properties
{"value":[5]} => invalid type: integer `5`, expected an object of properties
{"value":[[]]} => invalid type: sequence, expected an object of properties
{"value":[]} x => trailing characters at line 1 column 14
{"value":[]}{"value":[]} => trailing characters
{"value":[],} => trailing comma
{"value":[] "next":5} => expected `,` or `}`
{'value':[]} => key must be a string
{"value":[/* none */]} => expected value
"#;
    let byte_order_mark = (
        "\u{FEFF}{\"value\":[]}",
        "expected value at line 1 column 1",
    );
    for (body, words) in cases(table).chain([byte_order_mark]) {
        let table = responding(body.to_owned());
        let query = || table.query::<Person>();
        for error in [
            query().collect().await.unwrap_err(),
            query().select(|e| e.age).collect().await.unwrap_err(),
            query().count().await.unwrap_err(),
            table.query::<DynamicEntity>().collect().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Response, "{body}");
            assert_says(&error, words, body);
        }
    }
}

#[tokio::test]
async fn a_malformed_response_to_get_is_an_error_with_the_key() {
    let table = r#"
null => invalid type: null, expected an object of properties
[] => invalid type: sequence, expected an object of properties
"UK" => invalid type: string "UK", expected an object of properties
{"age":36 => EOF while parsing an object
{"age":} => expected value
{"age":036} => invalid number
{"age":NaN} => expected value
{"age":36}} => trailing characters
{"age":"\ud800"} => unexpected end of hex escape
{"age@odata.type":"Edm.Int32","age":36,"age@odata.type":"Edm.Int64"} => a property has two type annotations
"#;
    let empty = ("", "EOF while parsing a value at line 1 column 0");
    let line_feed = ("{\"age\":\"\n\"}", "control character");
    for (body, words) in cases(table).chain([empty, line_feed]) {
        let table = responding(body.to_owned());
        for error in [
            table.get::<Person>(("UK", "7")).await.unwrap_err(),
            table.get::<DynamicEntity>(("UK", "7")).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Response, "{body}");
            assert_says(&error, words, body);
            assert_says(&error, "(\"UK\", \"7\")", body);
        }
    }
}

/// Some proxies change the header, so only the body is decisive.
#[tokio::test]
async fn a_body_with_a_wrong_content_type_is_read() {
    let entity = format!("{{{ENVELOPE},\"age\":36,\"home_city\":\"London\"}}");
    let page = format!("{{\"value\":[{entity}]}}");
    let content_type = "text/plain; charset=latin1";
    let found = responding_as(content_type, entity).get::<Person>(("UK", "7"));
    assert_eq!(found.await.unwrap().unwrap().age, 36);
    let query = responding_as(content_type, page).query::<Person>();
    assert_eq!(query.collect().await.unwrap().len(), 1);
}

#[tokio::test]
async fn strings_that_are_not_utf8_are_errors() {
    for bytes in [&b"\xFF"[..], b"\xC3", b"\xED\xA0\x80", b"\xF4\x90\x80\x80"] {
        let start = format!("{{{ENVELOPE},\"age\":1,\"home_city\":\"");
        let entity = [start.as_bytes(), bytes, b"\"}"].concat();
        let page = [b"{\"value\":[", &entity[..], b"]}"].concat();
        let got = responding(entity).get::<Person>(("UK", "7")).await;
        let queried = responding(page).query::<DynamicEntity>().collect().await;
        for error in [got.unwrap_err(), queried.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Response, "{error:?}");
            assert_says(&error, "invalid unicode", "a string");
        }
    }
}

const PAGE: &str = r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#People","value":[{"odata.etag":"W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"","PartitionKey":"UK","RowKey":"7","Timestamp":"2024-03-15T10:20:30.5Z","age":36,"home_city":"London","salary@odata.type":"Edm.Int64","salary":"5000000000","tags":"[\"a\"]"}]}"#;

#[tokio::test]
async fn a_page_that_ends_early_is_an_error() {
    for end in 0..=PAGE.len() {
        let outcome = responding(&PAGE[..end]).query::<Person>().collect().await;
        match outcome {
            Ok(people) => assert_eq!((people.len(), end), (1, PAGE.len())),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Response, "{end}"),
        }
    }
}

#[derive(Debug, TableEntity)]
struct Holder<T> {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    value: T,
}

const GUID: &str = r#""c9da6455-213d-42c9-9a79-3e9149a57833""#;

/// Values of each type, and whether they are annotated.
const VALUES: &[(&str, bool, &str)] = &[
    ("Edm.Binary", true, r#""YQ==""#),
    ("Edm.Boolean", false, "true"),
    ("Edm.Boolean", true, "false"),
    ("Edm.Boolean", true, r#""true""#),
    ("Edm.DateTime", true, r#""2024-03-15T10:20:30Z""#),
    ("Edm.Double", false, "36.0"),
    ("Edm.Double", false, "36e0"),
    ("Edm.Double", true, "36"),
    ("Edm.Double", true, r#""NaN""#),
    ("Edm.Guid", true, GUID),
    ("Edm.Int32", false, "36"),
    ("Edm.Int32", true, r#""36""#),
    ("Edm.Int64", true, r#""36""#),
    ("Edm.Int64", true, "36"),
    // An Int64 whose type the response does not say.
    ("Edm.Double", false, "3000000000"),
    ("Edm.String", false, r#""36""#),
    ("Edm.String", true, r#""2024-03-15T10:20:30Z""#),
];

/// Values that do not have the type of their annotation.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("Edm.Binary", "36"),
    ("Edm.Binary", r#""YQ""#),
    ("Edm.Boolean", "1"),
    ("Edm.Boolean", r#""yes""#),
    ("Edm.DateTime", "true"),
    ("Edm.DateTime", r#""2024-02-30T00:00:00Z""#),
    ("Edm.Double", r#""much""#),
    ("Edm.Double", "false"),
    ("Edm.Guid", "5.5"),
    ("Edm.Guid", r#""c9da6455""#),
    ("Edm.Int32", "36.0"),
    ("Edm.Int32", "2147483648"),
    ("Edm.Int32", r#""""#),
    ("Edm.Int64", "1e3"),
    ("Edm.Int64", r#""9223372036854775808""#),
    ("Edm.String", "36"),
];

const UNKNOWN_TYPES: [&str; 8] = [
    r#""Edm.Single""#,
    r#""Collection(Edm.String)""#,
    r#""Int32""#,
    r#""edm.int32""#,
    r#""""#,
    "5",
    "null",
    "{}",
];

async fn assert_strict<E: TableEntity + Debug>(expected: &str) {
    for (found, is_annotated, value) in VALUES {
        let plain = format!(r#""value":{value}"#);
        let annotation = format!(r#""value@odata.type":"{found}""#);
        let before = format!("{annotation},{plain}");
        let after = format!("{plain},{annotation}");
        let members = if *is_annotated {
            vec![before, after]
        } else {
            vec![plain]
        };
        for members in members {
            let outcomes = read::<E>(&members).await;
            let is_wide = (*value, expected) == ("3000000000", "Edm.Int64");
            if *found == expected || (*found, expected) == ("Edm.Int32", "Edm.Int64") || is_wide {
                for outcome in outcomes {
                    outcome.unwrap_or_else(|error| panic!("{expected} from {members}: {error:?}"));
                }
            } else {
                let words = format!("property \"value\": expected {expected}, found {found}");
                assert_errors(outcomes, &words, &members);
            }
        }
    }
    let refused = async |members: &str, words: &str| {
        let words = format!("property \"value\"{words}");
        assert_errors(read::<E>(members).await, &words, members);
    };
    for (annotation, value) in CONTRADICTIONS {
        let members = format!(r#""value@odata.type":"{annotation}","value":{value}"#);
        let words =
            format!(": the value is not of type {annotation}, found {value}; expected {expected}");
        refused(&members, &words).await;
    }
    let null = r#""value@odata.type":"Edm.Int64","value":null"#;
    for members in [r#""a":1"#, r#""value":null"#, null, r#""Value":36"#] {
        refused(members, &format!(" is missing, expected {expected}")).await;
    }
    for nested in ["[]", "{}", "[[36]]", r#"{"value":36}"#] {
        let words = format!(
            ": the value is an array or object, which no property can hold; expected {expected}"
        );
        refused(&format!(r#""value":{nested}"#), &words).await;
    }
    for annotation in UNKNOWN_TYPES {
        let members = format!(r#""value@odata.type":{annotation},"value":36"#);
        // Of one that is not a string, nothing is shown.
        let is_string = annotation.starts_with('"');
        let found = if is_string { annotation } else { r#""""# };
        let words = ": its annotation is not one of the eight EDM types";
        let words = format!("{words}, found {found}; expected {expected}");
        refused(&members, &words).await;
    }
    // The error is about the second value, or about the type of the first.
    refused(r#""value":36,"value":36"#, "").await;
}

#[tokio::test]
async fn each_type_of_field_takes_its_own_values_alone() {
    assert_strict::<Holder<Vec<u8>>>("Edm.Binary").await;
    assert_strict::<Holder<bool>>("Edm.Boolean").await;
    assert_strict::<Holder<Timestamp>>("Edm.DateTime").await;
    assert_strict::<Holder<f64>>("Edm.Double").await;
    assert_strict::<Holder<Guid>>("Edm.Guid").await;
    assert_strict::<Holder<i32>>("Edm.Int32").await;
    assert_strict::<Holder<i64>>("Edm.Int64").await;
    assert_strict::<Holder<String>>("Edm.String").await;
}

/// Parts of a response: tokens, and members of an entity.
const TOKENS: [&str; 24] = [
    "{", "}", "[", "]", "\"", ":", ",", "\\", "null", "true", "-", "0", "9", ".", "e", "1e999",
    "36", "\"36\"", "é", " ", "\n", "{\"a\":[", "]}", "\\ud800",
];
const MEMBERS: [&str; 13] = [
    r#""age":36,"#,
    r#""age":null,"#,
    r#""salary":5,"#,
    r#""salary_old":6,"#,
    r#""home_city":"Bath","#,
    r#""home_floor":3,"#,
    r#""value":[],"#,
    r#""age@odata.type":"Edm.Int64","#,
    r#""tags@odata.type":"Edm.Binary","#,
    r#""home_city@odata.type":"Edm.Guid","#,
    r#""RowKey":"8","#,
    r"\u0000",
    r"\ud83e\udd80",
];

fn damaged(rng: &mut Rng) -> String {
    let pieces = [&TOKENS[..], &MEMBERS].concat();
    let mut body: Vec<char> = PAGE.chars().collect();
    for _ in 0..rng.usize(1..4) {
        let from = rng.usize(..=body.len());
        let to = from + rng.usize(..=12.min(body.len() - from));
        let piece = pieces[rng.usize(..pieces.len())].chars();
        match rng.u8(..5) {
            0 => drop(body.drain(from..to)),
            1 => {
                let copy = body[from..to].to_vec();
                let at = rng.usize(..=body.len());
                body.splice(at..at, copy);
            }
            // At the start of a member, so that many responses are still JSON.
            2 | 3 => {
                let starts = (1..body.len()).filter(|at| matches!(body[at - 1], ',' | '{'));
                let starts: Vec<_> = starts.collect();
                let at = starts.get(rng.usize(..starts.len().max(1)));
                let at = at.copied().unwrap_or_default();
                body.splice(at..at, piece);
            }
            _ => drop(body.splice(from..to, piece)),
        }
    }
    body.into_iter().collect()
}

/// An integer, annotated or not.
fn integer(value: &Json) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[tokio::test]
async fn damaged_responses_are_errors_or_read_as_they_are() {
    let mut rng = seeded();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let body = damaged(&mut rng);
        let outcome = responding(body.clone()).query::<Person>().collect().await;
        let people = match outcome {
            Ok(people) => people,
            Err(error) => {
                let kinds = [ErrorKind::Data, ErrorKind::Response];
                assert!(kinds.contains(&error.kind()), "{body}: {error:?}");
                assert!(format!("{error:?}").len() < 1000, "{body}: {error:?}");
                refused += 1;
                continue;
            }
        };
        // Another decoder reads the same.
        let json: Json = match serde_json::from_str(&body) {
            Ok(json) => json,
            // Half a character in a string that no field reads.
            Err(error) if error.to_string().contains("hex escape") => continue,
            Err(error) => panic!("{body}: {error}"),
        };
        let entities = json["value"].as_array().unwrap_or_else(|| panic!("{body}"));
        assert_eq!(entities.len(), people.len(), "{body}");
        for (person, entity) in people.iter().zip(entities) {
            read += 1;
            let text = |name: &str| entity[name].as_str();
            let number = |name: &str| integer(&entity[name]);
            let tags: Vec<String> = match &entity["tags"] {
                Json::Null => Vec::new(),
                tags => serde_json::from_str(tags.as_str().unwrap()).unwrap(),
            };
            let salary = number("salary").or_else(|| number("salary_old"));
            assert_eq!(Some(person.age.into()), number("age"), "{body}");
            assert_eq!(Some(&*person.home.city), text("home_city"), "{body}");
            assert_eq!(Some(&*person.id), text("RowKey"), "{body}");
            assert_eq!(person.salary, salary.unwrap_or_default(), "{body}");
            let floor = person.home.floor.map(i64::from);
            assert_eq!(floor, number("home_floor"), "{body}");
            assert_eq!(person.tags, tags, "{body}");
        }
    }
    println!("{read} read, {refused} refused");
    assert!(read > 500 && refused > 500, "{read} {refused}");
}
