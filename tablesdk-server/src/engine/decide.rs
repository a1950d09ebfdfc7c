//! Decides a command: a pure function from the stored state and the time to the writes, or to a
//! rejection.
//!
//! This module knows no locks, no clock and no HTTP. The engine ensures that the state does not
//! change until the writes are applied. See
//! <https://learn.microsoft.com/rest/api/storageservices/update-entity2>.

use std::time::Duration;

use tablesdk_protocol::{TableName, Timestamp};

use super::batch::decide_batch;
use super::change::{begin_change, decide_change};
use super::clean_up;
use super::key_codec::{self, Table};
use super::settings;
use super::view::View;
use super::{Command, Failure, Rejection};
use crate::flavor::Flavor;
use crate::storage::WriteBatch;

/// The writes of a command.
pub(super) fn decide(
    view: &View,
    flavor: Flavor,
    account: &str,
    command: &Command<'_>,
    now: Timestamp,
) -> Result<WriteBatch, Failure> {
    refuse_system_tables(command)?;
    let is_of_entities = matches!(command, Command::Batch(..) | Command::Change(..));
    let mut batch = WriteBatch::new(!is_of_entities);
    match command {
        Command::Batch(table, changes) => {
            decide_batch(view, flavor, account, table, changes, now, &mut batch)?;
        }
        Command::Change(table, change) => {
            let table = view.require_table(account, table)?;
            if change.is_insert() {
                view.presume_absent(table, [change.key]);
            }
            batch.reserve(2, change.bytes_max());
            begin_change(table, change, &mut batch);
            decide_change(view, flavor, change, now, &mut batch)?;
        }
        Command::CreateTable(name) => create_table(view, account, name, now, &mut batch)?,
        Command::DeleteTable(name, hold) => {
            delete_table(view, account, name, &mut batch)?;
            if !hold.is_zero() {
                hold_name(view, account, name, *hold, now, &mut batch)?;
            }
        }
        Command::SetServiceProperties(properties) => {
            let stored = view.service_properties(flavor, account)?;
            let properties = (*properties).clone().or(stored);
            let record = settings::properties_record(&properties);
            batch.put(key_codec::properties_key(account), record);
        }
        Command::SetTableAcl(table, identifiers) => {
            let key = key_codec::acl_key(view.require_table(account, table)?);
            view.announce([key.clone()]);
            batch.put(key, settings::acl_record(identifiers));
        }
    }
    Ok(batch)
}

fn refuse_system_tables(command: &Command<'_>) -> Result<(), Failure> {
    match command {
        Command::Batch(name, _) if name.is_system() => {
            Err(Failure::from(Rejection::SystemTable).of_change(0))
        }
        Command::Change(name, _)
        | Command::CreateTable(name)
        | Command::DeleteTable(name, _)
        | Command::SetTableAcl(name, _)
            if name.is_system() =>
        {
            Err(Rejection::SystemTable.into())
        }
        _ => Ok(()),
    }
}

fn create_table(
    view: &View,
    account: &str,
    name: &TableName,
    now: Timestamp,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let keys = [
        key_codec::deleted_table_key(account, name),
        key_codec::NEXT_TABLE_ID.to_vec(),
    ];
    view.announce(keys);
    if view.table(account, name)?.is_some() {
        return Err(Rejection::TableAlreadyExists.into());
    }
    if let Some(until) = view.deleted_until(account, name)? {
        if now < until {
            return Err(Rejection::TableBeingDeleted.into());
        }
        batch.delete(key_codec::deleted_table_key(account, name));
    }
    let id = view.next_table_id()?;
    let table = Table {
        id,
        name: name.as_str().to_owned(),
    };
    batch.put(
        key_codec::NEXT_TABLE_ID,
        key_codec::table_id_record(id.next()?),
    );
    batch.put(
        key_codec::table_key(account, name),
        key_codec::table_record(&table),
    );
    Ok(())
}

