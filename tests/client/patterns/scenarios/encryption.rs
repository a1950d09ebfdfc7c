//! Clients with stored keys, which are rotated and wrapped anew meanwhile: a read gives a value
//! that was written to that entity, `eq` finds the entities with a value and no others, and the
//! table contains no value.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use futures::stream;
use tablesdk::encryption::Keyring;
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::VirtualClock;

use super::super::encryption::keys::{HOUR, key_table};
use super::super::encryption::secrets::Secrets;
use super::super::encryption::{Patient, february, january};
use super::{Before, Outcome, Scenario, Write, done, or_unknown};

pub(super) struct Patients {
    keyring: Keyring,
    clock: VirtualClock,
    sent: RefCell<Sent>,
}

/// The values that any write has sent, by entity.
#[derive(Clone, Default)]
struct Sent {
    names: BTreeMap<String, BTreeSet<String>>,
    born: BTreeSet<i32>,
}

const IDS: u64 = 6;
const EMAILS: u64 = 4;

fn email(number: u64) -> String {
    format!("patient-{number}@contoso.example")
}

/// Each value is written once, so that a read shows by which write. No bytes that are shown as
/// hexadecimal digits look like it.
fn random(id: &str, rng: &mut Rng) -> Patient {
    Patient {
        name: (0..16).map(|_| rng.char('g'..='z')).collect(),
        born: rng.bool().then(|| rng.i32(1_000_000_000..)),
        ..Patient::new(id, &email(rng.u64(..EMAILS)))
    }
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

fn patient(id: &str, name: &str) -> Patient {
    Patient {
        name: name.to_owned(),
        born: Some(1_000_000_001),
        ..Patient::new(id, &email(0))
    }
}

/// Which patient a write is of.
fn id_of(write: &str) -> &'static str {
    match write {
        "insert" | "exactly once" => "2",
        _ => "1",
    }
}

suites!(Patients);

