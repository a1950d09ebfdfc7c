//! Reads of one entry of a unique index in another partition. An entry that is confirmed is read by
//! one request. One that is only reserved counts as missing, unless its entity has it.

use std::marker::PhantomData;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::wire::json::read_entity;

use super::entry::{IndexEntry, has_entry_in};
use super::ticket::ticket_in;
use crate::action::extend::extension::{Extend, Extensions, LeftOut};
use crate::action::get_entity::find;
use crate::entity::PropertyReader;
use crate::error::Error;
use crate::patterns::order;
use crate::pipeline::{OperationRun, Table};

/// The look at the entity of an entry that is not confirmed.
pub(crate) struct Reservations<I>(PhantomData<fn() -> I>);

impl<I: IndexEntry> Reservations<I> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<I: IndexEntry> Extend for Reservations<I> {
    fn order(&self) -> u8 {
        order::INDEX
    }

    fn is_present<'r>(
        &self,
        run: &'r mut OperationRun<'_>,
        table: &'r Table,
        key: &'r EntityKey,
        content: &'r Bytes,
    ) -> Option<BoxFuture<'r, Result<bool, Error>>> {
        ticket_in(content)?;
        Some(Box::pin(async move {
            let entry = read_entity(content).map_err(Error::response)?;
            let entry = I::read(&mut PropertyReader::new(&entry, None));
            let owner = entry.and_then(|entry| entry.key_of_entity());
            let owner = owner.map_err(|error| run.annotate(Error::entity(error)).with_key(key))?;
            let extensions = Extensions::of::<I::Entity>(LeftOut::NONE);
            let table = table.belongs_to(const { &I::SCHEMA });
            let found = Box::pin(find::<I::Entity>(run, &table, &owner, None, &extensions)).await?;
            Ok(found.is_some_and(|(entity, _)| has_entry_in::<I>(&entity, key)))
        }))
    }
}
