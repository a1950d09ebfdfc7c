//! Enums of entities: the variant of an entity, determined by its entity type or by its row key,
//! and the entities of a variant.
//!
//! This module does not know how a struct is read.

mod checks;
mod owner;

pub(crate) use owner::ColumnOwner;

use tablesdk_protocol::KeyKind;
use tablesdk_protocol::filter::Filter as Tree;

use super::entity_type::{contains, wrong_type};
use super::{EntityError, EntityProblem, EntityType, PropertyReader, Schema};
use crate::filter::{Filter, row_key_range, starting_with};

/// The property or key that distinguishes the variants of an enum.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "made by generated code alone")]
pub enum Discriminator {
    /// The property with the entity type.
    EntityType,
    /// The prefix of the row key.
    RowKey,
}

/// The variants of an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dispatch {
    by: Discriminator,
    variants: &'static [VariantSchema],
    has_other: bool,
}

impl Dispatch {
    /// The schema of a variant.
    #[expect(
        clippy::indexing_slicing,
        reason = "within the bounds by the condition"
    )]
    pub(super) const fn schema(&self, index: usize) -> Option<&'static Schema> {
        if index < self.variants.len() {
            return Some(self.variants[index].schema);
        }
        None
    }
}

/// A variant of an enum, and the entity in it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantSchema {
    name: &'static str,
    aliases: &'static [&'static str],
    schema: &'static Schema,
    writable: bool,
}

impl VariantSchema {
    /// The variant of that name.
    pub const fn new(
        name: &'static str,
        aliases: &'static [&'static str],
        schema: &'static Schema,
        writable: bool,
    ) -> Self {
        Self {
            name,
            aliases,
            schema,
            writable,
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let mut names = self.schema.type_names();
        names.extend(self.aliases);
        names
    }
}

impl Schema {
    #[doc(hidden)]
    #[must_use]
    pub const fn with_variants(
        mut self,
        by: Discriminator,
        variants: &'static [VariantSchema],
        has_other: bool,
    ) -> Self {
        self.dispatch = Some(Dispatch {
            by,
            variants,
            has_other,
        });
        self
    }

    /// The text with which the row keys of all entities of a struct begin; empty where there is
    /// none.
    const fn row_key_prefix(&self) -> &'static str {
        match self.row_key() {
            Some(template) => template.literal_prefix(),
            None => "",
        }
    }

    /// The names of the entity types in it: of a struct its own, of an enum those of its variants.
    fn type_names(&self) -> Vec<&'static str> {
        match (&self.dispatch, &self.entity_type) {
            (Some(dispatch), _) => {
                let variants = dispatch.variants.iter();
                variants.flat_map(VariantSchema::names).collect()
            }
            (None, Some(entity_type)) => entity_type.names(),
            (None, None) => Vec::new(),
        }
    }

    /// The texts with which the row keys of the entities in it begin.
    fn row_key_prefixes(&self) -> Vec<&'static str> {
        match &self.dispatch {
            Some(dispatch) => {
                let variants = dispatch.variants.iter();
                variants
                    .map(|variant| variant.schema.row_key_prefix())
                    .collect()
            }
            None => vec![self.row_key_prefix()],
        }
    }

    /// The property that holds the entity type, of an enum that of its variants.
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, too, and within the bounds by the condition"
    )]
    pub(crate) const fn type_property(&self) -> Option<&'static str> {
        match (&self.dispatch, &self.entity_type) {
            (Some(dispatch), _) => match dispatch.by {
                Discriminator::EntityType if !dispatch.variants.is_empty() => {
                    dispatch.variants[0].schema.type_property()
                }
                Discriminator::EntityType | Discriminator::RowKey => None,
            },
            (None, Some(entity_type)) => Some(entity_type.property()),
            (None, None) => None,
        }
    }

    /// The condition for the partitions to which a query of the entity restricts itself, where the
    /// beginning of the row keys does not tell it from the entries of indexes.
    pub(crate) fn own_partitions(&self) -> Option<Tree> {
        let beginning = self.partition_key()?.literal_prefix();
        let is_told = self.told_by_partition && !beginning.is_empty();
        is_told.then(|| starting_with(KeyKind::PartitionKey.property(), beginning))
    }

    /// The condition to which a query of the entity restricts itself: of a struct what all its rows
    /// have in common, of an enum nothing.
    pub(crate) fn own_rows(&self) -> Option<Tree> {
        match self.dispatch {
            Some(_) => None,
            // The service finds them by the beginning of their keys. Their type is checked when
            // they are read.
            None if self.entry.is_some() => {
                let beginning = self.row_key_prefix();
                (!beginning.is_empty()).then(|| row_key_range(beginning))
            }
            None => self.known_rows(),
        }
    }

    /// The beginning of all row keys, where the condition of [`own_rows`](Self::own_rows) requires
    /// nothing else.
    pub(crate) fn own_row_keys(&self) -> Option<&'static str> {
        let has_no_type = self.entity_type.is_none() || self.entry.is_some();
        let is_told_by_key = self.dispatch.is_none() && has_no_type;
        let beginning = self.row_key_prefix();
        (is_told_by_key && !beginning.is_empty()).then_some(beginning)
    }

    /// The condition for rows of known types; `None` where no type is known. A struct without an
    /// entity type is known by the beginning of its row keys.
    pub(crate) fn known_rows(&self) -> Option<Tree> {
        if let Some(dispatch) = &self.dispatch
            && dispatch.by == Discriminator::RowKey
        {
            let prefixes = self.row_key_prefixes().into_iter();
            return prefixes.map(row_key_range).reduce(Tree::or);
        }
        match self.type_property() {
            Some(property) => EntityType::condition(property, &self.type_names()),
            None if self.row_key_prefix().is_empty() => None,
            None => Some(row_key_range(self.row_key_prefix())),
        }
    }

    /// The condition for the rows of all variants; `None` if one variant takes all other rows.
    pub(crate) fn rows_of_variants(&self) -> Option<Tree> {
        let dispatch = self.dispatch.as_ref()?;
        if dispatch.has_other {
            return None;
        }
        self.known_rows()
    }

    /// The condition for the rows of a variant.
    fn is_variant(&self, variant: &VariantSchema) -> Option<Tree> {
        match self.dispatch.as_ref()?.by {
            Discriminator::EntityType => {
                EntityType::condition(self.type_property()?, &variant.names())
            }
            Discriminator::RowKey => Some(row_key_range(variant.schema.row_key_prefix())),
        }
    }

    /// The variants of an enum, and what is true of the rows of each.
    pub(crate) fn variants(&self) -> impl Iterator<Item = (&'static Self, Option<Tree>)> {
        let variants = self.dispatch.iter().flat_map(|dispatch| dispatch.variants);
        variants.map(|variant| (variant.schema, self.is_variant(variant)))
    }

    /// Returns true if the schema is that of an enum.
    pub(crate) const fn has_variants(&self) -> bool {
        self.dispatch.is_some()
    }

    /// Returns true if the entity has the property, or had it in an older version.
    pub(crate) fn models(&self, name: &str) -> bool {
        let mut own = self.properties().into_iter();
        let older = self.entity_type.iter().flat_map(EntityType::older);
        self.type_property() == Some(name)
            || own.any(|known| known.name() == name || known.is_alias(name))
            || older.into_iter().any(|older| older.models(name))
    }

    /// The names that a projection of several kinds of rows selects: those of each kind. If one
    /// kind selects all properties, the projection does, too.
    pub(super) fn select_of_variants(&self) -> Option<Vec<String>> {
        let dispatch = self.dispatch.as_ref().filter(|one| !one.has_other)?;
        let mut names: Vec<String> = Vec::new();
        for variant in dispatch.variants {
            for name in variant.schema.select()? {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Some(names)
    }
}

/// The rows to which a column belongs.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantRows {
    schema: &'static Schema,
    /// `None` for those of no known variant.
    variant: Option<&'static VariantSchema>,
}

