//! Keys: whole and in parts, of entities, partitions and ranges of row keys.
//!
//! The derive gives each entity the functions `key`, `partition` and `rows`, which return [`Key`],
//! [`Partition`] and [`RowRange`]. A wrong value is kept, and reported when the action that got the
//! key is awaited. [`Desc`], [`Shard`] and [`Escaped`] are types for the fields of a key.
//! [`EntityKey`], [`PartitionKey`] and [`RowKey`] are keys of entities without a struct. The [guide
//! to entities](crate::guide::entities) shows them together.
//!
//! ```
#![doc = include_str!("docs/employees.md")]
//! use tablesdk::key::EntityKey;
//!
//! table.insert(&Employee::new("Sales", "1", "Ada")).await?;
//! assert!(table.get(Employee::key("Sales", "1")).await?.is_some());
//! assert_eq!(table.query::<Employee>().partition("Sales").count().await?, 1);
//! assert!(table.delete(EntityKey::new("Sales", "1")?).await?);
//! # Ok(())
//! # }
//! ```

pub use crate::entity::key::{
    Desc, EntityKey, Escaped, IntoEntityKey, IntoPartitionKey, Key, KeyError, KeyKind, KeyNumber,
    KeyOf, KeyPart, KeyProblem, Partition, PartitionKey, PartitionOf, RowKey, RowRange, Shard,
};
