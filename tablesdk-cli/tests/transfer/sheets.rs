//! CSV: what is written, that all of it comes back, and what is read of files of others.

use std::io::{BufReader, Cursor, Read as _};

use tablesdk::DynamicEntity;
use tablesdk_cli::lines::{Line, MAX_LINE_BYTES};
use tablesdk_cli::records::{Empty, ReadOptions, RecordProblem, Records, Types};
use tablesdk_cli::sheet::{SheetError, Style, write_sheet};

use crate::records::{into, read};
use crate::{awkward, text};

fn lines(entities: &[DynamicEntity]) -> Cursor<Vec<u8>> {
    let mut file = Vec::new();
    Line::Start.write(&mut file);
    for entity in entities {
        let table = "People".to_owned();
        let entity = entity.clone();
        Line::Entity { table, entity }.write(&mut file);
    }
    Cursor::new(file)
}

fn sheet(entities: &[DynamicEntity], style: Style) -> String {
    let mut csv = Vec::new();
    write_sheet(&mut lines(entities), &[], &mut csv, style).unwrap();
    String::from_utf8(csv).unwrap()
}

fn for_windows() -> Style {
    let mut style = Style::default();
    style.for_windows = true;
    style
}

#[test]
fn the_columns_are_those_of_storage_explorer() {
    let entities = [
        DynamicEntity::new("a", "1")
            .with("Name", "A \"b\", c")
            .with("Age", 36),
        DynamicEntity::new("a", "2")
            .with("Name", "")
            .with("Half", 0.5),
    ];
    let expected = "PartitionKey,RowKey,Timestamp,Name,Name@type,Age,Age@type,Half,Half@type\n\
        a,1,,\"A \"\"b\"\", c\",Edm.String,36,Edm.Int32,,\n\
        a,2,,,Edm.String,,,0.5,Edm.Double\n";
    assert_eq!(sheet(&entities, Style::default()), expected);
    let windows = format!("\u{FEFF}{}", expected.replace('\n', "\r\n"));
    assert_eq!(sheet(&entities, for_windows()), windows);
    assert_eq!(
        sheet(&[], Style::default()),
        "PartitionKey,RowKey,Timestamp\n"
    );

    // A line may have the time of the last write, which the columns show.
    let line = r#"{"table":"Tests","entity":{"PartitionKey":"a","RowKey":"1","Timestamp":"2024-02-29T12:34:56.1234567Z"}}"#;
    let first = ["Name".to_owned(), "RowKey".to_owned()];
    let mut csv = Vec::new();
    write_sheet(&mut Cursor::new(line), &first, &mut csv, Style::default()).unwrap();
    let expected =
        "PartitionKey,RowKey,Timestamp,Name,Name@type\na,1,2024-02-29T12:34:56.1234567Z,,\n";
    assert_eq!(str::from_utf8(&csv), Ok(expected));
}

