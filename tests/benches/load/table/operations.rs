//! Every operation over 64 connections, beside the bare server and the plain server.

use std::error::Error;

use super::{CONNECTIONS, Context, Place, Results, Served};
use crate::child::Subject;
use crate::workload::{Operation, Shape};

pub(super) async fn measure(
    context: &Context,
    results: &mut Results,
) -> Result<(), Box<dyn Error>> {
    let shape = Shape::of(context.entities);
    let ours = Served::start(&context.program, shape, Place::Memory).await?;
    let plain = Served::start(&Subject::Plain, shape, Place::Memory).await?;
    for (operation, bare_row, plain_row) in [
        (
            Operation::PointRead,
            Some("point-read/bare"),
            "point-read/plain",
        ),
        (Operation::Upsert, None, "upsert/plain"),
        (Operation::Merge, None, "merge/plain"),
        (Operation::Page, Some("page/bare"), "page/plain"),
        (Operation::Delete, None, "delete/plain"),
        (Operation::Insert, None, "insert/plain"),
        (Operation::Batch, None, "batch/plain"),
    ] {
        let peers = [ours.peer(), plain.peer()];
        let theirs = if let Some(bare_row) = bare_row {
            let bare = context.bare(&ours.workload, operation).await?;
            let peers = [ours.peer(), bare, plain.peer()];
            let [ours, bare, plain] = context.turns(peers, operation, CONNECTIONS).await?;
            results.cost(bare_row, ours.cpu(), bare.cpu());
            [ours, plain]
        } else {
            context.turns(peers, operation, CONNECTIONS).await?
        };
        let [ours, plain] = theirs;
        results.cost(plain_row, ours.cpu(), plain.cpu());
    }
    // The table has grown by the entities that were inserted. A scan reads those of the whole
    // table, so that it has one of its own.
    let ours = Served::start(&context.program, shape, Place::Memory).await?;
    let plain = Served::start(&Subject::Plain, shape, Place::Memory).await?;
    let peers = [ours.peer(), plain.peer()];
    let [ours, plain] = context.turns(peers, Operation::Scan, CONNECTIONS).await?;
    let (ours, plain) = (ours.entities_per_second(), plain.entities_per_second());
    results.figure("scan", ours);
    results.ratio("scan/plain", ours, plain);
    Ok(())
}
