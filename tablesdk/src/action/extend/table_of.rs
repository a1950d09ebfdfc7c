//! The table of the entities of a type, where that is not the one that a program names.

use crate::entity::Schema;
use crate::pipeline::Table;

impl Table {
    /// The table that the entities of that schema are in: this one, unless the schema has a table
    /// of another name.
    pub(crate) fn of_schema(&self, schema: &Schema) -> Self {
        match schema.table() {
            Some(form) => self.renamed(&form.other(self.name())),
            None => self.clone(),
        }
    }

    /// The table to which the table of the entities of that schema belongs, if this is that table.
    pub(crate) fn belongs_to(&self, schema: &Schema) -> Self {
        let named = schema.table().and_then(|form| form.named(self.name()));
        named.map_or_else(|| self.clone(), |named| self.renamed(named))
    }
}
