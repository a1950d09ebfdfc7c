//! Files that a reader could take for others: nothing of them is dropped, and no digit changes.

use tablesdk_cli::records::{Empty, ReadOptions, Records};

use crate::records::{into, read};

fn sheet(rows: &str) -> Vec<String> {
    read(rows.as_bytes(), &into("T"))
}

#[test]
fn a_quote_that_is_not_closed_or_closed_early_is_an_error_of_its_row() {
    let open = "row 3: the file ends within a quoted cell of it: a closing quote is missing";
    let found = sheet("PartitionKey,RowKey,A\np,1,\"a\nb\"\np,2,\"abc\np,3,x\np,4,y\n");
    assert_eq!(found, [r#"row 2: T p 1 A: String("a\nb")"#, open]);
    let early = "row 3: a cell goes on after its closing quote: within a quoted cell, a quote is written twice";
    let found = sheet("PartitionKey,RowKey,A\np,1,\"\"\"a\"\",\"\np,2,\"x\"y\np,3,y\n");
    assert_eq!(found, [r#"row 2: T p 1 A: String("\"a\",")"#, early]);
    // In a cell that does not begin with one, a quote is a character.
    let found = sheet("PartitionKey,RowKey,A\np,1,x\"y\"\n");
    assert_eq!(found, [r#"row 2: T p 1 A: String("x\"y\"")"#]);
}

#[test]
fn rows_are_counted_as_a_spreadsheet_does() {
    for end in ["\n", "\r\n", "\r"] {
        let csv = "\nPartitionKey,RowKey,A\n\np,1,\"a\n\nb\"\n\n\np,2,x".replace('\n', end);
        let text = format!("a{end}{end}b");
        let expected = [
            format!("row 4: T p 1 A: String({text:?})"),
            r#"row 7: T p 2 A: String("x")"#.to_owned(),
        ];
        let marked = format!("\u{FEFF}{csv}");
        for csv in [csv.clone(), marked] {
            // The first line of a file has an end that all systems know.
            let csv = csv.replacen("A\r\r", "A\r\n\r", usize::from(end == "\r"));
            assert_eq!(sheet(&csv), expected, "{csv:?}");
        }
    }
    let quoted = "\u{FEFF}\"PartitionKey\",\"RowKey\"\np,1\n";
    assert_eq!(sheet(quoted), ["row 2: T p 1 "]);
}

#[test]
fn a_type_beside_an_empty_cell_is_that_of_the_later_rows() {
    let found = sheet("PartitionKey,RowKey,A,A@type\np,1,,Edm.String\np,2,5,\n");
    let expected = [
        r#"row 2: T p 1 A: String("")"#,
        r#"row 3: T p 2 A: String("5")"#,
    ];
    assert_eq!(found, expected);
}

#[test]
fn empty_bytes_stay_and_types_without_values_are_refused() {
    let csv = "PartitionKey,RowKey,A,A@type\np,1,,Edm.Binary\n";
    for empty in [None, Some(Empty::Strings)] {
        let mut options = into("T");
        options.empty = empty;
        let mut records = Records::new(csv.as_bytes(), &options);
        let (_, line) = records.next().unwrap().unwrap();
        assert!(format!("{line:?}").contains("Binary"), "{line:?}");
    }
    let found = sheet("PartitionKey,RowKey,B@type\np,1,Edm.String\n");
    let problem = "row 1: the column \"B@type\" has the types of a column that is missing";
    assert_eq!(found, [problem]);
}

#[test]
fn the_keys_show_by_what_cells_are_separated() {
    for (header, row) in [
        ("PartitionKey;RowKey;\"A,B\"", "p;1;x"),
        ("\"A;B\"\tRowKey\tPartitionKey", "x\t1\tp"),
    ] {
        let found = sheet(&format!("{header}\n{row}\n"));
        assert!(
            found.iter().all(|row| row.starts_with("row 2: T p 1 A")),
            "{found:?}"
        );
    }
}

#[test]
fn a_number_that_is_kept_as_a_string_keeps_its_digits() {
    let mut options = into("T");
    options.as_string = true;
    for (edm_type, number) in [
        ("Edm.Guid", "9007199254740993"),
        ("Edm.Int32", "3.0000000000000001"),
        ("Edm.DateTime", "1E2"),
        ("Edm.Double", "1e400"),
    ] {
        let entity = format!(
            r#"{{"PartitionKey":"a","RowKey":"1","X":{number},"X@odata.type":"{edm_type}"}}"#
        );
        let expected = format!("line 1: T a 1 X: String({number:?})");
        assert_eq!(read(entity.as_bytes(), &options), [expected]);
    }
}

#[test]
fn the_option_is_named_only_where_it_helps() {
    let mut options = into("T");
    options.as_string = true;
    for (members, helps) in [
        (r#""PartitionKey":1,"RowKey":"1""#, false),
        (r#""PartitionKey":"a","RowKey":"1","X":1e400"#, true),
        (r#""PartitionKey":"a","RowKey":"1","X":5000000000"#, false),
    ] {
        for file in [format!("{{{members}}}"), format!("[{{{members}}}]")] {
            let found = read(file.as_bytes(), &into("T")).remove(0);
            assert_eq!(found.contains("--as-string"), helps, "{found}");
            let found = read(file.as_bytes(), &options).remove(0);
            assert_eq!(found.contains("T a 1 X: String"), helps, "{found}");
            assert!(!found.contains("--as-string"), "{found}");
        }
    }
}

#[test]
fn an_entity_with_an_array_is_refused_whatever_the_array_is_called() {
    for name in ["value", "collections", "Other"] {
        let keys = r#""PartitionKey":"a","RowKey":"9""#;
        let array = format!(r#""{name}":[]"#);
        for members in [
            format!("{keys},{array}"),
            format!("{array},{keys}"),
            format!(r#""\u0050artitionKey":"a",{array},"RowKey":"9""#),
        ] {
            let lines = format!("{{{members}}}\n");
            let spread = format!("{{\n{members}}}");
            for file in [lines, spread, format!("[{{{members}}}]")] {
                let found = read(file.as_bytes(), &into("T"));
                let found = found.first().map_or("", String::as_str);
                assert!(found.contains("array"), "{file}: {found}");
            }
        }
    }
}

#[test]
fn what_is_wrong_with_an_entity_in_a_line_is_said() {
    for (members, problem) in [
        (
            r#""PartitionKey":"a","RowKey":"1","A":"1","A@odata.type":"Edm.Int64","A@odata.type":"Edm.Guid""#,
            "line 1: the entity is malformed: a property has two type annotations",
        ),
        (
            r#""PartitionKey":"a","RowKey":"1","A":"\ud800""#,
            "malformed JSON: unexpected end of hex escape",
        ),
        (
            r#""partitionKey":"a","rowKey":"1""#,
            "line 1: the entity has no PartitionKey; a line is expected such as",
        ),
        (
            r#""table":"T","partitionKey":"a""#,
            "unknown field `partitionKey`",
        ),
    ] {
        let found = read(format!("{{{members}}}").as_bytes(), &into("T")).remove(0);
        assert!(found.contains(problem), "{found}");
        assert!(
            !found.contains("expected one of `format`") || members.contains("table"),
            "{found}"
        );
    }
}

#[test]
fn a_version_is_a_string_in_each_form() {
    let entity = |etag: &str| format!(r#"{{"odata.etag":{etag},"PartitionKey":"a","RowKey":"1"}}"#);
    let forms = |entity: &str| {
        [
            entity.to_owned(),
            format!("[{entity}]"),
            format!(r#"{{"table":"Tests","entity":{entity}}}"#),
        ]
    };
    for file in forms(&entity("\"W/\\\"1\\\"\"")) {
        let mut records = Records::new(file.as_bytes(), &into("T"));
        let next = records.next().unwrap();
        assert!(next.is_ok(), "{file}: {next:?}");
        let etag = records.etag().map(tablesdk::ETag::as_str);
        assert_eq!(etag, Some("W/\"1\""), "{file}");
    }
    for wrong in ["5", "true", "[]", "{}"] {
        for file in forms(&entity(wrong)) {
            let found = read(file.as_bytes(), &into("T")).remove(0);
            assert!(found.ends_with("odata.etag is not a string"), "{found}");
        }
    }
    let none = ReadOptions::default();
    let file = r#"{"table":"Tests","entity":{"odata.etag":null,"PartitionKey":"a","RowKey":"1"}}"#;
    assert_eq!(read(file.as_bytes(), &none), ["line 1: Tests a 1 "]);
}