fn delete_table(
    view: &View,
    account: &str,
    name: &TableName,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let table = view.table(account, name)?;
    let id = table.ok_or(Rejection::ResourceNotFound)?.id;
    let acl = key_codec::acl_key(id);
    view.announce([acl.clone(), key_codec::clean_up_key(id)]);
    batch.delete(key_codec::table_key(account, name));
    batch.delete(acl);
    // The response does not wait for the removal of the entities, even if there are many.
    clean_up::mark(id, batch);
    Ok(())
}

/// Reserves the name of a deleted table for a time, and removes reservations that have ended, so
/// that only recent ones are kept.
// SERVICE: the name of a deleted table stays unusable for about 40 seconds there.
fn hold_name(
    view: &View,
    account: &str,
    name: &TableName,
    duration: Duration,
    now: Timestamp,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    for deleted in view.deleted_tables(account).take(ENDED_MAX) {
        let (key, until) = deleted?;
        if until <= now {
            batch.delete(key);
        }
    }
    let until = now.saturating_add(duration);
    batch.put(
        key_codec::deleted_table_key(account, name),
        key_codec::time_record(until),
    );
    Ok(())
}

/// The most reservations that a deletion looks at.
const ENDED_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tablesdk_protocol::limits::ENTITY_BYTES_MAX;
    use tablesdk_protocol::operation::update_entity::Mode;
    use tablesdk_protocol::{ETag, EntityKey, IfMatch, Value, ValueRef};

    use super::*;
    use crate::engine::key_codec::TableId;
    use crate::engine::{Action, Change, Properties};
    use crate::storage::{MemoryStorage, Storage};

    /// A storage, and a time that moves with each command.
    struct State {
        storage: MemoryStorage,
        now: Timestamp,
    }

    impl State {
        /// With one empty table, `people`.
        fn new() -> Self {
            let mut state = Self {
                storage: MemoryStorage::default(),
                now: "2024-03-15T10:20:30Z".parse().unwrap(),
            };
            state.run(&Command::CreateTable(&name("people"))).unwrap();
            state
        }

        fn view(&self) -> View {
            View::local(self.storage.snapshot(), &Arc::default())
        }

        fn run(&mut self, command: &Command<'_>) -> Result<Timestamp, Failure> {
            self.now = self.now.next();
            let batch = decide(&self.view(), Flavor::Storage, "acct", command, self.now)?;
            drop(self.storage.commit(batch).unwrap());
            Ok(self.now)
        }

        fn change(&mut self, action: Action<'_>) -> Result<Timestamp, Failure> {
            let key = &key();
            self.run(&Command::Change(&name("PEOPLE"), Change { key, action }))
        }

        fn stored(&self) -> Option<(Timestamp, Properties)> {
            let view = self.view();
            let table = view.table("acct", &name("people")).unwrap()?;
            let key = key();
            let row = view.entity(table.id, &key).unwrap()?;
            let entity = row.open(&key).unwrap();
            let mut properties = Properties::default();
            for value in entity.record().values() {
                let (name, value) = value.unwrap();
                properties.push(name, &value);
            }
            Some((entity.head().timestamp, properties))
        }
    }

    fn name(text: &str) -> TableName {
        TableName::new(text).unwrap()
    }

    fn key() -> EntityKey {
        EntityKey::new("p", "r").unwrap()
    }

    fn properties(names: &[&str]) -> Properties {
        let properties = names.iter();
        properties
            .map(|name| (*name, ValueRef::String((*name).into())))
            .collect()
    }

    fn update<'a>(
        mode: Mode,
        if_match: Option<&'a IfMatch>,
        properties: &'a Properties,
    ) -> Action<'a> {
        Action::Update {
            mode,
            if_match,
            properties,
        }
    }

    fn rejected<T>(rejection: Rejection) -> Result<T, Failure> {
        Err(Failure::Rejected(rejection))
    }

    #[test]
    fn conditions_follow_the_table_of_the_service() {
        let old = properties(&["a", "b"]);
        let new = properties(&["b", "c"]);
        let foreign = IfMatch::ETag(ETag::from_timestamp(Timestamp::MIN));
        for mode in [Mode::Merge, Mode::Replace] {
            let mut state = State::new();
            for if_match in [&IfMatch::Any, &foreign] {
                let result = state.change(update(mode, Some(if_match), &new));
                assert_eq!(result, rejected(Rejection::ResourceNotFound));
            }
            assert_eq!(state.stored(), None);

            let inserted = state.change(update(mode, None, &old)).unwrap();
            assert_eq!(state.stored(), Some((inserted, old.clone())));
            let result = state.change(update(mode, Some(&foreign), &new));
            assert_eq!(result, rejected(Rejection::UpdateConditionNotSatisfied));
            assert_eq!(state.stored(), Some((inserted, old.clone())));

            let expected = match mode {
                Mode::Merge => properties(&["a", "b", "c"]),
                Mode::Replace => new.clone(),
            };
            let current = IfMatch::ETag(ETag::from_timestamp(inserted));
            let updated = state.change(update(mode, Some(&current), &new)).unwrap();
            assert_eq!(state.stored(), Some((updated, expected.clone())));
            let result = state.change(update(mode, Some(&current), &new));
            assert_eq!(result, rejected(Rejection::UpdateConditionNotSatisfied));

            for if_match in [None, Some(&IfMatch::Any)] {
                let updated = state.change(update(mode, if_match, &new)).unwrap();
                assert_eq!(state.stored(), Some((updated, expected.clone())));
            }
        }
    }

    /// Older clients make an ETag of a timestamp, with seven digits.
    #[test]
    fn a_condition_is_an_instant() {
        for (inner, expected) in [
            ("datetime'2024-03-15T10%3A20%3A30.1Z'", None),
            ("datetime'2024-03-15T10%3A20%3A30.1000000Z'", None),
            ("datetime'2024-03-15T10:20:30.1000000Z'", None),
            (
                "datetime'2024-03-15T10%3A20%3A30.1000001Z'",
                Some(Rejection::UpdateConditionNotSatisfied),
            ),
            (
                "datetime''2024-03-15T10%3A20%3A30.1Z''",
                Some(Rejection::ConditionNotMet),
            ),
            ("0x8D", Some(Rejection::ConditionNotMet)),
        ] {
            for weak in ["W/", "w/"] {
                let mut state = State::new();
                state.now = "2024-03-15T10:20:30.0999999Z".parse().unwrap();
                state.change(Action::Insert(&Properties::NONE)).unwrap();
                let etag = ETag::from_opaque(format!("{weak}\"{inner}\""));
                let result = state.change(Action::Delete(&IfMatch::ETag(etag)));
                assert_eq!(result.err(), expected.map(Failure::Rejected), "{inner}");
            }
        }
    }

    #[test]
    fn an_empty_merge_changes_only_the_timestamp() {
        let mut state = State::new();
        let old = properties(&["a"]);
        let inserted = state.change(Action::Insert(&old)).unwrap();
        let none = Properties::NONE;
        let merge = update(Mode::Merge, Some(&IfMatch::Any), &none);
        let merged = state.change(merge).unwrap();
        assert!(merged > inserted);
        assert_eq!(state.stored(), Some((merged, old)));
    }

    #[test]
    fn an_insert_of_an_existing_key_is_rejected() {
        let mut state = State::new();
        let inserted = state.change(Action::Insert(&properties(&["a"]))).unwrap();
        let result = state.change(Action::Insert(&properties(&["b"])));
        assert_eq!(result, rejected(Rejection::EntityAlreadyExists));
        assert_eq!(state.stored(), Some((inserted, properties(&["a"]))));
    }

    #[test]
    fn a_delete_compares_the_etag() {
        let mut state = State::new();
        let foreign = IfMatch::ETag(ETag::from_timestamp(Timestamp::MIN));
        for if_match in [&IfMatch::Any, &foreign] {
            let result = state.change(Action::Delete(if_match));
            assert_eq!(result, rejected(Rejection::ResourceNotFound));
        }
        let inserted = state.change(Action::Insert(&Properties::NONE)).unwrap();
        let result = state.change(Action::Delete(&foreign));
        assert_eq!(result, rejected(Rejection::UpdateConditionNotSatisfied));
        let current = IfMatch::ETag(ETag::from_timestamp(inserted));
        state.change(Action::Delete(&current)).unwrap();
        assert_eq!(state.stored(), None);
    }

    #[test]
    fn the_size_of_the_result_is_limited() {
        // 4 + 4 for the keys; each property 8 + 4 for its name, and 4 + 65,536 for its text.
        let large = |names: std::ops::Range<u8>| {
            let text = Value::from("x".repeat(32 * 1024));
            let mut properties = Properties::default();
            for number in names {
                let name = format!("p{}", char::from(b'a' + number));
                properties.push(&name, &text.as_ref());
            }
            properties
        };
        let mut state = State::new();
        state.change(Action::Insert(&large(0..15))).unwrap();
        let result = state.change(update(Mode::Replace, None, &large(0..16)));
        assert_eq!(result, rejected(Rejection::EntityTooLarge));
        let merge = large(15..16);
        let result = state.change(update(Mode::Merge, None, &merge));
        assert_eq!(result, rejected(Rejection::EntityTooLarge));
        state
            .change(update(Mode::Replace, None, &large(1..16)))
            .unwrap();
    }

    #[test]
    fn an_entity_has_at_most_a_mebibyte() {
        let mut state = State::new();
        // 8 for the keys, and 8 + 2 + 4 for a property without its bytes.
        let sized = |bytes: usize| {
            let full = (0..15_u8).map(|number| (b'a' + number, 65_536));
            let rest = bytes - 8 - 15 * (14 + 65_536) - 14;
            let mut properties = Properties::default();
            for (name, length) in full.chain([(b'z', rest)]) {
                let bytes = ValueRef::Binary(vec![0; length].into());
                properties.push(&char::from(name).to_string(), &bytes);
            }
            properties
        };
        for (bytes, fits) in [(ENTITY_BYTES_MAX, true), (ENTITY_BYTES_MAX + 1, false)] {
            let result = state.change(update(Mode::Replace, None, &sized(bytes)));
            if fits {
                result.unwrap();
            } else {
                assert_eq!(result, rejected(Rejection::EntityTooLarge));
            }
        }
    }

    #[test]
    fn deleting_a_table_deletes_its_policies() {
        let mut state = State::new();
        let acl = [tablesdk_protocol::SignedIdentifier {
            id: "x".to_owned(),
            ..Default::default()
        }];
        let stored = |state: &State| {
            let view = state.view();
            let table = view.require_table("acct", &name("people")).unwrap();
            view.table_acl(table).unwrap()
        };
        assert_eq!(stored(&state), []);
        let set = state.run(&Command::SetTableAcl(&name("PEOPLE"), &acl));
        set.unwrap();
        assert_eq!(stored(&state), acl);
        let missing = state.run(&Command::SetTableAcl(&name("nobody"), &acl));
        assert_eq!(missing, rejected(Rejection::TableNotFound));

        state
            .run(&Command::DeleteTable(&name("people"), Duration::ZERO))
            .unwrap();
        let records = state.storage.snapshot();
        assert_eq!(records.range(b"a", b"b").count(), 0);
        state.run(&Command::CreateTable(&name("people"))).unwrap();
        assert_eq!(stored(&state), []);
    }

    #[test]
    fn the_name_of_a_deleted_table_can_be_reserved() {
        let mut state = State::new();
        let window = Duration::from_secs(40);
        let (people, cities, towns) = (name("people"), name("cities"), name("towns"));
        let held = |state: &State| state.storage.snapshot().range(b"d", b"e").count();
        state.run(&Command::DeleteTable(&people, window)).unwrap();
        assert_eq!(held(&state), 1);
        let free_at = state.now.saturating_add(window);
        let create = Command::CreateTable(&people);
        assert_eq!(state.run(&create), rejected(Rejection::TableBeingDeleted));
        let again = state.run(&Command::DeleteTable(&people, window));
        assert_eq!(again, rejected(Rejection::ResourceNotFound));
        let other = decide(&state.view(), Flavor::Storage, "other", &create, state.now);
        assert!(other.is_ok());
        state.run(&Command::CreateTable(&cities)).unwrap();
        // A moment before, and then.
        let at = |state: &State, now| {
            decide(&state.view(), Flavor::Storage, "acct", &create, now).map(|_| ())
        };
        let ticks_before =
            |ticks| Timestamp::from_unix_ticks(free_at.unix_ticks() - ticks).unwrap();
        let before = ticks_before(1);
        assert_eq!(at(&state, before), rejected(Rejection::TableBeingDeleted));
        assert_eq!(at(&state, free_at), Ok(()));
        // Deleting another table forgets the name, and not before.
        state.run(&Command::CreateTable(&towns)).unwrap();
        // The next command is carried out a tick later.
        state.now = ticks_before(2);
        let tick = Duration::from_nanos(100);
        state.run(&Command::DeleteTable(&towns, tick)).unwrap();
        assert_eq!(held(&state), 2);
        state.now = free_at;
        state.run(&Command::DeleteTable(&cities, window)).unwrap();
        assert_eq!(held(&state), 1);
        state.run(&create).unwrap();
        assert_eq!(held(&state), 1);
        state.now = state.now.saturating_add(window);
        state.run(&Command::CreateTable(&cities)).unwrap();
        assert_eq!(held(&state), 0);
    }

    #[test]
    fn the_tables_of_metrics_exist_and_are_read_only() {
        let mut state = State::new();
        let metrics = name("$MetricsHourPrimaryTransactionsTable");
        let table = state.view().table("acct", &metrics).unwrap().unwrap();
        assert_eq!(table.id, TableId::NONE);
        let (key, action) = (key(), Action::Insert(&Properties::NONE));
        let change = Change { key: &key, action };
        for command in [
            Command::Change(&metrics, change),
            Command::CreateTable(&metrics),
            Command::DeleteTable(&metrics, Duration::ZERO),
            Command::SetTableAcl(&metrics, &[]),
        ] {
            let result = state.run(&command);
            assert_eq!(result, rejected(Rejection::SystemTable), "{command:?}");
        }
        let result = state.run(&Command::Batch(&metrics, &[change]));
        let expected = Failure::RejectedChange(0, Rejection::SystemTable);
        assert_eq!(result, Err(expected));
    }

    #[test]
    fn absent_service_properties_stay() {
        use tablesdk_protocol::{Metrics, ServiceProperties};
        let mut state = State::new();
        let initial = ServiceProperties::initial();
        assert_eq!(
            state.view().service_properties(Flavor::Storage, "acct"),
            Ok(initial.clone())
        );
        let change = ServiceProperties::default().with_minute_metrics(Metrics::enabled());
        let set = state.run(&Command::SetServiceProperties(&change));
        set.unwrap();
        let expected = change.or(initial.clone());
        assert_eq!(
            state.view().service_properties(Flavor::Storage, "acct"),
            Ok(expected)
        );
        assert_eq!(
            state.view().service_properties(Flavor::Storage, "other"),
            Ok(initial)
        );
    }

    #[test]
    fn entities_of_a_deleted_table_are_unreachable() {
        let mut state = State::new();
        let result = state.run(&Command::CreateTable(&name("People")));
        assert_eq!(result, rejected(Rejection::TableAlreadyExists));
        state.change(Action::Insert(&Properties::NONE)).unwrap();

        state
            .run(&Command::DeleteTable(&name("PEOPLE"), Duration::ZERO))
            .unwrap();
        let result = state.change(Action::Insert(&Properties::NONE));
        assert_eq!(result, rejected(Rejection::TableNotFound));
        let result = state.run(&Command::DeleteTable(&name("people"), Duration::ZERO));
        assert_eq!(result, rejected(Rejection::ResourceNotFound));

        state.run(&Command::CreateTable(&name("People"))).unwrap();
        assert_eq!(state.stored(), None);
        let view = state.view();
        let table = view.table("acct", &name("people")).unwrap().unwrap();
        assert_eq!((table.id, &*table.name), (TableId(2), "People"));
        assert_eq!(view.table("other", &name("people")), Ok(None));
    }
}
