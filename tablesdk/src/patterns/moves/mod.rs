//! Moves of entities into another table, which may be in another account, and to other keys: one by
//! one, and all that a query finds.
//!
//! [`TableClient::move_to`] and [`TableClient::move_key`] move one entity, and
//! [`QueryEntities::move_to`] and [`QueryEntities::move_keys`] move many, several batches at a
//! time. An entity is never in neither place. The guides to [archives](crate::guide::archive) and
//! [keys](crate::guide::changing_keys) show when to use them.

mod all;
mod entity;
mod key;
mod keys;
mod together;

pub use all::MoveAll;
pub use entity::MoveEntity;
pub use key::MoveKey;
pub use keys::MoveKeys;

use crate::action::QueryEntities;
use crate::client::TableClient;
use crate::entity::encrypted::check_not_encrypted;
use crate::entity::{Stored, TableEntity, WritableEntity};
use crate::query::Selection;

impl TableClient {
    /// Moves an entity into another table, which may be in another account, and returns it as it is
    /// stored there. It must be the version that was read.
    ///
    /// The entity is written into the target, and then deleted here. For a moment it is in both
    /// tables; it is never in neither. A program that ends in between leaves it in both, and
    /// running the move again finishes it.
    ///
    /// The entity is moved as it is stored, with all its properties: a change of the value that was
    /// not written is not moved. The timestamp in the target is that of the move. Entries of
    /// [indexes](derive@crate::TableEntity#index) are deleted here and written there.
    ///
    /// If the target has an entity under the key that differs, the move is refused:
    /// [`Error::current`](crate::Error::current) returns that entity, and
    /// [`overwrite`](MoveEntity::overwrite) replaces it. An entity that another client deletes
    /// during the move may still end in the target. Three requests; six if the target has the
    /// entity already.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let archive = service.table("Archive");
    /// archive.create_table().await?;
    ///
    /// let ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
    /// let archived = table.move_to(&archive, ada).await?;
    /// assert_eq!(archived.name, "Ada");
    /// assert!(table.get(Employee::key("Sales", "1")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity was written since it was read; what the move
    /// had written into the target is removed again. `ResourceNotFound` when it no longer exists,
    /// `EntityAlreadyExists` when the target has another entity, `TableNotFound`.
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when both tables are the same.
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when no response shows
    /// whether the entity was written or deleted: it is in one of the tables or in both.
    /// [`Error::table`](crate::Error::table) returns the table of the request that failed.
    pub fn move_to<E: WritableEntity>(&self, target: &Self, entity: Stored<E>) -> MoveEntity<E> {
        MoveEntity::new(self.table().clone(), target.table().clone(), entity)
    }

