//! Tests that the reference page shows the generated code.
//!
//! The page has a struct, followed by its expansion, with paths cut to their last names. With
//! `TABLESDK_WRITE_EXPANSION=1` the test rewrites that part of the page.

use std::path::Path;

use syn::DeriveInput;

use crate::expand_struct;
use crate::input::Target;

/// Two blocks follow this line: the struct, and the generated code.
const MARK: &str = "<!-- expansion -->\n";

#[test]
fn the_reference_shows_what_is_generated() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/docs/table_entity.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(MARK).expect("the page has the mark");
    let (to_written, written, rest) = block(rest);
    let (to_shown, shown, rest) = block(rest);
    let generated = expansion(&visible(written));
    if std::env::var_os("TABLESDK_WRITE_EXPANSION").is_some() {
        let new = [
            before,
            MARK,
            &to_written,
            written,
            FENCE,
            &to_shown,
            &generated,
            FENCE,
            rest,
        ];
        std::fs::write(&page, new.concat()).unwrap();
        return;
    }
    assert_eq!(
        shown, generated,
        "run it again with TABLESDK_WRITE_EXPANSION=1, and read the difference as a user would"
    );
}

const FENCE: &str = "```\n";

/// The text before the first block of code, with the line that opens it; the code; and the text
/// after it.
fn block(text: &str) -> (String, &str, &str) {
    let (before, rest) = text.split_once("```").expect("a block of code");
    let (language, rest) = rest.split_once('\n').expect("a whole line");
    let (code, after) = rest.split_once(FENCE).expect("the end of the block");
    (format!("{before}```{language}\n"), code, after)
}

/// Without the lines that rustdoc hides.
fn visible(code: &str) -> String {
    let hidden = |line: &str| line.trim_end() == "#" || line.starts_with("# ");
    let lines = code.split_inclusive('\n');
    lines.filter(|line| !hidden(line)).collect()
}

fn expansion(code: &str) -> String {
    let file = syn::parse_file(code).unwrap();
    let input = file.items.iter().find_map(|item| match item {
        syn::Item::Struct(item) => Some(item),
        _ => None,
    });
    let mut input = input.expect("a struct").clone();
    input
        .attrs
        .retain(|attribute| !attribute.path().is_ident("derive"));
    let input: DeriveInput = syn::parse_quote!(#input);
    let code = shortened(expand_struct(&input, Target::Entity).to_string());
    let file = syn::parse_file(&code).unwrap();
    // One by one, with an empty line between them.
    let items = file.items.into_iter().map(|item| {
        let file: syn::File = syn::parse_quote!(#item);
        prettyplease::unparse(&file)
    });
    items.collect::<Vec<_>>().join("\n")
}

/// With paths cut to their last names, and locals without the underscores that keep them apart from
/// the user's names.
fn shortened(mut code: String) -> String {
    for (path, short) in [
        (":: tablesdk :: __private :: ", ""),
        (":: tablesdk :: ", ""),
        (":: core :: result :: Result :: ", ""),
        (":: core :: option :: Option :: ", ""),
        (":: core :: result :: ", ""),
        (":: core :: option :: ", ""),
        (":: core :: convert :: ", ""),
        (":: core :: clone :: ", ""),
        (":: core :: marker :: ", ""),
        (":: core :: fmt :: Debug", "Debug"),
        (":: core :: fmt :: ", "fmt :: "),
        // After a space, or after the start of a list.
        (" __", " "),
        ("(__", "("),
        ("|__", "|"),
    ] {
        code = code.replace(path, short);
    }
    code
}
