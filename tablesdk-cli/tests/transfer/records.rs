//! The forms of files: what each is read as, where a mistake is, and arbitrary bytes.

use std::io::{BufReader, Read};

use tablesdk::{Guid, Value};
use tablesdk_cli::lines::{Line, MAX_LINE_BYTES};
use tablesdk_cli::records::{Place, ReadOptions, Records};

use crate::text;

pub(crate) fn into(table: &str) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.table = Some(table.to_owned());
    options
}

/// The records of a file, such as `People a/1 Age: Int32(36)`, up to its end or its first error.
pub(crate) fn read(file: &[u8], options: &ReadOptions) -> Vec<String> {
    // A small buffer ends within values.
    let mut records = Records::new(BufReader::with_capacity(7, file), options);
    let found = records.by_ref().map(|next| match next {
        Ok((place, record)) => format!("{place}: {}", shown(&record)),
        Err(error) => error.to_string(),
    });
    let found = found.collect();
    assert!(records.next().is_none(), "it is at its end");
    found
}

fn shown(record: &Line) -> String {
    match record {
        Line::Table(table) => table.clone(),
        Line::Entity { table, entity } => format!("{table} {}", text(entity).replacen('"', "", 4)),
        other => format!("{other:?}"),
    }
}

const ADA: &str = r#"{"PartitionKey":"a","RowKey":"1","Name":"Ada","Age":36}"#;
const BOB: &str = r#"{"PartitionKey":"a","RowKey":"2","Badge@odata.type":"Edm.Int64","Badge":"7"}"#;

fn ada_and_bob(place: &str, numbers: [u64; 2]) -> Vec<String> {
    let [ada, bob] = numbers;
    vec![
        format!("{place} {ada}: People a 1 Age: Int32(36), Name: String(\"Ada\")"),
        format!("{place} {bob}: People a 2 Badge: Int64(7)"),
    ]
}

#[test]
fn entities_are_read_in_each_form_of_json() {
    let options = into("People");
    for (file, place, numbers) in [
        (format!("{ADA}\n{BOB}\n"), "line", [1, 2]),
        (format!("\u{FEFF}\r\n{ADA}\r\n\r\n  {BOB}"), "line", [2, 4]),
        (format!("[{ADA},{BOB}]"), "entity", [1, 2]),
        (format!("\u{FEFF} [ {ADA} ,\n {BOB} ] \n"), "entity", [1, 2]),
        (format!("[{ADA}]\n\u{FEFF}[{BOB}]"), "entity", [1, 2]),
        (format!("{{\"value\":[{ADA},{BOB}]}}"), "entity", [1, 2]),
        (
            format!(
                "{{\"a\":[{{}}],\"value\" : [{ADA}],\"b\":[1,{{}}]}}{{\"value\":[]}}{{\"value\":[{BOB}],\"c\":1 }}"
            ),
            "entity",
            [1, 2],
        ),
        (
            format!("{}\n{}", ADA.replace(',', ",\n "), BOB.replace('{', "{\n")),
            "entity",
            [1, 2],
        ),
    ] {
        assert_eq!(
            read(file.as_bytes(), &options),
            ada_and_bob(place, numbers),
            "{file}"
        );
    }
    for empty in ["", "\n \r\n", "\u{FEFF}", "[]", "{\"value\":[]}"] {
        assert_eq!(
            read(empty.as_bytes(), &options),
            Vec::<String>::new(),
            "{empty}"
        );
    }
}

#[test]
fn a_property_with_the_name_of_a_list_is_a_property() {
    let entity = r#"{"PartitionKey":"a","RowKey":"1","value":1,"collections":"x","table":"t"}"#;
    let expected = r#"People a 1 collections: String("x"), table: String("t"), value: Int32(1)"#;
    for (file, place) in [
        (entity.to_owned(), "line 1"),
        (format!("[{entity}]"), "entity 1"),
    ] {
        let found = read(file.as_bytes(), &into("People"));
        assert_eq!(found, [format!("{place}: {expected}")]);
    }
}

