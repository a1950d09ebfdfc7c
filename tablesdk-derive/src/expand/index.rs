//! The code for an index of an entity: the struct of its entries, which is read like an entity, and
//! how an entry is made of the entity.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Ident;
use syn::ext::IdentExt as _;

use super::bounds::implementation;
use super::derives::{carried, derives};
use super::expand;
use super::keys::{key_parts, key_value};
use super::write::write_statements;
use crate::attr::IndexTable;
use crate::check::{Kind, Model};
use crate::input::{IndexOf, InputField};
use crate::name::KeyName;
use crate::template::Template;
use crate::tokens::local;

/// The indexes and copies of an entity that has such.
pub(super) fn impl_indexed(entity: &Model<'_>, indexes: &[Model<'_>]) -> Option<TokenStream> {
    if entity.index_of.is_some() || entity.is_standalone(indexes) {
        return None;
    }
    let private = entity.private();
    let idents = indexes.iter().map(|index| &index.ident);
    let copies = entity.copies.iter().map(|copy| {
        let (path, name) = (&copy.path, copy.stored_name(&entity.ident));
        quote! { #private::Index::<Self>::copy::<#path>(#name) }
    });
    let expiry = entity
        .bucket()
        .map(|_| quote! { #private::Index::<Self>::expiry(), });
    let items = quote! {
        const INDEXES: &'static [#private::Index<Self>] = &[
            #(#private::Index::of::<#idents>(),)*
            #(#copies,)*
            #expiry
        ];
    };
    Some(implementation(
        entity,
        &quote! { #private::Indexed },
        &items,
    ))
}

/// How a projection with both keys is written, where it is computed from another entity.
pub(super) fn impl_copied(model: &Model<'_>) -> Option<TokenStream> {
    let has_keys = KeyName::BOTH
        .iter()
        .all(|name| model.keys.get(*name).is_some());
    if !model.projection || !has_keys {
        return None;
    }
    let private = model.private();
    let writer = local("writer");
    let own = |field: &InputField<'_>| {
        let member = field.member();
        quote! { &self.#member }
    };
    let key = key_value(model, &quote! { Self }, own);
    let statements = write_statements(model, &writer, own);
    let items = quote! {
        const IS_PART: bool = true;

        fn copy_key(
            &self,
        ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
            #key
        }

        fn write_copy(
            &self,
            #writer: &mut #private::PropertyWriter<'_>,
        ) -> ::core::result::Result<(), #private::EntityError> {
            #statements
            ::core::result::Result::Ok(())
        }
    };
    Some(implementation(model, &quote! { #private::Copied }, &items))
}

/// The struct of the entries, and its implementations.
pub(super) fn expand_index(entity: &Model<'_>, index: &Model<'_>) -> TokenStream {
    let Some(index_of) = &index.index_of else {
        return TokenStream::new();
    };
    let entries = struct_of_entries(index, index_of);
    let read = expand(index, &[]);
    let entry = impl_entry(entity, index, index_of);
    let into_entity = impl_from_entry(entity, index, index_of);
    quote! { #entries #read #entry #into_entity }
}

fn struct_of_entries(index: &Model<'_>, index_of: &IndexOf) -> TokenStream {
    let Model {
        ident, vis, lints, ..
    } = index;
    let entity = index_of.entity.unraw();
    let key = |name| index.keys.get(name).map_or("", |key: &Template| &key.text);
    let (partition_key, row_key) = (key(KeyName::Partition), key(KeyName::Row));
    let properties = if index_of.is_whole {
        "its properties"
    } else {
        "its keys, and the properties that `only` names"
    };
    let doc = match &index_of.table {
        Some(IndexTable { before, after }) => format!(
            " An entry of an index of [`{entity}`]: {properties}, in the table `{before}{{table}}{after}`, under keys of the form `{partition_key}` and `{row_key}`. It is written before the entity, and removed after it."
        ),
        None if index_of.is_elsewhere => format!(
            " An entry of an index of [`{entity}`]: {properties}, under keys of the form `{partition_key}` and `{row_key}`. It is written before the entity, and removed after it."
        ),
        None => format!(
            " An entry of an index of [`{entity}`]: {properties}, under a row key of the form `{row_key}`. It is written together with the entity."
        ),
    };
    let fields = index.parts.iter().map(|part| {
        let (vis, member, ty) = (part.field.vis, part.field.member(), part.field.ty);
        let docs = part.field.docs.iter().map(ToTokens::to_token_stream);
        let others = carried(index_of, &part.field.others, index_of.requires(&part.field));
        quote! { #(#docs)* #(#others)* #vis #member: #ty }
    });
    let derives = derives(index_of);
    let others = carried(index_of, &index.others, false);
    quote! {
        #[doc = #doc]
        #[derive(#(#derives),*)]
        #(#others)*
        #[allow(dead_code, reason = "an entry has the fields of its entity")]
        #(#lints)*
        #vis struct #ident {
            #(#fields,)*
        }
    }
}

fn impl_entry(entity: &Model<'_>, index: &Model<'_>, index_of: &IndexOf) -> TokenStream {
    let private = index.private();
    let (ident, of, lints) = (&index.ident, &index_of.entity, &index.lints);
    let is_unique = index_of.is_unique;
    let key_parts = KeyName::BOTH.map(|name| key_parts(entity, index, name));
    let (source, writer) = (local("entity"), local("writer"));
    let value = |field: &InputField<'_>| {
        if index_of.requires(field) {
            return required_ident(field).into_token_stream();
        }
        let member = field.member();
        quote! { &#source.#member }
    };
    let bindings = |otherwise: TokenStream| {
        let fields = index.parts.iter().map(|part| &part.field);
        let fields = fields.filter(|field| index_of.requires(field));
        let bindings = fields.map(|field| {
            let (member, value) = (field.member(), required_ident(field));
            quote! {
                let ::core::option::Option::Some(#value) = &#source.#member else {
                    return ::core::result::Result::Ok(#otherwise);
                };
            }
        });
        bindings.collect::<TokenStream>()
    };
    let without_entry = bindings(quote! { ::core::option::Option::None });
    let without_properties = bindings(quote! { () });
    let key = key_value(index, &ident.to_token_stream(), value);
    let statements = write_statements(index, &writer, value);
    let key_of_entity = key_value(entity, &of.to_token_stream(), |field| {
        let member = field.member();
        quote! { &self.#member }
    });
    quote! {
        #[automatically_derived]
        #(#lints)*
        impl #private::IndexEntry for #ident {
            type Entity = #of;

            const IS_UNIQUE: bool = #is_unique;
            const KEY_PARTS: [&'static [#private::EntryKeyPart]; 2] = [#(#key_parts),*];

            fn entry_key(
                #source: &#of,
            ) -> ::core::result::Result<::core::option::Option<#private::EntityKey>, #private::EntityError> {
                #without_entry
                ::core::result::Result::map(#key, ::core::option::Option::Some)
            }

            fn write_entry(
                #source: &#of,
                #writer: &mut #private::PropertyWriter<'_>,
            ) -> ::core::result::Result<(), #private::EntityError> {
                #without_properties
                #statements
                ::core::result::Result::Ok(())
            }

            fn key_of_entity(
                &self,
            ) -> ::core::result::Result<#private::EntityKey, #private::EntityError> {
                #key_of_entity
            }
        }
    }
}

/// How an entity is made of its entry, if the entry has every field of it: the ETag and the
/// timestamp of an entry are not those of the entity.
fn impl_from_entry(
    entity: &Model<'_>,
    index: &Model<'_>,
    index_of: &IndexOf,
) -> Option<TokenStream> {
    let is_whole = entity.parts.iter().all(|part| {
        let has_field = index
            .parts
            .iter()
            .any(|it| it.field.ident == part.field.ident);
        has_field && !matches!(part.kind, Kind::ETag | Kind::Timestamp)
    });
    if !is_whole {
        return None;
    }
    let (ident, of, lints) = (&index.ident, &index_of.entity, &index.lints);
    let entry = local("entry");
    let fields = entity.parts.iter().map(|part| {
        let member = part.field.member();
        if index_of.requires(&part.field) {
            quote! { #member: ::core::option::Option::Some(#entry.#member) }
        } else {
            quote! { #member: #entry.#member }
        }
    });
    Some(quote! {
        #[automatically_derived]
        #(#lints)*
        impl ::core::convert::From<#ident> for #of {
            fn from(#entry: #ident) -> Self {
                Self { #(#fields,)* }
            }
        }
    })
}

impl IndexOf {
    fn requires(&self, field: &InputField<'_>) -> bool {
        self.required.iter().any(|required| required == field.ident)
    }
}

/// The variable with the value of a field that is an `Option` in the entity.
fn required_ident(field: &InputField<'_>) -> Ident {
    local(&format!("required_{}", field.plain_name()))
}
