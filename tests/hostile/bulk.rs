//! Bulk runs over partitions of their own: what the report says of each entity.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use futures::stream;
use harness::written::Row;
use tablesdk::action::{BulkError, BulkFailure, BulkReport};

use crate::ledger::{DUPLICATE_REFUSED, Finding, Said};
use crate::rows::TABLE;
use crate::step::{Step, token};
use crate::world::World;

/// A run over what is given, or over what a query finds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Insert,
    UpsertReplace,
    UpsertMerge,
    Delete,
    DeleteFound,
    DeleteFoundUnchanged,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Insert,
        Self::UpsertReplace,
        Self::UpsertMerge,
        Self::Delete,
        Self::DeleteFound,
        Self::DeleteFoundUnchanged,
    ];

    const fn deletes(self) -> bool {
        matches!(self, Self::Delete) || self.finds()
    }

    /// The input is what a query finds, not what is asked for.
    const fn finds(self) -> bool {
        matches!(self, Self::DeleteFound | Self::DeleteFoundUnchanged)
    }
}

/// Partition key and row key.
type Name = (String, String);

/// The input of a run, and the entities before and after it.
struct Run {
    kind: Kind,
    token: i64,
    /// In the order of the input, if that is known.
    input: Vec<Name>,
    before: BTreeSet<Name>,
    after: BTreeMap<Name, i64>,
}

pub(crate) async fn run(world: &World, rng: &mut Rng) {
    let kind = Kind::ALL[rng.usize(..Kind::ALL.len())];
    let call = world.call(&format!("bulk {kind:?}"), false);
    let (id, token) = (call.id, token(call.id));
    let count = rng.usize(2..=30);
    // Found by a query of one partition, or of several.
    let partitions = if kind.finds() { 1 } else { rng.usize(1..=3) };
    let partition = |index: usize| format!("k{id}-{}", index % partitions);
    let input = (0..count).map(|index| (partition(index), format!("{index:02}")));
    let input: Vec<Name> = input.collect();
    let one_in = if kind.deletes() { 1 } else { 4 };
    let before = input.iter().filter(|_| rng.usize(..one_in) == 0);
    let before: BTreeSet<Name> = before.cloned().collect();
    let direct = world.direct.table(TABLE);
    let old = before.iter().map(|(p, r)| Row::whole(p, r, OLD));
    let prepared = direct.bulk().upsert_replace(stream::iter(old));
    assert!(prepared.await.unwrap().is_success());

    let table = world.table(rng, TABLE);
    let whole = input.iter().map(|(p, r)| Row::whole(p, r, token));
    let part = input.iter().map(|(p, r)| Row::part(p, r, token));
    let keys = input.iter().map(|(p, r)| Row::key(p.as_str(), r.as_str()));
    let found = || table.query::<Row>().partition(partition(0).as_str());
    let concurrency = rng.usize(1..4);
    let bulk = match kind {
        Kind::Insert => Ok(table.bulk().insert(stream::iter(whole))),
        Kind::UpsertReplace => Ok(table.bulk().upsert_replace(stream::iter(whole))),
        Kind::UpsertMerge => Ok(table.bulk().upsert_merge(stream::iter(part))),
        Kind::Delete => Ok(table.bulk().delete(stream::iter(keys))),
        Kind::DeleteFound => Err(found().delete_all()),
        Kind::DeleteFoundUnchanged => Err(found().page_size(7).delete_all().if_unchanged()),
    };
    let bulk = async {
        match bulk {
            Ok(bulk) => bulk.concurrency(concurrency).await,
            Err(delete_all) => delete_all.concurrency(concurrency).await,
        }
    };
    let (step, output) = world.run(call, said, bulk).await;
    let mut after = BTreeMap::new();
    for index in 0..partitions {
        let rows = direct.query::<Row>().partition(partition(index).as_str());
        let rows = rows.values().collect().await.unwrap().into_iter();
        after.extend(rows.map(|row| ((row.partition, row.row), row.token)));
    }
    let run = Run {
        kind,
        token,
        input,
        before,
        after,
    };
    world.enter(run.judge(&step, &output), [&step], || {
        format!("before: {:?}\n  after: {:?}", run.before, run.after)
    });
}

/// The result of a run: the report is complete or that of an error.
type Output = Result<BulkReport, BulkError>;

fn report(output: &Output) -> &BulkReport {
    output.as_ref().unwrap_or_else(BulkError::report)
}

/// For the summary: a run is as good as its worst entity.
fn said(output: &Output) -> Said {
    let failures = report(output).failures();
    if failures.iter().any(BulkFailure::is_outcome_unknown) {
        Said::Unknown { equals_sent: false }
    } else if output.is_ok() && failures.is_empty() {
        Said::Done
    } else {
        Said::Refused
    }
}

impl Run {
    fn is_done(&self, name: &Name) -> bool {
        if self.kind.deletes() {
            !self.after.contains_key(name)
        } else {
            self.after.get(name) == Some(&self.token)
        }
    }

    fn judge(&self, step: &Step, output: &Output) -> Vec<Finding> {
        let mut findings = Vec::new();
        let (report, is_complete) = (report(output), output.is_ok());
        let progress = report.progress();
        let mut wrong = Vec::new();
        let mut failed = BTreeSet::new();
        for failure in report.failures() {
            let key = failure.key().expect("every entity has a key");
            let name = (
                key.partition_key().as_str().to_owned(),
                key.row_key().as_str().to_owned(),
            );
            let was_to_be_done = !self.kind.deletes() || self.before.contains(&name);
            if !failure.is_outcome_unknown() && was_to_be_done && self.is_done(&name) {
                if step.record.is_duplicated() {
                    findings.push(Finding::Limit(DUPLICATE_REFUSED));
                } else {
                    wrong.push(format!("{name:?}: {failure}"));
                }
            }
            failed.insert(name);
        }
        let mut lie = |is_lie: bool, text: String| {
            findings.extend(is_lie.then(|| step.lie(&format!("{text}: {progress:?}"))));
        };
        let text = format!("reported as failures, and done: {wrong:?}");
        lie(!wrong.is_empty(), text);
        // What must be done: everything that is settled and did not fail.
        let settled = match (is_complete, self.kind.finds()) {
            (true, _) => self.input.len(),
            (false, true) => 0,
            (false, false) => usize::try_from(progress.resume_at).unwrap(),
        };
        let not_failed = self.input[..settled].iter();
        let not_failed = not_failed.filter(|name| !failed.contains(name));
        let undone: Vec<_> = not_failed.filter(|name| !self.is_done(name)).collect();
        let is_lie = u64::try_from(undone.len()) != Ok(progress.changed);
        lie(
            is_lie,
            format!("reported as done, and not done: {undone:?}"),
        );
        let text = "reported as changed, and they did not change";
        lie(progress.changed > 0, text.to_owned());
        let total = progress.written + progress.missing + progress.changed + progress.failed;
        let count = u64::try_from(self.input.len()).unwrap();
        let is_lie = is_complete && (total, progress.read) != (count, count);
        lie(is_lie, format!("the counts do not add up to {count}"));
        let done = self.input.iter().filter(|name| self.is_done(name)).count();
        let is_lie = progress.written + progress.missing > u64::try_from(done).unwrap();
        lie(is_lie, format!("{done} are done, and more are reported"));
        findings
    }
}

/// The token of what was there before.
const OLD: i64 = -1;
