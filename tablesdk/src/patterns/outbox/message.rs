//! Messages: steps that a function of the program handles.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::drain::Outbox;
use super::entry::BODY;
use super::step::Step;
use crate::error::ClosureError;

/// A message that a transaction sends to a function of the program: see [`Outbox::on`].
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// Identifies the type of the message in the table, for all versions of the program.
    const NAME: &'static str;
}

/// A message with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<M> {
    message: M,
    id: String,
    partition: String,
    number: u64,
}

impl<M> Received<M> {
    /// The same string each time that this message is handled, and no other message has it. It can
    /// be a partition key or a row key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The partition of the transaction that sent it.
    pub fn partition(&self) -> &str {
        &self.partition
    }

    /// Grows from message to message of a partition.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The message alone.
    pub fn into_inner(self) -> M {
        self.message
    }
}

impl<M> Deref for Received<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.message
    }
}

impl Step {
    /// A message, which is stored as JSON of at most 32,768 UTF-16 units. [`Outbox::on`] has an
    /// example.
    pub fn message<M: Message>(message: &M) -> Self {
        Self::of_message(M::NAME, serde_json::to_string(message))
    }
}

impl Outbox {
    /// Handles the messages of a type with a function, one after the other for each partition.
    ///
    /// The function is called at least once for each message: again, if it fails, if the process
    /// ends, or if it takes longer than the 30 seconds after which another worker tries. So its
    /// effect must be the same the second time; [`Received::id`] identifies the message. Messages
    /// without a function wait for a worker that has one, and so do the steps behind them in their
    /// partition.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// use serde::{Deserialize, Serialize};
    /// use tablesdk::outbox::{Message, Outbox, Received, Step};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Hired {
    ///     name: String,
    /// }
    /// impl Message for Hired {
    ///     const NAME: &'static str = "hired";
    /// }
    ///
    /// let hired = Hired { name: "Ada".into() };
    /// table
    ///     .batch("Sales")
    ///     .insert(&Employee::new("Sales", "1", "Ada"))
    ///     .step(Step::message(&hired))
    ///     .await?;
    ///
    /// let outbox = Outbox::new(&table).on(async |hired: Received<Hired>| {
    ///     println!("{} (message {})", hired.name, hired.id());
    ///     Ok(())
    /// });
    /// assert_eq!(outbox.drain().await?.applied, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on<M, F, Fut>(self, handle: F) -> Self
    where
        M: Message,
        F: Fn(Received<M>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), ClosureError>> + Send + 'static,
    {
        let handler = move |entry: &super::entry::Entry| {
            let body = entry.text(BODY).unwrap_or_default();
            let handled = serde_json::from_str(body).map(|message| {
                handle(Received {
                    message,
                    id: entry.stamp().to_owned(),
                    partition: entry.key().partition_key().as_str().to_owned(),
                    number: entry.number,
                })
            });
            let handled: super::report::Handled = Box::pin(async move { handled?.await });
            handled
        };
        self.with_handler(M::NAME, Arc::new(handler))
    }
}

impl<M> fmt::Display for Received<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "message {} of the partition {:?}",
            self.number, self.partition
        )
    }
}
