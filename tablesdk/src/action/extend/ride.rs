//! Riders, which go along with a change: made by a pattern, carried by the verbs, and opened by the
//! same pattern.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::slice;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tablesdk_protocol::{ETag, EntityKey, PartitionKey, TableName};

use super::count::RequestCount;
use crate::action::write::change::EntityChange;
use crate::action::write::keep_marker::KeepMarker;
use crate::entity::attached::Attach;
use crate::error::Error;
use crate::pipeline::{Deadline, OperationRun, Table};

/// A rider, which goes along with the change of an entity, or with a batch.
pub(crate) trait Ride: Any + Send + Sync + fmt::Debug {
    fn clone_box(&self) -> Box<dyn Ride>;

    /// The layer that wraps the request with the change; `None` if none does.
    fn layer(&self) -> Option<&'static Layer> {
        None
    }

    /// Shows each entity that the rider also writes.
    fn also_writes(&self, _see: &mut dyn FnMut(AlsoWritten<'_>)) {}

    /// Returns true if the request has one change more, however many of its changes require that.
    fn adds_change(&self) -> bool {
        false
    }

    /// Returns true if a batch is committed for the rider alone.
    fn is_committed_alone(&self) -> bool {
        false
    }

    /// Returns true if a request comes before that of the change, which all changes share.
    fn reads_first(&self, _table: &Table) -> bool {
        false
    }

    /// Makes what is sent of the content of the change, once. `None` where the content is sent as
    /// it is. Content that is not whole is merged into the stored entity.
    fn transform<'r>(
        &'r mut self,
        _table: &'r Table,
        _key: &'r EntityKey,
        _content: &'r Bytes,
        _is_whole: bool,
    ) -> Option<BoxFuture<'r, Result<Bytes, Error>>> {
        None
    }

    /// The content that was made, as it was before; `None` where it is the same.
    fn restore(&self, _key: &EntityKey, _stored: &Bytes) -> Result<Option<Bytes>, Error> {
        Ok(None)
    }

    /// Runs after the batch was committed.
    fn follow_up<'r>(
        &'r self,
        _table: &'r Table,
        _partition: &'r PartitionKey,
        _deadline: Deadline,
    ) -> Option<BoxFuture<'r, ()>> {
        None
    }
}

/// An entity that a rider writes along with the change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlsoWritten<'r> {
    pub(crate) key: &'r EntityKey,
    /// The size of its content; 0 if it is deleted.
    pub(crate) bytes: usize,
    pub(crate) place: Place,
}

/// The request in which a rider writes an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// That of the change. No other change of it may write the entity.
    Same,
    /// That of the change. The riders of its other changes may write the entity, too.
    Shared,
    /// Another one, before or after that of the change.
    Other,
    /// Another one, of another table.
    OtherTable,
}

impl Place {
    /// Returns true if the entity is written by the request of the change.
    pub(crate) const fn is_in_request(self) -> bool {
        matches!(self, Self::Same | Self::Shared)
    }
}

/// The riders of a change or of a batch: none for most.
#[derive(Default)]
pub(crate) struct Riders(Vec<Box<dyn Ride>>);

impl Riders {
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn add(&mut self, rider: Box<dyn Ride>) {
        self.0.push(rider);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Ride> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The rider of that type.
    pub(crate) fn find<R: Ride>(&self) -> Option<&R> {
        self.all().next()
    }

    /// The riders of that type: of one change there may be several, where the value becomes another
    /// variant of an enum.
    pub(crate) fn all<R: Ride>(&self) -> impl Iterator<Item = &R> {
        self.iter()
            .filter_map(|rider| (rider as &dyn Any).downcast_ref())
    }

    /// The rider of that type.
    pub(crate) fn find_mut<R: Ride>(&mut self) -> Option<&mut R> {
        self.0
            .iter_mut()
            .find_map(|rider| (rider.as_mut() as &mut dyn Any).downcast_mut())
    }

    /// The rider of that type, which is added if it is not there.
    pub(crate) fn find_or_add<R: Ride>(&mut self, new: impl FnOnce() -> R) -> &mut R {
        if self.find::<R>().is_none() {
            self.add(Box::new(new()));
        }
        self.find_mut().expect("it is there, or was added")
    }

    /// The layers that wrap the request.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &'static Layer> {
        self.iter().filter_map(Ride::layer)
    }

    /// Returns true if a layer wraps the request.
    pub(crate) fn has_layers(&self) -> bool {
        self.layers().next().is_some()
    }

    /// Returns true if a batch without changes is committed.
    pub(crate) fn are_committed_alone(&self) -> bool {
        self.iter().any(Ride::is_committed_alone)
    }

