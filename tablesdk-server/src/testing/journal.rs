//! [`Journal`]: the requests that a server has received, as typed values.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::filter::AccessClass;
use tablesdk_protocol::{ErrorCode, ServiceError, Timestamp};

use super::request::RequestInfo;
use super::{Fault, Op, RequestedEntity, RequestedQuery};
use crate::request::context::Context;
use crate::request::log::RefusedPart;

/// Records the requests that a server receives, from
/// [`TableServer::journal`](crate::TableServer::journal) until it and its clones are dropped. It
/// keeps the last 100,000 requests, or fewer if they name more than 300,000 entities together. A
/// request that a fault carries out later, twice, or in spite of an error is recorded each time
/// that it is carried out, as if the client had sent it again.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tablesdk_server::TableServer;
/// use tablesdk_server::testing::Op;
///
/// let server = TableServer::in_process();
/// let journal = server.journal();
/// // … the test …
/// assert_eq!(journal.requests().op(Op::InsertEntity).table("Orders").count(), 0);
/// journal.assert_no_scans();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Journal(pub(super) Arc<Recording>);

/// The recorded requests.
#[derive(Default)]
pub(super) struct Recording(Mutex<Recorded>);

#[derive(Default)]
struct Recorded {
    /// How many requests there were, with those that are forgotten.
    count: u64,
    requests: VecDeque<RecordedRequest>,
    /// How many entities the requests name.
    entities: usize,
    /// The last attempt of each client request id of the requests.
    attempts: HashMap<String, usize>,
}

impl Recorded {
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.requests.pop_front() else {
            return;
        };
        self.entities -= oldest.entities.len();
        if let Some(id) = oldest.client_request_id
            && self.attempts.get(&id) == Some(&oldest.attempt)
        {
            self.attempts.remove(&id);
        }
    }
}

impl Recording {
    pub(super) fn add(&self, mut request: RecordedRequest) {
        let mut recorded = self.lock();
        if let Some(id) = &request.client_request_id {
            let attempts = recorded.attempts.entry(id.clone()).or_default();
            *attempts += 1;
            request.attempt = *attempts;
        }
        recorded.count += 1;
        request.number = recorded.count;
        recorded.entities += request.entities.len();
        recorded.requests.push_back(request);
        while recorded.requests.len() > REQUESTS_MAX || recorded.entities > ENTITIES_MAX {
            recorded.forget_oldest();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    /// The requests so far, in the order in which their responses were complete.
    pub fn requests(&self) -> RecordedRequests {
        RecordedRequests(self.0.lock().requests.iter().cloned().collect())
    }

    /// The last requests with a higher number than this one: at most 1,000, which name at most
    /// 10,000 entities together.
    pub(crate) fn newest(&self, after: u64) -> Vec<RecordedRequest> {
        let recorded = self.0.lock();
        let requests = recorded.requests.iter().rev();
        let mut entities = 0;
        let newest = requests.take(NEWEST_MAX).take_while(|request| {
            entities += request.entities.len();
            request.number > after && entities <= NEWEST_ENTITIES_MAX
        });
        let mut newest: Vec<_> = newest.cloned().collect();
        newest.reverse();
        newest
    }

    /// The number of the last request, which may be forgotten; 0 before the first one.
    pub(crate) fn last_number(&self) -> u64 {
        self.0.lock().count
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        let mut recorded = self.0.lock();
        *recorded = Recorded {
            count: recorded.count,
            ..Recorded::default()
        };
    }

    /// Asserts that no query had to read a whole table, or a range of its partitions. The range of
    /// partitions in which the Rust client keeps the buckets of entities that expire is none of the
    /// program's: `clean_up_expired` with buckets is no scan.
    ///
    /// # Panics
    ///
    /// With a list of these queries, if there are any.
    #[track_caller]
    pub fn assert_no_scans(&self) {
        let scans = self.requests().filter(RecordedRequest::is_scan);
        assert!(
            scans.is_empty(),
            "queries scanned a table. A condition on PartitionKey reads one partition; an index answers other \
             questions.\n{scans}"
        );
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("requests", &self.0.lock().requests.len())
            .finish_non_exhaustive()
    }
}

/// A request that a server has received, and its response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The number of the request in its journal, from 1. [`Journal::clear`] does not restart it.
    pub number: u64,
    /// The operation. `None` for a request that was not authenticated, could not be decoded, or was
    /// for a resource that does not exist.
    pub op: Option<Op>,
    /// The account that the URL names.
    pub account: String,
    /// The table.
    pub table: Option<String>,
    /// The partition of the entities that the request is for; of a query, the one to which it is
    /// restricted.
    pub partition_key: Option<String>,
    /// The entities that the request names: one for each change of a batch, none for a query.
    pub entities: Vec<RequestedEntity>,
    /// The query, if the request is one.
    pub query: Option<RequestedQuery>,
    /// How often a request with this client request id has come so far, with this one: retries have
    /// the id of the first attempt. Always 1 if the client sends no id.
    pub attempt: usize,
    /// The id that the client gave the request.
    pub client_request_id: Option<String>,
    /// The time when the response was complete, by the server's clock.
    pub time: Timestamp,
    /// The status of the response, even if an injected fault kept it from the client. `None` if
    /// there was no response.
    pub status: Option<u16>,
    /// The code of an error. A batch in which an operation was refused has the code of the
    /// operation, and the status 202.
    pub error_code: Option<ErrorCode>,
    /// The number of entities in the response.
    pub entities_returned: usize,
    /// The number of entities that a query examined.
    pub entities_examined: u64,
    /// The size of the request's body.
    pub bytes_in: usize,
    /// The size of the response's body.
    pub bytes_out: usize,
    /// The fault that was injected.
    pub fault: Option<Fault>,
    /// The [id](super::InjectedFault::id) of the rule of the fault. `None` without a fault, and for
    /// one of the [throttle](super::Throttle) or of a [range](super::Partitions) that moves.
    pub rule: Option<u64>,
}

impl RecordedRequest {
    /// A request without its response.
    pub(super) fn new(info: &RequestInfo, context: &Context) -> Self {
        let id = context.client_request_id();
        let id = id.and_then(|id| Some(id.to_str().ok()?.to_owned()));
        Self::of(info.clone(), id, context.now)
    }

