//! [`Lint`]: what the recorded requests say about the design of tables.
//!
//! See <https://learn.microsoft.com/azure/storage/tables/table-storage-design-guide>.

use std::collections::BTreeMap;
use std::fmt;

use tablesdk_protocol::filter::{AccessClass, Filter};
use tablesdk_protocol::{EntityKey, ErrorCode};

use super::{Journal, Op, RecordedRequest};

/// An observation about the design of a table, from the requests to it; returned by
/// [`Journal::lints`].
///
/// Prints as the table, the observation, an example, and what to use instead.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lint {
    /// The kind of the observation.
    pub kind: LintKind,
    /// The table.
    pub table: String,
    /// The number of requests.
    pub requests: usize,
    /// One of the requests.
    pub example: RecordedRequest,
}

/// The kind of a [`Lint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LintKind {
    /// Queries read a whole table, or a range of its partitions. As for
    /// [`Journal::assert_no_scans`], the buckets of entities that expire do not count.
    Scan,
    /// Queries have a filter that Azure Table storage refuses, and that the flavor of the server
    /// accepts.
    RefusedFilter,
    /// Queries have a filter whose bounds exclude each other: no entity can match it. See
    /// [`Filter::contradiction`].
    ContradictoryFilter,
    /// Queries within partitions examine at least 100 entities, of which they return less than a
    /// tenth.
    OverWideRead,
    /// At least 100 entities of 4 KiB or more are read with all their properties.
    NoProjection,
    /// At least 80 % of 100 written entities or more are in one partition.
    HotPartition,
    /// At least 10 writes of one entity were refused with 412 `UpdateConditionNotSatisfied` or 409
    /// `EntityAlreadyExists`, and at least a tenth of all writes of it: clients contend for it. A
    /// batch counts for each of its entities.
    Contention,
    /// At least 100 inserted entities have ever greater keys, or ever smaller ones: the
    /// prepend/append anti-pattern. That is so for all keys of a table, for the partition keys if
    /// there are at least 10, whatever the row keys, and for the row keys of each partition or of
    /// one with at least 100 inserts. `InsertOrMerge` and `InsertOrReplace` count as inserts.
    PrependAppend,
    /// The same, and no entity is read by its key, changed or deleted: the log data anti-pattern.
    LogData,
}

impl LintKind {
    /// A description of the requests.
    pub(super) const fn observation(self) -> &'static str {
        match self {
            Self::Scan => "queries read the whole table, or a range of its partitions",
            Self::RefusedFilter => "queries have a filter that Azure Table storage refuses",
            Self::ContradictoryFilter => "queries have a filter that no entity can match",
            Self::OverWideRead => "queries examine many entities and return few of them",
            Self::NoProjection => "reads return large entities with all their properties",
            Self::HotPartition => "writes go to one partition",
            Self::Contention => "writes of one entity are refused, since others have written it",
            Self::PrependAppend => "inserts have ever greater or ever smaller keys",
            Self::LogData => "inserts are appended, and no entity is read by its key or changed",
        }
    }

    /// The recommended design.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Scan => {
                "Restrict the query to a partition. If another property is looked up, keep index entities whose keys contain it \
                 (intra-partition or inter-partition secondary index pattern)."
            }
            Self::RefusedFilter => {
                "Compare each property with a literal, and not with another property or `null`. An integer beyond 32 bits has the suffix \
                 `L`. `PartitionKey`, `RowKey` and `Timestamp` are no conditions by themselves."
            }
            Self::ContradictoryFilter => {
                "The bounds of a property exclude each other. Strings are in the order of their characters, in which '10' is before '9': \
                 pad numbers in keys with zeros, and see that the lower bound is the smaller one."
            }
            Self::OverWideRead => {
                "Put the property of the condition into the row key (compound key pattern), or keep a copy of each entity under a row \
                 key that contains it (intra-partition secondary index pattern)."
            }
            Self::NoProjection => {
                "Select the properties that are needed. If they are always the same few, store the others in an entity of their own \
                 (wide entities, large entities pattern)."
            }
            Self::HotPartition => {
                "A partition is served by one server, which throttles at 2,000 entities per second. Spread the writes over several \
                 partition keys, for instance by a hash of the row key: `Shard` of the Rust client, read with `merged`."
            }
            Self::Contention => {
                "Each refused write is read and sent again. Spread what is counted over several entities (`Counter` of the Rust client), \
                 keep what changes often in an entity of its own, make transactions smaller, or let one client at a time write (a lease)."
            }
            Self::PrependAppend => {
                "All writes meet at the end of a range, on one server. Begin the partition key with something that varies, such as a \
                 hash (`Shard` of the Rust client) or the id of a device (prepend/append anti-pattern)."
            }
            Self::LogData => {
                "Write log data to blobs, and keep in tables what is looked up by key (log data anti-pattern)."
            }
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, such as {} (requests: {}). {}",
            self.table,
            self.kind.observation(),
            self.example,
            self.requests,
            self.kind.advice()
        )
    }
}

