//! The program as a separate process: its flags, its subcommands, and its shutdown on a signal.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and signs with the time of this machine"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use http::{HeaderMap, Method, Uri};
use tablesdk_protocol::auth::{Scheme, SharedKey, string_to_sign};
use tablesdk_protocol::{Endpoint, Timestamp};
use tokio_rustls::rustls;

/// The program; it ends with the test.
struct Program {
    child: Child,
    /// Keeps its standard output open.
    _stdout: BufReader<std::process::ChildStdout>,
    /// Reads its standard error, so that it never waits for room there.
    log: Option<std::thread::JoinHandle<String>>,
    key: SharedKey,
    address: String,
    /// Where operators reach it.
    admin: Option<String>,
}

impl Program {
    fn start(flags: &[&str]) -> Self {
        Self::start_and_read(flags, None, "")
    }

    /// With an account whose key it does not print.
    fn start_with_account(flags: &[&str], key: SharedKey) -> Self {
        Self::start_and_read(flags, Some(key), "")
    }

    fn start_and_read(flags: &[&str], key: Option<SharedKey>, accounts: &str) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"));
        Self::run(command, flags, key, accounts)
    }

    /// With no more open files than that.
    fn start_with_open_files(files: u32, flags: &[&str]) -> Self {
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        Self::start_in_shell(&script, flags)
    }

    /// By a script that executes its arguments.
    fn start_in_shell(script: &str, flags: &[&str]) -> Self {
        let mut command = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_tablesdk-server");
        command.args(["-c", script, program]);
        Self::run(command, flags, None, "")
    }

    fn run(mut command: Command, flags: &[&str], key: Option<SharedKey>, accounts: &str) -> Self {
        let mut child = command
            .args(["--port", "0", "--log", "info"])
            .args(flags)
            .env("TABLESDK_SERVER_ACCOUNTS", accounts)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let part = |name: &str| {
            let (_, rest) = line.split_once(name).unwrap();
            rest.split(';').next().unwrap().to_owned()
        };
        let admin = flags.contains(&"--admin-port").then(|| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line.trim().rsplit('/').next().unwrap().to_owned()
        });
        let (endpoint, key) = match key {
            Some(key) => (part("listens on "), key),
            None => {
                let key = SharedKey::new(part("AccountName="), &part("AccountKey="));
                (part("TableEndpoint="), key.unwrap())
            }
        };
        let endpoint: Endpoint = endpoint.trim().parse().unwrap();
        let authority = endpoint.as_str().split('/').nth(2).unwrap();
        Self {
            address: authority.to_owned(),
            admin,
            key,
            _stdout: stdout,
            log: Some(log),
            child,
        }
    }

    /// A connection with a request in flight: its body has begun, and the server waits for the
    /// rest.
    fn half_a_request(&self) -> TcpStream {
        let path = format!("/{}/Tables", self.key.account());
        let date = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
        let date = date.to_http_date();
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-date", date.parse().unwrap());
        let uri: Uri = path.parse().unwrap();
        let account = self.key.account();
        let text = string_to_sign(
            Scheme::SharedKeyLite,
            account,
            &Method::POST,
            &uri,
            &headers,
        );
        let signature = self.key.sign(&text);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nx-ms-date: {date}\r\nExpect: 100-continue\r\n\
             Authorization: SharedKeyLite {account}:{}\r\nContent-Length: 22\r\n\r\n",
            self.address,
            signature.expose()
        )
        .unwrap();
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"{").unwrap();
        stream
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// Returns once the signal has arrived: the port is closed then.
    fn is_stopping(&self) {
        while TcpStream::connect(&self.address).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Exit code, and what it said on standard error.
    fn ended(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let log = self.log.take().unwrap().join().unwrap();
        (status.code(), log)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A signed request, and the status and body of its answer.
fn ask(program: &Program, method: &str, path: &str, body: &str) -> (u16, String) {
    let request = signed(program, method, path, body);
    exchange(&program.address, &request)
}

fn signed(program: &Program, method: &str, path: &str, body: &str) -> String {
    let target = format!("/{}{path}", program.key.account());
    let date = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-ms-date", date.to_http_date().parse().unwrap());
    let text = string_to_sign(
        Scheme::SharedKeyLite,
        program.key.account(),
        &method.parse::<Method>().unwrap(),
        &target.parse::<Uri>().unwrap(),
        &headers,
    );
    let content_type = if path == "/$batch" {
        "multipart/mixed; boundary=b"
    } else {
        "application/json"
    };
    format!(
        "{method} {target} HTTP/1.0\r\nHost: {}\r\nx-ms-date: {}\r\nContent-Type: {content_type}\r\n\
         Authorization: SharedKeyLite {}:{}\r\nAccept: application/json;odata=nometadata\r\nContent-Length: {}\r\n\r\n{body}",
        program.address,
        date.to_http_date(),
        program.key.account(),
        program.key.sign(&text).expose(),
        body.len()
    )
}

fn exchange(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

/// Runs a subcommand: whether it went well, and what it said.
fn tool(words: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"));
    let output = command.args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Starts a server that does not serve: what it said.
fn refusal(flags: &[&str]) -> (bool, String) {
    let mut words = vec!["--port", "0"];
    words.extend(flags);
    tool(&words)
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// How many entities there are in pairs, each with the same number in both of its rows.
fn count_pairs(program: &Program) -> usize {
    let (status, body) = ask(program, "GET", "/people()", "");
    assert_eq!(status, 200, "{body}");
    let row_keys: Vec<_> = body
        .split("\"RowKey\":\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    for row_key in &row_keys {
        let (number, side) = row_key.split_once('-').unwrap();
        let other = format!("{number}-{}", if side == "a" { "b" } else { "a" });
        assert!(row_keys.contains(&&*other), "{other} is missing");
    }
    row_keys.len() / 2
}

#[test]
fn a_backup_under_load_is_one_moment_and_can_be_restored() {
    let place = tempfile::tempdir().unwrap();
    let (directory, restored) = (place.path().join("tables"), place.path().join("restored"));
    let backup = place.path().join("backup");
    let program = Program::start(&["--data", shown(&directory), "--admin-port", "0"]);
    let admin = program.admin.clone().unwrap();
    let port = admin.rsplit(':').next().unwrap();
    assert_eq!(
        ask(&program, "POST", "/Tables", r#"{"TableName":"people"}"#).0,
        201
    );
    // Pairs of rows, each in one batch.
    let write_pair = |number: usize| {
        let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
        for side in ["a", "b"] {
            let change = format!(
                "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 PUT /people(PartitionKey='p',RowKey='{number}-{side}') HTTP/1.1\r\n\
                 Content-Type: application/json\r\n\r\n{{\"n\":{number}}}\r\n"
            );
            body += &change;
        }
        body += "--c--\r\n\r\n--b--\r\n";
        let (status, answer) = ask(&program, "POST", "/$batch", &body);
        assert_eq!(status, 202, "{answer}");
        assert!(!answer.contains("odata.error"), "{answer}");
    };
    for number in 0..50 {
        write_pair(number);
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 50..400 {
                write_pair(number);
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        let words = ["backup", "--admin-port", port, shown(&backup)];
        let (is_well, text) = tool(&words);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(is_well && text.contains("is a backup of"), "{text}");
        let (is_well, text) = tool(&words);
        assert!(!is_well && text.contains("--force"), "{text}");
    });
    // While a server has the data directory open, a check is refused.
    let (is_well, text) = tool(&["check", "--data", shown(&directory)]);
    assert!(!is_well && text.contains("in use by process"), "{text}");
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));

    let (is_well, text) = tool(&["restore", shown(&backup), "--data", shown(&directory)]);
    assert!(!is_well && text.contains("not empty"), "{text}");
    let (is_well, text) = tool(&["restore", shown(&backup), "--data", shown(&restored)]);
    assert!(is_well, "{text}");
    for directory in [&directory, &restored] {
        let (is_well, text) = tool(&["check", "--data", shown(directory)]);
        assert!(is_well && text.contains("is intact: 1 tables"), "{text}");
    }
    let program = Program::start(&["--data", shown(&restored)]);
    assert!(count_pairs(&program) >= 50);
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));

    // Of a directory, it is the same; cut short, it is none.
    let again = place.path().join("again");
    let (is_well, text) = tool(&["backup", "--data", shown(&restored), shown(&again)]);
    assert!(is_well, "{text}");
    assert_eq!(
        std::fs::read(&again).unwrap(),
        std::fs::read(&backup).unwrap()
    );
    let bytes = std::fs::read(&again).unwrap();
    std::fs::write(&again, &bytes[..bytes.len() - 1]).unwrap();
    let none = place.path().join("none");
    let (is_well, text) = tool(&["restore", shown(&again), "--data", shown(&none)]);
    assert!(!is_well && text.contains("ends in the middle"), "{text}");
    assert!(!none.exists() && !place.path().join("none.restoring").exists());
}

/// Runs a subcommand with a umask that lets all users read its files, unless it sets a stricter
/// mode.
fn tool_under_umask_022(words: &[&str]) {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 022; exec \"$@\"", "sh"]);
    command
        .arg(env!("CARGO_BIN_EXE_tablesdk-server"))
        .args(words);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

/// Starts a server with a data directory, creates a table, and stops the server.
fn create_a_table(tables: &Path) {
    let program =
        Program::start_in_shell("umask 022; exec \"$0\" \"$@\"", &["--data", shown(tables)]);
    let body = r#"{"TableName":"people"}"#;
    assert_eq!(ask(&program, "POST", "/Tables", body).0, 201);
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_made_is_for_its_owner_alone() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (tables, restored) = (at("made/on/the/way/tables"), at("restored"));
    let backup = at("backup");
    create_a_table(&tables);
    tool_under_umask_022(&["backup", "--data", shown(&tables), shown(&backup)]);
    tool_under_umask_022(&["restore", shown(&backup), "--data", shown(&restored)]);

    assert_eq!(mode(&backup), 0o600);
    for directory in [&tables, &restored] {
        for name in ["", "records"] {
            assert_eq!(mode(&directory.join(name)), 0o700, "{name:?}");
        }
        for name in ["FORMAT", "LOCK", "WATERMARK"] {
            assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
        }
    }
    assert_eq!(mode(&at("made/on")), 0o700);
}

#[test]
fn a_directory_that_was_there_keeps_its_mode() {
    let place = tempfile::tempdir().unwrap();
    let (tables, restored) = (place.path().join("tables"), place.path().join("restored"));
    for directory in [&tables, &restored] {
        std::fs::create_dir(directory).unwrap();
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o750)).unwrap();
    }
    let backup = place.path().join("backup");
    create_a_table(&tables);
    tool_under_umask_022(&["backup", "--data", shown(&tables), shown(&backup)]);
    tool_under_umask_022(&["restore", shown(&backup), "--data", shown(&restored)]);
    for directory in [&tables, &restored] {
        assert_eq!(mode(directory), 0o750);
        assert_eq!(mode(&directory.join("records")), 0o700);
    }
}