#[test]
fn a_response_of_the_service_names_its_table_and_needs_no_links() {
    let file = r#"{
 "odata.metadata": "https://account.table.core.windows.net/$metadata#Sample",
 "value": [
  {
   "odata.type": "account.Sample",
   "odata.id": "https://account.table.core.windows.net/Sample(PartitionKey='a',RowKey='1')",
   "odata.etag": "W/\"datetime'2024-02-29T12%3A34%3A56.1234567Z'\"",
   "odata.editLink": "Sample(PartitionKey='a',RowKey='1')",
   "PartitionKey": "a",
   "RowKey": "1",
   "Timestamp@odata.type": "Edm.DateTime",
   "Timestamp": "2024-02-29T12:34:56.1234567Z",
   "Big@odata.type": "Edm.Int64",
   "Big": "9007199254740993",
   "Low@odata.type": "Edm.Double",
   "Low": "-Infinity"
  }
 ]
}"#;
    let low = f64::NEG_INFINITY.to_bits();
    let entity = format!("a 1 Big: Int64(9007199254740993), Low: {low:x}");
    for (options, table) in [(ReadOptions::default(), "Sample"), (into("Other"), "Other")] {
        assert_eq!(
            read(file.as_bytes(), &options),
            [format!("entity 1: {table} {entity}")]
        );
    }
}

/// A file as Azurite writes it, shortened.
fn azurite(rows: &str) -> String {
    let listed =
        |table: &str| format!(r#"{{"account":"acct","table":"{table}","meta":{{"revision":0}}}}"#);
    let tables = [listed("People"), listed("Empty")].join(",");
    format!(
        r#"{{"filename":"__azurite_db_table__.json","collections":[
            {{"name":"$TABLES_COLLECTION$","data":[{tables}],"idIndex":null,"binaryIndices":{{"a":{{"values":[1,0]}}}}}},
            {{"name":"$SERVICES_COLLECTION$","data":[{{"accountName":"acct"}}],"dirtyIds":[]}},
            {{"name":"acct$People","data":[{rows}],"idIndex":null}},
            {{"name":"acct$Empty","data":[],"idIndex":null}}
        ],"databaseVersion":1.5,"options":{{"a":[]}}}}"#
    )
}

fn azurite_row(properties: &str) -> String {
    format!(
        r#"{{"PartitionKey":"a","RowKey":"1","properties":{properties},"eTag":"W/\"1\"","$loki":1}}"#
    )
}

#[test]
fn the_file_of_azurite_has_tables_and_their_rows() {
    let guid: Guid = "c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap();
    let encoded = "YzlkYTY0NTUtMjEzZC00MmM5LTlhNzktM2U5MTQ5YTU3ODMz";
    let rows = [
        format!(
            r#"{{"PartitionKey":"a","RowKey":"1","Id":"{encoded}","Id@odata.type":"Edm.Guid","Plain":"{guid}","Plain@odata.type":"Edm.Guid","Five":5,"Five@odata.type":"Edm.Double","Timestamp":"2026-11-26T12:34:40.4624337Z","Timestamp@odata.type":"Edm.DateTime"}}"#
        ),
        ADA.to_owned(),
    ];
    let rows = rows.map(|row| azurite_row(&row)).join(",");
    let id = format!("{:?}", Value::Guid(guid));
    let five = 5_f64.to_bits();
    let expected = [
        "entity 0: People".to_owned(),
        "entity 0: Empty".to_owned(),
        format!("entity 1: People a 1 Five: {five:x}, Id: {id}, Plain: {id}"),
        "entity 2: People a 1 Age: Int32(36), Name: String(\"Ada\")".to_owned(),
    ];
    assert_eq!(
        read(azurite(&rows).as_bytes(), &ReadOptions::default()),
        expected
    );
    let several =
        "entity 0: --table is for a file with one table, and this one has People and Empty";
    let found = read(azurite(&rows).as_bytes(), &into("Other"));
    assert_eq!(found, ["entity 0: Other", several]);
}

