//! The staged changes: at most one for each entity, none of them sent. This module knows neither
//! HTML nor requests of a browser.
//!
//! A change is sent only by the number of the plan that a person has reviewed. So a form that is
//! sent twice, or that shows a plan from before the last change, sends nothing.

mod change;
mod conflict;
mod form;
mod guard;
mod plan;
mod send;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use self::change::{Base, Becomes, Change, Difference};
pub(crate) use self::conflict::{Cell, Now, Resolution, Version, rows};
pub(crate) use self::form::{
    ABSENT, Field, FieldError, Fixed, Selected, UNCHANGED, base_text, editable, entity_of_fields,
    entity_of_json, json_of, read_json, rule,
};
pub(crate) use self::guard::{Keeper, mends};
pub(crate) use self::plan::{Plan, Transaction};
pub(crate) use self::send::{Outcome, Report, send, stored};

use crate::escape::key;

/// The changes that wait for a review, in the order in which they were staged.
#[derive(Default)]
pub(crate) struct Staged {
    entries: Vec<Entry>,
    /// The memory that they take.
    bytes: usize,
    /// The number of the next change.
    next: u64,
    /// The number of the plan. Another one after each change of the set.
    number: u64,
    is_sending: bool,
    /// The outcome of the last plan that was sent.
    report: Option<Arc<Report>>,
    /// The changes that were discarded since the last plan was sent. They can be restored.
    discarded: Vec<Entry>,
}

/// A staged change.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Names it in forms.
    pub(crate) id: u64,
    pub(crate) change: Arc<Change>,
    pub(crate) state: State,
    bytes: usize,
}

/// The state of a staged change.
#[derive(Clone)]
pub(crate) enum State {
    /// It was not sent, or was not carried out with others of its transaction.
    Waiting,
    /// The entity is not as it was read.
    Conflict(Arc<Now>),
    /// The service refused it. It is in the next plan.
    Failed(String),
    /// It was sent, and may or may not have been carried out.
    Unknown(Arc<Now>, String),
}

impl State {
    /// Returns true if a person has to decide before the change is sent again.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Unknown(..))
    }
}

/// Why a change is not staged, or a plan not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "{CHANGES_MAX} changes are staged, which is the maximum: review and send them, or discard some"
    )]
    Count,
    #[error(
        "the staged changes would take more than {} MiB: review and send them, or discard some",
        BYTES_MAX >> 20
    )]
    Bytes,
    #[error("the staged changes are being sent: wait for the outcome")]
    Sending,
    #[error("the staged changes are not those that were shown: look at the plan below")]
    OtherPlan,
    #[error("there is no such staged change: it was sent or discarded")]
    Gone,
    #[error(
        "another form has staged a change of this entity since this one was shown: send this one again to stage it in place of that change"
    )]
    Restaged,
    #[error("{0} cannot be applied to the version that is stored now: keep it, or replace it")]
    Inapplicable(String),
}

impl Staged {
    /// Stages a change in place of one of the same entity. Returns its id.
    pub(crate) fn stage(&mut self, change: Change) -> Result<u64, Refused> {
        self.check_idle()?;
        let bytes = change.bytes();
        let known = self
            .entries
            .iter()
            .position(|it| it.change.target.is(&change.target));
        let known_bytes = known.and_then(|index| self.entries.get(index));
        let others = self.bytes - known_bytes.map_or(0, |it| it.bytes);
        if known.is_none() && self.entries.len() == CHANGES_MAX {
            return Err(Refused::Count);
        }
        if others + bytes > BYTES_MAX {
            return Err(Refused::Bytes);
        }
        self.bytes = others + bytes;
        let entry = Entry {
            id: self.next,
            change: Arc::new(change),
            state: State::Waiting,
            bytes,
        };
        self.next += 1;
        self.discarded
            .retain(|it| !it.change.target.is(&entry.change.target));
        self.note_change();
        let id = entry.id;
        match known.and_then(|index| self.entries.get_mut(index)) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        Ok(id)
    }

    /// Stages a change in place of the one that its form has shown, also if that is of other keys.
    /// `shown` is the id of that.
    pub(crate) fn restage(&mut self, change: Change, shown: Option<u64>) -> Result<u64, Refused> {
        let target = &change.target;
        let known = self.shown_of(&target.table, (&target.partition, &target.row), shown)?;
        let id = self.stage(change)?;
        if let Some(shown) = shown.filter(|_| known.is_none()) {
            drop(self.remove(shown));
        }
        Ok(id)
    }

    /// The id of the change of an entity, which must be the one that a form has shown.
    pub(crate) fn shown_of(
        &self,
        table: &str,
        (partition, row): (&str, &str),
        shown: Option<u64>,
    ) -> Result<Option<u64>, Refused> {
        let known = self.of(table, partition, row).map(|it| it.id);
        if known.is_some() && known != shown {
            return Err(Refused::Restaged);
        }
        Ok(known)
    }

