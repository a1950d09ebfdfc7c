//! The plain verbs: what they return is true, and a change that is counted is counted once.

use std::cell::RefCell;
use std::collections::BTreeSet;

use fastrand::Rng;
use tablesdk::{DynamicEntity, ETag, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::super::moves::Plain;
use super::history::patient;
use super::{Before, Failure, Outcome, Scenario, Write, all_of, done, or_unknown};

/// The counters, and the transfers between two accounts, as the clients know them.
#[derive(Default)]
pub(super) struct Verbs {
    counters: RefCell<[Known; 3]>,
    transferred: RefCell<Known>,
    /// The entities that were inserted exactly once, and then deleted: no late attempt of the
    /// insert brings them back.
    deleted: RefCell<BTreeSet<String>>,
}

/// How much was acknowledged, and of how much the outcome is not known, or not known yet.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    acknowledged: i64,
    unknown: i64,
}

const IDS: [&str; 3] = ["1", "2", "3"];
const ACCOUNTS: [&str; 2] = ["a", "b"];

impl Known {
    fn begin(&mut self, amount: i64) {
        self.unknown += amount;
    }

    fn end(&mut self, amount: i64, result: &Outcome, is_exactly_once: bool) {
        match result {
            Ok(()) => self.acknowledged += amount,
            // Of a write that a proxy sends twice, the second response is returned, unless it is
            // exactly once.
            Err(error) if error.is_outcome_unknown || !is_exactly_once => return,
            Err(_) => {}
        }
        self.unknown -= amount;
    }

    /// Judges what was read after the one and before the other was known.
    fn check(before: Self, after: Self, found: Option<i64>) {
        let most = after.acknowledged + after.unknown;
        let found = found.expect("nobody deletes it");
        let is_right = (before.acknowledged..=most).contains(&found);
        assert!(is_right, "{found}: {before:?}, {after:?}");
    }
}

impl Verbs {
    /// Adds one to a counter.
    async fn add(table: &TableClient, which: usize, way: u8) -> Outcome {
        let key = || Plain::key("Sales", IDS[which]);
        let change = |found: &mut Plain| {
            found.version += 1;
            Ok(())
        };
        if way == 0 {
            let modify = table.modify(key(), change).rounds(u32::MAX);
            modify.exactly_once().await?;
            return Ok(());
        }
        let mut found = table.get(key()).await?.expect("nobody deletes it");
        found.version += 1;
        let batch = table.batch("Sales");
        match way {
            1 => drop(batch.replace(&mut found).exactly_once().await?),
            2 => drop(batch.replace(&mut found).await?),
            3 => drop(table.replace(&mut found).await?),
            4 => drop(table.modify(key(), change).if_match(found.etag()).await?),
            _ => drop(table.merge(&mut found).await?),
        }
        Ok(())
    }

    /// Adds one to a counter that a query finds. Returns how many it has changed.
    async fn add_to_all(
        table: &TableClient,
        which: usize,
        is_exactly_once: bool,
    ) -> Result<u64, Failure> {
        let found = table.query::<Plain>().partition("Sales");
        let found = found.filter(|it| it.id.eq(IDS[which]) & it.version.ge(0));
        let run = found.modify_all(|found| {
            found.version += 1;
            Ok(())
        });
        let run = if is_exactly_once {
            run.exactly_once()
        } else {
            run
        };
        let mut written = 0;
        let run = run.progress(|progress| written = progress.written);
        all_of(run).await?;
        Ok(written)
    }

    /// Moves an amount from one account to the other, whose sum is zero.
    async fn transfer(table: &TableClient, amount: i64, is_exactly_once: bool) -> Outcome {
        let run = table.transaction("Sales", async |tx| {
            let [from, to] = ACCOUNTS.map(|id| Plain::key("Sales", id));
            let (from, to) = (tx.get(from).await?, tx.get(to).await?);
            let (mut from, mut to) = from.zip(to).ok_or("nobody deletes them")?;
            from.version -= amount;
            to.version += amount;
            let left = from.version;
            tx.replace(from).merge(to);
            Ok(left)
        });
        let run = run.rounds(u32::MAX).with_etags();
        let run = if is_exactly_once {
            run.exactly_once()
        } else {
            run
        };
        let (left, written) = run.await?;
        // Of the round that was carried out, whatever became of its response.
        let stored = ACCOUNTS.map(|id| written.stored(Plain::key("Sales", id)).unwrap());
        assert_eq!(stored.map(|it| Some(it?.version)), [Some(left), None]);
        Ok(())
    }
}