    fn of(info: RequestInfo, client_request_id: Option<String>, time: Timestamp) -> Self {
        let RequestInfo {
            op,
            account,
            table,
            entities,
            partition_key,
            query,
        } = info;
        Self {
            number: 0,
            op,
            account,
            table,
            partition_key,
            entities,
            query,
            attempt: 1,
            client_request_id,
            time,
            status: None,
            error_code: None,
            entities_returned: 0,
            entities_examined: 0,
            bytes_in: 0,
            bytes_out: 0,
            fault: None,
            rule: None,
        }
    }

    /// Takes the facts of a response.
    pub(super) fn take_response(&mut self, response: &Response<Bytes>) {
        if let Some(RefusedPart { error, .. }) = response.extensions().get() {
            self.error_code = Some(error.code().clone());
        }
        self.status = Some(response.status().as_u16());
        self.bytes_out = response.body().len();
    }

    /// Takes the facts of the result of an operation.
    pub(super) fn take_result(&mut self, result: &Result<Response<Bytes>, ServiceError>) {
        match result {
            Ok(response) => self.take_response(response),
            Err(error) => {
                self.status = Some(error.status().as_u16());
                self.error_code = Some(error.code().clone());
            }
        }
    }

    /// How the server found the entities of a read.
    pub fn access(&self) -> Option<AccessClass> {
        match &self.query {
            Some(query) => Some(query.access),
            None => (self.op == Some(Op::QueryEntity)).then_some(AccessClass::Point),
        }
    }

    /// Returns true if a query of the program reads a whole table, or a range of its partitions.
    pub(super) fn is_scan(&self) -> bool {
        let query = self.query.as_ref();
        query.is_some_and(|it| it.access == AccessClass::Scan && !it.is_of_own_entities())
    }
}

/// Shows what was asked for and the response on one line.
impl fmt::Display for RecordedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op.map_or("unknown operation", Op::as_str))?;
        if let Some(table) = &self.table {
            write!(f, " {table}")?;
        }
        if let [entity] = self.entities.as_slice() {
            let key = &entity.key;
            write!(
                f,
                "({:?}, {:?})",
                key.partition_key().as_str(),
                key.row_key().as_str()
            )?;
        } else if !self.entities.is_empty() {
            write!(f, ", {} changes", self.entities.len())?;
        }
        if let Some(query) = &self.query {
            let filter = query.filter.as_deref().unwrap_or("no filter");
            write!(f, ", {} ({filter})", query.access)?;
        }
        match (self.status, &self.error_code) {
            (Some(status), Some(code)) => write!(f, ": {status} {}", code.as_str())?,
            (Some(status), None) => write!(f, ": {status}")?,
            (None, _) => f.write_str(": no response")?,
        }
        if self.query.is_some() {
            write!(
                f,
                ", {} of {} entities",
                self.entities_returned, self.entities_examined
            )?;
        }
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        if self.fault.is_some() {
            f.write_str(", with a fault")?;
        }
        Ok(())
    }
}

/// Recorded requests, a slice of which can be chosen by conditions. Prints as one line for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRequests(Vec<RecordedRequest>);

impl RecordedRequests {
    /// The requests that fulfill a condition.
    #[must_use]
    pub fn filter(mut self, condition: impl FnMut(&RecordedRequest) -> bool) -> Self {
        self.0.retain(condition);
        self
    }

    /// The requests of an operation. The changes of a batch are not among them.
    #[must_use]
    pub fn op(self, op: Op) -> Self {
        self.filter(|request| request.op == Some(op))
    }

