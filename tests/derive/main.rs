//! What the derive accepts, and what it says to those who make a mistake: one rule a file.

#[test]
fn good_structs_compile() {
    trybuild::TestCases::new().pass("derive/pass/*.rs");
}

/// The messages hold the compiler's own words, which change from version to version.
#[test]
fn each_mistake_has_its_message() {
    let compiler = std::process::Command::new("rustc")
        .arg("--version")
        .output()
        .unwrap();
    let compiler = String::from_utf8(compiler.stdout).unwrap();
    if !compiler.starts_with(&format!("rustc {PINNED} ")) {
        println!("SKIPPED: the messages are those of rustc {PINNED}, this is {compiler}");
        return;
    }
    trybuild::TestCases::new().compile_fail("derive/fail/*.rs");
}

const PINNED: &str = "1.95.0";
