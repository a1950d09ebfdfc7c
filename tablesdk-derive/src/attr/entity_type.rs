//! The attributes of an entity type.

use proc_macro2::Span;
use syn::{LitStr, Path};

use super::item::{Item, once, path};
use crate::diagnostics::Diagnostics;

/// The attributes of the struct about its entity type.
#[derive(Clone, Default)]
pub(crate) struct EntityTypeAttributes {
    pub(crate) name: Option<(Span, LitStr)>,
    pub(crate) property: Option<(Span, LitStr)>,
    pub(crate) aliases: Vec<(Span, LitStr)>,
    pub(crate) older: Vec<(Span, Path)>,
}

impl EntityTypeAttributes {
    pub(super) fn take(&mut self, word: &str, item: &Item) -> syn::Result<()> {
        let span = item.word.span();
        match word {
            "alias" => self.aliases.push((span, item.text("Freelancer")?.clone())),
            "entity_type" => {
                let name = item.text("Employee")?.clone();
                once(&mut self.name, item, (span, name))?;
            }
            "entity_type_property" => {
                let property = item.text("Kind")?.clone();
                once(&mut self.property, item, (span, property))?;
            }
            "from" => {
                let older = path(item, "EmployeeV1", "crate::EmployeeV1")?;
                self.older.push((span, older));
            }
            _ => unreachable!("`{word}` is among the words of a struct"),
        }
        Ok(())
    }

    /// The name of the property that holds the entity type, if there is one.
    pub(crate) fn property_name(&self) -> Option<String> {
        self.name.as_ref()?;
        let given = self.property.as_ref().map(|(_, property)| property.value());
        Some(given.unwrap_or_else(|| PROPERTY.to_owned()))
    }

    /// Refuses a field that would be stored under the name of the entity type.
    pub(crate) fn check_field(&self, name: &str, span: Span, diagnostics: &mut Diagnostics) {
        if self.property_name().as_deref() == Some(name) {
            diagnostics.error(
                span,
                format!("the entity type is already stored as `{name}`: remove the field, or choose another property for the type with `#[table(entity_type_property = \"…\")]`"),
            );
        }
    }

    /// Each word with its span.
    pub(crate) fn words(&self) -> Vec<(&'static str, Span)> {
        let name = self.name.iter().map(|(span, _)| ("entity_type", *span));
        let property = self.property.iter();
        let property = property.map(|(span, _)| ("entity_type_property", *span));
        let aliases = self.aliases.iter().map(|(span, _)| ("alias", *span));
        let older = self.older.iter().map(|(span, _)| ("from", *span));
        name.chain(property).chain(aliases).chain(older).collect()
    }
}

/// The default.
const PROPERTY: &str = "EntityType";