#[test]
fn operators_are_told_and_web_pages_are_not() {
    let program = Program::start(&["--admin-port", "0"]);
    let admin = program.admin.clone().unwrap();
    ask(&program, "GET", "/Tables", "");
    let get = |path: &str, more: &str| {
        exchange(
            &admin,
            &format!("GET {path} HTTP/1.0\r\nHost: {admin}\r\n{more}\r\n"),
        )
    };
    assert_eq!(get("/health", ""), (200, "alive\n".to_owned()));
    assert_eq!(get("/ready", ""), (200, "ready\n".to_owned()));
    let (status, metrics) = get("/metrics", "");
    assert_eq!(status, 200);
    let line = r#"tablesdk_requests_total{operation="QueryTables",status="200"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
    assert_eq!(get("/backup", "").0, 405);
    assert_eq!(get("/", "").0, 404);
    assert_eq!(get("/metrics", "Origin: http://example.com\r\n").0, 403);
    let elsewhere = "GET /metrics HTTP/1.0\r\nHost: example.com\r\n\r\n";
    assert_eq!(exchange(&admin, elsewhere).0, 403);
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));
}

#[test]
fn check_reports_whether_a_server_is_ready() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("tables");
    let program = Program::start(&["--data", shown(&directory), "--admin-port", "0"]);
    let admin = program.admin.clone().unwrap();
    let check = ["check", "--admin-port", admin.rsplit(':').next().unwrap()];
    let ready = format!("the server on {admin} is ready\n");
    assert_eq!(tool(&check), (true, ready));

    // A storage that takes no writes.
    std::fs::rename(&directory, place.path().join("elsewhere")).unwrap();
    let refused = ask(&program, "POST", "/Tables", r#"{"TableName":"people"}"#);
    assert_eq!(refused.0, 500, "{}", refused.1);
    let (is_ready, text) = tool(&check);
    assert!(!is_ready);
    let reason = format!("the server on {admin} is not ready: nothing can be written: ");
    assert!(text.contains(&reason), "{text}");

    program.signal("TERM");
    program.ended();
    let (is_ready, text) = tool(&check);
    assert!(!is_ready);
    assert!(text.contains("no server responds on "), "{text}");
    assert!(!tool(&["check"]).0, "neither a directory nor a port");
}

