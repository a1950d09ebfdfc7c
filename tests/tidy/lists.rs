//! The lists of guides and features that readers see are those of the sources.
//!
//! The order of the guides is that of `guide/mod.rs`. Title and subject of a guide are the first
//! sentence of its page. Name, default and purpose of a feature are those of `Cargo.toml`.

use std::fmt::Write as _;
use std::fs;

use harness::generated::assert_generated_file;

use crate::{read, root};

const VARIABLE: &str = "TABLESDK_WRITE_LISTS";
const GUIDES: &str = "tablesdk/src/guide";

/// In the purpose of a feature of the client, each of these names is a link.
const LINKS: [(&str, &str); 7] = [
    ("`#[table(encrypt)]`", "guide::encryption"),
    ("`#[table(json)]`", "derive@TableEntity#json"),
    ("`Transport`", "transport::Transport"),
    (
        "`objects`",
        "guide::large_values#a-value-in-an-object-store",
    ),
    ("`reqwest`", "transport::ReqwestTransport"),
    ("`serde`", "guide::entities#entities-as-json"),
    ("`tracing`", "guide::observability"),
];

#[test]
fn guides_and_features_are_listed_as_in_the_sources() {
    let guides = guides();
    assert_module_lists(&guides);
    assert_front_page_lists(&guides);
}

/// Asserts that `guide/mod.rs` lists the guides, and that each leads to its neighbours.
fn assert_module_lists(guides: &[Guide]) {
    let path = format!("{GUIDES}/mod.rs");
    let mut list = String::new();
    for guide in guides {
        let Guide {
            name,
            title,
            subject,
        } = guide;
        list += &comment(&format!("* [{title}]({name}): {subject}."));
    }
    let text = replace_part(&read(&path), "//! ", "guides", &list);

    let mut module = String::new();
    for line in text.lines().filter(|line| !line.starts_with(NEIGHBOURS)) {
        if let Some(name) = module_of(line) {
            let index = guides.iter().position(|guide| guide.name == name);
            module += &neighbours(guides, index.unwrap());
        }
        module += line;
        module += "\n";
    }
    assert_generated_file(&root().join(path), &module, VARIABLE);
}

/// Asserts that the front page lists the guides and the features.
fn assert_front_page_lists(guides: &[Guide]) {
    let path = "tablesdk/src/docs/front_page.md";
    let mut list = "\n| guide | subject |\n|---|---|\n".to_owned();
    for guide in guides {
        let Guide {
            name,
            title,
            subject,
        } = guide;
        writeln!(list, "| [{title}](guide::{name}) | {subject} |").unwrap();
    }
    list += "\n";
    let features = table_of_features("tablesdk/Cargo.toml", &LINKS);
    for (name, _) in LINKS {
        assert!(features.contains(&format!("[{name}]")), "no {name}");
    }
    let text = replace_part(&read(path), "", "guides", &list);
    let text = replace_part(&text, "", "features", &format!("\n{features}\n"));
    assert_generated_file(&root().join(path), &text, VARIABLE);
}

#[test]
fn the_server_lists_every_feature() {
    let path = "tablesdk-server/src/lib.rs";
    let features = table_of_features("tablesdk-server/Cargo.toml", &[]);
    let features = features.lines().map(|line| format!("//! {line}\n"));
    let features = format!("//!\n{}//!\n", features.collect::<String>());
    let text = replace_part(&read(path), "//! ", "features", &features);
    assert_generated_file(&root().join(path), &text, VARIABLE);
}

/// A text with another part between two lines that are comments of HTML.
fn replace_part(text: &str, indent: &str, name: &str, part: &str) -> String {
    let start = format!("{indent}<!-- {name} -->\n");
    let end = format!("{indent}<!-- end of {name} -->\n");
    let (before, rest) = text.split_once(&start).expect("the document has the mark");
    let (_, after) = rest.split_once(&end).expect("the part has an end");
    format!("{before}{start}{part}{end}{after}")
}

struct Guide {
    name: String,
    title: String,
    subject: String,
}

/// The guides in the order of their modules.
fn guides() -> Vec<Guide> {
    let module = read(&format!("{GUIDES}/mod.rs"));
    let guides: Vec<_> = module.lines().filter_map(module_of).map(guide).collect();
    let mut names: Vec<_> = guides.iter().map(|guide| guide.name.clone()).collect();
    names.sort();
    let pages = fs::read_dir(root().join(GUIDES)).unwrap();
    let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = pages
        .filter_map(|page| page.strip_suffix(".md").map(str::to_owned))
        .collect();
    pages.sort();
    assert_eq!(names, pages, "each page is a module in guide/mod.rs");
    guides
}

