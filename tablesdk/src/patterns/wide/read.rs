//! Reads a wide entity: the head, and the siblings of the version that the head names.
//!
//! Between two requests, and between two entities of a page, another client may write. A version
//! that is not complete is therefore read again from its head. A sibling that is missing in the
//! same version twice does not exist.

use std::collections::HashMap;

use tablesdk_protocol::limits::PROPERTIES_MAX;
use tablesdk_protocol::wire::json::{EntityCursor, JsonEntity, JsonError, read_entity};
use tablesdk_protocol::{ETag, EntityKey, TableName, Timestamp, Value, ValueRef};

use super::StoredWide;
use super::entity::{PARTS, VERSION, WideEntity};
use super::layout::{AFTER_SEPARATOR, Head, Row, SEPARATOR};
use crate::action::get_entity::fetch;
use crate::action::query::own_pages::OwnPages;
use crate::action::query::request::QueryRequest;
use crate::entity::{PropertyReader, write_whole};
use crate::error::Error;
use crate::filter::rows_in_partition;
use crate::pipeline::{Effect, OperationRun, Table};
use crate::query::{Selection, SelectionError};

/// A wide entity as it is stored, or the selected properties of it.
pub(super) struct WideContent {
    pub(super) key: EntityKey,
    pub(super) head: Head,
    timestamp: Option<Timestamp>,
    values: Vec<(String, Value)>,
}

impl WideContent {
    pub(super) fn new(row: Row, head: Head) -> Self {
        Self {
            key: row.key,
            head,
            timestamp: row.timestamp,
            values: row.values,
        }
    }

    /// Adds the properties of the siblings, in their order.
    pub(super) fn add(&mut self, values: impl IntoIterator<Item = (String, Value)>) {
        let values = values.into_iter().filter(|(name, _)| name != VERSION);
        self.values.extend(values);
    }

    pub(super) fn into_stored<E: WideEntity>(self) -> Result<StoredWide<E>, Error> {
        let value = self.read(|entity| {
            let value = E::read(&mut PropertyReader::new(entity, Some(&self.head.etag)));
            value.map_err(Error::entity)
        });
        Ok(StoredWide {
            value: value?,
            timestamp: self.timestamp(),
            key: self.key,
            head: self.head,
        })
    }

    pub(super) fn select<E, S: Selection<E>>(&self, selection: &S) -> Result<S::Item, Error> {
        self.read(|entity| {
            let selected = selection.read(&mut EntityCursor::new(entity));
            selected.map_err(|error| match error {
                SelectionError::Entity(error) => Error::entity(error),
                error => Error::input(error),
            })
        })
    }

    /// Reads the properties as those of one entity.
    fn read<T>(&self, read: impl FnOnce(&JsonEntity<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let timestamp = self.timestamp();
        let timestamp = timestamp.map(|timestamp| ("Timestamp", ValueRef::DateTime(timestamp)));
        let head = write_whole(&self.key, timestamp);
        // No JSON with more members than an entity has is read.
        let parts = self.values.chunks(PROPERTIES_MAX).map(|values| {
            let values = values.iter();
            write_whole(
                &self.key,
                values.map(|(name, value)| (name.as_str(), value.as_ref())),
            )
        });
        let parts: Vec<_> = parts.collect();
        let entity = || {
            let mut entity = read_entity(&head)?;
            for part in &parts {
                entity.extend(read_entity(part)?);
            }
            Ok::<_, JsonError>(entity)
        };
        let value = entity()
            .map_err(Error::response)
            .and_then(|entity| read(&entity));
        value.map_err(|error| error.with_key(&self.key))
    }

    fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp.or_else(|| self.head.etag.timestamp())
    }
}

