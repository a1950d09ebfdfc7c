//! A package of its own, which is built from nothing or after a change, and the processor time of
//! each crate in it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::compiler;

/// The manifest and the source of a program.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    /// The dependencies. `ROOT` is the directory of this workspace.
    pub(crate) dependencies: &'static str,
    pub(crate) main: &'static str,
}

/// A package outside of this workspace, with the versions of its `Cargo.lock`.
pub(crate) struct Program {
    directory: PathBuf,
    main: &'static str,
}

impl Program {
    pub(crate) fn create(source: &Source) -> Result<Self, Box<dyn Error>> {
        let root = root()?;
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_cost");
        let directory = directory.join(source.name);
        fs::create_dir_all(directory.join("src"))?;
        let manifest = format!(
            "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{}",
            source.name, source.dependencies
        );
        let manifest = manifest.replace("ROOT", root.to_str().ok_or("a path that is no UTF-8")?);
        fs::write(directory.join("Cargo.toml"), manifest)?;
        fs::write(directory.join("src/main.rs"), source.main)?;
        // cargo removes what the program does not use, and keeps the other versions.
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
        let program = Self {
            directory,
            main: source.main,
        };
        // Adds what this workspace does not use, and downloads it.
        let mut fetch = cargo();
        succeed(
            fetch
                .args(["fetch", "--quiet"])
                .current_dir(&program.directory),
        )?;
        Ok(program)
    }

    /// A command of cargo without a network, and with the default settings of a user.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        command
            .args(arguments)
            .arg("--offline")
            .current_dir(&self.directory);
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
        succeed(&mut self.cargo(arguments))
    }

    /// Which crates depend on which, for this platform: the name and version of each, and those of
    /// its dependencies. The first is the program.
    pub(crate) fn graph(&self) -> Result<(String, Graph), Box<dyn Error>> {
        let tree = [
            "tree",
            "--edges=normal,build",
            "--prefix=depth",
            "--no-dedupe",
        ];
        let output = self.cargo(&tree).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let mut graph = Graph::new();
        let mut path: Vec<String> = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let (depth, line) = line.split_at(digits);
            let name: Vec<_> = line.split(' ').take(2).collect();
            let name = name.join(" ");
            path.truncate(depth.parse()?);
            if let Some(parent) = path.last() {
                let dependencies = graph.entry(parent.clone()).or_default();
                dependencies.insert(name.clone());
            }
            graph.entry(name.clone()).or_default();
            path.push(name);
        }
        let program = path.into_iter().next();
        Ok((program.ok_or("a program without a name")?, graph))
    }

    /// The crates without the program itself.
    pub(crate) fn crates(&self) -> Result<BTreeSet<String>, Box<dyn Error>> {
        let (program, mut graph) = self.graph()?;
        graph.remove(&program);
        Ok(graph.into_keys().collect())
    }

    /// Builds it from nothing, as it is released. Returns seconds of processor time.
    pub(crate) fn release(&self) -> Result<f64, Box<dyn Error>> {
        self.clean()?;
        let before = compiler::processor_time_of_children()?;
        self.run(&["build", "--release", "--quiet", "--target-dir=target"])?;
        Ok(compiler::processor_time_of_children()? - before)
    }

    /// Builds the program and its test from nothing. Returns seconds on the clock.
    pub(crate) fn program_and_test(&self) -> Result<f64, Box<dyn Error>> {
        self.clean()?;
        let start = Instant::now();
        self.run(&["build", "--quiet", "--target-dir=target"])?;
        self.run(&["test", "--no-run", "--quiet", "--target-dir=target"])?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Changes a line of the program, and runs its test. Returns seconds on the clock.
    pub(crate) fn test_after_change(&self, number: usize) -> Result<f64, Box<dyn Error>> {
        let line = format!("{PRINT}{number}: ");
        let changed = self.main.replace(PRINT, &line);
        assert_ne!(changed, self.main, "the program prints a line");
        fs::write(self.directory.join("src/main.rs"), changed)?;
        let start = Instant::now();
        let test = ["test", "--quiet", "--target-dir=target"];
        succeed(self.cargo(&test).stdout(Stdio::null()))?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Builds the program and its test from nothing. Returns the seconds of processor time of all,
    /// and those of each crate.
    pub(crate) fn costs(&self) -> Result<(f64, BTreeMap<String, f64>), Box<dyn Error>> {
        self.clean()?;
        let log = self.directory.join("compilers");
        let before = compiler::processor_time_of_children()?;
        for arguments in [
            &["build", "--quiet", "--target-dir=target"][..],
            &["test", "--no-run", "--quiet", "--target-dir=target"],
        ] {
            let mut command = self.cargo(arguments);
            succeed(compiler::measured(&mut command, &log)?)?;
        }
        let all = compiler::processor_time_of_children()? - before;
        Ok((all, compiler::read(&log)?))
    }

    fn clean(&self) -> Result<(), Box<dyn Error>> {
        remove(&self.directory.join("target"))?;
        remove(&self.directory.join("compilers"))
    }
}

/// The dependencies of each crate.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Builds the quickstart of this repository from nothing. Returns seconds on the clock.
pub(crate) fn quickstart() -> Result<f64, Box<dyn Error>> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_cost/quickstart");
    remove(&target)?;
    let mut command = cargo();
    command
        .args([
            "build",
            "--quiet",
            "--locked",
            "--offline",
            "-p",
            "quickstart",
        ])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root()?);
    let start = Instant::now();
    succeed(&mut command)?;
    let seconds = start.elapsed().as_secs_f64();
    remove(&target)?;
    Ok(seconds)
}

/// How a line begins that a program prints.
const PRINT: &str = "println!(\"";

fn root() -> Result<PathBuf, Box<dyn Error>> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?)
}

fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    // Settings of this run are not those of a user.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PROFILE_") || text == "CARGO_INCREMENTAL" {
            command.env_remove(name);
        }
    }
    command
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    if command.status()?.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed").into())
}

fn remove(path: &Path) -> Result<(), Box<dyn Error>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(fs::remove_dir_all(path)?),
        Ok(_) => Ok(fs::remove_file(path)?),
        Err(_) => Ok(()),
    }
}
