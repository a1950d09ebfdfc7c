//! The cost of the crates in builds: of a program with the client, of the first program of
//! `README.md` with its test, and of the quickstart of this repository.
//!
//! Each program has a peer that does the same by hand. All are built outside of this workspace,
//! with the versions of its `Cargo.lock`, in turns and without a network. The processor time is
//! that of cargo and of all compilers that it runs.

mod compiler;
mod costs;
#[path = "../shared/machine.rs"]
mod machine;
mod program;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rows.rs"]
#[allow(dead_code, reason = "this program has no row of every kind")]
mod rows;

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;

use clap::{Arg, ArgAction};
use program::{Program, Source, quickstart};
use report::{command, report};
use rows::{Goal, Results, Row, row};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = compiler::wrapped() {
        return Ok(code);
    }
    let about = "Counts crates, and times clean builds and builds after a change.";
    let costs = Arg::new("costs")
        .long("costs")
        .action(ArgAction::SetTrue)
        .help("Only show the processor time that each dependency of the first program takes");
    let release = Arg::new("release")
        .long("release")
        .action(ArgAction::SetTrue)
        .help("Time the release build of a program with the client, too");
    let matches = command("build_cost", about, ("crates", "Only count the crates"))
        .args([costs, release])
        .get_matches();
    let first = Program::create(&FIRST)?;
    if matches.get_flag("costs") {
        println!("{}", costs::table(&first)?);
        return Ok(ExitCode::SUCCESS);
    }
    let first_by_hand = Program::create(&FIRST_BY_HAND)?;
    let client = Program::create(&CLIENT)?;
    let client_by_hand = Program::create(&CLIENT_BY_HAND)?;
    let mut results = Results::of(ROWS);
    for (row, ours, theirs) in [
        ("crates", &client, &client_by_hand),
        ("first/crates", &first, &first_by_hand),
    ] {
        let (ours, theirs) = (ours.crates()?, theirs.crates()?);
        for name in ours.difference(&theirs) {
            eprintln!("{row}: only in the program with our crates: {name}");
        }
        for name in theirs.difference(&ours) {
            eprintln!("{row}: only in the program by hand: {name}");
        }
        results.ratio(row, count(&ours), count(&theirs));
    }
    if !matches.get_flag("crates") {
        for run in 1..=RUNS {
            eprintln!("run {run} of {RUNS}");
            let (ours, theirs) = (first.program_and_test()?, first_by_hand.program_and_test()?);
            results.ratio("first/build", ours, theirs);
            // The first one after a build from nothing finds nothing to reuse.
            first.test_after_change(0)?;
            first_by_hand.test_after_change(0)?;
            let ours = first.test_after_change(run)?;
            results.figure("first/change", ours);
            results.ratio(
                "first/change/by-hand",
                ours,
                first_by_hand.test_after_change(run)?,
            );
            results.figure("quickstart", quickstart()?);
            if matches.get_flag("release") {
                results.ratio("build", client.release()?, client_by_hand.release()?);
            }
        }
    }
    report(&results, RUNS, matches.get_one("json"))?;
    Ok(ExitCode::SUCCESS)
}

fn count(crates: &BTreeSet<String>) -> f64 {
    u32::try_from(crates.len()).map_or(f64::NAN, f64::from)
}

const RUNS: usize = 3;

const CLIENT: Source = Source {
    name: "client",
    dependencies: r#"tablesdk = { path = "ROOT/tablesdk" }
tokio = { version = "1", features = ["macros", "rt"] }
"#,
    main: include_str!("programs/client.rs"),
};

/// The crates that a program without the client needs for the same: HTTP, TLS, JSON, a signature
/// and a date.
const CLIENT_BY_HAND: Source = Source {
    name: "client_by_hand",
    dependencies: r#"base64 = "0.23"
hmac = "0.13"
reqwest = { version = "0.13", default-features = false, features = ["rustls"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
sha2 = "0.11"
time = { version = "0.3", features = ["formatting", "macros"] }
tokio = { version = "1", features = ["macros", "rt"] }
"#,
    main: include_str!("programs/client_by_hand.rs"),
};

/// With the dependencies that `README.md` names.
const FIRST: Source = Source {
    name: "first",
    dependencies: r#"tablesdk = { path = "ROOT/tablesdk" }
tablesdk-server = { path = "ROOT/tablesdk-server", default-features = false }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
"#,
    main: include_str!("../../../examples/first_program.rs"),
};

const FIRST_BY_HAND: Source = Source {
    name: "first_by_hand",
    dependencies: r#"axum = "0.8"
base64 = "0.23"
hmac = "0.13"
reqwest = { version = "0.13", default-features = false, features = ["json", "query", "rustls"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
sha2 = "0.11"
time = { version = "0.3", features = ["formatting", "macros"] }
tokio = { version = "1", features = ["macros", "net", "rt-multi-thread"] }
"#,
    main: include_str!("programs/first_by_hand.rs"),
};

const BY_HAND: &str = "reqwest + serde by hand";
const BY_HAND_WITH_SERVER: &str = "reqwest, serde and axum by hand";
const CLOCK: &str = "seconds on the clock";

const ROWS: &[Row] = &[
    row(
        "crates",
        "crates of a program with the client",
        BY_HAND,
        "crates",
        Goal::None,
    ),
    row(
        "build",
        "clean release build of it",
        BY_HAND,
        "seconds of processor time",
        Goal::AtMost(1.1),
    ),
    row(
        "first/crates",
        "crates of the first program of the README",
        BY_HAND_WITH_SERVER,
        "crates",
        Goal::None,
    ),
    row(
        "first/build",
        "clean build of it and of its test",
        BY_HAND_WITH_SERVER,
        CLOCK,
        Goal::AtMost(1.15),
    ),
    row(
        "first/change",
        "`cargo test` of it after a change of one line",
        "–",
        CLOCK,
        Goal::AtMost(1.0),
    ),
    row(
        "first/change/by-hand",
        "`cargo test` of it after a change of one line",
        BY_HAND_WITH_SERVER,
        CLOCK,
        Goal::None,
    ),
    row(
        "quickstart",
        "clean build of the quickstart of this repository",
        "–",
        CLOCK,
        Goal::AtMost(60.0),
    ),
];
