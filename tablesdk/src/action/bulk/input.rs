//! The input of a bulk run: a stream of entities or keys, or of results with one.

use std::borrow::Borrow as _;
use std::error::Error as StdError;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tablesdk_protocol::IfMatch;

use self::sealed::Item as _;
use super::send::Verb;
use crate::action::write::encoded::EncodedEntity;
use crate::entity::key::{IntoEntityKey, check_standalone_key};
use crate::entity::standalone::check_no_entry;
use crate::entity::{Standalone, Stored};
use crate::error::Error;

/// An entity in the input of a [`Bulk`](super::Bulk): an entity, a reference to one, or a `Result`
/// with either.
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
///     let report = table.bulk().insert(entities).await?;
///     Ok(report.progress().written)
/// }
///
/// let employees = vec![Employee::new("Sales", "1", "Ada"), Employee::new("Sales", "2", "Grace")];
/// assert_eq!(load(&table, stream::iter(&employees)).await?, 2);
/// assert_eq!(load(&table, stream::iter(employees)).await?, 0, "they are there");
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written by a bulk run",
    label = "not an entity",
    note = "the items of the stream are entities, references to entities, or a `Result` with either; to write entities that were read, use `replace`, or map each with `Stored::into_inner`"
)]
pub trait BulkEntity<By = sealed::Value>: sealed::Item<By> {}

impl<By, T: sealed::Item<By>> BulkEntity<By> for T {}

/// A [`BulkEntity`] that is [`Standalone`], which the upserts of a [`Bulk`](super::Bulk) need.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be upserted by a bulk run",
    label = "not an entity, or one with indexes or copies",
    note = "the items of the stream are entities, references to entities, or a `Result` with either; to write entities that were read, use `replace`, or map each with `Stored::into_inner`",
    note = "an upsert does not know which entries of indexes and which copies are stale: use `insert`, `replace` or `delete_stored`, or `modify(key, …).or_insert(…)` for each"
)]
pub trait BulkStandalone<By = sealed::Value>: BulkEntity<By> {}

impl<By, T: sealed::Item<By, Entity: Standalone>> BulkStandalone<By> for T {}

/// An entity that was read, in the input of [`Bulk::replace`](super::Bulk::replace) and
/// [`Bulk::delete_stored`](super::Bulk::delete_stored): a [`Stored`], a reference to one, or a
/// `Result` with either.
///
/// With a `Result`, the input can fail, as a query or a file can. The first error ends the run,
/// after everything before it was sent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity that was read",
    label = "not a `Stored`",
    note = "the items of the stream are those of a query: `Stored`, references to it, or a `Result` with either"
)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait BulkStored: sealed::StoredItem {}

impl<T: sealed::StoredItem> BulkStored for T {}

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

/// The inputs with entities that were read.
pub(crate) fn stored<'a, T: BulkStored>(
    entities: impl BulkInput<Item = T, Stream: Send + 'a>,
    encode: fn(&Stored<T::Entity>) -> Result<EncodedEntity, Error>,
) -> Inputs<'a> {
    const { check_no_entry::<T::Entity>() }
    let inputs = entities.into_stream().map(move |entity| {
        let entity = entity.into_result()?;
        let etag = entity.borrow().etag().clone();
        let encoded = encode(entity.borrow());
        Ok(encoded.map(|entity| (entity, Some(IfMatch::ETag(etag)))))
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

    use super::{IntoEntityKey, SourceError};
    use crate::entity::{Stored, TableEntity, WritableEntity};

    /// Marks input that owns its entities.
    #[derive(Clone, Copy, Debug)]
    pub struct Value;

    /// Marks input that borrows its entities.
    #[derive(Clone, Copy, Debug)]
    pub struct Reference;

    // Without the parameter the implementations for `E` and `&E` overlap: another crate may
    // implement `WritableEntity` for a reference to one of its types.
    pub trait Item<By> {
        type Entity: WritableEntity;
        type Held: Borrow<Self::Entity>;
        fn into_result(self) -> Result<Self::Held, SourceError>;
    }

    impl<E: WritableEntity> Item<Value> for E {
        type Entity = E;
        type Held = E;
        fn into_result(self) -> Result<E, SourceError> {
            Ok(self)
        }
    }

    impl<'e, E: WritableEntity> Item<Reference> for &'e E {
        type Entity = E;
        type Held = &'e E;
        fn into_result(self) -> Result<&'e E, SourceError> {
            Ok(self)
        }
    }

    impl<T: WritableEntity, X: Into<SourceError>> Item<Value> for Result<T, X> {
        type Entity = T;
        type Held = T;
        fn into_result(self) -> Result<T, SourceError> {
            self.map_err(Into::into)
        }
    }

    impl<'e, T: WritableEntity, X: Into<SourceError>> Item<Reference> for Result<&'e T, X> {
        type Entity = T;
        type Held = &'e T;
        fn into_result(self) -> Result<&'e T, SourceError> {
            self.map_err(Into::into)
        }
    }

    pub trait StoredItem {
        type Entity: TableEntity;
        type Held: Borrow<Stored<Self::Entity>>;
        fn into_result(self) -> Result<Self::Held, SourceError>;
    }

    impl<E: TableEntity> StoredItem for Stored<E> {
        type Entity = E;
        type Held = Self;
        fn into_result(self) -> Result<Self, SourceError> {
            Ok(self)
        }
    }

    impl<E: TableEntity> StoredItem for &Stored<E> {
        type Entity = E;
        type Held = Self;
        fn into_result(self) -> Result<Self, SourceError> {
            Ok(self)
        }
    }

    impl<E: TableEntity, X: Into<SourceError>> StoredItem for Result<Stored<E>, X> {
        type Entity = E;
        type Held = Stored<E>;
        fn into_result(self) -> Result<Stored<E>, SourceError> {
            self.map_err(Into::into)
        }
    }

    impl<'e, E: TableEntity, X: Into<SourceError>> StoredItem for Result<&'e Stored<E>, X> {
        type Entity = E;
        type Held = &'e Stored<E>;
        fn into_result(self) -> Result<&'e Stored<E>, SourceError> {
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
