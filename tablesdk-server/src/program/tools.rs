//! The subcommands: check, backup and restore, of the folder of a server that does not run, or of one that does.

use std::error::Error;
use std::fs::{self, File};
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
            .about("Read a folder to its last byte, and say what is damaged")
            .long_about(CHECK)
            .arg(data("The folder to check")),
        Command::new("backup")
            .about("Write everything to one file, while the server runs or not")
            .long_about(BACKUP)
            .arg(data("The folder of a server that does not run").required(false))
            .arg(
                Arg::new("admin-port")
                    .long("admin-port")
                    .value_name("PORT")
                    .value_parser(value_parser!(u16).range(1..))
                    .help("The --admin-port of a server that runs on this machine"),
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
                    .help("Replace the file if it is there"),
            )
            .arg(file("The file to write, or - for standard output")),
        Command::new("restore")
            .about("Make a folder from a backup")
            .long_about(RESTORE)
            .arg(data(
                "The folder to make; it must not be there, or be empty",
            ))
            .arg(file("The backup, or - for standard input")),
    ]
}

fn data(help: &'static str) -> Arg {
    Arg::new("data")
        .long("data")
        .value_name("FOLDER")
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
        _ => Err(format!("{name} is no subcommand").into()),
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
        "{} is sound: {} tables, {} entities",
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
        writeln!(io::stderr(), "{records} records are in the backup")?;
        return Ok(());
    }
    let shown = file.display();
    if file.exists() && !replaces {
        return Err(format!("{shown} is there already: choose another name, or --force").into());
    }
    // Under its name there is a whole backup or none.
    let mut draft = file.as_os_str().to_owned();
    draft.push(".partial");
    let draft = PathBuf::from(draft);
    let write = || {
        let mut to = BufWriter::with_capacity(1 << 20, File::create(&draft)?);
        let records = write_backup(from, &mut to)?;
        to.flush()?;
        to.get_ref().sync_all()?;
        fs::rename(&draft, file)?;
        Ok::<_, Box<dyn Error>>(records)
    };
    match write() {
        Ok(records) => say(&format!("{shown} is a backup of {records} records")),
        Err(error) => {
            let _ = fs::remove_file(&draft);
            Err(error)
        }
    }
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
            Ok(records.map_err(|error| format!("the server broke the backup off: {error}"))?)
        }
    }
}

/// Asks a server on this machine for a backup. What is returned is its beginning.
fn ask_for_backup(port: u16) -> Result<BufReader<TcpStream>, Box<dyn Error>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect(address).map_err(|error| {
        format!("no server answers on {address}: {error}; it must run with --admin-port {port}")
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
            return Err(format!("what answers on {address} is no server of this kind").into());
        }
    }
    if status.split(' ').nth(1) == Some("200") {
        return Ok(answer);
    }
    let mut text = String::new();
    answer.take(1000).read_to_string(&mut text)?;
    Err(format!("the server on {address} refuses: {}", text.trim()).into())
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
Read a folder to its last byte, and say what is damaged

No server may have the folder open. Every file is compared with its checksum, every
record is read, and what is stored twice is compared. What is damaged is named, one
line each, and the program ends with 1; with 0 for a sound folder. What a crash left
half written, and nobody was ever told of, is no damage.";

const BACKUP: &str = "\
Write everything to one file, while the server runs or not

Of a server that runs with --admin-port, the backup has everything as it was at one
moment, and requests are answered meanwhile. The file appears under its name once it
is whole. `restore` makes a folder of it, on a machine of any kind.

  tablesdk-server --data tables --admin-port 10012 &
  tablesdk-server backup --admin-port 10012 monday.backup";

const RESTORE: &str = "\
Make a folder from a backup

The folder appears once all of the backup has been read, verified and written: a
backup that is cut short or damaged leaves none.

  tablesdk-server restore monday.backup --data tables
  tablesdk-server --data tables";
