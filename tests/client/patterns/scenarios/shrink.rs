//! Leaves steps and faults out of a history that fails, as long as it fails.

use std::fmt::Write as _;
use std::marker::PhantomData;

use super::Scenario;
use super::history::{History, run};

/// How often a history is run again.
const RUNS_MAX: u32 = 200;

/// A history that fails, and how.
struct Failing<S> {
    history: History,
    panic: String,
    faults: Vec<(u64, String)>,
    runs: u32,
    scenario: PhantomData<S>,
}

/// Shrinks a history that has failed, and describes the rest for people.
pub(super) fn shrunk<S: Scenario>(history: History) -> String {
    let Err((panic, faults)) = run::<S>(&history) else {
        return "It did not fail again: it depends on keys that are random in each run.".to_owned();
    };
    let mut failing = Failing::<S> {
        history,
        panic,
        faults,
        runs: 0,
        scenario: PhantomData,
    };
    failing.leave_out_steps();
    failing.spare_requests();
    failing.text()
}

impl<S: Scenario> Failing<S> {
    /// Keeps a history that fails, too.
    fn take(&mut self, candidate: History) {
        self.runs += 1;
        if self.runs <= RUNS_MAX
            && let Err((panic, faults)) = run::<S>(&candidate)
        {
            (self.history, self.panic, self.faults) = (candidate, panic, faults);
        }
    }

    fn steps(&self) -> Vec<(u64, u32)> {
        let all = (0..S::CLIENTS)
            .flat_map(|client| (0..S::EPOCHS * S::STEPS).map(move |step| (client, step)));
        all.filter(|step| !self.history.left_out.contains(step))
            .collect()
    }

    fn leave_out_steps(&mut self) {
        let steps = self.steps();
        let mut size = steps.len() / 2;
        while size > 0 {
            for some in steps.chunks(size) {
                let mut candidate = self.history.clone();
                candidate.left_out.extend(some);
                if candidate.left_out.len() > self.history.left_out.len() {
                    self.take(candidate);
                }
            }
            size /= 2;
        }
    }

    fn spare_requests(&mut self) {
        for (request, _) in self.faults.clone() {
            let mut candidate = self.history.clone();
            candidate.spared.insert(request);
            self.take(candidate);
        }
    }

    fn text(&self) -> String {
        let mut text = String::from("What is left of it fails, too:");
        // Writing to a string does not fail.
        for (client, step) in self.steps() {
            let _ = write!(text, "\n  client {client}, step {step}");
        }
        for (request, fault) in &self.faults {
            let _ = write!(text, "\n  request {request}: {fault}");
        }
        let _ = write!(text, "\n{}", self.panic);
        text
    }
}
