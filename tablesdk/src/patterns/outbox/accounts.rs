//! The accounts whose entities steps change: that of the outbox, and those that a program has
//! named.
//!
//! The entry of a step names its account by the endpoint, and never has a credential.

use super::drain::Outbox;
use super::entry::{ACCOUNT, Entry};
use crate::client::TableServiceClient;
use crate::pipeline::PipelineHandle;

/// The pipelines to other accounts than that of the outbox.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts(Vec<PipelineHandle>);

impl Accounts {
    /// Adds an account, in place of the same one.
    pub(super) fn add(&mut self, account: PipelineHandle) {
        self.0.retain(|known| known.endpoint != account.endpoint);
        self.0.push(account);
    }

    /// The pipeline to the account of a step; `own` is that of the outbox. `None` if the program
    /// has not named the account.
    pub(super) fn of<'a>(
        &'a self,
        own: &'a PipelineHandle,
        entry: &Entry,
    ) -> Option<&'a PipelineHandle> {
        let Some(account) = entry.text(ACCOUNT) else {
            return Some(own);
        };
        // A table may have been copied to the account that its steps change.
        let mut known = std::iter::once(own).chain(&self.0);
        known.find(|pipeline| pipeline.endpoint.as_str() == account)
    }
}

impl Outbox {
    /// Also applies steps whose tables are in this account. Without it, such a step waits, and so
    /// do those behind it in its partition: the worker logs a warning, and counts no attempt.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # let branch_server = tablesdk_server::TableServer::builder()
    /// #     .account(tablesdk::SharedKey::new("branch", "a2V5")?)
    /// #     .start().await?;
    /// # let branch = tablesdk::TableServiceClient::from_connection_string(&branch_server.connection_string())?;
    /// use tablesdk::outbox::{Outbox, Step};
    ///
    /// // Another account, with a credential of its own.
    /// let copies = branch.table("Copies");
    /// copies.create_table().await?;
    /// let ada = Employee::new("Sales", "1", "Ada");
    /// let copy = Step::upsert_replace(&copies, &ada);
    /// table.batch("Sales").insert(&ada).step(copy).leave_steps().await?;
    ///
    /// assert_eq!(Outbox::new(&table).drain().await?.waiting, 1);
    /// let outbox = Outbox::new(&table).account(&branch);
    /// assert_eq!(outbox.drain().await?.applied, 1);
    /// assert!(copies.get(Employee::key("Sales", "1")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn account(mut self, service: &TableServiceClient) -> Self {
        self.options.accounts.add(service.pipeline.clone());
        self
    }
}
