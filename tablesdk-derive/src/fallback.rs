//! What is emitted beside the errors: enough of an entity that one mistake does not break every line that uses it.
//!
//! Everything that `expand` generates exists here, too, as far as the declaration allows, and takes anything.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Fields, parse_quote};

use crate::attr::StructAttributes;
use crate::check::crate_path;
use crate::diagnostics::Diagnostics;
use crate::expand::columns_ident;

pub(crate) fn expand(input: &DeriveInput, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    let entity = stub_entity(input);
    quote! { #errors #entity }
}

fn stub_entity(input: &DeriveInput) -> TokenStream {
    let mut reported = Diagnostics::new();
    let krate = crate_path(StructAttributes::parse(&input.attrs, &mut reported));
    reported.discard();
    let private = quote! { #krate::__private };

    let (ident, vis) = (&input.ident, &input.vis);
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        // What the trait asks for must not become a second error; lifetimes are in `'static` so, too.
        let predicates = &mut generics.make_where_clause().predicates;
        predicates.push(parse_quote! { Self: ::core::marker::Send + 'static });
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let entity_name = ident.to_string();
    let (columns, columns_type) = stub_columns(input, &private);
    quote! {
        #columns

        #[allow(dead_code, missing_docs)]
        impl #impl_generics #ident #type_generics #where_clause {
            #vis fn key(
                _: impl ::core::marker::Sized,
                _: impl ::core::marker::Sized,
            ) -> #private::Key<Self> {
                ::core::panic!()
            }

            #vis fn partition(_: impl ::core::marker::Sized) -> #private::Partition<Self> {
                ::core::panic!()
            }
        }

        #[automatically_derived]
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            type Columns = #columns_type;

            const SCHEMA: #private::Schema = #private::Schema::new(#entity_name, &[]);

            fn columns() -> Self::Columns {
                ::core::panic!()
            }

            fn entity_key(
                &self,
            ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
                ::core::panic!()
            }

            fn write(
                &self,
                _: &mut #private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                ::core::panic!()
            }

            fn read(
                _: &mut #private::PropertyReader<'_>,
            ) -> ::core::result::Result<Self, #private::EntityError> {
                ::core::panic!()
            }
        }
    }
}

/// The struct of columns and its type; a unit where no field has a name.
fn stub_columns(input: &DeriveInput, private: &TokenStream) -> (TokenStream, TokenStream) {
    let Data::Struct(data) = &input.data else {
        return (TokenStream::new(), quote! { () });
    };
    let Fields::Named(fields) = &data.fields else {
        return (TokenStream::new(), quote! { () });
    };
    let (ident, vis) = (&input.ident, &input.vis);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let columns = columns_ident(ident);
    let fields = fields.named.iter().map(|field| {
        let (vis, ident_of_field, ty) = (&field.vis, &field.ident, &field.ty);
        quote! { #vis #ident_of_field: #private::Column<#ident #type_generics, #ty> }
    });
    let item = quote! {
        #[allow(dead_code, missing_docs)]
        #vis struct #columns #impl_generics #where_clause { #(#fields),* }

        impl #impl_generics ::core::clone::Clone for #columns #type_generics #where_clause {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl #impl_generics ::core::marker::Copy for #columns #type_generics #where_clause {}
    };
    (item, quote! { #columns #type_generics }.to_token_stream())
}
