//! Comments of Rust files have one width, that of the code.

use std::fs;

use crate::{root, sources};

/// `max_width` of `rustfmt.toml`, which does not wrap comments.
const WIDTH: usize = 100;

#[test]
fn comments_are_as_wide_as_code() {
    let mut wide = Vec::new();
    for directory in fs::read_dir(root()).unwrap() {
        let directory = directory.unwrap();
        let name = directory.file_name().into_string().unwrap();
        // Each package is a directory; `target`, `.git` and the like are not.
        if name.starts_with("target") || name.starts_with('.') || !directory.path().is_dir() {
            continue;
        }
        for file in sources(&name) {
            // Modules as `tables infer` prints them.
            if file.parent().unwrap().ends_with("infer/generated") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let lines = wide_comments(&text);
            wide.extend(lines.map(|number| format!("{}:{number}", file.display())));
        }
    }
    assert!(wide.is_empty(), "wrap these comments:\n{}", wide.join("\n"));
}

/// The numbers of lines that are too wide. Code in documentation, tables and URLs cannot be
/// wrapped.
fn wide_comments(text: &str) -> impl Iterator<Item = usize> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let comment = line.trim_start().strip_prefix("//");
        let Some(comment) = comment.map(|rest| rest.trim_start_matches(['/', '!']).trim_start())
        else {
            // `#[doc = include_str!(…)]` may begin an example that goes on after it.
            is_code &= line.trim_start().starts_with("#[");
            return None;
        };
        if comment.starts_with("```") {
            is_code = !is_code;
        }
        let is_whole = is_code || comment.starts_with('|') || comment.contains("://");
        (!is_whole && line.chars().count() > WIDTH).then_some(number)
    })
}

#[test]
fn a_wide_line_is_found_unless_it_cannot_be_wrapped() {
    let wide = "word ".repeat(20);
    let text = format!(
        "// {wide}\n/// short\n/// | {wide} |\n/// ```\n/// let {wide};\n/// ```\n    //! {wide}\nlet s = \"{wide}\";"
    );
    assert_eq!(wide_comments(&text).collect::<Vec<_>>(), [1, 7]);
}
