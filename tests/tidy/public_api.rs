//! The public names of the client: the list in `tablesdk/public-api.txt`, and how many there may
//! be.

use std::collections::BTreeSet;
use std::fs;

use super::root;

const LIST: &str = "tablesdk/public-api.txt";
const ROOT_MAX: usize = 28;
const TYPES_MAX: usize = 185;

/// A new public name is a promise: it has to be added to the list, and the list shows it to the
/// reviewer.
#[test]
fn public_names_are_those_of_the_list() {
    let names = public_names();
    let list: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    let path = root().join(LIST);
    if std::env::var_os("TABLESDK_WRITE_PUBLIC_API").is_some() {
        fs::write(&path, &list).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap();
    let listed: BTreeSet<_> = listed.lines().map(str::to_owned).collect();
    let added: Vec<_> = names.difference(&listed).collect();
    let removed: Vec<_> = listed.difference(&names).collect();
    assert!(
        added.is_empty() && removed.is_empty(),
        "{LIST} differs: added {added:?}, removed {removed:?}; TABLESDK_WRITE_PUBLIC_API=1 rewrites it"
    );
}

/// The root is the first page that a reader sees: it has the types of an ordinary program, and each
/// other type is in the module of its subject.
#[test]
fn public_names_are_few() {
    let names = public_names();
    let in_root = names.iter().filter(|name| name.split("::").count() == 2);
    assert!(in_root.count() <= ROOT_MAX, "{names:#?}");
    let types: BTreeSet<_> = names
        .iter()
        .filter_map(|name| name.split("::").last())
        .collect();
    assert_eq!(types.len(), names.len(), "a type has one path: {names:#?}");
    assert!(types.len() <= TYPES_MAX, "{}: {names:#?}", types.len());
}

/// The paths of all types, traits and aliases in the root and in its public modules.
fn public_names() -> BTreeSet<String> {
    let source = root().join("tablesdk/src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let mut names: BTreeSet<_> = names_in(&lib)
        .into_iter()
        .map(|name| format!("tablesdk::{name}"))
        .collect();
    // The patterns are public under the name of the crate.
    for file in ["lib.rs", "patterns/mod.rs"] {
        let file = source.join(file);
        let text = fs::read_to_string(&file).unwrap();
        let modules = text
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod "));
        for module in modules.filter_map(|line| line.strip_suffix(';')) {
            let directory = file.parent().unwrap();
            let file = directory.join(format!("{module}.rs"));
            let text = fs::read_to_string(file)
                .or_else(|_| fs::read_to_string(directory.join(module).join("mod.rs")))
                .unwrap();
            let public = names_in(&text).into_iter();
            names.extend(public.map(|name| format!("tablesdk::{module}::{name}")));
        }
    }
    assert!(names.len() > 50, "{names:?}");
    names
}

/// The names of the types that a file defines or exports at its top level.
fn names_in(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, _) in source.match_indices("\npub ") {
        let item = &source[index + "\npub ".len()..];
        if let Some(list) = item.strip_prefix("use ") {
            let list = list.split(';').next().unwrap();
            let list = list.rsplit_once("::{").map_or_else(
                || list.rsplit("::").next().unwrap(),
                |(_, list)| list.trim_end_matches('}'),
            );
            names.extend(list.split(',').map(|name| name.trim().to_owned()));
        } else {
            let mut words = item.split(|it: char| !it.is_alphanumeric() && it != '_');
            let kind = words.next().unwrap();
            if ["enum", "struct", "trait", "type"].contains(&kind) {
                names.insert(words.next().unwrap().to_owned());
            }
        }
    }
    names.retain(|name| name.starts_with(char::is_uppercase));
    names
}
