//! Judges operations on entities that one worker owns. It compares a sequence of operations with
//! the record of what reached the server, and with the stored entities before the first operation
//! and after everything arrived.

use std::collections::BTreeMap;
use std::time::Instant;

use harness::written::Row;
use tablesdk::{ETag, Stored};

use crate::ledger::{
    DUPLICATE_AFTER_CLEAN_UP, DUPLICATE_AFTER_REFUSAL, DUPLICATE_REFUSED, Finding, LATE_WRITE,
    MODIFIED_TWICE, Said,
};
use crate::record::{Delivery, Fate};
use crate::step::{Effect, Step, Target, token};

/// An entity as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) token: i64,
    /// The token of the operation that replaced it last.
    pub(crate) a: Option<i64>,
    /// The token of the operation that merged into it last, since.
    pub(crate) b: Option<i64>,
    pub(crate) etag: ETag,
}

impl Snapshot {
    pub(crate) fn of(row: &Stored<Row>) -> Self {
        Self {
            token: row.token,
            a: row.a,
            b: row.b,
            etag: row.etag().clone(),
        }
    }
}

/// Entities by row key; `None` for those that do not exist.
pub(crate) type Snapshots = BTreeMap<String, Option<Snapshot>>;

/// How often the changes of an operation were carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) applied: usize,
    /// The server was killed while it may have carried them out.
    pub(crate) lost: usize,
    pub(crate) is_duplicated: bool,
    /// A copy that the network made was carried out after the first one, which was carried out, or
    /// refused.
    pub(crate) copy_after: Option<Fate>,
}

impl Truth {
    pub(crate) fn of(step: &Step) -> Self {
        let count = |fate| {
            let changes = step.record.changes(step.in_batches);
            changes.filter(|delivery| delivery.fate == fate).count()
        };
        Self {
            applied: count(Fate::Applied),
            lost: count(Fate::Lost),
            is_duplicated: step.record.is_duplicated(),
            copy_after: step.record.copy_applied_after(step.in_batches),
        }
    }
}

/// Compares what was said of a write with how often it was carried out. Not for deletes that find
/// nothing.
pub(crate) fn judge_write(step: &Step) -> Option<Finding> {
    let truth = Truth::of(step);
    let Truth {
        applied,
        lost,
        is_duplicated,
        copy_after,
    } = truth;
    let is_once = step.is_once;
    let lie = |text: &str| Some(step.lie(&format!("{text} ({truth:?})")));
    match step.said {
        Said::Done if applied + lost == 0 => lie("said to be done, and was never carried out"),
        Said::Done if is_once && applied == 2 && copy_after == Some(Fate::Applied) => {
            Some(Finding::Limit(DUPLICATE_AFTER_CLEAN_UP))
        }
        Said::Done if is_once && applied > 1 => lie("said to be done once, and was done twice"),
        Said::Refused | Said::NotThere if applied > 0 && !is_duplicated => {
            lie("said not to be done, and was carried out")
        }
        // A rejected request left no marker that could stop a late duplicate.
        Said::Refused | Said::NotThere if matches!(copy_after, Some(Fate::Refused(_))) => {
            Some(Finding::Limit(DUPLICATE_AFTER_REFUSAL))
        }
        Said::Refused | Said::NotThere if applied > 0 && is_once => {
            lie("said not to be done, although it is exactly once, and was carried out")
        }
        Said::Refused | Said::NotThere if applied > 0 => Some(Finding::Limit(DUPLICATE_REFUSED)),
        Said::Unknown { equals_sent: true } if applied + lost == 0 => {
            lie("what is there is said to equal what was sent, which was never carried out")
        }
        _ => None,
    }
}