    /// Shows each entity that the riders also write.
    pub(crate) fn also_written(&self, mut see: impl FnMut(AlsoWritten<'_>)) {
        self.iter().for_each(|rider| rider.also_writes(&mut see));
    }

    /// Returns true if the request has one change more than its changes and what is
    /// [also written](Self::also_written).
    pub(crate) fn add_change(&self) -> bool {
        self.iter().any(Ride::adds_change)
    }

    /// Returns true if a rider writes the entity with that key, and no other change may.
    pub(crate) fn also_write(&self, key: &EntityKey) -> bool {
        let mut is_written = false;
        self.also_written(|it| {
            let is_alone = matches!(it.place, Place::Same | Place::Other);
            is_written |= is_alone && it.key == key;
        });
        is_written
    }

    /// The content as it is sent.
    pub(crate) async fn transform(
        &mut self,
        table: &Table,
        key: &EntityKey,
        mut content: Bytes,
        is_whole: bool,
    ) -> Result<Bytes, Error> {
        for rider in &mut self.0 {
            let transformed = match rider.transform(table, key, &content, is_whole) {
                Some(transformed) => Some(transformed.await?),
                None => None,
            };
            content = transformed.unwrap_or(content);
        }
        Ok(content)
    }

    /// The stored content, as the program wrote it; `None` where it is the same.
    pub(crate) fn restore(&self, key: &EntityKey, stored: &Bytes) -> Result<Option<Bytes>, Error> {
        let mut restored = None;
        for rider in self.iter() {
            let before = rider.restore(key, restored.as_ref().unwrap_or(stored))?;
            restored = before.or(restored);
        }
        Ok(restored)
    }

    /// Runs the work of the riders after a batch was committed.
    pub(crate) async fn follow_up(
        &self,
        table: &Table,
        partition: &PartitionKey,
        deadline: Deadline,
    ) {
        for rider in self.iter() {
            if let Some(following) = rider.follow_up(table, partition, deadline) {
                following.await;
            }
        }
    }
}

impl Clone for Riders {
    fn clone(&self) -> Self {
        Self(self.iter().map(Ride::clone_box).collect())
    }
}

impl fmt::Debug for Riders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl Attach<'_> {
    /// Adds what goes along with the write.
    pub(crate) fn add(&mut self, rider: Box<dyn Ride>) {
        let riders = self.sink.downcast_mut::<Riders>();
        riders.expect("only `Riders` collects them").add(rider);
    }
}

/// Wraps the request with changes. A program without a pattern does not contain its function.
#[derive(Debug)]
pub(crate) struct Layer {
    /// The place among the layers: the least is the outermost one.
    pub(crate) order: u8,
    pub(crate) commit: CommitBy,
    /// Adds the requests and changes that `commit` adds.
    pub(crate) count: CountBy,
}

/// The function of a layer.
pub(crate) type CommitBy = for<'r, 'p> fn(
    &'r mut OperationRun<'p>,
    Commit<'r>,
    Next<'r>,
) -> BoxFuture<'r, Result<ETags, Error>>;

/// The function that counts the requests of a layer.
pub(crate) type CountBy = fn(Commit<'_>, &mut RequestCount);

/// Changes of one partition that are committed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<'r> {
    pub(crate) table: &'r TableName,
    pub(crate) partition: &'r PartitionKey,
    pub(crate) changes: &'r [EntityChange],
    /// The riders of the batch as a whole.
    pub(crate) riders: &'r Riders,
    pub(crate) exactly_once: Option<KeepMarker>,
}

impl<'r> Commit<'r> {
    /// One change.
    pub(crate) fn one(change: &'r EntityChange, exactly_once: Option<KeepMarker>) -> Self {
        Self {
            table: change.table(),
            partition: change.key.partition_key(),
            changes: slice::from_ref(change),
            riders: const { &Riders::NONE },
            exactly_once,
        }
    }

    /// The riders of the commit and of its changes.
    pub(crate) fn all_riders(self) -> impl Iterator<Item = &'r Riders> {
        let of_changes = self.changes.iter().map(|change| &change.riders);
        [self.riders].into_iter().chain(of_changes)
    }

    /// The layers of all riders, each once, the outermost first.
    pub(crate) fn layers(self) -> Vec<&'static Layer> {
        let mut layers: Vec<_> = self.all_riders().flat_map(Riders::layers).collect();
        layers.sort_by_key(|layer| layer.order);
        layers.dedup_by(|one, other| ptr::eq(*one, *other));
        layers
    }
}

/// The new ETags of the entities, in the order of the changes; `None` for a delete.
pub(crate) type ETags = Vec<Option<ETag>>;

/// The layers within a layer. A layer may call it several times.
#[derive(Clone, Copy)]
pub(crate) struct Next<'r> {
    pub(crate) layers: &'r [&'static Layer],
    /// Sends the request.
    pub(crate) send: SendBy,
}

/// The function that sends the request.
pub(crate) type SendBy =
    for<'r, 'p> fn(&'r mut OperationRun<'p>, Commit<'r>) -> BoxFuture<'r, Result<ETags, Error>>;

impl Next<'_> {
    pub(crate) async fn commit(
        self,
        run: &mut OperationRun<'_>,
        commit: Commit<'_>,
    ) -> Result<ETags, Error> {
        match self.layers.split_first() {
            Some((layer, layers)) => (layer.commit)(run, commit, Next { layers, ..self }).await,
            None => (self.send)(run, commit).await,
        }
    }
}
