//! The rows of the table, with the targets of the project.

use crate::rows::{Goal, Row, row};

/// Requests per second of processor time, ours divided by theirs. The two numbers behind it are µs
/// of processor time per request.
const CPU: &str = "requests per CPU second";
const BARE: &str = "bare server";
const PLAIN: &str = "plain server";
const AZURITE: &str = "Azurite";
const ENTITIES: &str = "entities per CPU second";

/// All rows, in the order in which they are shown.
pub(super) const ROWS: &[Row] = &[
    row(
        "point-read/bare",
        "point read",
        BARE,
        CPU,
        Goal::AtLeast(0.5),
    ),
    row(
        "point-read/plain",
        "point read",
        PLAIN,
        CPU,
        Goal::AtLeast(1.1),
    ),
    row("insert/plain", "insert", PLAIN, CPU, Goal::AtLeast(0.95)),
    row("upsert/plain", "upsert", PLAIN, CPU, Goal::AtLeast(0.9)),
    row("merge/plain", "merge", PLAIN, CPU, Goal::AtLeast(0.95)),
    row("delete/plain", "delete", PLAIN, CPU, Goal::AtLeast(0.9)),
    row(
        "batch/plain",
        "batch of 100 inserts",
        PLAIN,
        CPU,
        Goal::AtLeast(1.0),
    ),
    row("page/bare", "page of 1,000", BARE, CPU, Goal::AtLeast(0.4)),
    row("page/plain", "page of 1,000", PLAIN, CPU, Goal::None),
    row("scan", "scan by pages", "–", ENTITIES, Goal::AtLeast(3.5e6)),
    row("scan/plain", "scan by pages", PLAIN, ENTITIES, Goal::None),
    row(
        "filter-1/azurite",
        "filter, 1 connection",
        AZURITE,
        ENTITIES,
        Goal::AtLeast(5.0),
    ),
    row(
        "filter-64/azurite",
        "filter, 64 connections",
        AZURITE,
        ENTITIES,
        Goal::AtLeast(5.0),
    ),
    row(
        "filter/plain",
        "filter, 64 connections",
        PLAIN,
        ENTITIES,
        Goal::None,
    ),
    row(
        "memory",
        "memory with a million entities",
        "–",
        "MiB",
        Goal::AtMost(450.0),
    ),
    row(
        "growth/point-read",
        "point read, large table",
        "1,000 entities",
        CPU,
        Goal::AtLeast(0.85),
    ),
    row(
        "growth/upsert",
        "upsert, large table",
        "1,000 entities",
        CPU,
        Goal::AtLeast(0.85),
    ),
    row(
        "growth/page",
        "page, large table",
        "1,000 entities",
        CPU,
        Goal::AtLeast(0.85),
    ),
    row(
        "data/writers",
        "data directory, 64 writers, synced",
        "plain server, shared fdatasync",
        "requests/s",
        Goal::AtLeast(0.8),
    ),
    row(
        "data/lone",
        "data directory, lone insert",
        "round trip + fdatasync",
        "p50, µs",
        Goal::AtMost(1.15),
    ),
    row(
        "data/point-read",
        "data directory, point read",
        "memory",
        CPU,
        Goal::AtLeast(0.8),
    ),
    row(
        "data/page",
        "data directory, page",
        "memory",
        CPU,
        Goal::AtLeast(0.33),
    ),
    row(
        "in-process/point-read",
        "in process, point read",
        "HTTP",
        CPU,
        Goal::AtLeast(3.0),
    ),
    row(
        "in-process/insert",
        "in process, insert",
        "HTTP",
        CPU,
        Goal::None,
    ),
    row(
        "tail/scan",
        "point operations during a scan",
        "alone",
        "p99.9, µs",
        Goal::AtMost(3.0),
    ),
    row(
        "tail/batch",
        "point operations during 4 MiB batches",
        "alone",
        "p99.9, µs",
        Goal::AtMost(3.0),
    ),
    row(
        "tail/delete",
        "point operations during a table delete",
        "alone",
        "p99.9, µs",
        Goal::AtMost(3.0),
    ),
];
