//! The code that accompanies the errors: the macro `stub` of the client writes the items that
//! `expand` generates, so that one mistake gives one message and not one for each use of the
//! entity.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::punctuated::Punctuated;
use syn::{
    Data, DataStruct, DeriveInput, Field, Fields, Generics, LitStr, Path, Token, parse_quote,
};

use crate::attr::{StructAttributes, ValueAttributes};
use crate::check::default_crate;
use crate::diagnostics::Diagnostics;
use crate::expand::{KeyOwner, rows_ident};
use crate::input::Target;
use crate::template::names;
use crate::tokens::{columns_ident, declared_params, entity_param, with_entity_param};

pub(crate) fn expand(input: &DeriveInput, target: Target, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    let attributes = struct_attributes(input);
    let krate = attributes.krate.clone().unwrap_or_else(default_crate);
    let stubs = match target {
        Target::Entity => {
            let entity = stub_entity(input, &attributes, &krate);
            let entries = stub_entries(input, &attributes, &krate);
            quote! { #entity #entries }
        }
        Target::Group => {
            let (columns, _, of_param) = stub_columns(input, target, &krate);
            let group = stub_traits("group", input, &krate, &of_param);
            quote! { #columns #group }
        }
    };
    quote! { #errors #stubs }
}

fn stub_entity(input: &DeriveInput, attributes: &StructAttributes, krate: &Path) -> TokenStream {
    let (columns, of_self, of_param) = stub_columns(input, Target::Entity, krate);
    let keys = stub_keys(input, attributes, krate);
    let wide = attributes.wide.is_some();
    let wide = wide.then(|| stub_traits("wide", input, krate, &of_self));
    let entity = stub_traits("entity", input, krate, &of_self);
    let variant = stub_traits("variant", input, krate, &of_param);
    quote! { #columns #keys #wide #entity #variant }
}

/// The structs of the entries of indexes, as far as the attributes could be read.
fn stub_entries(input: &DeriveInput, attributes: &StructAttributes, krate: &Path) -> TokenStream {
    let (entity, vis) = (&input.ident, &input.vis);
    let Some(fields) = named_fields(input).filter(|_| input.generics.params.is_empty()) else {
        return TokenStream::new();
    };
    let mut known = vec![entity];
    let indexes = attributes.indexes.iter().filter(|index| {
        let is_new = !known.contains(&&index.ident);
        known.push(&index.ident);
        is_new
    });
    let entries = indexes.map(|index| {
        let ident = &index.ident;
        let entry = DeriveInput {
            ident: ident.clone(),
            ..input.clone()
        };
        let of_entry = StructAttributes {
            partition_key: index
                .partition_key
                .clone()
                .or_else(|| attributes.partition_key.clone()),
            row_key: Some(index.row_key.clone()),
            ..StructAttributes::default()
        };
        let members = fields.iter().map(|field| {
            let (vis, name, ty) = (&field.vis, &field.ident, &field.ty);
            quote! { #vis #name: #ty }
        });
        let stubs = stub_entity(&entry, &of_entry, krate);
        quote! {
            #[derive(::core::clone::Clone, ::core::fmt::Debug)]
            #[allow(dead_code, missing_docs)]
            #vis struct #ident {
                #(#members,)*
            }

            #stubs

            #krate::__private::stub! { entry [impl] [#ident] of [#entity] }
        }
    });
    entries.collect()
}

/// The traits of that kind, with the type of the columns: those of the entity alone, or those of
/// any entity that has them.
pub(crate) fn stub_traits(
    kind: &str,
    input: &DeriveInput,
    krate: &Path,
    columns: &TokenStream,
) -> TokenStream {
    let kind = Ident::new(kind, Span::call_site());
    let (ident, name) = (&input.ident, input.ident.to_string());
    let generics = bounded(input);
    let (impl_generics, type_generics, bounds) = generics.split_for_impl();
    quote! {
        #krate::__private::stub! {
            #kind [impl #impl_generics] [#ident #type_generics] [#bounds] #name [#columns]
        }
    }
}

/// The functions of the keys, with a parameter for each part of the template.
fn stub_keys(
    input: &DeriveInput,
    attributes: &StructAttributes,
    krate: &Path,
) -> Option<TokenStream> {
    let names_of_fields = named_fields(input)?.iter().map(|field| &field.ident);
    let (ident, vis, rows) = (&input.ident, &input.vis, rows_ident(&input.ident));
    let parts = |template: &Option<LitStr>| {
        let count = template
            .as_ref()
            .map_or(1, |text| names(&text.value()).count());
        vec![quote! { _ }; count]
    };
    let (partition, row) = (parts(&attributes.partition_key), parts(&attributes.row_key));
    let generics = bounded(input);
    let (impl_generics, type_generics, bounds) = generics.split_for_impl();
    let lints = [quote! { #[allow(dead_code, missing_docs)] }];
    let keys_type = attributes.keys.as_ref();
    let owner = KeyOwner::new(ident, keys_type, &vis.to_token_stream(), &generics, &lints);
    let KeyOwner {
        header,
        entity: key_of,
        generics: of_function,
        bounds: function_bounds,
        ..
    } = &owner;
    Some(quote! {
        #krate::__private::stub! {
            keys [impl #impl_generics] [#ident #type_generics] [#bounds]
            #rows [#vis struct #rows;] [#([#vis fn #names_of_fields])*]
            [#vis fn] [#(#partition)*] [#(#row)*]
            in [#header] [#of_function] [#key_of] [#function_bounds]
        }
    })
}

/// A stub of a property value, so that its uses are not reported as well.
pub(crate) fn value(input: &DeriveInput, error: &syn::Error) -> TokenStream {
    let mut reported = Diagnostics::new();
    let attributes = ValueAttributes::parse(&input.attrs, &mut reported);
    reported.discard();
    let krate = attributes.krate.unwrap_or_else(default_crate);
    let errors = error.to_compile_error();
    let (ident, generics) = (&input.ident, bounded(input));
    let (impl_generics, type_generics, bounds) = generics.split_for_impl();
    quote! {
        #errors

        #krate::__private::stub! { value [impl #impl_generics] [#ident #type_generics] [#bounds] }
    }
}

/// The attributes of the struct; their mistakes have been reported.
fn struct_attributes(input: &DeriveInput) -> StructAttributes {
    let mut reported = Diagnostics::new();
    let attributes = StructAttributes::parse(&input.attrs, &mut reported);
    reported.discard();
    attributes
}

/// With the bounds of the trait, so that a missing bound or a lifetime is not a second error.
fn bounded(input: &DeriveInput) -> Generics {
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        predicates.push(parse_quote! { Self: ::core::marker::Send + 'static });
    }
    generics
}

fn named_fields(input: &DeriveInput) -> Option<&Punctuated<Field, Token![,]>> {
    match &input.data {
        Data::Struct(DataStruct {
            fields: Fields::Named(fields),
            ..
        }) => Some(&fields.named),
        _ => None,
    }
}

/// The struct of columns and its types; a unit if the fields have no names.
fn stub_columns(
    input: &DeriveInput,
    target: Target,
    krate: &Path,
) -> (TokenStream, TokenStream, TokenStream) {
    let Some(fields) = named_fields(input) else {
        return (TokenStream::new(), quote! { () }, quote! { () });
    };
    let private = quote! { #krate::__private };
    let (ident, vis, param) = (&input.ident, &input.vis, entity_param());
    let (_, own_generics, _) = input.generics.split_for_impl();
    let with_param = with_entity_param(&input.generics);
    let (impl_generics, type_generics, bounds) = with_param.split_for_impl();
    let default = match target {
        Target::Entity => Some(quote! { = #ident #own_generics }),
        Target::Group => None,
    };
    let params = declared_params(&with_param, default.as_ref());
    let columns = columns_ident(ident);
    let fields = fields.iter().map(|field| {
        let (vis, name, ty) = (&field.vis, &field.ident, &field.ty);
        let column = if is_flattened(field) {
            quote! { <#ty as #private::TableProperties>::Columns<#param> }
        } else {
            quote! { #private::Column<#param, #ty> }
        };
        quote! { #vis #name: #column }
    });
    let item = quote! {
        #private::stub! {
            columns [impl #impl_generics] [#columns #type_generics] [#bounds] [#vis struct #columns #params] { #(#fields,)* }
        }
    };
    (
        item,
        quote! { #columns #own_generics },
        quote! { #columns #type_generics },
    )
}

/// Returns true if the field has `flatten` among its attributes, even if another attribute is
/// malformed.
fn is_flattened(field: &Field) -> bool {
    let attributes = field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("table"));
    let lists = attributes.filter_map(|attribute| attribute.meta.require_list().ok());
    let mut tokens = lists.flat_map(|list| list.tokens.clone());
    tokens.any(|token| matches!(token, TokenTree::Ident(word) if word == "flatten"))
}
