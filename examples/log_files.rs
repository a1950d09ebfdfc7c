//! Lines of a log are collected and stored as objects, and entities find them by time:
//! `cargo run --example log_files`.
//!
//! An entity for each line would make every write a request, and all writes go to the end of one
//! partition: the [log data anti-pattern]. A process writes its lines of a minute as one object, in
//! an object store, here a folder. An entity for each object has its times, so that a query of a
//! key range finds the objects of an hour.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [log data anti-pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#log-data-anti-pattern

use std::error::Error;
use std::fs;
use std::path::Path;

use futures::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};

/// Lines of one process, which are an object.
#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{process}",
    row_key = "{first}"
)]
struct LogFile {
    process: String,
    /// The instant of the first line. A process has one file for it.
    first: OffsetDateTime,
    last: OffsetDateTime,
    lines: i64,
    object: ObjectRef,
}

/// The lines that a process has not stored yet. A process that is killed loses them.
struct Log {
    process: String,
    table: TableClient,
    objects: Objects,
    lines: Vec<(OffsetDateTime, String)>,
}

impl Log {
    const LONGEST: Duration = Duration::minutes(1);

    async fn write(&mut self, at: OffsetDateTime, line: String) -> Result<(), tablesdk::Error> {
        let first = self.lines.first().map(|(first, _)| *first);
        let is_full = first.is_some_and(|first| at - first >= Self::LONGEST);
        let flushed = if is_full { self.flush().await } else { Ok(()) };
        // Also after an error, so that the next call stores it.
        self.lines.push((at, line));
        flushed
    }

    /// Stores the lines: the object first, and then the entity that names it. Lines whose storage
    /// failed are stored by the next call.
    async fn flush(&mut self) -> Result<(), tablesdk::Error> {
        let ends = self.lines.first().zip(self.lines.last());
        let Some(((first, _), (last, _))) = ends else {
            return Ok(());
        };
        let lines = self.lines.iter().map(|(at, line)| format!("{at} {line}\n"));
        let file = LogFile {
            process: self.process.clone(),
            first: *first,
            last: *last,
            lines: i64::try_from(self.lines.len()).unwrap_or(i64::MAX),
            object: self.objects.put(lines.collect::<String>()).await?,
        };
        // After a lost response, the same file is written again.
        self.table.upsert_replace(&file).await?;
        self.lines.clear();
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("LogFiles"));
    let folder = std::env::temp_dir().join(unique_name("log_files"));
    table.create_table().await?;
    fs::create_dir(&folder)?;

    // Table and folder are deleted after an error, too.
    let outcome = tour(&table, &folder).await;
    table.delete_table().await?;
    fs::remove_dir_all(&folder)?;
    outcome
}

async fn tour(table: &TableClient, folder: &Path) -> Result<(), Box<dyn Error>> {
    let objects = Objects::new(LocalFileSystem::new_with_prefix(folder)?, "logs");
    let noon = datetime!(2024-03-15 12:00 UTC);

    println!("1. A process writes a line each second, for ten minutes:");
    let mut log = Log {
        process: "web-1".to_owned(),
        table: table.clone(),
        objects: objects.clone(),
        lines: Vec::new(),
    };
    for second in 0..600 {
        let at = noon + Duration::seconds(second);
        log.write(at, format!("request {second}")).await?;
    }
    log.flush().await?;
    println!("   {} entities", table.query::<LogFile>().count().await?);

    println!("\n2. The lines from 12:03:30 on, for a minute:");
    let from = noon + Duration::seconds(210);
    let to = from + Duration::minutes(1);
    // A file that has begun before may have lines of the time.
    let rows = LogFile::rows().first(from - Log::LONGEST..to);
    let files = table.query::<LogFile>().partition("web-1").rows(rows);
    let files: Vec<_> = files
        .filter(|it| it.last.ge(from))
        .stream()
        .try_collect()
        .await?;
    let mut found = Vec::new();
    for file in &files {
        let content = objects.get(&file.object).await?;
        let lines = std::str::from_utf8(&content)?.lines();
        let (first, last) = (from.to_string(), to.to_string());
        let of_time = lines.filter(|line| (first.as_str()..last.as_str()).contains(line));
        found.extend(of_time.map(str::to_owned));
    }
    println!("   {} lines of {} objects", found.len(), files.len());
    println!("   {}", found.first().ok_or("there are some")?);

    println!("\n3. Old lines are deleted: the entities, and then the objects that none names:");
    let old = LogFile::rows().first(..noon + Duration::minutes(5));
    let old = table.query::<LogFile>().partition("web-1").rows(old);
    let report = old.delete_all().await?;
    println!("   {} entities", report.progress().written);
    let clean_up = objects.clean_up_objects(table.query::<LogFile>().select(|it| it.object));
    let report = clean_up.await?;
    // Objects of this day stay: their entities may not be written yet.
    println!("   {} objects are too new to be deleted", report.recent);
    Ok(())
}
