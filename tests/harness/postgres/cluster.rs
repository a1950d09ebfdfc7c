//! A cluster of a test: it is started, stopped, killed, started again, and has standbys. It does
//! not know what is stored in it.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{Process, StartError};
use super::{Programs, sql};

/// For the cluster that all tests share, and that no test kills.
const SHARED: &[&str] = &[
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_connections=500",
];
/// The settings for the disk are those of each installation. The end of a process needs no `fsync`,
/// since the operating system has what the process wrote; but what is tested here is what operators
/// run.
const OWN: &[&str] = &["max_connections=200"];
const WITH_TLS: &[&str] = &["max_connections=200", "ssl=on"];
/// A free port may be taken by another program before it is used.
const ATTEMPTS: usize = 10;
/// The password of the user, which is part of all URLs, also where none is needed: so a test can
/// look for it in logs. Connection strings and URLs escape it.
pub const PASSWORD: &str = "correct horse/battery@staple";
/// [`PASSWORD`] in a URL.
pub const PASSWORD_IN_URL: &str = "correct%20horse%2Fbattery%40staple";
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A PostgreSQL on a port of its own, with its data in a temporary directory. It ends, and its data
/// is deleted, when this is dropped, or when the test's process ends.
#[derive(Debug)]
pub struct Postgres {
    /// `None` while it is stopped. Before the directory: it is dropped first.
    process: Mutex<Option<Process>>,
    directory: TempDir,
    programs: Programs,
    settings: &'static [&'static str],
    port: u16,
}

impl Postgres {
    /// A cluster that accepts any user of this machine. `None` if there is no PostgreSQL: see
    /// [`Programs::find`].
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start() -> Option<Self> {
        Programs::find().map(|programs| Self::create(programs, OWN, false))
    }

    /// A cluster that demands [`PASSWORD`].
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start_with_password() -> Option<Self> {
        Programs::find().map(|programs| Self::create(programs, OWN, true))
    }

