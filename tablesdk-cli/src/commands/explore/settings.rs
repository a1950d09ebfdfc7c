//! The settings that the page keeps for an account between two runs: queries, columns and widths,
//! in a file of the user. This file knows nothing of requests and of HTML.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcetera::BaseStrategy as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tablesdk::Timestamp;
use tablesdk::query::AccessClass;

use crate::state::{draft_beside, with_suffix};

/// The settings of one account. They are in memory alone if there is no folder for them.
#[derive(Debug)]
pub(crate) struct Settings {
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    content: Content,
    problem: Option<String>,
}

/// The content of the file. Each list begins with the newest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    history: Vec<Entry>,
    sent: Vec<Sent>,
    tables: Vec<OfTable>,
}

/// A query that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Path and query of the page.
    pub(crate) url: String,
    /// The access class in words.
    pub(crate) access: String,
    /// The number of entities on the page.
    pub(crate) count: u64,
    /// The number of requests that were sent for it.
    pub(crate) requests: u64,
    pub(crate) milliseconds: u64,
    /// When it was run.
    pub(crate) at: String,
}

impl Entry {
    pub(crate) fn new(url: &str, access: AccessClass, at: Timestamp) -> Self {
        Self {
            url: url.to_owned(),
            access: access.as_str().to_owned(),
            count: 0,
            requests: 0,
            milliseconds: 0,
            at: at.to_string(),
        }
    }

    /// The answer to the query.
    pub(crate) fn answered(mut self, count: usize, requests: u64, elapsed: Duration) -> Self {
        self.count = count as u64;
        self.requests = requests;
        self.milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Returns true if the URL leads to a table. The file may have any text, and a URL of another
    /// form could lead elsewhere.
    fn is_of_table(&self) -> bool {
        let is_short = self.url.len() <= URL_BYTES_MAX && self.access.len() <= WORD_BYTES_MAX;
        is_short && self.at.len() <= WORD_BYTES_MAX && self.url.starts_with("/t/")
    }
}

/// Staged changes that were sent. It has no key and no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// How many changes of each kind, by table.
    pub(crate) changes: String,
    /// The outcome of the changes.
    pub(crate) outcome: String,
    pub(crate) requests: u64,
    pub(crate) milliseconds: u64,
    /// When they were sent.
    pub(crate) at: String,
}

impl Sent {
    fn is_short(&self) -> bool {
        let texts = [&self.changes, &self.outcome, &self.at];
        texts.iter().all(|it| it.len() <= SENT_BYTES_MAX)
    }
}

/// How a table is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct OfTable {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    widths: Vec<(String, u16)>,
}

impl Settings {
    /// The settings of an account in the folder of the user.
    pub(crate) fn of_account(endpoint: &str) -> Self {
        Self::in_folder(folder().as_deref(), endpoint)
    }

    fn in_folder(folder: Option<&Path>, endpoint: &str) -> Self {
        let file = folder.map(|folder| folder.join("explore").join(file_name(endpoint)));
        let mut state = State::default();
        if let Some(file) = &file {
            match read(file) {
                Ok(content) => state.content = content,
                Err(problem) => state.problem = Some(problem),
            }
        }
        Self {
            file,
            state: Mutex::new(state),
        }
    }

    /// Why the settings are not kept, if they are not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// The properties that are shown of a table, in their order. `None` if all are.
    pub(crate) fn columns(&self, table: &str) -> Option<Vec<String>> {
        self.state().content.table(table)?.columns.clone()
    }

    pub(crate) fn set_columns(&self, table: &str, columns: Option<Vec<String>>) {
        let columns = columns.map(|mut columns| {
            columns.retain(|name| name.len() <= NAME_BYTES_MAX);
            columns.truncate(COLUMNS_MAX);
            columns
        });
        self.change(|content| {
            content.change_table(table, |it| it.columns.clone_from(&columns));
        });
    }

    /// The width of a column in pixels, if it was set.
    pub(crate) fn width(&self, table: &str, column: &str) -> Option<u16> {
        let state = self.state();
        let mut widths = state.content.table(table)?.widths.iter();
        widths.find_map(|(name, width)| (name == column).then_some(*width))
    }

