//! Random histories of clients with stored keys, which are rotated and wrapped anew meanwhile, under faults: a read gives a value that was
//! written to that entity, `eq` finds the entities with a value and no others, and the table contains no value.
//!
//! A failure prints its seed; `TABLESDK_ENCRYPTION_SEED` runs that seed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use futures::stream;
use harness::{client, client_with, seeds};
use tablesdk::encryption::{KeyProvider, Keyring};
use tablesdk::{DynamicEntity, Error, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::sleep;

use super::super::faults::{is_expected, random_writes};
use super::keys::{HOUR, key_table};
use super::secrets::Secrets;
use super::{Patient, february, january};

const IDS: u64 = 6;
const EMAILS: u64 = 4;

fn email(rng: &mut Rng) -> String {
    format!("patient-{}@contoso.example", rng.u64(..EMAILS))
}

/// Each value is written once, so that a read shows by which write. No bytes that are shown as hexadecimal digits look like it.
fn name(rng: &mut Rng) -> String {
    (0..16).map(|_| rng.char('g'..='z')).collect()
}

fn random(id: &str, rng: &mut Rng) -> Patient {
    Patient {
        name: name(rng),
        born: rng.bool().then(|| rng.i32(1_000_000_000..)),
        ..Patient::new(id, &email(rng))
    }
}

/// The values that any write has sent, by entity.
#[derive(Default)]
struct Sent {
    names: BTreeMap<String, BTreeSet<String>>,
    born: BTreeSet<i32>,
}

impl Sent {
    fn add(&mut self, patient: &Patient) {
        let names = self.names.entry(patient.id.clone()).or_default();
        names.insert(patient.name.clone());
        self.born.extend(patient.born);
    }

    fn check(&self, found: &Patient) {
        assert!(self.names[&found.id].contains(&found.name), "{found:?}");
        assert!(found.born.is_none_or(|born| self.born.contains(&born)));
        assert!(found.email.ends_with("@contoso.example"), "{found:?}");
    }
}

/// One random write of one or more patients.
async fn random_write(
    table: &TableClient,
    rng: &mut Rng,
    sent: &RefCell<Sent>,
) -> Result<(), Error> {
    let id = rng.u64(..IDS).to_string();
    let (patient, key) = (random(&id, rng), || Patient::key("Ward", &id));
    sent.borrow_mut().add(&patient);
    match rng.u8(..9) {
        0 => table.insert(&patient).await.map(drop),
        1 => table.upsert_replace(&patient).await.map(drop),
        2 => table.upsert_merge(&patient).await.map(drop),
        3 => {
            let patch = table.patch(key()).set(|p| p.name, patient.name);
            patch.set(|p| p.email, patient.email).await.map(drop)
        }
        4 => {
            let write = |found: &mut Patient| {
                found.name.clone_from(&patient.name);
                found.email.clone_from(&patient.email);
                Ok(())
            };
            table.modify(key(), write).exactly_once().await.map(drop)
        }
        5 => {
            let Some(mut found) = table.get(key()).tracked().await? else {
                return Ok(());
            };
            sent.borrow().check(&found);
            found.name = patient.name;
            let merge = table.merge(&mut found).changed_only();
            merge.await.map(drop)
        }
        6 => {
            let other = random(&rng.u64(..IDS).to_string(), rng);
            if other.id == id {
                return Ok(());
            }
            sent.borrow_mut().add(&other);
            let batch = table.batch("Ward").upsert_replace(&patient);
            batch.upsert_merge(&other).exactly_once().await.map(drop)
        }
        7 => {
            let bulk = table.bulk().upsert_replace(stream::iter([patient]));
            drop(bulk.await);
            Ok(())
        }
        _ => table.delete(key()).await.map(drop),
    }
}

/// What a client reads meanwhile was written, and is what it has asked for.
async fn watch(table: &TableClient, rng: &mut Rng, sent: &RefCell<Sent>) -> Result<(), Error> {
    let email = email(rng);
    let by_email = table.query::<Patient>().filter(|p| p.email.eq(&email));
    for found in by_email.collect().await? {
        sent.borrow().check(&found);
        assert_eq!(found.email, email);
    }
    let id = rng.u64(..IDS).to_string();
    if let Some(found) = table.get(Patient::key("Ward", id)).await? {
        sent.borrow().check(&found);
    }
    Ok(())
}

/// Without writers, each email finds the patients that have it.
async fn check(table: &TableClient, sent: &Sent) -> usize {
    let all = table.query::<Patient>().values().collect().await.unwrap();
    let mut found = 0;
    for number in 0..EMAILS {
        let email = format!("patient-{number}@contoso.example");
        let with_email = |patient: &&Patient| patient.email == email;
        let expected: Vec<_> = all.iter().filter(with_email).cloned().collect();
        let query = || table.query::<Patient>().filter(|p| p.email.eq(&email));
        assert_eq!(query().values().collect().await.unwrap(), expected);
        let count = query().count().await.unwrap();
        assert_eq!(count, expected.len());
        found += expected.len();
    }
    assert_eq!(found, all.len());
    for patient in &all {
        sent.check(patient);
    }
    all.len()
}

/// Nothing in the server's tables shows what was written.
fn assert_stored_as_bytes(server: &TableServer, sent: &Sent) {
    let mut secrets = Secrets::default();
    for text in ["@contoso.example", "patient-"] {
        secrets.text(text);
    }
    for name in sent.names.values().flatten() {
        secrets.text(name);
    }
    let dump = server.dump().unwrap();
    assert!(dump.contains("Email__eq"), "{dump}");
    assert_eq!(secrets.found_in(&dump), None, "{dump}");
    let mut born = sent.born.iter().map(i32::to_string);
    assert!(!born.any(|born| dump.contains(&born)), "{dump}");
}

async fn open(server: &TableServer, provider: impl KeyProvider) -> (TableClient, Keyring) {
    let service = client_with(server, |builder| builder.retry(RetryPolicy::exponential()));
    let keys = key_table(&client(server)).await;
    let keyring = Keyring::open(&keys, provider).await.unwrap();
    (
        service.table("Patients").with_encryption(keyring.clone()),
        keyring,
    )
}

/// New keys, and new wraps, while clients write; each pause may let an hour go by.
async fn change_keys(server: &TableServer, keyring: &Keyring, rng: &mut Rng) -> Result<(), Error> {
    match rng.u8(..4) {
        0 => keyring.rotate().await?,
        1 => drop(keyring.rewrap().await?),
        _ => server.clock().advance(HOUR.mul_f64(rng.f64())),
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_histories_show_what_was_written_and_store_none_of_it() {
    let (mut runs, mut all_keys, mut all_rotations) = (0, 0, 0);
    for seed in seeds("TABLESDK_ENCRYPTION_SEED", 6) {
        println!("TABLESDK_ENCRYPTION_SEED={seed}");
        fastrand::seed(seed);
        let server = TableServer::in_process();
        client(&server)
            .table("Patients")
            .create_table()
            .await
            .unwrap();
        let (first, _) = open(&server, vec![january(), february()]).await;
        let (second, keyring) = open(&server, vec![february(), january()]).await;
        keyring.rotate().await.unwrap();
        let sent = RefCell::new(Sent::default());
        let faults = server.faults();
        let late = Fault::reset().applied_after(Duration::from_secs(5));
        let late = faults.on_writes().probability(0.1).seed(seed).inject(late);
        let injected = faults.chaos(seed);
        let writers = [&first, &second, &first]
            .into_iter()
            .zip(1_u64..)
            .map(|(table, writer)| {
                let rng = Rng::with_seed(seed ^ (writer << 8));
                let sent = &sent;
                let write = async move |rng: &mut Rng| random_write(table, rng, sent).await;
                random_writes(rng, 40, write, |error| {
                    is_expected(error) || error.is_timeout()
                })
            });
        let watching = async {
            let mut rng = Rng::with_seed(!seed);
            loop {
                if let Err(error) = watch(&first, &mut rng, &sent).await {
                    assert!(is_expected(&error) || error.is_timeout(), "{error}");
                }
                sleep(Duration::from_millis(30)).await;
            }
        };
        let mut rotations = 0;
        let changing = async {
            let mut rng = Rng::with_seed(seed ^ 7);
            loop {
                match change_keys(&server, &keyring, &mut rng).await {
                    Ok(()) => rotations += 1,
                    Err(error) => assert!(is_expected(&error) || error.is_timeout(), "{error}"),
                }
                sleep(Duration::from_millis(rng.u64(..400))).await;
            }
        };
        let done: u32 = tokio::select! {
            done = join_all(writers) => done.into_iter().sum(),
            () = watching => unreachable!(),
            () = changing => unreachable!(),
        };
        faults.clear();
        sleep(Duration::from_secs(60)).await;
        // One that opens late, with the newest key alone.
        while keyring.rewrap().await.unwrap() > 0 {}
        let (late_client, _) = open(&server, february()).await;
        let sent = sent.into_inner();
        let mut found = Vec::new();
        for table in [&first, &second, &late_client] {
            found.push(check(table, &sent).await);
        }
        assert_stored_as_bytes(&server, &sent);
        let keys = key_table(&client(&server)).await;
        let keys = keys.query::<DynamicEntity>().count().await.unwrap() - 1;
        println!(
            "{done} writes, {keys} keys, {found:?} found, {} and {} faults",
            injected.hits(),
            late.hits()
        );
        assert!(done > 40 && injected.hits() > 5 && late.hits() > 0);
        runs += 1;
        all_keys += keys;
        all_rotations += rotations;
    }
    // How often the keys change in one of them depends on random pauses of retries.
    assert!(
        all_keys > runs && all_rotations > 3 * runs,
        "{all_keys} keys, {all_rotations} rotations in {runs} runs"
    );
}