    /// Removes a change, which can be restored.
    pub(crate) fn discard(&mut self, id: u64) -> Result<(), Refused> {
        let entry = self.withdraw(id)?;
        self.keep(vec![entry]);
        Ok(())
    }

    /// Removes a change for good: what it wants is stored.
    pub(crate) fn withdraw(&mut self, id: u64) -> Result<Entry, Refused> {
        self.check_idle()?;
        let entry = self.remove(id).ok_or(Refused::Gone)?;
        self.note_change();
        Ok(entry)
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let index = self.entries.iter().position(|it| it.id == id)?;
        let entry = self.entries.remove(index);
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Removes all changes, if they are those that were shown with this number. They can be
    /// restored.
    pub(crate) fn discard_all(&mut self, number: u64) -> Result<(), Refused> {
        self.check(number)?;
        let entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        self.note_change();
        self.keep(entries);
        Ok(())
    }

    /// Keeps what was discarded last, as far as there is room.
    fn keep(&mut self, entries: Vec<Entry>) {
        self.discarded.extend(entries);
        let mut bytes = 0;
        let newest = self.discarded.iter().rev().take(CHANGES_MAX);
        let kept = newest.take_while(|it| {
            bytes += it.bytes;
            bytes <= BYTES_MAX
        });
        let oldest = self.discarded.len() - kept.count();
        self.discarded.drain(..oldest);
    }

    /// Stages what was discarded again, all of it or nothing. An entity that has another change
    /// since keeps that one.
    pub(crate) fn restore(&mut self) -> Result<(), Refused> {
        self.check_idle()?;
        let bytes = self.discarded.iter().map(|it| it.bytes).sum::<usize>();
        if self.len() + self.discarded.len() > CHANGES_MAX {
            return Err(Refused::Count);
        }
        if self.bytes + bytes > BYTES_MAX {
            return Err(Refused::Bytes);
        }
        self.bytes += bytes;
        self.entries.append(&mut self.discarded);
        self.note_change();
        Ok(())
    }

    /// The changes that can be restored.
    pub(crate) fn discarded(&self) -> &[Entry] {
        &self.discarded
    }

    pub(crate) fn forget_discarded(&mut self) {
        self.discarded.clear();
    }

    /// Notes that the set is another one. Of the last plan, only what was sent is still so.
    fn note_change(&mut self) {
        self.number += 1;
        let report = self.report.take();
        self.report = report.and_then(|it| it.of_sent()).map(Arc::new);
    }

    /// Decides what becomes of a change whose entity has another version now.
    pub(crate) fn resolve(&mut self, id: u64, how: Resolution) -> Result<(), Refused> {
        let entry = self.entry(id).ok_or(Refused::Gone)?;
        let (change, is_stored) = match &entry.state {
            State::Conflict(now) | State::Unknown(now, _) => (
                entry.change.resolved(now, how),
                entry.change.is_stored_in(now),
            ),
            State::Waiting | State::Failed(_) => return Err(Refused::Gone),
        };
        match (change, how) {
            (Some(change), _) => self.stage(change).map(drop),
            (None, Resolution::Keep) if is_stored => self.withdraw(id).map(drop),
            (None, Resolution::Keep) => self.discard(id),
            (None, _) => {
                let target = &entry.change.target;
                Err(Refused::Inapplicable(key(&target.partition, &target.row)))
            }
        }
    }

    /// Puts a change whose outcome is unknown into the next plan. Its condition sees to it that it
    /// is carried out once. It has another id then: a page from before knows nothing of what it
    /// meets next.
    pub(crate) fn try_again(&mut self, id: u64) -> Result<(), Refused> {
        self.check_idle()?;
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|it| it.id == id).ok_or(Refused::Gone)?;
        entry.state = State::Waiting;
        entry.id = self.next;
        self.next += 1;
        self.note_change();
        Ok(())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Another one after each change of the set.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) const fn is_sending(&self) -> bool {
        self.is_sending
    }

    pub(crate) const fn report(&self) -> Option<&Arc<Report>> {
        self.report.as_ref()
    }

    pub(crate) fn dismiss_report(&mut self) {
        self.report = None;
    }

    /// The change with that id.
    pub(crate) fn entry(&self, id: u64) -> Option<&Entry> {
        self.entries.iter().find(|it| it.id == id)
    }

