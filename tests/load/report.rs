//! The results as a table in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use crate::measure::Measurement;

/// An operation over a number of connections.
pub(crate) struct Row {
    pub(crate) operation: &'static str,
    pub(crate) connections: usize,
    pub(crate) server: Measurement,
    pub(crate) floor: Measurement,
}

/// The results for a table of that many entities. The ratio is that of the rates: 1.00 is as fast as the bare server.
pub(crate) fn table(entities: usize, rows: &[Row]) -> String {
    let mut text = format!("{entities} entities\n\n");
    text += "| operation     | connections |  ops/s |  p50 µs |  p99 µs | bare ops/s |  p50 µs |  p99 µs | ratio |\n";
    text += "|---------------|------------:|-------:|--------:|--------:|-----------:|--------:|--------:|------:|\n";
    for row in rows {
        let Row { server, floor, .. } = row;
        let _ = writeln!(
            text,
            "| {:<13} | {:>11} | {:>6.0} | {:>7.0} | {:>7.0} | {:>10.0} | {:>7.0} | {:>7.0} | {:>5.2} |",
            row.operation,
            row.connections,
            server.rate(),
            micros(server.quantile(0.5)),
            micros(server.quantile(0.99)),
            floor.rate(),
            micros(floor.quantile(0.5)),
            micros(floor.quantile(0.99)),
            server.rate() / floor.rate(),
        );
    }
    text
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