#[test]
fn accounts_and_the_port_come_from_files_and_go_to_them() {
    let place = tempfile::tempdir().unwrap();
    let (accounts, port) = (place.path().join("accounts"), place.path().join("port"));
    std::fs::write(&accounts, "ours:c2VjcmV0\n").unwrap();
    let flags = [
        "--account-file",
        shown(&accounts),
        "--port-file",
        shown(&port),
    ];
    let program = Program::start_with_account(&flags, SharedKey::new("ours", "c2VjcmV0").unwrap());
    let text = std::fs::read_to_string(&port).unwrap();
    assert!(program.address.ends_with(&format!(":{}", text.trim())));
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
    program.signal("TERM");
    let (code, log) = program.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(!port.exists() && !log.contains("c2VjcmV0"), "{log}");

    let key = SharedKey::new("second", "c2VjcmV0").unwrap();
    let accounts = "first:b3RoZXI=,second:c2VjcmV0";
    let mut program = Program::start_and_read(&[], Some(key.clone()), accounts);
    program.key = SharedKey::new("first", "b3RoZXI=").unwrap();
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
    program.key = key;
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
}

#[test]
fn the_log_has_start_requests_and_stop_without_entity_keys_on_demand() {
    for flags in [&[][..], &["--log-without-entity-keys"]] {
        let flags = [&["--log-format", "json"], flags].concat();
        let program = Program::start(&flags);
        let (status, _) = ask(
            &program,
            "GET",
            "/people(PartitionKey='Ada',RowKey='1')",
            "",
        );
        assert_eq!(status, 404);
        program.signal("TERM");
        let (code, log) = program.ended();
        assert_eq!(code, Some(0), "{log}");
        let lines: Vec<_> = log.lines().collect();
        let [started, request, stopping, stopped] = lines.as_slice() else {
            panic!("{log}");
        };
        for (line, message) in [
            (started, "started"),
            (request, "responded"),
            (stopping, "stopping: no new connections"),
            (stopped, "stopped"),
        ] {
            let message = format!(r#""level":"INFO","fields":{{"message":"{message}""#);
            assert!(line.starts_with('{') && line.contains(&message), "{line}");
        }
        assert_eq!(request.contains("Ada"), flags.len() == 2, "{request}");
        let facts = r#""status":404,"code":"TableNotFound""#;
        assert!(request.contains(facts), "{request}");
    }
}

#[test]
fn silent_connections_shut_out_neither_clients_nor_the_store() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("tables");
    let program = Program::start_with_open_files(200, &["--data", shown(&data)]);
    let silent: Vec<_> = (0..300)
        .map(|_| TcpStream::connect(&program.address).unwrap())
        .collect();
    let table = r#"{"TableName":"people"}"#;
    assert_eq!(ask(&program, "POST", "/Tables", table).0, 201);
    for number in 0..20 {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{number}"}}"#);
        assert_eq!(ask(&program, "POST", "/people", &entity).0, 201);
    }
    drop(silent);
    assert_eq!(ask(&program, "GET", "/people()", "").0, 200);
    program.signal("TERM");
    let (code, log) = program.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("raise the limit of open files (ulimit -n)"),
        "{log}"
    );
}

