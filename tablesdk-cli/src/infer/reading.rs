//! Reads a sample: the first entities of a table, and some from behind all keys that begin as these do. Keys that are next to each other begin
//! alike, and would seem to follow a template. This file knows nothing of what is inferred.

use std::collections::HashSet;

use futures::TryStreamExt as _;
use tablesdk::{DynamicEntity, Error, Stored, TableClient};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use super::sample::Sample;
use crate::own::AsStored;

/// Reads at most this number of entities.
pub(super) async fn read(table: &TableClient, count: usize) -> Result<Sample, Error> {
    let mut sample = Sample::default();
    let mut partitions = Range::default();
    let mut rows = Range::default();
    let query = table.query::<AsStored>();
    let mut entities = query.page_size(count.clamp(1, PAGE_ITEMS_MAX)).stream();
    let beyond = count / PLACES;
    while sample.len() + 2 * beyond < count {
        let Some(entity) = entities.try_next().await? else {
            return Ok(sample);
        };
        if partitions.last != entity.0.partition_key() {
            rows = Range::default();
        }
        partitions.extend(entity.0.partition_key());
        rows.extend(entity.0.row_key());
        sample.add(&entity.0);
    }
    let mut read = HashSet::new();
    for entity in read_beyond(table, &partitions, &rows, beyond).await? {
        if read.insert(key(&entity)) {
            sample.add(&entity);
        }
    }
    while let Some(entity) = entities.try_next().await? {
        if read.contains(&key(&entity.0)) {
            continue;
        }
        if sample.len() >= count {
            sample.is_complete = false;
            break;
        }
        sample.add(&entity.0);
    }
    Ok(sample)
}

/// Entities behind the partitions that were read, and behind the rows of the last one.
async fn read_beyond(
    table: &TableClient,
    partitions: &Range,
    rows: &Range,
    count: usize,
) -> Result<Vec<DynamicEntity>, Error> {
    let mut found = Vec::new();
    let query = || table.query::<DynamicEntity>().take(count);
    if let (Some(end), true) = (partitions.end(), count > 0) {
        let behind = query().filter(|e| e.property("PartitionKey").ge(end.as_str()));
        found.extend(behind.collect().await?);
    }
    if let (Some(end), true) = (rows.end(), count > 0) {
        let of_last = query().partition(&partitions.last);
        let behind = of_last.filter(|e| e.property("RowKey").ge(end.as_str()));
        found.extend(behind.collect().await?);
    }
    let entities = found.into_iter().map(Stored::into_inner);
    Ok(entities.collect())
}

fn key(entity: &DynamicEntity) -> (String, String) {
    let (partition, row) = (entity.partition_key(), entity.row_key());
    (partition.to_owned(), row.to_owned())
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

    /// The least key behind all those that begin as the first and the last do. `None` if they begin with nothing in common.
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
