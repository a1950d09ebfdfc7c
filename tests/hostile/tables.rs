//! Tables, their access policies, and the properties of the service.

use std::fmt::Debug;

use fastrand::Rng;
use tablesdk::Error;
use tablesdk::sas::StoredAccessPolicy;
use tablesdk::service_properties::{CorsRule, ServiceProperties};

use crate::judge::{Truth, judge_write};
use crate::ledger::Said;
use crate::step::Step;
use crate::world::World;

/// Random operations on a new table that is used only here.
pub(crate) async fn life(world: &World, rng: &mut Rng) {
    let name = format!("Table{}", world.next_id());
    let table = world.direct.table(&name);
    for _ in 0..rng.usize(2..6) {
        let existed = table.table_exists().await.unwrap();
        match rng.u8(..6) {
            1..=2 if existed => policies(world, &name, rng).await,
            0..=2 => create(world, &name, existed, rng).await,
            3 => {
                let exists = world.table(rng, &name).table_exists();
                read(world, "table exists", exists, &existed).await;
            }
            _ => delete(world, &name, existed, rng).await,
        }
    }
}

/// Reads, and compares with what a client without faults reads.
async fn read<T: Debug + PartialEq>(
    world: &World,
    verb: &str,
    operation: impl IntoFuture<Output = Result<T, Error>>,
    expected: &T,
) {
    let call = world.call(verb, false);
    let (step, output) = world.run(call, Said::of_read, operation).await;
    let is_wrong = output.is_ok_and(|read| read != *expected);
    let lie = is_wrong.then(|| step.lie(&format!("expected {expected:?}")));
    world.enter(lie, [&step], String::new);
}

/// Enters a write of something that other operations do not write, and whether it is stored.
fn enter_write(world: &World, write: &Step, is_stored: bool) {
    let truth = Truth::of(write);
    let must_be_stored = write.said == Said::Done || truth.applied > 0;
    let is_wrong = must_be_stored != is_stored && truth.lost == 0;
    let lie = is_wrong.then(|| write.lie(&format!("stored: {is_stored}")));
    world.enter(
        judge_write(write).into_iter().chain(lie),
        [write],
        String::new,
    );
}

/// Enters a create or a delete of a table, after which the table has to exist or not. `was_so`: as
/// before it.
async fn enter_existence(world: &World, name: &str, step: &Step, was_so: bool, must_exist: bool) {
    // After an ambiguous attempt, the client takes a table that exists for its own, and a missing
    // one for one that it deleted.
    let is_taken = was_so && step.said == Said::Done;
    let finding = judge_write(step).filter(|_| !is_taken);
    let must_hold =
        was_so || Truth::of(step).applied > 0 || matches!(step.said, Said::Done | Said::NotThere);
    let exists = world.direct.table(name).table_exists().await.unwrap();
    let is_wrong = must_hold && exists != must_exist;
    let lie = is_wrong.then(|| step.lie(&format!("the table exists: {exists}")));
    world.enter(finding.into_iter().chain(lie), [step], String::new);
}

async fn create(world: &World, name: &str, existed: bool, rng: &mut Rng) {
    let create = world.table(rng, name).create_table();
    let if_missing = rng.bool();
    let create = async {
        if if_missing {
            create.if_missing().await
        } else {
            create.await.map(|()| true)
        }
    };
    let call = world.call("create table", false);
    let (step, _) = world.run(call, Said::of_delete, create).await;
    enter_existence(world, name, &step, existed, true).await;
}

async fn delete(world: &World, name: &str, existed: bool, rng: &mut Rng) {
    let delete = world.table(rng, name).delete_table();
    let call = world.call("delete table", false);
    let (step, _) = world.run(call, Said::of_delete, delete).await;
    enter_existence(world, name, &step, !existed, false).await;
}

async fn policies(world: &World, name: &str, rng: &mut Rng) {
    let call = world.call("set access policy", false);
    let policy = format!("p{}", call.id);
    let table = world.table(rng, name);
    let set = table.set_access_policy([StoredAccessPolicy::new(&policy)]);
    let (set, _) = world.run(call, Said::of, set).await;
    let after = world.direct.table(name).access_policy().await.unwrap();
    enter_write(world, &set, after.iter().any(|found| found.id() == policy));
    read(world, "get access policy", table.access_policy(), &after).await;
}

/// Sets the properties of the service, and reads them. Only for one worker.
pub(crate) async fn properties(world: &World, rng: &mut Rng) {
    let call = world.call("set properties", false);
    let origin = format!("https://o{}.example", call.id);
    let service = world.client(rng);
    let rule = CorsRule::new(&origin).allow_method("GET");
    let set = service.set_properties(ServiceProperties::default().with_cors([rule]));
    let (set, _) = world.run(call, Said::of, set).await;
    let after = world.direct.properties().await.unwrap();
    let rules = after.cors.iter().flatten();
    let mut origins = rules.flat_map(|rule| &rule.allowed_origins);
    enter_write(world, &set, origins.any(|found| *found == origin));
    read(world, "get properties", service.properties(), &after).await;
}
