//! Reads a sample: the first entities of a table, and some from behind all keys that begin as these
//! do. Keys that are next to each other begin alike, and would seem to follow a template. This
//! module knows nothing of what a sample is for.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use futures::TryStreamExt as _;
use tablesdk::action::QueryEntities;
use tablesdk::{DynamicEntity, Error, TableClient};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use crate::own::AsStored;

/// A receiver of sampled entities.
pub trait Gather: Default + Send {
    /// Takes an entity, or leaves it out.
    fn gather(&mut self, entity: &DynamicEntity);

    /// How many entities were taken.
    fn gathered(&self) -> usize;

    /// Returns true if no more entities can be taken.
    fn is_full(&self) -> bool {
        false
    }
}

/// Reads at most this number of entities of a table, and says whether it has no others.
///
/// ```
/// use tablesdk::{DynamicEntity, TableServiceClient};
/// use tablesdk_cli::sampling;
/// use tablesdk_cli::schema::Schema;
/// use tablesdk_server::TableServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tablesdk::Error> {
/// let server = TableServer::in_process();
/// let table = TableServiceClient::in_process(&server).table("Employees");
/// table.create_table().await?;
/// table.insert(&DynamicEntity::new("Sales", "1").with("Age", 36)).await?;
///
/// let (schema, is_complete) = sampling::read::<Schema>(&table, 1_000).await?;
/// assert_eq!((schema.entities(), is_complete), (1, true));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When a request fails.
pub async fn read<S: Gather>(table: &TableClient, count: usize) -> Result<(S, bool), Error> {
    let mut sample = S::default();
    let mut partitions = Range::default();
    let mut rows = Range::default();
    let query = table.query::<AsStored>();
    let mut entities = query.page_size(count.clamp(1, PAGE_ITEMS_MAX)).stream();
    let beyond = (count / PLACES).min(BEYOND_MAX);
    while sample.gathered() + 2 * beyond < count {
        let Some(entity) = entities.try_next().await? else {
            return Ok((sample, true));
        };
        if sample.is_full() {
            return Ok((sample, false));
        }
        if partitions.last != entity.0.partition_key() {
            rows = Range::default();
        }
        partitions.extend(entity.0.partition_key());
        rows.extend(entity.0.row_key());
        sample.gather(&entity.0);
    }
    let mut read = Keys::default();
    for query in beyond_of(table, &partitions, &rows, beyond) {
        let mut found = query.stream();
        while let Some(entity) = found.try_next().await? {
            if sample.is_full() {
                return Ok((sample, false));
            }
            if read.insert(&entity) {
                sample.gather(&entity);
            }
        }
    }
    while let Some(entity) = entities.try_next().await? {
        if read.contains(&entity.0) {
            continue;
        }
        if sample.gathered() >= count || sample.is_full() {
            return Ok((sample, false));
        }
        sample.gather(&entity.0);
    }
    Ok((sample, true))
}

/// Queries for entities behind the partitions that were read, and behind the rows of the last one.
fn beyond_of(
    table: &TableClient,
    partitions: &Range,
    rows: &Range,
    count: usize,
) -> Vec<QueryEntities<DynamicEntity>> {
    let query = || table.query::<DynamicEntity>().take(count);
    let behind = partitions.end().map(|end| {
        let query = query();
        query.filter(|e| e.property("PartitionKey").ge(end.as_str()))
    });
    let of_last = rows.end().map(|end| {
        let query = query().partition(&partitions.last);
        query.filter(|e| e.property("RowKey").ge(end.as_str()))
    });
    let queries = behind.into_iter().chain(of_last);
    queries.filter(|_| count > 0).collect()
}

/// The keys of entities, by a hash of 64 bits.
#[derive(Default)]
struct Keys {
    hashes: HashSet<u64>,
    hasher: RandomState,
}

impl Keys {
    fn hash(&self, entity: &DynamicEntity) -> u64 {
        self.hasher
            .hash_one((entity.partition_key(), entity.row_key()))
    }

    fn insert(&mut self, entity: &DynamicEntity) -> bool {
        self.hashes.insert(self.hash(entity))
    }

    fn contains(&self, entity: &DynamicEntity) -> bool {
        self.hashes.contains(&self.hash(entity))
    }
}

/// Keys in their order.
#[derive(Default)]
struct Range {
    first: Option<String>,
    last: String,
}

impl Range {
    fn extend(&mut self, key: &str) {
        self.first.get_or_insert_with(|| key.to_owned());
        key.clone_into(&mut self.last);
    }

    /// The least key behind all those that begin as the first and the last do. `None` if they begin
    /// with nothing in common.
    fn end(&self) -> Option<String> {
        let pairs = self.first.as_ref()?.chars().zip(self.last.chars());
        let shared = pairs.take_while(|(one, other)| one == other);
        let mut end: String = shared.map(|(shared, _)| shared).collect();
        // Only of ASCII is the next character known to be one.
        let last = u8::try_from(end.pop()?).ok().filter(u8::is_ascii_graphic)?;
        end.push(char::from(last + 1));
        Some(end)
    }
}

/// A tenth of a sample is read at each of the two other places.
const PLACES: usize = 10;
/// More entities of one place show nothing new.
const BEYOND_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_behind_all_keys_that_begin_alike() {
        let end = |keys: &[&str]| {
            let mut range = Range::default();
            for key in keys {
                range.extend(key);
            }
            range.end()
        };
        assert_eq!(
            end(&["ann_001", "ann_002", "ann_117"]).as_deref(),
            Some("ann`")
        );
        assert_eq!(end(&["ann"]).as_deref(), Some("ano"));
        assert_eq!(end(&["~"]).as_deref(), Some("\u{7f}"));
        for keys in [
            &[][..],
            &[""],
            &["ann", "bob"],
            &["ä1", "ä2"],
            &["a", "b", ""],
        ] {
            assert_eq!(end(keys), None, "{keys:?}");
        }
    }
}
