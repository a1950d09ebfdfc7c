//! The input of a bulk run: a stream of entities or keys, or of results with one.

use std::error::Error as StdError;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tablesdk_protocol::IfMatch;

use self::sealed::{Entity as _, Key as _};
use super::send::Verb;
use crate::action::EncodedEntity;
use crate::entity::WritableEntity;
use crate::entity::key::IntoEntityKey;
use crate::error::Error;

/// An entity in the input of a [`Bulk`](super::Bulk): a [`WritableEntity`], or a `Result` with one.
///
/// With a `Result`, the input can fail, as a query or a file can. The first error ends the run, after everything before it was sent.
pub trait BulkEntity: sealed::Entity {}

impl<T: sealed::Entity> BulkEntity for T {}

/// The key of an entity in the input of [`Bulk::delete`](super::Bulk::delete), or a `Result` with one.
///
/// With a `Result`, the input can fail, as a query or a file can. The first error ends the run, after everything before it was sent.
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait BulkKey: sealed::Key {}

impl<T: sealed::Key> BulkKey for T {}

/// The error of an input.
pub(super) type SourceError = Box<dyn StdError + Send + Sync>;

/// A change, encoded, or the error of this entity.
pub(super) type Input = Result<(EncodedEntity, Option<IfMatch>), Error>;

pub(super) type Inputs<'a> = BoxStream<'a, Result<Input, SourceError>>;

pub(super) fn entities<'a>(
    verb: Verb,
    entities: impl Stream<Item: BulkEntity> + Send + 'a,
) -> Inputs<'a> {
    let inputs = entities.map(move |entity| {
        let encoded = EncodedEntity::new(verb.operation(), &entity.into_result()?);
        Ok(encoded.map(|entity| (entity, None)))
    });
    inputs.boxed()
}

pub(super) fn keys<'a>(keys: impl Stream<Item: BulkKey> + Send + 'a) -> Inputs<'a> {
    let inputs = keys.map(|key| {
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
    use super::{IntoEntityKey, SourceError, WritableEntity};

    pub trait Entity {
        type Entity: WritableEntity;
        fn into_result(self) -> Result<Self::Entity, SourceError>;
    }

    impl<E: WritableEntity> Entity for E {
        type Entity = E;
        fn into_result(self) -> Result<E, SourceError> {
            Ok(self)
        }
    }

    impl<T: WritableEntity, X: Into<SourceError>> Entity for Result<T, X> {
        type Entity = T;
        fn into_result(self) -> Result<T, SourceError> {
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