impl VariantRows {
    /// The rows of one variant. An enum without a mistake has this variant.
    pub fn of_variant(schema: &'static Schema, index: usize) -> Option<Self> {
        let variant = schema.dispatch.as_ref()?.variants.get(index)?;
        Some(Self {
            schema,
            variant: Some(variant),
        })
    }

    /// The rows of no known variant.
    pub const fn of_other(schema: &'static Schema) -> Option<Self> {
        Some(Self {
            schema,
            variant: None,
        })
    }

    /// The condition for these rows.
    pub(crate) fn condition(&self) -> Option<Tree> {
        let Some(variant) = self.variant else {
            return self.schema.known_rows().map(|known| !known);
        };
        self.schema.is_variant(variant)
    }

    /// The filter for these rows.
    pub fn filter<E>(rows: Option<Self>) -> Filter<E> {
        let condition = rows.and_then(|rows| rows.condition());
        Filter::new(Ok(condition.unwrap_or(Tree::Constant(true))))
    }

    /// Which rows, for messages.
    pub(crate) fn describe(&self) -> String {
        let entity = self.schema.entity();
        match self.variant {
            Some(variant) => format!("{entity}::{}", variant.name),
            None => format!("{entity}, of no known variant"),
        }
    }
}

/// Finds the variant for an enum, before it reads a variant.
impl PropertyReader<'_, '_> {
    /// Which variant the entity is of; `None` for the one that takes all others.
    #[doc(hidden)]
    pub fn variant(&mut self, schema: &Schema) -> Result<Option<usize>, EntityError> {
        let Some(dispatch) = &schema.dispatch else {
            return Ok(None);
        };
        match dispatch.by {
            Discriminator::EntityType => self.variant_by_type(schema, dispatch),
            Discriminator::RowKey => {
                let key = self.key(KeyKind::RowKey)?;
                let mut variants = dispatch.variants.iter();
                let found =
                    variants.position(|variant| key.starts_with(variant.schema.row_key_prefix()));
                if found.is_none() && !dispatch.has_other {
                    return Err(EntityProblem::UnknownRowKey {
                        row_key: key.to_owned(),
                        expected: schema
                            .row_key_prefixes()
                            .iter()
                            .map(ToString::to_string)
                            .collect(),
                    }
                    .into());
                }
                Ok(found)
            }
        }
    }

    fn variant_by_type(
        &mut self,
        schema: &Schema,
        dispatch: &Dispatch,
    ) -> Result<Option<usize>, EntityError> {
        let Some(property) = schema.type_property() else {
            return Ok(None);
        };
        let found = match self.type_text(property) {
            Ok(found) => found,
            // Whatever it means there, it is no type that is known here.
            Err(_) if dispatch.has_other => None,
            Err(error) => return Err(error),
        };
        let variants = dispatch.variants.iter();
        for (index, variant) in variants.enumerate() {
            let entity_type = &variant.schema.entity_type;
            if let (Some(found), Some(entity_type)) = (found, entity_type)
                && entity_type.accepts(found)
            {
                return Ok(Some(index));
            }
            if found.is_some_and(|found| contains(variant.aliases, found)) {
                self.accept();
                return Ok(Some(index));
            }
        }
        if dispatch.has_other {
            return Ok(None);
        }
        Err(wrong_type(property, &schema.type_names(), found))
    }
}

impl Schema {
    fn has_row_key(&self, key: &str) -> bool {
        let mut prefixes = self.row_key_prefixes().into_iter();
        prefixes.any(|prefix| key.starts_with(prefix))
    }
}
