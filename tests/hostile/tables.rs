//! Tables, their access policies, and the properties of the service.

use std::fmt::Debug;

use fastrand::Rng;
use tablesdk::Error;
use tablesdk::sas::StoredAccessPolicy;
use tablesdk::service_properties::{CorsRule, ServiceProperties};

use crate::judge::{Truth, judge_write};
use crate::ledger::{Finding, Said};
use crate::record::Record;
use crate::world::World;

/// Random operations on a new table that is used only here.
pub(crate) async fn life(world: &World, rng: &mut Rng) {
    let name = format!("Table{}", world.next_id());
    let table = world.direct.table(&name);
    for _ in 0..rng.usize(2..6) {
        let existed = table.table_exists().await.unwrap();
        match rng.u8(..6) {
            0..=2 if !existed => create(world, &name, rng).await,
            0 if existed => create(world, &name, rng).await,
            1..=2 if existed => policies(world, &name, rng).await,
            3 => {
                let exists = world.table(rng, &name).table_exists();
                read(world, "table exists", exists, &existed).await;
            }
            _ => delete(world, &name, existed, rng).await,
        }
    }
}

/// An operation that ended and whose requests have all arrived.
struct Ended<T> {
    verb: &'static str,
    output: Result<T, Error>,
    said: Said,
    record: Record,
    truth: Truth,
}

impl<T: Debug> Ended<T> {
    async fn of(
        world: &World,
        verb: &'static str,
        id: u64,
        said: impl FnOnce(&Result<T, Error>) -> Said,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Self {
        let output = world.ask(id, operation).await.output;
        let record = world.registry.settle(id).await;
        Self {
            verb,
            said: said(&output),
            output,
            truth: Truth::of(&record, false),
            record,
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = judge_write(&self.said, false, self.truth);
        finding.into_iter().collect()
    }

    /// Whether the state that the operation guarantees must hold.
    fn must_hold(&self) -> bool {
        self.truth.applied > 0 || matches!(self.said, Said::Done | Said::NotThere)
    }

    /// Counts the operation, and enters what is wrong with it.
    fn enter(&self, world: &World, findings: Vec<Finding>) {
        let Self { verb, said, .. } = self;
        world.ledger.count(verb, said);
        world.ledger.enter(findings, || {
            let record = self.record.show(world.ledger.origin());
            format!("  {verb}: {said:?}: {:?}\n{record}", self.output)
        });
    }
}

/// Reads, and compares with what a client without faults reads.
async fn read<T: Debug + PartialEq>(
    world: &World,
    verb: &'static str,
    operation: impl IntoFuture<Output = Result<T, Error>>,
    expected: &T,
) {
    let id = world.next_id();
    let read = Ended::of(world, verb, id, Said::of_read, operation.into_future()).await;
    let is_wrong = read.output.as_ref().is_ok_and(|read| read != expected);
    let lie = || Finding::Lie(format!("{verb}: expected {expected:?}"));
    read.enter(world, is_wrong.then(lie).into_iter().collect());
}

/// Enters a write of something that other operations do not write, and whether it is stored.
fn enter_write<T: Debug>(world: &World, write: &Ended<T>, is_stored: bool, what: &str) {
    let mut findings = write.findings();
    let must_be_stored = write.said == Said::Done || write.truth.applied > 0;
    if must_be_stored != is_stored && write.truth.lost == 0 {
        findings.push(Finding::Lie(format!("{what} is stored: {is_stored}")));
    }
    write.enter(world, findings);
}

async fn create(world: &World, name: &str, rng: &mut Rng) {
    let id = world.next_id();
    let direct = world.direct.table(name);
    let existed = direct.table_exists().await.unwrap();
    let table = world.table(rng, name);
    let if_missing = rng.bool();
    let create = async {
        if if_missing {
            table.create_table().if_missing().await
        } else {
            table.create_table().await.map(|()| true)
        }
    };
    let created = Ended::of(world, "create table", id, Said::of_delete, create).await;
    let mut findings = created.findings();
    if existed && created.said == Said::Done {
        // After an ambiguous attempt, the client takes a table that exists for its own.
        findings.clear();
    }
    if (existed || created.must_hold()) && !direct.table_exists().await.unwrap() {
        findings.push(Finding::Lie(format!("table {name} does not exist")));
    }
    created.enter(world, findings);
}

async fn delete(world: &World, name: &str, existed: bool, rng: &mut Rng) {
    let id = world.next_id();
    let direct = world.direct.table(name);
    let delete = world.table(rng, name).delete_table().into_future();
    let deleted = Ended::of(world, "delete table", id, Said::of_delete, delete).await;
    let mut findings = deleted.findings();
    if !existed && deleted.said == Said::Done {
        // After an ambiguous attempt, the client takes a missing table for one that it deleted.
        findings.clear();
    }
    if (!existed || deleted.must_hold()) && direct.table_exists().await.unwrap() {
        findings.push(Finding::Lie(format!("table {name} exists")));
    }
    deleted.enter(world, findings);
}

async fn policies(world: &World, name: &str, rng: &mut Rng) {
    let id = world.next_id();
    let policy = format!("p{id}");
    let table = world.table(rng, name);
    let set = table.set_access_policy([StoredAccessPolicy::new(&policy)]);
    let set = Ended::of(world, "set access policy", id, Said::of, set.into_future()).await;
    let after = world.direct.table(name).access_policy().await.unwrap();
    let is_stored = after.iter().any(|found| found.id() == policy);
    enter_write(world, &set, is_stored, &policy);
    read(world, "get access policy", table.access_policy(), &after).await;
}

/// Sets the properties of the service, and reads them. Only for one worker.
pub(crate) async fn properties(world: &World, rng: &mut Rng) {
    let id = world.next_id();
    let origin = format!("https://o{id}.example");
    let service = world.client(rng);
    let rule = CorsRule::new(&origin).allow_method("GET");
    let set = service.set_properties(ServiceProperties::default().with_cors([rule]));
    let set = Ended::of(world, "set properties", id, Said::of, set.into_future()).await;
    let after = world.direct.properties().await.unwrap();
    let rules = after.cors.iter().flatten();
    let mut origins = rules.flat_map(|rule| &rule.allowed_origins);
    let is_stored = origins.any(|found| *found == origin);
    enter_write(world, &set, is_stored, &origin);
    read(world, "get properties", service.properties(), &after).await;
}
