//! The rows of the table of servers with a shared database, and what their figures should be.

use crate::rows::{Goal, Row, row};
use crate::workload::Operation;

/// An operation and its rows: one server, three servers, and the latency of one server.
pub(super) struct Target {
    pub(super) operation: Operation,
    pub(super) one: &'static str,
    pub(super) three: &'static str,
    pub(super) latency: &'static str,
}

pub(super) const TARGETS: [Target; 4] = [
    Target {
        operation: Operation::PointRead,
        one: "point-read/one",
        three: "point-read/three",
        latency: "point-read/latency",
    },
    Target {
        operation: Operation::Insert,
        one: "insert/one",
        three: "insert/three",
        latency: "insert/latency",
    },
    Target {
        operation: Operation::Batch,
        one: "batch/one",
        three: "batch/three",
        latency: "batch/latency",
    },
    Target {
        operation: Operation::Page,
        one: "page/one",
        three: "page/three",
        latency: "page/latency",
    },
];

/// Requests per second, as far as client, servers and database share two cores.
const fn rate(name: &'static str, path: &'static str) -> Row {
    row(name, path, SQL, "requests/s", Goal::AtLeast(0.6))
}

const fn latency(name: &'static str, path: &'static str) -> Row {
    row(name, path, SQL, "p50, µs", Goal::None)
}

const SQL: &str = "its SQL alone";

pub(super) static ROWS: &[Row] = &[
    rate("point-read/one", "point read, one server"),
    rate("point-read/three", "point read, three servers"),
    rate("insert/one", "insert, one server"),
    rate("insert/three", "insert, three servers"),
    rate("batch/one", "batch of 100 inserts, one server"),
    rate("batch/three", "batch of 100 inserts, three servers"),
    rate("page/one", "page of 1,000, one server"),
    rate("page/three", "page of 1,000, three servers"),
    latency("point-read/latency", "point read, 1 connection"),
    latency("insert/latency", "insert, 1 connection"),
    latency("batch/latency", "batch of 100 inserts, 1 connection"),
    latency("page/latency", "page of 1,000, 1 connection"),
];
