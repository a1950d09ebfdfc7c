//! The index of the examples lists each of them, with a command that runs it, and each of them is
//! run by a script or a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{read, root};

const INDEX: &str = "examples/README.md";

/// A program or a directory of `examples`.
#[derive(Debug, PartialEq)]
struct Example {
    /// The target of its link.
    path: String,
    has_tests: bool,
    is_package: bool,
}

/// The targets of the manifest, and the packages in directories of their own, by name.
fn targets() -> BTreeMap<String, Example> {
    let manifest = read("examples/Cargo.toml");
    let targets = manifest.split("[[example]]").skip(1).map(|target| {
        let target = target.split("\n[").next().unwrap_or_default();
        let value = |key: &str| {
            let line = target.lines().find_map(|line| line.strip_prefix(key))?;
            line.strip_prefix(" = ").map(|value| value.replace('"', ""))
        };
        let path = value("path").expect("each target has a path");
        let example = Example {
            path: path.trim_end_matches("/main.rs").to_owned(),
            has_tests: value("test").as_deref() == Some("true"),
            is_package: false,
        };
        (value("name").expect("each target has a name"), example)
    });
    let mut packages = names("examples");
    packages.retain(|name| {
        root()
            .join("examples")
            .join(name)
            .join("Cargo.toml")
            .exists()
    });
    let packages = packages.into_iter().map(|name| {
        let package = Example {
            path: name.clone(),
            has_tests: false,
            is_package: true,
        };
        (name, package)
    });
    targets.chain(packages).collect()
}

/// The rows of the index: target of the link, subject and command.
fn rows() -> Vec<[String; 3]> {
    let index = read(INDEX);
    let rows = index.lines().filter(|line| line.starts_with("| ["));
    let rows = rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [link, subject, command] = cells[..] else {
            panic!("{INDEX} has a row without three cells: {line}");
        };
        let (_, target) = link.split_once("](").expect("the first cell is a link");
        let command = command.trim_matches('`').to_owned();
        [target.trim_end_matches(')').into(), subject.into(), command]
    });
    rows.collect()
}

/// The files that are programs, and the directories with a `main.rs`.
fn programs() -> Vec<String> {
    let mut names = names("examples");
    names.retain(|name| {
        let is_program = has_extension(name, "rs") && name != "lib.rs";
        is_program || root().join("examples").join(name).join("main.rs").exists()
    });
    names
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|it| it == extension)
}

fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(directory)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn the_index_of_the_examples_lists_each_of_them_once() {
    let rows = rows();
    let mut listed: Vec<_> = rows.iter().map(|[target, ..]| target.clone()).collect();
    listed.sort();

    let targets = targets().into_values().map(|target| target.path);
    let mut targets: Vec<_> = targets.collect();
    targets.sort();
    assert_eq!(programs(), targets, "each program is a target");

    let mut examples = targets;
    let directories = names("examples/other_languages").into_iter();
    let languages = directories.filter(|name| !has_extension(name, "md"));
    examples.extend(languages.map(|language| format!("other_languages/{language}")));
    examples.sort();
    assert_eq!(listed, examples);

    for [target, subject, _] in rows {
        assert!(root().join("examples").join(&target).exists(), "{target}");
        let is_sentence = subject.ends_with('.') && !subject.contains(". ");
        assert!(is_sentence, "the subject of {target} is not one sentence");
    }
}

#[test]
fn each_example_is_run_by_the_command_that_the_index_gives() {
    let targets = targets();
    let rows = rows();
    for (name, example) in &targets {
        let row = rows.iter().find(|[target, ..]| *target == example.path);
        let [_, _, command] = row.unwrap_or_else(|| panic!("{INDEX} does not list {name}"));
        let command = command.replace(" --release", "");
        let flag = if example.is_package {
            "-p"
        } else {
            "--example"
        };
        let runs = command == format!("cargo run {flag} {name}");
        let tests = example.has_tests && command == format!("cargo test --example {name}");
        assert!(runs || tests, "`{command}` does not run {name}");
    }
}

#[test]
fn each_example_has_tests_or_its_output_is_checked() {
    let script = read("examples/check.sh");
    let checked = |name: &str| {
        let mut lines = script.lines();
        lines.any(|line| {
            line.strip_prefix("check ")
                .is_some_and(|rest| rest.split(' ').next() == Some(name))
        })
    };
    for (name, example) in targets() {
        assert!(
            example.has_tests || checked(&name),
            "neither `cargo test` nor examples/check.sh runs {name}"
        );
    }
}
