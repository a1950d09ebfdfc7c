//! Moves into another table, beside each other and beside a writer: the entity is always in one of the tables, in its newest version.

use fastrand::Rng;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use tablesdk::ErrorKind;

use crate::entity::Row;
use crate::judge::token;
use crate::ledger::{Finding, MOVED_HALFWAY, Said};
use crate::record::Record;
use crate::rows::TABLE;
use crate::world::World;

/// Where the entities are moved.
pub(crate) const ARCHIVE: &str = "Archive";

/// A move, or a modification.
struct Ended {
    id: u64,
    verb: &'static str,
    said: Said,
    words: String,
    /// The version that it moved or made.
    version: Option<i64>,
    is_move: bool,
    /// It succeeded, or the service has refused it.
    is_certain: bool,
    record: Record,
}

/// Some moves and modifications of an entity, one after the other or at the same time.
pub(crate) async fn run(world: &World, rng: &mut Rng) {
    let partition = format!("m{}", world.next_id());
    let [table, archive] = [TABLE, ARCHIVE].map(|name| world.direct.table(name));
    let first = Row {
        a: Some(0),
        ..Row::whole(&partition, "1", 0)
    };
    // Its outcome is known also while the server is killed.
    table.upsert_replace(&first).await.unwrap();
    let mut actions = Vec::<BoxFuture<'_, Option<Ended>>>::new();
    for _ in 0..rng.usize(1..=4) {
        let rng = rng.fork();
        actions.push(match actions.len() {
            1 => modify(world, &partition, rng).boxed(),
            _ => move_one(world, &partition, rng).boxed(),
        });
    }
    let mut ended = Vec::new();
    if rng.bool() {
        ended = join_all(actions).await;
    } else {
        for action in actions {
            ended.push(action.await);
        }
    }
    let mut ended: Vec<_> = ended.into_iter().flatten().collect();
    for action in &mut ended {
        action.record = world.registry.settle(action.id).await;
        world.ledger.count(action.verb, &action.said);
    }
    let here = table.get(Row::key(partition.as_str(), "1")).await.unwrap();
    let there = archive
        .get(Row::key(partition.as_str(), "1"))
        .await
        .unwrap();
    let found = [&here, &there].map(|row| row.as_ref().and_then(|row| row.a));
    let mut findings = judge(&ended, found);
    if let Some(here) = here {
        let again = table.move_to(&archive, here);
        let is_other = found[1].is_some() && found[1] != found[0];
        let again = if is_other { again.overwrite() } else { again };
        let again = again.await.map(|moved| moved.a);
        if !matches!(again, Ok(version) if version == found[0]) {
            findings.push(Finding::Lie(format!("another move gave {again:?}")));
        }
    }
    world.ledger.enter(findings, || {
        let mut text = format!("  partition {partition}: {found:?}\n");
        for Ended {
            id,
            verb,
            said,
            words,
            version,
            record,
            ..
        } in &ended
        {
            let record = record.show(world.ledger.origin());
            text += &format!("  {id} {verb} of version {version:?}: {said:?}: {words}\n{record}");
        }
        text
    });
}

/// Compares what was said with the versions in both tables.
fn judge(ended: &[Ended], [here, there]: [Option<i64>; 2]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lie = |text: String| findings.push(Finding::Lie(text));
    let newest = here.max(there);
    if newest.is_none() {
        lie("the entity is in neither table".to_owned());
    }
    for Ended {
        id,
        verb,
        said,
        version,
        is_move,
        ..
    } in ended
    {
        if *said != Said::Done {
            continue;
        }
        if *version > newest {
            lie(format!("{verb} {id}: version {version:?} is lost"));
        }
        if *is_move && (here == *version || there < *version) {
            lie(format!(
                "{verb} {id}: version {version:?} is said to be moved"
            ));
        }
    }
    if here.is_some() && there.is_some() {
        let mut moves = ended.iter().filter(|ended| ended.is_move);
        // A move whose insert came twice does not know that the copy is its own.
        let is_broken_off = |it: &Ended| {
            !it.is_certain
                || !it.record.is_answered()
                || it.record.is_duplicated()
                || keeps_copy(&it.record)
        };
        if there > here {
            lie("the archive has a newer version".to_owned());
        } else if moves.any(is_broken_off) {
            findings.push(Finding::Limit(MOVED_HALFWAY));
        } else {
            lie("the entity stays in both tables".to_owned());
        }
    }
    findings
}

/// Whether a copy was written, and no request to remove it arrived: it met a connection that was closed.
fn keeps_copy(record: &Record) -> bool {
    let of_archive = |verb: &str| {
        let mut exchanges = record.exchanges.iter();
        exchanges.any(|it| it.method == verb && it.target.contains(ARCHIVE))
    };
    of_archive("POST") && !of_archive("DELETE")
}

async fn move_one(world: &World, partition: &str, mut rng: Rng) -> Option<Ended> {
    let found = world.direct.table(TABLE).get(Row::key(partition, "1"));
    let found = found.await.unwrap()?;
    let id = world.next_id();
    let version = found.a;
    let client = world.client(&mut rng);
    let move_to = client.table(TABLE).move_to(&client.table(ARCHIVE), found);
    let output = world.ask(id, move_to.into_future()).await.output;
    let error = output.as_ref().err();
    let is_certain = error.is_none_or(|error| error.kind() == ErrorKind::Service);
    Some(Ended {
        id,
        verb: "move_to",
        said: Said::of_reader(&output),
        words: format!("{output:?}"),
        version,
        is_move: true,
        is_certain,
        record: Record::default(),
    })
}

async fn modify(world: &World, partition: &str, mut rng: Rng) -> Option<Ended> {
    let id = world.next_id();
    let table = world.table(&mut rng, TABLE);
    let modify = table.modify(Row::key(partition, "1"), move |row| {
        row.token = token(id);
        row.a = row.a.map(|version| version + 1);
        Ok(())
    });
    let output = world.ask(id, modify.into_future()).await.output;
    Some(Ended {
        id,
        verb: "modify beside moves",
        said: Said::of_reader(&output),
        words: format!("{output:?}"),
        version: output.as_ref().ok().and_then(|row| row.a),
        is_move: false,
        is_certain: true,
        record: Record::default(),
    })
}