/// Reads an entity as a whole; `None` where it does not exist.
pub(super) async fn whole(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    effect: Effect,
) -> Result<Option<WideContent>, Error> {
    let mut incomplete = Incomplete::new(effect);
    loop {
        let (from, to) = range(key);
        // Usually, it has all siblings.
        let mut rows = page(run, table, key, (&from, &to), incomplete.effect)
            .await?
            .into_iter();
        let Some(mut row) = rows.next().filter(|row| row.key == *key) else {
            return Ok(None);
        };
        let head = taken(run, &mut row)?;
        let mut siblings: HashMap<_, _> = rows.map(|row| (row.key, row.values)).collect();
        if let Some(first) = head.siblings.iter().find(|key| !siblings.contains_key(key)) {
            let (from, to) = (first.row_key().as_str(), after(&head.siblings));
            let more = rows_between(run, table, key, (from, &to), None, incomplete.effect).await?;
            siblings.extend(more.into_iter().map(|row| (row.key, row.values)));
        }
        let mut found = WideContent::new(row, head);
        let keys = found.head.siblings.clone();
        let missing = keys.iter().position(|key| match siblings.remove(key) {
            Some(values) => {
                found.add(values);
                false
            }
            None => true,
        });
        match missing {
            None => {
                run.report().entities = 1;
                return Ok(Some(found));
            }
            Some(index) => incomplete.again(run, key, &found.head, index + 1).await?,
        }
    }
}

