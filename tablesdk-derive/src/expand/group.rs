//! The code for a struct that is flattened into an entity: as for an entity, but with a prefix and
//! without keys.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Index;
use syn::spanned::Spanned as _;

use super::bounds::implementation;
use super::checks::generic_checks;
use super::columns::columns_value;
use super::read::{finished, fn_fill, slot_of};
use super::schema::schema;
use super::write::fn_write;
use crate::check::{Kind, Model};
use crate::tokens::{
    columns_ident, entity_param, generated_span, local, respanned, with_entity_param,
};

pub(super) fn impl_group(model: &Model<'_>) -> TokenStream {
    let (krate, private) = (&model.krate, model.private());
    let columns = columns_ident(&model.ident);
    let param = entity_param();
    let with_param = with_entity_param(model.generics);
    let (_, column_generics, _) = with_param.split_for_impl();
    let schema = schema(model);
    let scope = local("scope");
    let columns_value = columns_value(model, &scope.to_token_stream());
    let checks = generic_checks(model);
    let write = fn_write(model);
    let (slot_types, slot_values): (Vec<_>, Vec<_>) = model
        .parts
        .iter()
        .filter_map(|part| slot_of(&private, part))
        .unzip();
    let fill = fn_fill(model);
    let slots = local("slots");
    let mut index = 0;
    let members = model.parts.iter().map(|part| {
        let (member, ty) = (part.field.member(), part.field.ty);
        let slot = if slot_of(&private, part).is_some() {
            let slot = Index::from(index);
            index += 1;
            quote! { #slots.#slot }
        } else {
            TokenStream::new()
        };
        let value = finished(&private, part, &slot, &scope.to_token_stream());
        let value = value.unwrap_or_else(|| quote! { #private::default_of::<#ty>()() });
        let member = quote! { #member: #value };
        match &part.kind {
            Kind::Group { .. } => respanned(member, generated_span(ty.span())),
            _ => member,
        }
    });
    let items = quote! {
        type Columns<#param> = #columns #column_generics;
        type Slots = (#(#slot_types,)*);

        const SCHEMA: #private::Schema = #schema;

        fn columns<#param>(#scope: #private::ColumnScope) -> Self::Columns<#param> {
            #checks
            #columns_value
        }

        #write

        fn slots() -> Self::Slots {
            (#(#slot_values,)*)
        }

        #fill

        fn finish(
            #slots: Self::Slots,
            #scope: #private::ColumnScope,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            ::core::result::Result::Ok(Self { #(#members,)* })
        }
    };
    implementation(model, &quote! { #krate::TableProperties }, &items)
}
