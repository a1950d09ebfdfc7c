//! Encrypts entities before they are sent, and decrypts what was read, for the types that have encrypted properties. All other types pay
//! for a constant that is `None`. The other files of an operation call this one and know nothing of keys.
//!
//! An entity is encrypted once, when its action is awaited: every attempt sends the same bytes, and an ambiguous outcome is resolved by
//! comparing them. Until then, the change of a batch has a body that no service accepts.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::filter::Filter;
use tablesdk_protocol::operation::EntityBody;
use tablesdk_protocol::operation::batch::Change;

use super::EncodedEntity;
use super::write::change::EntityChange;
#[cfg(feature = "encryption")]
pub(super) use crate::encryption::Cipher;
#[cfg(not(feature = "encryption"))]
use crate::entity::EntityError;
use crate::entity::Schema;
use crate::error::Error;
use crate::pipeline::Table;

/// What becomes of the properties of an entity before it is sent.
#[derive(Clone)]
pub(super) enum Encryption {
    /// The type encrypts none.
    None,
    /// Those that the type encrypts are not encrypted yet.
    Pending(&'static Schema),
    Done(Arc<Cipher>),
}

impl Encryption {
    pub(super) fn of(schema: Option<&'static Schema>) -> Self {
        schema.map_or(Self::None, Self::Pending)
    }

    /// What is stored, decrypted if it was encrypted here.
    pub(super) fn open(&self, key: &EntityKey, content: &Bytes) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Done(cipher) => open(cipher, key, content).map(Some),
            Self::None | Self::Pending(_) => Ok(None),
        }
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Pending(_) => "Pending",
            Self::Done(_) => "Done",
        })
    }
}

impl EncodedEntity {
    /// The entity as it is sent.
    pub(super) async fn seal(self, table: &Table) -> Result<Self, Error> {
        let Encryption::Pending(schema) = self.encryption else {
            return Ok(self);
        };
        let sealed = Box::pin(seal(table, schema, &self.key, &self.body)).await;
        let (body, encryption) = sealed.map_err(|error| error.with_key(&self.key))?;
        Ok(Self {
            body,
            encryption,
            ..self
        })
    }
}

impl EntityChange {
    /// Encrypts the properties of a change that was made before its action was awaited.
    pub(super) async fn seal(&mut self, table: &Table) -> Result<(), Error> {
        let (Encryption::Pending(schema), Some(plain)) = (&self.encryption, self.unsealed.take())
        else {
            return Ok(());
        };
        let sealed = Box::pin(seal(table, schema, &self.key, &plain)).await;
        let failed = |error: Error| error.for_change(self.operation).with_key(&self.key);
        let (body, encryption) = sealed.map_err(failed)?;
        match &mut self.change {
            Change::Delete(_) => {}
            Change::Insert(request) => request.entity = EntityBody::from_bytes(body),
            Change::Update(request) => request.entity = EntityBody::from_bytes(body),
        }
        self.encryption = encryption;
        Ok(())
    }
}

async fn seal(
    table: &Table,
    schema: &Schema,
    key: &EntityKey,
    body: &[u8],
) -> Result<(Bytes, Encryption), Error> {
    let cipher = Cipher::for_write(table, schema).await?;
    let body = cipher.seal(key, body).map_err(Error::input)?;
    Ok((body, Encryption::Done(Arc::new(cipher))))
}

/// The content of an entity that was read by its key, decrypted.
pub(super) async fn opened(
    table: &Table,
    schema: Option<&'static Schema>,
    key: &EntityKey,
    content: Bytes,
) -> Result<Bytes, Error> {
    match schema {
        None => Ok(content),
        Some(schema) => {
            Box::pin(async move {
                let cipher = Cipher::for_response(table, schema, &content, false).await?;
                open(&cipher, key, &content)
            })
            .await
        }
    }
}

/// The filter of a query with the values of encrypted properties as they are stored, by the keys that were loaded: as any of them stores
/// them, and as each of them does, beginning with the current one.
pub(super) fn with_lookups(
    table: &Table,
    schema: &Schema,
    filter: &Filter,
) -> Result<(Filter, Vec<Filter>), Error> {
    let cipher = Cipher::loaded(table, schema)?;
    Ok((cipher.lookups(filter), cipher.lookups_by_key(filter)))
}

