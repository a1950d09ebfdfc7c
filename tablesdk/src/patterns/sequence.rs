//! Unique numbers for several clients. See [`Sequence`].

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tablesdk_protocol::{EntityKey, Guid};
use tokio::task::consume_budget;

use crate::client::TableClient;
use crate::entity::key::IntoEntityKey;
use crate::entity::{DynamicEntity, EntityError};
use crate::error::{CurrentState, Error};
use crate::random::random_guid;
use crate::shared_call::SharedCall;

/// Unique numbers, such as those of claims: an entity has the next number, and each client takes a
/// block of numbers at a time.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Numbers");
/// # table.create_table().await?;
/// use tablesdk::sequence::Sequence;
///
/// let claims = Sequence::new(&table, ("numbers", "claims")).block(100);
/// assert_eq!(claims.next().await?, 1);
/// let (second, third) = tokio::try_join!(claims.next(), claims.next())?;
/// assert_eq!((second, third), (2, 3));
///
/// // Another client has a block of its own.
/// let elsewhere = Sequence::new(&table, ("numbers", "claims")).block(100);
/// assert_eq!(elsewhere.next().await?, 101);
/// # Ok(())
/// # }
/// ```
///
/// # What it guarantees
///
/// * No number is given twice, by any client of the entity, whatever responses are lost. Each block
///   has an id, which shows a client without a response that it has taken the block. When that is
///   unknown, the client takes another one.
/// * The numbers of one `Sequence` increase. Those of several do not increase together, and there
///   are gaps: a client that ends leaves the rest of its block, and a lost response may leave a
///   whole block.
/// * The numbers are 1 to 9,223,372,036,854,775,806. Then [`next`](Self::next) fails.
///
/// The entity must never be deleted: the numbers would start again. To begin with another number,
/// insert the entity before, as [the guide](crate::guide::stored_forms#sequences) shows it.
///
/// Share one `Sequence` between all tasks of a program, such as in an `Arc`: a block is two
/// requests, however many callers wait for it.
pub struct Sequence {
    source: Arc<Source>,
    block: u32,
}

/// The state that the callers of a sequence share.
struct Source {
    table: TableClient,
    key: Result<EntityKey, EntityError>,
    queue: Mutex<Queue>,
    request: SharedCall<Result<(), Arc<Error>>>,
}

/// The numbers that this client has taken, and who waits for one.
struct Queue {
    numbers: Range<u64>,
    /// In the order in which they came. While there is one, no number is left.
    callers: VecDeque<Arc<OnceLock<u64>>>,
}

impl Sequence {
    /// The sequence whose entity has that key. Sends nothing. The entity is created with the first
    /// number.
    pub fn new(table: &TableClient, key: impl IntoEntityKey) -> Self {
        Self {
            source: Arc::new(Source {
                table: table.for_pattern(),
                key: key.into_entity_key(),
                queue: Mutex::new(Queue {
                    numbers: 0..0,
                    callers: VecDeque::new(),
                }),
                request: SharedCall::new(),
            }),
            block: 1,
        }
    }

    /// How many numbers the client takes at a time; 1 by default. Must not be 0. A large block
    /// costs fewer requests and leaves larger gaps.
    #[must_use]
    pub const fn block(mut self, numbers: u32) -> Self {
        self.block = numbers;
        self
    }

    /// Returns the next number.
    ///
    /// It sends two requests for a block of numbers, and nothing for a number of a block.
    /// Concurrent callers share the block, and the error when it cannot be taken. If all futures
    /// that wait for a block are dropped, its numbers may be left out.
    ///
    /// # Errors
    ///
    /// The errors of [`modify`](TableClient::modify); [`ErrorKind::Data`](crate::ErrorKind::Data)
    /// when the entity under the key is not that of a sequence, or has no more numbers. After an
    /// error, numbers may be left out, and the call can be made again.
    pub async fn next(&self) -> Result<u64, Error> {
        // A loop over the numbers of a block lets other tasks run, too.
        consume_budget().await;
        let caller = match self.source.queue().next() {
            Ok(number) => return Ok(number),
            Err(caller) => caller,
        };
        loop {
            if let Some(number) = caller.get() {
                return Ok(*number);
            }
            let request = self.source.request.join(|| {
                let (source, block) = (Arc::clone(&self.source), self.block);
                async move { source.refill(block).await.map_err(Arc::new) }
            });
            let taken = request.await;
            // It may have got its number from the request before.
            if let (Err(error), None) = (taken, caller.get()) {
                return Err(error.for_another_caller());
            }
        }
    }
}

impl Source {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn refill(&self, block: u32) -> Result<(), Error> {
        // The request before may have served the caller that begins this one.
        if self.queue().is_waited_for() {
            let numbers = self.take(block).await?;
            self.queue().serve(numbers);
        }
        Ok(())
    }

