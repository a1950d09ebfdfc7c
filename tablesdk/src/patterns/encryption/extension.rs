//! Encrypts entities before they are sent, and decrypts what was read, for the types that have
//! encrypted properties.
//!
//! An entity is encrypted once: every attempt sends the same bytes, and an ambiguous outcome is
//! resolved by comparing them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, read_entity, read_page};

use super::Keyring;
use super::entity::Cipher;
use crate::action::extend::extension::{Extend, Open, Opened, Shape};
use crate::action::extend::ride::Ride;
use crate::entity::attached::Extensions;
use crate::entity::{EntityError, Schema};
use crate::error::Error;
use crate::patterns::order;
use crate::pipeline::Table;

/// Encrypts and decrypts the properties of a type.
struct Encrypts;

/// Adds that properties are encrypted, if the type has such. Called by the derive.
#[doc(hidden)]
pub fn encrypts(extensions: &mut Extensions<'_>) {
    if extensions.schema.encrypts() {
        extensions.add_once(&Encrypts);
    }
}

impl Extend for Encrypts {
    fn order(&self) -> u8 {
        order::ENCRYPTION
    }

    /// The keys are loaded again when they are too old, if a value of the filter is encrypted.
    fn load<'r>(
        &self,
        schema: &'static Schema,
        table: &'r Table,
        filter: Option<&Tree>,
    ) -> Option<BoxFuture<'r, Result<(), Error>>> {
        let is_needed = filter.is_some_and(|filter| schema.has_lookup_in(filter));
        is_needed.then(|| -> BoxFuture<'r, _> {
            Box::pin(async move { keyring(table, schema)?.refresh().await })
        })
    }

    fn shape(
        &self,
        schema: &'static Schema,
        table: &Table,
        query: &mut Shape,
    ) -> Result<(), Error> {
        if let Some(filter) = &mut query.filter
            && schema.has_lookup_in(filter)
        {
            *filter = Cipher::loaded(table, schema)?.lookups(filter);
        }
        let Some(select) = &mut query.select else {
            return Ok(());
        };
        // The properties that show whether a decrypted value is the one that a filter found.
        for property in schema.encrypted_names() {
            if let Some(lookup) = property.lookup
                && select.contains(&property.name)
                && !select.contains(&lookup)
            {
                select.push(lookup);
            }
        }
        Ok(())
    }

    /// A token must not reveal a value that is compared with an encrypted property, not even to
    /// those who try all values: it has a keyed hash of the value, which is what the property that
    /// finds it is made of. The key is the one that encrypted when the token was given out. All
    /// clients have a key before it encrypts, and keep it afterwards. So each accepts the token, in
    /// whatever order it has its keys.
    fn prints(
        &self,
        schema: &'static Schema,
        table: &Table,
        filter: &Tree,
    ) -> Result<Option<Vec<Tree>>, Error> {
        if !schema.has_lookup_in(filter) {
            return Ok(None);
        }
        let cipher = Cipher::loaded(table, schema)?;
        Ok(Some(cipher.lookups_by_key(filter)))
    }

    fn open<'r>(
        &self,
        schema: &'static Schema,
        table: &'r Table,
        response: Opened<'r>,
    ) -> Option<BoxFuture<'r, Result<Box<dyn Open>, Error>>> {
        let names = schema.encrypted_names();
        let is_selected = |name: &String| response.select.is_none_or(|it| it.contains(name));
        let is_needed = names.iter().any(|encrypted| is_selected(&encrypted.name));
        is_needed.then(|| -> BoxFuture<'r, _> {
            Box::pin(async move {
                let cipher = Cipher::for_response(table, schema, response).await?;
                Ok(Box::new(cipher) as Box<dyn Open>)
            })
        })
    }

    fn rider(&self, schema: &'static Schema) -> Option<Box<dyn Ride>> {
        Some(Box::new(EncryptionRider {
            schema,
            cipher: None,
        }))
    }
}

impl Open for Cipher {
    fn open(
        &self,
        entity: &JsonEntity<'_>,
        key: Option<&EntityKey>,
        partition: Option<&str>,
    ) -> Result<Bytes, EntityError> {
        self.decrypt(entity, key, partition)
    }
}

/// An entity whose properties are encrypted.
#[derive(Clone)]
struct EncryptionRider {
    schema: &'static Schema,
    /// With what they were encrypted, if they are.
    cipher: Option<Arc<Cipher>>,
}

impl Ride for EncryptionRider {
    fn clone_box(&self) -> Box<dyn Ride> {
        Box::new(self.clone())
    }

    /// The keys, when they are too old. Stored keys are few: they are one page.
    fn reads_first(&self, table: &Table) -> bool {
        let keyring = keyring(table, self.schema);
        self.cipher.is_none() && keyring.is_ok_and(|keyring| keyring.is_old())
    }

    fn transform<'r>(
        &'r mut self,
        table: &'r Table,
        key: &'r EntityKey,
        content: &'r Bytes,
    ) -> Option<BoxFuture<'r, Result<Bytes, Error>>> {
        if self.cipher.is_some() {
            return None;
        }
        Some(Box::pin(async move {
            let cipher = Cipher::for_write(table, self.schema).await?;
            let encrypted = cipher.encrypt(key, content).map_err(Error::input)?;
            self.cipher = Some(Arc::new(cipher));
            Ok(encrypted)
        }))
    }

    fn restore(&self, key: &EntityKey, stored: &Bytes) -> Result<Option<Bytes>, Error> {
        let Some(cipher) = &self.cipher else {
            return Ok(None);
        };
        let entity = read_entity(stored).map_err(Error::response)?;
        let decrypted = cipher.decrypt(&entity, Some(key), None);
        decrypted.map(Some).map_err(Error::entity)
    }
}

impl fmt::Debug for EncryptionRider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cipher {
            None => "Pending",
            Some(_) => "Encrypted",
        })
    }
}

impl Cipher {
    /// With the key that is current now.
    async fn for_write(table: &Table, schema: &Schema) -> Result<Self, Error> {
        keyring(table, schema)?.refresh().await?;
        Self::loaded(table, schema)
    }

    /// With the keys that were loaded last.
    fn loaded(table: &Table, schema: &Schema) -> Result<Self, Error> {
        let keyring = keyring(table, schema)?;
        Ok(Self::new(keyring.keys(), table.name(), schema))
    }

    /// With the keys of the properties of the entity, or of the entities of the page, in a
    /// response.
    async fn for_response(
        table: &Table,
        schema: &Schema,
        response: Opened<'_>,
    ) -> Result<Self, Error> {
        let cipher = Self::for_write(table, schema).await?;
        let mut ids = Vec::new();
        let add = |entity: &JsonEntity<'_>| {
            cipher.key_ids(entity, &mut ids);
            Ok::<_, JsonError>(())
        };
        // What cannot be read is reported when it is read.
        let _ = if response.is_page {
            read_page(response.content, add)
        } else {
            read_entity(response.content).as_ref().map_or(Ok(()), add)
        };
        let keyring = keyring(table, schema)?;
        keyring.fetch(&ids).await?;
        Ok(cipher.with_keys(keyring.keys()))
    }
}

fn keyring<'t>(table: &'t Table, schema: &Schema) -> Result<&'t Keyring, Error> {
    let keyring = table.pipeline.extra.as_deref();
    let keyring = keyring.and_then(|it| (it as &dyn Any).downcast_ref());
    keyring.ok_or_else(|| {
        let entity = schema.entity();
        Error::configuration_message(format!(
            "`{entity}` has encrypted properties, and this client has no keys: give it a keyring with `with_encryption`"
        ))
    })
}