    /// The change of an entity.
    pub(crate) fn of(&self, table: &str, partition: &str, row: &str) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|it| it.change.target.is_of(table, partition, row))
    }

    /// The changes of a table.
    pub(crate) fn marks(&self, table: &str) -> Marks {
        let mut marks = Marks::default();
        let entries = self.entries.iter();
        for entry in entries.filter(|it| it.change.target.table.eq_ignore_ascii_case(table)) {
            let change = &entry.change;
            let of_partition = marks.0.entry(change.target.partition.clone()).or_default();
            let mark = Mark {
                is_delete: change.sent().is_none(),
                difference: change.difference(),
            };
            of_partition.insert(change.target.row.clone(), mark);
        }
        marks
    }

    /// The plan that would be sent now.
    pub(crate) fn plan(&self) -> Plan {
        let waiting = self.entries.iter().filter(|it| !it.state.is_open());
        Plan::of(self.number, waiting.cloned())
    }

    /// The plan with that number, which is sent now. Nothing is staged until
    /// [`finish`](Self::finish).
    pub(crate) fn begin(&mut self, number: u64) -> Result<Plan, Refused> {
        self.check(number)?;
        let plan = self.plan();
        self.is_sending = true;
        self.number += 1;
        self.report = None;
        self.discarded.clear();
        Ok(plan)
    }

    /// Removes what was sent, and keeps the rest.
    pub(crate) fn finish(&mut self, report: Report) {
        self.is_sending = false;
        self.number += 1;
        for (transaction, outcome) in &report.transactions {
            for (index, sent) in transaction.entries.iter().enumerate() {
                let Some(place) = self.entries.iter().position(|it| it.id == sent.id) else {
                    continue;
                };
                match outcome.state_of(index) {
                    Some(state) => self.set_state(place, state),
                    None => self.bytes -= self.entries.remove(place).bytes,
                }
            }
        }
        self.report = (!report.transactions.is_empty()).then(|| Arc::new(report));
    }

    fn set_state(&mut self, place: usize, state: State) {
        if let Some(entry) = self.entries.get_mut(place) {
            let bytes = entry.change.bytes() + state_bytes(&state);
            self.bytes = self.bytes - entry.bytes + bytes;
            entry.bytes = bytes;
            entry.state = state;
        }
    }

    fn check(&self, number: u64) -> Result<(), Refused> {
        self.check_idle()?;
        if number != self.number {
            return Err(Refused::OtherPlan);
        }
        Ok(())
    }

    const fn check_idle(&self) -> Result<(), Refused> {
        if self.is_sending {
            return Err(Refused::Sending);
        }
        Ok(())
    }
}

/// The staged changes of the entities of a table, by partition and row.
#[derive(Default)]
pub(crate) struct Marks(HashMap<String, HashMap<String, Mark>>);

/// The effect of a staged change on an entity.
pub(crate) struct Mark {
    pub(crate) is_delete: bool,
    pub(crate) difference: Difference,
}

impl Marks {
    pub(crate) fn of(&self, partition: &str, row: &str) -> Option<&Mark> {
        self.0.get(partition)?.get(row)
    }
}

fn state_bytes(state: &State) -> usize {
    match state {
        State::Conflict(now) => now.bytes(),
        State::Unknown(now, text) => now.bytes() + text.len(),
        State::Failed(text) => text.len(),
        State::Waiting => 0,
    }
}

