//! What is emitted beside the errors: enough of an entity that one mistake does not break every line that uses the struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, parse_quote};

use crate::attr::StructAttributes;
use crate::diagnostics::Diagnostics;
use crate::expand::columns_ident;

pub(crate) fn expand(input: &DeriveInput, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    let Data::Struct(data) = &input.data else {
        return errors;
    };
    let Fields::Named(fields) = &data.fields else {
        return errors;
    };
    if input.generics.lifetimes().next().is_some() {
        return errors;
    }
    let mut ignored = Diagnostics::new();
    let krate = StructAttributes::parse(&input.attrs, &mut ignored).krate;
    // Reported already, as part of `error`.
    let _ = ignored.finish(Some(()));
    let krate = krate.unwrap_or_else(|| parse_quote!(::tablesdk));

    let (ident, vis) = (&input.ident, &input.vis);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let columns = columns_ident(ident);
    let entity_name = ident.to_string();
    let columns_doc = format!("The columns of [`{ident}`].");
    let idents: Vec<_> = fields
        .named
        .iter()
        .filter_map(|field| field.ident.as_ref())
        .collect();
    let types = fields.named.iter().map(|field| &field.ty);
    let visibilities = fields.named.iter().map(|field| &field.vis);
    quote! {
        #errors

        #[doc = #columns_doc]
        #[allow(dead_code, missing_docs)]
        #[derive(::core::clone::Clone, ::core::marker::Copy)]
        #vis struct #columns #impl_generics #where_clause {
            #(#visibilities #idents: #krate::__private::Column<#ident #type_generics, #types>),*
        }

        #[allow(dead_code, missing_docs)]
        impl #impl_generics #ident #type_generics #where_clause {
            #vis fn key(_: impl ::core::marker::Sized, _: impl ::core::marker::Sized) -> #krate::__private::Key<Self> {
                ::core::panic!()
            }

            #vis fn partition(_: impl ::core::marker::Sized) -> #krate::__private::Partition<Self> {
                ::core::panic!()
            }
        }

        #[automatically_derived]
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns #type_generics;

            const SCHEMA: #krate::__private::Schema = #krate::__private::Schema::new(#entity_name, &[]);

            fn columns() -> Self::Columns {
                ::core::panic!()
            }

            fn entity_key(
                &self,
            ) -> ::core::result::Result<#krate::__private::EntityKey, #krate::__private::EntityError> {
                ::core::panic!()
            }

            fn write(
                &self,
                _: &mut #krate::__private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #krate::__private::EntityError> {
                ::core::panic!()
            }

            fn read(
                _: &mut #krate::__private::PropertyReader<'_>,
            ) -> ::core::result::Result<Self, #krate::__private::EntityError> {
                ::core::panic!()
            }
        }
    }
}
