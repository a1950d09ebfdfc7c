//! Deletes exactly the entities that a query has found: each under the ETag that it had then.
//!
//! Between the query and the delete stands a question to a person. So the keys and ETags are in a
//! temporary file, however many there are.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Lines, Seek as _, Write as _};

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tablesdk::{ETag, Error, TableClient};
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;

use crate::error::AnyError;
use crate::output::Bar;

/// The entities that were found.
pub(crate) struct Found {
    file: BufWriter<File>,
    count: u64,
}

/// One of them.
#[derive(Serialize, Deserialize)]
struct Version {
    partition: String,
    row: String,
    etag: String,
}

/// How many entities were deleted, and how many stayed because they were changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removed {
    pub(crate) deleted: u64,
    pub(crate) changed: u64,
}

impl Found {
    pub(crate) fn new() -> io::Result<Self> {
        let file = BufWriter::new(tempfile::tempfile()?);
        Ok(Self { file, count: 0 })
    }

    pub(crate) fn add(&mut self, partition: &str, row: &str, etag: &ETag) -> io::Result<()> {
        let version = Version {
            partition: partition.to_owned(),
            row: row.to_owned(),
            etag: etag.as_str().to_owned(),
        };
        serde_json::to_writer(&mut self.file, &version)?;
        self.count += 1;
        self.file.write_all(b"\n")
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Deletes them, those of a partition that follow each other in one transaction. `done` counts
    /// those that are done, also if another one cannot be deleted: then no more are sent.
    pub(crate) async fn delete(
        self,
        table: &TableClient,
        bar: &Bar,
        done: &mut Removed,
    ) -> Result<(), AnyError> {
        let mut batches = Batches::new(self.file)?;
        loop {
            let some = batches.by_ref().take(CONCURRENCY);
            let some = some.collect::<io::Result<Vec<_>>>()?;
            if some.is_empty() {
                return Ok(());
            }
            let results = join_all(some.iter().map(|batch| delete(table, batch))).await;
            for removed in results.iter().flatten() {
                done.deleted += removed.deleted;
                done.changed += removed.changed;
            }
            bar.0.set_position(done.deleted + done.changed);
            for removed in results {
                removed?;
            }
        }
    }
}

async fn delete(table: &TableClient, versions: &[Version]) -> Result<Removed, Error> {
    let (Some(first), count) = (versions.first(), versions.len() as u64) else {
        return Ok(Removed::default());
    };
    let batch = table.batch(&*first.partition);
    let batch = versions.iter().fold(batch, |batch, version| {
        batch.delete_if(version.key(), version.etag())
    });
    match batch.await {
        Ok(_) => Ok(Removed {
            deleted: count,
            changed: 0,
        }),
        // One that has changed keeps the others.
        Err(error) if error.is_precondition_failed() || error.is_not_found() => {
            delete_each(table, versions).await
        }
        Err(error) => Err(error),
    }
}

async fn delete_each(table: &TableClient, versions: &[Version]) -> Result<Removed, Error> {
    let mut removed = Removed::default();
    for version in versions {
        let delete = table.delete(version.key()).if_match(version.etag());
        match delete.await {
            Ok(is_deleted) => removed.deleted += u64::from(is_deleted),
            Err(error) if error.is_precondition_failed() => removed.changed += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

impl Version {
    fn key(&self) -> (&str, &str) {
        (&self.partition, &self.row)
    }

    fn etag(&self) -> ETag {
        ETag::from_opaque(&*self.etag)
    }
}

/// Reads versions, and puts those together that are one transaction.
struct Batches {
    lines: Lines<BufReader<File>>,
    /// The first one of the next transaction.
    next: Option<Version>,
}

impl Batches {
    fn new(file: BufWriter<File>) -> io::Result<Self> {
        let file = file.into_inner();
        let mut file = file.map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Self {
            lines: BufReader::new(file).lines(),
            next: None,
        })
    }

    fn version(&mut self) -> io::Result<Option<Version>> {
        if let Some(version) = self.next.take() {
            return Ok(Some(version));
        }
        let line = self.lines.next().transpose()?;
        let version = line.map(|line| serde_json::from_str(&line));
        Ok(version.transpose()?)
    }

    fn batch(&mut self) -> io::Result<Vec<Version>> {
        let mut batch: Vec<Version> = Vec::new();
        while let Some(version) = self.version()? {
            let is_other = |first: &Version| first.partition != version.partition;
            if batch.len() == BATCH_CHANGES_MAX || batch.first().is_some_and(is_other) {
                self.next = Some(version);
                break;
            }
            batch.push(version);
        }
        Ok(batch)
    }
}

impl Iterator for Batches {
    type Item = io::Result<Vec<Version>>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch();
        (!batch.as_ref().is_ok_and(Vec::is_empty)).then_some(batch)
    }
}

/// How many transactions are in flight.
const CONCURRENCY: usize = 16;

#[cfg(test)]
mod tests {
    use tablesdk::{DynamicEntity, TableServiceClient};
    use tablesdk_server::TableServer;

    use super::*;

    #[tokio::test]
    async fn only_what_was_found_is_deleted_and_only_if_it_is_unchanged() {
        let server = TableServer::start().await.expect("a port is free");
        let text = server.connection_string();
        let service = TableServiceClient::from_connection_string(&text).expect("it is valid");
        let table = service.table("Logins");
        table.create_table().await.expect("it is new");
        let login = |person: &str, day: u32| DynamicEntity::new(person, format!("{day:03}"));
        let mut found = Found::new().expect("there is room");
        for person in ["ann", "bob"] {
            for day in 0..250 {
                let stored = table.insert(&login(person, day)).await.expect("it is new");
                let row = format!("{day:03}");
                found
                    .add(person, &row, stored.etag())
                    .expect("there is room");
            }
        }
        assert_eq!(found.count(), 500);
        // Between the question and the answer.
        let changed = login("ann", 7).with("Device", "phone");
        table.upsert_merge(&changed).await.expect("it exists");
        table.insert(&login("ann", 300)).await.expect("it is new");
        table.delete(("bob", "100")).await.expect("it exists");

        let mut removed = Removed::default();
        let bar = Bar::of_entities(500);
        found
            .delete(&table, &bar, &mut removed)
            .await
            .expect("the server answers");
        assert_eq!((removed.deleted, removed.changed), (498, 1));
        let left = table
            .query::<DynamicEntity>()
            .collect()
            .await
            .expect("the server answers");
        let left: Vec<_> = left.iter().map(|it| it.row_key()).collect();
        assert_eq!(left, ["007", "300"]);
    }
}
