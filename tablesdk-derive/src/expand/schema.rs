//! The code for the schema: the constant that describes the properties, keys and entity type of a
//! struct.
//!
//! Knows nothing of values, nor of how they are read and written.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;

use super::access::{aliases, of_group, property_access, stored_type};
use super::keys::schema_keys;
use crate::attr::IndexTable;
use crate::check::{Form, Kind, Model};
use crate::input::{InputField, Target};
use crate::name::{KeyName, RenameRule};
use crate::template::Template;

pub(super) fn schema(model: &Model<'_>) -> TokenStream {
    let private = model.private();
    let name = model.ident.unraw().to_string();
    let parts = model.parts.iter().filter_map(|part| match &part.kind {
        Kind::Group { prefix } => {
            let ty = part.field.ty;
            let schema = of_group(&private, ty, &quote! { SCHEMA });
            Some(quote! { #private::SchemaPart::Group(#prefix, &#schema) })
        }
        Kind::Property(property)
        | Kind::KeyPart {
            stored: Some(property),
            ..
        } => {
            let access = match &property.form {
                Form::With(module) => {
                    let stored = stored_type(module);
                    quote! { #private::field::<#stored>() }
                }
                Form::Json | Form::Plain => property_access(&private, &part.field, property),
            };
            let name = &property.name;
            let aliases = aliases(property);
            let default = property
                .default
                .as_ref()
                .map(|_| quote! { .with_default() });
            let encrypt = property.encrypt.map(|encrypt| {
                if encrypt.has_lookup {
                    quote! { .encrypted_with_lookup() }
                } else {
                    quote! { .encrypted() }
                }
            });
            Some(
                quote! { #private::SchemaPart::Property(#access.schema(#name) #aliases #default #encrypt) },
            )
        }
        _ => None,
    });
    let projection = model.projection.then(|| quote! { .projection() });
    let expires = model.expires_on().map(|(_, property)| {
        let name = &property.name;
        quote! { .expires(#name) }
    });
    let entity_type = model.entity_type.as_ref();
    let entity_type = entity_type.map(|entity_type| entity_type.schema(model));
    let keys = schema_keys(model);
    let unrenamed = unrenamed(model);
    let entry = model.index_of.as_ref();
    let entry = entry.map(|index_of| {
        let table = index_of.table.as_ref();
        let table = table.map(|IndexTable { before, after }| quote! { .in_table(#before, #after) });
        if index_of.is_reserved() {
            quote! { .entry_reserved() #table }
        } else if index_of.is_elsewhere {
            quote! { .entry_elsewhere() #table }
        } else {
            quote! { .entry() }
        }
    });
    let told = model.is_told_by_partition.then(told_by_partition);
    quote! { #private::Schema::new(#name, &[#(#parts),*]) #keys #projection #entity_type #unrenamed #entry #told #expires }
}

/// Queries are restricted to the partition keys with the text in front.
pub(super) fn told_by_partition() -> TokenStream {
    quote! { .told_by_partition() }
}

/// With what the row keys of the entries of indexes in the same table begin.
pub(super) fn row_keys_of_entries(indexes: &[Model<'_>]) -> Option<TokenStream> {
    let is_beside = |index: &&Model<'_>| {
        let index_of = index.index_of.as_ref();
        index_of.is_some_and(|index_of| index_of.table.is_none())
    };
    let keys = indexes
        .iter()
        .filter(is_beside)
        .filter_map(|index| index.keys.get(KeyName::Row));
    let prefixes: Vec<_> = keys.map(Template::literal_prefix).collect();
    (!prefixes.is_empty()).then(|| quote! { .row_keys_of_entries(&[#(#prefixes),*]) })
}

/// For a flattened struct without `rename_all`, the rules that its names do not follow.
fn unrenamed(model: &Model<'_>) -> Option<TokenStream> {
    if !matches!(model.target, Target::Group) || model.rename_all.is_some() {
        return None;
    }
    let fields = model.properties().map(|(field, _)| field);
    let names = fields.filter(|field| field.attributes.rename.is_none());
    let names: Vec<_> = names.map(InputField::plain_name).collect();
    let rules = RenameRule::CHANGING.into_iter();
    let rules = rules.filter(|rule| names.iter().any(|name| rule.apply(name) != *name));
    let set = rules.fold(0, |set, rule| set | rule.bit());
    (set != 0).then(|| quote! { .unrenamed(#set) })
}
