//! Runs the program to its end.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::STRING;

/// Runs the program in a directory, with these environment variables alone and this input. Returns
/// the exit code, standard output, and standard error.
pub(crate) async fn run_in(
    directory: &Path,
    words: &[&str],
    variables: &[(&str, &str)],
    input: impl Into<Vec<u8>>,
) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
    command.current_dir(directory).env_clear().args(words);
    command.envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let input = input.into();
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        // The program may end before it has read all.
        let _ = writer.join().unwrap();
        output
    });
    let Output {
        status,
        stdout,
        stderr,
    } = ended.await.unwrap();
    let [out, errors] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    (status.code().unwrap(), out, errors)
}

/// Runs the program in a directory, without input.
pub(crate) async fn run_with(
    directory: &Path,
    words: &[&str],
    variables: &[(&str, &str)],
) -> (i32, String, String) {
    run_in(directory, words, variables, "").await
}

/// Runs the program with an account.
pub(crate) async fn run(words: &[&str], account: &str) -> (i32, String, String) {
    run_with(Path::new("."), words, &[(STRING, account)]).await
}
