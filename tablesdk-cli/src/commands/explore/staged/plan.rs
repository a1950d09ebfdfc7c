//! The plan that would be sent: the staged changes as transactions, with the texts of their
//! requests.

use std::collections::HashMap;
use std::sync::Arc;

use tablesdk_cli::lines::entity_json;

use super::Entry;
use super::change::{Change, Write};
use crate::escape::{harmless, harmless_json, shortened};
use crate::room::Room;

/// The transactions in the order in which they are sent.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// Names the plan: another set of changes has another number.
    pub(crate) number: u64,
    pub(crate) transactions: Vec<Transaction>,
}

/// Changes that are carried out together or not at all. A single one is a plain request.
#[derive(Clone)]
pub(crate) struct Transaction {
    pub(crate) table: String,
    pub(crate) partition: String,
    pub(crate) entries: Vec<Entry>,
}

/// The text of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The method and the entity.
    pub(crate) line: String,
    pub(crate) if_match: Option<String>,
    /// The beginning of the body.
    pub(crate) body: Option<String>,
}

impl Plan {
    pub(super) fn of(number: u64, entries: impl Iterator<Item = Entry>) -> Self {
        let mut transactions: Vec<Transaction> = Vec::new();
        // The last transaction of each partition, and the room that it has.
        let mut open: HashMap<(String, String), (usize, Room)> = HashMap::new();
        for entry in entries {
            let change = Arc::clone(&entry.change);
            let target = &change.target;
            let partition = (target.table.to_ascii_lowercase(), target.partition.clone());
            let count = transactions.len();
            let (place, room) = open
                .entry(partition)
                .or_insert_with(|| (count, Room::default()));
            if !room.takes(change.request_bytes()) {
                (*place, *room) = (count, Room::default());
                room.takes(change.request_bytes());
            }
            match transactions.get_mut(*place) {
                Some(transaction) => transaction.entries.push(entry),
                None => transactions.push(Transaction {
                    table: target.table.clone(),
                    partition: target.partition.clone(),
                    entries: vec![entry],
                }),
            }
        }
        Self {
            number,
            transactions,
        }
    }

    /// The number of changes.
    pub(crate) fn changes(&self) -> usize {
        self.transactions.iter().map(|it| it.entries.len()).sum()
    }
}

impl Change {
    /// The request that sends it, for people.
    pub(crate) fn request(&self) -> Request {
        let (table, verb) = (&self.target.table, self.verb());
        let [partition, row] = [&self.target.partition, &self.target.row].map(|key| quoted(key));
        let line = match self.write {
            Write::Insert(_) => format!("{verb} {table}"),
            _ => format!("{verb} {table}(PartitionKey={partition},RowKey={row})"),
        };
        let body = self.sent().map(|sent| {
            let json = String::from_utf8_lossy(&entity_json(sent)).into_owned();
            let count = json.chars().count();
            let shown = harmless_json(&shortened(&json, BODY_MAX));
            if count > BODY_MAX {
                format!("{shown} ({count} characters)")
            } else {
                shown
            }
        });
        Request {
            line: harmless(&line),
            if_match: self.etag().map(|etag| harmless(etag.as_str())),
            body,
        }
    }
}

/// A key as it stands in a URL, decoded.
fn quoted(key: &str) -> String {
    format!("'{}'", key.replace('\'', "''"))
}

/// How many characters of a body are shown.
const BODY_MAX: usize = 2000;

#[cfg(test)]
mod tests {
    use tablesdk::DynamicEntity;

    use super::super::change::Target;
    use super::super::tests::{etag, merge};
    use super::super::{Now, Outcome, Report, Staged};
    use super::*;

    #[test]
    fn a_request_shows_its_condition_and_its_body() {
        let Request {
            line,
            if_match,
            body,
        } = merge().request();
        assert_eq!(
            line,
            "MERGE Employees(PartitionKey='Sales',RowKey='000145')"
        );
        let expected = r#"W/"datetime'2026-11-24T05%3A58%3A01Z'""#;
        assert_eq!(if_match.as_deref(), Some(expected));
        let expected = r#"{"PartitionKey":"Sales","RowKey":"000145","Salary@odata.type":"Edm.Double","Salary":58500.0}"#;
        assert_eq!(body.as_deref(), Some(expected));
    }

    #[test]
    fn a_request_shows_a_long_value_in_part_and_a_text_that_acts_escaped() {
        let entity = DynamicEntity::new("O'Neil", "a\u{202e}b");
        let delete = Change::delete(
            Target::new("Employees", "O'Neil", "a\u{202e}b"),
            etag(1),
            None,
        );
        assert_eq!(
            delete.request().line,
            r"DELETE Employees(PartitionKey='O''Neil',RowKey='a\u{202e}b')"
        );
        let long = entity.with("Note", "x".repeat(9000));
        let body = Change::insert("Employees", long).request().body;
        let body = body.expect("an insert has one");
        assert!(body.chars().count() < 2100, "{}", body.len());
        assert!(body.ends_with("… (9050 characters)"), "{body}");
    }

    #[test]
    fn changes_of_a_partition_are_one_transaction_up_to_its_limits() {
        let mut staged = Staged::default();
        let mut insert = |table: &str, partition: &str, row: usize, bytes: usize| {
            let entity = DynamicEntity::new(partition, format!("{row:03}"));
            let entity = (0..bytes >> 15).fold(entity, |entity, index| {
                entity.with(format!("P{index}"), vec![7_u8; 1 << 15])
            });
            staged
                .stage(Change::insert(table, entity))
                .expect("there is room");
        };
        for row in 0..101 {
            insert("Employees", "Sales", row, 0);
            if row == 50 {
                insert("Employees", "IT", row, 0);
                insert("employees", "IT", row + 1, 0);
                insert("Departments", "IT", row, 0);
            }
        }
        for row in 0..6 {
            insert("Photos", "Sales", row, 768 << 10);
        }
        let plan = staged.plan();
        let told: Vec<_> = plan
            .transactions
            .iter()
            .map(|it| (it.table.as_str(), it.partition.as_str(), it.entries.len()))
            .collect();
        assert_eq!(
            told,
            [
                ("Employees", "Sales", 100),
                ("Employees", "IT", 2),
                ("Departments", "IT", 1),
                ("Employees", "Sales", 1),
                ("Photos", "Sales", 3),
                ("Photos", "Sales", 3),
            ]
        );
        assert_eq!(plan.changes(), 110);
    }

    #[test]
    fn a_change_with_an_open_question_is_in_no_plan() {
        let mut staged = Staged::default();
        let id = staged.stage(merge()).expect("there is room");
        let plan = staged.begin(staged.plan().number).expect("it is the plan");
        let conflict = Outcome::Conflict {
            index: 0,
            now: Arc::new(Now::Missing),
        };
        let transactions = plan.transactions.into_iter();
        staged.finish(Report {
            transactions: transactions.map(|it| (it, conflict.clone())).collect(),
            ..Report::default()
        });
        assert_eq!(staged.plan().changes(), 0);
        assert!(staged.report().is_some());
        staged.try_again(id).expect("it is staged");
        assert_eq!(staged.plan().changes(), 1);
        assert!(staged.report().is_none(), "it has no conflict now");
    }
}
