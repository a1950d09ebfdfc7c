//! The input of a bulk run: a stream of entities or keys, or of results with one.

use std::borrow::Borrow as _;
use std::error::Error as StdError;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tablesdk_protocol::IfMatch;

use self::sealed::Entity as _;
use super::send::Verb;
use crate::action::write::encoded::EncodedEntity;
use crate::entity::Standalone;
use crate::entity::key::{IntoEntityKey, check_standalone_key};
use crate::error::Error;

/// An entity in the input of a [`Bulk`](super::Bulk): a [`Standalone`] entity, a reference to one,
/// or a `Result` with either.
///
/// With a `Result`, the input can fail, as a query or a file can. The first error ends the run,
/// after everything before it was sent.
///
/// `By` is deduced. A function of a program that takes any input has it as a type parameter of its
/// own:
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::stream::{self, Stream};
/// use tablesdk::TableClient;
/// use tablesdk::action::{BulkEntity, BulkError};
///
/// async fn load<By>(
///     table: &TableClient,
///     entities: impl Stream<Item: BulkEntity<By>> + Send,
/// ) -> Result<u64, BulkError> {
///     let report = table.bulk().upsert_replace(entities).await?;
///     Ok(report.progress().written)
/// }
///
/// let employees = vec![Employee::new("Sales", "1", "Ada"), Employee::new("Sales", "2", "Grace")];
/// assert_eq!(load(&table, stream::iter(&employees)).await?, 2);
/// assert_eq!(load(&table, stream::iter(employees)).await?, 2);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written by a bulk run",
    label = "not an entity",
    note = "the items of the stream are entities, references to entities, or a `Result` with either; to write entities that were read, map each with `Stored::into_inner`",
    note = "entities with indexes are not written in bulk: a bulk run does not know their entries; use `insert` or a `batch`"
)]
pub trait BulkEntity<By = sealed::Value>: sealed::Entity<By> {}

impl<By, T: sealed::Entity<By>> BulkEntity<By> for T {}

/// The key of an entity in the input of [`Bulk::delete`](super::Bulk::delete), or a `Result` with
/// one.
///
/// With a `Result`, the input can fail, as a query or a file can. The first error ends the run,
/// after everything before it was sent.
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait BulkKey: sealed::Key {}

impl<T: sealed::Key> BulkKey for T {}

/// A stream, the input of a [`Bulk`](super::Bulk). This trait exists so that the compiler can say
/// how a list becomes one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream",
    label = "not a stream",
    note = "`futures::stream::iter(…)` makes a stream of a list, an array or an iterator"
)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait BulkInput {
    /// The items of the stream.
    type Item;
    /// The stream.
    type Stream: Stream<Item = Self::Item>;

    /// The stream.
    fn into_stream(self) -> Self::Stream;
}

// Without it the message is that of `Stream`.
#[diagnostic::do_not_recommend]
impl<S: Stream> BulkInput for S {
    type Item = S::Item;
    type Stream = S;

    fn into_stream(self) -> S {
        self
    }
}

/// The error of an input.
pub(crate) type SourceError = Box<dyn StdError + Send + Sync>;

/// A change, encoded, or the error of this entity.
pub(crate) type Input = Result<(EncodedEntity, Option<IfMatch>), Error>;

pub(crate) type Inputs<'a> = BoxStream<'a, Result<Input, SourceError>>;

pub(crate) fn entities<'a, By: 'a>(
    verb: Verb,
    entities: impl BulkInput<Item: BulkEntity<By>, Stream: Send + 'a>,
) -> Inputs<'a> {
    let inputs = entities.into_stream().map(move |entity| {
        let encoded = EncodedEntity::inserted(verb.operation(), entity.into_result()?.borrow());
        Ok(encoded.map(|entity| (entity, None)))
    });
    inputs.boxed()
}

pub(crate) fn keys<'a, K: BulkKey>(
    keys: impl BulkInput<Item = K, Stream: Send + 'a>,
) -> Inputs<'a> {
    const { check_standalone_key::<K::Key>() }
    let inputs = keys.into_stream().map(|key| {
        let key = key.into_result()?.into_entity_key();
        let key = key.map_err(|error| Error::input(error).with_operation(Verb::Delete.operation()));
        Ok(key.map(|key| (EncodedEntity::of_key(key), None)))
    });
    inputs.boxed()
}

#[expect(
    unnameable_types,
    reason = "no other crate implements or calls these traits"
)]
mod sealed {
    use std::borrow::Borrow;

    use super::{IntoEntityKey, SourceError, Standalone};

    /// Marks input that owns its entities.
    #[derive(Clone, Copy, Debug)]
    pub struct Value;

    /// Marks input that borrows its entities.
    #[derive(Clone, Copy, Debug)]
    pub struct Reference;

    // Without the parameter the implementations for `E` and `&E` overlap: another crate may
    // implement `WritableEntity` for a reference to one of its types.
    pub trait Entity<By> {
        type Entity: Standalone;
        type Held: Borrow<Self::Entity>;
        fn into_result(self) -> Result<Self::Held, SourceError>;
    }

    impl<E: Standalone> Entity<Value> for E {
        type Entity = E;
        type Held = E;
        fn into_result(self) -> Result<E, SourceError> {
            Ok(self)
        }
    }

    impl<'e, E: Standalone> Entity<Reference> for &'e E {
        type Entity = E;
        type Held = &'e E;
        fn into_result(self) -> Result<&'e E, SourceError> {
            Ok(self)
        }
    }

    impl<T: Standalone, X: Into<SourceError>> Entity<Value> for Result<T, X> {
        type Entity = T;
        type Held = T;
        fn into_result(self) -> Result<T, SourceError> {
            self.map_err(Into::into)
        }
    }

    impl<'e, T: Standalone, X: Into<SourceError>> Entity<Reference> for Result<&'e T, X> {
        type Entity = T;
        type Held = &'e T;
        fn into_result(self) -> Result<&'e T, SourceError> {
            self.map_err(Into::into)
        }
    }

    pub trait Key {
        type Key: IntoEntityKey;
        fn into_result(self) -> Result<Self::Key, SourceError>;
    }

    impl<K: IntoEntityKey> Key for K {
        type Key = K;
        fn into_result(self) -> Result<K, SourceError> {
            Ok(self)
        }
    }

    impl<K: IntoEntityKey, X: Into<SourceError>> Key for Result<K, X> {
        type Key = K;
        fn into_result(self) -> Result<K, SourceError> {
            self.map_err(Into::into)
        }
    }
}
