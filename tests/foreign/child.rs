//! A process that runs a foreign client: each request is a line of JSON, and so is each response. This module knows the programs of
//! the processes and where they are installed, but not which values are expected.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

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
    /// The file that `tests/interop/install.sh` leaves behind when it is done.
    fn installed(self) -> PathBuf {
        interop().join(match self {
            Self::Java => "java/.installed",
            Self::Python => "python/.installed",
            Self::JavaScript => "node/.installed",
            Self::Go => "go/.installed",
        })
    }

    fn command(self) -> Command {
        match self {
            Self::Java => {
                let java = interop().join("java");
                let (classes, libraries) = (java.join("classes"), java.join("lib/*"));
                let mut command = Command::new("java");
                command
                    .arg("-cp")
                    .arg(format!("{}:{}", classes.display(), libraries.display()))
                    .arg("Child");
                command
            }
            Self::Python => python("child.py"),
            Self::JavaScript => {
                let mut command = Command::new("node");
                command
                    .arg(programs().join("child.mjs"))
                    .env("NODE_PATH", interop().join("node/node_modules"));
                command
            }
            Self::Go => Command::new(interop().join("go/child")),
        }
    }

    fn assert_installed(self) {
        let installed = self.installed();
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
pub(crate) async fn run_python(program: &str, connection_string: &str) {
    run_python_with(program, &[connection_string]).await;
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
    pub(crate) fn start(client: Client, connection_string: &str) -> Self {
        client.assert_installed();
        let mut process = client
            .command()
            .arg(connection_string)
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
        let properties: Vec<_> = properties
            .iter()
            .map(|(name, value)| match value.as_ref().map(Form::of) {
                Some(form) => json!([name, form.edm_type, form.text]),
                None => json!([name, null, null]),
            })
            .collect();
        self.asked(
            json!({"do": "write", "mode": mode.name(), "row": row, "properties": properties}),
        )
        .await
    }

    pub(crate) async fn read(&mut self, mode: Mode, row: &str) -> Answer {
        self.asked(json!({"do": "read", "mode": mode.name(), "row": row}))
            .await
    }

    pub(crate) async fn copy(&mut self, mode: Mode, row: &str, to: &str) -> Answer {
        self.asked(json!({"do": "copy", "mode": mode.name(), "row": row, "to": to}))
            .await
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
        match reply {
            Reply {
                failed: Some(failed),
                ..
            } => Answer::Refused(0, Some(failed)),
            Reply {
                refused: Some((status, code)),
                ..
            } => Answer::Refused(status, code),
            Reply {
                properties: Some(properties),
                ..
            } => {
                let properties = properties.into_iter();
                Answer::Properties(
                    properties
                        .map(|(name, edm_type, text)| (name, Form::told(&edm_type, &text)))
                        .collect(),
                )
            }
            _ => Answer::Done,
        }
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
