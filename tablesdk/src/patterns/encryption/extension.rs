//! Encrypts entities before they are sent, and decrypts what was read, for the types that have
//! encrypted properties.
//!
//! An entity is encrypted once: every attempt sends the same bytes, and an ambiguous outcome is
//! resolved by comparing them.

use std::collections::BTreeSet;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, RawProperty, read_entity, read_page};

use super::entity::{Cipher, OlderEntities};
use super::marked::{Marked, keyring_of};
use super::older::{self, Metadata, Unreadable};
use super::provider::OtherKey;
use super::{KeyProvider, Keyring};
use crate::action::extend::extension::{Extend, Open, Opened, Shape};
use crate::action::extend::ride::Ride;
use crate::action::get_entity::{RawEntity, fetch};
use crate::entity::attached::{self, Extensions};
use crate::entity::{EntityError, Schema};
use crate::error::Error;
use crate::patterns::order;
use crate::pipeline::{Effect, Table};

/// Encrypts and decrypts the properties of a type.
struct Encrypts;

/// Refuses to write in plain text, as a variant of an enum, what the resolver encrypts in a
/// `DynamicEntity`.
struct RefusesPlain;

/// Adds that properties are encrypted, if the type has such. Called by the derive.
#[doc(hidden)]
pub fn encrypts(extensions: &mut Extensions<'_>) {
    if extensions.schema.encrypts() {
        extensions.add_once(&Encrypts);
    }
}

