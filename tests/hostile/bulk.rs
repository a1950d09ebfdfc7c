//! Bulk runs over partitions of their own: what the report says of each entity.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use futures::{TryStreamExt as _, stream};
use tablesdk::action::{BulkError, BulkFailure, BulkReport};

use crate::entity::Row;
use crate::judge::token;
use crate::ledger::{DUPLICATE_REFUSED, Finding, Said};
use crate::record::Record;
use crate::rows::TABLE;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    UpsertReplace,
    UpsertMerge,
    Delete,
    DeleteFound,
    DeleteFoundUnchanged,
}

impl Kind {
    const fn verb(self) -> &'static str {
        match self {
            Self::Insert => "bulk insert",
            Self::UpsertReplace => "bulk upsert_replace",
            Self::UpsertMerge => "bulk upsert_merge",
            Self::Delete => "bulk delete",
            Self::DeleteFound => "query delete_all",
            Self::DeleteFoundUnchanged => "query delete_all, if unchanged",
        }
    }

    const fn deletes(self) -> bool {
        matches!(
            self,
            Self::Delete | Self::DeleteFound | Self::DeleteFoundUnchanged
        )
    }

    /// The input is what a query finds, not what is asked for.
    const fn finds(self) -> bool {
        matches!(self, Self::DeleteFound | Self::DeleteFoundUnchanged)
    }
}

/// Partition key and row key.
type Name = (String, String);

/// What there was to be done, and what was there before and after.
struct Run {
    kind: Kind,
    token: i64,
    /// In the order of the input, if that is known.
    input: Vec<Name>,
    before: BTreeSet<Name>,
    after: BTreeMap<Name, i64>,
}

/// What the report says.
struct Report<'r> {
    report: &'r BulkReport,
    is_complete: bool,
}

pub(crate) async fn run(world: &World, rng: &mut Rng) {
    const KINDS: [Kind; 6] = [
        Kind::Insert,
        Kind::UpsertReplace,
        Kind::UpsertMerge,
        Kind::Delete,
        Kind::DeleteFound,
        Kind::DeleteFoundUnchanged,
    ];
    let id = world.next_id();
    let kind = KINDS[rng.usize(..KINDS.len())];
    let token = token(id);
    let count = rng.usize(2..=30);
    // Found by a query of one partition, or of several.
    let partitions = if kind.finds() { 1 } else { rng.usize(1..=3) };
    let partition = |index: usize| format!("k{id}-{}", index % partitions);
    let input: Vec<Name> = (0..count)
        .map(|index| (partition(index), format!("{index:02}")))
        .collect();
    let one_in = if kind.deletes() { 1 } else { 4 };
    let before: BTreeSet<Name> = input
        .iter()
        .filter(|_| rng.usize(..one_in) == 0)
        .cloned()
        .collect();
    let direct = world.direct.table(TABLE);
    let old = before.iter().map(|(p, r)| Row::whole(p, r, OLD));
    let prepared = direct
        .bulk()
        .upsert_replace(stream::iter(old))
        .await
        .unwrap();
    assert!(prepared.is_success());

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
    let asked = world
        .ask(id, async {
            match bulk {
                Ok(bulk) => bulk.concurrency(concurrency).await,
                Err(delete_all) => delete_all.concurrency(concurrency).await,
            }
        })
        .await;
    let record = world.registry.settle(id).await;
    let mut after = BTreeMap::new();
    for index in 0..partitions {
        let rows = direct.query::<Row>().partition(partition(index).as_str());
        let rows: Vec<_> = rows.stream().try_collect().await.unwrap();
        after.extend(rows.into_iter().map(|row| {
            let row = row.into_inner();
            ((row.partition, row.row), row.token)
        }));
    }
    let run = Run {
        kind,
        token,
        input,
        before,
        after,
    };
    let report = Report {
        report: asked.output.as_ref().unwrap_or_else(BulkError::report),
        is_complete: asked.output.is_ok(),
    };
    world.ledger.count(kind.verb(), &said(&report));
    let findings = run.judge(&report, &record);
    world.ledger.enter(findings, || {
        let record = record.show(world.ledger.origin());
        format!(
            "  {id} {}: {:?}\n{record}  before: {:?}\n  after: {:?}\n",
            kind.verb(),
            asked.output,
            run.before,
            run.after
        )
    });
}

/// For the summary: a run is as good as its worst entity.
fn said(report: &Report<'_>) -> Said {
    let failures = report.report.failures();
    if failures.iter().any(BulkFailure::is_outcome_unknown) {
        Said::Unknown { equals_sent: false }
    } else if report.is_complete && failures.is_empty() {
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

    fn judge(&self, report: &Report<'_>, record: &Record) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut lie = |text: String| findings.push(Finding::Lie(text));
        let verb = self.kind.verb();
        let progress = report.report.progress();
        let mut limits = 0;
        let mut wrong = Vec::new();
        let mut failed = BTreeSet::new();
        for failure in report.report.failures() {
            let key = failure.key().expect("every entity has a key");
            let name = (
                key.partition_key().as_str().to_owned(),
                key.row_key().as_str().to_owned(),
            );
            let is_certain = !failure.is_outcome_unknown();
            let was_to_be_done = !self.kind.deletes() || self.before.contains(&name);
            if is_certain && was_to_be_done && self.is_done(&name) {
                if record.is_duplicated() {
                    limits += 1;
                } else {
                    wrong.push(format!("{name:?}: {failure}"));
                }
            }
            failed.insert(name);
        }
        if !wrong.is_empty() {
            lie(format!("{verb}: reported as failures, and done: {wrong:?}"));
        }
        // What must be done: everything that is settled and did not fail.
        let settled = usize::try_from(progress.resume_at).unwrap();
        let settled = match (report.is_complete, self.kind.finds()) {
            (true, _) => self.input.len(),
            (false, true) => 0,
            (false, false) => settled,
        };
        let not_failed = self.input[..settled].iter();
        let not_failed = not_failed.filter(|name| !failed.contains(name));
        let undone: Vec<_> = not_failed.filter(|name| !self.is_done(name)).collect();
        if u64::try_from(undone.len()).unwrap() != progress.changed {
            lie(format!(
                "{verb}: reported as done, and not done: {undone:?}"
            ));
        }
        if progress.changed > 0 {
            lie(format!(
                "{verb}: reported as changed, and they did not change: {progress:?}"
            ));
        }
        let total = progress.written + progress.missing + progress.changed + progress.failed;
        if report.is_complete && (total, progress.read) != (self.count(), self.count()) {
            lie(format!(
                "{verb}: the counts do not add up to {}: {progress:?}",
                self.count()
            ));
        }
        let done = self.input.iter().filter(|name| self.is_done(name)).count();
        if progress.written + progress.missing > u64::try_from(done).unwrap() {
            lie(format!(
                "{verb}: {done} are done, and more are reported: {progress:?}"
            ));
        }
        findings.extend((0..limits).map(|_| Finding::Limit(DUPLICATE_REFUSED)));
        findings
    }

    fn count(&self) -> u64 {
        u64::try_from(self.input.len()).unwrap()
    }
}

/// The token of what was there before.
const OLD: i64 = -1;
