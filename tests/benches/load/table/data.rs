//! The data directory: synced writes beside the plain server with its log, and reads beside tables
//! in memory.

use std::error::Error;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{CONNECTIONS, Context, Place, Results, Served};
use crate::child::Subject;
use crate::cores::{self, Cores};
use crate::servers::Account;
use crate::workload::{Operation, Shape};

pub(super) async fn measure(
    context: &Context,
    results: &mut Results,
) -> Result<(), Box<dyn Error>> {
    // Writes wait for the disk, so that the time on the clock counts, and every core is used.
    Cores::All.pin();
    writes(context, results).await?;
    cores::LOAD.pin();
    reads(context, results).await
}

async fn writes(context: &Context, results: &mut Results) -> Result<(), Box<dyn Error>> {
    let shape = Shape::of(1000);
    let place = Place::DirectoryAllCores;
    let ours = Served::start(&context.program, shape, place).await?;
    let plain = Served::start(&Subject::Plain, shape, place).await?;
    let insert = Operation::Insert;
    let peers = [ours.peer(), plain.peer()];
    let [own, plain] = context.turns(peers, insert, CONNECTIONS).await?;
    let (own, plain) = (own.measurement.rate(), plain.measurement.rate());
    results.ratio("data/writers", own, plain);

    let bare = context.bare(&ours.workload, insert).await?;
    let [lone, round_trip] = context.turns([ours.peer(), bare], insert, 1).await?;
    let directory = ours
        .child
        .directory()
        .ok_or("the server has no directory")?;
    let sync = sync_time(directory)?.as_secs_f64() * 1e6;
    results.ratio(
        "data/lone",
        lone.quantile(0.5),
        round_trip.quantile(0.5) + sync,
    );
    Ok(())
}

/// The median time to write an entity's bytes to a file and to sync them. The file has its size
/// from the beginning, so that a sync writes nothing but these bytes.
fn sync_time(directory: &Path) -> Result<Duration, Box<dyn Error>> {
    let mut file = File::create(directory.join("sync-time"))?;
    file.write_all(&vec![0; SYNCS * ENTITY_BYTES])?;
    file.sync_all()?;
    file.rewind()?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        let started = Instant::now();
        file.write_all(&[b'x'; ENTITY_BYTES])?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2);
    median.copied().ok_or_else(|| "no time was measured".into())
}

async fn reads(context: &Context, results: &mut Results) -> Result<(), Box<dyn Error>> {
    let shape = Shape::of(context.entities);
    let memory = Served::start(&context.program, shape, Place::Memory).await?;
    let mut data = Served::start(&context.program, shape, Place::Directory).await?;
    // So that it reads what a server reads that was started with the directory.
    data.child.restart()?;
    let account = Account::from_connection_string(data.child.connection_string())?;
    data.workload.moved_to(account)?;
    for (operation, row) in [
        (Operation::PointRead, "data/point-read"),
        (Operation::Page, "data/page"),
    ] {
        let peers = [data.peer(), memory.peer()];
        let [data, memory] = context.turns(peers, operation, CONNECTIONS).await?;
        results.cost(row, data.cpu(), memory.cpu());
    }
    Ok(())
}

const SYNCS: usize = 2000;
const ENTITY_BYTES: usize = 600;