    /// Takes a block, which is not empty.
    async fn take(&self, block: u32) -> Result<Range<u64>, Error> {
        let located = |error: Error| {
            let pipeline = &self.table.table().pipeline;
            pipeline.locate(error.with_operation(OPERATION))
        };
        let key = self.key.clone();
        let key = key.map_err(|error| located(Error::input(error)))?;
        if block == 0 {
            let error = Error::input("a block of a sequence has at least one number");
            return Err(located(error.with_key(&key)));
        }
        let mut round = 1;
        // What was sent last.
        let mut sent: Option<Block> = None;
        loop {
            let first = || DynamicEntity::of_key(&key).with(NEXT, 1_i64);
            let advance = |entity: &mut DynamicEntity| {
                // A refusal may be that of a second copy of the request.
                if sent.as_ref().is_some_and(|sent| sent.is_in(entity)) {
                    return Err(IsTaken.into());
                }
                let numbers = numbers_from(entity.properties().read(NEXT).ok(), block)?;
                let id = random_guid();
                entity.properties_mut().set(NEXT, numbers.end);
                entity.properties_mut().set(BLOCK_ID, id);
                sent = Some(Block {
                    id,
                    numbers: numbers.clone(),
                });
                Ok(numbers)
            };
            let modify = self.table.modify(&key, advance).or_insert(first);
            let unsigned = |it: Range<i64>| it.start.unsigned_abs()..it.end.unsigned_abs();
            let error = match modify.await {
                Ok(modified) => return Ok(unsigned(modified.into_parts().1)),
                Err(error) => error,
            };
            if let Some(sent) = sent.take_if(|sent| sent.is_taken(&error)) {
                return Ok(unsigned(sent.numbers));
            }
            if let Some(problem) = error.downcast_ref::<SequenceProblem>() {
                return Err(located(Error::data(*problem).with_key(&key)));
            }
            // The service responds, and this block may be taken: the next one is not.
            let is_readable = !matches!(error.current(), None | Some(CurrentState::Unread));
            if !is_readable || round == ROUNDS {
                return Err(error);
            }
            round += 1;
        }
    }
}

impl Queue {
    /// The next number, or a place in the queue.
    fn next(&mut self) -> Result<u64, Arc<OnceLock<u64>>> {
        self.numbers.next().ok_or_else(|| {
            let caller = Arc::default();
            self.callers.push_back(Arc::clone(&caller));
            caller
        })
    }

    /// Forgets the callers that were dropped. Returns whether others wait.
    fn is_waited_for(&mut self) -> bool {
        self.callers.retain(|caller| Arc::strong_count(caller) > 1);
        !self.callers.is_empty()
    }

    /// Gives numbers to the callers that wait.
    fn serve(&mut self, numbers: Range<u64>) {
        self.numbers = numbers;
        let mut served = 0;
        if self.is_waited_for() {
            for (caller, number) in self.callers.iter().zip(&mut self.numbers) {
                let _ = caller.set(number);
                served += 1;
            }
        }
        self.callers.drain(..served);
    }
}

/// A block that a client takes.
struct Block {
    id: Guid,
    numbers: Range<i64>,
}

impl Block {
    /// Returns true if the error shows that the block is taken all the same.
    fn is_taken(&self, error: &Error) -> bool {
        match error.current() {
            Some(CurrentState::Present(now)) => now.read().is_ok_and(|now| self.is_in(&now)),
            _ => error.downcast_ref::<IsTaken>().is_some(),
        }
    }

    /// Returns true if the entity shows that the block is taken. A later block hides it.
    fn is_in(&self, entity: &DynamicEntity) -> bool {
        entity
            .properties()
            .read(BLOCK_ID)
            .is_ok_and(|id: Guid| id == self.id)
    }
}

/// The entity has the block of this client already.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the block is taken")]
struct IsTaken;

/// The block that starts with a number; a shorter one at the end of all numbers.
fn numbers_from(next: Option<i64>, numbers: u32) -> Result<Range<i64>, SequenceProblem> {
    match next {
        None | Some(..1) => Err(SequenceProblem::NotASequence),
        Some(i64::MAX) => Err(SequenceProblem::Exhausted),
        Some(next) => Ok(next..next.saturating_add(numbers.into())),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
enum SequenceProblem {
    #[error(
        "the entity is not that of a sequence: its property \"Next\" is not an Edm.Int64 of 1 or more"
    )]
    NotASequence,
    #[error("the sequence has no more numbers")]
    Exhausted,
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence")
            .field("table", &self.source.table)
            .field("key", &self.source.key)
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

const OPERATION: &str = "take numbers";
const NEXT: &str = "Next";
const BLOCK_ID: &str = "BlockId";
/// How many blocks are tried for one of which it is certain that it is taken.
const ROUNDS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_is_shorter_and_the_last_number_is_one_below_the_greatest() {
        assert_eq!(numbers_from(Some(1), 100), Ok(1..101));
        let count = |next, numbers| numbers_from(Some(next), numbers).unwrap().count();
        assert_eq!(count(i64::MAX - 100, 100), 100);
        assert_eq!(count(i64::MAX - 99, 100), 99);
        assert_eq!(count(i64::MAX - 1, u32::MAX), 1);
        assert_eq!(
            numbers_from(Some(i64::MAX), 1),
            Err(SequenceProblem::Exhausted)
        );
        for next in [None, Some(0), Some(i64::MIN)] {
            assert_eq!(numbers_from(next, 1), Err(SequenceProblem::NotASequence));
        }
    }
}
