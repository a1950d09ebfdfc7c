//! A counter for many writers. See [`Counter`].

mod shard;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::TryStreamExt as _;
use tablesdk_protocol::{EntityKey, Guid, TransportError};
use tokio::task::yield_now;

use self::shard::{COUNT, Shard, Writer};
use crate::action::{found_after, get_now};
use crate::client::TableClient;
use crate::entity::key::IntoEntityKey;
use crate::entity::{DynamicEntity, EntityError};
use crate::error::{CurrentState, Error};
use crate::random::random_guid;
use crate::shared_call::SharedCall;

/// A number that many clients add to at the same time, such as the views of a page.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Views");
/// # table.create_table().await?;
/// use tablesdk::counter::Counter;
///
/// let views = Counter::new(&table, ("home", "views"));
/// views.add(1).await?;
/// // Calls at the same time are one request.
/// tokio::try_join!(views.add(1), views.add(1), views.add(1))?;
/// assert_eq!(views.value().await?, 4);
/// # Ok(())
/// # }
/// ```
///
/// The number is the sum of several entities, the *shards*. A client stays at one of them until
/// another client writes the same one, so clients seldom conflict.
///
/// # What it guarantees
///
/// * An amount whose [`add`](Self::add) succeeded is counted exactly once, whatever responses are
///   lost. A shard lists the clients that wrote it last, with the number of the last write of each.
///   A client that lost a response finds there whether its write was carried out.
/// * After [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), the amount is counted
///   once or not at all: by now, or when a request arrives late. After another error, it is not
///   counted.
/// * [`value`](Self::value) contains all amounts that were counted before the call. Of amounts that
///   are added meanwhile, it contains some.
///
/// It does not change in one transaction with other entities. A number that has to is a property of
/// an entity, which [`modify`](TableClient::modify) or a [`transaction`](TableClient::transaction)
/// changes.
///
/// Share one `Counter` between all tasks of a program, such as in an `Arc`.
pub struct Counter {
    client: Arc<Client>,
    shards: u8,
}

/// The state that the callers of a counter share.
struct Client {
    table: TableClient,
    key: Result<EntityKey, EntityError>,
    /// The sum that the next request writes.
    next: Mutex<Option<Sum>>,
    session: tokio::sync::Mutex<Session>,
    /// The write of one sum, and of another one that dropped callers have left.
    write: SharedCall<()>,
}

/// Amounts that are written together.
struct Sum {
    amount: i128,
    outcome: SumResult,
}

/// The result, for each caller that has added to a sum.
type SumResult = Arc<OnceLock<Result<(), Error>>>;

/// The writes of this client, one after the other.
struct Session {
    id: Guid,
    /// How many sums it has begun to write.
    number: u64,
    shard: Option<u8>,
    /// The shard as it is stored, if it is known.
    stored: Option<Shard>,
    /// The sum that is being written. A caller that is dropped leaves it to the next one.
    sum: Option<Sum>,
    /// The writers of the shard when the sum was sent.
    sent_over: Option<Vec<Writer>>,
    /// True if a request of the sum can still be carried out.
    is_in_flight: bool,
}

impl Counter {
    /// The counter with that key. Sends nothing.
    ///
    /// The row keys of its shards are the one of the key with `~00`, `~01` and so on. They are
    /// created when they are first written, and must never be deleted.
    pub fn new(table: &TableClient, key: impl IntoEntityKey) -> Self {
        let client = Client {
            // Amounts that were counted are read.
            table: table.at_primary().for_pattern(),
            key: key.into_entity_key(),
            next: Mutex::new(None),
            session: tokio::sync::Mutex::new(Session {
                id: random_guid(),
                number: 0,
                shard: None,
                stored: None,
                sum: None,
                sent_over: None,
                is_in_flight: false,
            }),
            write: SharedCall::new(),
        };
        Self {
            client: Arc::new(client),
            shards: SHARDS,
        }
    }

    /// The number of shards, 1 to 100; 8 by default. As many as there are clients is more than
    /// enough. Clients may differ, and change it at any time, because [`value`](Self::value) reads
    /// all shards that exist.
    #[must_use]
    pub const fn shards(mut self, shards: u8) -> Self {
        self.shards = shards;
        self
    }