fn module_of(line: &str) -> Option<&str> {
    line.strip_prefix("pub mod ")?.strip_suffix(" {}")
}

fn guide(name: &str) -> Guide {
    let page = read(&format!("{GUIDES}/{name}.md"));
    let first = page.split("\n\n").next().unwrap_or_default();
    let first = first.replace('\n', " ");
    let sentence = first.split(". ").next().unwrap_or_default();
    let (title, subject) = sentence.split_once(": ").unwrap_or_else(|| {
        panic!("{name}.md begins with its title, a colon and its subject: {sentence}")
    });
    Guide {
        name: name.to_owned(),
        title: title.to_owned(),
        subject: subject.trim_end_matches('.').to_owned(),
    }
}

/// How the lines begin that lead to other guides.
const NEIGHBOURS: &str = r#"#[doc = "\n\n---\n\n"#;

fn neighbours(guides: &[Guide], index: usize) -> String {
    let link = |guide: &Guide| format!("[{}](crate::guide::{})", guide.title, guide.name);
    let mut links = Vec::new();
    if let Some(before) = index.checked_sub(1) {
        links.push(format!("Before: {}", link(&guides[before])));
    }
    links.push("[All guides](crate::guide)".to_owned());
    if let Some(next) = guides.get(index + 1) {
        links.push(format!("Next: {}", link(next)));
    }
    format!("{NEIGHBOURS}{}\"]\n", links.join(" · "))
}

/// An item of a list as lines of a comment of up to 100 columns.
fn comment(item: &str) -> String {
    let mut lines = String::new();
    let mut line = "//!".to_owned();
    for word in item.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            lines += &line;
            lines += "\n";
            "//!  ".clone_into(&mut line);
        }
        line += " ";
        line += word;
    }
    lines + &line + "\n"
}

/// The features of a package: those that are on by default, those that one of these turns on, and
/// the others.
fn table_of_features(manifest: &str, links: &[(&str, &str)]) -> String {
    let text = read(manifest);
    let section = text.split("\n[features]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let mut features = Vec::new();
    let mut purpose = String::new();
    for line in section.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            purpose += if purpose.is_empty() { "" } else { " " };
            purpose += comment;
        } else if let Some((name, list)) = line.split_once(" = ") {
            features.push((name, list, std::mem::take(&mut purpose)));
        }
    }
    let (default, features): (Vec<_>, Vec<_>) = features
        .into_iter()
        .partition(|(name, ..)| *name == "default");
    assert!(default.len() == 1 && features.len() >= 5, "{features:?}");
    let names = |list: &str, name: &str| list.contains(&format!("\"{name}\""));

    let mut rows = Vec::new();
    for (name, _, purpose) in &features {
        assert!(!purpose.is_empty(), "{manifest}: no comment above {name}");
        let by = features.iter().find(|(other, list, _)| {
            names(default[0].1, other) && names(list, name) && other != name
        });
        let (rank, value) = match by {
            _ if names(default[0].1, name) => (0, "yes".to_owned()),
            Some((other, ..)) => (1, format!("with `{other}`")),
            None => (2, "no".to_owned()),
        };
        let mut purpose = purpose.clone();
        for (name, target) in links {
            purpose = purpose.replace(name, &format!("[{name}]({target})"));
        }
        rows.push((rank, format!("| `{name}` | {value} | {purpose} |\n")));
    }
    rows.sort();
    let rows = rows.into_iter().map(|(_, row)| row);
    format!(
        "| feature | default | adds |\n|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

#[test]
fn the_page_of_stability_lists_the_foreign_types_of_the_manifest() {
    let manifest = read("tablesdk/Cargo.toml");
    let list = manifest.split("[package.metadata.foreign-types]\n").nth(1);
    let list = list.unwrap_or_default().split("\n\n").next();
    let list = list.unwrap_or_default().lines();
    let mut listed: Vec<_> = list
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with("tablesdk"))
        .collect();
    assert!(listed.len() >= 10, "{listed:?}");

    let page = read("docs/stability.md");
    let table = page.split("\n## Types of other crates").nth(1);
    let table = table.unwrap_or_default().split("\n## ").next();
    let rows = table.unwrap_or_default().lines();
    let mut shown: Vec<_> = rows
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .collect();
    listed.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, listed);
}
