//! A large table beside a small one, and the memory that it takes.

use std::error::Error;

use super::{CONNECTIONS, Context, Place, Results, Served};
use crate::child;
use crate::workload::{Operation, Shape};

pub(super) async fn measure(
    context: &Context,
    results: &mut Results,
) -> Result<(), Box<dyn Error>> {
    let program = &context.program;
    let large = Served::start(program, Shape::of(context.many), Place::Memory).await?;
    if let (Some(bytes), MILLION) = (child::resident_bytes(large.child.id()), context.many) {
        let mebibytes = u32::try_from(bytes >> 20).map_or(f64::MAX, f64::from);
        results.figure("memory", mebibytes);
    }
    let small = Served::start(program, Shape::of(1000), Place::Memory).await?;
    for (operation, row) in [
        (Operation::PointRead, "growth/point-read"),
        (Operation::Upsert, "growth/upsert"),
        (Operation::Page, "growth/page"),
    ] {
        let peers = [large.peer(), small.peer()];
        let [large, small] = context.turns(peers, operation, CONNECTIONS).await?;
        results.cost(row, large.cpu(), small.cpu());
    }
    Ok(())
}

/// The goal is for so many entities, and not for those of a quick run.
const MILLION: usize = 1_000_000;