#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let program = Program::start(&[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", program.child.id()));
    // Only Linux shows it.
    let Ok(limits) = limits else { return };
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut numbers = line.unwrap().split_whitespace().skip(3);
    let (soft, hard) = (numbers.next().unwrap(), numbers.next().unwrap());
    let number = |text: &str| text.parse().unwrap_or(u64::MAX);
    assert!(number(soft) >= number(hard).min(10_000), "{limits}");
}

/// A named pipe below that directory.
fn pipe(place: &Path) -> std::path::PathBuf {
    let path = place.join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

#[test]
fn accounts_are_read_from_a_pipe() {
    let place = tempfile::tempdir().unwrap();
    let pipe = pipe(place.path());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "ours:c2VjcmV0\n").unwrap()
    });
    let key = SharedKey::new("ours", "c2VjcmV0").unwrap();
    let program = Program::start_with_account(&["--account-file", shown(&pipe)], key);
    writer.join().unwrap();
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
}

#[test]
fn a_signal_ends_the_program_while_it_waits_for_a_pipe() {
    let place = tempfile::tempdir().unwrap();
    let pipe = pipe(place.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"))
        .args(["--port", "0", "--account-file", shown(&pipe)])
        .spawn()
        .unwrap();
    // Returns once the program has opened the other end, and so waits for the first byte.
    let waiting = std::fs::File::options().write(true).open(&pipe).unwrap();
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(status.unwrap().success());
    assert!(!child.wait().unwrap().success());
    drop(waiting);
}

#[test]
fn https_is_spoken_with_a_certificate_and_http_is_not() {
    let place = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (place.path().join("cert.pem"), place.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let flags = ["--tls-cert", shown(&certificate), "--tls-key", shown(&key)];
    let program = Program::start(&flags);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    for versions in [[&rustls::version::TLS12], [&rustls::version::TLS13]] {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let name = "127.0.0.1".try_into().unwrap();
        let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(&program.address).unwrap();
        let mut stream = rustls::StreamOwned::new(client, stream);
        let request = signed(&program, "GET", "/Tables", "");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // Fails unless the server ends the TLS session with a `close_notify` before it closes the
        // connection.
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    }
    let mut stream = TcpStream::connect(&program.address).unwrap();
    stream
        .write_all(signed(&program, "GET", "/Tables", "").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    program.signal("TERM");
    let (code, log) = program.ended();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("operation=\"QueryTables\"").count(), 2, "{log}");
    assert_eq!(log.matches("unreadable").count(), 1, "{log}");

    let (is_well, text) = refusal(&["--tls-cert", shown(&key), "--tls-key", shown(&key)]);
    assert!(
        !is_well && text.contains("there is none in the text"),
        "{text}"
    );
    let (is_well, text) = refusal(&["--tls-cert", shown(&key)]);
    assert!(!is_well && text.contains("--tls-key"), "{text}");
    let missing = place.path().join("missing");
    let (is_well, text) = refusal(&["--tls-cert", shown(&missing), "--tls-key", shown(&key)]);
    assert!(
        !is_well && text.contains("missing cannot be read"),
        "{text}"
    );
}

#[test]
fn a_directory_is_refused_to_a_second_server_and_to_one_of_another_format() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("tables");
    let program = Program::start(&["--data", shown(&directory)]);
    let (is_well, text) = refusal(&["--data", shown(&directory)]);
    let holder = format!(
        "{} is in use by process {}",
        shown(&directory),
        program.child.id()
    );
    assert!(!is_well && text.contains(&holder), "{text}");
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));
    std::fs::write(directory.join("FORMAT"), "tablesdk-server data, format 9\n").unwrap();
    let (is_well, text) = refusal(&["--data", shown(&directory)]);
    assert!(!is_well && text.contains("has format \"9\""), "{text}");
    let (is_well, text) = refusal(&["--data", shown(place.path())]);
    assert!(
        !is_well && text.contains("not empty, and not one of this server"),
        "{text}"
    );
}