/// Loads the keys again when they are too old.
pub(super) async fn refresh(table: &Table, schema: &Schema) -> Result<(), Error> {
    Cipher::for_write(table, schema).await.map(drop)
}

/// What decrypts the content of an entity with the keys that were loaded.
pub(super) fn open(cipher: &Cipher, key: &EntityKey, content: &Bytes) -> Result<Bytes, Error> {
    let entity = tablesdk_protocol::wire::json::read_entity(content).map_err(Error::response)?;
    let opened = cipher.open(&entity, Some(key), None);
    opened.map_err(Error::entity)
}

#[cfg(feature = "encryption")]
mod with_keys {
    use tablesdk_protocol::wire::json::{JsonEntity, JsonError, read_entity, read_page};

    use super::{Cipher, Error, Schema, Table};
    use crate::encryption::Keyring;

    impl Cipher {
        /// With the key that is current now.
        pub(in crate::action) async fn for_write(
            table: &Table,
            schema: &Schema,
        ) -> Result<Self, Error> {
            keyring(table, schema)?.refresh().await?;
            Self::loaded(table, schema)
        }

        /// With the keys that were loaded last.
        pub(in crate::action) fn loaded(table: &Table, schema: &Schema) -> Result<Self, Error> {
            let keyring = keyring(table, schema)?;
            Ok(Self::new(keyring.keys(), table.name(), schema))
        }

        /// With the keys of the properties of the entity, or of the entities of the page, in a response.
        pub(in crate::action) async fn for_response(
            table: &Table,
            schema: &Schema,
            content: &[u8],
            is_page: bool,
        ) -> Result<Self, Error> {
            let cipher = Self::for_write(table, schema).await?;
            let mut ids = Vec::new();
            let add = |entity: &JsonEntity<'_>| {
                cipher.key_ids(entity, &mut ids);
                Ok::<_, JsonError>(())
            };
            // What cannot be read is reported when it is read.
            let _ = if is_page {
                read_page(content, add)
            } else {
                read_entity(content).as_ref().map_or(Ok(()), add)
            };
            let keyring = keyring(table, schema)?;
            keyring.fetch(&ids).await?;
            Ok(cipher.with_keys(keyring.keys()))
        }
    }

    fn keyring<'t>(table: &'t Table, schema: &Schema) -> Result<&'t Keyring, Error> {
        table.pipeline.keyring.as_ref().ok_or_else(|| {
            let entity = schema.entity();
            Error::configuration_message(format!(
                "`{entity}` has encrypted properties, and this client has no keys: give it a keyring with `with_encryption`"
            ))
        })
    }
}

/// No type has encrypted properties.
#[cfg(not(feature = "encryption"))]
pub(super) enum Cipher {}

#[cfg(not(feature = "encryption"))]
impl Cipher {
    #[expect(clippy::unused_async, reason = "as with the feature")]
    pub(super) async fn for_write(_: &Table, _: &Schema) -> Result<Self, Error> {
        Err(Error::input(NEEDS_FEATURE))
    }

    pub(super) async fn for_response(
        table: &Table,
        schema: &Schema,
        _: &[u8],
        _: bool,
    ) -> Result<Self, Error> {
        Self::for_write(table, schema).await
    }

    pub(super) fn loaded(_: &Table, _: &Schema) -> Result<Self, Error> {
        Err(Error::input(NEEDS_FEATURE))
    }

    pub(super) fn lookups(&self, _: &Filter) -> Filter {
        match *self {}
    }

    pub(super) fn lookups_by_key(&self, _: &Filter) -> Vec<Filter> {
        match *self {}
    }

    pub(super) fn seal(&self, _: &EntityKey, _: &[u8]) -> Result<Bytes, EntityError> {
        match *self {}
    }

    pub(super) fn open(
        &self,
        _: &tablesdk_protocol::wire::json::JsonEntity<'_>,
        _: Option<&EntityKey>,
        _: Option<&str>,
    ) -> Result<Bytes, EntityError> {
        match *self {}
    }
}

#[cfg(not(feature = "encryption"))]
const NEEDS_FEATURE: &str = "`#[table(encrypt)]` needs the feature `encryption` of tablesdk";

/// The body of an entity whose properties are not encrypted yet: no service accepts it.
pub(super) const UNSEALED: Bytes = Bytes::from_static(b"\0");
