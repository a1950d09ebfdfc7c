//! The wide entities of a partition as a stream: heads and siblings come one by one, and are put
//! together.

use std::collections::HashMap;

use futures_util::StreamExt as _;
use tablesdk_protocol::{EntityKey, PartitionKey, Value};

use super::StoredWide;
use super::entity::WideEntity;
use super::layout::{Head, Row, SEPARATOR};
use super::read::{WideContent, whole};
use crate::action::QueryEntities;
use crate::entity::{DynamicEntity, EntityError, EntityProblem, Stored};
use crate::error::Error;
use crate::pipeline::{Effect, Table};
use crate::query::EntityStream;

pub(super) fn stream<E: WideEntity>(
    table: Table,
    partition: Result<PartitionKey, EntityError>,
) -> EntityStream<StoredWide<E>> {
    let partition = match partition {
        Ok(partition) => partition,
        Err(error) => {
            let error = Error::input(error).with_operation(OPERATION);
            return EntityStream::failed(table.pipeline.locate(error));
        }
    };
    let query = QueryEntities::<DynamicEntity>::new(table.clone());
    let mut rows = query.partition(partition).stream();
    let items = async_stream::stream! {
        let mut assembly = Assembly::default();
        loop {
            let row = match rows.next().await.transpose() {
                Ok(row) => row.map(row_of),
                Err(error) => {
                    yield Err(error);
                    continue;
                }
            };
            for torn in assembly.close(row.as_ref()) {
                if let Some(item) = read_alone(&table, &torn).await.and_then(item).transpose() {
                    yield item;
                }
            }
            let Some(row) = row else { break };
            if let Some(item) = assembly.push(row).and_then(item).transpose() {
                let located = |error: Error| table.pipeline.locate(error.with_operation(OPERATION));
                yield item.map_err(located);
            }
        }
    };
    EntityStream::first(None, items)
}

/// The heads whose siblings have not all come.
#[derive(Default)]
struct Assembly(Vec<Open>);

struct Open {
    head: WideContent,
    siblings: HashMap<EntityKey, Vec<(String, Value)>>,
}

impl Assembly {
    /// Removes the heads whose siblings would have come before the next entity. Another client
    /// wrote them meanwhile.
    fn close(&mut self, next: Option<&Row>) -> Vec<EntityKey> {
        let is_over = |open: &mut Open| next.is_none_or(|next| open.is_before(next));
        let closed = self.0.extract_if(.., is_over);
        closed.map(|open| open.head.key).collect()
    }

    /// Takes the next entity, and returns the one that is complete with it.
    fn push(&mut self, mut row: Row) -> Result<Option<WideContent>, Error> {
        let open = if row.is_sibling() {
            // One without a head is of a write that did not end, or of an earlier version.
            let of = |open: &Open| open.head.head.siblings.contains(&row.key);
            let Some(index) = self.0.iter().position(of) else {
                return Ok(None);
            };
            let mut open = self.0.swap_remove(index);
            open.siblings.insert(row.key, row.values);
            open
        } else {
            let head = Head::take(&mut row);
            let head = head.map_err(|error| Error::entity(error).with_key(&row.key))?;
            Open {
                head: WideContent::new(row, head),
                siblings: HashMap::new(),
            }
        };
        if open.siblings.len() < open.head.head.siblings.len() {
            self.0.push(open);
            return Ok(None);
        }
        let Open {
            mut head,
            mut siblings,
        } = open;
        for key in head.head.siblings.clone() {
            head.add(siblings.remove(&key).into_iter().flatten());
        }
        Ok(Some(head))
    }
}

impl Open {
    /// Returns true if all siblings sort before an entity. Only row keys that go on with a space or
    /// with the separator are among them.
    fn is_before(&self, row: &Row) -> bool {
        let rest = row.key.row_key().as_str();
        let rest = rest.strip_prefix(self.head.key.row_key().as_str());
        rest.is_none_or(|rest| rest.chars().next().is_some_and(|next| next > SEPARATOR))
    }
}

/// Reads an entity by a query of its own.
async fn read_alone(table: &Table, key: &EntityKey) -> Result<Option<WideContent>, Error> {
    let name = table.checked_name(OPERATION)?;
    let mut run = table.pipeline.begin(OPERATION);
    let found = whole(&mut run, &name, key, Effect::Read).await;
    run.end(found)
}

/// The entity of a stream. The partition may also have entities of other types, if the type of each
/// is stored.
fn item<E: WideEntity>(found: Option<WideContent>) -> Result<Option<StoredWide<E>>, Error> {
    let is_of_other_type = |error: &Error| {
        let error = error.downcast_ref::<EntityError>();
        error.is_some_and(|error| matches!(error.problem(), EntityProblem::WrongEntityType { .. }))
    };
    match found.map(WideContent::into_stored).transpose() {
        Err(error) if is_of_other_type(&error) => Ok(None),
        item => item,
    }
}

fn row_of(entity: Stored<DynamicEntity>) -> Row {
    let (key, etag, timestamp) = (
        entity.key().clone(),
        entity.etag().clone(),
        entity.timestamp(),
    );
    let properties = std::mem::take(entity.into_inner().properties_mut());
    Row {
        key,
        etag,
        timestamp,
        values: properties.into_iter().collect(),
    }
}

const OPERATION: &str = "query wide entities";