    /// Adds an amount, which may be negative.
    ///
    /// It sends one request; two the first time; and four when another client has written the
    /// shard. Calls at the same time are written together, and so are those that come while a
    /// request is in flight, by the next one. They share its result.
    ///
    /// If the future is dropped, the amount may be counted or not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the service does not
    /// respond, when a call fails in another way while an earlier request of it may still arrive,
    /// and when 32 other clients have written the shard since this one has read it.
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) when the entity of a shard is not that of a
    /// counter, or its count would exceed 64 bits. [`ErrorKind::Input`](crate::ErrorKind::Input)
    /// for a number of shards that is out of range.
    pub async fn add(&self, amount: i64) -> Result<(), Error> {
        let outcome = self.client.join(amount);
        // Callers that are ready to run add their amounts to the same request.
        yield_now().await;
        // Twice at most: the request in flight when the amount was added, and the one that writes
        // it.
        loop {
            if let Some(result) = outcome.get() {
                return result.as_ref().copied().map_err(Error::for_another_caller);
            }
            let write = || {
                let (client, shards) = (Arc::clone(&self.client), self.shards);
                async move { client.write_next(shards).await }
            };
            self.client.write.join(write).await;
        }
    }

    /// The sum of all shards: one request.
    ///
    /// # Errors
    ///
    /// The errors of a query; [`ErrorKind::Data`](crate::ErrorKind::Data) when the entity of a
    /// shard is not that of a counter, or the sum exceeds 64 bits.
    pub async fn value(&self) -> Result<i64, Error> {
        let operation = "read counter";
        let key = self.client.checked_key(operation, self.shards)?;
        let first = format!("{}~", key.row_key().as_str());
        // It sorts after all digits.
        let end = format!("{first}:");
        let query = self.client.table.query::<DynamicEntity>();
        let shards = query
            .partition(key.partition_key().as_str())
            .filter(|e| e.property("RowKey").ge(first.as_str()) & e.property("RowKey").lt(end))
            .select(|e| e.properties([COUNT]));
        let mut shards = shards.stream();
        let mut sum = 0_i128;
        while let Some(entity) = shards.try_next().await? {
            let number = entity.row_key().strip_prefix(&first).unwrap_or_default();
            // Others are shards of a counter whose name starts like a shard of this one.
            if number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()) {
                let count = Shard::count(&entity).map_err(Error::data);
                sum += i128::from(count.map_err(|error| self.client.located(operation, error))?);
            }
        }
        let sum = i64::try_from(sum);
        sum.map_err(|_| self.client.located(operation, Error::data(OutOfRange)))
    }
}

impl Client {
    /// Adds an amount to what the next request writes.
    fn join(&self, amount: i64) -> SumResult {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = next.get_or_insert_with(|| Sum {
            amount: 0,
            outcome: SumResult::default(),
        });
        sum.amount += i128::from(amount);
        Arc::clone(&sum.outcome)
    }

