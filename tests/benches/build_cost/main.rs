//! The cost of the client in a build of a program: the number of crates, and the time of a clean
//! release build, beside a program with reqwest, serde and the same TLS.
//!
//! Both programs read an entity. They have the versions of the workspace's `Cargo.lock`, and are
//! built in turns without a network. The processor time is that of cargo and of all compilers that
//! it runs.

#[path = "../shared/machine.rs"]
mod machine;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rows.rs"]
#[allow(dead_code, reason = "this program has no row of every kind")]
mod rows;

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use report::{command, report};
use rows::{Goal, Results, Row, row};

fn main() -> Result<(), Box<dyn Error>> {
    let matches = command(
        "build_cost",
        "Counts the crates of a program with the client, and times its clean release build.",
        ("crates", "Only count the crates"),
    )
    .get_matches();
    let ours = Program::create("ours", OURS, OURS_SOURCE)?;
    let floor = Program::create("floor", FLOOR, FLOOR_SOURCE)?;
    let mut results = Results::of(ROWS);
    let (own_crates, crates) = (ours.crates()?, floor.crates()?);
    for name in own_crates.difference(&crates) {
        eprintln!("only in the program with the client: {name}");
    }
    for name in crates.difference(&own_crates) {
        eprintln!("only in the program by hand: {name}");
    }
    let count = |crates: &BTreeSet<String>| u32::try_from(crates.len()).map(f64::from);
    results.figure("crates", count(&own_crates)?);
    results.cost("crates/floor", count(&own_crates)?, count(&crates)?);
    if !matches.get_flag("crates") {
        for run in 1..=RUNS {
            eprintln!("clean release builds: {run} of {RUNS}");
            results.ratio("build", ours.build()?, floor.build()?);
        }
    }
    report(&results, RUNS, matches.get_one("json"))
}

/// A package of its own.
struct Program(PathBuf);

impl Program {
    fn create(name: &str, dependencies: &str, source: &str) -> Result<Self, Box<dyn Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()?;
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("build_cost")
            .join(name);
        fs::create_dir_all(directory.join("src"))?;
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{dependencies}"
        );
        let manifest = manifest.replace("ROOT", root.to_str().ok_or("a path that is no UTF-8")?);
        fs::write(directory.join("Cargo.toml"), manifest)?;
        fs::write(directory.join("src/main.rs"), source)?;
        // cargo removes what the program does not use, and keeps the other versions.
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
        Ok(Self(directory))
    }

    fn cargo(&self, arguments: &[&str]) -> Process {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Process::new(cargo);
        command
            .args(arguments)
            .arg("--offline")
            .current_dir(&self.0);
        command
    }

    /// The crates that are compiled for this platform, without the program itself.
    fn crates(&self) -> Result<BTreeSet<String>, Box<dyn Error>> {
        let edges = [
            "tree",
            "-e",
            "normal,build",
            "--prefix",
            "none",
            "--no-dedupe",
        ];
        let output = self.cargo(&edges).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let lines = text.lines().skip(1).map(|line| {
            let mut words = line.split(' ');
            format!(
                "{} {}",
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default()
            )
        });
        Ok(lines.filter(|line| line.trim() != "").collect())
    }

    /// Builds it from nothing. Returns seconds of processor time.
    fn build(&self) -> Result<f64, Box<dyn Error>> {
        let target = self.0.join("target");
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        let before = processor_time_of_children()?;
        let mut build = self.cargo(&["build", "--release", "--quiet", "--target-dir"]);
        if !build.arg(&target).status()?.success() {
            return Err(format!("{} does not build", self.0.display()).into());
        }
        Ok(processor_time_of_children()? - before)
    }
}

/// The processor time, in seconds, of all programs that this one has run.
fn processor_time_of_children() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // The name may have spaces, and ends in a parenthesis. The fields are `cutime` and `cstime`, in
    // ticks of 10 ms.
    let (_, fields) = text.rsplit_once(')').ok_or("a malformed /proc/self/stat")?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut next = || fields.next().ok_or("a malformed /proc/self/stat");
    Ok((next()?.parse::<f64>()? + next()?.parse::<f64>()?) / 100.0)
}

const RUNS: usize = 3;

const OURS: &str = r#"tablesdk = { path = "ROOT/tablesdk" }
tokio = { version = "1", features = ["macros", "rt"] }
"#;

const OURS_SOURCE: &str = r#"use tablesdk::{TableEntity, TableServiceClient};

#[derive(Debug, TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    age: i32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> tablesdk::Result<()> {
    let table = TableServiceClient::from_env()?.table("people");
    let found = table.get(Employee::key("Sales", "1")).await?;
    println!("{found:?}");
    Ok(())
}
"#;

/// The crates that a program without the client needs for the same: HTTP, TLS, JSON, a signature
/// and a date.
const FLOOR: &str = r#"base64 = "0.23"
hmac = "0.13"
reqwest = { version = "0.13", default-features = false, features = ["rustls"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
sha2 = "0.11"
time = { version = "0.3", features = ["formatting", "macros"] }
tokio = { version = "1", features = ["macros", "rt"] }
"#;

const FLOOR_SOURCE: &str = r#"use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use time::macros::format_description;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(dead_code, reason = "it is printed")]
struct Employee {
    partition_key: String,
    row_key: String,
    age: i32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (account, key) = (std::env::var("ACCOUNT")?, std::env::var("KEY")?);
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let date = time::OffsetDateTime::now_utc().format(format)?;
    let path = format!("/people(PartitionKey='Sales',RowKey='1')");
    let mut mac = Hmac::<Sha256>::new_from_slice(&BASE64_STANDARD.decode(key)?)?;
    mac.update(format!("GET\n\n\n{date}\n/{account}{path}").as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    let response = reqwest::Client::new()
        .get(format!("https://{account}.table.core.windows.net{path}"))
        .header("Accept", "application/json;odata=nometadata")
        .header("Authorization", format!("SharedKey {account}:{signature}"))
        .header("x-ms-date", date)
        .header("x-ms-version", "2019-02-02")
        .send()
        .await?
        .error_for_status()?;
    let employee: Employee = serde_json::from_slice(&response.bytes().await?)?;
    println!("{employee:?}");
    Ok(())
}
"#;

const BY_HAND: &str = "reqwest + serde by hand";

const ROWS: &[Row] = &[
    row(
        "crates",
        "crates of a program with the client",
        "–",
        "crates",
        Goal::AtMost(110.0),
    ),
    row(
        "crates/floor",
        "crates of a program with the client",
        BY_HAND,
        "theirs / ours",
        Goal::None,
    ),
    row(
        "build",
        "clean release build of it",
        BY_HAND,
        "seconds of processor time",
        Goal::AtMost(1.1),
    ),
];
