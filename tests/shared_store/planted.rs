//! The checker finds what a faulty store would do, in histories written by hand, and finds nothing
//! in ambiguous but correct ones.

use std::collections::BTreeMap;

use crate::history::{History, Moment, Op};
use crate::linearizable::check;
use crate::register::{Action, Condition, Effect, Outcome, Refusal, Seen, Token, Version};

const READ: Action = Action::Read;
const INSERT: Action = Action::Write(Effect::Replace, Condition::Absent);
const UPSERT: Action = Action::Write(Effect::Replace, Condition::Any);
const MERGE: Action = Action::Write(Effect::Merge, Condition::Any);
const DELETE: Action = Action::Write(Effect::Delete, Condition::Present);

const fn replace_if(version: Version) -> Action {
    Action::Write(Effect::Replace, Condition::Version(version))
}

const fn done(version: Version) -> Outcome {
    Outcome::Done(Some(version))
}

/// A read that found what a write of the whole left.
const fn saw(token: Token, version: Version) -> Outcome {
    Outcome::Saw(Some(Seen::whole(token, version)))
}

const SAW_NOTHING: Outcome = Outcome::Saw(None);

type Line = (Token, Action, Outcome, (Moment, Moment));

/// A history of one entity.
fn history(lines: &[Line]) -> History {
    let mut history = History::default();
    for line in lines {
        history.note(("p".to_owned(), "r".to_owned()), op(line));
    }
    history
}

const fn op(&(token, action, outcome, moments): &Line) -> Op {
    Op::new(token, action, outcome, moments)
}

#[track_caller]
fn assert_correct(lines: &[Line]) {
    check(&history(lines)).unwrap_or_else(|violation| panic!("{violation}"));
}

#[track_caller]
fn assert_violates(lines: &[Line], text: &str) {
    let violation = check(&history(lines)).expect_err("the violation is found");
    assert!(violation.0.contains(text), "{violation}");
}

#[track_caller]
fn assert_unexplained(lines: &[Line]) {
    assert_violates(lines, "no order explains");
}

#[test]
fn a_stale_read_is_found() {
    let writes = [
        (1, INSERT, done(10), (0, 1)),
        (2, replace_if(10), done(20), (2, 3)),
    ];
    let read = |from| [&writes[..], &[(0, READ, saw(1, 10), (from, 5))]].concat();
    assert_unexplained(&read(4));
    // A read that began before the write returned may miss it.
    assert_correct(&read(2));
}

#[test]
fn a_read_must_not_go_back() {
    let history = [
        (1, INSERT, done(10), (0, 1)),
        (2, UPSERT, done(20), (2, 9)),
        (0, READ, saw(2, 20), (3, 4)),
        (0, READ, saw(1, 10), (5, 6)),
    ];
    assert_unexplained(&history);
}

#[test]
fn a_lost_update_is_found() {
    let history = [
        (1, INSERT, done(10), (0, 1)),
        (2, replace_if(10), done(20), (2, 5)),
        (3, replace_if(10), done(30), (3, 6)),
    ];
    assert_unexplained(&history);
}

#[test]
fn a_lost_acknowledged_write_is_found() {
    let lost = |rest: &[Line]| [&[(1, INSERT, done(10), (0, 1))], rest].concat();
    assert_unexplained(&lost(&[(0, READ, SAW_NOTHING, (2, 3))]));
    assert_unexplained(&lost(&[(2, INSERT, done(20), (2, 3))]));
    let refused = Outcome::Refused(Refusal::Missing);
    assert_unexplained(&lost(&[(2, replace_if(10), refused, (2, 3))]));
    let undone = [
        (2, replace_if(10), done(20), (2, 3)),
        (3, replace_if(10), done(30), (4, 5)),
    ];
    assert_unexplained(&lost(&undone));
}

#[test]
fn a_write_that_is_applied_twice_is_found() {
    let history = [(1, UPSERT, done(10), (0, 1)), (0, READ, saw(1, 20), (2, 3))];
    assert_violates(&history, "applied twice");
    // The second time is seen as a part of what follows.
    let seen = Outcome::Saw(Some(Seen {
        a: Some(1),
        b: Some(3),
        ..Seen::whole(3, 30)
    }));
    let history = [
        (1, UPSERT, done(10), (0, 1)),
        (2, UPSERT, done(20), (2, 3)),
        (3, MERGE, done(30), (4, 5)),
        (0, READ, seen, (6, 7)),
    ];
    assert_unexplained(&history);
}

