//! An account into another, nothing in between but how far it has come.

use std::path::Path;

use futures::TryStreamExt as _;
use tablesdk::TableServiceClient;
use tablesdk::transfer::{ExportPosition, Record};

use crate::progress::{Done, Progress};
use crate::state::State;
use crate::{AnyError, Mode};

/// `stop_after` chunks it stops as if it had been killed, to show what happens then.
pub async fn run(
    from: &TableServiceClient,
    to: &TableServiceClient,
    tables: &[String],
    mode: &Mode,
    state: &Path,
    stop_after: Option<usize>,
) -> Result<Done, AnyError> {
    if from.endpoint() == to.endpoint() {
        return Err("an account is not copied onto itself".into());
    }
    let what = format!(
        "copy of {} {} to {}",
        from.endpoint(),
        tables.join(","),
        to.endpoint()
    );
    let (state, reached) = State::open(state.to_owned(), what)?;
    let position = reached
        .map(|reached| reached.parse::<ExportPosition>())
        .transpose()?;

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
    let mut chunks = export.stream();
    let mut count = 0;
    while let Some(chunk) = chunks.try_next().await? {
        // The last record counts what came from the start, and an import that goes on saw but a part of it.
        let mut import = mode.import(to);
        for record in chunk.records {
            if !matches!(record, Record::End { .. }) {
                import.push(record).await?;
            }
        }
        import.finish().await?;
        state.note(&chunk.position.to_string())?;
        totals = (chunk.position.tables(), chunk.position.entities());
        progress.tables(totals.0, chunk.tables_left, totals.1);
        count += 1;
        if stop_after == Some(count) {
            return Err("stopped on the way".into());
        }
    }
    state.remove()?;
    Ok(progress.done("Copied", totals.0, totals.1))
}
