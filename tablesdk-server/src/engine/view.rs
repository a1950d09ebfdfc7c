//! Reads tables and entities from a snapshot of the storage, with the layout of keys and records.
//!
//! The returned values are borrowed from the stored bytes. This module knows neither conditions nor
//! filters nor HTTP.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use tablesdk_protocol::wire::json::{EntityHead, StoredProperty};
use tablesdk_protocol::{
    CorsRule, EntityKey, Guid, ServiceProperties, SignedIdentifier, TableName, Timestamp, ValueRef,
};

use super::catalog::{Catalog, Values as Cached};
use super::entity_codec::Record;
use super::key_codec::{self, KeyReader, Table, TableId};
use super::{Failure, Rejection, settings};
use crate::flavor::Flavor;
use crate::storage::{PartialSnapshot, Records, Slice, Snapshot, StorageError};

/// The tables of all accounts at one moment.
pub(crate) struct View {
    source: Source,
    catalog: Arc<Catalog>,
}

/// Where the records come from.
enum Source {
    /// A storage that this server alone uses: all of them are there.
    Local(Box<dyn Snapshot>),
    /// One that servers share: they must be fetched first.
    Shared(Box<PartialSnapshot>),
}

impl View {
    /// A view of a local storage.
    pub(super) fn local(snapshot: Box<dyn Snapshot>, catalog: &Arc<Catalog>) -> Self {
        Self {
            source: Source::Local(snapshot),
            catalog: Arc::clone(catalog),
        }
    }

    /// A view of a storage that servers share.
    pub(super) fn shared(partial: PartialSnapshot, catalog: &Arc<Catalog>) -> Self {
        Self {
            source: Source::Shared(Box::new(partial)),
            catalog: Arc::clone(catalog),
        }
    }

    /// The fetched part of a storage that servers share.
    pub(super) fn partial(&self) -> Option<&PartialSnapshot> {
        match &self.source {
            Source::Local(_) => None,
            Source::Shared(partial) => Some(partial),
        }
    }

    fn epoch(&self) -> Option<u64> {
        match &self.source {
            Source::Local(snapshot) => snapshot.epoch(),
            Source::Shared(_) => None,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        match &self.source {
            Source::Local(snapshot) => snapshot.get(key),
            Source::Shared(partial) => partial.get(key),
        }
    }

    /// Keys and records as they are stored.
    pub(super) fn records(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        match &self.source {
            Source::Local(snapshot) => snapshot.range(start, end),
            Source::Shared(partial) => partial.range(start, end),
        }
    }

    /// The table with a name, in upper or lower case.
    // SERVICE: the tables of metrics always exist, and lists do not contain them. This server
    // measures nothing, so they are empty.
    pub(crate) fn table(
        &self,
        account: &str,
        name: &TableName,
    ) -> Result<Option<Table>, StorageError> {
        if name.is_system() {
            return Ok(Some(Table {
                id: TableId::NONE,
                name: name.as_str().to_owned(),
            }));
        }
        let key = key_codec::table_key(account, name);
        let record = match &self.source {
            Source::Local(snapshot) => snapshot.get(&key)?,
            Source::Shared(partial) => partial.get_or_guess(&key)?,
        };
        record.as_deref().map(key_codec::read_table).transpose()
    }

    /// Reads what was asked for and is not there yet, all at one moment. Returns whether there was
    /// any: then its caller must ask again from the start. Never where all records are local.
    pub(crate) async fn fetch_missing(&self) -> Result<bool, StorageError> {
        match self.partial() {
            // A round trip takes longer than its memory, and most requests need none.
            Some(partial) => Box::pin(partial.fetch_missing()).await,
            None => Ok(false),
        }
    }

    /// Reads more of the range whose next entity was not fetched. Returns false if all records are
    /// local.
    pub(crate) async fn fetch_next(&self) -> Result<bool, StorageError> {
        match self.partial() {
            Some(partial) => Box::pin(partial.fetch_next()).await,
            None => Ok(false),
        }
    }

    /// Names the entities that are read next, so that they are read together.
    pub(super) fn announce_entities<'k>(
        &self,
        table: TableId,
        keys: impl IntoIterator<Item = &'k EntityKey>,
    ) {
        let keys = keys.into_iter();
        self.announce(keys.map(|key| key_codec::entity_key(table, key)));
    }

