//! Which writes are allowed for a type whose entities are written together with others. Knows
//! nothing of what these are.

use super::{TableEntity, WritableEntity};

/// An entity without indexes and copies: each write of it is complete by itself. What derives
/// [`TableEntity`] without [`#[table(index(…))]`](derive@crate::TableEntity#index) and
/// [`#[table(copy(…))]`](derive@crate::TableEntity#copy) is one.
#[diagnostic::on_unimplemented(
    message = "this write does not know which entries of the indexes and which copies of `{Self}` are stale",
    label = "this type has indexes, or copies",
    note = "use `insert`, or `get` and then `replace` or `delete_stored`: they know what was stored",
    note = "`modify(key, …).or_insert(…)` is the upsert, and `modify` the merge: they read it first",
    note = "a type whose `WritableEntity` is written by hand also implements `Standalone`"
)]
pub trait Standalone: WritableEntity {}

/// Refuses at compile time to write some properties of an entity with indexes, or of an entry.
pub(crate) const fn check_standalone<E: TableEntity>() {
    assert!(
        E::FACTS.is_standalone(),
        "this write does not know which entries of indexes and copies are stale: use `modify`, or get the entity and then use `replace` or `delete_stored`; for many, `bulk().replace(…)` or `bulk().delete_stored(…)` of what a query finds"
    );
}

/// Refuses at compile time to delete an entry alone.
pub(crate) const fn check_no_entry<E: TableEntity>() {
    assert!(
        !E::FACTS.is_entry,
        "an entry of an index is deleted together with its entity: get the entity with `.follow()`, and use `delete_stored`"
    );
}

/// Refuses at compile time to read one entry in another partition as if it were the entity, unless
/// the entry itself shows that it may be out of date.
pub(crate) const fn check_one_verified<E: TableEntity>() {
    check_verified::<E>(E::SCHEMA.is_reserved_first());
}

/// Refuses at compile time to read entries in other partitions as if they were the entities.
pub(crate) const fn check_verified<E: TableEntity>(is_unverified: bool) {
    assert!(
        is_unverified || !E::SCHEMA.is_elsewhere(),
        "an entry in another partition than its entity may be out of date: add `.follow()`, which reads the entities, or `.unverified()`"
    );
}
