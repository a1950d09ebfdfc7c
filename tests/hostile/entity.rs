//! The entities that operations write: each bears the number of the operation.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use tablesdk::key::KeyOf;
use tablesdk::{Stored, TableEntity, Timestamp, WritableEntity};

pub(crate) use harness::written::Row;

use crate::judge::Snapshot;

/// An entity that bears the numbers of the operations that its content is of, as [`Row`] does.
pub(crate) trait Numbered: WritableEntity + Clone + Debug + Send + Sync + 'static {
    /// The table of these entities.
    const TABLE: &'static str;

    fn at(partition: &str, row: &str) -> impl KeyOf<Self> + Send;

    /// What an insert or a replace writes.
    fn whole(partition: &str, row: &str, token: i64) -> Self;

    /// The operation that wrote it last; that which wrote all of it, and that which wrote a part since.
    fn numbers(&self) -> (i64, Option<i64>, Option<i64>);
}

pub(crate) fn snapshot<E: Numbered>(row: &Stored<E>) -> Snapshot {
    let (token, a, b) = row.numbers();
    Snapshot {
        token,
        a,
        b,
        etag: row.etag().clone(),
    }
}

impl Numbered for Row {
    const TABLE: &'static str = "Rows";

    fn at(partition: &str, row: &str) -> impl KeyOf<Self> + Send {
        Self::key(partition, row)
    }

    fn whole(partition: &str, row: &str, token: i64) -> Self {
        Self::whole(partition, row, token)
    }

    fn numbers(&self) -> (i64, Option<i64>, Option<i64>) {
        (self.token, self.a, self.b)
    }
}

/// With entries in other partitions: of an index, and of the bucket in which it expires.
#[derive(Clone, Debug, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{partition}",
    row_key = "row_{row}"
)]
#[table(index(
    ByTown,
    partition_key = "town_{town}",
    row_key = "in_{partition}_{row}"
))]
pub(crate) struct Person {
    pub(crate) partition: String,
    pub(crate) row: String,
    pub(crate) token: i64,
    pub(crate) town: String,
    #[table(expires(bucket = "1h"))]
    pub(crate) until: Timestamp,
}

impl Person {
    /// Every other operation moves it to another town.
    pub(crate) fn town(partition: &str, token: i64) -> String {
        format!("{partition}-{}", token % 2)
    }

    /// Whether it has expired for [`World::later`](crate::world::World).
    pub(crate) const fn is_short_lived(token: i64) -> bool {
        token % 3 == 0
    }
}

impl Numbered for Person {
    const TABLE: &'static str = "People";

    fn at(partition: &str, row: &str) -> impl KeyOf<Self> + Send {
        Self::key(partition, row)
    }

    fn whole(partition: &str, row: &str, token: i64) -> Self {
        let days = if Self::is_short_lived(token) { 1 } else { 100 };
        Self {
            partition: partition.to_owned(),
            row: row.to_owned(),
            token,
            town: Self::town(partition, token),
            until: Timestamp::try_from(SystemTime::now() + DAY * days).unwrap(),
        }
    }

    fn numbers(&self) -> (i64, Option<i64>, Option<i64>) {
        (self.token, Some(self.token), None)
    }
}

/// Encrypted, and found by a property that all of a partition have in common.
#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
pub(crate) struct Secret {
    #[table(partition_key)]
    pub(crate) partition: String,
    #[table(row_key)]
    pub(crate) row: String,
    #[table(encrypt)]
    pub(crate) token: i64,
    #[table(encrypt(eq))]
    pub(crate) owner: String,
}

impl Numbered for Secret {
    const TABLE: &'static str = "Secrets";

    fn at(partition: &str, row: &str) -> impl KeyOf<Self> + Send {
        Self::key(partition, row)
    }

    fn whole(partition: &str, row: &str, token: i64) -> Self {
        Self {
            partition: partition.to_owned(),
            row: row.to_owned(),
            token,
            owner: partition.to_owned(),
        }
    }

    fn numbers(&self) -> (i64, Option<i64>, Option<i64>) {
        (self.token, Some(self.token), None)
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);
