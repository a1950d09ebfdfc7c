//! A process that runs a foreign client: each request is a line of JSON, and so is each response.
//! This module knows the programs of the processes and where they are installed, but not which
//! values are expected.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use harness::Subject;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tablesdk::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

use crate::form::{Form, Properties};
use crate::{Client, Mode};

pub(crate) struct Child {
    _process: tokio::process::Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

pub(crate) enum Answer {
    Done,
    Properties(Properties),
    /// By the server: its status and code. Or by the client, without a status.
    Refused(u16, Option<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    properties: Option<Vec<(String, String, String)>>,
    refused: Option<(u16, Option<String>)>,
    failed: Option<String>,
}

impl Client {
    fn command(self) -> Command {
        match self {
            Self::Java => {
                let java = interop().join("java");
                let (classes, libraries) = (java.join("classes"), java.join("lib/*"));
                let path = format!("{}:{}", classes.display(), libraries.display());
                let mut command = Command::new("java");
                command.arg("-cp").arg(path).arg("Child");
                command
            }
            Self::Python => python("child.py"),
            Self::JavaScript => {
                let mut command = Command::new("node");
                command.arg(programs().join("child.mjs"));
                command.env("NODE_PATH", interop().join("node/node_modules"));
                command
            }
            Self::Go => Command::new(interop().join("go/child")),
        }
    }

    /// `tests/interop/install.sh` leaves a file behind when it is done.
    fn assert_installed(self) {
        let name = match self {
            Self::Java => "java",
            Self::Python => "python",
            Self::JavaScript => "node",
            Self::Go => "go",
        };
        let installed = interop().join(name).join(".installed");
        assert!(
            installed.exists(),
            "{} is missing: tests/interop/install.sh installs the client",
            installed.display()
        );
    }
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign")
}

fn python(program: &str) -> Command {
    let mut command = Command::new(interop().join("python/bin/python"));
    command.arg(programs().join(program)).env("PYTHONUTF8", "1");
    command
}

/// Runs a program that uses the Python client, to its end.
pub(crate) async fn run_python(program: &str, subject: &Subject) {
    run_python_with(program, &[&subject.server().connection_string()]).await;
}

/// The same with these arguments.
pub(crate) async fn run_python_with(program: &str, arguments: &[&str]) {
    Client::Python.assert_installed();
    let status = python(program).args(arguments).kill_on_drop(true).status();
    // A process that hangs fails the test and does not hold it up.
    let status = tokio::time::timeout(Duration::from_secs(60), status).await;
    let status = status.expect("the program ends").unwrap();
    assert!(status.success(), "{program}: {status}");
}

fn interop() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    workspace.join(target).join("interop")
}

impl Child {
    pub(crate) fn start(client: Client, subject: &Subject) -> Self {
        client.assert_installed();
        let mut process = client
            .command()
            .arg(subject.server().connection_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{client:?} does not start: {error}"));
        let input = process.stdin.take().expect("it is piped");
        let output = process.stdout.take().expect("it is piped");
        Self {
            _process: process,
            input,
            output: BufReader::new(output).lines(),
        }
    }

    pub(crate) async fn write(
        &mut self,
        mode: Mode,
        row: &str,
        properties: &[(String, Option<Value>)],
    ) -> Answer {
        let properties = properties.iter().map(|(name, value)| {
            let form = value.as_ref().map(Form::of);
            let form = form.map(|form| (form.edm_type, form.text)).unzip();
            json!([name, form.0, form.1])
        });
        let properties: Json = properties.collect();
        let write =
            json!({"do": "write", "mode": mode.name(), "row": row, "properties": properties});
        self.asked(write).await
    }

    pub(crate) async fn read(&mut self, mode: Mode, row: &str) -> Answer {
        let read = json!({"do": "read", "mode": mode.name(), "row": row});
        self.asked(read).await
    }

    pub(crate) async fn copy(&mut self, mode: Mode, row: &str, to: &str) -> Answer {
        let copy = json!({"do": "copy", "mode": mode.name(), "row": row, "to": to});
        self.asked(copy).await
    }

    async fn asked(&mut self, mut request: Json) -> Answer {
        request["table"] = "Tests".into();
        let line = format!("{request}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
        // A process that hangs fails the test and does not hold it up.
        let reply = tokio::time::timeout(Duration::from_secs(60), self.output.next_line()).await;
        let reply = reply.unwrap_or_else(|_| panic!("no answer to {line:.200}"));
        let reply = reply.unwrap().expect("the process goes on");
        let reply: Reply = serde_json::from_str(&reply).unwrap();
        if let Some(failed) = reply.failed {
            return Answer::Refused(0, Some(failed));
        }
        if let Some((status, code)) = reply.refused {
            return Answer::Refused(status, code);
        }
        let Some(properties) = reply.properties else {
            return Answer::Done;
        };
        let properties = properties.into_iter();
        let properties =
            properties.map(|(name, edm_type, text)| (name, Form::told(&edm_type, &text)));
        Answer::Properties(properties.collect())
    }
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Typed => "typed",
        }
    }
}
