//! [`Cost`]: recorded requests as an account would bill them. Knows no price.
//!
//! Microsoft's page "Storage Analytics logged operations and status messages" says which results
//! are billed.
// SERVICE: that any request is one transaction, and the classes, are what bills and the storage
// team have shown. No page lists the operations of each class.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use super::{Op, RecordedRequest, RecordedRequests};

/// The billed transactions and the bytes of recorded requests: the quantities of a bill, without
/// prices.
///
/// Each request is one transaction: a batch with 100 changes, a page of a query, and a request that
/// is refused, for example with 404, 409 or 412. A request that fails by the service's fault (500,
/// 503) is not billed, and one that is not authenticated is not. A fault that is
/// [applied](super::Fault::applied) before an error is recorded twice: as what was carried out, and
/// as what was returned. The guide [What does it
/// cost](https://docs.rs/tablesdk/latest/tablesdk/guide/costs/) computes a bill.
///
/// `Display` writes one line for each quantity.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tablesdk_server::TableServer;
///
/// let server = TableServer::in_process();
/// let journal = server.journal();
/// // … the program …
/// let of_orders = journal.requests().table("Orders").cost();
/// assert_eq!(of_orders.transactions(), 0);
/// println!("{of_orders}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Batches, with any number of changes. *Batch write operations* of the bill.
    pub batches: u64,
    /// Inserts, updates, merges and upserts of one entity, new tables, and changes of settings and
    /// access policies. *Write operations* of the bill.
    pub writes: u64,
    /// Deletes of one entity, and of tables. *Delete operations* of the bill.
    pub deletes: u64,
    /// Reads of one entity by its key, of one table, of settings and of access policies. *Read
    /// operations* of the bill.
    pub reads: u64,
    /// Pages of queries of entities, of any [access class](super::AccessClass). *Scan operations*
    /// of the bill.
    pub queries: u64,
    /// Pages of lists of tables. *List operations* of the bill.
    pub lists: u64,
    /// Requests that are not billed.
    pub unbilled: u64,
    /// The bytes of the bodies of all requests. Ingress is free of charge.
    pub bytes_in: u64,
    /// The bytes of the bodies of all responses. Egress is billed where it leaves the region of the
    /// account.
    pub bytes_out: u64,
}

impl Cost {
    /// The number of billed transactions.
    pub const fn transactions(&self) -> u64 {
        let changing = self.batches + self.writes + self.deletes;
        changing + self.reads + self.queries + self.lists
    }

    fn of(request: &RecordedRequest) -> Self {
        let mut cost = Self {
            bytes_in: as_u64(request.bytes_in),
            bytes_out: as_u64(request.bytes_out),
            ..Self::default()
        };
        *cost.class(request) += 1;
        cost
    }

    /// The class that counts a request.
    fn class(&mut self, request: &RecordedRequest) -> &mut u64 {
        // SERVICE: an authenticated request that cannot be decoded is billed, too. What the journal
        // does not know of it is its class.
        let (true, Some(op)) = (is_billed(request), request.op) else {
            return &mut self.unbilled;
        };
        // SERVICE: Microsoft publishes the names of the classes, and no list of their operations.
        match op {
            // SERVICE: a batch of a query counts as the query.
            Op::Batch if request.query.is_some() => &mut self.queries,
            Op::Batch if is_read(request) => &mut self.reads,
            Op::Batch => &mut self.batches,
            Op::DeleteEntity | Op::DeleteTable => &mut self.deletes,
            Op::QueryEntities => &mut self.queries,
            Op::QueryTables => &mut self.lists,
            op if op.is_write() => &mut self.writes,
            _ => &mut self.reads,
        }
    }
}

/// Returns true if the result of a request is one that is billed.
fn is_billed(request: &RecordedRequest) -> bool {
    // SERVICE: of a timeout, the client's fault is billed, and the service's is not. The kit has
    // only the latter. Without a status, nothing was carried out.
    !matches!(request.status, None | Some(500 | 503))
}

/// Returns true if a batch reads an entity.
fn is_read(request: &RecordedRequest) -> bool {
    let mut entities = request.entities.iter();
    entities.any(|entity| entity.op == Op::QueryEntity)
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl RecordedRequests {
    /// The transactions and bytes that an account would bill.
    pub fn cost(&self) -> Cost {
        self.iter().map(Cost::of).sum()
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.batches += other.batches;
        self.writes += other.writes;
        self.deletes += other.deletes;
        self.reads += other.reads;
        self.queries += other.queries;
        self.lists += other.lists;
        self.unbilled += other.unbilled;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("batches", self.batches),
            ("writes", self.writes),
            ("deletes", self.deletes),
            ("reads", self.reads),
            ("queries", self.queries),
            ("lists", self.lists),
            ("transactions", self.transactions()),
            ("not billed", self.unbilled),
            ("bytes in", self.bytes_in),
        ];
        for (name, count) in lines {
            writeln!(f, "{name:<12} {count:>12}")?;
        }
        write!(f, "{:<12} {:>12}", "bytes out", self.bytes_out)
    }
}
