//! The interface by which a pattern takes part in all reads and writes of a type.

use std::any::Any;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::JsonEntity;
use tablesdk_protocol::{EntityKey, Timestamp};

use super::ride::Ride;
use crate::entity::attached::check_extended;
use crate::entity::{EntityError, Schema, TableEntity, attached};
use crate::error::Error;
use crate::pipeline::{OperationRun, Table};
use crate::query::Advice;

/// The part of a pattern in all reads and writes of a type, whatever the value. Each method gets
/// the schema of the type.
pub(crate) trait Extend: Any + Sync {
    /// The place among the extensions of a type, by which a verb leaves it out. Several of one
    /// place are those of the variants of an enum.
    fn order(&self) -> u8;

    /// Returns true if the pattern only [advises](Self::advise), and takes no part in reads and
    /// writes.
    fn only_advises(&self) -> bool {
        false
    }

    /// Called before one entity is read.
    fn begin(&self, _table: &Table) {}

    /// Loads what [`shape`](Self::shape) and [`prints`](Self::prints) need; `None` where that is
    /// nothing.
    fn load<'r>(
        &self,
        _schema: &'static Schema,
        _table: &'r Table,
        _filter: Option<&Tree>,
    ) -> Option<BoxFuture<'r, Result<(), Error>>> {
        None
    }

    /// Changes what a query asks for.
    fn shape(
        &self,
        _schema: &'static Schema,
        _table: &Table,
        _query: &mut Shape,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// The filters by which tokens of the query are recognized, the one of new tokens first; `None`
    /// where it is the filter of the program.
    fn prints(
        &self,
        _schema: &'static Schema,
        _table: &Table,
        _filter: &Tree,
    ) -> Result<Option<Vec<Tree>>, Error> {
        Ok(None)
    }

    /// The reader of the entities of a response; `None` where they are read as they are.
    fn open<'r>(
        &self,
        _schema: &'static Schema,
        _table: &'r Table,
        _response: Opened<'r>,
    ) -> Option<BoxFuture<'r, Result<Box<dyn Open>, Error>>> {
        None
    }

    /// Returns true if [`hides`](Self::hides) and [`shape`](Self::shape) hide entities.
    fn can_hide(&self) -> bool {
        false
    }

    /// Returns true if an entity counts as missing: reads do not find it, and an insert replaces
    /// it.
    fn hides(&self, _schema: &'static Schema, _entity: &JsonEntity<'_>, _now: Timestamp) -> bool {
        false
    }

    /// Determines by further reads whether an entity that was read alone counts as missing; `None`
    /// where it does not.
    fn is_present<'r>(
        &self,
        _run: &'r mut OperationRun<'_>,
        _table: &'r Table,
        _key: &'r EntityKey,
        _content: &'r Bytes,
    ) -> Option<BoxFuture<'r, Result<bool, Error>>> {
        None
    }

    /// Another query that would answer one with that filter.
    fn advise(&self, _schema: &'static Schema, _filter: Option<&Tree>) -> Option<Advice> {
        None
    }

    /// The rider of each write.
    fn rider(&self, _schema: &'static Schema) -> Option<Box<dyn Ride>> {
        None
    }
}

/// The filter and the selection of a query.
pub(crate) struct Shape {
    pub(crate) filter: Option<Tree>,
    pub(crate) select: Option<Vec<String>>,
}

/// A response with entities.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "encryption"),
    expect(dead_code, reason = "no other pattern needs it")
)]
pub(crate) struct Opened<'r> {
    pub(crate) content: &'r [u8],
    pub(crate) is_page: bool,
    /// The names of the properties that were asked for.
    pub(crate) select: Option<&'r [String]>,
}

/// Reads the entities of a response.
pub(crate) trait Open: Send + Sync {
    /// The entity as the program wrote it. With a key, it is the one with that key; otherwise the
    /// one that it has, in the partition if the response does not contain it.
    fn open(
        &self,
        entity: &JsonEntity<'_>,
        key: Option<&EntityKey>,
        partition: Option<&str>,
    ) -> Result<Bytes, EntityError>;
}

/// A pattern that takes part in the reads and writes of a type, and the schema of the type.
#[derive(Clone, Copy)]
pub(crate) struct Extension {
    pub(crate) schema: &'static Schema,
    pub(crate) by: &'static dyn Extend,
}

impl Extension {
    /// The extension, if it is of that type.
    pub(crate) fn find<X: Extend>(&self) -> Option<&'static X> {
        (self.by as &'static dyn Any).downcast_ref()
    }
}

/// The extensions of a type, in their order: none for most types.
#[derive(Clone)]
pub(crate) struct Extensions(Vec<Extension>);

