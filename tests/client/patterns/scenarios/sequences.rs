//! A sequence: no number is given twice, and those of one client grow.

use std::cell::RefCell;
use std::collections::BTreeSet;

use fastrand::Rng;
use tablesdk::sequence::Sequence;
use tablesdk::{Error, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::{Before, Outcome, Scenario, Write, done};

#[derive(Default)]
pub(super) struct Sequences {
    given: RefCell<BTreeSet<u64>>,
}

pub(super) struct Client {
    table: TableClient,
    sequence: Sequence,
    last: u64,
}

fn claims(table: &TableClient, block: u32) -> Sequence {
    Sequence::new(table, ("numbers", "claims")).block(block)
}

impl Sequences {
    async fn next(&self, sequence: &Sequence) -> Result<u64, Error> {
        let number = sequence.next().await?;
        let mut given = self.given.borrow_mut();
        assert!(given.insert(number), "{number} of {given:?}");
        Ok(number)
    }
}

suites!(Sequences);

impl Scenario for Sequences {
    type Client = Client;

    const WRITES: &'static [Write] = &[done("two blocks"), done("two clients")];

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = harness::client(server).table("Numbers");
        table.create_table().await.unwrap();
        Self::default()
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, service: &TableServiceClient) -> Client {
        let table = service.table("Numbers");
        Client {
            sequence: claims(&table, 2),
            table,
            last: 0,
        }
    }

    async fn write(&self, client: &mut Client, name: &str) -> Outcome {
        let other = claims(&client.table, 3);
        let mut result = Ok(());
        for nth in 0..4 {
            let is_other = name == "two clients" && nth % 2 == 1;
            let sequence = if is_other { &other } else { &client.sequence };
            result = self.next(sequence).await.map(drop).and(result);
        }
        // Whatever became of it, the same client goes on.
        self.next(&client.sequence).await?;
        Ok(result?)
    }

    async fn settle(&self, _: &TableServer, client: &mut Client) {
        for block in [3, 1] {
            let sequence = claims(&client.table, block);
            self.next(&sequence).await.unwrap();
        }
    }

    async fn step(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        if rng.u8(..16) == 0 {
            (client.sequence, client.last) = (claims(&client.table, rng.u32(1..4)), 0);
        }
        let number = self.next(&client.sequence).await?;
        assert!(number > client.last, "{number} after {}", client.last);
        client.last = number;
        Ok(())
    }
}
