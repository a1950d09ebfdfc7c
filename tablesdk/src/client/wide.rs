//! `wide`: the wide entities of a table.

use super::TableClient;
use crate::action::wide::WideTable;
use crate::entity::wide::WideEntity;

impl TableClient {
    /// The verbs of entities of more than 252 properties or 1 MiB: of a struct marked `#[table(wide)]`, or of maps. See
    /// [the module](crate::wide).
    ///
    /// ```
    #[doc = include_str!("../docs/report.md")]
    /// let reports = table.wide::<Report>();
    /// reports.insert(&Report::new("ann", "2024")).await?;
    /// assert!(reports.get(Report::key("ann", "2024")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wide<E: WideEntity>(&self) -> WideTable<E> {
        WideTable::new(self.table().clone())
    }
}
