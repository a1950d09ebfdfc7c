//! The struct as it was written: attributes and fields, with their spans.
//!
//! It checks only the shape. Mistakes in attributes are collected and passed on to the check, which
//! adds its own.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Fields, Generics, Ident, Meta, Path, Type, Visibility};

use crate::attr::{FieldAttributes, IndexTable, StructAttributes};
use crate::diagnostics::Diagnostics;
use crate::name::{KeyName, RenameRule};
use crate::tokens::generated;

pub(crate) struct Input<'a> {
    pub(crate) target: Target,
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) generics: &'a Generics,
    pub(crate) attributes: StructAttributes,
    pub(crate) fields: Vec<InputField<'a>>,
    /// The attributes that other derives may read.
    pub(crate) others: Vec<&'a Attribute>,
    /// The index and the entity of the entries, if the struct is the entries of an index.
    pub(crate) index_of: Option<IndexOf>,
    /// The lints that the struct or a field allows, for the code that repeats their names and
    /// types.
    pub(crate) lints: Vec<TokenStream>,
    pub(crate) diagnostics: Diagnostics,
}

#[derive(Clone)]
pub(crate) struct InputField<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    pub(crate) ty: &'a Type,
    pub(crate) docs: Vec<&'a Attribute>,
    /// The attributes that other derives may read.
    pub(crate) others: Vec<&'a Attribute>,
    pub(crate) attributes: FieldAttributes,
    /// The key whose template names the field.
    pub(crate) part_of: Option<KeyName>,
}

impl InputField<'_> {
    /// The name under which the field is stored if it is no key, and where that name was written.
    pub(crate) fn stored_name(&self, rule: Option<RenameRule>) -> (String, Span) {
        let plain = self.plain_name();
        match (&self.attributes.rename, rule) {
            (Some(rename), _) => (rename.value(), rename.span()),
            (None, Some(rule)) => (rule.apply(&plain), self.ident.span()),
            (None, None) => (plain, self.ident.span()),
        }
    }

    /// The name without a raw identifier's `r#`.
    pub(crate) fn plain_name(&self) -> String {
        self.ident.unraw().to_string()
    }

    pub(crate) fn is_key(&self) -> bool {
        self.attributes.partition_key.is_some() || self.attributes.row_key.is_some()
    }

    /// Returns true if the field is marked as both keys, which is a mistake.
    pub(crate) fn is_both_keys(&self) -> bool {
        self.attributes.partition_key.is_some() && self.attributes.row_key.is_some()
    }

    /// The field's name for generated code.
    pub(crate) fn member(&self) -> Ident {
        generated(self.ident)
    }
}

/// The entity to which the entries of an index belong, and their place.
pub(crate) struct IndexOf {
    pub(crate) entity: Ident,
    /// The derives of the entries, beside those that they have anyway.
    pub(crate) derives: Vec<Path>,
    /// True if the entries are in other partitions than their entities, or in another table.
    pub(crate) is_elsewhere: bool,
    pub(crate) is_unique: bool,
    /// True if an entry has every property of its entity.
    pub(crate) is_whole: bool,
    /// The table of the entries, where it is not that of their entities.
    pub(crate) table: Option<IndexTable>,
    /// The fields that are an `Option` in the entity and not in the entry: without a value there is
    /// no entry.
    pub(crate) required: Vec<Ident>,
}

impl IndexOf {
    /// Returns true if an entry is reserved before its entity is written: no transaction makes it
    /// unique.
    pub(crate) const fn is_reserved(&self) -> bool {
        self.is_elsewhere && self.is_unique
    }
}

/// The item that the derive generates for a struct.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Entity,
    /// A struct that is flattened into entities.
    Group,
}

pub(crate) fn parse(input: &DeriveInput, target: Target) -> syn::Result<Input<'_>> {
    let fields = named_fields(&input.data, input.ident.span(), target)?;
    let mut diagnostics = Diagnostics::new();
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = "an entity owns its values: replace the lifetime and the borrowed types by owned types such as `String`";
        diagnostics.error(lifetime.lifetime.span(), message);
    }
    let attributes = StructAttributes::parse(&input.attrs, &mut diagnostics);
    let mut parsed = Vec::new();
    let mut lints = allowed_lints(&input.attrs);
    for field in fields {
        let Some(ident) = &field.ident else { continue };
        lints.extend(allowed_lints(&field.attrs));
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        parsed.push(InputField {
            ident,
            vis: &field.vis,
            ty: &field.ty,
            docs: field.attrs.iter().filter(is_doc).collect(),
            others: others(&field.attrs),
            attributes: FieldAttributes::parse(&field.attrs, &mut diagnostics),
            part_of: None,
        });
    }
    Ok(Input {
        target,
        ident: &input.ident,
        vis: &input.vis,
        generics: &input.generics,
        attributes,
        fields: parsed,
        others: others(&input.attrs),
        index_of: None,
        lints,
        diagnostics,
    })
}

fn named_fields(
    data: &Data,
    span: Span,
    target: Target,
) -> syn::Result<impl Iterator<Item = &syn::Field>> {
    let (span, message) = match data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return Ok(fields.named.iter()),
            Fields::Unnamed(fields) => (
                fields.span(),
                "fields need names to become properties: write `struct Name { field: Type, … }`",
            ),
            Fields::Unit if target == Target::Group => (
                span,
                "a struct without fields cannot be flattened: write `struct Name { field: Type, … }`",
            ),
            Fields::Unit => (
                span,
                "an entity has at least two fields, its keys: write `struct Name { field: Type, … }`",
            ),
        },
        Data::Enum(data) if target == Target::Group => (
            data.enum_token.span(),
            "an enum cannot be flattened: derive `TableProperties` for a struct, or `PropertyValue` for an enum without fields",
        ),
        Data::Union(data) if target == Target::Group => (
            data.union_token.span(),
            "a union cannot be flattened: derive `TableProperties` for a struct",
        ),
        Data::Enum(data) => (
            data.enum_token.span(),
            "expected a struct: an enum is an entity if its variants hold structs that derive `TableEntity`",
        ),
        Data::Union(data) => (
            data.union_token.span(),
            "a union cannot be an entity: derive `TableEntity` for a struct",
        ),
    };
    Err(syn::Error::new(span, message))
}

/// The attributes with a name of one word that this derive does not read itself.
fn others(attributes: &[Attribute]) -> Vec<&Attribute> {
    let is_other = |attribute: &&Attribute| {
        let own = ["doc", "table", "allow", "expect"];
        let mut names = attribute.path().get_ident().into_iter();
        names.any(|name| own.iter().all(|own| name != own))
    };
    attributes.iter().filter(is_other).collect()
}

/// Lints that are expected count as allowed: the generated code need not cause them.
pub(crate) fn allowed_lints(attributes: &[Attribute]) -> Vec<TokenStream> {
    let lists = attributes.iter().filter_map(|attribute| {
        let path = attribute.path();
        match &attribute.meta {
            Meta::List(list) if path.is_ident("allow") || path.is_ident("expect") => Some(list),
            _ => None,
        }
    });
    let allow = |tokens: &TokenStream| quote! { #[allow(#tokens)] };
    lists.map(|list| allow(&list.tokens)).collect()
}
