//! Runs the compiler on one file, and brings its messages into a form that depends only on that
//! file and our code.
//!
//! It takes the libraries that cargo has built for the test. The usual crate for such tests builds
//! all dependencies a second time, which took more than half of the time of all tests.

use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn version() -> String {
    let output = rustc().arg("--version").output();
    let output = output.expect("the compiler of this test is still there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks a program, and returns the messages.
pub(crate) fn check(file: &Path) -> String {
    run(file, "metadata").0
}

/// Builds a program, and returns the messages and the program.
pub(crate) fn build(file: &Path) -> (String, PathBuf) {
    run(file, "link")
}

fn run(file: &Path, emit: &str) -> (String, PathBuf) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("derive");
    fs::create_dir_all(&directory).expect("files can be written below the target directory");
    let output = directory.join(file.file_stem().unwrap_or_default());
    let output = output.with_extension(EXE_EXTENSION);
    // Relative to the workspace and with slashes, as the messages are to show it.
    let file = file.strip_prefix(workspace()).unwrap_or(file);
    let file = file.to_string_lossy().replace('\\', "/");
    let result = rustc()
        .current_dir(workspace())
        .args(["--edition=2024", "--diagnostic-width=140", "--color=never"])
        .args(["--emit", emit])
        .args(tablesdk_rustc_args::library_options!())
        .arg("-o")
        .arg(&output)
        .arg(&file)
        .output()
        .expect("the compiler of this test is still there");
    let messages = String::from_utf8_lossy(&result.stderr);
    (normalized(&messages, &file), output)
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn workspace() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests lie in the workspace")
}

/// The messages without what changes with unrelated edits: other files are named, but of their
/// lines only a comment at the end is shown, which is a hint, and the margin with the line numbers
/// has a fixed width.
fn normalized(messages: &str, file: &str) -> String {
    let mut normalized = String::new();
    let mut margin = 0;
    let mut in_the_file = true;
    for line in messages.lines().filter(|line| !is_left_out(line)) {
        let text = line.trim_start();
        if let Some((arrow @ ("-->" | ":::"), place)) = text.split_once(' ') {
            margin = line.len() - text.len();
            let place = place.replace('\\', "/");
            let path = place.split(':').next().unwrap_or_default();
            in_the_file = path == file;
            if in_the_file {
                normalized += &format!("  {arrow} {place}\n");
            } else if let Some((_, path)) = path.split_once("/library/") {
                normalized += &format!("  {arrow} $RUST/{path}\n");
            } else {
                normalized += &format!("  {arrow} {path}\n");
            }
            continue;
        }
        let is_number = |text: &str| text.chars().all(|c| c == ' ' || c.is_ascii_digit());
        match line.split_at_checked(margin) {
            Some((number, rest)) if margin > 0 && is_number(number) => {
                let number = number.trim();
                if in_the_file || (number.is_empty() && !rest.starts_with(" |")) {
                    normalized += &format!("{number:>2}{rest}\n");
                } else if let Some((_, hint)) = rest.split_once(" // ") {
                    normalized += &format!("   | // {hint}\n");
                }
            }
            _ if line.starts_with("...") => {
                if in_the_file {
                    normalized += &format!("{line}\n");
                }
            }
            _ => {
                // A suggestion without an arrow is about the file.
                in_the_file = true;
                // Whether a path begins with our crate depends on the other crates of the build.
                let line = line.replace("a bound in `tablesdk::", "a bound in `");
                normalized += &format!("{line}\n");
            }
        }
    }
    while normalized.ends_with("\n\n") {
        normalized.pop();
    }
    normalized
}

/// Returns true if a line is a summary, a path of an installation, or a number of types.
fn is_left_out(line: &str) -> bool {
    let starts = [
        "error: aborting",
        "Some errors have",
        "For more information",
        "= note: the full name for the type has been written to",
        "= note: consider using `--verbose`",
    ];
    let text = line.trim_start();
    starts.iter().any(|start| text.starts_with(start))
        || (text.starts_with("and ") && text.ends_with(" others"))
}
