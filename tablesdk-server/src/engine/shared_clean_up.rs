//! Removes the entities of deleted tables from a storage that several servers share.
//!
//! One server at a time does this: the one whose lease is stored. A lease that is taken twice,
//! because the servers' clocks differ, does no harm: what is removed twice is gone. A server may
//! write an entity of a table a moment after another one deleted the table, because the write began
//! before. So the mark of a deleted table stays for some minutes, and the table is cleaned up once
//! more then.

use std::collections::HashSet;
use std::time::Duration;

use tablesdk_protocol::{Guid, Timestamp};

use super::Engine;
use super::key_codec::{self, TableId};
use crate::storage::{
    Committed, PartialSnapshot, Removed, SharedStorage, StorageError, WriteBatch,
};

/// The state of the clean-up of one server.
#[derive(Debug)]
pub(crate) struct SharedCleanUp {
    /// The id of this server in its lease.
    holder: Guid,
    /// The table whose entities were removed up to this key. The search for the next ones would
    /// step over all removed ones.
    within: Option<(TableId, Vec<u8>)>,
    /// The tables that have no entities any more, and whose marks are too young to be removed.
    empty: HashSet<TableId>,
}

impl SharedCleanUp {
    /// A clean-up that has done nothing yet.
    pub(crate) fn new() -> Self {
        let mut holder = [0; 16];
        getrandom::fill(&mut holder).expect("the operating system gives random bytes");
        Self {
            holder: Guid::from_bytes(holder),
            within: None,
            empty: HashSet::new(),
        }
    }

    /// Removes some entities of a deleted table, from a key on. Returns false if there is none.
    async fn remove_some(
        &mut self,
        storage: &dyn SharedStorage,
        table: TableId,
        start: Vec<u8>,
    ) -> Result<bool, StorageError> {
        let end = key_codec::entities_end(table);
        Ok(match storage.remove(start, end, ENTITIES_MAX).await? {
            Removed::Until(last) => {
                self.within = Some((table, key_codec::after(last)));
                true
            }
            Removed::All => {
                self.empty.insert(table);
                false
            }
        })
    }
}

impl Engine {
    /// One step of the clean-up of a shared storage. Returns whether another one may find something
    /// to do now.
    pub(crate) async fn shared_clean_up_step(
        &self,
        clean_up: &mut SharedCleanUp,
    ) -> Result<bool, StorageError> {
        let Some(storage) = self.storage.shared() else {
            return Ok(false);
        };
        let now = self.clock().next();
        if !self.hold_clean_up(&**storage, clean_up.holder, now).await? {
            (clean_up.within, clean_up.empty) = (None, HashSet::new());
            return Ok(false);
        }
        if let Some((table, start)) = clean_up.within.take() {
            clean_up.remove_some(&**storage, table, start).await?;
            return Ok(true);
        }
        let view = self.view();
        let marks = loop {
            let marks: Result<Vec<_>, _> = view
                .deleted_table_ids(TableId::NONE)
                .take(MARKS_MAX)
                .collect();
            if let Ok(marks) = &marks {
                view.announce(marks.iter().map(|mark| key_codec::clean_up_key(*mark)));
            }
            if !view.fetch_missing().await? {
                break marks?;
            }
        };
        clean_up.empty.retain(|table| marks.contains(table));
        for table in marks {
            let partial = view.partial();
            let marked =
                partial.and_then(|partial| partial.version(&key_codec::clean_up_key(table)));
            let marked = marked.and_then(|version| Timestamp::from_unix_ticks(version).ok());
            let is_old = marked.is_some_and(|marked| marked.saturating_add(MARK_TIME) < now);
            if !is_old && clean_up.empty.contains(&table) {
                continue;
            }
            let start = key_codec::entities_start(table);
            if clean_up.remove_some(&**storage, table, start).await? {
                return Ok(true);
            }
            if is_old {
                // Policies may have come late, too.
                for key in [key_codec::acl_key(table), key_codec::clean_up_key(table)] {
                    storage
                        .remove(key.clone(), key_codec::after(key), 1)
                        .await?;
                }
            }
        }
        storage.sweep().await
    }

    /// Takes or renews the lease. Returns false if another server has it.
    async fn hold_clean_up(
        &self,
        storage: &dyn SharedStorage,
        holder: Guid,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        let view = self.view();
        let lease = loop {
            let lease = view.clean_up_lease();
            if !view.fetch_missing().await? {
                break lease?;
            }
        };
        if let Some((of, until)) = lease {
            if of != holder && now < until {
                return Ok(false);
            }
            if of == holder && now.saturating_add(LEASE_TIME / 2) < until {
                return Ok(true);
            }
        }
        let mut batch = WriteBatch::default();
        let until = now.saturating_add(LEASE_TIME);
        batch.put(
            key_codec::CLEAN_UP_LEASE,
            key_codec::lease_record(holder, until),
        );
        let timestamp = self.next_timestamp(&view);
        let partial = view.partial();
        let conditional =
            |partial: &PartialSnapshot| partial.conditional(&batch, timestamp.unix_ticks());
        let Some(batch) = partial.map(conditional) else {
            return Ok(false);
        };
        Ok(storage.commit(batch).await? == Committed::Done)
    }
}

/// How long a lease lasts. A step takes much less.
const LEASE_TIME: Duration = Duration::from_secs(60);

/// How long the mark of a deleted table stays at least: longer than a write takes, or servers'
/// clocks may differ.
const MARK_TIME: Duration = Duration::from_secs(600);

/// The most entities that a step removes.
const ENTITIES_MAX: usize = 1000;

/// The most deleted tables that a step looks at.
const MARKS_MAX: usize = 1000;
