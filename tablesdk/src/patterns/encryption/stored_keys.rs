//! Keys that are stored in a table, wrapped by a provider.
//!
//! Each key is a row that is written once, and wrapped anew under its ETag. The row `current` says
//! which key encrypts; it is written under its ETag as well. A key is inserted, and known to be
//! stored, before anything names it. So a client that ends in between leaves a key that is not
//! used.

use std::sync::Arc;

use tablesdk_protocol::{Guid, Timestamp, Value};

use super::envelope::DataKey;
use super::keyring::{KeySource, Keyring, Keys, NEW_KEY_WAITS, SourceFuture};
use super::provider::{ContentKey, KeyProvider, WrappedKey};
use crate::client::TableClient;
use crate::entity::{DynamicEntity, EntityError, PropertyValue, Stored};
use crate::error::{CurrentState, Error};
use crate::random::random_guid;

impl Keyring {
    /// A keyring whose keys are stored in a table, wrapped by a provider. The first client makes
    /// the first key. The table should have no other entities. The first client needs the
    /// permission to add, update and delete in it, and all others the permission to read.
    ///
    /// ```
    #[doc = include_str!("../../docs/encrypted.md")]
    /// let keys = service.table("TablesdkKeys");
    /// keys.create_table().if_missing().await?;
    ///
    /// // Or a key in a vault: see `KeyProvider`.
    /// let provider = LocalKey::new("2024-01", [7; 32]);
    /// let table = table.with_encryption(Keyring::open(&keys, provider).await?);
    /// table.insert(&Employee::new("Sales", "1", "AB 12 34 56 C", "ada@contoso.com")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Two requests, three more for the first key. The keys are loaded again, with one request,
    /// when they are an hour old and when an entity has a key that is not loaded.
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `TableNotFound`;
    /// [`ErrorKind::Credential`](crate::ErrorKind::Credential) when the provider does not wrap or
    /// unwrap a key; [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) when the table
    /// has entities that are no keys.
    pub async fn open(table: &TableClient, provider: impl KeyProvider) -> Result<Self, Error> {
        table.table().pipeline.watch_service_time();
        let source = StoredKeys {
            table: table.at_primary(),
            provider: Box::new(provider),
        };
        if source.current().await?.is_none() {
            source.add(None).await?;
        }
        let now = source.now();
        let keys = source.keys(&[]).await?;
        Ok(Self::loaded(keys, Arc::new(source), now))
    }
}

struct StoredKeys {
    table: TableClient,
    provider: Box<dyn KeyProvider>,
}

impl KeySource for StoredKeys {
    fn now(&self) -> Timestamp {
        self.table.table().pipeline.service_now()
    }

    fn load<'a>(&'a self, known: &'a [DataKey]) -> SourceFuture<'a, Keys> {
        Box::pin(self.keys(known))
    }

    fn rotate(&self) -> SourceFuture<'_, ()> {
        Box::pin(async {
            let current = self.current().await?;
            self.add(current).await
        })
    }

    fn rewrap(&self) -> SourceFuture<'_, usize> {
        Box::pin(self.wrap_again())
    }
}

impl StoredKeys {
    async fn current(&self) -> Result<Option<Stored<DynamicEntity>>, Error> {
        self.table.get::<DynamicEntity>((PARTITION, CURRENT)).await
    }

    /// Makes a key, and then the current one of it, unless another client was faster.
    async fn add(&self, current: Option<Stored<DynamicEntity>>) -> Result<(), Error> {
        let mut key = ContentKey::new([0; 32]);
        getrandom::fill(&mut *key.0).expect("the operating system gives random bytes");
        let id = random_guid();
        let row = self.wrapped(id, &key).await?;
        // Its outcome must be known before the key is used.
        self.table.insert(&row).exactly_once().await?;
        let next = DynamicEntity::new(PARTITION, CURRENT).with(KEY, id);
        let is_first = current.is_none();
        let written = match current {
            None => self.table.insert(&next).await.map(drop),
            Some(mut current) => {
                let before = self.effective(&current)?;
                *current = next.with(BEFORE, before);
                self.table.replace(&mut current).await.map(drop)
            }
        };
        match written {
            Err(error) if error.is_conflict() || error.is_precondition_failed() => Ok(()),
            // The response was lost. No other client has made a key with this id, and any first key
            // will do.
            Err(error) => match error.current() {
                Some(CurrentState::Present(now)) if is_first || now.equals_sent() => Ok(()),
                _ => Err(error),
            },
            Ok(()) => Ok(()),
        }
    }

