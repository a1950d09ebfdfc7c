//! The rates, processor times and latencies behind the ratios: medians of the rounds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::processes::Times;
use crate::measure::Measurement;
use crate::rows::{median, short, sorted};
use crate::workload::Operation;

/// Those that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The statements without a server.
    Sql,
    One,
    Three,
}

impl Subject {
    pub(super) const ALL: [Self; 3] = [Self::Sql, Self::One, Self::Three];

    const fn name(self) -> &'static str {
        match self {
            Self::Sql => "SQL alone",
            Self::One => "one server",
            Self::Three => "three servers",
        }
    }
}

/// The figures that are printed for each operation and subject.
const COLUMNS: [&str; 6] = [
    "requests/s",
    "CPU of the client, µs",
    "of the servers",
    "of PostgreSQL",
    "1 connection: p50, µs",
    "p99, µs",
];

/// The figures of all rounds.
#[derive(Default)]
pub(super) struct Details(BTreeMap<(usize, Subject), [Vec<f64>; COLUMNS.len()]>);

impl Details {
    /// Adds a round with many connections.
    pub(super) fn add_many(
        &mut self,
        operation: Operation,
        subject: Subject,
        measured: &Measurement,
        times: Times,
    ) {
        let count = u32::try_from(measured.count()).unwrap_or(u32::MAX).max(1);
        let each = |time: std::time::Duration| (time / count).as_secs_f64() * 1e6;
        let [rate, client, servers, postgres, ..] = self.columns(operation, subject);
        rate.push(measured.rate());
        client.push(each(times.client));
        servers.push(each(times.servers));
        postgres.push(each(times.postgres));
    }

    /// Adds a round with one connection.
    pub(super) fn add_single(
        &mut self,
        operation: Operation,
        subject: Subject,
        measured: &Measurement,
    ) {
        let [.., p50, p99] = self.columns(operation, subject);
        p50.push(measured.quantile(0.5).as_secs_f64() * 1e6);
        p99.push(measured.quantile(0.99).as_secs_f64() * 1e6);
    }

    fn columns(
        &mut self,
        operation: Operation,
        subject: Subject,
    ) -> &mut [Vec<f64>; COLUMNS.len()] {
        let place = Operation::ALL.iter().position(|known| *known == operation);
        self.0
            .entry((place.unwrap_or_default(), subject))
            .or_default()
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str, [f64; COLUMNS.len()])> {
        self.0.iter().map(|((place, subject), columns)| {
            let operation = Operation::ALL.get(*place).map_or("", |known| known.name());
            let medians = columns.each_ref().map(|figures| {
                let figures = figures.iter().copied();
                median(&sorted(figures))
            });
            (operation, subject.name(), medians)
        })
    }

    /// A table in Markdown.
    pub(super) fn table(&self) -> String {
        let mut text = format!("| operation | | {} |\n|---|---|", COLUMNS.join(" | "));
        text += &"--:|".repeat(COLUMNS.len());
        for (operation, subject, medians) in self.rows() {
            let _ = write!(text, "\n| {operation} | {subject} |");
            for figure in medians {
                let _ = write!(text, " {} |", short(figure));
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let rows = self.rows().map(|(operation, subject, medians)| {
            let figures = COLUMNS.iter().zip(medians);
            let figures = figures.map(|(name, figure)| ((*name).to_owned(), json!(figure)));
            json!({
                "operation": operation,
                "subject": subject,
                "figures": figures.collect::<serde_json::Map<_, _>>(),
            })
        });
        rows.collect()
    }
}
