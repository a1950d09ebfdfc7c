//! The code for an entity: the implementations of its traits, made of the code for its schema,
//! columns, reading and writing.
//!
//! Knows of patterns only whether others are written with the entity: the caller gives the items by
//! which they take part.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};

use super::access::named_groups;
use super::attached::attached;
use super::bounds::implementation;
use super::checks::generic_checks;
use super::columns::columns_value;
use super::keys::fn_entity_key;
use super::read::{fn_read, fn_written_as};
use super::schema::{row_keys_of_entries, schema, told_by_partition};
use super::write::fn_write;
use crate::check::Model;
use crate::tokens::{columns_ident, entity_param, local, with_entity_param};

impl Model<'_> {
    /// Returns true if no other entity is written together with the entity.
    pub(super) fn is_standalone(&self, indexes: &[Model<'_>]) -> bool {
        let has_others = !indexes.is_empty() || !self.copies.is_empty() || self.bucket().is_some();
        !has_others && self.index_of.is_none()
    }
}

pub(super) fn impl_entity(model: &Model<'_>, indexes: &[Model<'_>]) -> TokenStream {
    let (krate, private) = (&model.krate, model.private());
    let columns = columns_ident(&model.ident);
    let (_, type_generics, _) = model.generics.split_for_impl();
    let param = entity_param();
    let with_param = with_entity_param(model.generics);
    let (_, column_generics, _) = with_param.split_for_impl();
    let schema = schema(model);
    let entries = row_keys_of_entries(indexes);
    let is_told = indexes.iter().any(|index| index.is_told_by_partition);
    let told = is_told.then(told_by_partition);
    let attached = attached(model, indexes);
    let scope = local("scope");
    let columns_value = columns_value(model, &scope.to_token_stream());
    let checks = generic_checks(model);
    let read = fn_read(model);
    let written = fn_written_as(model);
    let access = if model.is_writable() {
        quote! { variant }
    } else {
        quote! { projected_variant }
    };
    let named = named_groups(model, &quote! { Self });
    let variant = quote! {
        type ColumnsOf<#param> = #columns #column_generics;

        fn columns_of<#param>(#scope: #private::ColumnScope) -> Self::ColumnsOf<#param> {
            #columns_value
        }

        const ACCESS: #private::VariantAccess<Self> = #private::#access::<Self>();
    };
    let entity = quote! {
        type Columns = #columns #type_generics;

        const SCHEMA: #private::Schema = #schema #entries #told;

        #attached

        fn columns() -> Self::Columns {
            #checks
            #named
            <Self as #private::EntityVariant>::columns_of(#private::ColumnScope::ROOT)
        }

        #read

        #written
    };
    let variant = implementation(model, &quote! { #private::EntityVariant }, &variant);
    let entity = implementation(model, &quote! { #krate::TableEntity }, &entity);
    quote! { #variant #entity }
}

pub(super) fn impl_wide(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let columns = columns_ident(&model.ident);
    let (_, type_generics, _) = model.generics.split_for_impl();
    let schema = schema(model);
    let scope = local("scope");
    let columns_value = columns_value(model, &scope.to_token_stream());
    let checks = generic_checks(model);
    let (read, written) = (fn_read(model), fn_written_as(model));
    let (entity_key, write) = (fn_entity_key(model), fn_write(model));
    let named = named_groups(model, &quote! { Self });
    let items = quote! {
        type Columns = #columns #type_generics;

        const SCHEMA: #private::Schema = #schema;

        fn columns() -> Self::Columns {
            #checks
            #named
            let #scope = #private::ColumnScope::ROOT;
            #columns_value
        }

        #read

        #written

        #entity_key

        #write
    };
    implementation(model, &model.entity_trait().to_token_stream(), &items)
}

pub(super) fn impl_writable(model: &Model<'_>, is_standalone: bool) -> TokenStream {
    let (krate, private) = (&model.krate, model.private());
    let entity_key = fn_entity_key(model);
    let write = fn_write(model);
    let items = quote! {
        #entity_key

        #write
    };
    let writable = implementation(model, &quote! { #krate::WritableEntity }, &items);
    let standalone = quote! { #private::Standalone };
    let standalone = is_standalone.then(|| implementation(model, &standalone, &TokenStream::new()));
    quote! { #writable #standalone }
}
