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
    let (partition, row) = (partition_key.ident, row_key.ident);
    let partition_access = key_access(model, partition_key);
    let row_access = key_access(model, row_key);
    let (write, read) = (write_fn(model), read_fn(model));
    quote! {
        // A deprecated field is stored like any other.
        #[automatically_derived]
        #[allow(deprecated, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #krate::__private::Schema =
                #krate::__private::Schema::new(#entity_name, &[#(#schema),*]);

            fn columns() -> Self::Columns {
                #columns { #(#column_values),* }
            }

            fn entity_key(
                &self,
            ) -> ::core::result::Result<#krate::__private::EntityKey, #krate::__private::EntityError> {
                #krate::__private::entity_key(
                    #partition_access.text(&self.#partition),
                    #row_access.text(&self.#row),
                )
            }

            #write

            #read
        }
    }
}

fn write_fn(model: &Model<'_>) -> TokenStream {
    let Model {
        krate, properties, ..
    } = model;
    let writes = properties.iter().map(|Property { field, name }| {
        let (ident, ty) = (field.ident, field.ty);
        quote_spanned! { ty.span() =>
            #krate::__private::field::<#ty>().write(__writer, #name, &self.#ident)?;
        }
    });
    // An argument that nothing uses would be a warning in the user's crate.
    let argument = if properties.is_empty() {
        quote!(_)
    } else {
        quote!(__writer)
    };
    quote! {
        fn write(
            &self,
            #argument: &mut #krate::__private::PropertyWriter<'_>,
        ) -> ::core::result::Result<(), #krate::__private::EntityError> {
            #(#writes)*
            ::core::result::Result::Ok(())
        }
    }
}

/// Each property that passes by fills the slot of its field: a `match` over names, and no map.
fn read_fn(model: &Model<'_>) -> TokenStream {
    let Model {
        krate,
        partition_key,
        row_key,
        properties,
        ..
    } = model;
    let slots = (0..properties.len()).map(|index| format_ident!("__slot{}", index));
    let slots: Vec<(Ident, &Property<'_>)> = slots.zip(properties).collect();
    let lets = slots.iter().map(|(slot, Property { field, name })| {
        let ty = field.ty;
        quote_spanned! { ty.span() => let mut #slot = #krate::__private::field::<#ty>().slot(#name); }
    });
    let fills = slots.iter().map(|(slot, Property { name, .. })| {
        quote! { #name => #slot.fill(__property)?, }
    });
    let ends = slots.iter().map(|(slot, Property { field, .. })| {
        let ident = field.ident;
        quote! { #ident: #slot.finish()?, }
    });
    let fill_all = (!slots.is_empty()).then(|| {
        quote! {
            #(#lets)*
            while let ::core::option::Option::Some(__property) = __reader.next_property() {
                match __property.name() {
                    #(#fills)*
                    _ => {}
                }
            }
        }
    });
    let (partition, row) = (partition_key.ident, row_key.ident);
    let partition_access = key_access(model, partition_key);
    let row_access = key_access(model, row_key);
    quote! {
        fn read(
            __reader: &mut #krate::__private::PropertyReader<'_>,
        ) -> ::core::result::Result<Self, #krate::__private::EntityError> {
            #fill_all
            ::core::result::Result::Ok(Self {
                #partition: #partition_access.read_partition_key(__reader)?,
                #row: #row_access.read_row_key(__reader)?,
                #(#ends)*
            })
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
        #[allow(dead_code, deprecated, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
        impl #impl_generics #ident #type_generics #where_clause {
            #[doc = #key_doc]
            #[must_use]
            #vis fn key(#partition: #partition_type, #row: #row_type) -> #krate::__private::Key<Self> {
                #krate::__private::Key::from_texts(
                    #partition_access.text(&::core::convert::Into::into(#partition)),
                    #row_access.text(&::core::convert::Into::into(#row)),
                )
            }

            #[doc = #partition_doc]
            #[must_use]
            #vis fn partition(#partition: #partition_type) -> #krate::__private::Partition<Self> {
                ::core::convert::From::from(#partition_access.text(&::core::convert::Into::into(#partition)))
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
        #[allow(dead_code, deprecated, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
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
