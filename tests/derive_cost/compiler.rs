//! Runs the compiler on a source, against libraries that cargo has built once.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What the compiler is to make.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// What `cargo check` makes of a library.
    Metadata,
    /// What `cargo build` makes of it.
    Library,
}

/// Seconds.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) passed: f64,
    /// NaN if the processor time is not known.
    pub(crate) processor: f64,
}

impl Cost {
    pub(crate) fn median(costs: &[Self]) -> Self {
        let median = |seconds: fn(&Self) -> f64| {
            let mut seconds: Vec<_> = costs.iter().map(seconds).collect();
            seconds.sort_by(f64::total_cmp);
            seconds[seconds.len() / 2]
        };
        Self {
            passed: median(|cost| cost.passed),
            processor: median(|cost| cost.processor),
        }
    }

    pub(crate) fn beyond(self, less: Self) -> Self {
        Self {
            passed: self.passed - less.passed,
            processor: self.processor - less.processor,
        }
    }
}

pub(crate) struct Compiler {
    folder: PathBuf,
    /// Options that name the libraries.
    libraries: Vec<String>,
}

/// A package that needs what the sources do, with the features that users have by default.
fn manifest(workspace: &Path) -> String {
    let tablesdk = workspace.join("tablesdk");
    let tablesdk = tablesdk.display();
    format!(
        r#"
[package]
name = "derive-cost"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]

[lib]
path = "empty.rs"

[dependencies]
tablesdk = {{ path = '{tablesdk}' }}
serde = {{ version = "1", features = ["derive"] }}
serde_json = "1"
"#
    )
}

impl Compiler {
    /// Builds the libraries.
    pub(crate) fn prepare(workspace: &Path, target: &Path) -> Result<Self, Box<dyn Error>> {
        let folder = target.join("derive_cost");
        fs::create_dir_all(&folder)?;
        let folder = folder.canonicalize()?;
        fs::write(folder.join("Cargo.toml"), manifest(workspace))?;
        fs::write(folder.join("empty.rs"), "")?;
        // The versions of the workspace, which are there already.
        fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--message-format", "json", "--target-dir"])
            .arg(target)
            .current_dir(&folder)
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err("the libraries could not be built".into());
        }
        let mut libraries = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            let name = message["target"]["name"].as_str().unwrap_or_default();
            if !["tablesdk", "serde", "serde_json"].contains(&name) {
                continue;
            }
            let files = message["filenames"].as_array().into_iter().flatten();
            let mut files = files.filter_map(serde_json::Value::as_str);
            let Some(file) = files.find(|file| {
                Path::new(file)
                    .extension()
                    .is_some_and(|extension| extension == "rlib")
            }) else {
                continue;
            };
            let parent = Path::new(file).parent().ok_or("a file without a folder")?;
            let needed = if parent.ends_with("deps") {
                parent.to_owned()
            } else {
                parent.join("deps")
            };
            libraries.push(format!("--extern={name}={file}"));
            libraries.push(format!("-Ldependency={}", needed.display()));
        }
        if libraries.len() != 6 {
            return Err(
                format!("cargo did not tell where the libraries are: {libraries:?}").into(),
            );
        }
        Ok(Self { folder, libraries })
    }

    pub(crate) fn compile(&self, source: &str, goal: Goal) -> Result<Cost, Box<dyn Error>> {
        let file = self.folder.join("structs.rs");
        fs::write(&file, source)?;
        let emit = match goal {
            Goal::Metadata => "--emit=metadata",
            Goal::Library => "--emit=metadata,link",
        };
        let before = processor_time_of_children();
        let start = Instant::now();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let status = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=lib", "--crate-name=structs"])
            .args(["-Cdebuginfo=2", "-Cembed-bitcode=no", emit])
            .args(&self.libraries)
            .arg("--out-dir")
            .arg(&self.folder)
            .arg(&file)
            .status()?;
        let passed = start.elapsed().as_secs_f64();
        if !status.success() {
            return Err(format!("{} does not compile", file.display()).into());
        }
        let processor = match (before, processor_time_of_children()) {
            (Some(before), Some(after)) => after - before,
            _ => f64::NAN,
        };
        Ok(Cost { passed, processor })
    }
}

/// The processor time, in seconds, of all programs that this one has run, from Linux's `/proc`; `None` if it cannot be read.
fn processor_time_of_children() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may have spaces, and ends in a parenthesis. The fields are `cutime` and `cstime`, in ticks of 10 ms.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / 100.0)
}
