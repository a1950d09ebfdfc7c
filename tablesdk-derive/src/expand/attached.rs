//! The code by which patterns take part in the reads and writes of an entity. A plain entity has
//! none of it.

use proc_macro2::TokenStream;
use quote::quote;

use crate::check::{Kind, Model};
use crate::input::IndexOf;
use crate::tokens::local;

/// The items of `TableEntity` for the patterns of the struct.
pub(super) fn attached(model: &Model<'_>, indexes: &[Model<'_>]) -> TokenStream {
    let private = model.private();
    let is_entry = model.index_of.is_some();
    let is_reserved = model.index_of.as_ref().is_some_and(IndexOf::is_reserved);
    let has_entries = !is_entry && !model.is_standalone(indexes);
    let expires = model.expires_on().is_some();
    let may_encrypt = may_encrypt(model);
    let facts = [
        is_entry.then(|| quote! { .entry() }),
        has_entries.then(|| quote! { .with_riders() }),
        (expires || is_reserved).then(|| quote! { .extended() }),
        may_encrypt.then(|| quote! { .of_schema(&Self::SCHEMA) }),
    ];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    if facts.is_empty() {
        return TokenStream::new();
    }
    let (attach, memory, how) = (local("attach"), local("memory"), local("how"));
    let riders = has_entries.then(|| {
        quote! {
            fn attach(
                &self,
                #attach: &mut #private::Attach<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                #private::attach(self, #attach)
            }

            fn remember(&self, #memory: &mut #private::Memory, #how: #private::Remembered) {
                #private::remember(self, #memory, #how);
            }
        }
    });
    let extensions = local("extensions");
    let all = [
        has_entries.then(|| quote! { #private::extensions::<Self>(#extensions); }),
        is_reserved.then(|| quote! { #private::reserved::<Self>(#extensions); }),
        may_encrypt.then(|| quote! { #private::encrypts(#extensions); }),
        expires.then(|| quote! { #private::expires(#extensions); }),
    ];
    let all: Vec<_> = all.into_iter().flatten().collect();
    let all = (!all.is_empty()).then(|| {
        quote! {
            fn extensions(#extensions: &mut #private::Extensions<'_>) {
                #(#all)*
            }
        }
    });
    quote! {
        const FACTS: #private::Facts = #private::Facts::PLAIN #(#facts)*;

        #riders

        #all
    }
}

/// Returns true if the struct may have encrypted properties. Those of a flattened struct and of an
/// older version are known to the compiler alone.
fn may_encrypt(model: &Model<'_>) -> bool {
    model
        .properties()
        .any(|(_, property)| property.encrypt.is_some())
        || model
            .parts
            .iter()
            .any(|part| matches!(part.kind, Kind::Group { .. }))
        || model
            .entity_type
            .as_ref()
            .is_some_and(|entity_type| !entity_type.older.is_empty())
}