    /// Sets the width of a column, or removes it.
    pub(crate) fn set_width(&self, table: &str, column: &str, width: Option<u16>) {
        if column.len() > NAME_BYTES_MAX {
            return;
        }
        let width = width.map(|width| width.clamp(WIDTH_MIN, WIDTH_MAX));
        self.change(|content| {
            content.change_table(table, |OfTable { widths, .. }| {
                widths.retain(|(name, _)| name != column);
                widths.splice(..0, width.map(|width| (column.to_owned(), width)));
                widths.truncate(COLUMNS_MAX);
            });
        });
    }

    /// Puts a query at the top of the history, in place of an earlier run of the same. One with a
    /// URL that is too long is not kept.
    pub(crate) fn record(&self, entry: &Entry) {
        if !entry.is_of_table() {
            return;
        }
        self.change(|content| {
            content.history.retain(|it| it.url != entry.url);
            content.history.insert(0, entry.clone());
            content.history.truncate(ENTRIES_MAX);
        });
    }

    /// Puts what was sent at the top of the history.
    pub(crate) fn record_sent(&self, sent: &Sent) {
        if !sent.is_short() {
            return;
        }
        self.change(|content| {
            content.sent.insert(0, sent.clone());
            content.sent.truncate(ENTRIES_MAX);
        });
    }

    /// The changes that were sent, as [`history`](Self::history) has read them. The newest is the
    /// first.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.state().content.sent.clone()
    }

    /// The queries, also those of other programs that run now. The newest is the first.
    pub(crate) fn history(&self) -> Vec<Entry> {
        let read = self.file.as_deref().and_then(|file| read(file).ok());
        let mut state = self.state();
        if let Some(content) = read
            && state.problem.is_none()
        {
            state.content = content;
        }
        state.content.history.clone()
    }

    /// Removes the query with this URL from the history.
    pub(crate) fn forget(&self, url: &str) {
        self.change(|content| content.history.retain(|it| it.url != url));
    }

    /// Removes all queries from the history, and what was sent.
    pub(crate) fn clear_history(&self) {
        self.change(|content| {
            content.history.clear();
            content.sent.clear();
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the content of the file, which another program may have changed meanwhile. If that
    /// is not possible, the change holds as long as this program runs.
    fn change(&self, change: impl Fn(&mut Content)) {
        let Some(file) = &self.file else {
            change(&mut self.state().content);
            return;
        };
        // Pages read the state while this waits for the file.
        let changed = changed(file, &change);
        let mut state = self.state();
        match changed {
            Ok(content) => {
                state.content = content;
                state.problem = None;
            }
            Err(problem) => {
                change(&mut state.content);
                state.problem = Some(problem);
            }
        }
    }
}

impl Content {
    fn table(&self, name: &str) -> Option<&OfTable> {
        let mut tables = self.tables.iter();
        tables.find(|it| it.name.eq_ignore_ascii_case(name))
    }

    /// Changes the settings of a table, which are the newest then.
    fn change_table(&mut self, name: &str, change: impl FnOnce(&mut OfTable)) {
        let mut tables = self.tables.iter();
        let position = tables.position(|it| it.name.eq_ignore_ascii_case(name));
        let mut of_table = match position {
            Some(position) => self.tables.remove(position),
            None => OfTable {
                name: name.to_owned(),
                ..OfTable::default()
            },
        };
        change(&mut of_table);
        self.tables.insert(0, of_table);
        self.tables.truncate(TABLES_MAX);
    }

    /// The content, cut to the limits within which the program writes it.
    fn bounded(mut self) -> Self {
        self.history.retain(Entry::is_of_table);
        self.history.truncate(ENTRIES_MAX);
        self.sent.retain(Sent::is_short);
        self.sent.truncate(ENTRIES_MAX);
        self.tables.truncate(TABLES_MAX);
        for table in &mut self.tables {
            for (_, width) in &mut table.widths {
                *width = (*width).clamp(WIDTH_MIN, WIDTH_MAX);
            }
        }
        self
    }

    /// The content as JSON that fits into a file: the oldest entries are left out.
    fn fitting(&mut self) -> serde_json::Result<Vec<u8>> {
        loop {
            let json = serde_json::to_vec(self)?;
            let is_empty =
                self.history.is_empty() && self.tables.is_empty() && self.sent.is_empty();
            if json.len() <= FILE_BYTES_MAX || is_empty {
                return Ok(json);
            }
            self.history.truncate(self.history.len() / 2);
            self.sent.truncate(self.sent.len() / 2);
            self.tables.truncate(self.tables.len() / 2);
        }
    }
}

/// The folder of the program's settings.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE).filter(|it| !it.is_empty()) {
        return Some(folder.into());
    }
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("tables"))
}

