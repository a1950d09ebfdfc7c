//! The rules of the repository that a test can hold: who may depend on whom, and which file may
//! name what.

mod comments;
mod examples;
mod layers;
mod lists;
mod public_api;
#[cfg(unix)]
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in the workspace")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The libraries that a package needs to be built and run.
fn dependencies(package: &str) -> Vec<String> {
    dependencies_with(package, &[])
}

fn dependencies_with(package: &str, options: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "-e", "normal"])
        .args(["--prefix", "none", "--format", "{lib}", "-p", package])
        .args(options)
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn assert_none_of(names: &[String], forbidden: &[&str], package: &str) {
    for name in names {
        assert!(
            !forbidden.contains(&name.as_str()),
            "{package} depends on {name}"
        );
    }
}

fn assert_without(package: &str, forbidden: &[&str]) {
    let names = dependencies(package);
    assert!(names.len() > 5, "{package} has no dependencies? {names:?}");
    assert_none_of(&names, forbidden, package);
}

#[test]
fn the_server_knows_no_client() {
    let clients = ["reqwest", "tablesdk", "tablesdk_derive"];
    assert_without("tablesdk-server", &clients);
}

#[test]
fn the_protocol_does_no_io() {
    assert_without("tablesdk-protocol", &["tokio", "hyper", "reqwest"]);
    assert_without("tablesdk-protocol", &["tablesdk", "tablesdk_server"]);
    assert_without("tablesdk-protocol", &["fastrand", "getrandom", "rand"]);
}

#[test]
fn a_client_has_no_more_than_its_features_say() {
    assert_without("tablesdk", &["azure_core"]);
    let names = dependencies_with("tablesdk", &["--no-default-features"]);
    let stack = ["hyper", "reqwest", "rustls", "native_tls", "socket2", "mio"];
    assert_none_of(&names, &stack, "tablesdk without features");
}

#[test]
fn the_client_knows_no_server() {
    assert_without("tablesdk", &["tablesdk_server"]);
    assert_without("tablesdk-cli", &["tablesdk_server"]);
}

/// All source files below a directory.
fn sources(directory: &str) -> Vec<PathBuf> {
    let mut directories = vec![root().join(directory)];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory);
        for entry in entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// Asserts that no code below `directory` has `text`, but in the files or directories of it that
/// are named. Comments may.
fn assert_named_only_in(directory: &str, text: &str, allowed: &[&str]) {
    for file in sources(directory) {
        let name = file.strip_prefix(root().join(directory)).unwrap();
        let name = name.to_str().unwrap();
        if allowed.iter().any(|place| name.starts_with(place)) {
            continue;
        }
        let source = fs::read_to_string(&file).unwrap();
        for (index, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let place = format!("{directory}/{name}:{}", index + 1);
            assert!(!code.contains(text), "{place} names {text:?}");
        }
    }
}

#[test]
fn each_thing_from_outside_has_its_one_place() {
    let reqwest = ["transport/mod.rs", "transport/reqwest.rs"];
    let (client, server) = ("tablesdk/src", "tablesdk-server/src");
    for (directory, text, allowed) in [
        (client, "reqwest::", &reqwest[..]),
        (client, "SystemTime::now", &["transport/clock.rs"]),
        (client, "azure_core", &["credential/identity.rs"]),
        (
            client,
            "sleep",
            &[
                "action/bulk/rate.rs",
                "action/bulk/turns.rs",
                "patterns/lease/",
                "pipeline/",
            ],
        ),
        ("tablesdk-cli/src", "azure_identity", &["account/entra.rs"]),
        (server, "hyper::", &["http/", "server/"]),
        (server, "tokio::net", &["http/", "server/"]),
        (server, "SystemTime::now", &["time/clock.rs"]),
    ] {
        assert_named_only_in(directory, text, allowed);
    }
}

#[test]
fn an_operation_has_the_same_name_in_every_layer() {
    let names = |directory: &str| {
        let mut files = sources(directory);
        files.retain(|file| file.parent() == Some(&root().join(directory)));
        let names = files.iter().map(|file| file.file_stem().unwrap());
        let names = names.map(|name| name.to_str().unwrap().to_owned());
        let mut names: Vec<_> = names.filter(|name| name.contains('_')).collect();
        names.sort();
        names
    };
    let protocol = names("tablesdk-protocol/src/operation");
    assert!(protocol.len() >= 12, "{protocol:?}");
    assert_eq!(names("tablesdk-server/src/service/handler"), protocol);
    // The client does not have all of them yet.
    let actions = names("tablesdk/src/action");
    assert!(actions.len() >= 8, "{actions:?}");
    for name in actions {
        assert!(protocol.contains(&name), "{name}");
    }
}

/// The blocks of Rust in a Markdown file.
fn rust_blocks(name: &str) -> Vec<String> {
    let text = read(name);
    let starts = text.split("\n```rust\n").skip(1);
    starts
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_readmes_show_the_first_program() {
    let source = read("examples/first_program.rs");
    let (comment, source) = source.split_once("\n\n").unwrap();
    assert!(comment.starts_with("//!"));
    let (program, test) = source.split_once("\n#[cfg(test)]\n").unwrap();
    let (program, test) = (program.to_owned(), format!("#[cfg(test)]\n{test}"));
    assert_eq!(rust_blocks("README.md"), [program.clone(), test]);
    assert_eq!(rust_blocks("tablesdk/README.md"), [program]);
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for directory in [
        "tablesdk/src",
        "tablesdk-cli/src",
        "tablesdk-derive/src",
        "tablesdk-protocol/src",
        "tablesdk-server/src",
    ] {
        for file in sources(directory) {
            let source = fs::read_to_string(&file).unwrap();
            let opens = source.starts_with("//!") || source.starts_with("#![doc");
            assert!(opens, "{} does not open with //!", file.display());
        }
    }
}
