//! Many connections, each of which sends the next request after the last response, for some time:
//! the number of responses, and the time of each.

use std::error::Error;
use std::iter;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::cpu::Cpu;
use crate::requests::Requests;

/// The result of a measurement.
#[derive(Debug)]
pub(crate) struct Measurement {
    /// How long each answer took.
    latencies: Vec<Duration>,
    /// For how long was asked.
    time: Duration,
    /// For how long the server's threads ran, where that is known.
    cpu: Duration,
}

impl Measurement {
    pub(crate) const fn new() -> Self {
        Self {
            latencies: Vec::new(),
            time: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    /// Answers that took so long each, all within that time.
    pub(crate) const fn of(latencies: Vec<Duration>, time: Duration) -> Self {
        Self {
            latencies,
            time,
            cpu: Duration::ZERO,
        }
    }

    /// How many answers there were.
    pub(crate) const fn count(&self) -> usize {
        self.latencies.len()
    }

    /// Answers per second.
    pub(crate) fn rate(&self) -> f64 {
        let count = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.time.as_secs_f64()
    }

    /// How many answers would come in that time.
    pub(crate) fn count_within(&self, time: Duration) -> usize {
        let count = u128::try_from(self.latencies.len()).unwrap_or(u128::MAX);
        let count = count.saturating_mul(time.as_nanos()) / self.time.as_nanos().max(1);
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// How long the server's threads ran for an answer; zero where that is not known.
    pub(crate) fn cpu(&self) -> Duration {
        let count = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        self.cpu / count.max(1)
    }

    /// The time within which that share of the answers came.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a place in a list that fits into memory"
        )]
        let place = (latencies.len() as f64 * share) as usize;
        let latency = latencies.get(place).or(latencies.last());
        latency.copied().unwrap_or_default()
    }
}

impl AddAssign for Measurement {
    fn add_assign(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.time += other.time;
        self.cpu += other.cpu;
    }
}

/// Who is asked for what.
pub(crate) struct Asked {
    pub(crate) address: SocketAddr,
    /// Other servers of the same tables, which get their shares of the connections.
    pub(crate) others: Vec<SocketAddr>,
    /// Where the server runs, if its processor time can be read.
    pub(crate) cpu: Option<Cpu>,
    pub(crate) requests: Requests,
    /// The status of every answer.
    pub(crate) status: u16,
}

/// Asks over that many connections until the time is up, or until there is nothing left to ask.
pub(crate) async fn run(
    asked: &Asked,
    connections: usize,
    time: Duration,
) -> Result<Measurement, Box<dyn Error>> {
    let mut open = Vec::new();
    let addresses = iter::once(&asked.address).chain(&asked.others);
    for address in addresses.cycle().take(connections) {
        open.push(Connection::open(*address).await?);
    }
    let cpu = || asked.cpu.and_then(Cpu::time).unwrap_or_default();
    let (started, cpu_before) = (Instant::now(), cpu());
    let mut tasks = JoinSet::new();
    for connection in open {
        let requests = asked.requests.clone();
        tasks.spawn(ask(connection, requests, asked.status, started + time));
    }
    let mut latencies = Vec::new();
    while let Some(result) = tasks.join_next().await {
        latencies.extend(result?.map_err(|error| format!("{}: {error}", asked.address))?);
    }
    Ok(Measurement {
        latencies,
        time: started.elapsed(),
        cpu: cpu().saturating_sub(cpu_before),
    })
}

async fn ask(
    mut connection: Connection,
    requests: Requests,
    status: u16,
    end: Instant,
) -> Result<Vec<Duration>, String> {
    let mut latencies = Vec::new();
    let mut buffer = Vec::new();
    let mut now = Instant::now();
    while now < end {
        let Some(request) = requests.next(&mut buffer) else {
            break;
        };
        let started = Instant::now();
        let answer = connection.exchange(request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        now = Instant::now();
        if answer.status != status {
            let body = String::from_utf8_lossy(answer.body);
            let body: String = body.chars().take(500).collect();
            return Err(format!(
                "{} in the place of {status}: {body}",
                answer.status
            ));
        }
        latencies.push(now - started);
    }
    Ok(latencies)
}
