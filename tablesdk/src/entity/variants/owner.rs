//! Whose a column is: which entities would show what is written to it. A patch writes no entity
//! type, so an entity of another type, or of an older version, would be read as before.

use tablesdk_protocol::wire::json::JsonEntity;

use super::super::entity_type::contains;
use super::super::{EntityError, EntityProblem, PropertyReader, Schema, TableEntity};
use super::VariantRows;

/// The struct that a column is of: an entity itself, or the one in a variant of an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnOwner {
    schema: &'static Schema,
    /// Entity types that the enum reads as the variant.
    aliases: &'static [&'static str],
}

impl ColumnOwner {
    /// The owner of a column of `E`.
    pub(crate) fn new<E: TableEntity>(rows: Option<&VariantRows>) -> Self {
        match rows.and_then(|rows| rows.variant) {
            Some(variant) => Self {
                schema: variant.schema,
                aliases: variant.aliases,
            },
            None => Self {
                schema: const { &E::SCHEMA },
                aliases: &[],
            },
        }
    }

    /// Checks what the row key alone shows.
    pub(crate) fn check_row_key(&self, row_key: &str) -> Result<(), EntityError> {
        if self.schema.has_row_key(row_key) {
            return Ok(());
        }
        let expected = self.schema.row_key_prefixes().into_iter();
        Err(EntityProblem::UnknownRowKey {
            row_key: row_key.to_owned(),
            expected: expected.map(str::to_owned).collect(),
        }
        .into())
    }

    /// The property that [`check_type`](Self::check_type) reads; `None` where the row key shows
    /// all.
    pub(crate) const fn type_property(&self) -> Option<&'static str> {
        self.schema.type_property()
    }

    /// Checks that the entity is stored as the struct in its current version.
    pub(crate) fn check_type(&self, entity: &JsonEntity<'_>) -> Result<(), EntityError> {
        let Some(property) = self.type_property() else {
            return Ok(());
        };
        let found = PropertyReader::new(entity, None).type_text(property)?;
        let entity_type = self.schema.entity_type();
        let is_own = found.is_some_and(|found| {
            contains(self.aliases, found) || entity_type.is_some_and(|it| it.is_own(found))
        });
        if is_own {
            return Ok(());
        }
        let mut expected = entity_type.map_or_else(Vec::new, |it| it.own_names());
        expected.extend(self.aliases);
        Err(EntityProblem::PatchOfOtherType {
            property: property.to_owned(),
            expected: expected.into_iter().map(str::to_owned).collect(),
            found: found.map(str::to_owned),
        }
        .into())
    }
}
