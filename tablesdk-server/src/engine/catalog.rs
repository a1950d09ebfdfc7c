//! [`Catalog`]: a cache of what nearly every request looks up: the ids of tables, CORS rules,
//! stored access policies.
//!
//! The records of these change rarely. The storage numbers their changes: each snapshot has an
//! *epoch*, the number of the last change that it contains. The cache holds values of one epoch,
//! and is used only for snapshots of the same epoch. So it never returns a value that the snapshot
//! does not have, whatever happens at the same time. Missing tables are not cached, because made-up
//! names would fill the cache.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

use tablesdk_protocol::{CorsRule, SignedIdentifier, TableName};

use super::key_codec::TableId;

/// The cache of an engine.
#[derive(Debug, Default)]
pub(super) struct Catalog(RwLock<Values>);

/// Values of one epoch.
#[derive(Debug, Default)]
pub(super) struct Values {
    epoch: u64,
    /// The CORS rules of accounts.
    pub(super) cors_rules: Limited<Box<str>, Arc<[CorsRule]>>,
    /// The stored access policies of tables.
    pub(super) policies: Limited<TableId, Arc<[SignedIdentifier]>>,
    /// The tables of accounts.
    pub(super) tables: Limited<Box<str>, Limited<TableName, TableId>>,
}

impl Catalog {
    /// The value that `find` has for a snapshot of this epoch, or else the one that is read, which
    /// is kept.
    pub(super) fn get<T, E>(
        &self,
        epoch: Option<u64>,
        find: impl FnOnce(&Values) -> Option<T>,
        read: impl FnOnce() -> Result<T, E>,
        keep: impl FnOnce(&mut Values, &T),
    ) -> Result<T, E> {
        let Some(epoch) = epoch else {
            return read();
        };
        if let Some(found) = self.find(epoch, find) {
            return Ok(found);
        }
        let value = read()?;
        // Nothing panics while it is locked.
        let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if values.epoch < epoch {
            *values = Values {
                epoch,
                ..Values::default()
            };
        }
        // A snapshot may also be older than the cache.
        if values.epoch == epoch {
            keep(&mut values, &value);
        }
        Ok(value)
    }

    /// The value that `find` has for a snapshot of this epoch.
    pub(super) fn find<T>(&self, epoch: u64, find: impl FnOnce(&Values) -> Option<T>) -> Option<T> {
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (values.epoch == epoch).then(|| find(&values)).flatten()
    }
}

/// A map of bounded size.
#[derive(Debug)]
pub(super) struct Limited<K, V>(HashMap<K, V>);

impl<K: Eq + Hash, V> Limited<K, V> {
    pub(super) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.get(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.make_room();
        self.0.insert(key, value);
    }

    /// The value of a key, which is inserted if there is none.
    pub(super) fn value(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        if !self.0.contains_key(&key) {
            self.make_room();
        }
        self.0.entry(key).or_default()
    }

    fn make_room(&mut self) {
        if self.0.len() >= VALUES_MAX {
            self.0.clear();
        }
    }
}