/// The file of an account: its endpoint without the scheme, which is an address and has no secret.
fn file_name(endpoint: &str) -> String {
    let address = endpoint.split_once("://").map_or(endpoint, |(_, it)| it);
    let name = utf8_percent_encode(address, OF_FILE_NAME).to_string();
    let count = name.chars().count();
    if count <= FILE_NAME_MAX {
        return format!("{name}.json");
    }
    let (head, tail) = (FILE_NAME_MAX / 2, count - FILE_NAME_MAX / 2);
    let head: String = name.chars().take(head).collect();
    let tail: String = name.chars().skip(tail).collect();
    format!("{head}{tail}.json")
}

/// Reads a file. One of another form is as one that is absent.
fn read(file: &Path) -> Result<Content, String> {
    match parsed(file) {
        Ok(content) => Ok(content),
        Err(error) if is_replaced(&error) => Ok(Content::default()),
        Err(error) => Err(format!("{} cannot be read: {error}", file.display())),
    }
}

/// Returns true if a new file replaces the one that could not be read.
fn is_replaced(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::InvalidData];
    kinds.contains(&error.kind())
}

fn parsed(path: &Path) -> io::Result<Content> {
    // To read a pipe could wait for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut json = Vec::new();
    let file = File::open(path)?;
    file.take(FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut json)?;
    if json.len() > FILE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let content = serde_json::from_slice::<Content>(&json);
    let content = content.map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
    Ok(content?.bounded())
}

/// Changes a file while no other program does, and returns its content. A file of another form is
/// kept with the suffix `.broken`.
fn changed(file: &Path, change: impl Fn(&mut Content)) -> Result<Content, String> {
    let of_io = |error: io::Error| unwritable(file, &error);
    let folder = file.parent().unwrap_or(file);
    create_folder(folder).map_err(of_io)?;
    let lock = lock(folder).map_err(of_io)?;
    if parsed(file).is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
        fs::rename(file, with_suffix(file, ".broken")).map_err(of_io)?;
    }
    let mut content = read(file)?;
    change(&mut content);
    write(file, &mut content).map_err(of_io)?;
    drop(lock);
    Ok(content)
}

fn write(file: &Path, content: &mut Content) -> io::Result<()> {
    let mut draft = draft_beside(file)?;
    draft.write_all(&content.fitting()?)?;
    draft.persist(file).map_err(|error| error.error)?;
    Ok(())
}

fn unwritable(file: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}", file.display())
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The lock of the files in a folder, until it is dropped.
fn lock(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let lock = options.open(folder.join("lock"))?;
    #[cfg(unix)]
    wait_for(&lock);
    Ok(lock)
}

