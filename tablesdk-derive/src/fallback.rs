//! The code that accompanies the errors: stubs of the items that `expand` generates, so that one mistake gives one message and not one
//! for each use of the entity. The stubs take arguments of any type.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::{Data, DataStruct, DeriveInput, Field, Fields, Generics, LitStr, Path, parse_quote};

use crate::attr::{StructAttributes, ValueAttributes};
use crate::check::default_crate;
use crate::diagnostics::Diagnostics;
use crate::expand::{KeyOwner, rows_ident, variant_items};
use crate::input::Target;
use crate::template::names;
use crate::tokens::{columns_ident, declared_params, entity_param, with_entity_param};

pub(crate) fn expand(input: &DeriveInput, target: Target, error: &syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    let entity = match target {
        Target::Entity => {
            let entity = stub_entity(input);
            let entries = stub_entries(input);
            quote! { #entity #entries }
        }
        Target::Group => stub_group(input),
    };
    quote! { #errors #entity }
}

fn stub_entity(input: &DeriveInput) -> TokenStream {
    let krate = krate(input);
    let private = quote! { #krate::__private };

    let (columns, of_self, of_param) = stub_columns(input, Target::Entity, &private);
    let keys = stub_keys(input, &private);
    let entity = entity_traits(input, &krate, &of_self, &of_param);
    quote! {
        #columns

        #keys

        #entity
    }
}

/// The structs of the entries of indexes, as far as the attributes could be read.
fn stub_entries(input: &DeriveInput) -> TokenStream {
    let attributes = struct_attributes(input);
    let krate = krate(input);
    let private = quote! { #krate::__private };
    let (entity, vis) = (&input.ident, &input.vis);
    let Data::Struct(DataStruct {
        fields: Fields::Named(fields),
        ..
    }) = &input.data
    else {
        return TokenStream::new();
    };
    if !input.generics.params.is_empty() {
        return TokenStream::new();
    }
    let mut known = vec![entity];
    let indexes = attributes.indexes.iter().filter(|index| {
        let is_new = !known.contains(&&index.ident);
        known.push(&index.ident);
        is_new
    });
    let entries = indexes.map(|index| {
        let (ident, row_key) = (&index.ident, &index.row_key);
        let partition_key = index.partition_key.as_ref();
        let partition_key = partition_key.or(attributes.partition_key.as_ref()).into_iter();
        let crate_path = quote! { #krate }.to_string().replace(' ', "");
        let mut entry = input.clone();
        entry.ident = ident.clone();
        entry.attrs = parse_quote! {
            #[table(crate = #crate_path, #(partition_key = #partition_key,)* row_key = #row_key)]
        };
        let members = fields.named.iter().map(|field| {
            let (vis, name, ty) = (&field.vis, &field.ident, &field.ty);
            quote! { #vis #name: #ty }
        });
        let read = stub_entity(&entry);
        quote! {
            #[derive(::core::clone::Clone, ::core::fmt::Debug)]
            #[allow(dead_code, missing_docs)]
            #vis struct #ident {
                #(#members,)*
            }

            #read

            #[automatically_derived]
            impl #private::IndexEntry for #ident {
                type Entity = #entity;

                const IS_UNIQUE: bool = false;
                const KEY_PARTS: [&'static [#private::EntryKeyPart]; 2] = [&[], &[]];

                fn entry_key(
                    _: &#entity,
                ) -> ::core::result::Result<::core::option::Option<#private::EntityKey>, #private::EntityError> {
                    ::core::panic!()
                }

                fn write_entry(
                    _: &#entity,
                    _: &mut #private::PropertyWriter<'_>,
                ) -> ::core::result::Result<(), #private::EntityError> {
                    ::core::panic!()
                }

                fn key_of_entity(
                    &self,
                ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
                    ::core::panic!()
                }
            }
        }
    });
    entries.collect()
}

/// The traits of an entity, with the types of its columns alone and of any other entity that has them.
pub(crate) fn entity_traits(
    input: &DeriveInput,
    krate: &Path,
    of_self: &TokenStream,
    of_param: &TokenStream,
) -> TokenStream {
    let private = quote! { #krate::__private };
    let ident = &input.ident;
    let generics = bounded(input);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let name = ident.to_string();
    let variant = variant_items(krate, true);
    let param = entity_param();
    let key_and_write = quote! {
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
    };
    let all_of_entity = quote! {
        type Columns = #of_self;

        const SCHEMA: #private::Schema = #private::Schema::new(#name, &[]).stub();

        fn columns() -> Self::Columns {
            ::core::panic!()
        }

        fn read(
            _: &mut #private::PropertyReader<'_>,
        ) -> ::core::result::Result<Self, #private::EntityError> {
            ::core::panic!()
        }
    };
    let wide = struct_attributes(input).wide.map(|_| {
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::wide::WideEntity for #ident #type_generics #where_clause {
                #all_of_entity

                #key_and_write
            }
        }
    });
    quote! {
        #wide

        #[automatically_derived]
        impl #impl_generics #krate::TableEntity for #ident #type_generics #where_clause {
            #all_of_entity
        }

        #[automatically_derived]
        impl #impl_generics #private::EntityVariant for #ident #type_generics #where_clause {
            type ColumnsOf<#param> = #of_param;

            fn columns_of<#param>(_: #private::ColumnScope) -> Self::ColumnsOf<#param> {
                ::core::panic!()
            }

            #variant
        }

        #[automatically_derived]
        impl #impl_generics #private::Standalone for #ident #type_generics #where_clause {}

        #[automatically_derived]
        impl #impl_generics #private::Expires for #ident #type_generics #where_clause {
            const NAME: &'static str = "";

            fn expires_at(&self) -> ::core::option::Option<#private::Timestamp> {
                ::core::panic!()
            }
        }

        #[automatically_derived]
        impl #impl_generics #krate::WritableEntity for #ident #type_generics #where_clause {
            #key_and_write
        }
    }
}

