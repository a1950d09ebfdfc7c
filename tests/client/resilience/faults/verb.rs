//! The verbs, each on the same entity: its state before, its expected state after, and how often
//! the verb may write it.

use std::fmt;

use tablesdk::{ETag, Error, Stored, TableClient};
use tablesdk_server::testing::Op;

use crate::Employee;

/// The guarantee of a verb when its request is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It writes once, or not at all.
    Once,
    Read,
    /// It guarantees a state, and may write it twice.
    State,
}

/// The names of the verbs, their guarantees, and the operation that gets the fault.
const VERBS: [(&str, Class, Op); 19] = [
    ("batch", Class::Once, Op::Batch),
    ("delete", Class::Once, Op::DeleteEntity),
    ("delete if_match", Class::Once, Op::DeleteEntity),
    ("delete_stored", Class::Once, Op::DeleteEntity),
    ("get", Class::Read, Op::QueryEntity),
    ("insert", Class::Once, Op::InsertEntity),
    ("merge", Class::Once, Op::MergeEntity),
    ("merge_if", Class::Once, Op::MergeEntity),
    ("merge_if any", Class::State, Op::MergeEntity),
    ("modify", Class::Once, Op::UpdateEntity),
    ("patch", Class::State, Op::MergeEntity),
    ("patch if_match", Class::Once, Op::MergeEntity),
    ("query", Class::Read, Op::QueryEntities),
    ("replace", Class::Once, Op::UpdateEntity),
    ("replace_if", Class::Once, Op::UpdateEntity),
    ("replace_if any", Class::State, Op::UpdateEntity),
    ("transaction", Class::Once, Op::Batch),
    ("upsert_merge", Class::State, Op::InsertOrMergeEntity),
    ("upsert_replace", Class::State, Op::InsertOrReplaceEntity),
];

#[derive(Clone, Copy)]
pub(super) struct Verb {
    name: &'static str,
    class: Class,
    op: Op,
    pub(super) is_exactly_once: bool,
}

impl fmt::Debug for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = if self.is_exactly_once {
            " exactly_once"
        } else {
            ""
        };
        write!(f, "{}{option}", self.name)
    }
}

impl Verb {
    /// Each verb, and each write exactly once as well.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let verbs = VERBS.into_iter().flat_map(|(name, class, op)| {
            [false, true].map(|is_exactly_once| Self {
                name,
                class,
                op,
                is_exactly_once,
            })
        });
        verbs.filter(|verb| !(verb.is_exactly_once && verb.class == Class::Read))
    }

    pub(super) fn class(self) -> Class {
        if self.is_exactly_once {
            Class::Once
        } else {
            self.class
        }
    }

    /// The operation that gets the fault.
    pub(super) fn op(self) -> Op {
        if self.is_exactly_once {
            Op::Batch
        } else {
            self.op
        }
    }

    pub(super) fn is_delete(self) -> bool {
        self.op == Op::DeleteEntity
    }

    /// A delete by key alone, which succeeds as soon as the entity is missing.
    pub(super) fn is_delete_by_key(self) -> bool {
        self.name == "delete"
    }

    /// Returns true if a read that gets no fault comes before the write.
    pub(super) fn reads_first(self) -> bool {
        matches!(self.name, "modify" | "transaction")
    }

    pub(super) fn before(self) -> Option<Employee> {
        (self.name != "insert").then(Employee::ada)
    }

    pub(super) fn after(self) -> Option<Employee> {
        match self.class {
            Class::Read => self.before(),
            _ if self.is_delete() => None,
            _ => Some(Employee::new("1", "Ada", 37)),
        }
    }

    /// Carries out the verb on the stored entity. Returns whether the verb changed or found
    /// anything.
    pub(super) async fn run(
        self,
        table: &TableClient,
        row: Option<Stored<Employee>>,
    ) -> Result<bool, Error> {
        macro_rules! run {
            ($action:expr) => {
                if self.is_exactly_once {
                    $action.exactly_once().await
                } else {
                    $action.await
                }
            };
        }
        let new = Employee::new("1", "Ada", 37);
        let key = || Employee::key("Sales", "1");
        let Some(mut row) = row else {
            return run!(table.insert(&new)).map(|_| true);
        };
        match self.name {
            "delete" => return run!(table.delete(key())),
            "delete if_match" => return run!(table.delete(key()).if_match(row.etag())),
            "delete_stored" => return run!(table.delete_stored(&row)),
            "get" => return Ok(table.get(key()).await? == Some(row)),
            "query" => return Ok(table.query::<Employee>().collect().await? == [row]),
            _ => row.age = 37,
        }
        let patch = || table.patch(key()).set(|e| e.age, 37);
        match self.name {
            "batch" => run!(table.batch("Sales").replace(&mut row)).map(drop),
            "merge" => run!(table.merge(&mut row)).map(drop),
            "merge_if" => run!(table.merge_if(&new, row.etag())).map(drop),
            "merge_if any" => run!(table.merge_if(&new, ETag::ANY)).map(drop),
            "modify" => run!(table.modify(key(), Employee::grow_older)).map(drop),
            "patch" => run!(patch()).map(drop),
            "patch if_match" => run!(patch().if_match(row.etag())).map(drop),
            "replace" => run!(table.replace(&mut row)).map(drop),
            "replace_if" => run!(table.replace_if(&new, row.etag())).map(drop),
            "replace_if any" => run!(table.replace_if(&new, ETag::ANY)).map(drop),
            "transaction" => {
                let transaction = table.transaction("Sales", async |tx| {
                    let mut row = tx.get(key()).await?.ok_or("it was inserted")?;
                    row.age = 37;
                    tx.replace(row);
                    Ok(())
                });
                run!(transaction)
            }
            "upsert_merge" => run!(table.upsert_merge(&new)).map(drop),
            "upsert_replace" => run!(table.upsert_replace(&new)).map(drop),
            other => panic!("{other} is not one of these"),
        }
        .map(|()| true)
    }
}
