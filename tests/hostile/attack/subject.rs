//! The program that is attacked, and what it uses.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use futures::stream;
use harness::process::{Process, program};
use tablesdk::sas::{AccountPermissions, ResourceTypes};
use tablesdk::transport::ReqwestTransport;
use tablesdk::{DynamicEntity, RetryPolicy, SharedKey, TableServiceClient};
use tokio::process::Command;

/// The program, with two accounts. It ends when this is dropped.
pub(super) struct Subject {
    process: Process,
    is_durable: bool,
    _directory: tempfile::TempDir,
}

/// The account whose clients do no harm.
const HONEST: &str = "honest";
/// The account of a shared access signature that an attacker has.
const OTHER: &str = "other";
const KEY: &str = "c2VjcmV0IG9mIGFuIGFjY291bnQ=";

impl Subject {
    /// Starts the program, which may open that many files.
    pub(super) async fn start(open_files: u64, is_durable: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let accounts = directory.path().join("accounts");
        fs::write(&accounts, format!("{HONEST}:{KEY}\n{OTHER}:{KEY}\n")).unwrap();
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {open_files}; exec \"$@\"");
        command.args(["-c", &script, "limited"]).arg(program());
        command.args(["--log", "off", "--port", "0", "--account-file"]);
        command.arg(&accounts);
        if is_durable {
            command.arg("--data").arg(directory.path().join("data"));
        }
        let process = Process::start(command).await.unwrap();
        let subject = Self {
            process,
            is_durable,
            _directory: directory,
        };
        let service = subject.client(HONEST, true);
        for name in [TABLE, LARGE] {
            service.table(name).create_table().await.unwrap();
        }
        // More than a response holds.
        let part = "x".repeat(30_000);
        let large = (0..16).map(|row| {
            let parts = (0..6).map(|index| (format!("P{index}"), part.clone()));
            DynamicEntity::new("p", row.to_string()).with_properties(parts.collect())
        });
        let stored = service.table(LARGE).bulk().insert(stream::iter(large));
        assert!(stored.await.unwrap().is_success());
        subject
    }

    /// Returns true if the tables of the subject are on disk.
    pub(super) const fn is_durable(&self) -> bool {
        self.is_durable
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// A client of the account that does no harm, which keeps its connections or opens one for each
    /// request.
    pub(super) fn honest_client(&self, keeps_connections: bool) -> TableServiceClient {
        self.client(HONEST, keeps_connections)
    }

    fn client(&self, account: &str, keeps_connections: bool) -> TableServiceClient {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(usize::from(keeps_connections))
            .connect_timeout(Duration::from_secs(5));
        let retry = RetryPolicy::exponential()
            .try_timeout(Duration::from_secs(5))
            .deadline(Duration::from_secs(15));
        TableServiceClient::builder(format!("http://{}/{account}", self.address()))
            .credential(SharedKey::new(account, KEY).unwrap())
            .transport(ReqwestTransport::from_client(http.build().unwrap()))
            .retry(retry)
            .build()
            .unwrap()
    }

    /// The path of a large table of the account that does no harm, with a signature that may read
    /// it.
    pub(super) fn readable(&self) -> String {
        self.signed(HONEST, LARGE)
    }

    /// The path of a table of the other account, with a signature that may read it.
    pub(super) fn readable_elsewhere(&self) -> String {
        self.signed(OTHER, TABLE)
    }

    fn signed(&self, account: &str, table: &str) -> String {
        let sas = self.client(account, true).sas().on(ResourceTypes::OBJECT);
        let sas = sas.allow(AccountPermissions::READ);
        let url = sas.expires_in(Duration::from_secs(3600)).sign().unwrap();
        let url = url.expose();
        let (_, query) = url.split_once('?').unwrap();
        format!("/{account}/{table}?{query}")
    }

    /// Its resident memory in MiB, and how many files it has open: as Linux counts, and nothing
    /// elsewhere.
    pub(super) fn usage(&self) -> (u64, usize) {
        let id = self.process.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        let files = fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count);
        (kib.unwrap_or_default() >> 10, files)
    }
}

/// The table that honest clients write.
pub(super) const TABLE: &str = "Orders";
/// A table with more in it than a response holds.
const LARGE: &str = "Large";
