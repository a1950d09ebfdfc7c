//! The results as a table in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use crate::measure::Measurement;

/// An operation over a number of connections.
pub(crate) struct Row {
    pub(crate) operation: &'static str,
    pub(crate) connections: usize,
    /// How many entities a request of the server reads, examines or writes.
    pub(crate) entities: f64,
    pub(crate) server: Measurement,
    pub(crate) floor: Measurement,
}

/// How fast a table was filled over one connection, a hundred entities in each request.
pub(crate) fn filled(entities: usize, time: Duration) -> String {
    let count = u32::try_from(entities).unwrap_or(u32::MAX);
    format!(
        "filled with {:.0} entities/s",
        f64::from(count) / time.as_secs_f64()
    )
}

/// The results for a table of that many entities. A ratio of 1.00 is as good as the bare server or
/// the other program: of the rates, and of the processor time for an answer, which other programs
/// on the machine disturb less.
pub(crate) fn table(entities: usize, rows: &[Row]) -> String {
    let mut text = format!("{entities} entities\n\n");
    text += "| operation     | connections |   ops/s |  p50 µs |  p99 µs |  CPU µs | floor:/s |  p50 µs |  p99 µs |  CPU µs | ratio | of CPU | entities/s |\n";
    text += "|---------------|------------:|--------:|--------:|--------:|--------:|---------:|--------:|--------:|--------:|------:|-------:|-----------:|\n";
    for row in rows {
        let _ = write!(text, "| {:<13} | {:>11} |", row.operation, row.connections);
        for (measured, width) in [(&row.server, 7), (&row.floor, 8)] {
            let _ = write!(
                text,
                " {:>width$.0} | {:>7.0} | {:>7.0} | {:>7} |",
                measured.rate(),
                micros(measured.quantile(0.5)),
                micros(measured.quantile(0.99)),
                known(micros(measured.cpu()), 1),
            );
        }
        let Row { server, floor, .. } = row;
        let rates = server.rate() / floor.rate();
        let cpu = if server.cpu().is_zero() {
            0.0
        } else {
            micros(floor.cpu()) / micros(server.cpu())
        };
        let entities = row.entities * server.rate();
        let _ = writeln!(
            text,
            " {rates:>5.2} | {:>6} | {entities:>10.0} |",
            known(cpu, 2)
        );
    }
    text
}

/// Formats a number, or a dash if the number is not known.
fn known(number: f64, digits: usize) -> String {
    if number > 0.0 {
        format!("{number:.digits$}")
    } else {
        "–".to_owned()
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
