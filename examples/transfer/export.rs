//! An account to a file. It is written as `FILE.part`, and gets its name when it is whole.

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use futures::TryStreamExt as _;
use tablesdk::TableServiceClient;
use tablesdk::transfer::{ExportPosition, Record};

use crate::AnyError;
use crate::progress::{Done, Progress};
use crate::state::{State, with_suffix};

/// `stop_after` chunks it stops as if it had been killed, to show what happens then.
pub async fn run(
    from: &TableServiceClient,
    tables: &[String],
    file: &Path,
    stop_after: Option<usize>,
) -> Result<Done, AnyError> {
    if file.exists() {
        return Err(format!("{} exists already", file.display()).into());
    }
    let (part, state) = (with_suffix(file, ".part"), with_suffix(file, ".export"));
    let what = format!("export of {} {}", from.endpoint(), tables.join(","));
    let (state, reached) = State::open(state, what)?;
    let (length, position) = match reached {
        None => (0, None),
        Some(reached) => {
            let (length, position) = reached
                .split_once(' ')
                .ok_or("the state of the export cannot be read")?;
            (
                length.parse::<u64>()?,
                Some(position.parse::<ExportPosition>()?),
            )
        }
    };

    let mut out = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&part)?;
    if out.metadata()?.len() < length {
        let part = part.display();
        return Err(
            format!("{part} lost what the state says it holds: remove both to start over").into(),
        );
    }
    // What was written after the state was noted is read again.
    out.set_len(length)?;
    out.seek(SeekFrom::End(0))?;

    let progress = Progress::of_tables();
    let mut totals = match &position {
        Some(position) => (position.tables(), position.entities()),
        None => (0, 0),
    };
    let mut export = from.export();
    if !tables.is_empty() {
        export = export.tables(tables);
    }
    if let Some(position) = position {
        export = export.resume(position);
    }
    let mut length = length;
    let mut chunks = export.stream();
    let mut count = 0;
    let mut lines = Vec::new();
    while let Some(chunk) = chunks.try_next().await? {
        lines.clear();
        for record in &chunk.records {
            Record::write_line(record, &mut lines)?;
        }
        out.write_all(&lines)?;
        out.sync_data()?;
        length += lines.len() as u64;
        state.note(&format!("{length} {}", chunk.position))?;
        totals = (chunk.position.tables(), chunk.position.entities());
        progress.tables(totals.0, chunk.tables_left, totals.1);
        count += 1;
        if stop_after == Some(count) {
            return Err("stopped on the way".into());
        }
    }
    fs::rename(part, file)?;
    state.remove()?;
    Ok(progress.done("Exported", totals.0, totals.1))
}