    fn next(&self) -> Option<Sum> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.take()
    }

    /// Writes the amounts that wait, after the sum that dropped callers have left.
    async fn write_next(&self, shards: u8) {
        let mut session = self.session.lock().await;
        if session.sum.is_some() {
            self.write_sum(&mut session, shards).await;
        }
        if let Some(sum) = self.next() {
            session.begin(sum);
            self.write_sum(&mut session, shards).await;
        }
    }

    async fn write_sum(&self, session: &mut Session, shards: u8) {
        let result = self.write(session, shards).await;
        if let Some(sum) = session.sum.take() {
            // Nobody else sets it: one task at a time has the session.
            let _ = sum.outcome.set(result);
        }
    }

    /// Writes the sum of the session. While a request of it can still be carried out, no error says
    /// that it is not counted.
    async fn write(&self, session: &mut Session, shards: u8) -> Result<(), Error> {
        match self.in_rounds(session, shards).await {
            Err(error) if session.is_in_flight => {
                Err(error.into_outcome_unknown(CurrentState::Unread))
            }
            result => result,
        }
    }

    async fn in_rounds(&self, session: &mut Session, shards: u8) -> Result<(), Error> {
        let key = self.checked_key(OPERATION, shards)?;
        let mut round = 1;
        loop {
            let key = session.shard_key(&key, shards);
            let key = key.map_err(|error| self.located(OPERATION, Error::input(error)))?;
            let data = |problem| self.located(OPERATION, Error::data(problem).with_key(&key));
            let stored = match session.stored.take() {
                Some(stored) => stored,
                None => {
                    let entity = get_now(self.table.table(), &key).await?;
                    Shard::of(entity.as_ref()).map_err(data)?
                }
            };
            let written = match session.is_counted_in(&stored) {
                Some(true) => {
                    session.stored = Some(stored);
                    return Ok(());
                }
                Some(false) => stored.plus(session.amount(), session.writer()),
                None => return Err(self.located(OPERATION, forgotten())),
            };
            let Some(written) = written else {
                let error = Error::data(OutOfRange).with_key(&key);
                session.stored = Some(stored);
                return Err(self.located(OPERATION, error));
            };
            session.sent_over = Some(stored.writers);
            // Also when the caller is dropped.
            let was_in_flight = std::mem::replace(&mut session.is_in_flight, true);
            let entity = written.to_entity(&key);
            let sent = match &stored.etag {
                Some(etag) => self.table.merge_if(&entity, etag).await,
                None => self.table.insert(&entity).await.map(|it| it.etag().clone()),
            };
            let error = match sent {
                Ok(etag) => {
                    let etag = Some(etag);
                    session.stored = Some(Shard { etag, ..written });
                    return Ok(());
                }
                Err(error) => error,
            };
            session.is_in_flight = was_in_flight || error.is_outcome_unknown();
            let (now, error) = found_after(self.table.table(), &key, error).await?;
            let now = Shard::of(now.as_ref()).map_err(data)?;
            let is_counted = session.is_counted_in(&now);
            // Under another ETag, the requests that failed cannot be carried out later.
            let is_refused = is_counted == Some(false) && now.etag != stored.etag;
            if is_refused {
                session.is_in_flight = false;
            }
            session.stored = Some(now);
            if is_refused {
                session.leave_shard(shards);
            }
            if round == ROUNDS && is_counted == Some(false) {
                return Err(error);
            }
            round += 1;
        }
    }

    fn checked_key(&self, operation: &'static str, shards: u8) -> Result<EntityKey, Error> {
        let key = self.key.clone();
        let key = key.map_err(|error| self.located(operation, Error::input(error)))?;
        if !(1..=SHARDS_MAX).contains(&shards) {
            let error = Error::input(format!("a counter has 1 to {SHARDS_MAX} shards"));
            return Err(self.located(operation, error.with_key(&key)));
        }
        Ok(key)
    }

    fn located(&self, operation: &'static str, error: Error) -> Error {
        let pipeline = &self.table.table().pipeline;
        pipeline.locate(error.with_operation(operation))
    }
}

impl Session {
    fn begin(&mut self, sum: Sum) {
        self.number += 1;
        self.sum = Some(sum);
        self.sent_over = None;
        self.is_in_flight = false;
    }

    fn amount(&self) -> i128 {
        self.sum.as_ref().map_or(0, |sum| sum.amount)
    }

    const fn writer(&self) -> Writer {
        Writer {
            id: self.id,
            number: self.number,
        }
    }

    /// Returns true if the shard has counted the sum; `None` if the shard does not show it.
    fn is_counted_in(&self, shard: &Shard) -> Option<bool> {
        match &self.sent_over {
            Some(before) => shard.has(self.writer(), before),
            None => Some(false),
        }
    }

    /// The key of the shard that the client writes.
    fn shard_key(&mut self, key: &EntityKey, shards: u8) -> Result<EntityKey, EntityError> {
        let shard = *self.shard.get_or_insert_with(|| fastrand::u8(..shards));
        let row_key = format!("{}~{shard:02}", key.row_key().as_str());
        Ok(EntityKey::new(key.partition_key().as_str(), row_key)?)
    }

    /// Goes to another shard, because another client writes this one.
    fn leave_shard(&mut self, shards: u8) {
        if let Some(shard) = self.shard.filter(|_| shards > 1) {
            self.shard = Some((shard + fastrand::u8(1..shards)) % shards);
            self.stored = None;
            self.sent_over = None;
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("table", &self.client.table)
            .field("key", &self.client.key)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

fn forgotten() -> Error {
    let problem = "32 other clients have written the shard since the write was sent, and it does not show the write any more";
    let error = Error::transport(TransportError::maybe_sent(problem));
    error.into_outcome_unknown(CurrentState::Unread)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the count does not fit into 64 bits")]
struct OutOfRange;

const OPERATION: &str = "add to counter";
const SHARDS: u8 = 8;
const SHARDS_MAX: u8 = 100;
/// How often a sum is sent that other clients were faster than.
const ROUNDS: u32 = 16;