/// Compares what was said of the modification of a counter with how often it is in the counter.
pub(crate) fn judge_count(step: &Step, times: usize) -> Option<Finding> {
    let (is_once, is_duplicated) = (step.is_once, step.record.is_duplicated());
    let lie = |text: &str| Some(step.lie(&format!("{text}: {times} times in the counter")));
    match step.said {
        Said::Done if times == 0 => lie("said to be done"),
        Said::Refused if times > 0 && (is_once || !is_duplicated) => lie("said not to be done"),
        Said::Refused if times > 0 => Some(Finding::Limit(DUPLICATE_REFUSED)),
        // The ETag keeps copies away; a plain modification reads again when its own copy was in the
        // way.
        _ if times > 1 && (is_once || !is_duplicated) => lie("carried out more than once"),
        _ if times > 1 => Some(Finding::Limit(MODIFIED_TWICE)),
        _ => None,
    }
}

/// Judges the operations in a counter, if each request was delivered twice: a modification that
/// meets its own copies ends after the second one, if no other client writes in between.
pub(crate) fn judge_copies(id: u64, counted: &[u64]) -> Option<Finding> {
    let is_third = counted.windows(3).any(|three| *three == [id; 3]);
    is_third.then(|| Finding::Lie(format!("three times in a row in the counter: {counted:?}")))
}

/// A write of an entity that reached the server.
#[derive(Clone, Copy)]
struct Write<'s> {
    step: usize,
    /// The token of the entity afterwards; `None` if it is deleted.
    token: Option<i64>,
    delivery: &'s Delivery,
}

/// The possible states of an entity, according to the record.
struct History<'s> {
    before: Option<i64>,
    writes: Vec<Write<'s>>,
}

impl<'s> History<'s> {
    fn new(row: &str, before: Option<i64>, steps: &'s [Step]) -> Self {
        let mut writes = Vec::new();
        for (step, it) in steps.iter().enumerate() {
            let Some(target) = it.targets.iter().find(|target| target.row == row) else {
                continue;
            };
            let token = (target.effect != Effect::Delete).then_some(token(it.id));
            let changes = it.record.changes(it.in_batches);
            let changes = changes.filter(|change| !matches!(change.fate, Fate::Refused(_)));
            writes.extend(changes.map(|delivery| Write {
                step,
                token,
                delivery,
            }));
        }
        Self { before, writes }
    }

    /// Returns true if the entity was surely written after a write that ended then, and before
    /// `from`.
    fn is_over(&self, ended: Option<Instant>, from: Instant) -> bool {
        self.writes.iter().any(|write| {
            write.delivery.fate == Fate::Applied
                && ended.is_none_or(|ended| write.delivery.began > ended)
                && write.delivery.ended < from
        })
    }

    /// The writes that may have left this, as it was seen at some time between those two.
    fn sources(&self, token: Option<i64>, from: Instant, to: Instant) -> Vec<Write<'s>> {
        let writes = self.writes.iter().copied();
        writes
            .filter(|write| write.token == token && write.delivery.began <= to)
            .filter(|write| !self.is_over(Some(write.delivery.ended), from))
            .collect()
    }

    fn may_be(&self, token: Option<i64>, from: Instant, to: Instant) -> bool {
        token == self.before && !self.is_over(None, from)
            || !self.sources(token, from, to).is_empty()
    }
}

/// Judges a sequence of operations, each of which began after the one before ended, once all their
/// requests have arrived.
pub(crate) fn judge(before: &Snapshots, steps: &[Step], after: &Snapshots) -> Vec<Finding> {
    let mut findings = Vec::new();
    let histories = before.iter().map(|(row, before)| {
        let before = before.as_ref().map(|it| it.token);
        (row.as_str(), History::new(row, before, steps))
    });
    let histories: BTreeMap<_, _> = histories.collect();
    for step in steps {
        findings.extend(judge_step(step, &histories));
    }
    let now = Instant::now();
    for (row, history) in &histories {
        let seen = after[*row].as_ref();
        let token = seen.map(|it| it.token);
        if !history.may_be(token, now, now) {
            let before = history.before;
            findings.push(Finding::Lie(format!(
                "{row} holds {token:?}, which nothing that reached the server explains; before, it held {before:?}"
            )));
            continue;
        }
        findings.extend(judge_order(row, history, token, steps, now));
        if let Some(seen) = seen {
            findings.extend(judge_content(row, before[*row].as_ref(), seen, steps));
        }
    }
    findings.extend(judge_atomicity(steps, after));
    findings
}

