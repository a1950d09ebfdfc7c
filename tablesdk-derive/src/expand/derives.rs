//! The derives of the entries of an index, and the attributes of the entity that they read, too: so
//! that the JSON of an entry looks as that of the entity.
//!
//! An attribute is an error where no derive reads it, and a derive does not say which it reads. So
//! those of the usual derives are known here.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Path, Token};

use crate::input::IndexOf;

/// All derives of the entries. A `Clone` or `Debug` of the caller is in place of the usual one.
pub(super) fn derives(index_of: &IndexOf) -> Vec<TokenStream> {
    let usual = [
        ("Clone", quote! { ::core::clone::Clone }),
        ("Debug", quote! { ::core::fmt::Debug }),
    ];
    let has = |name| index_of.derives.iter().any(|path| last_is(path, name));
    let usual = usual.into_iter().filter(|(name, _)| !has(name));
    let usual = usual.map(|(_, path)| path);
    let given = index_of.derives.iter().map(ToTokens::to_token_stream);
    usual.chain(given).collect()
}

/// The attributes of the entity, or of a field of it, that the derives of the entries read. Of a
/// field that is an `Option` in the entity and `is_required` in the entry, without the condition
/// under which it is not written: that is a function of the `Option`.
pub(super) fn carried(
    index_of: &IndexOf,
    others: &[&Attribute],
    is_required: bool,
) -> Vec<TokenStream> {
    let is_read = |attribute: &&&Attribute| {
        let readers = READ_BY.iter().filter(|(_, names)| {
            let mut names = names.iter();
            names.any(|name| attribute.path().is_ident(name))
        });
        let mut readers = readers.map(|(reader, _)| reader);
        readers.any(|reader| index_of.derives.iter().any(|path| last_is(path, reader)))
    };
    let read = others.iter().filter(is_read);
    let carried = read.map(|attribute| {
        if is_required {
            without_condition(attribute)
        } else {
            attribute.to_token_stream()
        }
    });
    carried.collect()
}

fn without_condition(attribute: &Attribute) -> TokenStream {
    let items = Punctuated::<Meta, Token![,]>::parse_terminated;
    let (Ok(items), true) = (
        attribute.parse_args_with(items),
        attribute.path().is_ident("serde"),
    ) else {
        return attribute.to_token_stream();
    };
    let items = items.into_iter();
    let items = items.filter(|item| !item.path().is_ident("skip_serializing_if"));
    quote! { #[serde(#(#items),*)] }
}

fn last_is(path: &Path, name: &str) -> bool {
    path.segments.last().is_some_and(|last| last.ident == name)
}

/// The attributes that a derive reads.
const READ_BY: [(&str, &[&str]); 4] = [
    ("Deserialize", &["serde"]),
    ("JsonSchema", &["schemars", "serde"]),
    ("Serialize", &["serde"]),
    ("ToSchema", &["schema", "serde"]),
];
