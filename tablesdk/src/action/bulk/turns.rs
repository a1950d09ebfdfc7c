//! The batches of a bulk run that wait for their turn at its rate. Knows nothing of what they
//! write.

use std::future::pending;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::pack::Packed;
use super::rate::{MaxRate, Pace};
use crate::pipeline::Table;

/// Batches that wait for their turn, in order. Without a rate, it is always their turn.
pub(crate) struct Turns {
    pace: Option<Pace>,
    batches: Vec<Packed>,
}

impl Turns {
    pub(crate) fn new(max: MaxRate) -> Self {
        Self {
            pace: (!max.is_none()).then(|| Pace::new(max)),
            batches: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, batch: Packed) {
        self.batches.push(batch);
    }

    /// Gives the batches up.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
    }

    pub(crate) const fn len(&self) -> usize {
        self.batches.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Takes a batch whose turn it is.
    pub(crate) fn take(&mut self) -> Option<Packed> {
        let is_due = |batch| self.of(batch).is_none_or(|turn| turn <= Instant::now());
        let index = self.batches.iter().position(is_due)?;
        let batch = self.batches.remove(index);
        if let (Some(pace), Some(partition)) = (&self.pace, batch.partition()) {
            pace.start(partition, batch.entities());
        }
        Some(batch)
    }

    /// Waits for the next turn, if there is one.
    pub(crate) fn wait(&self) -> impl Future<Output = ()> + use<> {
        let next = self.batches.iter().filter_map(|batch| self.of(batch)).min();
        async move {
            match next {
                Some(next) => sleep_until(next).await,
                None => pending().await,
            }
        }
    }

    /// The table of a batch, whose requests report to the pace that the service is busy.
    pub(crate) fn paced(&self, table: &Table, batch: &Packed) -> Table {
        let mut table = table.clone();
        if let (Some(pace), Some(partition)) = (&self.pace, batch.partition()) {
            let (pace, partition) = (pace.clone(), partition.clone());
            let entities = batch.entities();
            table.pipeline.on_busy = Some(Arc::new(move || pace.busy(&partition, entities)));
        }
        table
    }

    /// The turn of a batch; `None` if it does not wait.
    fn of(&self, batch: &Packed) -> Option<Instant> {
        Some(self.pace.as_ref()?.turn(batch.partition()?))
    }
}
