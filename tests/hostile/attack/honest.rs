//! Clients that do no harm: each inserts an entity and reads it again, all the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use harness::Employee;
use tablesdk::TableClient;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::subject::{Subject, TABLE};

/// The clients. They run until they are stopped.
pub(super) struct Honest {
    state: Arc<watch::Sender<State>>,
    clients: Vec<JoinHandle<()>>,
}

/// The observations of the clients since a phase began.
#[derive(Default)]
struct State {
    served: Served,
    /// Since when each client waits.
    waiting: Vec<Option<Instant>>,
    errors: Vec<String>,
    is_over: bool,
}

/// The observations of the clients in a period.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    latencies: Vec<Duration>,
    pub(super) failures: usize,
    /// How many operations each client has ended.
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
        let state = Arc::new(watch::Sender::new(State {
            waiting: vec![None; count],
            ..State::default()
        }));
        let clients = (0..count).map(|number| {
            let table = subject.honest_client(number % 2 == 0).table(TABLE);
            let filler = if subject.is_durable() {
                FILLER_CHARS
            } else {
                0
            };
            let mut rng = Rng::with_seed(u64::try_from(number).unwrap());
            let filler = (0..filler).map(|_| rng.alphanumeric()).collect();
            tokio::spawn(work(Arc::clone(&state), table, number, filler))
        });
        let honest = Self {
            clients: clients.collect(),
            state,
        };
        // All of them are at work.
        honest.operations(2).await;
        honest
    }

    /// The observations of the clients in that time.
    pub(super) async fn phase(&self, time: Duration) -> Served {
        let began = self.begin();
        sleep(time).await;
        self.served_since(began)
    }

    /// The observations of the clients until each of them has ended so many operations, or one
    /// fails.
    pub(super) async fn operations(&self, count: u64) -> Served {
        let began = self.begin();
        let is_over = |state: &State| {
            let served = &state.served;
            served.failures > 0 || served.ended.iter().all(|ended| *ended >= count)
        };
        let mut state = self.state.subscribe();
        drop(state.wait_for(is_over).await);
        self.served_since(began)
    }

    fn begin(&self) -> Instant {
        self.state.send_modify(|state| {
            state.served = Served {
                ended: vec![0; state.waiting.len()],
                ..Served::default()
            };
        });
        Instant::now()
    }

    fn served_since(&self, began: Instant) -> Served {
        let state = self.state.borrow();
        let mut served = state.served.clone();
        served.took = began.elapsed();
        // What has not ended has taken as long as it has at least.
        let waits = state.waiting.iter().flatten().map(Instant::elapsed);
        served.latencies.extend(waits);
        served
    }

    /// Ends them, and gives the first errors that they met.
    pub(super) async fn stop(self) -> Vec<String> {
        self.state.send_modify(|state| state.is_over = true);
        for client in self.clients {
            client.await.unwrap();
        }
        self.state.send_replace(State::default()).errors
    }
}

async fn work(state: Arc<watch::Sender<State>>, table: TableClient, client: usize, filler: String) {
    let note_begin = || {
        let now = Instant::now();
        state.send_modify(|state| state.waiting[client] = Some(now));
        now
    };
    let note = |began: Instant, error: Option<String>| {
        state.send_modify(|state| {
            state.waiting[client] = None;
            state.served.latencies.push(began.elapsed());
            if let Some(ended) = state.served.ended.get_mut(client) {
                *ended += 1;
            }
            state.served.failures += usize::from(error.is_some());
            state.errors.extend(error);
            state.errors.truncate(ERRORS);
        });
    };
    let mut number = 0;
    while !state.borrow().is_over {
        number += 1;
        let employee = Employee {
            department: client.to_string(),
            email: Some(filler.clone()),
            ..Employee::new(&number.to_string(), "Ada", number)
        };
        let key = Employee::key(employee.department.as_str(), employee.id.as_str());
        let began = note_begin();
        let inserted = table.insert(&employee).await;
        let error = inserted.as_ref().err().map(ToString::to_string);
        note(began, error);
        let began = note_begin();
        let error = match (inserted, table.get(key).await) {
            (_, Err(error)) => Some(error.to_string()),
            (Ok(_), Ok(found)) if found.as_deref() != Some(&employee) => {
                let found = found.map(|employee| employee.age);
                Some(format!("{number} was inserted, and {found:?} is there"))
            }
            _ => None,
        };
        note(began, error);
    }
}

/// So many are shown.
const ERRORS: usize = 3;
/// The length of a string in each entity, where the tables are on disk: so long that the store has
/// to open files.
const FILLER_CHARS: usize = 30_000;