/// Reads the properties of these names, from the parts that have them; `None` where the entity does
/// not exist.
pub(super) async fn selected(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    names: &[String],
) -> Result<Option<WideContent>, Error> {
    let mut incomplete = Incomplete::new(Effect::Read);
    loop {
        let Some((mut found, head)) = head_with(run, table, key, names, incomplete.effect).await?
        else {
            return Ok(None);
        };
        let mut missing = None;
        for part in head.parts_of(names) {
            let Some(sibling) = part
                .checked_sub(1)
                .and_then(|index| head.siblings.get(index))
            else {
                continue;
            };
            match fetch(run, incomplete.effect, table, sibling, Some(names.to_vec())).await {
                Ok(sibling) => {
                    let entity = read_entity(&sibling.content);
                    let values = entity
                        .map_err(Error::response)
                        .and_then(|entity| values_of(&entity));
                    found
                        .values
                        .extend(values.map_err(|error| run.annotate(error))?);
                }
                Err(error) if error.is_not_found() => {
                    missing = Some(part);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        match missing {
            None => return Ok(Some(WideContent::new(found, head))),
            Some(part) => incomplete.again(run, key, &head, part).await?,
        }
    }
}

/// Reads what the head of an entity says of its siblings.
pub(super) async fn read_head(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
) -> Result<Option<Head>, Error> {
    let found = head_with(run, table, key, &[], Effect::ReadNow).await?;
    Ok(found.map(|(_, head)| head))
}

async fn head_with(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    names: &[String],
    effect: Effect,
) -> Result<Option<(Row, Head)>, Error> {
    let own = ["PartitionKey", "RowKey", "Timestamp", VERSION, PARTS];
    let others = names.iter().filter(|name| !own.contains(&name.as_str()));
    let select = own.map(str::to_owned).into_iter().chain(others.cloned());
    let select = select.collect();
    let fetched = match fetch(run, effect, table, key, Some(select)).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => {
            run.note_expected_error(&error);
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let row = read_entity(&fetched.content)
        .map_err(Error::response)
        .and_then(|entity| row(&entity, Some(fetched.etag)));
    let mut row = row.map_err(|error| run.annotate(error).with_key(key))?;
    let head = taken(run, &mut row)?;
    Ok(Some((row, head)))
}

/// Reads the keys of the siblings of a version that exist.
pub(super) async fn sibling_keys(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    start: &str,
) -> Result<Vec<EntityKey>, Error> {
    let (start, end) = (start.to_owned(), format!("{start}~"));
    let select = Some(vec![
        "PartitionKey".to_owned(),
        "RowKey".to_owned(),
        "Timestamp".to_owned(),
    ]);
    let rows = rows_between(run, table, key, (&start, &end), select, Effect::ReadNow).await?;
    Ok(rows.into_iter().map(|row| row.key).collect())
}

/// A version that was found without all of its siblings.
struct Incomplete {
    effect: Effect,
    version: Option<String>,
    rounds: u32,
}

impl Incomplete {
    const fn new(effect: Effect) -> Self {
        Self {
            effect,
            version: None,
            rounds: 0,
        }
    }

    /// Waits before the entity is read again. An error if that is of no use.
    async fn again(
        &mut self,
        run: &mut OperationRun<'_>,
        key: &EntityKey,
        head: &Head,
        part: usize,
    ) -> Result<(), Error> {
        // A secondary may not have the sibling yet.
        let is_damaged = self.version.is_some() && self.version == head.version;
        if is_damaged && matches!(self.effect, Effect::ReadNow) && self.rounds > 1 {
            return Err(run
                .annotate(Error::entity(head.missing(part)))
                .with_key(key));
        }
        self.effect = Effect::ReadNow;
        self.version.clone_from(&head.version);
        self.rounds += 1;
        if self.rounds == ROUNDS || !run.pause_before_round(self.rounds).await {
            let message = "other clients replaced the entity again and again while it was read";
            return Err(run
                .annotate(Error::timeout(message.to_owned()))
                .with_key(key));
        }
        Ok(())
    }
}

/// The row keys of a head and its siblings are in this range, and hardly others.
fn range(key: &EntityKey) -> (String, String) {
    let row_key = key.row_key().as_str();
    (row_key.to_owned(), format!("{row_key}{AFTER_SEPARATOR}"))
}

/// Sorts after the last of these keys, and before those of other versions.
fn after(siblings: &[EntityKey]) -> String {
    let last = siblings.last().map_or("", |key| key.row_key().as_str());
    format!("{last}{SEPARATOR}")
}

fn taken(run: &OperationRun<'_>, row: &mut Row) -> Result<Head, Error> {
    Head::take(row).map_err(|error| run.annotate(Error::entity(error)).with_key(&row.key))
}

/// Reads the first entities in a range of row keys.
async fn page(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    range: (&str, &str),
    effect: Effect,
) -> Result<Vec<Row>, Error> {
    pages(run, table, key, range, None, effect, 1).await
}

/// Reads all entities in a range of row keys.
pub(super) async fn rows_between(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    range: (&str, &str),
    select: Option<Vec<String>>,
    effect: Effect,
) -> Result<Vec<Row>, Error> {
    pages(run, table, key, range, select, effect, usize::MAX).await
}

async fn pages(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    (from, to): (&str, &str),
    select: Option<Vec<String>>,
    effect: Effect,
    max: usize,
) -> Result<Vec<Row>, Error> {
    let filter = rows_in_partition(key.partition_key().as_str(), from, to);
    let mut pages = OwnPages::new(QueryRequest::own(table.clone(), filter, select));
    let mut rows = Vec::new();
    let mut read = 0;
    loop {
        let request = pages.request(run.pipeline())?;
        let response = run.send(effect, &request).await?;
        let of_page = pages.read(response, |entity| row(entity, None));
        let of_page = of_page.and_then(|rows| rows.into_iter().collect::<Result<Vec<_>, _>>());
        rows.extend(of_page.map_err(|error| run.annotate(error))?);
        run.report().pages += 1;
        read += 1;
        if pages.is_last() || read >= max && !rows.is_empty() {
            return Ok(rows);
        }
        pages.advance().map_err(|error| run.annotate(error))?;
    }
}

fn row(entity: &JsonEntity<'_>, etag: Option<ETag>) -> Result<Row, Error> {
    let text = |name| entity.text(name).map_err(Error::response);
    let (Some(partition), Some(row)) = (text("PartitionKey")?, text("RowKey")?) else {
        return Err(Error::response("the entity has no key"));
    };
    let timestamp = entity.timestamp().map_err(Error::response)?;
    let etag = etag.or_else(|| entity.etag().cloned());
    let etag = etag.or_else(|| timestamp.map(ETag::from_timestamp));
    Ok(Row {
        key: EntityKey::new(partition, row).map_err(Error::response)?,
        etag: etag.ok_or_else(|| Error::response("the entity has no ETag"))?,
        timestamp,
        values: values_of(entity)?,
    })
}

fn values_of(entity: &JsonEntity<'_>) -> Result<Vec<(String, Value)>, Error> {
    let mut values = Vec::new();
    for property in entity.properties() {
        if let Some(value) = property.to_value().map_err(Error::response)? {
            values.push((property.name().to_owned(), value));
        }
    }
    Ok(values)
}

/// How often an entity is read that other clients replace.
const ROUNDS: u32 = 16;
