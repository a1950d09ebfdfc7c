//! A file into an account.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tablesdk::TableServiceClient;
use tablesdk::transfer::{Import, Record};

use crate::progress::{Done, Progress};
use crate::state::{State, with_suffix};
use crate::{AnyError, Mode};

/// `stop_after` lines it stops as if it had failed, to show what happens then.
pub async fn run(
    to: &TableServiceClient,
    mode: &Mode,
    file: &Path,
    stop_after: Option<u64>,
) -> Result<Done, AnyError> {
    let shown = file.display();
    let opened = File::open(file).map_err(|error| format!("{shown}: {error}"))?;
    let metadata = opened.metadata()?;
    let length = metadata.len();
    // Another file under the same name would be skipped in part.
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
    let what = format!(
        "import of {length} bytes, changed at {changed}, to {}",
        to.endpoint()
    );
    let (state, reached) = State::open(with_suffix(file, ".import"), what)?;
    let skip = reached.map_or(Ok(0), |reached| reached.parse::<u64>())?;

    let mut import = mode.import(to).skip(skip);
    let progress = Progress::of_bytes(length);
    let lines = BufReader::new(opened);
    let read = read(&mut import, lines, &state, &progress, stop_after).await;
    let finished = match read {
        Ok(()) => import.finish().await.map_err(AnyError::from),
        Err(error) => Err(error),
    };
    let report = match finished {
        Ok(report) => report,
        Err(error) => {
            // What is on its way arrives, unless it is what failed.
            let _ = import.flush().await;
            state.note(&import.stored().to_string())?;
            return Err(error);
        }
    };
    state.remove()?;
    if !report.is_complete {
        let entities = report.entities;
        return Err(format!(
            "{shown} ends without its last line: it was cut. Its {entities} entities are imported"
        )
        .into());
    }
    Ok(progress.done("Imported", report.tables, report.entities))
}

async fn read(
    import: &mut Import,
    mut lines: BufReader<File>,
    state: &State,
    progress: &Progress,
    stop_after: Option<u64>,
) -> Result<(), AnyError> {
    let (mut done, mut entities) = (0, 0);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        // A file of something else may have no ends of lines.
        let bytes = lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if bytes == 0 {
            break;
        }
        done += bytes as u64;
        let record = Record::read_line(&line);
        let record = record.map_err(|error| format!("line {number}: {error:?}"))?;
        entities += u64::from(matches!(record, Record::Entity { .. }));
        import.push(record).await?;
        if stop_after == Some(number) {
            import.flush().await?;
            return Err("stopped on the way".into());
        }
        if number % LINES_A_NOTE == 0 {
            progress.bytes(done, entities);
            state.note(&import.stored().to_string())?;
        }
    }
    Ok(())
}

/// More than any line has.
const LINE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const LINES_A_NOTE: u64 = 1_000;
