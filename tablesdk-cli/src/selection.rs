//! The options that say which entities of a table a command is about.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use tablesdk::action::QueryEntities;
use tablesdk::query::{AccessClass, Explanation};
use tablesdk::{DynamicEntity, Error, TableClient};

use crate::error::{AnyError, UsageError};
use crate::output::note;

/// Conditions, all of which an entity meets
#[derive(Args, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selection {
    /// Only this partition
    #[arg(long, help_heading = "Entities", value_name = "KEY")]
    pub(crate) partition: Option<String>,
    /// Only this row key
    #[arg(long, help_heading = "Entities", value_name = "KEY", conflicts_with_all = ["rows", "row_prefix"])]
    pub(crate) row: Option<String>,
    /// Only row keys from FROM on and before TO; one of them may be left out
    #[schemars(with = "Option<String>", description = ROWS)]
    #[arg(long, help_heading = "Entities", value_name = "FROM..TO", value_parser = Rows::parse)]
    pub(crate) rows: Option<Rows>,
    /// Only row keys that begin with this text
    #[arg(
        long,
        help_heading = "Entities",
        value_name = "TEXT",
        value_parser = NonEmptyStringValueParser::new(),
        conflicts_with = "rows"
    )]
    pub(crate) row_prefix: Option<String>,
    /// A filter of OData, such as "Age ge 36 and Name ne 'Ada'"
    #[arg(long, help_heading = "Entities", value_name = "ODATA", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) filter: Option<String>,
}

/// A range of row keys.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Rows {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Rows {
    fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once("..");
        let (from, to) =
            parts.ok_or("a range has two points, such as 000100..000200 or 000100..")?;
        if from.is_empty() && to.is_empty() {
            return Err("a range has a beginning, an end or both".to_owned());
        }
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}

impl TryFrom<String> for Rows {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

/// Row keys of a partition.
#[cfg(feature = "explore")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum RowKeys {
    #[default]
    All,
    One(String),
    /// From one on and before another; an empty text is no limit.
    Range(String, String),
    Prefix(String),
}

impl Selection {
    /// The conditions of a page.
    #[cfg(feature = "explore")]
    pub(crate) fn of(partition: Option<String>, rows: RowKeys, filter: Option<String>) -> Self {
        let (mut row, mut range, mut row_prefix) = (None, None, None);
        match rows {
            RowKeys::All => {}
            RowKeys::One(key) => row = Some(key),
            RowKeys::Range(from, to) => range = Some(Rows { from, to }),
            RowKeys::Prefix(text) => row_prefix = Some(text),
        }
        Self {
            partition,
            row,
            rows: range,
            row_prefix,
            filter,
        }
    }

    /// Refuses conditions that exclude each other, as the command line does itself.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        let of_rows = [
            self.row.is_some(),
            self.rows.is_some(),
            self.row_prefix.is_some(),
        ];
        if of_rows.iter().filter(|is_given| **is_given).count() > 1 {
            let problem = "a query has one of \"row\", \"rows\" and \"rowPrefix\"";
            return Err(UsageError(problem.into()));
        }
        Ok(())
    }

    /// Returns true if all entities meet the conditions, since there are none.
    pub(crate) fn is_all(&self) -> bool {
        let Self {
            partition,
            row,
            rows,
            row_prefix,
            filter,
        } = self;
        partition.is_none()
            && row.is_none()
            && rows.is_none()
            && row_prefix.is_none()
            && filter.is_none()
    }

    /// The keys, if they alone are the conditions.
    #[cfg(feature = "explore")]
    pub(crate) fn point(&self) -> Option<(&str, &str)> {
        let key = (self.partition.as_deref()?, self.row.as_deref()?);
        self.filter.is_none().then_some(key)
    }

    /// The partition that the entities are in, if the options name one.
    pub(crate) fn partition(&self) -> Option<&str> {
        self.partition.as_deref()
    }

    /// The conditions as OData; `None` if there are none.
    pub(crate) fn odata(&self, table: &TableClient) -> Result<Option<String>, Error> {
        Ok(self.query(table).explain()?.filter().map(str::to_owned))
    }

    /// The query for these entities.
    pub(crate) fn query(&self, table: &TableClient) -> QueryEntities<DynamicEntity> {
        let mut query = table.query::<DynamicEntity>();
        if let Some(partition) = &self.partition {
            query = query.partition(partition);
        }
        if let Some(row) = &self.row {
            query = query.filter(|e| e.property("RowKey").eq(row.as_str()));
        }
        if let Some(prefix) = &self.row_prefix {
            query = query.filter(|e| e.property("RowKey").starts_with(prefix));
        }
        if let Some(Rows { from, to }) = &self.rows {
            if !from.is_empty() {
                query = query.filter(|e| e.property("RowKey").ge(from.as_str()));
            }
            if !to.is_empty() {
                query = query.filter(|e| e.property("RowKey").lt(to.as_str()));
            }
        }
        if let Some(filter) = &self.filter {
            query = query.odata(filter);
        }
        query
    }
}

/// Says how the service finds the entities. A scan is refused, unless the arguments allow it.
pub(crate) fn note_access(explanation: &Explanation, may_scan: bool) -> Result<(), AnyError> {
    let access = explanation.access();
    if access == AccessClass::Scan && !may_scan {
        let problem = "the query looks at the whole table: name a --partition, or use --scan";
        return Err(UsageError(problem.into()).into());
    }
    let requests = explanation.requests();
    let requests = match explanation.more_requests() {
        Some(more) => format!("{requests} request, and {more}"),
        None => format!("{requests} request"),
    };
    note(&format!("access: {access}, {}; {requests}", cost(access)));
    Ok(())
}

/// The cost of a class.
pub(crate) const fn cost(access: AccessClass) -> &'static str {
    match access {
        AccessClass::Point => "one entity by its keys",
        AccessClass::RowRange => "a part of one partition",
        AccessClass::Partition => "all of its entities are looked at",
        AccessClass::Scan => "the whole table is looked at",
    }
}

const ROWS: &str = "\
Only row keys from one on and before another, as \"000100..000200\"; one of them may be left out, as in \"000100..\"";
