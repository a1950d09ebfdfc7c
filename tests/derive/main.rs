//! The code that the derives accept, and the compiler's messages about mistakes: one theme per
//! file, one test per file.
//!
//! Each file is compiled alone, with the libraries that cargo built for this test. The files in
//! `pass` must compile without a message, and run. Those in `fail` must not compile: the messages
//! must be those of the `.stderr` file beside them.

mod compiler;

use std::path::{Path, PathBuf};
use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};

/// The messages differ from version to version.
const COMPILER: &str = "rustc 1.95.0";

fn main() {
    let arguments = Arguments::from_args();
    let other_compiler = !compiler::version().starts_with(COMPILER);
    let pass = files("pass").map(|file| Trial::test(name(&file), move || passes(&file)));
    let fail = files("fail").map(|file| {
        let trial = Trial::test(name(&file), move || has_its_messages(&file));
        if other_compiler {
            trial
                .with_kind(format!("needs {COMPILER}"))
                .with_ignored_flag(true)
        } else {
            trial
        }
    });
    libtest_mimic::run(&arguments, pass.chain(fail).collect()).exit();
}

fn passes(file: &Path) -> Result<(), Failed> {
    let (messages, program) = compiler::build(file);
    if !messages.is_empty() {
        return Err(messages.into());
    }
    let output = std::process::Command::new(program).output()?;
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr)?.into());
    }
    Ok(())
}

fn has_its_messages(file: &Path) -> Result<(), Failed> {
    let mut messages = compiler::check(file);
    if messages.is_empty() {
        // What a function asserts of its type parameter shows where a program calls it.
        (messages, _) = compiler::build(file);
    }
    if messages.is_empty() {
        return Err("it compiles".into());
    }
    let expected_in = file.with_extension("stderr");
    if env::var_os("TABLESDK_WRITE_MESSAGES").is_some() {
        fs::write(expected_in, messages)?;
        return Ok(());
    }
    let expected = fs::read_to_string(expected_in).unwrap_or_default();
    if messages != expected.replace("\r\n", "\n") {
        return Err(format!("expected:\n{expected}\nthe compiler's:\n{messages}").into());
    }
    Ok(())
}

/// `fail/union`
fn name(file: &Path) -> String {
    let name = file.strip_prefix(directory()).unwrap_or(file);
    name.with_extension("").display().to_string()
}

fn files(kind: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory().join(kind)).expect("the repository has the directory");
    let files = entries.map(|entry| entry.expect("its files can be listed").path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    files.sort();
    files.into_iter()
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("derive")
}
