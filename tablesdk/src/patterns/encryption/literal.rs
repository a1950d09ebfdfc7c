//! Values to compare with in a filter. Until it is sent, the filter holds them encrypted with a key
//! of this process, so that neither its `Debug` nor an error can show one.

use std::sync::OnceLock;

use tablesdk_protocol::filter::{Comparison, ComparisonOperator, Filter};
use tablesdk_protocol::{Guid, Value};

use super::entity::Cipher;
use super::envelope::{Cell, DataKey, Secret, decrypt, encrypt};

/// The value as the filter holds it.
pub(crate) fn encrypted_literal(value: &Value) -> Vec<u8> {
    // A value that is too long equals none that is stored. The empty literal matches nothing.
    encrypt(process_key(), CELL, &value.as_ref()).unwrap_or_default()
}

impl Cipher {
    /// The filter as the service can answer it: each value is compared with what each key would
    /// store for it.
    pub(crate) fn lookups(&self, filter: &Filter) -> Filter {
        self.lookups_with(filter, &self.keys().collect::<Vec<_>>())
    }

    /// For each key, beginning with the current one: the filter with what this key would store for
    /// each value.
    pub(crate) fn lookups_by_key(&self, filter: &Filter) -> Vec<Filter> {
        let current = self.current();
        let others = self.keys().filter(|key| key.id != current.id);
        let keys = [current].into_iter().chain(others);
        keys.map(|key| self.lookups_with(filter, &[key])).collect()
    }

    fn lookups_with(&self, filter: &Filter, keys: &[&DataKey]) -> Filter {
        filter.map_comparisons(|comparison| {
            let lookup = self.lookup(comparison, keys);
            lookup.unwrap_or_else(|| Filter::Comparison(comparison.clone()))
        })
    }

    fn lookup(&self, comparison: &Comparison, keys: &[&DataKey]) -> Option<Filter> {
        let property = self.marked().name_of_lookup(&comparison.property)?;
        let Value::Binary(encrypted) = &comparison.literal else {
            return None;
        };
        let Ok(value) = decrypt(process_key(), CELL, encrypted) else {
            return Some(Filter::Constant(false));
        };
        let value = value.as_ref();
        let lookups = keys.iter().map(|key| self.lookup_of(key, property, &value));
        let any = lookups.map(|lookup| {
            let name = comparison.property.clone();
            Filter::comparison(name, ComparisonOperator::Equal, Value::Binary(lookup))
        });
        any.reduce(Filter::or)
    }
}

fn process_key() -> &'static DataKey {
    static KEY: OnceLock<DataKey> = OnceLock::new();
    KEY.get_or_init(|| {
        let mut secret = Secret::default();
        getrandom::fill(&mut *secret).expect("the operating system gives random bytes");
        DataKey::new(Guid::from_bytes([0; 16]), secret)
    })
}

const CELL: Cell<'static> = Cell {
    table: "",
    partition_key: "",
    row_key: "",
    property: "",
};