fn judge_step(step: &Step, histories: &BTreeMap<&str, History<'_>>) -> Option<Finding> {
    let may_be =
        |target: &Target, token| histories[&*target.row].may_be(token, step.began, step.ended);
    let may_be_absent = || step.targets.iter().all(|target| may_be(target, None));
    match (&step.said, step.targets.as_slice()) {
        (Said::Saw(token), [target, ..]) => {
            let text = || step.lie(&format!("{token:?} was read, and was not there"));
            (!may_be(target, *token)).then(text)
        }
        (Said::NotThere, _) if !may_be_absent() => {
            Some(step.lie("said not to be there, and was there all the time"))
        }
        // Without a condition, a delete promises that nothing is there, not that it deleted it.
        (Said::Done, [target])
            if target.effect == Effect::Delete
                && !target.is_conditional
                && !step.in_batches
                && may_be_absent() =>
        {
            None
        }
        _ => judge_write(step),
    }
}

/// Checks that the stored entity is of the last operation that was reported as done, or of one that
/// may be later.
fn judge_order(
    row: &str,
    history: &History<'_>,
    token: Option<i64>,
    steps: &[Step],
    now: Instant,
) -> Option<Finding> {
    let sources = history.sources(token, now, now);
    let is_about = |step: &&Step| {
        step.said == Said::Done && step.targets.iter().any(|target| target.row == row)
    };
    let last_done = steps.iter().rposition(|step| is_about(&step))?;
    let target = steps[last_done].targets.iter().find(|it| it.row == row)?;
    // A delete that finds nothing is done, and leaves what the one before it left.
    let is_as_left = (target.effect == Effect::Delete) == token.is_none()
        && token.is_none_or(|token| token == self::token(steps[last_done].id));
    let is_undone =
        !is_as_left && !sources.is_empty() && sources.iter().all(|source| source.step < last_done);
    if !is_undone {
        return None;
    }
    let may_undo = sources.iter().any(|source| {
        let step = &steps[source.step];
        let target = step.targets.iter().find(|target| target.row == row);
        let is_conditional = target.is_some_and(|target| target.is_conditional);
        // What is exactly once stays in flight only where its outcome is unknown, or the network
        // made a copy.
        let may_be_late = !step.is_once
            || matches!(step.said, Said::Unknown { .. })
            || step.record.is_duplicated();
        !is_conditional && may_be_late
    });
    Some(if may_undo {
        Finding::Limit(LATE_WRITE)
    } else {
        Finding::Lie(format!(
            "{row}: {} {} is undone by an earlier operation that cannot come late",
            steps[last_done].verb, steps[last_done].id
        ))
    })
}

/// Checks that an entity has the content that the operation with its token gives it.
fn judge_content(
    row: &str,
    before: Option<&Snapshot>,
    seen: &Snapshot,
    steps: &[Step],
) -> Option<Finding> {
    let wrong = |what: &str| Some(Finding::Lie(format!("{row}: {what}: {seen:?}")));
    let Some(step) = steps.iter().find(|step| token(step.id) == seen.token) else {
        let is_same = before == Some(seen);
        return if is_same {
            None
        } else {
            wrong("changed although its token is the same")
        };
    };
    let target = step.targets.iter().find(|target| target.row == row)?;
    let is_whole = match target.effect {
        Effect::Replace => seen.a == Some(seen.token) && seen.b.is_none(),
        Effect::Merge => {
            let known = |a| steps.iter().any(|step| Some(token(step.id)) == a);
            let is_from_before = seen.a == before.and_then(|before| before.a);
            seen.b == Some(seen.token) && (seen.a.is_none() || is_from_before || known(seen.a))
        }
        Effect::Delete => false,
    };
    if !is_whole {
        return wrong("not what was written");
    }
    let truth = Truth::of(step);
    let is_only_write = truth.applied == 1 && truth.lost == 0;
    match &target.etag {
        Some(etag) if *etag != seen.etag && is_only_write && !step.is_once => {
            wrong(&format!("the client was given {etag} as its version"))
        }
        _ => None,
    }
}