    /// The same, for entities that probably do not exist.
    pub(super) fn presume_absent<'k>(
        &self,
        table: TableId,
        keys: impl IntoIterator<Item = &'k EntityKey>,
    ) {
        if let Some(partial) = self.partial() {
            let keys = keys.into_iter();
            partial.presume_absent(keys.map(|key| key_codec::entity_key(table, key)));
        }
    }

    /// Names other records that are read next, so that they are read together.
    pub(super) fn announce(&self, keys: impl IntoIterator<Item = Vec<u8>>) {
        if let Some(partial) = self.partial() {
            partial.announce(keys.into_iter());
        }
    }

    /// Names a range of entities or tables that is read next: see
    /// [`PartialSnapshot::announce_range`].
    pub(super) fn announce_range(
        &self,
        start: &[u8],
        end: &[u8],
        records_max: usize,
        reads_ahead: bool,
    ) {
        if let Some(partial) = self.partial() {
            partial.announce_range(start, end, records_max, reads_ahead);
        }
    }

    /// The id of the table of an operation on entities, which must exist.
    pub(crate) fn require_table(
        &self,
        account: &str,
        name: &TableName,
    ) -> Result<TableId, Failure> {
        self.catalog.get(
            self.epoch(),
            |cached| table_of(cached, account, name),
            || {
                let table = self.table(account, name)?;
                Ok(table.ok_or(Rejection::TableNotFound)?.id)
            },
            |cached, id| {
                let tables = cached.tables.value(account.into());
                tables.insert(name.clone(), *id);
            },
        )
    }

    /// The tables of an account from that lower-cased name on, ordered by lower-cased names. Where
    /// a table is not fetched, the last item is [`StorageError::NotFetched`].
    pub(super) fn tables(
        &self,
        account: &str,
        from: &str,
    ) -> impl Iterator<Item = Result<Table, StorageError>> {
        let start = key_codec::table_key_from(account, from);
        let records = self.records(&start, &key_codec::tables_end(account));
        records.map(|record| key_codec::read_table(&record?.1))
    }

    /// Until when the name of a deleted table is reserved.
    pub(super) fn deleted_until(
        &self,
        account: &str,
        name: &TableName,
    ) -> Result<Option<Timestamp>, StorageError> {
        let record = self.get(&key_codec::deleted_table_key(account, name))?;
        let record = record.as_deref();
        record
            .map(|record| key_codec::read_time(record, "deleted table"))
            .transpose()
    }

    /// The keys of the reservations of an account, and until when they hold.
    pub(super) fn deleted_tables(
        &self,
        account: &str,
    ) -> impl Iterator<Item = Result<(Slice<'_>, Timestamp), StorageError>> {
        let (start, end) = key_codec::deleted_tables(account);
        let records = self.records(&start, &end);
        records.map(|record| {
            let (key, record) = record?;
            Ok((key, key_codec::read_time(&record, "deleted table")?))
        })
    }

    /// The stored access policies of a table.
    pub(crate) fn table_acl(&self, table: TableId) -> Result<Vec<SignedIdentifier>, StorageError> {
        let record = self.get(&key_codec::acl_key(table))?;
        record.map_or_else(|| Ok(Vec::new()), |record| settings::read_acl(&record))
    }

    /// The same, shared by all requests.
    pub(crate) fn policies(&self, table: TableId) -> Result<Arc<[SignedIdentifier]>, StorageError> {
        self.catalog.get(
            self.epoch(),
            |cached| cached.policies.get(&table).cloned(),
            || Ok(self.table_acl(table)?.into()),
            |cached, policies| cached.policies.insert(table, Arc::clone(policies)),
        )
    }

    /// The CORS rules of an account, shared by all requests.
    pub(crate) fn cors_rules(&self, account: &str) -> Result<Arc<[CorsRule]>, StorageError> {
        self.catalog.get(
            self.epoch(),
            |cached| cached.cors_rules.get(account).cloned(),
            || {
                let properties = self.stored_properties(account)?;
                let rules = properties.and_then(|properties| properties.cors);
                Ok(rules.unwrap_or_default().into())
            },
            |cached, rules| cached.cors_rules.insert(account.into(), Arc::clone(rules)),
        )
    }

    /// The properties of an account's service, all of them.
    pub(crate) fn service_properties(
        &self,
        flavor: Flavor,
        account: &str,
    ) -> Result<ServiceProperties, StorageError> {
        let stored = self.stored_properties(account)?;
        Ok(stored.unwrap_or_else(|| flavor.initial_properties()))
    }

    /// The same, if any were set.
    fn stored_properties(&self, account: &str) -> Result<Option<ServiceProperties>, StorageError> {
        let record = self.get(&key_codec::properties_key(account))?;
        let record = record.as_deref();
        record.map(settings::read_properties).transpose()
    }

    /// The deleted tables that are not cleaned up yet, from this id on.
    pub(super) fn deleted_table_ids(
        &self,
        from: TableId,
    ) -> impl Iterator<Item = Result<TableId, StorageError>> {
        let records = self.records(&key_codec::clean_up_key(from), key_codec::CLEAN_UPS_END);
        records.map(|record| key_codec::read_clean_up_key(&record?.0))
    }

    /// The server that cleans up a shared storage, and until when.
    pub(super) fn clean_up_lease(&self) -> Result<Option<(Guid, Timestamp)>, StorageError> {
        let record = self.get(key_codec::CLEAN_UP_LEASE)?;
        record.as_deref().map(key_codec::read_lease).transpose()
    }

    /// The id of the next new table.
    pub(super) fn next_table_id(&self) -> Result<TableId, StorageError> {
        match self.get(key_codec::NEXT_TABLE_ID)? {
            Some(record) => key_codec::read_table_id(&record),
            None => Ok(TableId(1)),
        }
    }

    /// The record under the key of an entity.
    pub(super) fn record(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        self.get(key)
    }

    /// The entity with that key.
    pub(crate) fn entity(
        &self,
        table: TableId,
        key: &EntityKey,
    ) -> Result<Option<StoredEntity<'_>>, StorageError> {
        let record = self.get(&key_codec::entity_key(table, key))?;
        Ok(record.map(|record| StoredEntity { record }))
    }

    /// Passes the entities whose keys lie in this range of bytes to a visitor, until it breaks.
    /// Returns a key before the next entity, if that must be fetched first.
    #[inline]
    pub(super) fn visit_entities(
        &self,
        start: &[u8],
        end: &[u8],
        mut visitor: impl FnMut(EntityBytes<'_>) -> Result<ControlFlow<()>, StorageError>,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        let mut visit = |key: &[u8], record: &[u8]| visitor(EntityBytes { key, record });
        match &self.source {
            Source::Local(snapshot) => snapshot.visit(start, end, &mut visit).map(|()| None),
            Source::Shared(partial) => partial.visit_fetched(start, end, &mut visit),
        }
    }
}