impl Journal {
    /// Hints about the design of each table, from the requests so far. Requests that failed count
    /// for [`LintKind::Contention`] only.
    ///
    /// The result is a hint, not a proof: a test has few entities, and its keys may differ from
    /// those in production.
    pub fn lints(&self) -> Vec<Lint> {
        let mut tables: BTreeMap<_, Vec<RecordedRequest>> = BTreeMap::new();
        for request in self.requests() {
            if let Some(table) = &request.table {
                let table = (request.account.clone(), table.to_ascii_lowercase());
                tables.entry(table).or_default().push(request);
            }
        }
        let lints = tables.values().map(|requests| lints_of_table(requests));
        lints.collect::<Vec<_>>().concat()
    }
}

fn is_success(request: &RecordedRequest) -> bool {
    // The status of a batch that was rejected because of a change is that of a success.
    request.status.is_some_and(|status| status < 300) && request.error_code.is_none()
}

/// Returns true if a write was refused because of the state of an entity.
fn is_of_rival(request: &RecordedRequest) -> bool {
    let code = request.error_code.as_ref();
    let is_of_state = code.is_some_and(|code| {
        matches!(
            code,
            ErrorCode::UpdateConditionNotSatisfied | ErrorCode::EntityAlreadyExists
        )
    });
    is_of_state && request.op.is_some_and(is_entity_write)
}

/// The lints of the requests to one table.
fn lints_of_table(requests: &[RecordedRequest]) -> Vec<Lint> {
    let mut lints = Vec::new();
    let mut add = |kind, found: &[&RecordedRequest]| {
        if let [example, ..] = found {
            lints.push(Lint {
                kind,
                table: example.table.clone().unwrap_or_default(),
                requests: found.len(),
                example: (*example).clone(),
            });
        }
    };
    let those = |condition: &dyn Fn(&RecordedRequest) -> bool| -> Vec<_> {
        let succeeded = requests.iter().filter(|request| is_success(request));
        succeeded.filter(|request| condition(request)).collect()
    };

    add(LintKind::Scan, &those(&RecordedRequest::is_scan));
    let is_refused = |request: &RecordedRequest| {
        let query = request.query.as_ref();
        query.is_some_and(|query| query.filter_refusal.is_some())
    };
    add(LintKind::RefusedFilter, &those(&is_refused));
    let is_contradictory = |request: &RecordedRequest| {
        let filter = request.query.as_ref().and_then(|it| it.filter.as_ref());
        let filter = filter.and_then(|text| text.parse().ok());
        filter.is_some_and(|filter: Filter| filter.contradiction().is_some())
    };
    add(LintKind::ContradictoryFilter, &those(&is_contradictory));
    let is_over_wide = |request: &RecordedRequest| {
        let few = u64::try_from(request.entities_returned).is_ok_and(|returned| {
            request.entities_examined >= MANY && returned * 10 < request.entities_examined
        });
        few && request.access() != Some(AccessClass::Scan)
    };
    add(LintKind::OverWideRead, &those(&is_over_wide));
    let is_heavy = |request: &RecordedRequest| {
        let selects = request.query.as_ref();
        selects.is_some_and(|query| query.select.is_none())
            && request.entities_returned > 0
            && request.bytes_out / request.entities_returned >= LARGE_BYTES
    };
    let heavy = those(&is_heavy);
    let returned: usize = heavy.iter().map(|request| request.entities_returned).sum();
    if returned >= MANY_ENTITIES {
        add(LintKind::NoProjection, &heavy);
    }

    let writes = those(&|request| request.op.is_some_and(is_entity_write));
    let mut partitions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for request in &writes {
        let requests = partitions.entry(&request.partition_key).or_default();
        requests.push(*request);
    }
    let hottest = partitions.into_values();
    let hottest = hottest.max_by_key(|requests| written_by(requests));
    let hottest = hottest.unwrap_or_default();
    let written = written_by(&writes);
    if written >= MANY_ENTITIES && written_by(&hottest) * 5 >= written * 4 {
        add(LintKind::HotPartition, &hottest);
    }

    add(LintKind::Contention, &contended(requests));

    let inserts = those(&is_insert);
    if written_by(&inserts) >= MANY_ENTITIES && is_monotonic(&inserts) {
        let is_by_key = |request: &RecordedRequest| {
            let op = request.op.unwrap_or(Op::QueryEntity);
            op == Op::QueryEntity || is_entity_write(op) && !is_insert(request)
        };
        let kind = if those(&is_by_key).is_empty() {
            LintKind::LogData
        } else {
            LintKind::PrependAppend
        };
        add(kind, &inserts);
    }
    lints
}

