//! [`Op`]: the names of the operations.

use std::fmt;
use std::str::FromStr;

use tablesdk_protocol::operation::Operation;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::{update_entity, update_entity::Mode};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident $access:ident;)*) => {
        /// An operation of the service, by the name that it has in the service's logs. Only a batch
        /// has a name of its own: `Batch`, which the logs call `EntityGroupTransaction`.
        ///
        /// ```
        /// use tablesdk_server::testing::Op;
        ///
        /// assert_eq!(Op::InsertOrMergeEntity.to_string(), "InsertOrMergeEntity");
        /// assert_eq!("QueryEntities".parse(), Ok(Op::QueryEntities));
        /// assert!(Op::MergeEntity.is_write());
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Op {
            $($(#[$doc])* $name,)*
        }

        impl Op {
            /// All operations.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name of the operation.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns true if the operation changes entities, tables or settings.
            pub const fn is_write(self) -> bool {
                match self {
                    $(Self::$name => operations!(@ $access),)*
                }
            }
        }
    };
    (@ write) => { true };
    (@ read) => { false };
}

operations! {
    /// A batch: changes that are applied together, or one query. A batch of a query counts as a
    /// write.
    Batch write;
    /// Creates a table.
    CreateTable write;
    /// Deletes an entity.
    DeleteEntity write;
    /// Deletes a table.
    DeleteTable write;
    /// Reads the model of the service.
    GetMetadata read;
    /// Reads the stored access policies of a table.
    GetTableAcl read;
    /// Reads the properties of the service.
    GetTableServiceProperties read;
    /// Reads the statistics of the service.
    GetTableServiceStats read;
    /// Gets a user delegation key.
    GetUserDelegationKey read;
    /// Inserts an entity that must not exist.
    InsertEntity write;
    /// Merges into an entity, or inserts it.
    InsertOrMergeEntity write;
    /// Replaces an entity, or inserts it.
    InsertOrReplaceEntity write;
    /// Merges into an entity that must exist.
    MergeEntity write;
    /// Reads a page of entities.
    QueryEntities read;
    /// Reads one entity by its key.
    QueryEntity read;
    /// Reads one table by its name.
    QueryTable read;
    /// Reads a page of tables.
    QueryTables read;
    /// Replaces the stored access policies of a table.
    SetTableAcl write;
    /// Changes the properties of the service.
    SetTableServiceProperties write;
    /// Replaces an entity that must exist.
    UpdateEntity write;
}

impl Op {
    /// The operation of a request. `None` for a request to a resource that does not exist.
    pub(crate) const fn of(operation: &Operation) -> Option<Self> {
        Some(match operation {
            Operation::Batch(_) => Self::Batch,
            Operation::CreateTable(_) => Self::CreateTable,
            Operation::DeleteEntity(_) => Self::DeleteEntity,
            Operation::DeleteTable(_) => Self::DeleteTable,
            Operation::GetEntity(_) => Self::QueryEntity,
            Operation::GetMetadata(_) => Self::GetMetadata,
            Operation::GetServiceProperties(_) => Self::GetTableServiceProperties,
            Operation::GetServiceStats(_) => Self::GetTableServiceStats,
            Operation::GetTable(_) => Self::QueryTable,
            Operation::GetTableAcl(_) => Self::GetTableAcl,
            Operation::GetUserDelegationKey(_) => Self::GetUserDelegationKey,
            Operation::InsertEntity(_) => Self::InsertEntity,
            Operation::QueryEntities(_) => Self::QueryEntities,
            Operation::QueryTables(_) => Self::QueryTables,
            Operation::SetServiceProperties(_) => Self::SetTableServiceProperties,
            Operation::SetTableAcl(_) => Self::SetTableAcl,
            Operation::UpdateEntity(request) => Self::of_update(request),
            _ => return None,
        })
    }

    /// The operation that a change in a batch would be on its own.
    pub(super) const fn of_change(change: &Change) -> Self {
        match change {
            Change::Delete(_) => Self::DeleteEntity,
            Change::Insert(_) => Self::InsertEntity,
            Change::Update(request) => Self::of_update(request),
        }
    }

    const fn of_update(request: &update_entity::Request) -> Self {
        match (request.mode, &request.if_match) {
            (Mode::Merge, Some(_)) => Self::MergeEntity,
            (Mode::Merge, None) => Self::InsertOrMergeEntity,
            (Mode::Replace, Some(_)) => Self::UpdateEntity,
            (Mode::Replace, None) => Self::InsertOrReplaceEntity,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Op {
    type Err = UnknownOpError;

    fn from_str(name: &str) -> Result<Self, UnknownOpError> {
        let known = Self::ALL.iter().find(|op| op.as_str() == name);
        known
            .copied()
            .ok_or_else(|| UnknownOpError(name.chars().take(SHOWN_MAX).collect()))
    }
}

/// The string is not the name of an [`Op`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of an operation, such as InsertEntity")]
pub struct UnknownOpError(String);

/// How much of an unknown name an error shows.
const SHOWN_MAX: usize = 64;
