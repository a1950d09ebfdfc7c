//! Tables, their access policies, and the properties of the service.

use std::fmt::Debug;

use fastrand::Rng;
use tablesdk::sas::StoredAccessPolicy;
use tablesdk::service_properties::{CorsRule, ServiceProperties};

use crate::judge::{Truth, judge_write};
use crate::ledger::{Finding, Said};
use crate::record::Record;
use crate::world::{Asked, World};

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
            3 => exists(world, &name, existed, rng).await,
            _ => delete(world, &name, existed, rng).await,
        }
    }
}

/// Counts an operation, and enters what is wrong with it.
fn enter<T: Debug>(
    world: &World,
    verb: &str,
    said: &Said,
    asked: &Asked<T>,
    record: &Record,
    findings: Vec<Finding>,
) {
    world.ledger.count(verb, said);
    world.ledger.enter(findings, || {
        let record = record.show(world.ledger.origin());
        format!("  {verb}: {said:?}: {:?}\n{record}", asked.output)
    });
}

async fn create(world: &World, name: &str, rng: &mut Rng) {
    let id = world.next_id();
    let direct = world.direct.table(name);
    let existed = direct.table_exists().await.unwrap();
    let table = world.table(rng, name);
    let if_missing = rng.bool();
    let asked = world
        .ask(id, async {
            if if_missing {
                table.create_table().if_missing().await
            } else {
                table.create_table().await.map(|()| true)
            }
        })
        .await;
    let said = Said::of_delete(&asked.output);
    let record = world.registry.settle(id).await;
    let exists = direct.table_exists().await.unwrap();
    let truth = Truth::of(&record, false);
    let mut findings: Vec<_> = judge_write(&said, false, truth).into_iter().collect();
    if existed && said == Said::Done {
        // After a doubt, a table that exists is taken for one's own.
        findings.clear();
    }
    let should_exist = existed || truth.applied > 0 || matches!(said, Said::Done | Said::NotThere);
    if should_exist && !exists {
        findings.push(Finding::Lie(format!(
            "table {name} should exist, and does not"
        )));
    }
    enter(world, "create table", &said, &asked, &record, findings);
}

async fn delete(world: &World, name: &str, existed: bool, rng: &mut Rng) {
    let id = world.next_id();
    let direct = world.direct.table(name);
    let table = world.table(rng, name);
    let asked = world.ask(id, table.delete_table().into_future()).await;
    let said = Said::of_delete(&asked.output);
    let record = world.registry.settle(id).await;
    let exists = direct.table_exists().await.unwrap();
    let truth = Truth::of(&record, false);
    let mut findings: Vec<_> = judge_write(&said, false, truth).into_iter().collect();
    if !existed && said == Said::Done {
        // After a doubt, one that is not there is taken for one that was deleted.
        findings.clear();
    }
    let should_be_gone =
        !existed || truth.applied > 0 || matches!(said, Said::Done | Said::NotThere);
    if should_be_gone && exists {
        findings.push(Finding::Lie(format!(
            "table {name} should not exist, and does"
        )));
    }
    enter(world, "delete table", &said, &asked, &record, findings);
}

async fn exists(world: &World, name: &str, existed: bool, rng: &mut Rng) {
    let id = world.next_id();
    let table = world.table(rng, name);
    let asked = world.ask(id, table.table_exists().into_future()).await;
    let said = match &asked.output {
        Ok(_) => Said::Done,
        Err(_) => Said::Unread,
    };
    let record = world.registry.settle(id).await;
    let is_wrong = asked.output.as_ref().is_ok_and(|exists| *exists != existed);
    let lie = || {
        Finding::Lie(format!(
            "table {name} is said to exist, or not, and it is not so"
        ))
    };
    enter(
        world,
        "table exists",
        &said,
        &asked,
        &record,
        is_wrong.then(lie).into_iter().collect(),
    );
}

async fn policies(world: &World, name: &str, rng: &mut Rng) {
    let id = world.next_id();
    let policy = format!("p{id}");
    let direct = world.direct.table(name);
    let table = world.table(rng, name);
    let set = table.set_access_policy([StoredAccessPolicy::new(&policy)]);
    let asked = world.ask(id, set.into_future()).await;
    let said = Said::of(&asked.output);
    let record = world.registry.settle(id).await;
    let after = direct.access_policy().await.unwrap();
    let truth = Truth::of(&record, false);
    let mut findings: Vec<_> = judge_write(&said, false, truth).into_iter().collect();
    let is_there = after.iter().any(|found| found.id() == policy);
    if (said == Said::Done || truth.applied > 0) != is_there && truth.lost == 0 {
        findings.push(Finding::Lie(format!("policy {policy}: {after:?}")));
    }
    enter(world, "set access policy", &said, &asked, &record, findings);

    let id = world.next_id();
    let asked = world.ask(id, table.access_policy().into_future()).await;
    let said = match &asked.output {
        Ok(_) => Said::Done,
        Err(_) => Said::Unread,
    };
    let record = world.registry.settle(id).await;
    let is_wrong = asked.output.as_ref().is_ok_and(|read| *read != after);
    let lie = || Finding::Lie(format!("the policies are {after:?}"));
    enter(
        world,
        "get access policy",
        &said,
        &asked,
        &record,
        is_wrong.then(lie).into_iter().collect(),
    );
}

/// Sets the properties of the service, and reads them. For one worker alone.
pub(crate) async fn properties(world: &World, rng: &mut Rng) {
    let id = world.next_id();
    let origin = format!("https://o{id}.example");
    let service = world.client(rng);
    let rule = CorsRule {
        allowed_origins: vec![origin.clone()],
        allowed_methods: vec!["GET".to_owned()],
        ..CorsRule::default()
    };
    let properties = ServiceProperties {
        cors: Some(vec![rule]),
        ..ServiceProperties::default()
    };
    let asked = world
        .ask(id, service.set_properties(properties).into_future())
        .await;
    let said = Said::of(&asked.output);
    let record = world.registry.settle(id).await;
    let after = world.direct.properties().await.unwrap();
    let truth = Truth::of(&record, false);
    let mut findings: Vec<_> = judge_write(&said, false, truth).into_iter().collect();
    let rules = after.cors.iter().flatten();
    let is_there = rules
        .flat_map(|rule| &rule.allowed_origins)
        .any(|it| *it == origin);
    if (said == Said::Done || truth.applied > 0) != is_there && truth.lost == 0 {
        findings.push(Finding::Lie(format!("properties with {origin}: {after:?}")));
    }
    enter(world, "set properties", &said, &asked, &record, findings);

    let id = world.next_id();
    let asked = world.ask(id, service.properties().into_future()).await;
    let said = match &asked.output {
        Ok(_) => Said::Done,
        Err(_) => Said::Unread,
    };
    let record = world.registry.settle(id).await;
    let is_wrong = asked.output.as_ref().is_ok_and(|read| *read != after);
    let lie = || Finding::Lie(format!("the properties are {after:?}"));
    enter(
        world,
        "get properties",
        &said,
        &asked,
        &record,
        is_wrong.then(lie).into_iter().collect(),
    );
}