impl Scenario for Patients {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        done("upsert"),
        or_unknown("modify"),
        or_unknown("exactly once"),
    ];

    async fn new(server: &TableServer, before: Before) -> Self {
        let service = harness::client(server);
        service.table("Patients").create_table().await.unwrap();
        let keys = key_table(&service).await;
        let keyring = Keyring::open(&keys, vec![february(), january()]).await;
        let keyring = keyring.unwrap();
        keyring.rotate().await.unwrap();
        let scenario = Self {
            keyring,
            clock: server.clock(),
            sent: RefCell::default(),
        };
        if before != Before::History {
            let first = patient("1", "ottottottottott");
            scenario.sent.borrow_mut().add(&first);
            let table = scenario.client(&service);
            table.insert(&first).await.unwrap();
        }
        scenario
    }

    fn again(&self) -> Self {
        Self {
            keyring: self.keyring.clone(),
            clock: self.clock.clone(),
            sent: self.sent.clone(),
        }
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        let table = service.table("Patients");
        table.with_encryption(self.keyring.clone())
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let written = patient(id_of(name), "zwozwozwozwozwo");
        self.sent.borrow_mut().add(&written);
        match name {
            "insert" => drop(table.insert(&written).await?),
            "upsert" => drop(table.upsert_replace(&written).await?),
            "modify" => {
                let write = |found: &mut Patient| {
                    found.name.clone_from(&written.name);
                    Ok(())
                };
                table.modify(Patient::key("Ward", "1"), write).await?;
            }
            _ => {
                let batch = table.batch("Ward").insert(&written);
                batch.exactly_once().await?;
            }
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let key = Patient::key("Ward", id_of(name));
        let found = table.get(key).await.unwrap();
        Some(found.is_some_and(|found| found.name == "zwozwozwozwozwo"))
    }

    /// A client reads only values that were written, and only those that it has asked for.
    async fn check(&self, table: &mut TableClient) {
        for number in 0..EMAILS {
            let email = email(number);
            let with_email = table.query::<Patient>().filter(|p| p.email.eq(&email));
            for found in with_email.collect().await.unwrap() {
                self.sent.borrow().check(&found);
                assert_eq!(found.email, email);
            }
        }
        for id in 0..IDS {
            let key = Patient::key("Ward", id.to_string());
            if let Some(found) = table.get(key).await.unwrap() {
                self.sent.borrow().check(&found);
            }
        }
    }

    /// New keys, and new wraps; each pause may let an hour go by.
    async fn mend(&self, _: &mut TableClient) -> Outcome {
        match fastrand::u8(..4) {
            0 => self.keyring.rotate().await?,
            1 => drop(self.keyring.rewrap().await?),
            _ => self.clock.advance(HOUR.mul_f64(fastrand::f64())),
        }
        Ok(())
    }

    async fn settle(&self, server: &TableServer, table: &mut TableClient) {
        while self.keyring.rewrap().await.unwrap() > 0 {}
        // One that opens late, with the newest key alone.
        let service = harness::client(server);
        let late = Keyring::open(&key_table(&service).await, february()).await;
        let late = service.table("Patients").with_encryption(late.unwrap());
        for table in [table, &late] {
            let all = table.query::<Patient>().values().collect().await.unwrap();
            let mut found = 0;
            for number in 0..EMAILS {
                let email = email(number);
                let expected = all.iter().filter(|patient| patient.email == email);
                let expected: Vec<_> = expected.cloned().collect();
                let query = || table.query::<Patient>().filter(|p| p.email.eq(&email));
                assert_eq!(query().values().collect().await.unwrap(), expected);
                assert_eq!(query().count().await.unwrap(), expected.len());
                found += expected.len();
            }
            assert_eq!(found, all.len());
            for patient in &all {
                self.sent.borrow().check(patient);
            }
        }
        self.assert_stored_as_bytes(server);
    }

    /// One random write of one or more patients.
    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let id = rng.u64(..IDS).to_string();
        let (patient, key) = (random(&id, rng), || Patient::key("Ward", &id));
        self.sent.borrow_mut().add(&patient);
        match rng.u8(..9) {
            0 => drop(table.insert(&patient).await?),
            1 => drop(table.upsert_replace(&patient).await?),
            2 => drop(table.upsert_merge(&patient).await?),
            3 => {
                let patch = table.patch(key()).set(|p| p.name, patient.name);
                patch.set(|p| p.email, patient.email).await?;
            }
            4 => {
                let write = |found: &mut Patient| {
                    found.name.clone_from(&patient.name);
                    found.email.clone_from(&patient.email);
                    Ok(())
                };
                table.modify(key(), write).exactly_once().await?;
            }
            5 => {
                if let Some(mut found) = table.get(key()).tracked().await? {
                    self.sent.borrow().check(&found);
                    found.name = patient.name;
                    table.merge(&mut found).changed_only().await?;
                }
            }
            6 => {
                let other = random(&rng.u64(..IDS).to_string(), rng);
                if other.id != id {
                    self.sent.borrow_mut().add(&other);
                    let batch = table.batch("Ward").upsert_replace(&patient);
                    batch.upsert_merge(&other).exactly_once().await?;
                }
            }
            7 => {
                let bulk = table.bulk().upsert_replace(stream::iter([patient]));
                drop(bulk.await);
            }
            _ => drop(table.delete(key()).await?),
        }
        Ok(())
    }
}

impl Patients {
    /// Nothing in the server's tables shows what was written.
    fn assert_stored_as_bytes(&self, server: &TableServer) {
        let sent = self.sent.borrow();
        let mut secrets = Secrets::default();
        for text in ["@contoso.example", "patient-"] {
            secrets.text(text);
        }
        for name in sent.names.values().flatten() {
            secrets.text(name);
        }
        let dump = server.dump().unwrap();
        assert_eq!(secrets.found_in(&dump), None, "{dump}");
        let mut born = sent.born.iter().map(i32::to_string);
        assert!(!born.any(|born| dump.contains(&born)), "{dump}");
    }
}
