//! Faults at each request of a move, rival writes between its requests, and random histories: an entity is never in neither table, and no
//! acknowledged version is lost.
//!
//! A failure of the random test prints its seed; `TABLESDK_MOVE_SEED` runs that seed.

use std::cmp::max;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use harness::{client, client_with, seeds};
use tablesdk::{DynamicEntity, ETag, Error, RetryPolicy, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::entity::{Employee, checked};
use super::faults::{is_expected, random_writes};
use super::moves::{Plain, tables};

/// A way to move the first entity, or all. `before` says what the archive has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    One,
    OneThatIsThere,
    OneOver,
    Indexed,
    IndexedOver,
    All,
    AllThatAreThere,
}

const WAYS: [Way; 7] = [
    Way::One,
    Way::OneThatIsThere,
    Way::OneOver,
    Way::Indexed,
    Way::IndexedOver,
    Way::All,
    Way::AllThatAreThere,
];

impl Way {
    fn is_indexed(self) -> bool {
        matches!(self, Self::Indexed | Self::IndexedOver)
    }

    async fn prepare(self, table: &TableClient, archive: &TableClient) {
        if self.is_indexed() {
            table.insert(&employee("Lovelace")).await.unwrap();
        } else {
            for id in ["1", "2", "3"] {
                table.insert(&Plain::new(id, 7)).await.unwrap();
            }
        }
        match self {
            Self::One | Self::Indexed | Self::All => {}
            Self::OneThatIsThere => drop(archive.insert(&Plain::new("1", 7)).await.unwrap()),
            Self::OneOver => drop(archive.insert(&Plain::new("1", 3)).await.unwrap()),
            Self::IndexedOver => drop(archive.insert(&employee("King")).await.unwrap()),
            Self::AllThatAreThere => {
                for id in ["1", "3"] {
                    archive.insert(&Plain::new(id, 7)).await.unwrap();
                }
            }
        }
    }

    async fn run(self, table: &TableClient, archive: &TableClient) -> Result<(), String> {
        let overwrites = matches!(self, Self::OneOver | Self::IndexedOver);
        let moved = match self {
            Self::All | Self::AllThatAreThere => {
                let sales = table.query::<Plain>().partition("Sales");
                let report = sales.move_to(archive).await;
                let report = report.map_err(|error| error.to_string())?;
                let failure = report.failures().first();
                return failure.map_or(Ok(()), |failure| Err(failure.to_string()));
            }
            way if way.is_indexed() => match table.get(Employee::key("Sales", 1)).await {
                Ok(Some(found)) if overwrites => {
                    table.move_to(archive, found).overwrite().await.map(drop)
                }
                Ok(Some(found)) => table.move_to(archive, found).await.map(drop),
                found => found.map(drop),
            },
            _ => match table.get(Plain::key("Sales", "1")).await {
                Ok(Some(found)) if overwrites => {
                    table.move_to(archive, found).overwrite().await.map(drop)
                }
                Ok(Some(found)) => table.move_to(archive, found).await.map(drop),
                found => found.map(drop),
            },
        };
        moved.map_err(|error| error.to_string())
    }

    /// The versions of the entities that are moved: in the table, and in the archive.
    async fn found(
        self,
        table: &TableClient,
        archive: &TableClient,
    ) -> Vec<(Option<i64>, Option<i64>)> {
        if self.is_indexed() {
            let version = async |table| {
                let found = checked(table).await;
                found
                    .first()
                    .map(|e| if e.last_name == "King" { 3 } else { 7 })
            };
            return vec![(version(table).await, version(archive).await)];
        }
        let ids = if matches!(self, Self::All | Self::AllThatAreThere) {
            vec!["1", "2", "3"]
        } else {
            vec!["1"]
        };
        let mut found = Vec::new();
        for id in ids {
            // In this order: what is no longer in the table is in the archive.
            let here = Plain::find(table, id).await.map(|e| e.version);
            found.push((here, Plain::find(archive, id).await.map(|e| e.version)));
        }
        found
    }
}

fn employee(name: &str) -> Employee {
    let email = format!("{name}@contoso.com");
    Employee::new(1, name, Some(&email))
}

