//! `tables get`: one entity.

use clap::Args;
use tablesdk::{DynamicEntity, Stored, TableClient, TableEntity};

use crate::account::Account;
use crate::error::AnyError;
use crate::escape::key;
use crate::output::Output;

/// Print one entity
///
///   tables get Employees Sales 000017
///
/// The exit code is 1 if there is no such entity.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Get {
    /// The table
    table: String,
    /// The partition key
    partition_key: String,
    /// The row key
    row_key: String,
    #[command(flatten)]
    account: Account,
}

impl Get {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        let Self {
            table: name,
            partition_key,
            row_key,
            account,
        } = self;
        let table = account.connect()?.table(&name);
        let found = existing::<DynamicEntity>(&table, (&partition_key, &row_key)).await?;
        output.printer().entity(&found)
    }
}

/// The entity with these keys. It is an error if there is none.
pub(crate) async fn existing<E: TableEntity>(
    table: &TableClient,
    (partition, row): (&str, &str),
) -> Result<Stored<E>, AnyError> {
    let found = table.get::<E>((partition, row)).await?;
    Ok(found.ok_or_else(|| missing(table, (partition, row)))?)
}

pub(crate) fn missing(table: &TableClient, (partition, row): (&str, &str)) -> String {
    format!("{} has no entity {}", table.name(), key(partition, row))
}