#[test]
fn others_are_not_served_with_the_key_that_everybody_knows() {
    let (is_well, text) = refusal(&["--host", "0.0.0.0"]);
    assert!(
        !is_well && text.contains("--allow-well-known-key"),
        "{text}"
    );
    let (is_well, text) = refusal(&["--host", "0.0.0.0", "--account", "ours:n o"]);
    assert!(
        !is_well && text.contains("is not base64") && !text.contains("n o"),
        "{text}"
    );
    let key = SharedKey::new("ours", "c2VjcmV0").unwrap();
    let flags = [
        "--host",
        "0.0.0.0",
        "--account",
        "other:b3RoZXI=",
        "--account",
        "ours:c2VjcmV0",
    ];
    let mut program =
        Program::start_with_account(&flags, SharedKey::new("other", "b3RoZXI=").unwrap());
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
    program.key = key;
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));
}

#[test]
fn any_token_is_accepted_on_demand_and_for_this_machine_alone() {
    let ask_with_token = |flags: &[&str]| {
        let program = Program::start(flags);
        let (address, account) = (&program.address, program.key.account());
        let request = format!(
            "GET /{account}/Tables HTTP/1.0\r\nHost: {address}\r\nx-ms-version: 2020-12-06\r\n\
             Authorization: Bearer of.nobody\r\n\r\n"
        );
        let status = exchange(address, &request).0;
        // The keys of accounts still count.
        assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
        program.signal("TERM");
        let (code, log) = program.ended();
        assert_eq!(code, Some(0));
        assert!(!log.contains("of.nobody"), "{log}");
        status
    };
    assert_eq!(ask_with_token(&["--accept-any-token"]), 200);
    assert_eq!(ask_with_token(&[]), 401);
    let own = ["--accept-any-token", "--account", "ours:c2VjcmV0"];
    for host in ["0.0.0.0", "::"] {
        let (is_well, text) =
            refusal(&[&own[..], &["--host", host, "--allow-well-known-key"]].concat());
        assert!(!is_well && text.contains("--accept-any-token"), "{text}");
    }
}

