//! The scan over the tables of an account.
//!
//! It runs in slices, for the same reason as the scan over entities: there may be many tables, and
//! a filter with many terms. A filter sees one property, `TableName`, in the case of the table's
//! creation or in lower case. This module knows no HTTP and no JSON.

use std::borrow::Cow;
use std::ops::ControlFlow;

use tablesdk_protocol::ValueRef;
use tablesdk_protocol::filter::Filter;

use super::evaluate::CompiledFilter;
use super::key_codec::{self, Table};
use super::query::SliceEnd;
use super::scan_budget::ScanBudget;
use super::view::View;
use crate::storage::StorageError;

/// A running scan.
#[derive(Debug)]
pub(crate) struct TableScan<'f> {
    account: &'f str,
    filter: Option<CompiledFilter<'f>>,
    in_lower_case: bool,
    /// The lower-cased name, or any string, where the scan continues.
    from: String,
}

impl<'f> TableScan<'f> {
    /// Starts a scan of the tables of an account, from this lower-cased name on. The filter sees
    /// each name as it is, or in lower case.
    pub(crate) fn new(
        account: &'f str,
        filter: Option<&'f Filter>,
        in_lower_case: bool,
        from: String,
    ) -> Self {
        Self {
            account,
            filter: filter.map(|filter| CompiledFilter::new(&[filter])),
            in_lower_case,
            from,
        }
    }

    /// Passes the matching tables to the visitor, in the order of their lower-cased names, until it
    /// breaks or the budget is spent. Examines at least one table, if there is one.
    pub(crate) fn slice(
        &mut self,
        view: &View,
        budget: &mut ScanBudget,
        mut visit: impl FnMut(Table) -> ControlFlow<()>,
    ) -> Result<SliceEnd, StorageError> {
        let mut tables = view.tables(self.account, &self.from);
        let mut last = None;
        loop {
            let table = match tables.next().transpose() {
                Ok(Some(table)) => table,
                Ok(None) => break,
                Err(StorageError::NotFetched) => {
                    drop(tables);
                    if let Some(last) = last {
                        self.from = last + AFTER;
                    }
                    return Ok(SliceEnd::NotFetched);
                }
                Err(error) => return Err(error),
            };
            if budget.is_done() {
                drop(tables);
                self.from = table.name.to_ascii_lowercase();
                return Ok(SliceEnd::Paused);
            }
            if view.partial().is_some() {
                last = Some(table.name.to_ascii_lowercase());
            }
            budget.spend(TABLE_COST);
            if let Some(filter) = &mut self.filter {
                budget.spend(filter.cost());
                let name = if self.in_lower_case {
                    Cow::Owned(table.name.to_ascii_lowercase())
                } else {
                    Cow::Borrowed(table.name.as_str())
                };
                if !filter.holds_for("TableName", ValueRef::String(name))? {
                    continue;
                }
            }
            if visit(table).is_break() {
                return Ok(SliceEnd::Stopped);
            }
        }
        Ok(SliceEnd::Ended)
    }

    /// Names the tables that are read next: so many of them are probably enough.
    pub(crate) fn announce(&self, view: &View, tables_max: usize) {
        let start = key_codec::table_key_from(self.account, &self.from);
        let end = key_codec::tables_end(self.account);
        let reads_ahead = self.filter.is_some();
        view.announce_range(&start, &end, tables_max, reads_ahead);
    }

    /// The lower-cased name of the next table after a pause.
    pub(crate) fn position(&self) -> &str {
        &self.from
    }
}

/// Nothing lies between a name and the same name with this at its end.
const AFTER: &str = "\0";

/// The cost of a table.
const TABLE_COST: u64 = 500;
