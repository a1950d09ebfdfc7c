//! The lists of guides and features that readers see are complete: they are those of the sources.

use std::fs;

use crate::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_front_page_lists_every_guide_in_reading_order() {
    let module = read("tablesdk/src/guide/mod.rs");
    let guides = module
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "));
    let guides: Vec<_> = guides.map(|rest| rest.trim_end_matches(" {}")).collect();
    assert!(guides.len() >= 20, "{guides:?}");

    let list = module.lines().filter(|line| line.starts_with("//!"));
    let list = list.collect::<Vec<_>>().join("\n");
    assert_eq!(links(&list, "]("), guides, "the list in guide/mod.rs");

    let front_page = read("tablesdk/src/docs/front_page.md");
    let table = front_page
        .lines()
        .filter(|line| line.starts_with("| [") && line.contains("](guide::"));
    let table = table.collect::<Vec<_>>().join("\n");
    assert_eq!(
        links(&table, "](guide::"),
        guides,
        "the table in docs/front_page.md"
    );
}

/// The targets of links that begin so, without a fragment.
fn links(text: &str, begin: &str) -> Vec<String> {
    let targets = text.split(begin).skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

#[test]
fn the_tables_of_features_list_every_feature() {
    for (manifest, page) in [
        ("tablesdk/Cargo.toml", "tablesdk/src/docs/front_page.md"),
        ("tablesdk-server/Cargo.toml", "tablesdk-server/src/lib.rs"),
    ] {
        let manifest = read(manifest);
        let features = manifest.split("[features]").nth(1).unwrap_or_default();
        let features = features.split("\n[").next().unwrap_or_default();
        let features = features.lines().filter(|line| !line.starts_with('#'));
        let features = features.filter_map(|line| line.split_once(" = "));
        let features: Vec<_> = features.filter(|(name, _)| *name != "default").collect();
        assert!(features.len() >= 5, "{features:?}");

        let text = read(page);
        let table = text.split("# Features").nth(1).unwrap_or_default();
        let table = table.split("\n\n# ").next().unwrap_or_default();
        for (feature, _) in features {
            let row = format!("| `{feature}` | ");
            assert!(table.contains(&row), "{page} does not list `{feature}`");
        }
    }
}