    /// The key that encrypts. A new one waits until every client has loaded it.
    fn effective(&self, current: &Stored<DynamicEntity>) -> Result<Guid, Error> {
        let key = read::<Guid>(&self.table, current, KEY)?;
        let before = match current.properties().get(BEFORE) {
            Some(Value::Guid(before)) => Some(*before),
            _ => None,
        };
        let is_known = current
            .timestamp()
            .is_some_and(|since| since.saturating_add(NEW_KEY_WAITS) <= self.now());
        Ok(before.filter(|_| !is_known).unwrap_or(key))
    }

    async fn keys(&self, known: &[DataKey]) -> Result<Keys, Error> {
        let rows = self.table.query::<DynamicEntity>().partition(PARTITION);
        let (mut all, mut effective) = (Vec::new(), None);
        for row in rows.collect().await? {
            if row.key().row_key().as_str() == CURRENT {
                effective = Some(self.effective(&row)?);
                continue;
            }
            let id = id_of(&self.table, &row)?;
            all.push(match known.iter().find(|known| known.id == id) {
                Some(known) => known.clone(),
                None => DataKey::new(id, self.unwrap(id, &row).await?.0),
            });
        }
        let current = all.iter().find(|key| Some(key.id) == effective).cloned();
        let current = current.ok_or_else(|| {
            malformed(
                &self.table,
                "it does not have the key that it says is current",
            )
        })?;
        Ok(Keys { current, all })
    }

    async fn wrap_again(&self) -> Result<usize, Error> {
        let rows = self.table.query::<DynamicEntity>().partition(PARTITION);
        let mut wrapped = 0;
        for mut row in rows.collect().await? {
            let is_current = row.key().row_key().as_str() == CURRENT;
            if is_current
                || read::<String>(&self.table, &row, WRAPPED_BY)? == self.provider.key_id()
            {
                continue;
            }
            let id = id_of(&self.table, &row)?;
            let key = self.unwrap(id, &row).await?;
            *row = self.wrapped(id, &key).await?;
            match self.table.replace(&mut row).await {
                Ok(_) => wrapped += 1,
                // Another client has wrapped it.
                Err(error) if error.is_precondition_failed() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(wrapped)
    }

    async fn wrapped(&self, id: Guid, key: &ContentKey) -> Result<DynamicEntity, Error> {
        let wrapped_by = self.provider.key_id();
        let wrapped = self.provider.wrap(key).await.map_err(Error::credential)?;
        let row = DynamicEntity::new(PARTITION, id.to_string());
        let row = row.with(WRAPPED, wrapped).with(WRAPPED_BY, wrapped_by);
        Ok(row.with(PROOF, key.proof_of(id)))
    }

    async fn unwrap(&self, id: Guid, row: &DynamicEntity) -> Result<ContentKey, Error> {
        let wrapped = WrappedKey {
            key_id: read(&self.table, row, WRAPPED_BY)?,
            bytes: read(&self.table, row, WRAPPED)?,
            algorithm: None,
        };
        let key = self.provider.unwrap(&wrapped).await;
        let key = key.map_err(Error::credential)?;
        // Otherwise, who may write the rows could exchange their keys, and values would be
        // encrypted with the key of another row.
        if read::<Vec<u8>>(&self.table, row, PROOF)? == key.proof_of(id) {
            Ok(key)
        } else {
            Err(malformed(&self.table, "a row has the key of another one"))
        }
    }
}

fn id_of(table: &TableClient, row: &Stored<DynamicEntity>) -> Result<Guid, Error> {
    let id = row.key().row_key().as_str().parse();
    id.map_err(|_| malformed(table, "the row key of a key is not a GUID"))
}

fn read<P: PropertyValue>(
    table: &TableClient,
    row: &DynamicEntity,
    name: &str,
) -> Result<P, Error> {
    let value = row.properties().read::<P>(name);
    value.map_err(|error: EntityError| malformed(table, &error.to_string()))
}

fn malformed(table: &TableClient, why: &str) -> Error {
    let name = table.name();
    let error = Error::configuration_message(format!("the keys in {name:?} cannot be read: {why}"));
    table.table().pipeline.locate(error)
}

const PARTITION: &str = "keys";
const CURRENT: &str = "current";
const KEY: &str = "Key";
const BEFORE: &str = "Before";
const WRAPPED: &str = "Wrapped";
const WRAPPED_BY: &str = "WrappedBy";
const PROOF: &str = "Proof";