#[test]
fn one_signal_lets_requests_be_answered() {
    let program = Program::start(&[]);
    let mut stream = program.half_a_request();
    program.signal("TERM");
    program.is_stopping();
    stream.write_all(br#""TableName":"people"}"#).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 4"),
        "no type was given: {answer}"
    );
    let (code, log) = program.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains(r#"method="POST""#), "{log}");
}

#[test]
fn requests_are_cut_off_after_the_grace() {
    let program = Program::start(&["--shutdown-grace", "0"]);
    let mut stream = program.half_a_request();
    program.signal("INT");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let (code, log) = program.ended();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("1 connections were cut off"), "{log}");
    assert!(log.contains("abandoned"), "{log}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // Else the test would last an hour.
    let program = Program::start(&["--shutdown-grace", "3600"]);
    let _under_way = program.half_a_request();
    program.signal("TERM");
    program.is_stopping();
    program.signal("INT");
    let (code, log) = program.ended();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("second stop signal"), "{log}");
}

#[test]
fn the_end_of_standard_input_stops_it_on_request() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"));
    command.stdin(Stdio::piped());
    let mut program = Program::run(command, &["--exit-with-stdin"], None, "");
    assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
    drop(program.child.stdin.take());
    let (code, log) = program.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopped"), "{log}");
}

#[test]
fn the_flavor_decides_what_clients_see() {
    for (flavor, code) in [
        ("storage", "TableNotFound"),
        ("cosmos-db", "ResourceNotFound"),
    ] {
        let program = Program::start(&["--flavor", flavor]);
        let (status, body) = ask(&program, "GET", "/people()", "");
        assert_eq!(status, 404);
        assert!(body.contains(code), "{body}");
    }
}

