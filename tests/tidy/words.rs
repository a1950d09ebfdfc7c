//! The script that refuses words of prose finds each of them, and nothing else.

use std::fs;
use std::process::Command;

use super::root;

/// The numbers of the lines that the script reports of a file, and its exit code.
fn report(name: &str, lines: &[&str]) -> (Vec<usize>, Option<i32>) {
    let file = std::env::temp_dir().join(format!("tablesdk-{}-{name}", std::process::id()));
    fs::write(&file, lines.join("\n")).unwrap();
    let output = Command::new(root().join(".ci/words"))
        .arg(&file)
        .output()
        .unwrap();
    fs::remove_file(&file).unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let prefix = format!("{}:", file.display());
    let number = |line: &str| {
        let (number, _) = line
            .strip_prefix(&prefix)
            .unwrap()
            .split_once(": ")
            .unwrap();
        number.parse().unwrap()
    };
    (text.lines().map(number).collect(), output.status.code())
}

#[test]
fn a_line_of_rustdoc_that_begins_without_the_noun_is_refused() {
    let lines = [
        "/// What it grants.",
        "//! Whether it grants anything.",
        "    /// Those of a table.",
        "\t/// Of a table.",
        "/// The permissions.",
        "/// What: a colon is no part of the word.",
    ];
    assert_eq!(report("refused.rs", &lines), (vec![1, 2, 3, 4, 6], Some(1)));
}

#[test]
fn other_lines_of_rust_may_begin_with_any_word() {
    let lines = [
        "/// Whatever it grants, and Office, and Offset.",
        "/// Those that are granted.",
        "/// Offset and length.",
        "/// what",
        "// What a comment says.",
        "/// // What an example says.",
        "const TEXT: &str = \"",
        "What a string says.",
        "\";",
    ];
    assert_eq!(report("accepted.rs", &lines), (vec![], Some(0)));
}

#[test]
fn markdown_may_begin_with_any_word_but_those_that_are_not_used() {
    let lines = [
        "What it is.",
        "Of a table.",
        "A stranger.",
        "It is in",
        "good order.",
    ];
    assert_eq!(report("prose.md", &lines), (vec![3, 4], Some(1)));
}