    /// A cluster that offers TLS, and its certificate as PEM, which is for `127.0.0.1` and issued
    /// by itself. It also accepts connections without TLS, as PostgreSQL does by default.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start_with_tls() -> Option<(Self, String)> {
        let programs = Programs::find()?;
        let directory = Self::initialize(&programs, false);
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let own = own.expect("a certificate for an address can be issued");
        let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        programs.write(&directory.path().join("data/server.crt"), &certificate);
        programs.write(&directory.path().join("data/server.key"), &key);
        Some((Self::open(programs, directory, WITH_TLS), certificate))
    }

    pub(super) fn start_shared() -> Option<Self> {
        Programs::find().map(|programs| Self::create(programs, SHARED, false))
    }

    fn create(programs: Programs, settings: &'static [&'static str], has_password: bool) -> Self {
        let directory = Self::initialize(&programs, has_password);
        Self::open(programs, directory, settings)
    }

    /// A directory with a cluster in `data`.
    fn initialize(programs: &Programs, has_password: bool) -> TempDir {
        let directory = programs.directory();
        let mut initdb = programs.command("initdb", directory.path());
        initdb.args(["--pgdata=data", "--no-sync", "--username=postgres"]);
        initdb.args(["--encoding=UTF8", "--locale=C"]);
        if has_password {
            let file = directory.path().join("password");
            programs.write(&file, PASSWORD);
            initdb.arg("--auth=scram-sha-256").arg("--pwfile").arg(file);
            run(&mut initdb);
        } else {
            run(initdb.arg("--auth=trust"));
        }
        directory
    }

    /// Starts the cluster of a directory for the first time, on a free port.
    fn open(programs: Programs, directory: TempDir, settings: &'static [&'static str]) -> Self {
        let mut cluster = Self {
            process: Mutex::new(None),
            directory,
            programs,
            settings,
            port: 0,
        };
        for _ in 0..ATTEMPTS {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            cluster.port = listener.local_addr().expect("it has an address").port();
            drop(listener);
            match cluster.run() {
                Ok(process) => {
                    *cluster.process() = Some(process);
                    return cluster;
                }
                Err(StartError::PortTaken) => {}
                Err(StartError::Other(log)) => panic!("PostgreSQL does not start:\n{log}"),
            }
        }
        panic!("no port is free");
    }

    fn run(&self) -> Result<Process, StartError> {
        let own = [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
        ];
        let settings = self.settings.iter().map(|&setting| setting.to_owned());
        let settings: Vec<_> = own.into_iter().chain(settings).collect();
        Process::start(
            &self.programs,
            self.directory.path(),
            &self.data(),
            &settings,
        )
    }

    /// The programs that run it.
    pub const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The port, which it keeps.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database, for a user who may do everything. `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        let port = self.port;
        format!("postgres://postgres:{PASSWORD_IN_URL}@127.0.0.1:{port}/{database}")
    }

    /// Runs SQL in a database: [`sql()`].
    ///
    /// # Panics
    ///
    /// If a statement fails.
    pub fn sql(&self, database: &str, text: &str) -> Vec<String> {
        let rows = sql(&self.url(database), text);
        rows.unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    /// Ends all connections, then the cluster, as an operator does.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn stop(&self) {
        self.take().end("INT");
    }

    /// Kills the first process. The others notice, and end. Returns when all have ended.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn kill(&self) {
        self.take().end("KILL");
    }

    /// Starts it after [`Self::stop`] or [`Self::kill`], on the same port.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start_again(&self) {
        let mut process = self.process();
        assert!(process.is_none(), "it runs");
        let end = Instant::now() + WAIT_MAX;
        *process = loop {
            match self.run() {
                Ok(process) => break Some(process),
                // As the port of a connection of another program, perhaps, for a moment.
                Err(StartError::PortTaken) if Instant::now() < end => pause(),
                Err(why) => panic!("PostgreSQL does not start: {why:?}"),
            }
        };
    }

    /// A hot standby of it, which accepts queries. When this returns, a commit is acknowledged only
    /// after one standby has it on its disk: `synchronous_commit` is `on`, and
    /// `synchronous_standby_names` is `*`.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn standby(&self) -> Self {
        let directory = self.programs.directory();
        let mut backup = self.programs.command("pg_basebackup", directory.path());
        backup.args(["--pgdata=data", "--write-recovery-conf", "--no-sync"]);
        backup.args(["--wal-method=stream", "--checkpoint=fast", "--no-password"]);
        backup.arg("--dbname").arg(self.url(""));
        run(&mut backup);
        // After its promotion, it does not wait for a standby of its own until it has one.
        let path = directory.path().join("data/postgresql.auto.conf");
        let file = fs::OpenOptions::new().append(true).open(path);
        writeln!(
            file.expect("the backup has it"),
            "synchronous_standby_names = ''"
        )
        .expect("a file can be written");
        let standby = Self::open(self.programs.clone(), directory, self.settings);

        let states = |state: &str| {
            let query = format!("SELECT count(*) FROM pg_stat_replication WHERE {state}");
            self.sql("postgres", &query)[0]
                .parse::<usize>()
                .expect("a count")
        };
        wait_until(|| states("state = 'streaming'") > 0);
        self.sql(
            "postgres",
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
        );
        self.sql("postgres", "SELECT pg_reload_conf()");
        wait_until(|| states("sync_state = 'sync'") > 0);
        // Commits wait once the checkpointer has read the setting, too. It does so before a
        // checkpoint.
        self.sql("postgres", "CHECKPOINT");
        standby
    }

    /// Makes a standby a cluster of its own, which accepts writes when this returns.
    ///
    /// # Panics
    ///
    /// If it is no standby.
    pub fn promote(&self) {
        let promoted = self.sql("postgres", "SELECT pg_promote()");
        assert_eq!(promoted, ["t"]);
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Process {
        self.process().take().expect("it runs")
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("a program can be started");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Waits for something that only a question shows.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT_MAX;
    while !is_so() {
        assert!(
            Instant::now() < end,
            "PostgreSQL does not become what it should"
        );
        pause();
    }
}

/// Between two questions.
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}
