//! The code for an entity without a mistake. Cannot fail.
//!
//! Every path is absolute, since the user may have names of their own for anything. What concerns one field is spanned on its
//! type, so that a type that cannot be stored is reported there.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Ident, Type};

use crate::check::{Model, Property};
use crate::input::InputField;

pub(crate) fn expand(model: &Model<'_>) -> TokenStream {
    let entity = impl_entity(model);
    let keys = impl_keys(model);
    let columns = columns_struct(model);
    quote! { #entity #keys #columns }
}

/// The name of the struct of columns.
pub(crate) fn columns_ident(entity: &Ident) -> Ident {
    format_ident!("{}Columns", entity)
}

fn impl_entity(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        generics,
        krate,
        partition_key,
        row_key,
        properties,
        ..
    } = model;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let entity_name = ident.to_string();
    let schema = properties.iter().map(|Property { field, name }| {
        let ty = field.ty;
        quote_spanned! { ty.span() => #krate::__private::field::<#ty>().schema(#name) }
    });
    let column_values = columns_of(model).into_iter().map(|(field, name)| {
        let ident = field.ident;
        quote! { #ident: #krate::__private::Column::new(#name) }
    });
    let (partition_ident, row_ident) = (partition_key.ident, row_key.ident);
    let writes = properties.iter().map(|Property { field, name }| {
        let (ident, ty) = (field.ident, field.ty);
        quote_spanned! { ty.span() =>
            #krate::__private::field::<#ty>().write(__writer, #name, &self.#ident)?;
        }
    });
    let slots: Vec<Ident> = (0..properties.len())
        .map(|index| format_ident!("__slot{}", index))
        .collect();
    let slot_lets = properties.iter().zip(&slots).map(|(Property { field, name }, slot)| {
        let ty = field.ty;
        quote_spanned! { ty.span() => let mut #slot = #krate::__private::field::<#ty>().slot(#name); }
    });
    let slot_fills = properties
        .iter()
        .zip(&slots)
        .map(|(Property { field, name }, slot)| {
            quote_spanned! { field.ty.span() => #name => #slot.fill(__property)?, }
        });
    let slot_ends = properties
        .iter()
        .zip(&slots)
        .map(|(Property { field, .. }, slot)| {
            let ident = field.ident;
            quote_spanned! { field.ty.span() => #ident: #slot.finish()?, }
        });
    let partition_access = key_access(model, partition_key);
    let row_access = key_access(model, row_key);
    let read_properties = if properties.is_empty() {
        TokenStream::new()
    } else {
        quote! {
            #(#slot_lets)*
            while let ::core::option::Option::Some(__property) = __reader.next_property() {
                match __property.name() {
                    #(#slot_fills)*
                    _ => {}
                }
            }
        }
    };
    let writer_argument = if properties.is_empty() {
        quote!(_)
    } else {
        quote!(__writer)
    };
    let result = |value: TokenStream| {
        quote! { ::core::result::Result<#value, #krate::__private::EntityError> }
    };
    let (key_result, unit_result, self_result) = (
        result(quote!(#krate::__private::EntityKey)),
        result(quote!(())),
        result(quote!(Self)),
    );
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #krate::__private::Schema =
                #krate::__private::Schema::new(#entity_name, &[#(#schema),*]);

            fn columns() -> Self::Columns {
                #columns { #(#column_values),* }
            }

            fn entity_key(&self) -> #key_result {
                #partition_access.entity_key(&self.#partition_ident, (#row_access, &self.#row_ident))
            }

            fn write(&self, #writer_argument: &mut #krate::__private::PropertyWriter<'_>) -> #unit_result {
                #(#writes)*
                ::core::result::Result::Ok(())
            }

            fn read(__reader: &mut #krate::__private::PropertyReader<'_>) -> #self_result {
                #read_properties
                ::core::result::Result::Ok(Self {
                    #partition_ident: #partition_access.read_partition_key(__reader)?,
                    #row_ident: #row_access.read_row_key(__reader)?,
                    #(#slot_ends)*
                })
            }
        }
    }
}

/// What the code does with a key field, spanned on its type.
fn key_access(model: &Model<'_>, field: &InputField<'_>) -> TokenStream {
    let (krate, ty) = (&model.krate, field.ty);
    quote_spanned! { ty.span() => #krate::__private::key_part::<#ty>() }
}

fn impl_keys(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        vis,
        generics,
        krate,
        partition_key,
        row_key,
        ..
    } = model;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (partition, row) = (partition_key.ident, row_key.ident);
    let into = |ty: &Type| quote_spanned! { ty.span() => impl ::core::convert::Into<#ty> };
    let (partition_type, row_type) = (into(partition_key.ty), into(row_key.ty));
    let partition_access = key_access(model, partition_key);
    let row_access = key_access(model, row_key);
    let key_doc = format!(
        "The key of the [`{ident}`] with these key fields. A value that cannot be a key is reported when the verb that gets the key is awaited."
    );
    let partition_doc = format!("The partition of every [`{ident}`] with this key field.");
    quote! {
        #[automatically_derived]
        #[allow(dead_code, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
        impl #impl_generics #ident #type_generics #where_clause {
            #[doc = #key_doc]
            #[must_use]
            #vis fn key(#partition: #partition_type, #row: #row_type) -> #krate::__private::Key<Self> {
                #partition_access.key(
                    &::core::convert::Into::into(#partition),
                    (#row_access, &::core::convert::Into::into(#row)),
                )
            }

            #[doc = #partition_doc]
            #[must_use]
            #vis fn partition(#partition: #partition_type) -> #krate::__private::Partition<Self> {
                #partition_access.partition(&::core::convert::Into::into(#partition))
            }
        }
    }
}

fn columns_struct(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        vis,
        generics,
        krate,
        ..
    } = model;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let columns = columns_ident(ident);
    let struct_doc = format!("The columns of [`{ident}`], for filters and projections.");
    let fields = columns_of(model).into_iter().map(|(field, name)| {
        let InputField {
            ident: field_ident,
            vis,
            ty,
            docs,
            ..
        } = field;
        let docs = if docs.is_empty() {
            let doc = format!("The column `{name}`.");
            quote! { #[doc = #doc] }
        } else {
            docs.iter().map(ToTokens::to_token_stream).collect()
        };
        quote! { #docs #vis #field_ident: #krate::__private::Column<#ident #type_generics, #ty> }
    });
    let columns_name = columns.to_string();
    quote! {
        #[doc = #struct_doc]
        #[allow(dead_code, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
        #vis struct #columns #impl_generics #where_clause { #(#fields),* }

        #[automatically_derived]
        impl #impl_generics ::core::clone::Clone for #columns #type_generics #where_clause {
            fn clone(&self) -> Self {
                *self
            }
        }

        #[automatically_derived]
        impl #impl_generics ::core::marker::Copy for #columns #type_generics #where_clause {}

        #[automatically_derived]
        impl #impl_generics ::core::fmt::Debug for #columns #type_generics #where_clause {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(#columns_name)
            }
        }
    }
}

/// All fields with the names they are stored under, keys first.
fn columns_of<'m, 'a>(model: &'m Model<'a>) -> Vec<(&'m InputField<'a>, &'m str)> {
    let keys = [
        (&model.partition_key, "PartitionKey"),
        (&model.row_key, "RowKey"),
    ];
    let properties = model
        .properties
        .iter()
        .map(|Property { field, name }| (field, name.as_str()));
    keys.into_iter().chain(properties).collect()
}
