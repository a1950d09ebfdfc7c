//! The code for an entity type: in the schema, in a write, and in the check before an entity is
//! read.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, Path};

use crate::check::Model;
use crate::entity_type::EntityType;
use crate::tokens::{generated_span, local, respanned};

impl EntityType {
    /// The part of the schema.
    pub(crate) fn schema(&self, model: &Model<'_>) -> TokenStream {
        let private = model.private();
        let Self {
            property,
            name,
            aliases,
            ..
        } = self;
        let older = self.older.iter().map(|older| schema_of(&private, older));
        quote! {
            .with_entity_type(
                #private::EntityType::new(#property, #name, &[#(#aliases),*], &[#(#older),*])
            )
        }
    }

    /// The write before the fields.
    pub(crate) fn write(&self, model: &Model<'_>, writer: &Ident) -> TokenStream {
        let private = model.private();
        let Self { property, name, .. } = self;
        quote! { #writer.value(#property, &#private::text_ref(#name))?; }
    }

    /// The check before a property is read. An entity of an older version is converted.
    pub(crate) fn read(&self, model: &Model<'_>, reader: &Ident) -> TokenStream {
        let private = model.private();
        let (krate, entity_trait) = (&model.krate, model.entity_trait());
        let schema = quote! { const { &<Self as #entity_trait>::SCHEMA } };
        let (version, old) = (local("version"), local("old"));
        let arms = self.older.iter().enumerate().map(|(index, older)| {
            let span = generated_span(older.span());
            let read = quote! { <#older as #krate::TableEntity>::read(#reader) };
            let upgrade = quote! { #private::upgrade::<#older, Self>(#old, #schema) };
            let (read, upgrade) = (respanned(read, span), respanned(upgrade, span));
            quote! {
                if #version == ::core::option::Option::Some(#index) {
                    let #old = #read?;
                    return #upgrade;
                }
            }
        });
        let upgrade = (!self.older.is_empty()).then(|| {
            quote! {
                let #version = #reader.older_version(#schema)?;
                #(#arms)*
            }
        });
        quote! {
            #upgrade
            #reader.check_type(#schema)?;
        }
    }

    /// The check of the names of older versions, at compile time.
    pub(crate) fn const_check(&self, model: &Model<'_>) -> Option<TokenStream> {
        let first = self.older.first()?;
        let (ident, entity_trait) = (&model.ident, model.entity_trait());
        let (_, type_generics, _) = model.generics.split_for_impl();
        let span = generated_span(first.span());
        Some(quote_spanned! { span=>
            <#ident #type_generics as #entity_trait>::SCHEMA.check_entity_type()
        })
    }
}

fn schema_of(private: &TokenStream, older: &Path) -> TokenStream {
    let span = generated_span(older.span());
    quote_spanned! { span=> #private::schema_of::<#older>() }
}
