//! The entities that are written only with `--force`, and the option `--if-match`.

use std::collections::BTreeSet;
use std::fmt;

use clap::Args;
use tablesdk::{ETag, Error, TableClient};
use tablesdk_cli::own::{EntrySearch, Kept};

use crate::error::{AnyError, UsageError};
use crate::escape::harmless;
use crate::output::note;

/// The protection of entities that the client keeps
#[derive(Args)]
pub(crate) struct Guard {
    /// Write also what the client of tablesdk keeps in step with other entities
    ///
    /// These are entries of indexes, copies, parts of wide entities, and entities whose row
    /// key begins with ~tablesdk. Standard error says what mends the others afterwards.
    #[arg(long)]
    force: bool,
    /// The repairs of stale entities that are needed afterwards.
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
        self.refuse(Refusal::of_entity(key, kept))
    }

    /// Refuses to write into a partition, or a table, with entries that would become stale, unless
    /// it is forced. It may miss those in other partitions of a large table.
    pub(crate) async fn check_table(
        &mut self,
        table: &TableClient,
        partition: Option<&str>,
    ) -> Result<(), AnyError> {
        let search = self.search.get_or_insert_with(|| EntrySearch::new(table));
        let refusal = Refusal::of_table(table.name(), search, partition).await?;
        self.refuse(refusal)
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

    fn refuse(&mut self, refusal: Option<Refusal>) -> Result<(), AnyError> {
        match refusal {
            Some(refusal) if self.force => self.mends.insert(refusal.mend),
            Some(refusal) => return Err(UsageError(refusal.to_string().into()).into()),
            None => true,
        };
        Ok(())
    }

    /// Says what is to be done after the write.
    pub(crate) fn note_mends(&self) {
        for mend in &self.mends {
            note(&format!("now {mend}"));
        }
    }
}

/// Why a write needs to be forced. Displayed, it names the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) problem: String,
    /// The repair of stale entities that is needed afterwards.
    pub(crate) mend: String,
}

impl Refusal {
    /// The refusal of an entity that the client keeps.
    pub(crate) fn of_entity(key: &str, kept: Option<Kept>) -> Option<Self> {
        let kept = kept?;
        let problem = format!("{key} is {}", harmless(&kept.to_string()));
        Some(Self::new(problem, &kept))
    }

    /// The refusal of a write into a partition, or a table, with entries that would become stale.
    pub(crate) async fn of_table(
        table: &str,
        search: &mut EntrySearch,
        partition: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let kept = search.first(partition).await?;
        Ok(kept.map(|kept| {
            let entry = harmless(&kept.to_string());
            let problem = format!("{table} contains {entry}, which this write leaves as it is");
            Self::new(problem, &kept)
        }))
    }

    fn new(problem: String, kept: &Kept) -> Self {
        let mend = harmless(kept.mend());
        Self { problem, mend }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { problem, mend } = self;
        write!(
            f,
            "{problem}: nothing is written. With --force it is written; then {mend}"
        )
    }
}

/// An ETag of the arguments; `*` is any version.
pub(crate) fn etag(text: &str) -> Result<ETag, String> {
    match text {
        "*" => Ok(ETag::ANY),
        _ => text.parse::<ETag>().map_err(|error| error.to_string()),
    }
}