    /// The requests for a table and its entities.
    #[must_use]
    pub fn table(self, table: &str) -> Self {
        self.filter(|request| {
            let known = request.table.as_ref();
            known.is_some_and(|known| known.eq_ignore_ascii_case(table))
        })
    }

    /// The requests for entities of a partition, with the queries that are restricted to it.
    #[must_use]
    pub fn partition_key(self, partition_key: &str) -> Self {
        self.filter(|request| request.partition_key.as_deref() == Some(partition_key))
    }

    /// The reads that find their entities in this way.
    #[must_use]
    pub fn access(self, access: AccessClass) -> Self {
        self.filter(|request| request.access() == Some(access))
    }

    /// The requests with this status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        self.filter(|request| request.status == Some(status))
    }

    /// The requests that failed with this code.
    #[must_use]
    pub fn error_code(self, code: &ErrorCode) -> Self {
        self.filter(|request| request.error_code.as_ref() == Some(code))
    }

    /// The requests that are not the first with their client request id. Those of a client that
    /// sends no `x-ms-client-request-id`, or another one with each attempt, are not among them.
    #[must_use]
    pub fn retries(self) -> Self {
        self.filter(|request| request.attempt > 1)
    }

    /// The number of requests.
    pub const fn count(&self) -> usize {
        self.0.len()
    }
}

impl Deref for RecordedRequests {
    type Target = [RecordedRequest];

    fn deref(&self) -> &[RecordedRequest] {
        &self.0
    }
}

impl IntoIterator for RecordedRequests {
    type Item = RecordedRequest;
    type IntoIter = std::vec::IntoIter<RecordedRequest>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for RecordedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for request in &self.0 {
            writeln!(f, "{request}")?;
        }
        Ok(())
    }
}

/// How many requests a journal keeps.
const REQUESTS_MAX: usize = 100_000;
/// How many entities the requests of a journal name. A batch names up to 100.
const ENTITIES_MAX: usize = 300_000;
/// How many requests are read at once.
const NEWEST_MAX: usize = 1_000;
/// How many entities they name.
const NEWEST_ENTITIES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use tablesdk_protocol::EntityKey;

    use super::*;

    /// A request that names so many entities, with the same client request id each time.
    fn batch(entities: usize) -> RecordedRequest {
        let entity = RequestedEntity {
            op: Op::InsertEntity,
            key: EntityKey::new("Sales", "1").unwrap(),
        };
        let info = RequestInfo {
            op: Some(Op::Batch),
            table: Some("People".to_owned()),
            partition_key: Some("Sales".to_owned()),
            entities: vec![entity; entities],
            ..RequestInfo::unknown("devstoreaccount1")
        };
        RecordedRequest {
            status: Some(202),
            ..RecordedRequest::of(info, Some("id".to_owned()), Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn the_newest_requests_are_limited_by_their_number_and_their_entities() {
        let journal = Journal(Arc::default());
        let numbers = |after| -> Vec<_> {
            let newest = journal.newest(after).into_iter();
            newest.map(|request| request.number).collect()
        };
        assert_eq!(numbers(0), [0_u64; 0]);
        for _ in 0..3 {
            journal.0.add(batch(NEWEST_ENTITIES_MAX / 2));
        }
        assert_eq!(numbers(0), [2, 3]);
        assert_eq!(numbers(2), [3]);
        assert_eq!(numbers(3), [0_u64; 0]);
        assert_eq!(numbers(u64::MAX), [0_u64; 0]);
        journal.clear();
        for _ in 0..=NEWEST_MAX {
            journal.0.add(batch(1));
        }
        let expected: Vec<_> = (5..=1004).collect();
        assert_eq!(numbers(3), expected);
        assert_eq!(journal.last_number(), 1004);
    }

    #[test]
    fn a_journal_is_limited_by_the_entities_of_its_requests() {
        let recording = Recording::default();
        for _ in 0..=ENTITIES_MAX / 100 {
            recording.add(batch(100));
        }
        let recorded = recording.lock();
        assert_eq!(recorded.requests.len(), ENTITIES_MAX / 100);
        assert_eq!(recorded.entities, ENTITIES_MAX);
    }

    #[test]
    fn attempts_are_counted_beyond_those_that_are_forgotten() {
        let recording = Recording::default();
        for _ in 0..3 {
            recording.add(batch(ENTITIES_MAX / 2));
        }
        let attempts = |recording: &Recording| {
            let recorded = recording.lock();
            let attempts = recorded.requests.iter().map(|request| request.attempt);
            attempts.collect::<Vec<_>>()
        };
        assert_eq!(attempts(&recording), [2, 3]);
        // The last attempt is forgotten, and the id with it.
        let mut other = batch(ENTITIES_MAX);
        other.client_request_id = None;
        recording.add(other);
        recording.add(batch(0));
        assert_eq!(attempts(&recording), [1, 1]);
        assert_eq!(recording.lock().attempts.len(), 1);
    }
}
