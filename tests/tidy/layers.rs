//! Which module of a crate may use which: a table of the files and directories directly below
//! `src`.

use std::collections::BTreeSet;
use std::fs;

use super::{root, sources};

/// A file or directory directly below `src`, and those that its code may name by `crate::`,
/// separated by spaces.
type Layer = (&'static str, &'static str);

/// Asserts that the modules of a crate use each other as the table says, and that each uses only
/// modules above it in the table.
///
/// `lib.rs`, `main.rs`, tests and `exempt` may use all. A path must name the module that defines
/// the item: `crate::error::Error`, and not a re-export such as `crate::Error`.
fn assert_layers(package: &str, exempt: &[&str], table: &[Layer]) {
    let directory = format!("{package}/src");
    let mut above = BTreeSet::new();
    let mut allowed = BTreeSet::new();
    for (layer, uses) in table {
        for used in uses.split_whitespace() {
            assert!(
                above.contains(used),
                "{package}: {layer} uses {used}, which is not above it"
            );
            allowed.insert((*layer, used));
        }
        above.insert(*layer);
    }
    let (mut arrows, mut found) = (BTreeSet::new(), BTreeSet::new());
    for file in sources(&directory) {
        let path = file.strip_prefix(root().join(&directory)).unwrap();
        let layer = path.iter().next().unwrap().to_str().unwrap();
        let layer = layer.trim_end_matches(".rs");
        let mut parts = path.iter();
        let is_test = parts.any(|part| part == "tests" || part == "tests.rs");
        if is_test || ["lib", "main"].contains(&layer) || exempt.contains(&layer) {
            continue;
        }
        let (place, layer) = (path.display(), above.get(layer));
        let layer = *layer.unwrap_or_else(|| panic!("{package}: the table does not have {place}"));
        found.insert(layer);
        for used in names_after_crate(&fs::read_to_string(&file).unwrap()) {
            let known = above.get(used.as_str());
            let used = *known.unwrap_or_else(|| {
                panic!("{package}: {place} uses crate::{used}: name the module that defines it")
            });
            if used != layer {
                let arrow = (layer, used);
                assert!(
                    allowed.contains(&arrow),
                    "{package}: {place} must not use crate::{used}"
                );
                arrows.insert(arrow);
            }
        }
    }
    let missing: Vec<_> = above.difference(&found).collect();
    assert!(missing.is_empty(), "{package}: there is no {missing:?}");
    let unused: Vec<_> = allowed.difference(&arrows).collect();
    assert!(unused.is_empty(), "{package}: no code uses {unused:?}");
}

/// The first names of all paths that start with `crate::` in the code of a file.
fn names_after_crate(source: &str) -> Vec<String> {
    let code = source.split("mod tests {").next().unwrap_or_default();
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let code: Vec<_> = lines.filter(|line| !line.contains("#[doc")).collect();
    let code = code.join("\n");
    let mut names = Vec::new();
    for path in code.split("crate::").skip(1) {
        if let Some(list) = path.strip_prefix('{') {
            names.extend(names_of_list(list));
        } else {
            names.push(name_at(path));
        }
    }
    names
}

/// The first names of the paths in a list, up to the brace that closes it.
fn names_of_list(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut starts = true;
    for (index, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts = true,
            _ if starts && !character.is_whitespace() => {
                names.push(name_at(&list[index..]));
                starts = false;
            }
            _ => {}
        }
    }
    names
}

fn name_at(path: &str) -> String {
    let name = path
        .chars()
        .take_while(|it| it.is_alphanumeric() || *it == '_');
    name.collect()
}

#[test]
fn modules_of_the_client_use_only_modules_below_them() {
    let table: &[Layer] = &[
        ("random", ""),
        ("sealed", ""),
        ("shared_call", ""),
        ("value_error", ""),
        ("filter", "value_error"),
        ("entity", "filter sealed value_error"),
        ("key", "entity"),
        ("error", "entity"),
        ("transport", "error"),
        ("credential", "error shared_call transport"),
        ("pipeline", "credential error filter random transport"),
        ("query", "entity error filter pipeline sealed value_error"),
        ("sas", "credential entity error pipeline"),
        ("service_properties", ""),
        ("action", "entity error filter pipeline query random sas"),
        ("connection_string", "credential error"),
        (
            "client",
            "action connection_string credential entity error pipeline sas transport",
        ),
        ("other_names", "action client entity filter query"),
        (
            "patterns",
            "action client entity error filter pipeline query random sealed shared_call value_error",
        ),
        ("testing", "client random transport"),
    ];
    // The stub is code of the programs of users: it names the public interface.
    assert_layers("tablesdk", &["guide", "stub"], table);
}

#[test]
fn modules_of_the_server_use_only_modules_below_them() {
    let table: &[Layer] = &[
        ("flavor", ""),
        ("time", ""),
        ("storage", ""),
        ("engine", "flavor storage time"),
        ("request", "flavor time"),
        ("testing", "flavor request"),
        ("service", "engine flavor request storage testing time"),
        ("http", "request"),
        (
            "server",
            "engine flavor http request service storage testing time",
        ),
        ("data_directory", "engine storage time"),
        // The program uses the library as any other crate does.
        ("program", ""),
    ];
    assert_layers("tablesdk-server", &[], table);
}

#[test]
fn paths_are_found_in_code() {
    let source = "use crate::{Error, a::{B, C}, d};\nuse crate::e::F; // crate::g\n/// crate::h\nfn f() -> crate::i {}";
    assert_eq!(names_after_crate(source), ["Error", "a", "d", "e", "i"]);
}

#[test]
fn modules_of_the_protocol_use_only_modules_below_them() {
    let table: &[Layer] = &[
        ("types", ""),
        ("filter", "types"),
        ("path", "types"),
        ("auth", "path types"),
        ("transport", "auth path types"),
        ("wire", "auth path types"),
        ("operation", "auth filter path types wire"),
    ];
    assert_layers("tablesdk-protocol", &[], table);
}
