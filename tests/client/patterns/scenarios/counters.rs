//! A counter of two shards: each amount is counted once, or not at all if its outcome is unknown.

use std::cell::RefCell;

use fastrand::Rng;
use tablesdk::counter::Counter;
use tablesdk::{Error, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::{Before, Outcome, Scenario, Write, done};

/// The outcome of each amount. An amount is a power of 4, so that a digit of the count shows how
/// often it was counted.
#[derive(Default)]
pub(super) struct Counters {
    amounts: RefCell<Vec<Counted>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Counted {
    Once,
    Never,
    Unknown,
}

/// The most powers of 4 in 64 bits.
const AMOUNTS: usize = 30;

pub(super) struct Client {
    table: TableClient,
    counter: Counter,
}

fn views(table: &TableClient) -> Counter {
    Counter::new(table, ("home", "views")).shards(2)
}

impl Counters {
    async fn add(&self, counter: &Counter) -> Result<(), Error> {
        let nth = self.amounts.borrow().len();
        if nth == AMOUNTS {
            return Ok(());
        }
        self.amounts.borrow_mut().push(Counted::Unknown);
        let added = counter.add(4_i64.pow(u32::try_from(nth).unwrap())).await;
        self.amounts.borrow_mut()[nth] = match &added {
            Ok(()) => Counted::Once,
            Err(error) if error.is_outcome_unknown() => Counted::Unknown,
            Err(_) => Counted::Never,
        };
        added
    }
}

suites!(Counters);

impl Scenario for Counters {
    type Client = Client;

    const WRITES: &'static [Write] = &[done("one client"), done("two clients"), done("at once")];
    const STEPS: u32 = 7;

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = harness::client(server).table("Counters");
        table.create_table().await.unwrap();
        Self::default()
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, service: &TableServiceClient) -> Client {
        let table = service.table("Counters");
        let counter = views(&table);
        Client { table, counter }
    }

    async fn write(&self, client: &mut Client, name: &str) -> Outcome {
        let one = &client.counter;
        let other = views(&client.table).shards(1);
        let mut results = Vec::new();
        match name {
            "at once" => {
                let (a, b, c) = tokio::join!(self.add(one), self.add(one), self.add(&other));
                results.extend([a, b, c]);
            }
            _ => {
                for counter in [one, if name == "one client" { one } else { &other }, one] {
                    results.push(self.add(counter).await);
                }
            }
        }
        Ok(results.into_iter().collect::<Result<(), Error>>()?)
    }

    async fn check(&self, client: &mut Client) {
        let before = self.amounts.borrow().clone();
        let value = client.counter.value().await.unwrap();
        for (nth, counted) in self.amounts.borrow().iter().enumerate() {
            let times = value / 4_i64.pow(u32::try_from(nth).unwrap()) % 4;
            let is_right = match (before.get(nth), counted) {
                (Some(Counted::Once), _) => times == 1,
                (Some(Counted::Never), _) => times == 0,
                _ => times <= 1,
            };
            assert!(is_right, "{nth}: {counted:?}, {times} times");
        }
    }

    async fn settle(&self, _: &TableServer, client: &mut Client) {
        // A new client counts, and nothing that has happened stops it.
        self.add(&client.counter).await.unwrap();
        self.check(client).await;
    }

    async fn step(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        if rng.u8(..8) == 0 {
            client.counter = views(&client.table);
        }
        if rng.bool() {
            let (one, two) = tokio::join!(self.add(&client.counter), self.add(&client.counter));
            return Ok(one.and(two)?);
        }
        Ok(self.add(&client.counter).await?)
    }
}