/// As many as two pages of entities that are selected.
pub(crate) const CHANGES_MAX: usize = 2000;
/// More than enough for changes by hand, and a bound of the program's memory.
pub(crate) const BYTES_MAX: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use tablesdk::{DynamicEntity, ETag, Timestamp};

    use super::change::Target;
    use super::*;

    pub(super) fn etag(second: u32) -> ETag {
        let text = format!("2026-11-24T05:58:{second:02}Z");
        ETag::from_timestamp(text.parse::<Timestamp>().expect("it is a date"))
    }

    pub(super) fn ken(salary: f64) -> DynamicEntity {
        let ken = DynamicEntity::new("Sales", "000145");
        ken.with("Salary", salary).with("Email", "kenk@contoso.com")
    }

    /// A merge of another salary.
    pub(super) fn merge() -> Change {
        let base = Base::new(etag(1), ken(57_000.0));
        Change::edit("Employees", ken(58_500.0), base).expect("the salary differs")
    }

    fn delete(row: usize) -> Change {
        let target = Target::new("Employees", "Sales", format!("{row:06}"));
        Change::delete(target, etag(1), None)
    }

    #[test]
    fn an_entity_has_one_change_which_the_next_one_replaces() {
        let mut staged = Staged::default();
        staged.stage(delete(1)).expect("there is room");
        staged.stage(merge()).expect("there is room");
        let target = Target::new("employees", "Sales", "000145");
        let delete = Change::delete(target, etag(1), None);
        staged.stage(delete).expect("there is room");
        let verbs: Vec<_> = staged.entries().iter().map(|it| it.change.verb()).collect();
        assert_eq!(verbs, ["DELETE", "DELETE"], "names of tables have no case");
    }

    #[test]
    fn a_discarded_change_takes_no_room() {
        let mut staged = Staged::default();
        let id = staged.stage(merge()).expect("there is room");
        assert!(staged.bytes > 0);
        staged.discard(id).expect("it is staged");
        assert_eq!((staged.len(), staged.bytes), (0, 0));
        assert_eq!(staged.discard(id), Err(Refused::Gone));
        staged.stage(merge()).expect("there is room");
        staged
            .discard_all(staged.number())
            .expect("nothing is being sent");
        assert_eq!((staged.len(), staged.bytes), (0, 0));
    }

    #[test]
    fn what_was_discarded_is_restored_unless_its_entity_has_another_change() {
        let mut staged = Staged::default();
        let id = staged.stage(merge()).expect("there is room");
        staged.stage(delete(1)).expect("there is room");
        staged.discard(id).expect("it is staged");
        staged
            .discard_all(staged.number())
            .expect("nothing is being sent");
        assert_eq!((staged.len(), staged.discarded().len()), (0, 2));
        staged.stage(delete(1)).expect("there is room");
        assert_eq!(staged.discarded().len(), 1);
        staged.restore().expect("there is room");
        let verbs: Vec<_> = staged.entries().iter().map(|it| it.change.verb()).collect();
        assert_eq!(verbs, ["DELETE", "MERGE"]);
        let bytes = staged.entries().iter().map(|it| it.bytes).sum::<usize>();
        assert_eq!((staged.discarded().len(), staged.bytes), (0, bytes));
        staged.discard(id).expect("it is staged");
        staged.begin(staged.plan().number).expect("it is the plan");
        assert_eq!(staged.discarded().len(), 0);
    }

    #[test]
    fn what_was_discarded_is_bounded_and_restored_whole_or_not() {
        let mut staged = Staged::default();
        for row in 0..CHANGES_MAX + 10 {
            let id = staged.stage(delete(row)).expect("there is room");
            staged.discard(id).expect("it is staged");
        }
        assert_eq!(staged.discarded().len(), CHANGES_MAX);
        staged
            .stage(delete(CHANGES_MAX + 10))
            .expect("there is room");
        assert_eq!(staged.restore(), Err(Refused::Count));
        assert_eq!((staged.len(), staged.discarded().len()), (1, CHANGES_MAX));
    }

    #[test]
    fn a_page_from_before_another_attempt_decides_nothing() {
        let mut staged = Staged::default();
        let shown = staged.stage(merge()).expect("there is room");
        let unknown = |staged: &mut Staged| {
            let state = State::Unknown(Arc::new(Now::Missing), "no answer".to_owned());
            staged.set_state(0, state);
        };
        unknown(&mut staged);
        staged.try_again(shown).expect("it is staged");
        unknown(&mut staged);
        let resolved = staged.resolve(shown, Resolution::Replace);
        assert_eq!(resolved, Err(Refused::Gone));
    }

    #[test]
    fn what_is_staged_is_bounded() {
        let mut staged = Staged::default();
        for row in 0..CHANGES_MAX {
            staged.stage(delete(row)).expect("there is room");
        }
        assert_eq!(staged.stage(delete(CHANGES_MAX)), Err(Refused::Count));
        staged.stage(delete(7)).expect("it replaces another one");

        let mut staged = Staged::default();
        let big = |row: usize| {
            let entity = DynamicEntity::new("Sales", format!("{row}"));
            Change::insert("Employees", entity.with("Photo", vec![7_u8; 60 << 10]))
        };
        let refused = (0..CHANGES_MAX).find_map(|row| staged.stage(big(row)).err());
        assert_eq!(refused, Some(Refused::Bytes));
        assert!(staged.bytes <= BYTES_MAX);
    }

    #[test]
    fn only_the_plan_that_was_reviewed_is_sent_and_only_once() {
        let mut staged = Staged::default();
        staged.stage(merge()).expect("there is room");
        let reviewed = staged.plan().number;
        staged.stage(delete(1)).expect("there is room");
        assert_eq!(staged.begin(reviewed).err(), Some(Refused::OtherPlan));
        let reviewed = staged.plan().number;
        staged.begin(reviewed).expect("it is the plan");
        assert_eq!(staged.begin(reviewed).err(), Some(Refused::Sending));
        assert_eq!(staged.stage(delete(2)), Err(Refused::Sending));
        assert_eq!(staged.discard_all(staged.number()), Err(Refused::Sending));
        staged.finish(Report::default());
        assert_eq!(staged.begin(reviewed).err(), Some(Refused::OtherPlan));
    }
}
