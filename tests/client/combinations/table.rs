//! The table of the guide to choosing a pattern that says what combines with what: each cell is a
//! test of [`cells`](super::cells), or code that does not compile, with its message.

use std::fs;
use std::path::{Path, PathBuf};

use super::cells::CELLS;

fn file(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The row, the column, and the text of each cell.
fn table() -> Vec<[String; 3]> {
    let guide = file("../tablesdk/src/guide/choosing.md");
    let table = guide.split("<!-- combinations -->").nth(1).unwrap();
    let lines = table.lines().filter(|line| line.starts_with('|'));
    let mut lines = lines.map(|line| {
        let cells = line.trim_matches('|').split('|');
        let cells = cells.map(|cell| cell.trim().replace('`', ""));
        cells.collect::<Vec<_>>()
    });
    let head = lines.next().unwrap();
    let mut cells = Vec::new();
    for row in lines.skip(1) {
        assert_eq!(row.len(), head.len(), "{row:?}");
        for (column, cell) in head.iter().zip(&row).skip(1) {
            cells.push([row[0].clone(), column.clone(), cell.clone()]);
        }
    }
    cells
}

/// The row and the column of each line that does not compile, from the comment at its end. The
/// messages are about that line, or about the function that the comment names.
fn refused() -> Vec<[String; 2]> {
    let mut refused = Vec::new();
    for name in ["", "_where_used"] {
        let path = format!("derive/fail/patterns_that_do_not_combine{name}");
        let (source, messages) = (file(&format!("{path}.rs")), file(&format!("{path}.stderr")));
        for (number, line) in source.lines().enumerate() {
            let Some((_, cell)) = line.split_once("; // ") else {
                continue;
            };
            let place = format!("tests/{path}.rs:{}:", number + 1);
            let (cell, place) = match cell.split_once(", in `") {
                Some((cell, function)) => (cell, function.trim_end_matches('`').to_owned()),
                None => (cell, place),
            };
            assert!(messages.contains(&place), "no message about {place} {line}");
            let (row, column) = cell.split_once(": ").unwrap();
            refused.push([row, column].map(str::to_owned));
        }
    }
    refused
}

#[test]
fn each_cell_is_a_test_or_an_error_of_the_compiler() {
    let (table, refused) = (table(), refused());
    let mut works: Vec<[String; 2]> = Vec::new();
    for (row, functions) in CELLS {
        works.extend(functions.iter().map(|&function| {
            let column = match function {
                "in_enum" => "enum",
                "move_all" => "query.move_to",
                other => other,
            };
            [*row, column].map(str::to_owned)
        }));
    }
    assert_eq!(table.len(), works.len() + refused.len());
    for [row, column, cell] in table {
        let tested_by = if cell == "yes" { &works } else { &refused };
        assert!(cell == "yes" || cell == "no", "{row}, {column}: {cell}");
        assert!(
            tested_by.contains(&[row.clone(), column.clone()]),
            "{row}, {column}: {cell}"
        );
    }
}
