//! Rejections of the engine: errors of the client, one variant for each error code of the service.
//!
//! A failure of the storage is an error of the server and has another type. [`Failure`] combines
//! the two. This module knows codes, but no messages and no statuses.

use tablesdk_protocol::{ErrorCode, ServiceError};

use crate::storage::StorageError;

/// A command that the rules of tables forbid. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The condition is an ETag that no entity can have.
    ConditionNotMet,
    /// A batch with entities of more than one partition.
    DifferentPartitions,
    /// A batch that names an entity twice.
    DuplicateRow,
    /// An insert of an entity that exists.
    EntityAlreadyExists,
    /// More than 1 MiB, as the service counts.
    EntityTooLarge,
    /// The entity, or the table to delete, does not exist.
    // SERVICE: both have this code, although the documentation gives each one of its own.
    ResourceNotFound,
    /// A write to the service's own tables.
    // SERVICE: the code is assumed.
    SystemTable,
    /// Creating a table whose name exists, in upper or lower case.
    TableAlreadyExists,
    /// Creating a table whose name is reserved after a deletion.
    TableBeingDeleted,
    /// An operation on the entities of a missing table.
    TableNotFound,
    /// More than 252 properties.
    TooManyProperties,
    /// The entity has another ETag.
    UpdateConditionNotSatisfied,
}

impl Rejection {
    /// The service's code.
    pub(crate) const fn code(self) -> ErrorCode {
        match self {
            Self::ConditionNotMet => ErrorCode::ConditionNotMet,
            Self::DifferentPartitions => ErrorCode::CommandsInBatchActOnDifferentPartitions,
            Self::DuplicateRow => ErrorCode::InvalidDuplicateRow,
            Self::EntityAlreadyExists => ErrorCode::EntityAlreadyExists,
            Self::EntityTooLarge => ErrorCode::EntityTooLarge,
            Self::ResourceNotFound => ErrorCode::ResourceNotFound,
            Self::SystemTable => ErrorCode::InsufficientAccountPermissions,
            Self::TableAlreadyExists => ErrorCode::TableAlreadyExists,
            Self::TableBeingDeleted => ErrorCode::TableBeingDeleted,
            Self::TableNotFound => ErrorCode::TableNotFound,
            Self::TooManyProperties => ErrorCode::TooManyProperties,
            Self::UpdateConditionNotSatisfied => ErrorCode::UpdateConditionNotSatisfied,
        }
    }
}

impl From<Rejection> for ServiceError {
    fn from(rejection: Rejection) -> Self {
        rejection.code().into()
    }
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An error of the client.
    Rejected(Rejection),
    /// An error of the client, in the change of a batch with this index.
    RejectedChange(usize, Rejection),
    /// An error of the server.
    Storage(StorageError),
}

impl Failure {
    /// The same failure as that of one change in a batch.
    pub(super) fn of_change(self, index: usize) -> Self {
        match self {
            Self::Rejected(rejection) => Self::RejectedChange(index, rejection),
            other => other,
        }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}