#[test]
fn a_delete_that_is_applied_twice_is_found() {
    let deleted = Outcome::Done(None);
    let history = [
        (1, INSERT, done(10), (0, 1)),
        (2, DELETE, deleted, (2, 3)),
        (3, INSERT, done(20), (4, 5)),
        (0, READ, SAW_NOTHING, (6, 7)),
    ];
    assert_unexplained(&history);
}

#[test]
fn a_rejected_write_that_is_applied_is_found() {
    for outcome in [Outcome::Failed, Outcome::Refused(Refusal::Exists)] {
        let history = [(1, INSERT, outcome, (0, 1)), (0, READ, saw(1, 10), (2, 3))];
        assert_violates(&history, "which was not applied");
    }
}

#[test]
fn a_version_that_goes_back_is_found() {
    let deleted = Outcome::Done(None);
    let history = |version| {
        [
            (1, INSERT, done(10), (0, 1)),
            (2, DELETE, deleted, (2, 3)),
            (3, INSERT, done(version), (4, 5)),
        ]
    };
    assert_unexplained(&history(9));
    assert_violates(&history(10), "of two writes");
    assert_correct(&history(11));
}

#[test]
fn a_rejection_that_no_state_allows_is_found() {
    let inserted = (1, INSERT, done(10), (0, 1));
    let changed = Outcome::Refused(Refusal::Changed);
    assert_unexplained(&[inserted, (2, replace_if(10), changed, (2, 3))]);
    let unknown = (3, UPSERT, Outcome::Unknown, (2, 3));
    assert_correct(&[inserted, unknown, (2, replace_if(10), changed, (4, 5))]);
}

#[test]
fn an_unknown_write_may_take_effect_at_any_time_or_never() {
    let inserted = (1, INSERT, done(10), (0, 1));
    let unknown = (2, UPSERT, Outcome::Unknown, (2, 3));
    let late = (0, READ, saw(2, 50), (8, 9));
    let before = (0, READ, saw(1, 10), (4, 5));
    assert_correct(&[inserted, unknown, before, late]);
    assert_correct(&[inserted, unknown, before]);
    // But not before it was called, and not in turns.
    assert_violates(
        &[inserted, (0, READ, saw(2, 50), (0, 1)), unknown],
        "which was not applied",
    );
    assert_unexplained(&[
        inserted,
        unknown,
        (0, READ, saw(2, 50), (4, 5)),
        (0, READ, saw(1, 10), (6, 7)),
    ]);
}

#[test]
fn each_unknown_delete_takes_effect_at_most_once() {
    let history = |deletes: i64| {
        let mut lines = vec![(1, INSERT, done(10), (0, 1))];
        for delete in 0..deletes {
            lines.push((100 + delete, DELETE, Outcome::Unknown, (2, 3)));
        }
        lines.extend([
            (0, READ, SAW_NOTHING, (4, 5)),
            (2, INSERT, done(20), (6, 7)),
            (0, READ, SAW_NOTHING, (8, 9)),
        ]);
        lines
    };
    assert_unexplained(&history(1));
    assert_correct(&history(2));
    assert_correct(&history(60));
}

/// Two entities of a partition, and a batch without a response that writes both.
fn batch(lines: &[(&str, Line)]) -> History {
    let mut history = History::default();
    let unknown = (1, INSERT, Outcome::Unknown, (0, 1));
    for (row, line) in [("x", unknown), ("y", unknown)].iter().chain(lines) {
        history.note(("p".to_owned(), (*row).to_owned()), op(line));
    }
    history
}

#[test]
fn a_batch_that_is_applied_in_part_is_found() {
    let read = ("x", (0, READ, saw(1, 10), (2, 3)));
    assert!(check(&batch(&[read])).is_ok());
    let other = |seen| ("y", (0, READ, seen, (4, 5)));
    assert!(check(&batch(&[read, other(saw(1, 10))])).is_ok());
    let violation = check(&batch(&[read, other(SAW_NOTHING)]));
    let text = violation.expect_err("the violation is found").0;
    assert!(text.contains("no order explains"), "{text}");
}

#[test]
fn a_query_that_sees_a_part_of_a_batch_is_found() {
    let mut history = History::default();
    for row in ["x", "y"] {
        let name = ("p".to_owned(), row.to_owned());
        history.note(name.clone(), op(&(1, UPSERT, done(10), (0, 1))));
        history.note(name, op(&(2, UPSERT, done(20), (2, 9))));
    }
    let rows = [("x", Seen::whole(1, 10)), ("y", Seen::whole(2, 20))];
    let rows = BTreeMap::from(rows.map(|(row, seen)| (row.to_owned(), Some(seen))));
    history.note_query("p", rows, (3, 4));
    let text = check(&history).expect_err("the violation is found").0;
    assert!(text.contains("a part of batch 2"), "{text}");
}
