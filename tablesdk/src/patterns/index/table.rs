//! The table of the entries of an index.

use super::entry::IndexEntry;
use crate::client::TableClient;

impl TableClient {
    /// The table with the entries of an [index](derive@crate::TableEntity#index) whose entities are
    /// in this table, for an index in another `table`; otherwise this table. It must exist before
    /// an entity is written. Reads by this client find the entries there without it.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed_in_table.md")]
    /// let index = table.index_table::<ByEmail>();
    /// assert_eq!(index.name(), "EmployeesByEmail");
    /// index.create_table().await?;
    ///
    /// table.insert(&Employee::new("Sales", 1, "ada@contoso.com")).await?;
    /// let ada = ByEmail::key("ada@contoso.com", "Sales", 1);
    /// assert!(table.get(ada).follow().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn index_table<I: IndexEntry>(&self) -> Self {
        Self::of(self.table_of::<I>())
    }
}
