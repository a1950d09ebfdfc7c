//! Entities that expire: none is removed before its time, and what has expired is removed with all
//! that belongs to it.

use std::time::Duration;

use fastrand::Rng;
use tablesdk::transport::Clock as _;
use tablesdk::{TableClient, TableServiceClient, Timestamp};
use tablesdk_server::TableServer;
use tablesdk_server::testing::VirtualClock;
use tokio::time::sleep;

use super::super::expiry::hours;
use super::super::expiry_removal::{Session, Visit, buckets, rows, session, visit};
use super::{Before, Outcome, Scenario, Write, or_unknown, uncertain};

pub(super) struct Sessions {
    clock: VirtualClock,
    before: Before,
    clients: std::cell::Cell<u32>,
}

pub(super) struct Client {
    number: u32,
    table: TableClient,
    /// Until when each of its sessions is valid. `None` where the outcome of a write is not known.
    valid: [Option<Timestamp>; 2],
}

impl Sessions {
    fn begun(clock: VirtualClock, before: Before) -> Self {
        Self {
            clock,
            before,
            clients: std::cell::Cell::default(),
        }
    }
}

suites!(Sessions);

impl Scenario for Sessions {
    type Client = Client;

    const WRITES: &'static [Write] = &[
        or_unknown("remove sessions"),
        or_unknown("remove visits"),
        uncertain("insert over"),
    ];
    const EVERY: u64 = 2;
    const PAUSE: Duration = Duration::from_secs(30);

    async fn new(server: &TableServer, before: Before) -> Self {
        let scenario = Self::begun(server.clock(), before);
        let table = scenario.client(&harness::client(server)).table;
        table.create_table().await.unwrap();
        if before != Before::History {
            for (id, until) in [(1, hours(-2)), (2, hours(2)), (3, hours(-2)), (4, hours(2))] {
                table.insert(&session("ann", id, until)).await.unwrap();
                table.insert(&visit(id, until)).await.unwrap();
            }
        }
        scenario
    }

    fn again(&self) -> Self {
        Self::begun(self.clock.clone(), self.before)
    }

    fn client(&self, service: &TableServiceClient) -> Client {
        self.clients.set(self.clients.get() + 1);
        Client {
            number: self.clients.get(),
            table: service.table("Tests"),
            valid: [None; 2],
        }
    }

    async fn write(&self, client: &mut Client, name: &str) -> Outcome {
        let table = &client.table;
        match name {
            "remove sessions" => {
                table.clean_up_expired::<Session>().await?;
            }
            "remove visits" => {
                table.clean_up_expired::<Visit>().await?;
            }
            "insert over" => {
                table.insert(&session("ann", 1, hours(2))).await?;
                table.insert(&visit(1, hours(2))).await?;
            }
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, client: &mut Client, name: &str) -> Option<bool> {
        let rows = rows(&client.table).await;
        let has = |row: &str| rows.iter().any(|it| it == row);
        let is_done = match name {
            "remove sessions" => !has("000001") && !has("000003"),
            "remove visits" => !has("visit_000001") && !has("visit_000003"),
            _ => has("000001") && has("visit_000001"),
        };
        // One that failed may have done its first part.
        (!is_done).then_some(false)
    }

    /// Nothing is lost that is not over; visits have what belongs to them.
    async fn check(&self, client: &mut Client) {
        if self.before == Before::History {
            return;
        }
        let rows = rows(&client.table).await;
        for id in [2, 4] {
            for row in [
                format!("{id:06}"),
                format!("visit_{id:06}"),
                format!("page_home_{id:06}"),
                format!("seen_{id:06}"),
            ] {
                assert!(rows.contains(&row), "{row}: {rows:?}");
            }
        }
        let count = |prefix: &str| rows.iter().filter(|row| row.starts_with(prefix)).count();
        let visits = count("visit_");
        assert_eq!((visits, visits), (count("page_"), count("seen_")));
    }

    async fn mend(&self, client: &mut Client) -> Outcome {
        client
            .table
            .clean_up_expired::<Session>()
            .concurrency(2)
            .await?;
        client.table.clean_up_expired::<Visit>().await?;
        sleep(Duration::from_secs(37)).await;
        Ok(())
    }

    /// Removals complete what one has begun, and leave no garbage.
    async fn settle(&self, server: &TableServer, client: &mut Client) {
        // As the first writer of the next removals: what is left of one is old.
        server.clock().advance(Duration::from_secs(3600 + 600));
        let remove = async || {
            client.table.clean_up_expired::<Session>().await.unwrap();
            client.table.clean_up_expired::<Visit>().await.unwrap();
        };
        for _ in 0..2 {
            remove().await;
        }
        let left = rows(&client.table).await;
        assert!(!left.iter().any(|row| row.ends_with("000003")), "{left:?}");
        // An entry of an insert that failed is found when its bucket has begun.
        server.clock().advance(Duration::from_secs(4 * 3600));
        remove().await;
        let left = (rows(&client.table).await, buckets(server));
        assert_eq!(left, (Vec::new(), Vec::new()));
    }

    /// Each client has sessions of its own, and knows until when each is valid.
    async fn step(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        let table = &client.table;
        let slot = rng.usize(..2);
        let id = client.number * 2 + u32::try_from(slot).unwrap();
        let key = Session::key("ann", id);
        let until = self
            .clock
            .now()
            .saturating_add(Duration::from_secs(rng.u64(60..3600)));
        let valid = client.valid[slot].take();
        let read = table.get(key.clone()).including_expired().await?;
        if let Some(valid) = valid
            && self.clock.now() < valid
        {
            let found = read.as_ref().expect("it has not expired");
            assert_eq!(found.until, Some(valid));
        }
        match read {
            Some(mut found) if rng.bool() => {
                found.until = Some(until);
                table.replace(&mut found).await?;
            }
            None => drop(table.insert(&session("ann", id, until)).await?),
            Some(_) => {
                let prolong = |session: &mut Session| {
                    session.until = Some(until);
                    Ok(())
                };
                let made = || session("ann", id, until);
                table.modify(key, prolong).or_insert(made).await?;
            }
        }
        client.valid[slot] = Some(until);
        sleep(Duration::from_secs(rng.u64(..900))).await;
        Ok(())
    }
}