/// Checks that the changes of the only batch are all there, or none.
fn judge_atomicity(steps: &[Step], after: &Snapshots) -> Option<Finding> {
    let [batch] = steps else { return None };
    let is_there = |target: &&Target| {
        let found = after[&target.row].as_ref().map(|it| it.token);
        found == (target.effect != Effect::Delete).then_some(token(batch.id))
    };
    let (count, all) = (
        batch.targets.iter().filter(is_there).count(),
        batch.targets.len(),
    );
    let lie = || batch.lie(&format!("{count} of {all} changes are there"));
    (count != 0 && count != all).then(lie)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::{Exchange, Record};

    const ROW: &str = "r";

    fn at(ms: u64) -> Instant {
        static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let before = || Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        *ORIGIN.get_or_init(before) + Duration::from_millis(ms)
    }

    /// A replace between those times, copies of which reached the server between those, with those
    /// fates.
    fn step(id: u64, said: Said, (began, ended): (u64, u64), copies: &[(u64, u64, Fate)]) -> Step {
        let exchanges = copies.iter().map(|(began, ended, fate)| Exchange {
            began: at(*began),
            method: "PUT".to_owned(),
            target: "/t".to_owned(),
            fault: String::new(),
            deliveries: vec![Delivery {
                began: at(*began),
                ended: at(*ended),
                fate: *fate,
            }],
        });
        Step {
            id,
            verb: "upsert_replace".to_owned(),
            in_batches: false,
            is_once: false,
            targets: vec![Target {
                row: ROW.to_owned(),
                effect: Effect::Replace,
                is_conditional: false,
                etag: None,
            }],
            said,
            words: String::new(),
            began: at(began),
            ended: at(ended),
            record: Record {
                exchanges: exchanges.collect(),
            },
        }
    }

    fn holds(token: Option<i64>) -> Snapshots {
        let snapshot = token.map(|token| Snapshot {
            token,
            a: Some(token),
            b: None,
            etag: ETag::from_opaque(format!("W/\"{token}\"")),
        });
        [(ROW.to_owned(), snapshot)].into()
    }

    fn lies(steps: &[Step], after: Option<i64>) -> usize {
        let findings = judge(&holds(Some(1)), steps, &holds(after)).into_iter();
        findings.filter(|it| matches!(it, Finding::Lie(_))).count()
    }

    use Fate::{Applied, Lost, Refused};
    const UNKNOWN: Said = Said::Unknown { equals_sent: false };

    #[test]
    fn a_result_that_differs_from_the_truth_is_a_lie() {
        let copy = |fate| vec![(1, 2, fate)];
        for (said, copies, after, expected) in [
            (Said::Done, copy(Applied), Some(2), 0),
            (Said::Done, copy(Lost), Some(2), 0),
            (Said::Refused, copy(Refused(412)), Some(1), 0),
            (UNKNOWN, copy(Applied), Some(2), 0),
            (UNKNOWN, vec![], Some(1), 0),
            // A success that was not applied.
            (Said::Done, vec![], Some(1), 1),
            (Said::Done, copy(Refused(409)), Some(1), 1),
            // A failure that was applied, perhaps later.
            (Said::Refused, copy(Applied), Some(2), 1),
            (Said::Refused, vec![(50, 51, Applied)], Some(2), 1),
            (Said::NotThere, copy(Applied), Some(2), 1),
            // An acknowledged write that the server lost.
            (Said::Done, copy(Applied), Some(1), 1),
            (UNKNOWN, copy(Applied), None, 1),
        ] {
            let case = format!("{said:?} {copies:?} {after:?}");
            let step = step(2, said, (0, 9), &copies);
            assert_eq!(lies(&[step], after), expected, "{case}");
        }
    }

    #[test]
    fn a_late_unconditional_write_is_a_limit() {
        let mut first = step(2, Said::Done, (0, 9), &[(1, 2, Applied), (30, 31, Applied)]);
        let second = step(3, Said::Done, (10, 19), &[(11, 12, Applied)]);
        let findings = |first: &Step| {
            let steps = [first.clone(), second.clone()];
            judge(&holds(Some(1)), &steps, &holds(Some(2)))
        };
        assert_eq!(findings(&first), [Finding::Limit(LATE_WRITE)]);
        first.targets[0].is_conditional = true;
        assert!(matches!(findings(&first)[..], [Finding::Lie(_)]));
        // Nothing came late.
        first.record.exchanges.pop();
        assert!(matches!(findings(&first)[..], [Finding::Lie(_)]));
    }

    #[test]
    fn a_delete_that_finds_nothing_undoes_nothing() {
        let delete = |id, times, copies: &[_]| {
            let mut step = step(id, Said::Done, times, copies);
            step.verb = "delete".to_owned();
            step.targets[0].effect = Effect::Delete;
            step
        };
        let first = delete(2, (0, 9), &[(1, 2, Applied)]);
        let second = delete(3, (10, 19), &[(11, 12, Refused(404))]);
        assert_eq!(lies(&[first, second], None), 0);
    }

    /// The server got the first request twice.
    fn duplicated(mut step: Step) -> Step {
        let deliveries = &mut step.record.exchanges[0].deliveries;
        deliveries.push(deliveries[0]);
        step
    }

    #[test]
    fn a_duplicate_is_a_limit_of_ordinary_writes() {
        let refused = duplicated(step(2, Said::Refused, (0, 9), &[(1, 2, Applied)]));
        let findings = judge(&holds(Some(1)), &[refused], &holds(Some(2)));
        assert_eq!(findings, [Finding::Limit(DUPLICATE_REFUSED)]);
        let mut done = step(2, Said::Done, (0, 9), &[(1, 2, Applied), (3, 4, Applied)]);
        assert_eq!(judge_write(&done), None);
        done.is_once = true;
        assert!(matches!(judge_write(&done), Some(Finding::Lie(_))));
    }

    #[test]
    fn a_counter_that_differs_from_the_results_is_a_lie() {
        for (said, is_once, times, is_duplicated, is_lie) in [
            (Said::Done, true, 1, true, false),
            (Said::Done, true, 2, true, true),
            (Said::Done, false, 2, true, false),
            (Said::Done, false, 2, false, true),
            (Said::Done, false, 0, true, true),
            (Said::Refused, true, 1, true, true),
            (Said::Refused, false, 1, true, false),
            (UNKNOWN, true, 0, false, false),
            (UNKNOWN, true, 1, false, false),
        ] {
            let mut step = step(2, said, (0, 9), &[(1, 2, Applied)]);
            step.is_once = is_once;
            let step = if is_duplicated {
                duplicated(step)
            } else {
                step
            };
            let finding = judge_count(&step, times);
            let found = matches!(finding, Some(Finding::Lie(_)));
            assert_eq!(found, is_lie, "{step:?}, {times} times");
        }
    }

    #[test]
    fn a_modification_that_does_not_end_is_a_lie() {
        assert!(judge_copies(7, &[8, 7, 7, 7]).is_some());
        assert_eq!(judge_copies(7, &[7, 7, 8, 7, 8, 8, 8]), None);
    }

    #[test]
    fn a_stale_read_and_half_a_batch_are_lies() {
        let written = step(2, Said::Done, (0, 9), &[(1, 2, Applied)]);
        let mut read = step(3, Said::Saw(Some(1)), (10, 19), &[]);
        assert_eq!(lies(&[written.clone(), read.clone()], Some(2)), 1);
        read.said = Said::Saw(Some(2));
        assert_eq!(lies(&[written.clone(), read], Some(2)), 0);

        let mut batch = written;
        batch.targets.push(Target {
            row: "other".to_owned(),
            ..batch.targets[0].clone()
        });
        let both = |token| {
            let mut both = holds(Some(2));
            both.insert("other".to_owned(), holds(token).remove(ROW).unwrap());
            both
        };
        assert_eq!(judge_atomicity(&[batch.clone()], &both(Some(2))), None);
        assert!(judge_atomicity(&[batch], &both(Some(1))).is_some());
    }
}