#[test]
fn a_value_that_its_type_does_not_allow_is_named_or_kept() {
    let wrong = r#"{"PartitionKey":"a","RowKey":"1","Id":"bm9uZQ==","Id@odata.type":"Edm.Guid"}"#;
    let file = azurite(&azurite_row(wrong));
    let problem = "entity 1: (\"a\", \"1\"): the entity is malformed: property \"Id\": the value is not of type Edm.Guid, found \"bm9uZQ==\"; --as-string keeps it as a string";
    let found = read(file.as_bytes(), &ReadOptions::default());
    assert_eq!(found.last().map(String::as_str), Some(problem));
    let mut lenient = into("People");
    lenient.as_string = true;
    for (edm_type, value, kept) in [
        ("Guid", "\"none\"", "none"),
        ("GeographyPoint", "\"x\"", "x"),
        ("Boolean", "5", "5"),
        ("Int32", "1.5", "1.5"),
        ("Int64", "true", "true"),
        (
            "DateTime",
            "\"0001-01-01T00:00:00Z\"",
            "0001-01-01T00:00:00Z",
        ),
    ] {
        let entity = format!(
            r#"{{"PartitionKey":"a","RowKey":"1","X":{value},"X@odata.type":"Edm.{edm_type}"}}"#
        );
        for (file, place) in [
            (entity.clone(), "line 1"),
            (format!("[{entity}]"), "entity 1"),
        ] {
            let found = read(file.as_bytes(), &into("People")).remove(0);
            assert!(
                found.starts_with(place) && found.contains("property \"X\""),
                "{found}"
            );
            assert!(found.contains("--as-string"), "{found}");
            let found = read(file.as_bytes(), &lenient);
            assert_eq!(found, [format!("{place}: People a 1 X: String({kept:?})")]);
        }
    }
    let nested = read(br#"{"PartitionKey":"a","RowKey":"1","X":[1]}"#, &lenient).remove(0);
    assert!(nested.contains("array or object"), "{nested}");
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let none = ReadOptions::default();
    let people = into("People");
    let lines = |second: &str| format!("{ADA}\n{second}\n");
    for (file, options, place, problem) in [
        (lines(BOB), &none, "line 1", "names no table"),
        (lines("{}"), &people, "line 2", "or of an export {\"table\":\"Employees\","),
        (lines("Ada,36"), &people, "line 2", "a line is expected"),
        (lines(&ADA.replace("\"1\"", "1")), &people, "line 2", "RowKey"),
        (lines(&BOB.replace("RowKey", "Key")), &people, "line 2", "no RowKey"),
        (format!("[{ADA},{{}}]"), &people, "entity 2", "no PartitionKey"),
        (format!("[{ADA} {BOB}]"), &people, "entity 1", ", or ] is missing before '{'"),
        (format!("[{ADA},1]"), &people, "entity 2", "an entity, which begins with {, is missing"),
        (format!("[{ADA}"), &people, "entity 1", "ends in the middle"),
        (format!("[{ADA},"), &people, "entity 2", "ends in the middle"),
        (format!("[{ADA}]1"), &people, "entity 2", "an object or an array is missing"),
        ("{\n\"a\" 1}".to_owned(), &people, "entity 1", "a colon is missing before '1'"),
        ("{\n1}".to_owned(), &people, "entity 1", "the name of a member"),
        ("{\n\"a\":1 \"b\"".to_owned(), &people, "entity 1", ", or } is missing"),
        ("{\n\"a\":x y}".to_owned(), &people, "entity 1", ", or } is missing before 'y'"),
        ("{\"collections\":[{\"data\":[]}]}".to_owned(), &none, "entity 1", "before its name"),
        ("{\"collections\":[1]}".to_owned(), &none, "entity 1", "a collection"),
        (
            "{\"collections\":[{\"name\":\"a$T\",\"data\":[]},{\"name\":\"b$T\",\"data\":[]}]}".to_owned(),
            &none,
            "entity 1",
            "several accounts, a and b",
        ),
        (
            "{\"odata.metadata\":\"x#$Metrics\",\"value\":[{\"PartitionKey\":\"\",\"RowKey\":\"\"}]}".to_owned(),
            &none,
            "entity 1",
            "--table NAME names another",
        ),
        ("PartitionKey\n".to_owned(), &people, "line 1", "none of the forms that are known"),
    ] {
        let found = read(file.as_bytes(), options).pop().unwrap();
        assert!(found.starts_with(&format!("{place}: ")), "{file}: {found}");
        assert!(found.contains(problem), "{file}: {found}");
    }
    let utf16 = read(b"\xFF\xFE{\0}\0", &none).pop().unwrap();
    assert!(utf16.contains("UTF-16"), "{utf16}");
}

#[test]
fn a_table_of_the_service_gets_another_name() {
    let line = format!("{{\"table\":\"$MetricsCapacityBlob\",\"entity\":{ADA}}}");
    let response = format!("{{\"odata.metadata\":\"x#$MetricsCapacityBlob\",\"value\":[{ADA}]}}");
    for (file, place) in [(line, "line"), (response, "entity")] {
        let expected = ada_and_bob(place, [1, 2]);
        assert_eq!(
            read(file.as_bytes(), &into("People")),
            expected.get(..1).unwrap()
        );
        let found = read(file.as_bytes(), &ReadOptions::default());
        let problem = "$MetricsCapacityBlob is a table of the service, which no program can create: --table NAME names another";
        assert_eq!(found, [format!("{place} 1: {problem}")]);
    }
}

#[test]
fn lines_of_two_tables_do_not_go_into_one() {
    let line =
        |table: &str, entity: &str| format!("{{\"table\":\"{table}\",\"entity\":{entity}}}\n");
    let file = line("people", ADA) + &line("People", BOB);
    assert_eq!(
        read(file.as_bytes(), &into("People")),
        ada_and_bob("line", [1, 2])
    );
    let file = file + &line("Others", BOB);
    let found = read(file.as_bytes(), &into("People")).pop().unwrap();
    let problem =
        "line 3: --table is for a file with one table, and this one has people and Others";
    assert_eq!(found, problem);
}

#[test]
fn a_value_that_does_not_end_needs_bounded_memory_and_no_stack() {
    for (start, endless) in [
        ("[", "{\"a\":["),
        ("{\"value\":[", "{"),
        ("{", " "),
        ("{\"a\":", "["),
        ("[{\"a\":", "\""),
        ("{\"collections\":[{\"name\":", "1"),
    ] {
        let endless: Vec<u8> = endless.bytes().cycle().take(2 * MAX_LINE_BYTES).collect();
        let file = Read::chain(start.as_bytes(), &*endless);
        let mut records = Records::new(BufReader::new(file), &into("People"));
        let error = records.next().unwrap().unwrap_err();
        assert!(matches!(error.place(), Place::Entity(1)), "{error}");
    }
    // What is no entity may be of any length.
    let long = "x".repeat(2 * MAX_LINE_BYTES);
    let file = format!(
        "{{\"collections\":[{{\"binaryIndices\":[\"{long}\"],\"name\":\"a$People\",\"data\":[{}]}}]}}",
        azurite_row(ADA)
    );
    assert_eq!(read(file.as_bytes(), &ReadOptions::default()).len(), 1);
}

#[test]
fn arbitrary_bytes_are_read_or_refused() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rows = [azurite_row(ADA), azurite_row(BOB)].join(",");
    let line = format!("{{\"table\":\"People\",\"entity\":{ADA}}}\n");
    let forms = [
        format!("{ADA}\n{BOB}\n"),
        format!("[{ADA},{BOB}]"),
        format!("{{\"odata.metadata\":\"x#People\",\"value\":[{ADA},{BOB}]}}"),
        azurite(&rows),
        "PartitionKey,RowKey,Name,Name@type,Age\na,1,\"A\"\"da\",String,36\na,2,,,1.5\n".to_owned(),
        format!(
            "{{\"format\":\"tablesdk\",\"version\":1}}\n{line}{{\"end\":{{\"tables\":0,\"entities\":1}}}}\n"
        ),
    ];
    for _ in 0..20_000 {
        let mut file = random.choice(&forms).unwrap().clone().into_bytes();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..file.len());
            match random.u8(..4) {
                0 => file.truncate(at + 1),
                1 => file.insert(at, random.u8(..)),
                2 => drop(file.splice(at..at, *b"[{\"")),
                _ => file.splice(at..=at, [random.u8(..)]).for_each(drop),
            }
        }
        let mut records = Records::new(&*file, &into("People"));
        let mut last = 0;
        while let Some(Ok((place, _))) = records.next() {
            assert!(place.number() >= last, "{}", String::from_utf8_lossy(&file));
            last = place.number();
        }
    }
}