#[test]
fn each_entity_comes_back_unchanged() {
    for (table, entities) in awkward::tables() {
        for style in [Style::default(), for_windows()] {
            let csv = sheet(&entities, style);
            let found = Records::new(csv.as_bytes(), &into(table)).map(|record| match record {
                Ok((_, Line::Entity { entity, .. })) => text(&entity),
                other => panic!("{other:?}"),
            });
            let expected: Vec<_> = entities.iter().map(text).collect();
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_spreadsheet_gets_no_formulas() {
    let mut style = for_windows();
    style.guarded = true;
    let entity = DynamicEntity::new("=1+2", "@a")
        .with("A", "+1")
        .with("B", "-x")
        .with("C", "\t=1")
        .with("D", "\r")
        .with("E", -5)
        .with("F", f64::NEG_INFINITY)
        .with("G", "a=b")
        .with("H", vec![0xFB_u8]);
    let csv = sheet(&[entity], style);
    let row = csv.lines().nth(1).unwrap();
    assert!(
        row.starts_with("'=1+2,'@a,,'+1,Edm.String,'-x,Edm.String,'\t=1,Edm.String,\"'"),
        "{row}"
    );
    assert!(
        csv.ends_with(",-5,Edm.Int32,'-Infinity,Edm.Double,a=b,Edm.String,'+w==,Edm.Binary\r\n"),
        "{csv}"
    );
}

#[test]
fn properties_that_cannot_be_columns_are_refused() {
    let refused = |entities: &[DynamicEntity]| {
        write_sheet(&mut lines(entities), &[], Vec::new(), Style::default()).unwrap_err()
    };
    let entity = DynamicEntity::new("a", "1").with("Age@type", 1);
    assert!(matches!(refused(&[entity]), SheetError::Name(name) if name == "Age@type"));
    let many: Vec<_> = (0..101)
        .map(|row| {
            let names = (0..100).map(|index| (format!("P{row}x{index}"), 1));
            names.fold(
                DynamicEntity::new("a", row.to_string()),
                |entity, (name, value)| entity.with(name, value),
            )
        })
        .collect();
    assert!(matches!(refused(&many), SheetError::TooManyColumns));
}

#[test]
fn the_file_of_storage_explorer_is_read() {
    let csv = "\u{FEFF}PartitionKey,RowKey,Timestamp,Name,Name@type,Age,Age@type,Big,Big@type,Active,Active@type\r\n\
        bikes,0001,2024-02-29T12:34:56.1234567Z,\"Anna \"\"A.\"\"\",Edm.String,41,Edm.Int32,9007199254740993,Edm.Int64,true,Edm.Boolean\r\n\
        bikes,0002,2024-02-29T12:34:57.0000000Z,\"line one\nline two\",Edm.String,,,,,,\r\n\
        \r\n\
        cars,=1+2,2024-02-29T12:34:58.0000000Z,=SUM(A1),String,7,Int32,,,False,Boolean\r\n\
        cars,3,,,Edm.String,,,,,,\r\n\
        ,,,,,,,,,,\r\n";
    let expected = [
        r#"row 2: T bikes 0001 Active: Boolean(true), Age: Int32(41), Big: Int64(9007199254740993), Name: String("Anna \"A.\"")"#,
        r#"row 3: T bikes 0002 Name: String("line one\nline two")"#,
        r#"row 5: T cars =1+2 Active: Boolean(false), Age: Int32(7), Name: String("=SUM(A1)")"#,
        r#"row 6: T cars 3 Name: String("")"#,
    ];
    assert_eq!(read(csv.as_bytes(), &into("T")), expected);
    let semicolons = csv.replace(',', ";");
    assert_eq!(read(semicolons.as_bytes(), &into("T")), expected);
}

#[test]
fn types_may_be_in_the_first_row_alone_and_keys_are_texts() {
    let csv = "RowKey,RowKey@type,PartitionKey,Age,Age@type,,\n1,Edm.Int32,a,36,Int64,,\n02,,a,45,,,\n3,,a,,,,\n";
    let expected = [
        "row 2: T a 1 Age: Int64(36)",
        "row 3: T a 02 Age: Int64(45)",
        "row 4: T a 3 ",
    ];
    assert_eq!(
        read(csv.replace(",,\n", "\n").as_bytes(), &into("T")),
        expected
    );
}

#[test]
fn values_without_types_are_guessed_or_strings() {
    let csv = "PartitionKey,RowKey,A,B,C\na,007,5000000000,007,true\na,2,,x,\n";
    let guessed = [
        r#"row 2: T a 007 A: Int64(5000000000), B: String("007"), C: Boolean(true)"#,
        r#"row 3: T a 2 B: String("x")"#,
    ];
    assert_eq!(read(csv.as_bytes(), &into("T")), guessed);
    let mut options = into("T");
    let mut records = Records::new(csv.as_bytes(), &options);
    assert_eq!((records.by_ref().count(), records.guessed()), (2, 4));

    options.types = Types::Strings;
    options.empty = Some(Empty::Strings);
    let strings = [
        r#"row 2: T a 007 A: String("5000000000"), B: String("007"), C: String("true")"#,
        r#"row 3: T a 2 A: String(""), B: String("x"), C: String("")"#,
    ];
    assert_eq!(read(csv.as_bytes(), &options), strings);
    assert_eq!(Records::new(csv.as_bytes(), &options).guessed(), 0);
}

#[test]
fn an_empty_cell_is_what_its_type_or_the_option_says() {
    let csv = "PartitionKey,RowKey,A,A@type,B,B@type,C,C@type\na,1,,Edm.String,,,5,Edm.Int32\na,2,,,,Edm.String,,\n";
    let with = |empty| {
        let mut options = into("T");
        options.empty = empty;
        read(csv.as_bytes(), &options)
    };
    for (empty, one, two) in [
        (None, r#"A: String(""), "#, r#"B: String("")"#),
        (Some(Empty::Absent), "", ""),
        (
            Some(Empty::Strings),
            r#"A: String(""), B: String(""), "#,
            r#"A: String(""), B: String("")"#,
        ),
    ] {
        let expected = [
            format!("row 2: T a 1 {one}C: Int32(5)"),
            format!("row 3: T a 2 {two}"),
        ];
        assert_eq!(with(empty), expected);
    }
}

#[test]
fn a_mistake_is_named_with_row_and_column() {
    let options = into("T");
    for (csv, place, problem) in [
        ("PartitionKey,Row\n", "row 1", "RowKey is missing"),
        ("a,RowKey\n1,2\n", "row 1", "PartitionKey is missing"),
        (
            "PartitionKey,RowKey,A,A\n",
            "row 1",
            "the column \"A\" is there twice",
        ),
        (
            "PartitionKey,RowKey,A\na,1\n",
            "row 2",
            "it has 2 cells, and the first row has 3",
        ),
        (
            "PartitionKey,RowKey\na,1\na,2,3\n",
            "row 3",
            "it has 3 cells",
        ),
        (
            "PartitionKey,RowKey,Id,Id@type\na,1,x,Edm.Guid\n",
            "row 2",
            "(\"a\", \"1\"): the entity is malformed: property \"Id\": the value is not of type Edm.Guid, found \"x\"; --as-string",
        ),
        (
            "PartitionKey,RowKey,At,At@type\na,1,x,Edm.GeographyPoint\n",
            "row 2",
            "property \"At\": its annotation is not one of the eight EDM types, found \"Edm.GeographyPoint\"; --as-string",
        ),
    ] {
        let found = read(csv.as_bytes(), &options).pop().unwrap();
        assert!(found.starts_with(&format!("{place}: ")), "{csv}: {found}");
        assert!(found.contains(problem), "{csv}: {found}");
    }
    let none = read(b"PartitionKey,RowKey\na,1\n", &ReadOptions::default()).pop();
    assert!(none.unwrap().starts_with("row 2: the file names no table"));
    let latin = read(b"PartitionKey,RowKey\na,1\na,\xFF\n", &options).pop();
    assert_eq!(latin.as_deref(), Some("row 3: it is not UTF-8"));
}

#[test]
fn a_quote_that_nothing_closes_needs_bounded_memory() {
    let endless = b"PartitionKey,RowKey\na,\"".chain(std::io::repeat(b'x'));
    let mut records = Records::new(
        BufReader::new(endless.take(4 * MAX_LINE_BYTES as u64)),
        &into("T"),
    );
    let error = records.next().unwrap().unwrap_err();
    assert!(matches!(error.problem(), RecordProblem::TooLong), "{error}");
}
