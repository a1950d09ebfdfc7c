//! `tables query`: entities of one table, page by page.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::json;
use tablesdk::query::{AccessClass, Explanation, Page, PageToken};
use tablesdk::{DynamicEntity, RetryPolicy, Stored, TableClient};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use crate::account::Account;
use crate::error::{AnyError, UsageError};
use crate::output::{Output, note};
use crate::selection::{Selection, note_access};

/// Print entities of a table
///
/// Standard error says first how the service finds the entities, and at last whether there
/// are more. A query that looks at the whole table is refused without --scan.
///
///   tables query Employees --partition Sales
///   tables query Employees --partition Sales --count
///   tables query Employees --partition Sales --rows 000100..000200 --select Name,Age
///   tables query Employees --filter "Age ge 36" --scan
///
/// Entities that the client stores for purposes of its own are not shown; `tables export`
/// writes them.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Query {
    /// The table
    table: String,
    #[command(flatten)]
    selection: Selection,
    /// Only these properties, beside the keys: names with commas between them
    #[arg(
        long,
        help_heading = "Entities",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    select: Vec<String>,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    account: Account,
}

/// How many entities are printed
#[derive(Args)]
struct Extent {
    /// Print at most this number of entities
    #[arg(long, value_name = "COUNT", default_value_t = 1000, conflicts_with = "all", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    take: usize,
    /// Print all entities
    #[arg(long)]
    all: bool,
    /// Print what comes after an earlier query, which has printed this token
    #[arg(long = "continue", value_name = "TOKEN")]
    resume: Option<String>,
    /// Print how many entities there are, and none of them
    #[arg(long, conflicts_with_all = ["take", "all", "resume", "select"])]
    count: bool,
    /// Look at the whole table if nothing else finds the entities
    #[arg(long)]
    scan: bool,
}

impl Query {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        let Self {
            table,
            account,
            selection,
            select,
            extent,
        } = self;
        let asked = Asked {
            table: account.connect()?.table(&table),
            selection,
            select,
            retry: RetryPolicy::exponential(),
        };
        extent.print(&asked, output).await
    }
}

/// The entities and properties that a query asks for.
pub(crate) struct Asked {
    pub(crate) table: TableClient,
    pub(crate) selection: Selection,
    pub(crate) select: Vec<String>,
    pub(crate) retry: RetryPolicy,
}

impl Asked {
    /// How the service finds the entities. Nothing is sent.
    pub(crate) fn access(&self) -> Result<AccessClass, tablesdk::Error> {
        Ok(self.explain()?.access())
    }

    /// The request, and how the service finds the entities. Nothing is sent yet.
    pub(crate) fn explain(&self) -> Result<Explanation, tablesdk::Error> {
        self.selection.query(&self.table).explain()
    }

    /// The first request for a page of this size, with the properties to read. Nothing is sent yet.
    #[cfg(feature = "explore")]
    pub(crate) fn explain_page(&self, size: usize) -> Result<Explanation, tablesdk::Error> {
        let query = self.selection.query(&self.table).page_size(size);
        if self.select.is_empty() {
            return query.explain();
        }
        let names = self.select.iter().map(String::as_str);
        query.select(|e| e.properties(names)).explain()
    }

    /// A page of at most this number of entities, from one response of the service. It may be
    /// empty, and not the last one.
    pub(crate) async fn page(
        &self,
        size: usize,
        token: Option<PageToken>,
    ) -> Result<Page<Stored<DynamicEntity>>, tablesdk::Error> {
        let query = self.selection.query(&self.table);
        let query = query.page_size(size).retry(self.retry.clone());
        let query = query.one_response();
        if self.select.is_empty() {
            return query.page(token).await;
        }
        let names = self.select.iter().map(String::as_str);
        query.select(|e| e.properties(names)).page(token).await
    }
}

impl Extent {
    async fn print(&self, asked: &Asked, output: &Output) -> Result<(), AnyError> {
        let token = self.resume.as_deref().map(str::parse::<PageToken>);
        let token = token.transpose().map_err(|error| UsageError(error.into()));
        let mut token = token?;
        note_access(&asked.explain()?, self.scan)?;
        let printer = output.printer();
        if self.count {
            let count = asked.selection.query(&asked.table).count().await?;
            let line = json!({ "count": count }).to_string().into_bytes();
            printer.names([line], [(&*count.to_string(), String::new())])?;
            return Ok(());
        }
        let mut entities = printer.entities(&asked.select)?;
        let mut is_empty = true;
        let mut left = if self.all { usize::MAX } else { self.take };
        loop {
            let page = asked.page(left.min(PAGE_ITEMS_MAX), token).await?;
            entities.page(&page.items)?;
            is_empty &= page.items.is_empty();
            left = left.saturating_sub(page.items.len());
            token = page.next;
            if token.is_none() || left == 0 {
                break;
            }
        }
        entities.finish()?;
        match token {
            Some(token) => note(&format!(
                "there may be more: --continue {token} prints them, --all prints all"
            )),
            None if is_empty => note("no entity is found"),
            None => {}
        }
        Ok(())
    }
}
