//! Runs the compiler on a source, with the libraries that cargo built for this program.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The output of the compiler.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// The output of `cargo check` for a library.
    Metadata,
    /// The output of `cargo build` for a library.
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
    directory: PathBuf,
}

impl Compiler {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("derive_cost");
        fs::create_dir_all(&directory)?;
        Ok(Self { directory })
    }

    pub(crate) fn compile(&self, source: &str, goal: Goal) -> Result<Cost, Box<dyn Error>> {
        let file = self.directory.join("structs.rs");
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
            .args(tablesdk_rustc_args::library_options!())
            .arg("--out-dir")
            .arg(&self.directory)
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

/// The processor time, in seconds, of all programs that this one has run, from Linux's `/proc`;
/// `None` if it cannot be read.
fn processor_time_of_children() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name may have spaces, and ends in a parenthesis. The fields are `cutime` and `cstime`, in
    // ticks of 10 ms.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / 100.0)
}
