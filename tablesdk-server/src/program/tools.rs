//! The subcommands check, backup and restore, for the data directory of a stopped server or for a running server.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use tablesdk_server::{DataFolder, Progress};

use super::bar::Bar;

/// The subcommands.
pub(crate) fn commands() -> [Command; 3] {
    [
        Command::new("check")
            .about("Read a data directory completely, and report damage")
            .long_about(CHECK)
            .arg(data("The data directory to check")),
        Command::new("backup")
            .about("Write all data to one file, from a server that runs or from a data directory")
            .long_about(BACKUP)
            .arg(data("The data directory of a stopped server").required(false))
            .arg(
                Arg::new("admin-port")
                    .long("admin-port")
                    .value_name("PORT")
                    .value_parser(value_parser!(u16).range(1..))
                    .help("The --admin-port of a running server on this machine"),
            )
            .group(
                ArgGroup::new("from")
                    .args(["data", "admin-port"])
                    .required(true),
            )
            .arg(
                Arg::new("force")
                    .long("force")
                    .action(ArgAction::SetTrue)
                    .help("Replace the file if it exists"),
            )
            .arg(file("The file to write, or - for standard output")),
        Command::new("restore")
            .about("Create a data directory from a backup")
            .long_about(RESTORE)
            .arg(data(
                "The data directory to create; it must not exist, or must be empty",
            ))
            .arg(file("The backup, or - for standard input")),
    ]
}

fn data(help: &'static str) -> Arg {
    Arg::new("data")
        .long("data")
        .value_name("DIRECTORY")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

fn file(help: &'static str) -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

/// Does what a subcommand says. An error is what makes the program end with 1.
pub(crate) fn run(name: &str, matches: &ArgMatches) -> Result<(), Box<dyn Error>> {
    let path = |name: &str| matches.try_get_one::<PathBuf>(name).ok().flatten();
    let folder = path("data").map(DataFolder::new);
    match (name, folder, path("file")) {
        ("check", Some(folder), _) => check(&folder),
        ("backup", folder, Some(file)) => {
            let from = match (folder, matches.get_one::<u16>("admin-port")) {
                (Some(folder), _) => From::Folder(folder),
                (None, Some(port)) => From::Server(*port),
                (None, None) => return Err("give --data or --admin-port".into()),
            };
            back_up(&from, file, matches.get_flag("force"))
        }
        ("restore", Some(folder), Some(file)) => restore(&folder, file),
        _ => Err(format!("there is no subcommand {name}").into()),
    }
}

fn check(folder: &DataFolder) -> Result<(), Box<dyn Error>> {
    let bar = Bar::records("checking");
    let report = folder.check(|progress| bar.show(progress))?;
    drop(bar);
    for note in &report.notes {
        say(note)?;
    }
    for problem in &report.problems {
        say(problem)?;
    }
    if !report.problems.is_empty() {
        return Err(format!("{} is damaged", folder.path().display()).into());
    }
    say(&format!(
        "{} is intact: {} tables, {} entities",
        folder.path().display(),
        report.tables,
        report.entities
    ))
}

/// Where a backup comes from.
enum From {
    Folder(DataFolder),
    Server(u16),
}

fn back_up(from: &From, file: &Path, replaces: bool) -> Result<(), Box<dyn Error>> {
    if is_standard(file) {
        let records = write_backup(from, &mut io::stdout().lock())?;
        writeln!(io::stderr(), "the backup contains {records} records")?;
        return Ok(());
    }
    let records = write_whole(file, replaces, |to| write_backup(from, to))?;
    say(&format!(
        "{} is a backup of {records} records",
        file.display()
    ))
}

/// Makes a file that only its owner may read: tables are in it.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a file that is there, under its name, as a whole or not at all.
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

fn write_backup(from: &From, to: &mut impl Write) -> Result<u64, Box<dyn Error>> {
    let bar = Bar::records("backing up");
    match from {
        From::Folder(folder) => Ok(folder.backup(to, |progress| bar.show(progress))?),
        From::Server(port) => {
            let mut answer = ask_for_backup(*port)?;
            // What is written is what was verified while it came.
            let tee = Tee {
                from: &mut answer,
                to,
            };
            let records = tablesdk_server::verify_backup(tee, |progress| bar.show(progress));
            Ok(records.map_err(|error| format!("the server aborted the backup: {error}"))?)
        }
    }
}

/// Asks a server on this machine for a backup. What is returned is its beginning.
fn ask_for_backup(port: u16) -> Result<BufReader<TcpStream>, Box<dyn Error>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect(address).map_err(|error| {
        format!(
            "no server responds on {address}: {error}; start the server with --admin-port {port}"
        )
    })?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    write!(
        stream,
        "POST /backup HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = BufReader::with_capacity(1 << 20, stream);
    let mut status = String::new();
    answer.read_line(&mut status)?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if answer.read_line(&mut line)? == 0 {
            return Err(format!("the server on {address} is not a tablesdk-server").into());
        }
    }
    if status.split(' ').nth(1) == Some("200") {
        return Ok(answer);
    }
    let mut text = String::new();
    answer.take(1000).read_to_string(&mut text)?;
    Err(format!(
        "the server on {address} refused the backup: {}",
        text.trim()
    )
    .into())
}

/// Hands on what is read.
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

fn restore(folder: &DataFolder, file: &Path) -> Result<(), Box<dyn Error>> {
    let records = if is_standard(file) {
        let bar = Bar::records("restoring");
        folder.restore(io::stdin().lock(), |progress| bar.show(progress))?
    } else {
        let shown = file.display();
        let from = File::open(file).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        let bar = Bar::bytes("restoring", from.metadata()?.len());
        let from = Counted {
            from: BufReader::with_capacity(1 << 20, from),
            bar: &bar,
        };
        let restored = folder.restore(from, |_: Progress| {});
        restored.map_err(|error| format!("{shown}: {error}"))?
    };
    say(&format!(
        "{} has {records} records: start a server with --data {0}",
        folder.path().display()
    ))
}

/// Shows how much was read.
struct Counted<'b, R> {
    from: R,
    bar: &'b Bar,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.bar.advance(u64::try_from(count).unwrap_or_default());
        Ok(count)
    }
}

fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn say(text: &str) -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// How long a server may take for the next part of a backup.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);

const CHECK: &str = "\
Read a data directory completely, and report damage

No server may have the data directory open. The command compares every file with its
checksum, reads every record, and compares data that is stored twice. It reports each
damage on one line, and exits with 1 if there is damage, else with 0. Incomplete
writes of a crash that were never acknowledged are not damage.";

const BACKUP: &str = "\
Write all data to one file, from a server that runs or from a data directory

The backup of a server that runs with --admin-port contains all data as of one moment;
the server continues to serve requests. The file gets its name only when it is
complete. `restore` creates a data directory from it, on a machine of any kind.

  tablesdk-server --data tables --admin-port 10012 &
  tablesdk-server backup --admin-port 10012 monday.backup";

const RESTORE: &str = "\
Create a data directory from a backup

The data directory gets its name only after the whole backup has been read, verified
and written. A truncated or damaged backup creates no data directory.

  tablesdk-server restore monday.backup --data tables
  tablesdk-server --data tables";
