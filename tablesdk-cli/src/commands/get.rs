//! `tables get`: one entity.

use clap::Args;
use tablesdk::DynamicEntity;

use crate::account::Account;
use crate::output::{AnyError, Output};
use crate::show::key;

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
        let keys = (partition_key.as_str(), row_key.as_str());
        let found = table.get::<DynamicEntity>(keys).await?;
        let missing = || format!("{name} has no entity {}", key(&partition_key, &row_key));
        let found = found.ok_or_else(missing)?;
        output.printer().entity(&found)?;
        Ok(())
    }
}
