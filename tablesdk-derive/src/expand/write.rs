//! The code that writes the properties of a struct, one statement for each.
//!
//! Knows neither how a key is made nor where the values come from: the caller gives the expression
//! for each.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;
use syn::spanned::Spanned as _;

use super::access::{of_group, property_access};
use crate::check::{Kind, Model};
use crate::input::InputField;
use crate::tokens::{generated_span, local, respanned};

pub(super) fn fn_write(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let writer = local("writer");
    let own = |field: &InputField<'_>| {
        let member = field.member();
        quote! { &self.#member }
    };
    let statements = write_statements(model, &writer, own);
    quote! {
        fn write(
            &self,
            #writer: &mut #private::PropertyWriter<'_>,
        ) -> ::core::result::Result<(), #private::EntityError> {
            #statements
            ::core::result::Result::Ok(())
        }
    }
}

/// The statements that write the properties of an entity. `value` is the expression for a reference
/// to the value of a field.
pub(super) fn write_statements(
    model: &Model<'_>,
    writer: &Ident,
    value: impl Fn(&InputField<'_>) -> TokenStream,
) -> TokenStream {
    let private = model.private();
    let (entity_trait, ident) = (model.entity_trait(), &model.ident);
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.write(model, writer));
    let statements = model.parts.iter().filter_map(|part| {
        let (ty, value) = (part.field.ty, value(&part.field));
        Some(match &part.kind {
            Kind::Group { prefix } => {
                let write = of_group(&private, ty, &quote! { write });
                let write = quote! { #write(#value, #writer) };
                let write = respanned(write, generated_span(ty.span()));
                quote! { #writer.group(#prefix, |#writer| #write)?; }
            }
            Kind::Property(property)
            | Kind::KeyPart {
                stored: Some(property),
                ..
            } => {
                let name = &property.name;
                let access = property_access(&private, &part.field, property);
                quote! { #access.write(#writer, #name, #value)?; }
            }
            Kind::Rest => {
                let (_, type_generics, _) = model.generics.split_for_impl();
                let schema = quote! { <#ident #type_generics as #entity_trait>::SCHEMA };
                quote! { #private::rest_field::<#ty>().write(#value, #writer, &#schema)?; }
            }
            _ => return None,
        })
    });
    quote! { #entity_type #(#statements)* }
}
