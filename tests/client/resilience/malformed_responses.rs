//! Malformed responses, each type of field with each form of value, and valid responses with random damage: where the client cannot
//! read a value, it returns an error that says what is wrong. It never panics, and never returns a value that the response does not
//! contain.

use fastrand::Rng;
use harness::seeded;
use serde_json::Value as Json;
use tablesdk::{DynamicEntity, ErrorKind, Guid, TableEntity, Timestamp};

use crate::malformed_entities::{ENVELOPE, Person, answering, answering_bytes, assert_error, read};

const PAGE: &str = r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#People","value":[{"odata.etag":"W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"","PartitionKey":"UK","RowKey":"7","Timestamp":"2024-03-15T10:20:30.5Z","age":36,"home_city":"London","salary@odata.type":"Edm.Int64","salary":"5000000000","tags":"[\"a\"]"}]}"#;

/// What comes out of the innermost cause.
fn told(error: &tablesdk::Error) -> String {
    format!("{error:?}")
}

#[tokio::test]
async fn a_page_that_is_none_is_an_error_that_says_where() {
    for (body, words) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        (" ", "EOF while parsing a value"),
        (
            "\u{FEFF}{\"value\":[]}",
            "expected value at line 1 column 1",
        ),
        ("<html>Welcome</html>", "expected value at line 1 column 1"),
        (
            "null",
            "invalid type: null, expected an object with an array named value",
        ),
        (
            "5",
            "invalid type: integer `5`, expected an object with an array named value",
        ),
        ("\"value\"", "expected an object with an array named value"),
        (
            "[]",
            "invalid type: sequence, expected an object with an array named value",
        ),
        ("{}", "missing field `value`"),
        (r#"{"Value":[]}"#, "missing field `value`"),
        (
            r#"{"value":null}"#,
            "invalid type: null, expected an array of entities",
        ),
        (
            r#"{"value":{}}"#,
            "invalid type: map, expected an array of entities",
        ),
        (
            r#"{"value":"[]"}"#,
            "invalid type: string \"[]\", expected an array of entities",
        ),
        (
            r#"{"value":[null]}"#,
            "invalid type: null, expected an object of properties",
        ),
        (
            r#"{"value":[5]}"#,
            "invalid type: integer `5`, expected an object of properties",
        ),
        (
            r#"{"value":[[]]}"#,
            "invalid type: sequence, expected an object of properties",
        ),
        (
            r#"{"value":[]} x"#,
            "trailing characters at line 1 column 14",
        ),
        (r#"{"value":[]}{"value":[]}"#, "trailing characters"),
        (r#"{"value":[],}"#, "trailing comma"),
        (r#"{"value":[] "next":5}"#, "expected `,` or `}`"),
        (r"{'value':[]}", "key must be a string"),
        (r#"{"value":[/* none */]}"#, "expected value"),
    ] {
        let table = answering(body.to_owned());
        let errors = [
            table.query::<Person>().collect().await.unwrap_err(),
            table.query::<DynamicEntity>().collect().await.unwrap_err(),
            table
                .query::<Person>()
                .select(|e| e.age)
                .collect()
                .await
                .unwrap_err(),
            table.query::<Person>().count().await.unwrap_err(),
        ];
        for error in errors {
            let told = told(&error);
            assert_eq!(error.kind(), ErrorKind::Response, "{body}: {told}");
            assert!(told.contains(words), "{body}: {told}\nlacks: {words}");
        }
    }
}

#[tokio::test]
async fn an_entity_that_is_none_is_an_error_that_says_where() {
    for (body, words) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        (
            "null",
            "invalid type: null, expected an object of properties",
        ),
        (
            "[]",
            "invalid type: sequence, expected an object of properties",
        ),
        (
            "\"UK\"",
            "invalid type: string \"UK\", expected an object of properties",
        ),
        ("{\"age\":36", "EOF while parsing an object"),
        ("{\"age\":}", "expected value"),
        ("{\"age\":036}", "invalid number"),
        ("{\"age\":NaN}", "expected value"),
        ("{\"age\":36}}", "trailing characters"),
        ("{\"age\":\"\n\"}", "control character"),
        ("{\"age\":\"\\ud800\"}", "unexpected end of hex escape"),
        (
            r#"{"age@odata.type":"Edm.Int32","age":36,"age@odata.type":"Edm.Int64"}"#,
            "a property has two type annotations",
        ),
    ] {
        let table = answering(body.to_owned());
        let errors = [
            table.get::<Person>(("UK", "7")).await.unwrap_err(),
            table.get::<DynamicEntity>(("UK", "7")).await.unwrap_err(),
        ];
        for error in errors {
            let told = told(&error);
            assert_eq!(error.kind(), ErrorKind::Response, "{body}: {told}");
            assert!(told.contains("(\"UK\", \"7\")"), "{body}: {told}");
            assert!(told.contains(words), "{body}: {told}\nlacks: {words}");
        }
    }
}

#[tokio::test]
async fn texts_that_are_no_utf8_are_errors() {
    for bytes in [&b"\xFF"[..], b"\xC3", b"\xED\xA0\x80", b"\xF4\x90\x80\x80"] {
        let entity = [
            format!("{{{ENVELOPE},\"age\":1,\"home_city\":\"").as_bytes(),
            bytes,
            b"\"}",
        ]
        .concat();
        let page = [b"{\"value\":[", &entity[..], b"]}"].concat();
        let got = answering_bytes(entity).get::<Person>(("UK", "7")).await;
        let queried = answering_bytes(page)
            .query::<DynamicEntity>()
            .collect()
            .await;
        for error in [got.unwrap_err(), queried.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Response);
            assert!(told(&error).contains("invalid unicode"), "{}", told(&error));
        }
    }
}

#[tokio::test]
async fn a_page_that_is_cut_anywhere_is_an_error() {
    assert_eq!(
        answering(PAGE.to_owned())
            .query::<Person>()
            .collect()
            .await
            .unwrap()
            .len(),
        1
    );
    for end in 0..PAGE.len() {
        let error = answering(PAGE[..end].to_owned())
            .query::<Person>()
            .collect()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response, "{end}");
    }
}

macro_rules! one_field {
    ($($name:ident: $ty:ty),+) => {$(
        #[derive(Debug, TableEntity)]
        struct $name {
            #[table(partition_key)]
            country: String,
            #[table(row_key)]
            id: String,
            value: $ty,
        }
    )+};
}

one_field! {
    OfBinary: Vec<u8>, OfBoolean: bool, OfDateTime: Timestamp, OfDouble: f64, OfGuid: Guid, OfInt32: i32, OfInt64: i64,
    OfString: String
}

/// A value of each type, annotated as the service does, annotated though it need not be, and without.
const FORMS: &[(&str, &str)] = &[
    (
        "Edm.Binary",
        r#""value@odata.type":"Edm.Binary","value":"YQ==""#,
    ),
    ("Edm.Boolean", r#""value":true"#),
    (
        "Edm.Boolean",
        r#""value@odata.type":"Edm.Boolean","value":false"#,
    ),
    (
        "Edm.Boolean",
        r#""value@odata.type":"Edm.Boolean","value":"true""#,
    ),
    (
        "Edm.DateTime",
        r#""value@odata.type":"Edm.DateTime","value":"2024-03-15T10:20:30Z""#,
    ),
    ("Edm.Double", r#""value":36.0"#),
    ("Edm.Double", r#""value":36e0"#),
    (
        "Edm.Double",
        r#""value@odata.type":"Edm.Double","value":36"#,
    ),
    (
        "Edm.Double",
        r#""value@odata.type":"Edm.Double","value":"NaN""#,
    ),
    (
        "Edm.Guid",
        r#""value":"c9da6455-213d-42c9-9a79-3e9149a57833","value@odata.type":"Edm.Guid""#,
    ),
    ("Edm.Int32", r#""value":36"#),
    (
        "Edm.Int32",
        r#""value@odata.type":"Edm.Int32","value":"36""#,
    ),
    (
        "Edm.Int64",
        r#""value@odata.type":"Edm.Int64","value":"36""#,
    ),
    ("Edm.Int64", r#""value@odata.type":"Edm.Int64","value":36"#),
    ("Edm.Int64", r#""value":3000000000"#),
    ("Edm.String", r#""value":"36""#),
    (
        "Edm.String",
        r#""value@odata.type":"Edm.String","value":"2024-03-15T10:20:30Z""#,
    ),
];

/// Values that do not have the type of their annotation, and the text that the error shows for them.
const CONTRADICTIONS: &[(&str, &str, &str)] = &[
    ("Edm.Binary", "36", "36"),
    ("Edm.Binary", "\"YQ\"", "\"YQ\""),
    ("Edm.Boolean", "1", "1"),
    ("Edm.Boolean", "\"yes\"", "\"yes\""),
    ("Edm.DateTime", "true", "true"),
    (
        "Edm.DateTime",
        "\"2024-02-30T00:00:00Z\"",
        "\"2024-02-30T00:00:00Z\"",
    ),
    ("Edm.Double", "\"much\"", "\"much\""),
    ("Edm.Double", "false", "false"),
    ("Edm.Guid", "5.5", "5.5"),
    ("Edm.Guid", "\"c9da6455\"", "\"c9da6455\""),
    ("Edm.Int32", "36.0", "36.0"),
    ("Edm.Int32", "2147483648", "2147483648"),
    ("Edm.Int32", "\"\"", "\"\""),
    ("Edm.Int64", "1e3", "1e3"),
    (
        "Edm.Int64",
        "\"9223372036854775808\"",
        "\"9223372036854775808\"",
    ),
    ("Edm.String", "36", "36"),
];

async fn assert_strict<E: TableEntity + std::fmt::Debug>(wanted: &str) {
    for (found, form) in FORMS {
        let members = format!(",{form}");
        let outcomes = read::<E>(&members).await;
        if *found == wanted || (*found, wanted) == ("Edm.Int32", "Edm.Int64") {
            for outcome in outcomes {
                outcome.unwrap_or_else(|error| panic!("{wanted} from {form}: {error:?}"));
            }
        } else {
            let words = format!("property \"value\": expected {wanted}, found {found}");
            assert_error(outcomes, &words, form);
        }
    }
    for (annotation, value, shown) in CONTRADICTIONS {
        let members = format!(",\"value@odata.type\":\"{annotation}\",\"value\":{value}");
        let words = format!(
            "property \"value\": the value is not of type {annotation}, found {shown}; expected {wanted}"
        );
        assert_error(read::<E>(&members).await, &words, &members);
    }
    for members in [
        "",
        r#","value":null"#,
        r#","value@odata.type":"Edm.Int64","value":null"#,
        r#","Value":36"#,
    ] {
        let words = format!("property \"value\" is missing, expected {wanted}");
        assert_error(read::<E>(members).await, &words, members);
    }
    for nested in ["[]", "{}", "[[36]]", r#"{"value":36}"#] {
        let members = format!(",\"value\":{nested}");
        let words = format!(
            "property \"value\": the value is an array or object, which no property can hold; expected {wanted}"
        );
        assert_error(read::<E>(&members).await, &words, &members);
    }
    for annotation in [
        "\"Edm.Single\"",
        "\"Int32\"",
        "\"edm.int32\"",
        "\"\"",
        "5",
        "null",
        "{}",
    ] {
        let members = format!(",\"value@odata.type\":{annotation},\"value\":36");
        let words = "property \"value\": its annotation is not one of the eight EDM types, found ";
        assert_error(read::<E>(&members).await, words, &members);
        assert_error(
            read::<E>(&members).await,
            &format!("; expected {wanted}"),
            &members,
        );
    }
    let members = r#","value":36,"value":36"#;
    for outcome in read::<E>(members).await {
        let told = told(&outcome.unwrap_err());
        // Whichever of the two comes first: the second value, or the type of the first.
        assert!(told.contains("property \"value\""), "{told}");
    }
}

#[tokio::test]
async fn each_type_of_field_takes_its_own_values_alone() {
    assert_strict::<OfBinary>("Edm.Binary").await;
    assert_strict::<OfBoolean>("Edm.Boolean").await;
    assert_strict::<OfDateTime>("Edm.DateTime").await;
    assert_strict::<OfDouble>("Edm.Double").await;
    assert_strict::<OfGuid>("Edm.Guid").await;
    assert_strict::<OfInt32>("Edm.Int32").await;
    assert_strict::<OfInt64>("Edm.Int64").await;
    assert_strict::<OfString>("Edm.String").await;
}

/// Pieces that mean something in an answer.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "null",
    "true",
    "-",
    "0",
    "9",
    ".",
    "e",
    "1e999",
    "36",
    "\"36\"",
    "\"age\":36,",
    "\"age\":null,",
    "\"salary\":5,",
    "\"salary_old\":6,",
    "\"home_city\":\"Bath\",",
    "\"home_floor\":3,",
    "\"value\":[],",
    "\"age@odata.type\":\"Edm.Int64\",",
    "\"tags@odata.type\":\"Edm.Binary\",",
    "\"home_city@odata.type\":\"Edm.Guid\",",
    "\"RowKey\":\"8\",",
    "\\u0000",
    "\\ud83e\\udd80",
    "\\ud800",
    "é",
    " ",
    "\n",
    "{\"a\":[",
    "]}",
];

fn garbled(rng: &mut Rng) -> String {
    let mut body: Vec<char> = PAGE.chars().collect();
    for _ in 0..rng.usize(1..4) {
        let from = rng.usize(..=body.len());
        let to = from + rng.usize(..=12.min(body.len() - from));
        match rng.u8(..5) {
            0 => drop(body.drain(from..to)),
            1 => {
                let copy = body[from..to].to_vec();
                let at = rng.usize(..=body.len());
                body.splice(at..at, copy);
            }
            // Where a member begins, so that many answers are still JSON.
            2 | 3 => {
                let starts =
                    (1..body.len()).filter(|at| body[at - 1] == ',' || body[at - 1] == '{');
                let starts: Vec<_> = starts.collect();
                let at = starts
                    .get(rng.usize(..starts.len().max(1)))
                    .copied()
                    .unwrap_or_default();
                body.splice(at..at, PIECES[rng.usize(..PIECES.len())].chars());
            }
            _ => {
                let piece = PIECES[rng.usize(..PIECES.len())];
                body.splice(from..to, piece.chars());
            }
        }
    }
    body.into_iter().collect()
}

/// An integer, annotated or not.
fn integer(value: &Json) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[tokio::test]
async fn garbled_answers_are_errors_or_what_they_say() {
    let mut rng = seeded();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..40_000 {
        let body = garbled(&mut rng);
        let outcome = answering(body.clone()).query::<Person>().collect().await;
        let people = match outcome {
            Ok(people) => people,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Response, "{body}: {error:?}");
                assert!(told(&error).len() < 1000, "{body}: {error:?}");
                refused += 1;
                continue;
            }
        };
        // Read again by a program that shares nothing with ours but the tokens of JSON.
        let json: Json = match serde_json::from_str(&body) {
            Ok(json) => json,
            // In a text that nobody asked for, half a character hurts nobody.
            Err(error) if error.to_string().contains("hex escape") => continue,
            Err(error) => panic!("{body}: {error}"),
        };
        let rows = json["value"].as_array().unwrap_or_else(|| panic!("{body}"));
        assert_eq!(rows.len(), people.len(), "{body}");
        for (person, row) in people.iter().zip(rows) {
            read += 1;
            assert_eq!(Some(i64::from(person.age)), integer(&row["age"]), "{body}");
            assert_eq!(
                Some(person.home.city.as_str()),
                row["home_city"].as_str(),
                "{body}"
            );
            assert_eq!(Some(person.id.as_str()), row["RowKey"].as_str(), "{body}");
            let salary = integer(&row["salary"]).or_else(|| integer(&row["salary_old"]));
            assert_eq!(person.salary, salary.unwrap_or_default(), "{body}");
            let floor = integer(&row["home_floor"]);
            assert_eq!(person.home.floor.map(i64::from), floor, "{body}");
            let tags: Vec<String> = match &row["tags"] {
                Json::Null => Vec::new(),
                tags => serde_json::from_str(tags.as_str().unwrap()).unwrap(),
            };
            assert_eq!(person.tags, tags, "{body}");
        }
    }
    println!("{read} read, {refused} refused");
    // Neither half of the test is idle.
    assert!(read > 1000 && refused > 1000, "{read} {refused}");
}
