//! The subcommands check, backup and restore: for the data directory of a stopped server, and the
//! first two for a running server.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tablesdk_server::{DataDirectory, Progress};

use super::options::{Command, Source};
use super::progress;

/// Runs a subcommand. An error ends the program with exit code 1.
pub(crate) fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Check { source } => match source.data {
            Some(data) => check(&DataDirectory::new(data)),
            None => check_server(admin_port(&source)),
        },
        Command::Backup {
            source,
            force,
            file,
        } => back_up(&source, &file, force),
        Command::Restore { data, file } => restore(&DataDirectory::new(data), &file),
    }
}

fn check(directory: &DataDirectory) -> Result<(), Box<dyn Error>> {
    let bar = progress::records("checking");
    let report = directory.check(progress::show(&bar))?;
    drop(bar);
    for problem in &report.problems {
        say(problem)?;
    }
    if !report.problems.is_empty() {
        return Err(format!("{} is damaged", directory.path().display()).into());
    }
    say(&format!(
        "{} is intact: {} tables, {} entities",
        directory.path().display(),
        report.tables,
        report.entities
    ))
}

/// Succeeds if the server responds and its storage takes writes.
fn check_server(port: u16) -> Result<(), Box<dyn Error>> {
    let response = request(port, "GET /ready", READY_WAIT_MAX)?;
    let address = response.address;
    match response.into_body() {
        Ok(_) => say(&format!("the server on {address} is ready")),
        Err(reason) => Err(format!("the server on {address} is not ready: {reason}").into()),
    }
}

fn admin_port(source: &Source) -> u16 {
    source.admin_port.expect("clap requires one of both")
}

fn back_up(source: &Source, file: &Path, replaces: bool) -> Result<(), Box<dyn Error>> {
    if is_standard(file) {
        let records = write_backup(source, &mut io::stdout().lock())?;
        writeln!(io::stderr(), "the backup contains {records} records")?;
        return Ok(());
    }
    let records = write_whole(file, replaces, |to| write_backup(source, to))?;
    say(&format!(
        "{} is a backup of {records} records",
        file.display()
    ))
}

/// Creates a file that only its owner may read, because it contains tables.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a file that gets its name only when it is complete.
fn write_whole<T>(
    file: &Path,
    replaces: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    if file.exists() && !replaces {
        let shown = file.display();
        return Err(format!("{shown} already exists: choose another name, or use --force").into());
    }
    let draft = beside(file, ".partial");
    let written = (|| {
        let mut to = BufWriter::with_capacity(1 << 20, create_private(&draft)?);
        let written = write(&mut to)?;
        to.flush()?;
        to.get_ref().sync_all()?;
        fs::rename(&draft, file)?;
        Ok(written)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

fn write_backup(source: &Source, to: &mut impl Write) -> Result<u64, Box<dyn Error>> {
    let bar = progress::records("backing up");
    if let Some(directory) = &source.data {
        return Ok(DataDirectory::new(directory).backup(to, progress::show(&bar))?);
    }
    let response = request(admin_port(source), "POST /backup", RESPONSE_WAIT_MAX)?;
    let address = response.address;
    let from = response
        .into_body()
        .map_err(|reason| format!("the server on {address} refused the backup: {reason}"))?;
    // Everything that is verified is also written.
    let records = tablesdk_server::verify_backup(Tee { from, to }, progress::show(&bar));
    Ok(records.map_err(|error| format!("the server aborted the backup: {error}"))?)
}

/// The response of a server on this machine.
struct Response {
    address: SocketAddr,
    is_success: bool,
    body: BufReader<TcpStream>,
}

impl Response {
    /// The body at its start, or the reason of a refusal.
    fn into_body(self) -> Result<BufReader<TcpStream>, String> {
        if self.is_success {
            return Ok(self.body);
        }
        let mut text = String::new();
        match self.body.take(1000).read_to_string(&mut text) {
            Ok(_) => Err(text.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Sends a request without a body to the --admin-port of a server on this machine.
fn request(port: u16, method_and_path: &str, wait: Duration) -> Result<Response, Box<dyn Error>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, wait).map_err(|error| {
        format!(
            "no server responds on {address}: {error}; start the server with --admin-port {port}"
        )
    })?;
    stream.set_read_timeout(Some(wait))?;
    write!(
        stream,
        "{method_and_path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut body = BufReader::with_capacity(1 << 20, stream);
    let silent = |error| format!("the server on {address} sends no response: {error}");
    let mut status = String::new();
    body.read_line(&mut status).map_err(silent)?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if body.read_line(&mut line).map_err(silent)? == 0 {
            return Err(format!("the server on {address} is not a tablesdk-server").into());
        }
    }
    Ok(Response {
        address,
        is_success: status.split(' ').nth(1) == Some("200"),
        body,
    })
}

/// Writes to `to` everything that is read.
struct Tee<R, W> {
    from: R,
    to: W,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(buffer.get(..count).unwrap_or_default())?;
        Ok(count)
    }
}

fn restore(directory: &DataDirectory, file: &Path) -> Result<(), Box<dyn Error>> {
    let records = if is_standard(file) {
        let bar = progress::records("restoring");
        directory.restore(io::stdin().lock(), progress::show(&bar))?
    } else {
        let shown = file.display();
        let from = File::open(file).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let bar = progress::bytes("restoring", from.metadata()?.len());
        let from = BufReader::with_capacity(1 << 20, bar.wrap_read(from));
        let restored = directory.restore(from, |_: Progress| {});
        restored.map_err(|error| format!("{shown}: {error}"))?
    };
    say(&format!(
        "{} has {records} records: start a server with --data {0}",
        directory.path().display()
    ))
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn say(text: &str) -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// The time limit for the next part of a backup.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(60);

/// The time limit for a response about readiness, which waits for a database for up to 5 seconds.
const READY_WAIT_MAX: Duration = Duration::from_secs(10);
