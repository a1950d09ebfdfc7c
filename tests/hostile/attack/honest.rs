//! Clients that do no harm: each inserts an entity and reads it again, all the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tablesdk::{TableClient, TableEntity};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::subject::{Subject, TABLE};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Order {
    #[table(partition_key)]
    client: String,
    #[table(row_key)]
    number: String,
    amount: i64,
    /// So much that a store on disk has to open files.
    filler: String,
}

/// The clients. They run until they are stopped.
pub(super) struct Honest {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    served: Mutex<Served>,
    errors: Mutex<Vec<String>>,
    /// Since when each client waits.
    waiting: Mutex<Vec<Option<Instant>>>,
    /// How many operations each client has ended.
    ended: Vec<watch::Sender<u64>>,
    has_failed: watch::Sender<bool>,
    is_over: AtomicBool,
}

/// What they noticed in a while.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    latencies: Vec<Duration>,
    pub(super) failures: usize,
    /// Of each client.
    ended: Vec<u64>,
    took: Duration,
}

impl Served {
    /// In milliseconds.
    pub(super) fn percentile(&self, percent: usize) -> u128 {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        let last = latencies.len().saturating_sub(1);
        let latency = latencies.get(last * percent / 100);
        latency.copied().unwrap_or_default().as_millis()
    }

    /// How many clients ended nothing.
    pub(super) fn starved(&self) -> usize {
        self.ended.iter().filter(|ended| **ended == 0).count()
    }

    /// Operations a second.
    pub(super) fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "so many are not counted")]
        let count = self.ended.iter().sum::<u64>() as f64;
        count / self.took.as_secs_f64()
    }
}

impl Honest {
    /// So many clients, half of which open a connection for each request.
    pub(super) async fn start(subject: &Subject, count: usize) -> Self {
        let shared = Arc::new(Shared {
            ended: (0..count).map(|_| watch::Sender::new(0)).collect(),
            waiting: Mutex::new(vec![None; count]),
            ..Shared::default()
        });
        let clients = (0..count).map(|number| {
            let service = subject.honest_client(number % 2 == 0);
            let shared = Arc::clone(&shared);
            let filler = subject.is_durable().then_some(FILLER_CHARS);
            let mut rng = Rng::with_seed(u64::try_from(number).unwrap());
            let filler = (0..filler.unwrap_or_default()).map(|_| rng.alphanumeric());
            let filler: String = filler.collect();
            let table = service.table(TABLE);
            tokio::spawn(async move { shared.work(&table, number, filler).await })
        });
        let honest = Self {
            clients: clients.collect(),
            shared,
        };
        // All of them are at work.
        honest.operations(2).await;
        honest
    }

    /// What they notice in that time.
    pub(super) async fn phase(&self, time: Duration) -> Served {
        let began = self.begin();
        sleep(time).await;
        self.served_since(began)
    }

    /// What they notice until each of them has ended so many operations more, or one fails.
    pub(super) async fn operations(&self, count: u64) -> Served {
        let began = self.begin();
        let ends = self.shared.ended.iter().map(|ended| {
            let mut ended = ended.subscribe();
            let until = *ended.borrow() + count;
            async move {
                let ended = ended.wait_for(|ended| *ended >= until).await;
                ended.expect("they work until they are stopped");
            }
        });
        let mut has_failed = self.shared.has_failed.subscribe();
        tokio::select! {
            _ = futures::future::join_all(ends) => {}
            _ = has_failed.wait_for(|has_failed| *has_failed) => {}
        }
        self.served_since(began)
    }

    fn begin(&self) -> Instant {
        *self.shared.served.lock().unwrap() = Served {
            ended: vec![0; self.clients.len()],
            ..Served::default()
        };
        Instant::now()
    }

    fn served_since(&self, began: Instant) -> Served {
        let mut served = std::mem::take(&mut *self.shared.served.lock().unwrap());
        served.took = began.elapsed();
        // What has not ended has taken as long as it has at least.
        let waiting = self.shared.waiting.lock().unwrap();
        let waits = waiting.iter().flatten().map(Instant::elapsed);
        served.latencies.extend(waits);
        served
    }

    /// Ends them, and gives the first errors that they met.
    pub(super) async fn stop(self) -> Vec<String> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
        std::mem::take(&mut *self.shared.errors.lock().unwrap())
    }
}

impl Shared {
    async fn work(&self, table: &TableClient, client: usize, filler: String) {
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            number += 1;
            let order = Order {
                client: client.to_string(),
                number: number.to_string(),
                amount: number,
                filler: filler.clone(),
            };
            let key = || Order::key(order.client.as_str(), order.number.as_str());
            let began = self.begin(client);
            let inserted = table.insert(&order).await;
            self.note(
                client,
                began,
                inserted.as_ref().err().map(ToString::to_string),
            );
            let began = self.begin(client);
            let read = table.get(key()).await;
            let error = match (&inserted, read) {
                (_, Err(error)) => Some(error.to_string()),
                (Ok(_), Ok(found)) if found.as_deref() != Some(&order) => {
                    let found = found.map(|order| order.amount);
                    Some(format!("{number} was inserted, and {found:?} is there"))
                }
                _ => None,
            };
            self.note(client, began, error);
        }
    }

    fn begin(&self, client: usize) -> Instant {
        let now = Instant::now();
        self.waiting.lock().unwrap()[client] = Some(now);
        now
    }

    fn note(&self, client: usize, began: Instant, error: Option<String>) {
        self.waiting.lock().unwrap()[client] = None;
        let mut served = self.served.lock().unwrap();
        served.latencies.push(began.elapsed());
        if let Some(ended) = served.ended.get_mut(client) {
            *ended += 1;
        }
        if let Some(error) = error {
            served.failures += 1;
            let mut errors = self.errors.lock().unwrap();
            if errors.len() < ERRORS {
                errors.push(error);
            }
        }
        if served.failures > 0 {
            self.has_failed.send_replace(true);
        }
        drop(served);
        self.ended[client].send_modify(|ended| *ended += 1);
    }
}

/// So many are shown.
const ERRORS: usize = 3;
/// Of each entity, where the tables are on disk.
const FILLER_CHARS: usize = 30_000;
