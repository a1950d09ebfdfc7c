//! The verbs, each on the same entity: its state before, its expected state after, and how often the verb may write it.

use tablesdk::{ETag, Error, Stored, TableClient};
use tablesdk_server::testing::Op;

use super::State;
use crate::Employee;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Batch,
    BatchOnce,
    Delete,
    DeleteOnce,
    DeleteIf,
    DeleteStored,
    DeleteStoredOnce,
    Get,
    Insert,
    InsertOnce,
    Merge,
    MergeIf,
    MergeIfOnce,
    MergeOnce,
    MergeIfAny,
    Modify,
    ModifyOnce,
    Patch,
    PatchIf,
    PatchIfOnce,
    Query,
    Replace,
    ReplaceIf,
    ReplaceIfOnce,
    ReplaceOnce,
    ReplaceIfAny,
    UpsertMerge,
    UpsertReplace,
    UpsertReplaceOnce,
}

/// The guarantee of a verb when its request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It writes once, or not at all.
    Once,
    Read,
    /// It guarantees a state, and may write it twice.
    State,
}

impl Verb {
    pub(super) const ALL: [Self; 29] = [
        Self::Batch,
        Self::BatchOnce,
        Self::Delete,
        Self::DeleteOnce,
        Self::DeleteIf,
        Self::DeleteStored,
        Self::DeleteStoredOnce,
        Self::Get,
        Self::Insert,
        Self::InsertOnce,
        Self::Merge,
        Self::MergeIf,
        Self::MergeIfOnce,
        Self::MergeOnce,
        Self::MergeIfAny,
        Self::Modify,
        Self::ModifyOnce,
        Self::Patch,
        Self::PatchIf,
        Self::PatchIfOnce,
        Self::Query,
        Self::Replace,
        Self::ReplaceIf,
        Self::ReplaceIfOnce,
        Self::ReplaceOnce,
        Self::ReplaceIfAny,
        Self::UpsertMerge,
        Self::UpsertReplace,
        Self::UpsertReplaceOnce,
    ];

    pub(super) fn class(self) -> Class {
        match self {
            Self::Get | Self::Query => Class::Read,
            Self::MergeIfAny
            | Self::Patch
            | Self::ReplaceIfAny
            | Self::UpsertMerge
            | Self::UpsertReplace => Class::State,
            _ => Class::Once,
        }
    }

    pub(super) fn is_exactly_once(self) -> bool {
        matches!(
            self,
            Self::BatchOnce
                | Self::DeleteOnce
                | Self::DeleteStoredOnce
                | Self::InsertOnce
                | Self::MergeIfOnce
                | Self::MergeOnce
                | Self::ModifyOnce
                | Self::PatchIfOnce
                | Self::ReplaceIfOnce
                | Self::ReplaceOnce
                | Self::UpsertReplaceOnce
        )
    }

    /// The operation that gets the fault.
    pub(super) fn op(self) -> Op {
        match self {
            Self::Get => Op::QueryEntity,
            Self::Query => Op::QueryEntities,
            Self::Insert => Op::InsertEntity,
            Self::Delete | Self::DeleteIf | Self::DeleteStored => Op::DeleteEntity,
            Self::Batch => Op::Batch,
            _ if self.is_exactly_once() => Op::Batch,
            Self::UpsertMerge => Op::InsertOrMergeEntity,
            Self::UpsertReplace => Op::InsertOrReplaceEntity,
            Self::Modify | Self::Replace | Self::ReplaceIf | Self::ReplaceIfAny => Op::UpdateEntity,
            _ => Op::MergeEntity,
        }
    }

    pub(super) fn before(self) -> State {
        match self {
            Self::Insert | Self::InsertOnce => None,
            _ => Some(("Ada".to_owned(), 36)),
        }
    }

    pub(super) fn after(self) -> State {
        match self {
            Self::Delete
            | Self::DeleteIf
            | Self::DeleteOnce
            | Self::DeleteStored
            | Self::DeleteStoredOnce => None,
            _ if self.class() == Class::Read => self.before(),
            _ => Some(("Ada".to_owned(), 37)),
        }
    }

    /// Carries out the verb on the stored entity. Returns whether the verb changed or found anything.
    pub(super) async fn run(
        self,
        table: &TableClient,
        row: Option<Stored<Employee>>,
    ) -> Result<bool, Error> {
        let new = Employee::new("1", "Ada", 37);
        let key = || Employee::key("Sales", "1");
        let mut row = match row {
            Some(row) => row,
            None if matches!(self, Self::Insert) => return table.insert(&new).await.map(|_| true),
            None => return table.insert(&new).exactly_once().await.map(|_| true),
        };
        match self {
            Self::Delete => return table.delete(key()).await,
            Self::DeleteOnce => return table.delete(key()).exactly_once().await,
            Self::DeleteIf => return table.delete(key()).if_match(row.etag()).await,
            Self::DeleteStored => return table.delete_stored(&row).await,
            Self::DeleteStoredOnce => return table.delete_stored(&row).exactly_once().await,
            Self::Get => return Ok(table.get(key()).await?.is_some_and(|found| found == row)),
            Self::Query => {
                let found = table.query::<Employee>().collect().await?;
                return Ok(found == [row]);
            }
            _ => {}
        }
        row.age = 37;
        match self {
            Self::Batch => table.batch("Sales").replace(&mut row).await.map(drop),
            Self::BatchOnce => {
                let batch = table.batch("Sales").replace(&mut row).exactly_once();
                batch.await.map(drop)
            }
            Self::Merge => table.merge(&mut row).await.map(drop),
            Self::MergeIf => table.merge_if(&new, row.etag()).await.map(drop),
            Self::MergeIfOnce => {
                let merge = table.merge_if(&new, row.etag());
                merge.exactly_once().await.map(drop)
            }
            Self::MergeOnce => table.merge(&mut row).exactly_once().await.map(drop),
            Self::MergeIfAny => table.merge_if(&new, ETag::ANY).await.map(drop),
            Self::Modify => table.modify(key(), Employee::grow_older).await.map(drop),
            Self::ModifyOnce => table
                .modify(key(), Employee::grow_older)
                .exactly_once()
                .await
                .map(drop),
            Self::Patch => table.patch(key()).set(|e| e.age, 37).await.map(drop),
            Self::PatchIf => {
                let patch = table.patch(key()).set(|e| e.age, 37);
                patch.if_match(row.etag()).await.map(drop)
            }
            Self::PatchIfOnce => {
                let patch = table.patch(key()).set(|e| e.age, 37);
                let patch = patch.if_match(row.etag());
                patch.exactly_once().await.map(drop)
            }
            Self::Replace => table.replace(&mut row).await.map(drop),
            Self::ReplaceIf => table.replace_if(&new, row.etag()).await.map(drop),
            Self::ReplaceIfOnce => {
                let replace = table.replace_if(&new, row.etag());
                replace.exactly_once().await.map(drop)
            }
            Self::ReplaceOnce => table.replace(&mut row).exactly_once().await.map(drop),
            Self::ReplaceIfAny => table.replace_if(&new, ETag::ANY).await.map(drop),
            Self::UpsertMerge => table.upsert_merge(&new).await.map(drop),
            Self::UpsertReplace => table.upsert_replace(&new).await.map(drop),
            Self::UpsertReplaceOnce => {
                let upsert = table.upsert_replace(&new);
                upsert.exactly_once().await.map(drop)
            }
            other => panic!("{other:?} is not one of these"),
        }
        .map(|()| true)
    }
}
