//! The model of generated code: the questions that several kinds of code ask about it.
//!
//! Knows no code but the paths of the library and of the trait with the schema.

use proc_macro2::TokenStream;
use quote::quote;

use crate::check::{Kind, Model, Property};
use crate::input::InputField;

impl Model<'_> {
    pub(crate) fn private(&self) -> TokenStream {
        let krate = &self.krate;
        quote! { #krate::__private }
    }

    /// The trait of the entity, which has its schema.
    pub(super) fn entity_trait(&self) -> TokenStream {
        let krate = &self.krate;
        if self.wide {
            quote! { #krate::wide::WideEntity }
        } else {
            quote! { #krate::TableEntity }
        }
    }

    /// Returns true if the model is a whole entity, and is written by itself.
    pub(super) fn is_writable(&self) -> bool {
        !self.projection && self.index_of.is_none()
    }

    /// The fields that are properties and nothing else.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&InputField<'_>, &Property)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            Kind::Property(property) => Some((&part.field, property)),
            _ => None,
        })
    }

    /// The parts of keys that are stored as properties, too.
    pub(super) fn stored_parts(&self) -> impl Iterator<Item = (&InputField<'_>, &Property)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            Kind::KeyPart {
                stored: Some(property),
                ..
            } => Some((&part.field, property)),
            _ => None,
        })
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (&InputField<'_>, &str)> {
        self.parts.iter().filter_map(|part| match &part.kind {
            Kind::Group { prefix } => Some((&part.field, prefix.as_str())),
            _ => None,
        })
    }

    pub(super) fn rest(&self) -> Option<&InputField<'_>> {
        let mut parts = self.parts.iter();
        let part = parts.find(|part| matches!(part.kind, Kind::Rest))?;
        Some(&part.field)
    }
}
