//! A filter on a property that is no key, over a large partition, beside the plain server and
//! Azurite.

use std::error::Error;

use super::{CONNECTIONS, Context, Place, Results, Served};
use crate::child::Subject;
use crate::workload::{Operation, Shape};

pub(super) async fn measure(
    context: &Context,
    results: &mut Results,
) -> Result<(), Box<dyn Error>> {
    let shape = Shape::in_one_partition(context.entities);
    let ours = Served::start(&context.program, shape, Place::Memory).await?;
    let plain = Served::start(&Subject::Plain, shape, Place::Memory).await?;
    let peers = [ours.peer(), plain.peer()];
    let [own, plain] = context.turns(peers, Operation::Filter, CONNECTIONS).await?;
    let (own, plain) = (own.entities_per_second(), plain.entities_per_second());
    results.ratio("filter/plain", own, plain);
    let azurite = Subject::azurite();
    if !azurite.is_installed() {
        for row in ["filter-1/azurite", "filter-64/azurite"] {
            results.missing(row, "tests/interop/install.sh installs Azurite");
        }
        return Ok(());
    }
    let azurite = Served::start(&azurite, shape, Place::Memory).await?;
    for (connections, row) in [(1, "filter-1/azurite"), (CONNECTIONS, "filter-64/azurite")] {
        let peers = [ours.peer(), azurite.peer()];
        let [ours, azurite] = context.turns(peers, Operation::Filter, connections).await?;
        results.ratio(
            row,
            ours.entities_per_second(),
            azurite.entities_per_second(),
        );
    }
    Ok(())
}
