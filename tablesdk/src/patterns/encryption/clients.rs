//! Clients with a keyring.

use std::sync::Arc;

use super::Keyring;
use crate::client::{TableClient, TableServiceClient};

impl TableServiceClient {
    /// The same service with keys for the properties that are marked
    /// [`#[table(encrypt)]`](derive@crate::TableEntity#encrypt), in all tables.
    #[must_use]
    pub fn with_encryption(&self, keyring: Keyring) -> Self {
        let mut service = self.clone();
        service.pipeline.extra = Some(Arc::new(keyring));
        service
    }
}

impl TableClient {
    /// The same table with keys for the properties that are marked
    /// [`#[table(encrypt)]`](derive@crate::TableEntity#encrypt).
    ///
    /// ```
    #[doc = include_str!("../../docs/encrypted.md")]
    /// let table = table.with_encryption(Keyring::new(LocalKey::new("2024-02", [8; 32])));
    /// table.insert(&Employee::new("Sales", "1", "AB 12 34 56 C", "ada@contoso.com")).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_encryption(&self, keyring: Keyring) -> Self {
        let mut table = self.table().clone();
        table.pipeline.extra = Some(Arc::new(keyring));
        Self::of(table)
    }
}