const fn is_entity_write(op: Op) -> bool {
    op.is_write()
        && !matches!(
            op,
            Op::CreateTable | Op::DeleteTable | Op::SetTableAcl | Op::SetTableServiceProperties
        )
}

/// How many entities the requests write.
fn written_by(requests: &[&RecordedRequest]) -> usize {
    let entities = requests.iter().flat_map(|request| &request.entities);
    entities.filter(|entity| entity.op.is_write()).count()
}

/// Returns true if a request inserts an entity, or a batch inserts all of its entities. An upsert
/// may insert.
fn is_insert(request: &RecordedRequest) -> bool {
    let mut ops = request.entities.iter().map(|entity| entity.op);
    !request.entities.is_empty()
        && ops.all(|op| {
            matches!(
                op,
                Op::InsertEntity | Op::InsertOrMergeEntity | Op::InsertOrReplaceEntity
            )
        })
}

/// The refused writes of the entity that clients contend for most.
fn contended(requests: &[RecordedRequest]) -> Vec<&RecordedRequest> {
    let mut entities: BTreeMap<&EntityKey, (Vec<&RecordedRequest>, usize)> = BTreeMap::new();
    for request in requests {
        let is_refused = is_of_rival(request);
        if !is_refused && !is_success(request) {
            continue;
        }
        for entity in request.entities.iter().filter(|it| it.op.is_write()) {
            let (refused, writes) = entities.entry(&entity.key).or_default();
            *writes += 1;
            if is_refused {
                refused.push(request);
            }
        }
    }
    let contended = entities.into_values().filter(|(refused, writes)| {
        refused.len() >= MANY_REFUSALS && refused.len() * 10 >= *writes
    });
    let most = contended.max_by_key(|(refused, _)| refused.len());
    most.map(|(refused, _)| refused).unwrap_or_default()
}

/// Returns true if keys only become greater, or only smaller: all of them, the partition keys, or
/// the row keys of each partition or of one with many.
fn is_monotonic(inserts: &[&RecordedRequest]) -> bool {
    let entities = || inserts.iter().flat_map(|request| &request.entities);
    let keys = || {
        entities().map(|entity| {
            (
                entity.key.partition_key().as_str(),
                entity.key.row_key().as_str(),
            )
        })
    };
    let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (partition_key, row_key) in keys() {
        rows.entry(partition_key).or_default().push(row_key);
    }
    let partitions = || keys().map(|(partition_key, _)| partition_key);
    let rises = |rows: &Vec<&str>| rows.is_sorted_by(|a, b| a < b);
    let falls = |rows: &Vec<&str>| rows.is_sorted_by(|a, b| a > b);
    // With a partition for each entity, the order within partitions says nothing.
    let within = rows.len() * 10 <= keys().count();
    keys().is_sorted_by(|a, b| a < b)
        || keys().is_sorted_by(|a, b| a > b)
        || rows.len() >= MANY_PARTITIONS
            && (partitions().is_sorted() || partitions().is_sorted_by(|a, b| a >= b))
        || within && (rows.values().all(rises) || rows.values().all(falls))
        || rows
            .values()
            .any(|rows| rows.len() >= MANY_ENTITIES && (rises(rows) || falls(rows)))
}

/// From how many examined entities on a query is called wide.
const MANY: u64 = 100;
/// From how many entities on a table is looked at.
const MANY_ENTITIES: usize = 100;
/// From how many partitions on their order says something.
const MANY_PARTITIONS: usize = 10;
/// From how many refused writes on clients contend for an entity.
const MANY_REFUSALS: usize = 10;
/// From which size on an entity is called large.
const LARGE_BYTES: usize = 4096;