#[test]
fn an_empty_standard_input_does_not_stop_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"));
    command.stdin(Stdio::null());
    let program = Program::run(command, &[], None, "");
    for _ in 0..20 {
        assert_eq!(ask(&program, "GET", "/Tables", "").0, 200);
    }
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));
}

/// The log is longer than what a pipe holds.
#[test]
fn a_log_that_is_not_read_keeps_no_request_waiting() {
    let place = tempfile::tempdir().unwrap();
    let log = pipe(place.path());
    // Opened for reading, too, because the program would wait for a reader otherwise.
    let script = format!("exec \"$0\" \"$@\" 2<>'{}'", shown(&log));
    let program = Program::start_in_shell(&script, &[]);
    let path = format!("/people(PartitionKey='{}',RowKey='1')", "x".repeat(500));
    for _ in 0..300 {
        assert_eq!(ask(&program, "GET", &path, "").0, 404);
    }
    program.signal("TERM");
    assert_eq!(program.ended().0, Some(0));
}

#[test]
fn options_of_one_server_are_refused_with_a_database() {
    const URL: &str = "postgres://u:secret@127.0.0.1:1/db";
    let with = |variable: Option<&str>, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"));
        if let Some(url) = variable {
            command.env("TABLESDK_SERVER_STORE", url);
        }
        let output = command.args(["--port", "0"]).args(words).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && !text.contains("secret"),
            "{text}"
        );
        text
    };
    for words in [
        ["--flavor", "azurite"],
        ["--durability", "relaxed"],
        ["--data", "tables"],
    ] {
        let text = with(None, &[&["--store", URL][..], &words].concat());
        assert!(text.contains("cannot be used with"), "{text}");
        let text = with(Some(URL), &words);
        assert!(text.contains(words[0]), "{text}");
    }
    let text = with(Some(""), &[]);
    assert!(text.contains("TABLESDK_SERVER_STORE is empty"), "{text}");
    let text = with(None, &["--store-connections", "4"]);
    assert!(text.contains("give its URL with --store"), "{text}");
    let text = with(None, &["--store", URL, "--store-connections", "0"]);
    assert!(text.contains("a number from 1 to"), "{text}");
}

#[test]
fn the_connection_string_has_the_services_that_the_options_name() {
    let started = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tablesdk-server"));
        command.env("TABLESDK_SERVER_ACCOUNTS", "");
        // It stops at once after its first line.
        command.args(["--port", "0", "--exit-with-stdin"]);
        let output = command.args(words).stdin(Stdio::null()).output().unwrap();
        let texts = [output.stdout, output.stderr];
        let [out, errors] = texts.map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), out, errors)
    };
    let services = [
        "--blob-endpoint",
        "azurite",
        "--queue-endpoint",
        "https://q.example/a/",
    ];
    let expected =
        "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;QueueEndpoint=https://q.example/a;";
    let own = ["--account", "ours:c2VjcmV0"];
    for words in [
        &services[..],
        &[&services[..], &["--test"]].concat(),
        &[&services[..], &["--test"], &own].concat(),
    ] {
        let (code, out, errors) = started(words);
        assert!(
            code == Some(0) && out.contains(expected),
            "{words:?}: {out} {errors}"
        );
    }
    let (_, out, _) = started(&[]);
    assert!(
        out.contains("TableEndpoint=") && !out.contains("BlobEndpoint"),
        "{out}"
    );
    let (code, out, errors) = started(&[&services[..], &own].concat());
    assert_eq!((code, &*out), (Some(1), ""), "{errors}");
    assert!(
        errors.contains("with accounts of your own none is printed"),
        "{errors}"
    );
}

#[test]
fn a_browser_gets_a_page_that_says_what_the_server_is() {
    let program = Program::start(&[]);
    let mut stream = TcpStream::connect(&program.address).unwrap();
    let address = &program.address;
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nAccept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\n\
         User-Agent: Mozilla/5.0\r\nSec-Fetch-Mode: navigate\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    let command = format!("tables ls --table-endpoint http://{address}/devstoreaccount1");
    assert!(response.contains(&command), "{response}");
    // The key is public, and is not there either.
    assert!(
        !response.contains(program.key.expose().as_str()),
        "{response}"
    );
}