impl<K, V> Default for Limited<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// The most values of a map. A server with more tables in use starts again from time to time.
const VALUES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tablesdk_protocol::{Clock, EntityKey, ServiceProperties};

    use super::*;
    use crate::engine::{
        Action, Change, Command, Engine, Failure, Outcome, Paging, Properties, View,
    };
    use crate::flavor::Flavor;
    use crate::storage::{MemoryStorage, Storage};
    use crate::time::monotonic_clock::tests::ManualClock;

    fn engine(storage: impl Storage + 'static) -> Engine {
        let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
        Engine::new(Box::new(storage), clock, Paging::default()).unwrap()
    }

    fn run(engine: &Engine, command: &Command<'_>) -> Result<Outcome, Failure> {
        wait_for(engine.commit("acct", command))
    }

    fn wait_for<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().unwrap().block_on(future)
    }

    fn name() -> TableName {
        "people".parse().unwrap()
    }

    fn policies(id: usize) -> [SignedIdentifier; 1] {
        [SignedIdentifier {
            id: id.to_string(),
            ..SignedIdentifier::default()
        }]
    }

    fn rules(origin: usize) -> ServiceProperties {
        let rule = CorsRule::new(origin.to_string()).allow_method("GET");
        ServiceProperties::default().with_cors(vec![rule])
    }

    /// Asserts that the cache returns for a view what the records of the view contain.
    fn assert_is_of(view: &View) {
        let stored = view.table("acct", &name()).unwrap().map(|table| table.id);
        let cached = view.require_table("acct", &name()).ok();
        assert_eq!(cached, stored);
        let stored = view
            .service_properties(Flavor::Storage, "acct")
            .unwrap()
            .cors;
        assert_eq!(*view.cors_rules("acct").unwrap(), *stored.unwrap());
        if let Some(table) = cached {
            let stored = view.table_acl(table).unwrap();
            assert_eq!(*view.policies(table).unwrap(), *stored);
        }
    }

    /// Changes everything that is cached, while readers compare it with the records.
    fn change_under_readers(storage: impl Storage + 'static, rounds: usize) {
        let engine = engine(storage);
        run(&engine, &Command::SetServiceProperties(&rules(0))).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert_is_of(&engine.view());
                        assert_is_of(&engine.uncommitted_view());
                        wait_for(engine.cors_rules("acct")).unwrap();
                        let _ = wait_for(engine.require_table("acct", &name()));
                    }
                });
            }
            for round in 1..=rounds {
                let (table, properties) = (name(), rules(round));
                run(&engine, &Command::CreateTable(&table)).unwrap();
                wait_for(engine.require_table("acct", &table)).unwrap();
                run(&engine, &Command::SetTableAcl(&table, &policies(round))).unwrap();
                let id = engine.view().require_table("acct", &table).unwrap();
                assert_eq!(*engine.view().policies(id).unwrap(), policies(round));
                run(&engine, &Command::SetServiceProperties(&properties)).unwrap();
                let found = wait_for(engine.cors_rules("acct")).unwrap();
                assert_eq!(*found, *properties.cors.unwrap());
                let key = &EntityKey::new("p", "r").unwrap();
                let action = Action::Insert(&Properties::NONE);
                // A write to the table of the round before would be rejected: that one has the
                // entity.
                run(&engine, &Command::Change(&table, Change { key, action })).unwrap();
                run(&engine, &Command::DeleteTable(&table, Duration::ZERO)).unwrap();
                wait_for(engine.require_table("acct", &table)).unwrap_err();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn no_value_is_stale_while_it_changes() {
        change_under_readers(MemoryStorage::default(), 500);
    }

    #[cfg(feature = "durable")]
    #[test]
    fn no_value_of_a_data_directory_is_stale_while_it_changes() {
        use crate::storage::{Durability, DurableStorage};

        let directory = tempfile::tempdir().unwrap();
        let storage = DurableStorage::open(directory.path(), Durability::Relaxed).unwrap();
        change_under_readers(storage, 100);
    }

    #[cfg(feature = "durable")]
    #[test]
    fn a_reopened_data_directory_has_no_values_of_before() {
        use crate::storage::{Durability, DurableStorage};

        let directory = tempfile::tempdir().unwrap();
        let open = || engine(DurableStorage::open(directory.path(), Durability::Sync).unwrap());
        for round in 0..3 {
            let engine = open();
            if round > 0 {
                assert_is_of(&engine.view());
                let id = engine.view().require_table("acct", &name()).unwrap();
                assert_eq!(*engine.view().policies(id).unwrap(), policies(round - 1));
                run(&engine, &Command::DeleteTable(&name(), Duration::ZERO)).unwrap();
            }
            run(&engine, &Command::CreateTable(&name())).unwrap();
            run(&engine, &Command::SetTableAcl(&name(), &policies(round))).unwrap();
            run(&engine, &Command::SetServiceProperties(&rules(round))).unwrap();
            assert_is_of(&engine.view());
        }
    }

    #[test]
    fn an_older_snapshot_has_its_own_values() {
        let engine = engine(MemoryStorage::default());
        run(&engine, &Command::SetServiceProperties(&rules(1))).unwrap();
        run(&engine, &Command::CreateTable(&name())).unwrap();
        let before = engine.view();
        run(&engine, &Command::DeleteTable(&name(), Duration::ZERO)).unwrap();
        run(&engine, &Command::SetServiceProperties(&rules(2))).unwrap();
        for _ in 0..2 {
            for view in [&engine.view(), &before] {
                assert_is_of(view);
            }
        }
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        let mut values = Limited::default();
        for number in 0..3 * VALUES_MAX {
            values.insert(number, ());
            values.value(number);
            assert!(values.get(&number).is_some() && values.0.len() <= VALUES_MAX);
        }
    }
}