/// The functions of the keys, with a parameter for each part of the template.
fn stub_keys(input: &DeriveInput, private: &TokenStream) -> TokenStream {
    let (ident, vis) = (&input.ident, &input.vis);
    let generics = bounded(input);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let attributes = struct_attributes(input);
    let parameters = |template: &Option<LitStr>| {
        let count = template
            .as_ref()
            .map_or(1, |text| names(&text.value()).count());
        vec![quote! { _: impl ::core::marker::Sized, }; count]
    };
    let partition = parameters(&attributes.partition_key);
    let row = parameters(&attributes.row_key);
    let rows = rows_ident(ident);
    let Data::Struct(DataStruct {
        fields: Fields::Named(fields),
        ..
    }) = &input.data
    else {
        return TokenStream::new();
    };
    let methods = fields.named.iter().map(|field| {
        let name = &field.ident;
        quote! {
            #vis fn #name(self, _: impl ::core::marker::Sized) -> Self {
                ::core::panic!()
            }
        }
    });
    let entity = quote! { #ident #type_generics };
    let lints = [quote! { #[allow(dead_code, missing_docs)] }];
    let keys_type = attributes.keys.as_ref();
    let owner = KeyOwner::new(ident, keys_type, &vis.to_token_stream(), &generics, &lints);
    let KeyOwner {
        header,
        entity: of_functions,
        generics: parameters,
        bounds,
        ..
    } = &owner;
    quote! {
        #header {
            #vis fn key #parameters (#(#partition)* #(#row)*) -> #private::Key<#of_functions> #bounds {
                ::core::panic!()
            }

            #vis fn partition #parameters (#(#partition)*) -> #private::Partition<#of_functions> #bounds {
                ::core::panic!()
            }

            #vis fn rows() -> #rows {
                ::core::panic!()
            }
        }

        #[allow(dead_code, missing_docs)]
        #vis struct #rows;

        #[allow(dead_code, missing_docs)]
        impl #rows {
            #(#methods)*
        }

        #[automatically_derived]
        impl #impl_generics ::core::convert::From<#rows> for #private::RowRange<#entity> #where_clause {
            fn from(_: #rows) -> Self {
                ::core::panic!()
            }
        }
    }
}