impl attached::Extensions<'_> {
    /// Adds what a pattern does with the type.
    pub(crate) fn add(&mut self, by: &'static dyn Extend) {
        let schema = self.schema;
        self.all().push(Extension { schema, by });
    }

    /// As [`add`](Self::add), for what asks the schema of an enum, and not the schemas of its
    /// variants.
    pub(crate) fn add_once(&mut self, by: &'static dyn Extend) {
        let id = Any::type_id(by);
        if self.all().iter().all(|it| Any::type_id(it.by) != id) {
            self.add(by);
        }
    }

    fn all(&mut self) -> &mut Vec<Extension> {
        let all = self.sink.downcast_mut::<Extensions>();
        &mut all.expect("only `Extensions` collects them").0
    }
}

/// The extensions that an operation leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftOut(u32);

impl LeftOut {
    pub(crate) const NONE: Self = Self(0);
    /// All that hide entities.
    pub(crate) const HIDING: Self = Self(1 << 31);

    /// Leaves out those of a place, too.
    #[must_use]
    pub(crate) const fn and(self, order: u8) -> Self {
        Self(self.0 | 1 << order)
    }

    fn has(self, by: &dyn Extend) -> bool {
        self.0 & 1 << by.order() != 0 || self.0 & Self::HIDING.0 != 0 && by.can_hide()
    }
}

impl Extensions {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Those that take part in reads and writes, but for those that are left out.
    pub(crate) fn of<E: TableEntity>(left_out: LeftOut) -> Self {
        const { check_extended::<E>() }
        let mut extensions = Self::NONE;
        if const { E::FACTS.is_extended } {
            extensions = Self::all::<E>();
            extensions
                .0
                .retain(|it| !it.by.only_advises() && !left_out.has(it.by));
        }
        extensions
    }

    /// All of a type.
    pub(crate) fn all<E: TableEntity>() -> Self {
        let mut extensions = Self::NONE;
        if const { E::FACTS.is_extended || E::FACTS.has_riders } {
            let (schema, sink) = (const { &E::SCHEMA }, &mut extensions);
            E::extensions(&mut attached::Extensions { schema, sink });
            extensions.0.sort_by_key(|it| it.by.order());
        }
        extensions
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Extension> {
        self.0.iter()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn begin(&self, table: &Table) {
        self.iter().for_each(|it| it.by.begin(table));
    }

    pub(crate) async fn load(&self, table: &Table, filter: Option<&Tree>) -> Result<(), Error> {
        for it in self.iter() {
            if let Some(loading) = it.by.load(it.schema, table, filter) {
                loading.await?;
            }
        }
        Ok(())
    }

    pub(crate) fn shape(&self, table: &Table, query: &mut Shape) -> Result<(), Error> {
        let mut extensions = self.iter();
        extensions.try_for_each(|it| it.by.shape(it.schema, table, query))
    }

    /// The filters by which tokens are recognized; `None` where it is the filter of the program.
    pub(crate) fn prints(
        &self,
        table: &Table,
        filter: Option<&Tree>,
    ) -> Result<Option<Vec<Tree>>, Error> {
        let Some(filter) = filter else {
            return Ok(None);
        };
        for it in self.iter() {
            if let Some(prints) = it.by.prints(it.schema, table, filter)? {
                return Ok(Some(prints));
            }
        }
        Ok(None)
    }

    /// The readers of the entities of a response.
    pub(crate) async fn open(
        &self,
        table: &Table,
        response: Opened<'_>,
    ) -> Result<Vec<Box<dyn Open>>, Error> {
        let mut opens = Vec::new();
        for it in self.iter() {
            if let Some(open) = it.by.open(it.schema, table, response) {
                opens.push(open.await?);
            }
        }
        Ok(opens)
    }

    pub(crate) fn can_hide(&self) -> bool {
        self.iter().any(|it| it.by.can_hide())
    }

    pub(crate) fn hides(&self, entity: &JsonEntity<'_>, now: Timestamp) -> bool {
        self.iter().any(|it| it.by.hides(it.schema, entity, now))
    }

    /// Returns false if an entity that was read alone counts as missing.
    pub(crate) async fn are_present(
        &self,
        run: &mut OperationRun<'_>,
        table: &Table,
        key: &EntityKey,
        content: &Bytes,
    ) -> Result<bool, Error> {
        for it in self.iter() {
            if let Some(reading) = it.by.is_present(run, table, key, content)
                && !reading.await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn advise(&self, filter: Option<&Tree>) -> Option<Advice> {
        self.iter().find_map(|it| it.by.advise(it.schema, filter))
    }
}