suites!(Verbs);

impl Scenario for Verbs {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        done("insert exactly once"),
        done("upsert_replace"),
        done("upsert_merge"),
        or_unknown("replace"),
        or_unknown("merge"),
        done("replace_if any"),
        or_unknown("modify"),
        done("modify exactly once"),
        or_unknown("modify of one version"),
        done("modify of one version exactly once"),
        or_unknown("delete"),
        or_unknown("delete_stored"),
        or_unknown("batch"),
        done("batch exactly once"),
        or_unknown("transaction"),
        done("transaction exactly once"),
        or_unknown("modify_all"),
        done("modify_all exactly once"),
    ];
    const CLIENTS: u64 = 12;

    /// No client gives up: what is carried out exactly once has a known outcome, unless something
    /// in between responds.
    fn retry() -> RetryPolicy {
        patient()
    }

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = Self::default().client(&harness::client(server));
        table.create_table().await.unwrap();
        for id in IDS.into_iter().chain(ACCOUNTS) {
            table.insert(&Plain::new(id, 0)).await.unwrap();
        }
        Self::default()
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        service.table("Company")
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let new = Plain::new("9", 7);
        let changed = Plain::new("1", 7);
        let key = || Plain::key("Sales", "1");
        let change = |found: &mut Plain| {
            found.version = 7;
            Ok(())
        };
        let get = async || {
            let found = table.get(key()).await;
            found.map(|found| found.expect("inserted"))
        };
        match name {
            "insert" => drop(table.insert(&new).await?),
            "insert exactly once" => drop(table.insert(&new).exactly_once().await?),
            "upsert_replace" => drop(table.upsert_replace(&changed).await?),
            "upsert_merge" => drop(table.upsert_merge(&changed).await?),
            "replace" => {
                let mut found = get().await?;
                found.version = 7;
                table.replace(&mut found).await?;
            }
            "merge" => {
                let mut found = get().await?;
                found.version = 7;
                table.merge(&mut found).await?;
            }
            "replace_if any" => drop(table.replace_if(&changed, ETag::ANY).await?),
            "modify" => drop(table.modify(key(), change).await?),
            "modify exactly once" => drop(table.modify(key(), change).exactly_once().await?),
            "modify of one version" => {
                let etag = get().await?.etag().clone();
                table.modify(key(), change).if_match(etag).await?;
            }
            "modify of one version exactly once" => {
                let etag = get().await?.etag().clone();
                let modify = table.modify(key(), change).if_match(etag);
                modify.exactly_once().await?;
            }
            "delete" => drop(table.delete(key()).await?),
            "delete_stored" => drop(table.delete_stored(&get().await?).await?),
            "batch" | "batch exactly once" => {
                let batch = table.batch("Sales").insert(&new).upsert_replace(&changed);
                if name == "batch" {
                    batch.await?;
                } else {
                    batch.exactly_once().await?;
                }
            }
            "modify_all" | "modify_all exactly once" => {
                let found = table.query::<Plain>().filter(|it| it.id.lt("9"));
                let run = found.modify_all(|found| {
                    found.version += 7;
                    Ok(())
                });
                if name == "modify_all" {
                    all_of(run).await?;
                } else {
                    all_of(run.exactly_once()).await?;
                }
            }
            _ => {
                let run = table.transaction("Sales", async |tx| {
                    let mut found = tx.get(key()).await?.ok_or("inserted")?;
                    found.version = 7;
                    tx.replace(found);
                    Ok(())
                });
                if name == "transaction" {
                    run.await?;
                } else {
                    run.exactly_once().await?;
                }
            }
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let (one, new) = (Plain::find(table, "1").await, Plain::find(table, "9").await);
        let is_changed = one.as_ref().is_some_and(|one| one.version == 7);
        Some(match name {
            "insert" | "insert exactly once" => new.is_some(),
            "delete" | "delete_stored" => one.is_none(),
            "modify_all" | "modify_all exactly once" => {
                let found = table.query::<Plain>().filter(|it| it.id.lt("9"));
                let found = found.collect().await.unwrap();
                // Never twice, and as one transaction.
                let is_done = found[0].version == 7;
                let expected = if is_done { 7 } else { 0 };
                assert!(found.iter().all(|it| it.version == expected), "{found:?}");
                is_done
            }
            "batch" | "batch exactly once" => new.is_some() && is_changed,
            _ => is_changed,
        })
    }

    async fn check(&self, table: &mut TableClient) {
        let (counters, transferred) = (*self.counters.borrow(), *self.transferred.borrow());
        let found = table.query::<Plain>().partition("Sales").collect().await;
        let found = found.unwrap();
        let version = |id: &str| found.iter().find(|it| it.id == id).map(|it| it.version);
        for (which, id) in IDS.into_iter().enumerate() {
            let after = self.counters.borrow()[which];
            if after.acknowledged + after.unknown > 0 {
                Known::check(counters[which], after, version(id));
            }
        }
        let [from, to] = ACCOUNTS.map(version);
        assert_eq!(from, to.map(|to| -to), "half a transfer");
        Known::check(transferred, *self.transferred.borrow(), to);
    }

    async fn settle(&self, _: &TableServer, table: &mut TableClient) {
        self.check(table).await;
        let all = table.query::<DynamicEntity>().partition("Sales");
        let all = all.collect().await.unwrap();
        let mut keys = all.iter().map(|row| row.row_key());
        let deleted = self.deleted.borrow();
        // Queries hide the markers.
        let is_wrong = |key: &str| key.starts_with("~tablesdk.") || deleted.contains(key);
        assert!(!keys.any(is_wrong), "{all:?}");
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        if rng.u8(..6) == 0 {
            let id = format!("new-{}", rng.u64(..));
            let new = Plain::new(&id, 1);
            let inserted = table.insert(&new).exactly_once().await;
            let inserted = inserted.map(drop).map_err(Failure::from);
            assert_no_rival(&inserted, true);
            inserted?;
            table.delete(Plain::key("Sales", &id)).await?;
            self.deleted.borrow_mut().insert(id);
            return Ok(());
        }
        if rng.u8(..3) == 0 {
            let (amount, is_exactly_once) = (rng.i64(1..100), rng.bool());
            self.transferred.borrow_mut().begin(amount);
            let result = Self::transfer(table, amount, is_exactly_once).await;
            assert_no_rival(&result, is_exactly_once);
            let mut transferred = self.transferred.borrow_mut();
            transferred.end(amount, &result, is_exactly_once);
            if result.is_ok() && !is_exactly_once {
                // A network that delivers the commit twice lets it be carried out in two rounds.
                transferred.begin(amount);
            }
            return result;
        }
        let (which, way) = (rng.usize(..IDS.len()), rng.u8(..8));
        if way >= 6 {
            let is_exactly_once = way == 6;
            self.counters.borrow_mut()[which].begin(1);
            let result = Self::add_to_all(table, which, is_exactly_once).await;
            let counter = &mut self.counters.borrow_mut()[which];
            match &result {
                // A network that exchanges responses hides the counter.
                Ok(0) if is_exactly_once => counter.unknown -= 1,
                Ok(0) => {}
                Ok(_) => {
                    counter.end(1, &Ok(()), is_exactly_once);
                    if !is_exactly_once {
                        // A network that delivers it twice, beside a rival.
                        counter.begin(1);
                    }
                }
                Err(error) if is_exactly_once && !error.is_outcome_unknown => counter.unknown -= 1,
                Err(_) => {}
            }
            return result.map(drop);
        }
        self.counters.borrow_mut()[which].begin(1);
        let result = Self::add(table, which, way).await;
        assert_no_rival(&result, way == 0);
        self.counters.borrow_mut()[which].end(1, &result, way < 2);
        result
    }
}

/// An operation that starts over without limit and is carried out exactly once is never refused
/// because of another client.
fn assert_no_rival(result: &Outcome, is_exactly_once: bool) {
    let is_of_rival = result.as_ref().is_err_and(|error| error.is_of_rival);
    assert!(!is_exactly_once || !is_of_rival, "{result:?}");
}
