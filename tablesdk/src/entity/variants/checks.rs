//! The checks of an enum of entities at compile time, the only point where the structs of all its
//! variants are known.
//!
//! A macro sees one item, and not the properties of a variant's struct. So the schema is a
//! constant, and so is the assertion over two of them, whose message is put together at compile
//! time.

use super::{Discriminator, VariantSchema};
use crate::entity::Schema;
use crate::entity::entity_type::{begins_with, equal, refuse};

impl Schema {
    /// Refuses a variant that cannot be distinguished from the variants before it, or cannot be
    /// identified at all.
    #[doc(hidden)]
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds, since generated code names a variant that is there"
    )]
    #[track_caller]
    pub const fn check_variant(&self, index: usize) {
        let Some(dispatch) = &self.dispatch else {
            return;
        };
        let variant = &dispatch.variants[index];
        if variant.schema.stub {
            return;
        }
        if index == 0 {
            self.check_encryption();
        }
        if !variant.writable && !self.projection {
            refuse(&[
                "`",
                variant.schema.entity(),
                "` is a projection, which cannot be written: use the whole struct, or mark the enum with `#[table(projection)]` as well",
            ]);
        }
        variant.check_known(dispatch.by);
        if let Discriminator::EntityType = dispatch.by {
            self.check_property(variant);
            variant.check_aliases();
        }
        let mut before = 0;
        while before < index {
            let other = &dispatch.variants[before];
            before += 1;
            // An entry of an index is no variant, and refused as that.
            if other.schema.stub || other.schema.entry.is_some() || variant.schema.entry.is_some() {
                continue;
            }
            match dispatch.by {
                Discriminator::EntityType => {
                    if let Some(name) = variant.shared_name(other) {
                        refuse(&[
                            "`",
                            variant.name,
                            "` and `",
                            other.name,
                            "` both have the entity type \"",
                            name,
                            "\": give one of the structs another, or remove the alias",
                        ]);
                    }
                }
                Discriminator::RowKey => {
                    if let Some((one, another)) = variant.schema.shared_prefix(other.schema) {
                        refuse(&[
                            "the row keys of `",
                            variant.name,
                            "`",
                            one.of_entries(),
                            " begin with \"",
                            one.text,
                            "\" and those of `",
                            other.name,
                            "`",
                            another.of_entries(),
                            " with \"",
                            another.text,
                            "\", so a key could belong to both: neither prefix may begin with the other",
                        ]);
                    }
                }
            }
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds, since there is a variant"
    )]
    #[track_caller]
    const fn check_property(&self, variant: &VariantSchema) {
        let Some(dispatch) = &self.dispatch else {
            return;
        };
        let first = &dispatch.variants[0];
        if let (Some(first_property), Some(property)) =
            (first.schema.type_property(), variant.schema.type_property())
            && !equal(first_property, property)
        {
            refuse(&[
                "`",
                variant.name,
                "` has its entity type in the property `",
                property,
                "`, and `",
                first.name,
                "` in `",
                first_property,
                "`: use one property, with `#[table(entity_type_property = \"…\")]` on the structs",
            ]);
        }
    }

    /// Beginnings of row keys, one of this and one of the other, of which one begins with the
    /// other.
    const fn shared_prefix(&self, other: &Self) -> Option<(Beginning, Beginning)> {
        let mut index = 0;
        while let Some(one) = self.beginning(index) {
            index += 1;
            let mut of_other = 0;
            while let Some(another) = other.beginning(of_other) {
                of_other += 1;
                if begins_with(one.text, another.text) || begins_with(another.text, one.text) {
                    return Some((one, another));
                }
            }
        }
        None
    }

    /// The beginning of the row keys of the entities, and then those of their entries in indexes.
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the condition"
    )]
    const fn beginning(&self, index: usize) -> Option<Beginning> {
        let is_of_entries = index > 0;
        let text = if !is_of_entries {
            self.row_key_prefix()
        } else if index <= self.row_keys_of_entries.len() {
            self.row_keys_of_entries[index - 1]
        } else {
            return None;
        };
        Some(Beginning {
            text,
            is_of_entries,
        })
    }
}

/// With what row keys of a variant begin.
#[derive(Clone, Copy)]
struct Beginning {
    text: &'static str,
    /// True for the row keys of entries in an index.
    is_of_entries: bool,
}

impl Beginning {
    const fn of_entries(self) -> &'static str {
        if self.is_of_entries {
            " in an index"
        } else {
            ""
        }
    }
}

impl VariantSchema {
    /// The struct has what the enum goes by.
    #[track_caller]
    const fn check_known(&self, by: Discriminator) {
        match by {
            Discriminator::EntityType => {
                if self.schema.entity_type.is_none() {
                    refuse(&[
                        "`",
                        self.schema.entity(),
                        "` has no entity type to identify its entities: add `#[table(entity_type = \"",
                        self.schema.entity(),
                        "\")]` to the struct",
                    ]);
                }
            }
            Discriminator::RowKey => {
                if self.schema.row_key_prefix().is_empty() {
                    refuse(&[
                        "the row keys of `",
                        self.schema.entity(),
                        "` have no prefix to identify the entities: add a template such as `#[table(row_key = \"",
                        self.schema.entity(),
                        "_{id}\")]` to the struct",
                    ]);
                }
            }
        }
    }

    /// No alias repeats what the struct says.
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the condition of the loop"
    )]
    #[track_caller]
    const fn check_aliases(&self) {
        let Some(entity_type) = &self.schema.entity_type else {
            return;
        };
        let mut index = 0;
        while index < self.aliases.len() {
            if entity_type.accepts(self.aliases[index]) {
                refuse(&[
                    "`",
                    self.schema.entity(),
                    "` already has the entity type \"",
                    self.aliases[index],
                    "\": remove the alias",
                ]);
            }
            index += 1;
        }
    }

    /// A name under which the rows of both are read.
    const fn shared_name(&self, other: &Self) -> Option<&'static str> {
        match (&self.schema.entity_type, &other.schema.entity_type) {
            (Some(one), Some(another)) => one.shared_with(self.aliases, another, other.aliases),
            _ => None,
        }
    }
}
