//! The rules of the outbox: each write is committed once, and each committed step has its effect on
//! the target, once and in order, and can be found until then.

use super::view::target;
use super::{Key, NUMBERS, POINTERS, Row, Step, Target};
use crate::explore::{Found, Rows, Rules};

/// The committed steps, and how far the target has come.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct History {
    steps: [Option<Step>; NUMBERS as usize],
    /// The pointers of the writes that were committed.
    committed: [bool; POINTERS as usize],
    /// The number of the last step that had its effect.
    last: u8,
}

impl History {
    /// These steps were committed before.
    pub fn new(committed: &[Step]) -> Self {
        let mut steps = [None; NUMBERS as usize];
        for (known, &step) in steps.iter_mut().skip(1).zip(committed) {
            *known = Some(step);
        }
        Self {
            steps,
            committed: Default::default(),
            last: 0,
        }
    }

    fn is_delete(&self, number: u8) -> bool {
        self.steps[usize::from(number)] == Some(Step::Delete)
    }

    /// The properties of the target after the step of this number.
    fn expected(&self, number: u8) -> Option<(u8, u8)> {
        let steps = self.steps.iter().take(usize::from(number) + 1).flatten();
        steps.fold(None, |properties, step| step.on(properties))
    }

    fn observe_steps(
        &mut self,
        before: &Rows<Key, Row>,
        after: &Rows<Key, Row>,
    ) -> Result<(), String> {
        for number in 1..NUMBERS {
            let (entry, dead) = (Key::Entry(number), Key::Dead(number));
            let is_waiting = |rows: &Rows<Key, Row>| rows.get(entry).or(rows.get(dead)).is_some();
            let known = &mut self.steps[usize::from(number)];
            match (is_waiting(before), is_waiting(after)) {
                (false, true) if known.is_some() => {
                    return Err(format!("step {number} is committed twice"));
                }
                (false, true) => {
                    if let Some(found) = after.get(entry)
                        && let Row::Entry(entry) = found.row
                    {
                        *known = Some(entry.step);
                        let pointer = entry.pointer;
                        let committed = &mut self.committed[usize::from(pointer) - 1];
                        if std::mem::replace(committed, true) {
                            return Err(format!(
                                "the write of pointer {pointer} is committed twice"
                            ));
                        }
                    }
                }
                (true, false) if !self.is_delete(number) && self.last < number => {
                    return Err(format!("step {number} has ended without its effect"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn observe_target(
        &mut self,
        old: Option<Target>,
        new: Option<Target>,
        after: &Rows<Key, Row>,
    ) -> Result<(), String> {
        let stamp = old.map_or(0, |old| old.stamp);
        let Some(new) = new else {
            let delete = (stamp + 1..NUMBERS).find(|&number| self.is_delete(number));
            let delete = delete.ok_or("no step deletes the target")?;
            self.last = delete.max(self.last);
            return Ok(());
        };
        // Until the grave of a delete is swept, an earlier step may come late.
        let is_ghost = (stamp + 1..=self.last).any(|number| {
            let rows = [Key::Entry(number), Key::Grave(number)];
            self.is_delete(number) && rows.iter().any(|key| after.get(*key).is_some())
        });
        if is_ghost && new.stamp <= self.last {
            return Ok(());
        }
        if new.stamp <= self.last {
            return Err(format!(
                "step {} has its effect after step {}",
                new.stamp, self.last
            ));
        }
        self.last = new.stamp;
        let expected = self.expected(new.stamp);
        if expected != Some(new.properties) {
            return Err(format!(
                "step {} makes {new:?} instead of {expected:?}",
                new.stamp
            ));
        }
        Ok(())
    }
}

impl Rules<Key, Row> for History {
    fn observe(&mut self, before: &Rows<Key, Row>, after: &Rows<Key, Row>) -> Result<(), String> {
        self.observe_steps(before, after)?;
        for (key, found) in after.iter() {
            if let Row::Entry(entry) = found.row
                && after.get(Key::Pointer(entry.pointer)).is_none()
            {
                return Err(format!("no pointer leads to {key:?}"));
            }
        }
        let (old, new) = (target(before), target(after));
        if old == new {
            return Ok(());
        }
        let properties = |target: Option<(u8, Target)>| target.map(|(_, target)| target);
        self.observe_target(properties(old), properties(new), after)
    }

    fn end(&self, rows: &Rows<Key, Row>) -> Result<(), String> {
        for (key, _) in rows.iter() {
            let leads_to_dead = |(_, found): (Key, Found<Row>)| matches!(found.row, Row::Entry(entry) if key == Key::Pointer(entry.pointer));
            let is_left = match key {
                Key::Pointer(_) => !rows.iter().any(leads_to_dead),
                Key::Entry(_) | Key::Grave(_) => true,
                _ => false,
            };
            if is_left {
                return Err(format!("{key:?} is left"));
            }
        }
        // Steps behind a dead one wait for the operator. Dead ones may have had their effect before
        // they were set aside.
        let dead = (1..NUMBERS).find(|&number| rows.get(Key::Dead(number)).is_some());
        let before_dead = dead.unwrap_or(NUMBERS) - 1;
        let expected = self.expected(self.last.max(before_dead));
        let properties = target(rows).map(|(_, target)| target.properties);
        if properties != expected {
            return Err(format!(
                "the target is {properties:?} instead of {expected:?}"
            ));
        }
        Ok(())
    }
}
