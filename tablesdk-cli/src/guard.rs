//! The options that say which stored versions a write is about: `--force` and `--if-match`.

use std::collections::BTreeSet;

use clap::Args;
use tablesdk::{ETag, TableClient};
use tablesdk_cli::own::{EntrySearch, Kept};

use crate::error::{AnyError, UsageError};
use crate::escape::harmless;
use crate::output::note;

/// Whether entities that the client keeps are written
#[derive(Args)]
pub(crate) struct Guard {
    /// Write also what the client of tablesdk keeps in step with other entities
    ///
    /// These are entries of indexes, copies, parts of wide entities, and entities whose row
    /// key begins with ~tablesdk. Standard error says what mends the others afterwards.
    #[arg(long)]
    force: bool,
    /// What mends stale entities afterwards.
    #[arg(skip)]
    mends: BTreeSet<String>,
    #[arg(skip)]
    search: Option<EntrySearch>,
}

impl Guard {
    pub(crate) const fn is_forced(&self) -> bool {
        self.force
    }

    /// Refuses to write an entity that the client keeps, unless it is forced.
    pub(crate) fn check(&mut self, key: &str, kept: Option<Kept>) -> Result<(), AnyError> {
        let Some(kept) = kept else {
            return Ok(());
        };
        let problem = format!("{key} is {}", harmless(&kept.to_string()));
        self.refuse(&problem, &kept)
    }

    /// Refuses to write into a partition, or a table, with entries that would become stale, unless it is forced. It may miss those in other
    /// partitions of a large table.
    pub(crate) async fn check_table(
        &mut self,
        table: &TableClient,
        partition: Option<&str>,
    ) -> Result<(), AnyError> {
        let search = self.search.get_or_insert_with(|| EntrySearch::new(table));
        let Some(kept) = search.first(partition).await? else {
            return Ok(());
        };
        let entry = harmless(&kept.to_string());
        let table = table.name();
        self.refuse(
            &format!("{table} contains {entry}, which this write leaves as it is"),
            &kept,
        )
    }

    /// Refuses to delete a table with steps of outboxes, unless it is forced.
    pub(crate) fn check_steps(&self, table: &str) -> Result<(), AnyError> {
        if self.force {
            return Ok(());
        }
        let text = format!(
            "{table} has steps of outboxes that no worker has applied: see `tables outbox list {table}`, or use --force"
        );
        Err(UsageError(text.into()).into())
    }

    fn refuse(&mut self, problem: &str, kept: &Kept) -> Result<(), AnyError> {
        let mend = harmless(kept.mend());
        if self.force {
            self.mends.insert(mend);
            return Ok(());
        }
        let text =
            format!("{problem}: nothing is written. With --force it is written; then {mend}");
        Err(UsageError(text.into()).into())
    }

    /// Says what is to be done after the write.
    pub(crate) fn note_mends(&self) {
        for mend in &self.mends {
            note(&format!("now {mend}"));
        }
    }
}

/// An ETag of the arguments; `*` is any version.
pub(crate) fn etag(text: &str) -> Result<ETag, String> {
    match text {
        "*" => Ok(ETag::ANY),
        _ => text.parse::<ETag>().map_err(|error| error.to_string()),
    }
}