/// Waits until no other program has the lock. A program that is stopped could have it for ever:
/// this goes on then, and a change of the other program may be lost, but never the file.
#[cfg(unix)]
fn wait_for(lock: &File) {
    use rustix::fs::{FlockOperation, flock};
    for _ in 0..LOCK_TRIES {
        // Some file systems have no locks.
        let locked = flock(lock, FlockOperation::NonBlockingLockExclusive);
        if locked != Err(rustix::io::Errno::WOULDBLOCK) {
            return;
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

/// A folder for the settings in place of the one of the system.
const FOLDER_VARIABLE: &str = "TABLES_CONFIG_DIR";
const ENTRIES_MAX: usize = 500;
const TABLES_MAX: usize = 500;
const COLUMNS_MAX: usize = 1000;
/// A property's name has at most 255 characters.
const NAME_BYTES_MAX: usize = 4 * 255;
/// Two keys of 1 KiB with an escape for each byte, and a filter.
const URL_BYTES_MAX: usize = 16 * 1024;
const SENT_BYTES_MAX: usize = 4 * 1024;
const WORD_BYTES_MAX: usize = 64;
const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// File systems allow 255, and a draft has a longer name.
const FILE_NAME_MAX: usize = 200;
const WIDTH_MIN: u16 = 40;
const WIDTH_MAX: u16 = 2000;
#[cfg(unix)]
const LOCK_TRIES: u32 = 100;
#[cfg(unix)]
const LOCK_PAUSE: Duration = Duration::from_millis(2);
const OF_FILE_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: &str = "http://127.0.0.1:10002/devstoreaccount1";

    fn entry(url: &str) -> Entry {
        let at = "2026-11-28T01:02:03Z".parse().expect("it is an instant");
        let entry = Entry::new(url, AccessClass::Partition, at);
        entry.answered(7, 2, Duration::from_millis(34))
    }

    fn urls(settings: &Settings) -> Vec<String> {
        let history = settings.history().into_iter();
        history.map(|it| it.url).collect()
    }

    #[test]
    fn another_run_knows_history_columns_and_widths() {
        let place = tempfile::tempdir().expect("a folder");
        let open = || Settings::in_folder(Some(place.path()), ACCOUNT);
        let first = open();
        first.record(&entry("/t/Employees?pk=Sales"));
        let sent = Sent {
            changes: "Employees: 2 merges".into(),
            outcome: "2 of 2 stored".into(),
            requests: 1,
            milliseconds: 7,
            at: "2026-11-28T01:02:03Z".into(),
        };
        first.record_sent(&sent);
        first.set_columns("Employees", Some(vec!["Age".into(), "Name".into()]));
        first.set_width("employees", "Age", Some(7));
        let second = open();
        assert_eq!(second.history(), [entry("/t/Employees?pk=Sales")]);
        assert_eq!(second.sent(), [sent]);
        let columns = second.columns("EMPLOYEES").expect("they were set");
        assert_eq!(columns, ["Age", "Name"]);
        assert_eq!(second.width("Employees", "Age"), Some(WIDTH_MIN));
        assert_eq!(second.width("Employees", "Name"), None);
        second.set_width("Employees", "Age", None);
        second.set_columns("Employees", None);
        let third = open();
        assert_eq!(third.columns("Employees"), None);
        assert_eq!(third.width("Employees", "Age"), None);
        let other = Settings::in_folder(Some(place.path()), "https://other.table.core.windows.net");
        assert_eq!(other.history(), []);
        assert_eq!(third.problem(), None);
    }

    #[test]
    fn the_same_query_is_one_entry_and_the_oldest_goes() {
        let place = tempfile::tempdir().expect("a folder");
        let settings = Settings::in_folder(Some(place.path()), ACCOUNT);
        for number in 0..3 {
            settings.record(&entry(&format!("/t/T?rk={number}")));
        }
        settings.record(&entry("/t/T?rk=1"));
        assert_eq!(urls(&settings), ["/t/T?rk=1", "/t/T?rk=2", "/t/T?rk=0"]);
        settings.forget("/t/T?rk=2");
        assert_eq!(urls(&settings), ["/t/T?rk=1", "/t/T?rk=0"]);
        let mut content = Content::default();
        for number in 0..ENTRIES_MAX {
            content.history.push(entry(&format!("/t/T?pk={number}")));
        }
        let file = settings.file.as_deref().expect("there is a folder");
        write(file, &mut content).expect("the file is writable");
        settings.record(&entry("/t/T?rk=new"));
        let urls = urls(&settings);
        assert_eq!(urls.len(), ENTRIES_MAX);
        assert_eq!(urls.first().map(String::as_str), Some("/t/T?rk=new"));
        assert_eq!(urls.last().map(String::as_str), Some("/t/T?pk=498"));
        settings.clear_history();
        assert_eq!(settings.history(), []);
    }

    #[test]
    fn two_programs_at_once_keep_the_changes_of_each_other() {
        let place = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for program in 0..4 {
                let settings = Settings::in_folder(Some(place.path()), ACCOUNT);
                scope.spawn(move || {
                    for number in 0..20 {
                        settings.record(&entry(&format!("/t/T?pk={program}&rk={number}")));
                        assert_eq!(settings.problem(), None);
                    }
                });
            }
        });
        let settings = Settings::in_folder(Some(place.path()), ACCOUNT);
        assert_eq!(settings.history().len(), 80);
    }

    #[test]
    fn a_broken_file_is_set_aside() {
        let place = tempfile::tempdir().expect("a folder");
        let settings = Settings::in_folder(Some(place.path()), ACCOUNT);
        settings.record(&entry("/t/T"));
        let file = settings.file.clone().expect("there is a folder");
        for broken in [&b"{\"history\":[{}]}"[..], b"\xff", b"", b"[1", b"7"] {
            fs::write(&file, broken).expect("the file is writable");
            let settings = Settings::in_folder(Some(place.path()), ACCOUNT);
            assert_eq!((settings.history(), settings.problem()), (Vec::new(), None));
            settings.record(&entry("/t/T"));
            assert_eq!(urls(&settings), ["/t/T"]);
            let aside = fs::read(with_suffix(&file, ".broken")).expect("it is kept");
            assert_eq!(aside, broken);
        }
    }

    #[test]
    fn an_entry_that_leads_elsewhere_is_left_out() {
        let place = tempfile::tempdir().expect("a folder");
        let settings = Settings::in_folder(Some(place.path()), ACCOUNT);
        let long = format!("/t/{}", "x".repeat(URL_BYTES_MAX));
        for url in ["javascript:alert(1)", "//evil/t/T", "/open?token=x", &long] {
            settings.record(&entry(url));
            assert_eq!(settings.history(), [], "{url}");
            let mut content = Content {
                history: vec![entry(url)],
                ..Content::default()
            };
            let file = settings.file.as_deref().expect("there is a folder");
            create_folder(file.parent().expect("it is in a folder")).expect("it is writable");
            write(file, &mut content).expect("the file is writable");
            assert_eq!(settings.history(), [], "{url}");
        }
    }

    #[test]
    fn without_a_place_the_settings_hold_while_the_program_runs() {
        let settings = Settings::in_folder(None, ACCOUNT);
        settings.record(&entry("/t/T"));
        assert_eq!(
            (urls(&settings), settings.problem()),
            (vec!["/t/T".into()], None)
        );
        let place = tempfile::tempdir().expect("a folder");
        let occupied = place.path().join("occupied");
        fs::write(&occupied, "").expect("a file");
        let settings = Settings::in_folder(Some(&occupied), ACCOUNT);
        settings.record(&entry("/t/T"));
        settings.set_width("T", "Age", Some(100));
        assert_eq!(urls(&settings), ["/t/T"]);
        assert_eq!(settings.width("T", "Age"), Some(100));
        assert!(settings.problem().is_some_and(|it| it.contains("occupied")));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("new");
        let settings = Settings::in_folder(Some(&folder), ACCOUNT);
        settings.record(&entry("/t/T"));
        let file = settings.file.as_deref().expect("there is a folder");
        let mode = |path: &Path| {
            let found = fs::metadata(path).expect("it was created");
            found.permissions().mode() & 0o777
        };
        assert_eq!((mode(file), mode(&folder)), (0o600, 0o700));
    }

    #[test]
    fn each_account_has_a_file_with_a_name_that_file_systems_allow() {
        assert_eq!(
            file_name(ACCOUNT),
            "127.0.0.1%3A10002%2Fdevstoreaccount1.json"
        );
        let long = format!("https://{}.example/acct", "x%".repeat(300));
        let name = file_name(&long);
        assert!(
            name.len() < 255 && name.ends_with(".example%2Facct.json"),
            "{name}"
        );
    }
}