/// Runs each way with the fault at its first request, then at its second, and so on, until no request is hit. Afterwards, another client runs it
/// again.
async fn at_each_request(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    expect: impl Fn(&str, Result<(), String>),
) {
    for way in WAYS {
        for nth in 1.. {
            let server = TableServer::in_process();
            let (other, other_archive) = tables(&client(&server)).await;
            way.prepare(&other, &other_archive).await;
            let service = client_with(&server, |builder| builder.retry(retry()));
            let (table, archive) = (service.table("Company"), service.table("Archive"));
            let injected = server.faults().on_any().nth(nth).inject(fault());
            let result = way.run(&table, &archive).await;
            let hits = injected.hits();
            server.faults().clear();
            let what = format!("{way:?}, request {nth}, {result:?}");
            for found in way.found(&other, &other_archive).await {
                assert!(
                    found.0 == Some(7) || found.1 == Some(7),
                    "{what}: {found:?}"
                );
                assert!(
                    result.is_err() || found == (None, Some(7)),
                    "{what}: {found:?}"
                );
            }
            // What is late has arrived.
            sleep(Duration::from_secs(60)).await;
            way.run(&other, &other_archive).await.expect(&what);
            for found in way.found(&other, &other_archive).await {
                assert_eq!(found, (None, Some(7)), "{what}");
            }
            if hits == 0 {
                assert!(nth > 3, "{what}");
                break;
            }
            expect(&what, result);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_sent_is_retried_or_leaves_the_entity() {
    at_each_request(RetryPolicy::none, Fault::reset, |what, result| {
        result.expect_err(what);
    })
    .await;
    at_each_request(RetryPolicy::exponential, Fault::reset, |what, result| {
        result.expect(what);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_lose_the_entity() {
    at_each_request(
        RetryPolicy::exponential,
        Fault::lost_response,
        |what, result| {
            result.expect(what);
        },
    )
    .await;
    at_each_request(RetryPolicy::none, Fault::lost_response, |_, _| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_carried_out_twice_or_late_does_not_lose_the_entity() {
    at_each_request(
        RetryPolicy::exponential,
        Fault::duplicate,
        |what, result| {
            result.expect(what);
        },
    )
    .await;
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::none, late, |_, _| ()).await;
    at_each_request(RetryPolicy::exponential, late, |_, _| ()).await;
}

/// Another client writes the entities before each of the requests.
#[tokio::test(start_paused = true)]
async fn a_rival_write_stays_with_the_entity() {
    for way in WAYS {
        for nth in 1.. {
            let server = TableServer::in_process();
            let (table, archive) = tables(&client(&server)).await;
            way.prepare(&table, &archive).await;
            let slow = Fault::delay(Duration::from_secs(1));
            let injected = server.faults().on_any().nth(nth).inject(slow);
            let rival = async {
                sleep(Duration::from_millis(500)).await;
                let other = client(&server).table("Company");
                if way.is_indexed() {
                    let change = |e: &mut Employee| {
                        e.email = Some("rival@contoso.com".to_owned());
                        Ok(())
                    };
                    other
                        .modify(Employee::key("Sales", 1), change)
                        .await
                        .map(drop)
                } else {
                    let change = |e: &mut Plain| {
                        e.version = 8;
                        Ok(())
                    };
                    other
                        .modify(Plain::key("Sales", "1"), change)
                        .await
                        .map(drop)
                }
            };
            let (moved, written) = tokio::join!(way.run(&table, &archive), rival);
            let what = format!("{way:?}, request {nth}, {moved:?}, {written:?}");
            if injected.hits() == 0 {
                break;
            }
            if way.is_indexed() {
                let (here, there) = (checked(&table).await, checked(&archive).await);
                let is_rival = |e: &Employee| e.email.as_deref() == Some("rival@contoso.com");
                let found = here.first().or(there.first()).expect(&what);
                assert_eq!(is_rival(found), written.is_ok(), "{what}");
            } else {
                let found = way.found(&table, &archive).await;
                let (here, there) = found[0];
                match written {
                    Ok(()) => assert_eq!(max(here, there), Some(8), "{what}"),
                    Err(error) => {
                        assert!(error.is_not_found(), "{what}");
                        assert_eq!((here, there), (None, Some(7)), "{what}");
                    }
                }
                for (here, there) in &found[1..] {
                    assert_eq!((*here, *there), (None, Some(7)), "{what}");
                }
                // What this move has copied is removed again.
                if here == Some(8) && matches!(way, Way::One | Way::All) {
                    assert_eq!(there, None, "{what}");
                }
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(
    PersonByName,
    partition_key = "name_{name}",
    row_key = "in_{department}_{id:06}"
))]
struct Person {
    department: String,
    id: u32,
    name: String,
}

fn person(name: &str) -> Person {
    Person {
        department: "Sales".to_owned(),
        id: 1,
        name: name.to_owned(),
    }
}

/// All row keys of a table.
async fn row_keys(table: &TableClient) -> Vec<String> {
    let rows = table.query::<DynamicEntity>().values();
    let rows = rows.collect().await.expect("the table can be read");
    rows.iter().map(|row| row.row_key().to_owned()).collect()
}

/// A fault at each request, and a repair after the move was run again.
#[tokio::test(start_paused = true)]
async fn entries_in_other_partitions_move_with_their_entity() {
    for fault in [Fault::reset, Fault::lost_response, Fault::duplicate] {
        for nth in 1.. {
            let server = TableServer::in_process();
            let (table, archive) = tables(&client(&server)).await;
            table.insert(&person("Ada")).await.unwrap();
            archive.insert(&person("King")).await.unwrap();
            let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
            let (mover, target) = (service.table("Company"), service.table("Archive"));
            let injected = server.faults().on_any().nth(nth).inject(fault());
            let get = async || table.get(Person::key("Sales", 1)).await.unwrap();
            let first = get().await.unwrap();
            let result = mover.move_to(&target, first).overwrite().await;
            let hits = injected.hits();
            server.faults().clear();
            if let Some(again) = get().await {
                table.move_to(&archive, again).overwrite().await.unwrap();
            }
            let what = format!("request {nth}, {result:?}");
            let of_ada = archive
                .query::<PersonByName>()
                .partition(PersonByName::partition("Ada"));
            assert_eq!(of_ada.follow().collect().await.unwrap().len(), 1, "{what}");
            // The time passes in which an entry may belong to a write under way.
            server.clock().advance(Duration::from_secs(2 * 3600));
            for table in [&table, &archive] {
                assert!(table.repair::<Person>().await.unwrap().is_right(), "{what}");
            }
            assert_eq!(row_keys(&table).await, [""; 0], "{what}");
            assert_eq!(
                row_keys(&archive).await,
                ["empid_000001", "in_Sales_000001"],
                "{what}"
            );
            if hits == 0 {
                assert!(nth > 6 && result.is_ok(), "{what}");
                break;
            }
        }
    }
}

/// Another mover writes over the copy before this one removes it.
#[tokio::test(start_paused = true)]
async fn a_copy_that_another_mover_has_written_over_is_not_removed() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    let first = table.insert(&Plain::new("1", 1)).await.unwrap();
    let slow = Fault::delay(Duration::from_secs(1));
    let deletes = |table| server.faults().on(Op::DeleteEntity).table(table).nth(1);
    let at_source = deletes("Company").inject(slow.clone());
    let of_copy = deletes("Archive").inject(slow);
    let rivals = async {
        sleep(Duration::from_millis(500)).await;
        let second = table.replace_if(&Plain::new("1", 2), ETag::ANY);
        second.await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let second = Plain::find(&table, "1").await.unwrap();
        table.move_to(&archive, second).overwrite().await
    };
    let (moved, rival) = tokio::join!(table.move_to(&archive, first), rivals);
    assert!(moved.unwrap_err().is_precondition_failed());
    assert_eq!(rival.unwrap().version, 2);
    assert_eq!((at_source.hits(), of_copy.hits()), (1, 1));
    assert_eq!(
        (read(&table, "1").await, read(&archive, "1").await),
        (None, Some(2))
    );
}

/// The one inserts the copy, the other one finds it equal and writes it again, and then neither finds the source as it was.
#[tokio::test(start_paused = true)]
async fn a_copy_that_two_movers_have_written_is_removed_by_one_of_them() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    let first = table.insert(&Plain::new("1", 1)).await.unwrap();
    let slow = Fault::delay(Duration::from_secs(1));
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.times(2).inject(slow);
    let rival = async {
        sleep(Duration::from_millis(100)).await;
        table.move_to(&archive, first.clone()).await
    };
    let writer = async {
        sleep(Duration::from_millis(500)).await;
        let second = table.replace_if(&Plain::new("1", 2), ETag::ANY);
        second.await.unwrap();
    };
    let moved = table.move_to(&archive, first.clone());
    let (moved, rival, ()) = tokio::join!(moved, rival, writer);
    assert!(moved.unwrap_err().is_precondition_failed());
    assert!(rival.unwrap_err().is_precondition_failed());
    assert_eq!(injected.hits(), 2);
    assert_eq!(
        (read(&table, "1").await, read(&archive, "1").await),
        (Some(2), None)
    );
    // The next move is no conflict.
    let second = Plain::find(&table, "1").await.unwrap();
    drop(table.move_to(&archive, second).await.unwrap());
}

const ROUNDS: u32 = 60;
const IDS: [&str; 3] = ["1", "2", "3"];

/// What the workers share about an entity.
#[derive(Default)]
struct Shared {
    /// The greatest version whose write was acknowledged.
    latest: AtomicI64,
    /// Held by the only worker that may insert the entity: otherwise it could insert an old version after another one was inserted and
    /// moved.
    inserts: Mutex<()>,
}

/// One random step. Each write makes a version of its own, which is greater than all before.
async fn random_step(
    (table, archive): (&TableClient, &TableClient),
    shared: &[Shared; 3],
    rng: &mut Rng,
) -> Result<(), Error> {
    let which = rng.usize(..IDS.len());
    let key = || Plain::key("Sales", IDS[which]);
    match rng.u8(..5) {
        0 | 1 => {
            if let Some(found) = table.get(key()).await? {
                sleep(Duration::from_millis(rng.u64(..20))).await;
                let run = table.move_to(archive, found);
                let run = if rng.bool() { run.overwrite() } else { run };
                run.await?;
            }
        }
        2 => {
            let sales = table.query::<Plain>().partition("Sales");
            let run = sales.move_to(archive);
            let run = if rng.bool() { run.overwrite() } else { run };
            // The failures of single entities are those of rivals or of faults.
            drop(run.await);
        }
        3 => {
            if let Some(mut found) = table.get(key()).await? {
                found.version += 1;
                table.replace(&mut found).await?;
                let latest = &shared[which].latest;
                latest.fetch_max(found.version, Ordering::SeqCst);
            }
        }
        _ => {
            // It comes back from the archive, as a newer version.
            let _only = shared[which].inserts.lock().await;
            if let (None, Some(found)) = (table.get(key()).await?, archive.get(key()).await?) {
                let back = Plain::new(IDS[which], found.version + 1);
                // No late attempt of it brings back an old version.
                let kept = Duration::from_secs(600);
                table.insert(&back).exactly_once_for(kept).await?;
                let latest = &shared[which].latest;
                latest.fetch_max(back.version, Ordering::SeqCst);
            }
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_histories_with_faults_lose_no_version() {
    for seed in seeds("TABLESDK_MOVE_SEED", 8) {
        println!("TABLESDK_MOVE_SEED={seed}");
        fastrand::seed(seed);
        let server = TableServer::in_process();
        let (reader, reader_archive) = tables(&client(&server)).await;
        for id in IDS {
            reader.insert(&Plain::new(id, 1)).await.unwrap();
        }
        let shared: [Shared; 3] = Default::default();
        let faults = server.faults();
        let late = Fault::reset().applied_after(Duration::from_secs(5));
        let late = faults.on_writes().probability(0.05).seed(seed).inject(late);
        let injected = faults.chaos(seed);
        let workers = (0..4_u64).map(|worker| {
            let service = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()));
            let rng = Rng::with_seed(seed ^ (worker << 8));
            let shared = &shared;
            async move {
                let (table, archive) = (service.table("Company"), service.table("Archive"));
                let step = async |rng: &mut Rng| random_step((&table, &archive), shared, rng).await;
                random_writes(rng, ROUNDS, step, is_expected).await
            }
        });
        let watch = async {
            loop {
                for (id, shared) in IDS.iter().zip(&shared) {
                    let least = shared.latest.load(Ordering::SeqCst);
                    // In this order: what is no longer in the table is in the archive.
                    let here = read(&reader, id).await;
                    let there = read(&reader_archive, id).await;
                    let found = max(here, there);
                    assert!(
                        found.is_some_and(|found| found >= least),
                        "{id}: {here:?}, {there:?}, not {least}"
                    );
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let done: u32 = tokio::select! {
            done = join_all(workers) => done.into_iter().sum(),
            () = watch => unreachable!(),
        };
        faults.clear();
        sleep(Duration::from_secs(60)).await;
        for (id, shared) in IDS.iter().zip(&shared) {
            let found = max(read(&reader, id).await, read(&reader_archive, id).await);
            assert!(found >= Some(shared.latest.load(Ordering::SeqCst)), "{id}");
        }
        assert!(done > 60, "{done} steps succeeded");
        assert!(
            injected.hits() > 20 && late.hits() > 0,
            "{} and {}",
            injected.hits(),
            late.hits()
        );
    }
}

/// The version of an entity, whatever it takes to read it.
async fn read(table: &TableClient, id: &str) -> Option<i64> {
    loop {
        if let Ok(found) = table.get(Plain::key("Sales", id)).await {
            return found.map(|found| found.version);
        }
    }
}
