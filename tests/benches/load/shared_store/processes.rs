//! The processor time of client, servers and PostgreSQL. It is not known on systems without
//! `/proc`.

use std::fs;
use std::ops::Sub;
use std::path::Path;
use std::time::Duration;

use harness::postgres::Postgres;

use crate::child::ChildServer;
use crate::cpu::Cpu;

/// The processes that share the machine.
pub(super) struct Processes {
    servers: Vec<u32>,
    /// The first process of PostgreSQL, which starts one for each connection.
    postgres: Option<u32>,
}

/// The processor time of each party.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) client: Duration,
    pub(super) servers: Duration,
    pub(super) postgres: Duration,
}

impl Processes {
    pub(super) fn of<'a>(
        cluster: &Postgres,
        servers: impl IntoIterator<Item = &'a ChildServer>,
    ) -> Self {
        let directory = cluster.sql("postgres", "SHOW data_directory");
        let file = directory
            .first()
            .map(|directory| Path::new(directory).join("postmaster.pid"));
        let text = file.and_then(|file| fs::read_to_string(file).ok());
        Self {
            servers: servers.into_iter().map(ChildServer::id).collect(),
            postgres: text.and_then(|text| text.lines().next()?.parse().ok()),
        }
    }

    /// The processor times since the processes started.
    pub(super) fn times(&self) -> Times {
        let sum = |processes: &[u32]| {
            let times = processes.iter().map(|id| Cpu::Process(*id).time());
            times.map(Option::unwrap_or_default).sum()
        };
        let postgres = self.postgres.map(with_children).unwrap_or_default();
        Times {
            client: sum(&[std::process::id()]),
            servers: sum(&self.servers),
            postgres: sum(&postgres),
        }
    }
}

/// A process and those that it has started.
fn with_children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = processes.filter_map(|process| {
        let id = process.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(process.path().join("stat")).ok()?;
        // After the name of the program, which may contain anything, the state and the parent.
        let (_, rest) = text.rsplit_once(')')?;
        let of: u32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        (of == parent).then_some(id)
    });
    children.chain([parent]).collect()
}

impl Sub for Times {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        // A process that ended in between is not counted any more.
        Self {
            client: self.client.saturating_sub(before.client),
            servers: self.servers.saturating_sub(before.servers),
            postgres: self.postgres.saturating_sub(before.postgres),
        }
    }
}