    /// Moves an entity to the key that its value has now, such as that of an employee who changes
    /// the department. Returns the new ETag, which the [`Stored`] has afterwards, with the new key.
    /// It must be the version that was read.
    ///
    /// Within a partition, one transaction writes the entity under the new key, and deletes it
    /// under the former one. Between two partitions, it is first written, and then deleted: for a
    /// moment it is under both keys, and it is never under neither. A program that ends in between
    /// leaves it under both, and running the move again finishes it: with the same value, or with
    /// the entity as it is read under its former key.
    ///
    /// All changes of the value are written, and properties that the type does not have are kept.
    /// Entries of [indexes](derive@crate::TableEntity#index) and
    /// [copies](derive@crate::TableEntity#copy) move with the entity. An entity whose key has not
    /// changed is replaced.
    ///
    /// If another entity has the new key, the move is refused:
    /// [`Error::current`](crate::Error::current) returns that entity, and
    /// [`overwrite`](MoveKey::overwrite) replaces it. If two programs move an entity to different
    /// keys, one of them fails, and its copy is removed. Two requests within a partition, four
    /// between two.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
    /// ada.department = "Legal".to_owned();
    /// table.move_key(&mut ada).await?;
    /// assert_eq!(ada.key().partition_key().as_str(), "Legal");
    /// assert!(table.get(Employee::key("Sales", "1")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity was written since it was read, and
    /// `ResourceNotFound` when it no longer exists, unless the entity under the new key has the
    /// properties of the value: then it was moved before. `EntityAlreadyExists` when another entity
    /// has the new key, or the entry of a unique index
    /// ([`Error::index`](crate::Error::index)). [`ErrorKind::Input`](crate::ErrorKind::Input) when
    /// the value has no valid key, before anything is sent.
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when no response shows
    /// whether the entity was written or deleted: it is under one of the keys or under both.
    pub fn move_key<'e, E: WritableEntity>(&self, entity: &'e mut Stored<E>) -> MoveKey<'e, E> {
        MoveKey::new(self.table().clone(), entity)
    }
}

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// Moves the entities that the query finds into another table, which may be in another account,
    /// in batches, several at a time. An entity that was changed since the query found it stays,
    /// and is counted as [changed](crate::action::BulkProgress::changed).
    ///
    /// Each entity is moved as [`TableClient::move_to`] moves one: with all its properties, and
    /// never in neither table. After an error or the end of the program, some are in both, and the
    /// same move can be run again: the query is the list of what is left to do.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let archive = service.table("Archive");
    /// archive.create_table().await?;
    ///
    /// let sales = || table.query::<Employee>().partition("Sales");
    /// assert_eq!(sales().move_to(&archive).dry_run().await?.progress().read, 3);
    /// let report = sales().move_to(&archive).await?;
    /// assert_eq!((report.progress().written, report.progress().requests), (3, 2));
    /// assert_eq!(archive.query::<Employee>().count().await?, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Entities with [indexes](derive@crate::TableEntity#index) are moved one by one:
    ///
    /// ```compile_fail
    #[doc = include_str!("../../docs/indexed.md")]
    /// let archive = table.clone();
    /// table.query::<Employee>().move_to(&archive).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BulkError`](crate::action::BulkError) when the query fails, when both tables are the same,
    /// or when the run ends early. An entity that the target has with other properties is a
    /// [failure](crate::action::BulkReport::failures), unless [`overwrite`](MoveAll::overwrite) is
    /// set.
    pub fn move_to<'a>(self, target: &TableClient) -> MoveAll<'a> {
        const { check_not_encrypted::<E>() }
        MoveAll::new(self, target.table().clone())
    }

    /// Moves the entities that the query finds to the keys that a closure gives them, in batches,
    /// several at a time: how a table gets new keys. An entity that was changed since the query
    /// found it stays, and is counted as [changed](crate::action::BulkProgress::changed).
    ///
    /// Each entity is moved as [`TableClient::move_key`] moves one: with all its properties, its
    /// entries of [indexes](derive@crate::TableEntity#index) and its
    /// [copies](derive@crate::TableEntity#copy), and never under neither key. The closure may
    /// change other properties, too. An entity whose key it does not change is left as it is, and
    /// counted as [skipped](crate::action::BulkProgress::skipped).
    ///
    /// The query may find an entity again that the run has moved further on in the order of keys:
    /// the closure is not called for it. The run keeps the keys of these entities in memory.
    ///
    /// After an error or the end of the program, some entities are under both keys, and the same
    /// run can be started again, if the closure leaves the key of an entity that was moved as it
    /// is.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let all = || table.query::<Employee>();
    /// let report = all().move_keys(|e| e.department = "Legal".to_owned()).concurrency(4).await?;
    /// assert_eq!((report.progress().written, report.progress().skipped), (3, 0));
    ///
    /// let again = all().move_keys(|e| e.department = "Legal".to_owned()).dry_run().await?;
    /// assert_eq!((again.progress().read, again.progress().skipped), (0, 3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BulkError`](crate::action::BulkError) when the query fails, or when the run ends early. An
    /// entity whose new key is not valid, or is that of another entity, is a
    /// [failure](crate::action::BulkReport::failures) under its former key;
    /// [`overwrite`](MoveKeys::overwrite) replaces the other entity.
    pub fn move_keys<'a>(self, change: impl FnMut(&mut E) + Send + 'a) -> MoveKeys<'a>
    where
        E: WritableEntity,
    {
        const { check_not_encrypted::<E>() }
        MoveKeys::new(self, change)
    }
}