fn stub_group(input: &DeriveInput) -> TokenStream {
    let krate = krate(input);
    let private = quote! { #krate::__private };
    let (ident, generics) = (&input.ident, bounded(input));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let name = ident.to_string();
    let entity = entity_param();
    let (columns, _, columns_type) = stub_columns(input, Target::Group, &private);
    quote! {
        #columns

        #[automatically_derived]
        impl #impl_generics #krate::TableProperties for #ident #type_generics #where_clause {
            type Columns<#entity> = #columns_type;
            type Slots = ();

            const SCHEMA: #private::Schema = #private::Schema::new(#name, &[]);

            fn columns<#entity>(_: #private::ColumnScope) -> Self::Columns<#entity> {
                ::core::panic!()
            }

            fn write(
                &self,
                _: &mut #private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                ::core::panic!()
            }

            fn slots() {}

            fn fill(
                _: &mut (),
                _: &str,
                _: &#private::RawProperty<'_>,
            ) -> ::core::result::Result<bool, #private::EntityError> {
                ::core::panic!()
            }

            fn finish(
                _: (),
                _: #private::ColumnScope,
            ) -> ::core::result::Result<Self, #private::EntityError> {
                ::core::panic!()
            }
        }
    }
}

/// A stub of a property value, so that its uses are not reported as well.
pub(crate) fn value(input: &DeriveInput, error: &syn::Error) -> TokenStream {
    let mut reported = Diagnostics::new();
    let attributes = ValueAttributes::parse(&input.attrs, &mut reported);
    reported.discard();
    let krate = attributes.krate.unwrap_or_else(default_crate);
    let private = quote! { #krate::__private };
    let errors = error.to_compile_error();
    let (ident, generics) = (&input.ident, bounded(input));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #errors

        #[automatically_derived]
        impl #impl_generics #krate::PropertyValue for #ident #type_generics #where_clause {
            const EDM_TYPE: #private::EdmType = #private::EdmType::String;

            fn to_value(
                &self,
            ) -> ::core::result::Result<#private::ValueRef<'_>, #private::ValueError> {
                ::core::panic!()
            }

            fn from_value(
                _: #private::Value,
            ) -> ::core::result::Result<Self, #private::ValueError> {
                ::core::panic!()
            }
        }
    }
}

/// Where `tablesdk` is.
fn krate(input: &DeriveInput) -> Path {
    struct_attributes(input).krate.unwrap_or_else(default_crate)
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

/// The struct of columns and its types; a unit if the fields have no names.
fn stub_columns(
    input: &DeriveInput,
    target: Target,
    private: &TokenStream,
) -> (TokenStream, TokenStream, TokenStream) {
    let none = (TokenStream::new(), quote! { () }, quote! { () });
    let Data::Struct(data) = &input.data else {
        return none;
    };
    let Fields::Named(fields) = &data.fields else {
        return none;
    };
    let param = entity_param();
    let (ident, vis) = (&input.ident, &input.vis);
    let (_, own_generics, _) = input.generics.split_for_impl();
    let with_param = with_entity_param(&input.generics);
    let (impl_generics, type_generics, where_clause) = with_param.split_for_impl();
    let default = match target {
        Target::Entity => Some(quote! { = #ident #own_generics }),
        Target::Group => None,
    };
    let params = declared_params(&with_param, default.as_ref());
    let columns = columns_ident(ident);
    let fields = fields.named.iter().map(|field| {
        let (vis, ident_of_field, ty) = (&field.vis, &field.ident, &field.ty);
        let column = if is_flattened(field) {
            quote! { <#ty as #private::TableProperties>::Columns<#param> }
        } else {
            quote! { #private::Column<#param, #ty> }
        };
        quote! { #vis #ident_of_field: #column }
    });
    let item = quote! {
        #[allow(dead_code, missing_docs)]
        #vis struct #columns #params #where_clause {
            #(#fields,)*
            __entity: ::core::marker::PhantomData<fn() -> #param>,
        }

        impl #impl_generics ::core::clone::Clone for #columns #type_generics #where_clause {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl #impl_generics ::core::marker::Copy for #columns #type_generics #where_clause {}
    };
    let columns_type = quote! { #columns #own_generics };
    (item, columns_type, quote! { #columns #type_generics })
}

/// Whether the field has `flatten` among its attributes, even if another attribute is malformed.
fn is_flattened(field: &Field) -> bool {
    let attributes = field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("table"));
    let lists = attributes.filter_map(|attribute| attribute.meta.require_list().ok());
    let mut tokens = lists.flat_map(|list| list.tokens.clone());
    tokens.any(|token| matches!(token, TokenTree::Ident(word) if word == "flatten"))
}
