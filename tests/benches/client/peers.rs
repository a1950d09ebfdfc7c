//! The other clients by name: programs that measure themselves against the same server of fixed
//! bytes, and print one line for each operation with its name and its microseconds of processor
//! time.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A client that is installed here.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    program: PathBuf,
    script: Option<PathBuf>,
    environment: Option<(&'static str, PathBuf)>,
}

impl Peer {
    /// Those that are installed. Prints how to get the others.
    pub(crate) fn installed() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
        let here = root.join("tests/benches/client");
        let python = target.join("interop/python/bin/python");
        let modules = target.join("interop/node/node_modules");
        let mut peers = Vec::new();
        if python.exists() {
            peers.push(Self {
                name: "python",
                program: python,
                script: Some(here.join("peer.py")),
                environment: None,
            });
        } else {
            eprintln!("SKIPPED: no Python client: run tests/interop/install.sh");
        }
        if modules.exists() {
            peers.push(Self {
                name: "javascript",
                program: "node".into(),
                script: Some(here.join("peer.mjs")),
                environment: Some(("NODE_PATH", modules)),
            });
        } else {
            eprintln!("SKIPPED: no JavaScript client: run tests/interop/install.sh");
        }
        let legacy = target.join("legacy-client/release/legacy-client");
        if legacy.exists() {
            peers.push(Self {
                name: "legacy",
                program: legacy,
                script: None,
                environment: None,
            });
        } else {
            eprintln!("SKIPPED: no legacy Rust client: run tests/benches/client/legacy/build.sh");
        }
        peers
    }

    /// Measures each operation: its name, and the microseconds of processor time that it needs.
    pub(crate) fn measure(
        &self,
        connection_string: &str,
    ) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
        let mut command = Command::new(&self.program);
        if let Some(script) = &self.script {
            command.arg(script);
        }
        if let Some((name, value)) = &self.environment {
            command.env(name, value);
        }
        let output = command.arg(connection_string).output()?;
        let text = String::from_utf8(output.stdout)?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the client for {} failed: {errors}", self.name).into());
        }
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        lines
            .map(|(name, micros)| Ok((name.to_owned(), micros.parse()?)))
            .collect()
    }
}