/// From now on, resolvers of keyrings take part in reads and writes of `DynamicEntity`.
pub(super) fn encrypt_dynamic() {
    attached::extend_dynamic(|extensions| {
        if extensions.schema.has_variants() {
            extensions.add_once(&RefusesPlain);
        } else {
            extensions.add_once(&Encrypts);
        }
    });
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
        let marked = Marked::of(schema, table);
        if marked.is_some_and(|marked| marked.may_have_one_of(select))
            && keyring(table, schema)?.older().is_some()
        {
            for name in [older::METADATA, older::NAMES] {
                if !select.iter().any(|selected| selected == name) {
                    select.push(name.to_owned());
                }
            }
        }
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
        let marked = Marked::of(schema, table)?;
        let selected = response.select;
        let is_needed = selected.is_none_or(|selected| marked.may_have_one_of(selected));
        is_needed.then(|| -> BoxFuture<'r, _> {
            Box::pin(async move {
                let cipher = Cipher::for_response(table, schema, marked, response).await?;
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
        self.cipher.is_none() && keyring.is_ok_and(Keyring::is_old)
    }

    fn transform<'r>(
        &'r mut self,
        table: &'r Table,
        key: &'r EntityKey,
        content: &'r Bytes,
        is_whole: bool,
    ) -> Option<BoxFuture<'r, Result<Bytes, Error>>> {
        if self.cipher.is_some() {
            return None;
        }
        let marked = Marked::of(self.schema, table)?;
        Some(Box::pin(async move {
            let keyring = keyring(table, self.schema)?;
            if !is_whole && keyring.older().is_some() {
                check_is_not_older(table, key).await?;
            }
            keyring.refresh().await?;
            let cipher = Cipher::with_keys_of(keyring, table, marked);
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
    /// With the keys that were loaded last.
    fn loaded(table: &Table, schema: &Schema) -> Result<Self, Error> {
        let marked = Marked::ByType(schema.encrypted_names());
        Ok(Self::with_keys_of(keyring(table, schema)?, table, marked))
    }

    fn with_keys_of(keyring: &Keyring, table: &Table, marked: Marked) -> Self {
        let reads_older = keyring.older().is_some();
        Self::new(keyring.keys(), table.name(), marked, reads_older)
    }

    /// With the keys of the properties of the entity, or of the entities of the page, in a
    /// response.
    async fn for_response(
        table: &Table,
        schema: &Schema,
        marked: Marked,
        response: Opened<'_>,
    ) -> Result<Self, Error> {
        let keyring = keyring(table, schema)?;
        keyring.refresh().await?;
        let cipher = Self::with_keys_of(keyring, table, marked);
        let (mut ids, mut older) = (BTreeSet::new(), OlderEntities::new());
        let add = |entity: &JsonEntity<'_>| {
            cipher.key_ids(entity, &mut ids);
            if keyring.older().is_some()
                && let Ok(Some(metadata)) = entity.text(older::METADATA)
            {
                older.insert(metadata.to_owned(), Err(Unreadable));
            }
            Ok::<_, JsonError>(())
        };
        // What cannot be read is reported when it is read.
        let _ = if response.is_page {
            read_page(response.content, add)
        } else {
            read_entity(response.content).as_ref().map_or(Ok(()), add)
        };
        keyring.fetch(&Vec::from_iter(ids)).await?;
        let older = match keyring.older() {
            Some(provider) => Some(unwrapped(provider, older).await?),
            None => None,
        };
        Ok(cipher.with_keys(keyring.keys(), older))
    }
}

/// The entities with their keys, some at a time. The error is that of a provider that is not there;
/// an entity whose key it did not wrap is [`Unreadable`].
async fn unwrapped(
    provider: &dyn KeyProvider,
    entities: OlderEntities,
) -> Result<OlderEntities, Error> {
    let unwrapping = entities.into_keys().map(|text| async move {
        let Ok(metadata) = Metadata::parse(&text) else {
            return Ok((text, Err(Unreadable)));
        };
        match provider.unwrap(&metadata.key).await {
            Ok(key) => Ok((text, Ok(metadata.with_key(key)))),
            Err(error) if error.is::<OtherKey>() => Ok((text, Err(Unreadable))),
            Err(error) => Err(Error::credential(error)),
        }
    });
    let unwrapping = stream::iter(unwrapping).buffer_unordered(UNWRAPPED_AT_ONCE);
    unwrapping.try_collect().await
}

/// Refuses a part of an entity that an older SDK encrypted: the entity would have values of two
/// forms, and those of the old one would stay.
async fn check_is_not_older(table: &Table, key: &EntityKey) -> Result<(), Error> {
    let mut run = table.pipeline.begin(CHECK);
    let names = vec![older::METADATA.to_owned()];
    let found = fetch(&mut run, Effect::ReadNow, table, key, Some(names)).await;
    let checked = match found {
        Ok(RawEntity { content, .. }) => match read_entity(&content) {
            Ok(entity) if older::metadata(&entity).is_none() => Ok(()),
            Ok(_) => Err(Error::input(
                "an older SDK encrypted the entity, and a merge would leave its other values in the old form: replace it",
            )),
            Err(error) => Err(Error::response(error)),
        },
        Err(error) if error.is_not_found() => {
            run.note_expected_error(&error);
            Ok(())
        }
        Err(error) => Err(error),
    };
    run.end(checked)
}

impl Extend for RefusesPlain {
    fn order(&self) -> u8 {
        order::ENCRYPTION
    }

    fn rider(&self, schema: &'static Schema) -> Option<Box<dyn Ride>> {
        Some(Box::new(PlainRider(schema)))
    }
}

/// An entity of an enum with a variant that is a `DynamicEntity`.
#[derive(Clone, Debug)]
struct PlainRider(&'static Schema);

impl Ride for PlainRider {
    fn clone_box(&self) -> Box<dyn Ride> {
        Box::new(self.clone())
    }

    fn transform<'r>(
        &'r mut self,
        table: &'r Table,
        key: &'r EntityKey,
        content: &'r Bytes,
        _is_whole: bool,
    ) -> Option<BoxFuture<'r, Result<Bytes, Error>>> {
        let resolver = keyring_of(table)?.resolver_of_dynamic()?;
        let entity = read_entity(content).ok()?;
        let (partition_key, row_key) = (key.partition_key().as_str(), key.row_key().as_str());
        let plain = entity
            .properties()
            .map(RawProperty::name)
            .find(|name| resolver(partition_key, row_key, name) && !self.0.encrypts_as(name))?;
        let error = Error::input(format!(
            "{plain:?} is encrypted in a `DynamicEntity` by the resolver of the keyring, and `{}` would write it in plain text: write the `DynamicEntity` itself",
            self.0.entity()
        ));
        Some(Box::pin(ready(Err(error))))
    }
}

fn keyring<'t>(table: &'t Table, schema: &Schema) -> Result<&'t Keyring, Error> {
    keyring_of(table).ok_or_else(|| {
        let entity = schema.entity();
        Error::configuration_message(format!(
            "`{entity}` has encrypted properties, and this client has no keys: give it a keyring with `with_encryption`"
        ))
    })
}

/// A vault responds to some requests at a time.
const UNWRAPPED_AT_ONCE: usize = 8;
const CHECK: &str = "get entity";