/// The id of a table that is in the cache.
pub(super) fn table_of(cached: &Cached, account: &str, name: &TableName) -> Option<TableId> {
    cached.tables.get(account)?.get(name).copied()
}

/// An entity without its key, as its stored bytes.
#[derive(Clone, Debug)]
pub(crate) struct StoredEntity<'s> {
    record: Slice<'s>,
}

impl StoredEntity<'_> {
    /// Reads only the timestamp. The key is that by which the entity was found.
    pub(crate) fn open<'e>(&'e self, key: &'e EntityKey) -> Result<Entity<'e>, StorageError> {
        Ok(Entity {
            partition_key: key.partition_key().as_str().into(),
            row_key: key.row_key().as_str().into(),
            record: Record::open(&self.record)?,
        })
    }
}

/// An entity as its stored bytes, borrowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntityBytes<'s> {
    pub(super) key: &'s [u8],
    pub(super) record: &'s [u8],
}

impl<'s> EntityBytes<'s> {
    /// Reads only the key and the timestamp.
    #[inline]
    pub(super) fn open<'e>(self, keys: &'e mut KeyReader) -> Result<Entity<'e>, StorageError>
    where
        's: 'e,
    {
        let (partition_key, row_key) = keys.read(self.key)?;
        Ok(Entity {
            partition_key: Cow::Borrowed(partition_key),
            row_key,
            record: Record::open(self.record)?,
        })
    }

    /// The value of a system property.
    pub(super) fn system_property(
        self,
        property: SystemProperty,
    ) -> Result<ValueRef<'s>, StorageError> {
        Ok(match property {
            SystemProperty::PartitionKey => {
                ValueRef::String(key_codec::read_entity_key(self.key)?.0)
            }
            SystemProperty::RowKey => ValueRef::String(key_codec::read_entity_key(self.key)?.1),
            SystemProperty::Timestamp => ValueRef::DateTime(Record::open(self.record)?.timestamp()),
        })
    }
}

/// A property that every entity has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemProperty {
    PartitionKey,
    RowKey,
    Timestamp,
}

impl SystemProperty {
    /// The one with that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "PartitionKey" => Some(Self::PartitionKey),
            "RowKey" => Some(Self::RowKey),
            "Timestamp" => Some(Self::Timestamp),
            _ => None,
        }
    }
}

/// An entity, borrowed from its stored bytes.
#[derive(Clone, Debug)]
pub(crate) struct Entity<'a> {
    partition_key: Cow<'a, str>,
    row_key: Cow<'a, str>,
    record: Record<'a>,
}

impl<'a> Entity<'a> {
    /// Key and timestamp.
    pub(crate) fn head(&self) -> EntityHead<'_> {
        EntityHead {
            partition_key: &self.partition_key,
            row_key: &self.row_key,
            timestamp: self.record.timestamp(),
        }
    }

    /// The version.
    #[cfg(test)]
    pub(crate) fn etag(&self) -> tablesdk_protocol::ETag {
        self.record.etag()
    }

    /// The properties, in order.
    pub(crate) fn properties(
        &self,
    ) -> impl Iterator<Item = Result<StoredProperty<'a>, StorageError>> + use<'a> {
        self.record.properties()
    }

    /// All properties in the form of responses with metadata.
    pub(crate) const fn json(&self) -> &'a [u8] {
        self.record.json()
    }

    /// The value of a property.
    #[cfg(test)]
    pub(crate) fn property(&self, name: &str) -> Option<ValueRef<'_>> {
        self.record.property(name)
    }

    #[cfg(test)]
    pub(super) const fn record(&self) -> &Record<'a> {
        &self.record
    }
}
