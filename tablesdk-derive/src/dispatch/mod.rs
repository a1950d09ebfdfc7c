//! An enum of entities: each variant holds a struct. An entity is read as the variant that has its
//! entity type or the prefix of its row key.
//!
//! Grammar and rules are in one file because each is short. The names of the structs are known only
//! at compile time, so generated code checks that they differ.

mod expand;

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, DataEnum, DeriveInput, Fields, Ident, LitStr, Path, Type, Variant};

use crate::attr::{FIELD_WORDS, Item, Position, STRUCT_WORDS, crate_path, each, mark, once};
use crate::check::default_crate;
use crate::diagnostics::{Diagnostics, closest};
use crate::entity_type::check_type_name;
use crate::input::allowed_lints;
use crate::name::VariantRule;
use crate::tokens::generated;

pub(crate) fn derive(input: &DeriveInput, data: &DataEnum) -> TokenStream {
    let mut diagnostics = Diagnostics::new();
    let attributes = EnumAttributes::parse(&input.attrs, &mut diagnostics);
    let rows = check(input, data, &attributes, &mut diagnostics);
    match diagnostics.finish(Some(())) {
        Ok(()) => expand::expand(&rows),
        Err(error) => expand::stub(&rows, &error),
    }
}

/// The attributes of the enum.
#[derive(Default)]
struct EnumAttributes {
    by_row_key: bool,
    by: Option<()>,
    krate: Option<Path>,
    projection: Option<Span>,
}

impl EnumAttributes {
    fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, &ENUM, diagnostics, |word, item| match word {
            "by" => {
                parsed.by_row_key = by_row_key(item)?;
                once(&mut parsed.by, item, ())
            }
            "crate" => once(&mut parsed.krate, item, crate_path(item)?),
            "projection" => mark(&mut parsed.projection, item),
            _ => unreachable!("`{word}` is among the words of an enum"),
        });
        parsed
    }
}

fn by_row_key(item: &Item) -> syn::Result<bool> {
    let text = item.text("row_key")?;
    let value = text.value();
    match value.as_str() {
        "entity_type" => Ok(false),
        "row_key" => Ok(true),
        _ => {
            let meant = closest(&value, &["entity_type", "row_key"]);
            let message = match meant {
                Some(meant) => format!("unknown rule `{value}`, did you mean `{meant}`?"),
                None => format!(
                    "unknown rule `{value}`: variants are distinguished by `entity_type`, the default, or by `row_key`"
                ),
            };
            Err(syn::Error::new(text.span(), message))
        }
    }
}

/// The attributes of a variant.
#[derive(Default)]
struct VariantAttributes {
    aliases: Vec<LitStr>,
    other: Option<Span>,
}

impl VariantAttributes {
    fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, &VARIANT, diagnostics, |word, item| match word {
            "alias" => {
                parsed.aliases.push(item.text("Freelancer")?.clone());
                Ok(())
            }
            "other" => mark(&mut parsed.other, item),
            _ => unreachable!("`{word}` is among the words of a variant"),
        });
        parsed
    }
}

const ENUM: Position = Position {
    words: &["by", "crate", "projection"],
    other: "a variant",
    other_words: &VARIANT_WORDS,
    third: "the struct that a variant holds",
    third_words: &STRUCT_AND_FIELD_WORDS,
};

const VARIANT: Position = Position {
    words: &VARIANT_WORDS,
    other: "the enum",
    other_words: &["by"],
    third: "the struct that the variant holds",
    third_words: &STRUCT_AND_FIELD_WORDS,
};

const VARIANT_WORDS: [&str; 2] = ["alias", "other"];

const STRUCT_AND_FIELD_WORDS: [&str; STRUCT_WORDS.len() + FIELD_WORDS.len()] = {
    let mut words = [""; STRUCT_WORDS.len() + FIELD_WORDS.len()];
    let (on_struct, on_field) = words.split_at_mut(STRUCT_WORDS.len());
    on_struct.copy_from_slice(&STRUCT_WORDS);
    on_field.copy_from_slice(&FIELD_WORDS);
    words
};

/// An enum of entities.
struct Rows<'a> {
    input: &'a DeriveInput,
    ident: Ident,
    krate: Path,
    by_row_key: bool,
    projection: bool,
    /// In the order in which they were written, without the variant that reads all others.
    known: Vec<Known<'a>>,
    other: Option<Known<'a>>,
    /// True if two variants have columns with one name, so that a struct of columns is impossible.
    columns_meet: bool,
    lints: Vec<TokenStream>,
}

/// A variant and the type of its field.
struct Known<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    aliases: Vec<String>,
    docs: Vec<&'a Attribute>,
    lints: Vec<TokenStream>,
}

fn check<'a>(
    input: &'a DeriveInput,
    data: &'a DataEnum,
    attributes: &EnumAttributes,
    diagnostics: &mut Diagnostics,
) -> Rows<'a> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        diagnostics.error(
            lifetime.lifetime.span(),
            "an entity owns its values: replace the lifetime and the borrowed types by owned types such as `String`",
        );
    }
    let mut rows = Rows {
        input,
        ident: generated(&input.ident),
        krate: attributes.krate.clone().unwrap_or_else(default_crate),
        by_row_key: attributes.by_row_key,
        projection: attributes.projection.is_some(),
        known: Vec::new(),
        other: None,
        columns_meet: false,
        lints: allowed_lints(&input.attrs),
    };
    let mut names = HashMap::new();
    let mut columns = HashMap::new();
    let mut types = HashMap::new();
    let mut unclear = false;
    for variant in &data.variants {
        let of_variant = VariantAttributes::parse(&variant.attrs, diagnostics);
        let Some(ty) = held(variant, of_variant.other.is_some(), diagnostics) else {
            unclear = true;
            continue;
        };
        rows.columns_meet |= check_column(&variant.ident, &mut columns, diagnostics);
        let known = Known {
            ident: &variant.ident,
            ty,
            aliases: of_variant.aliases.iter().map(LitStr::value).collect(),
            docs: variant
                .attrs
                .iter()
                .filter(|one| one.path().is_ident("doc"))
                .collect(),
            lints: allowed_lints(&variant.attrs),
        };
        if let Some(span) = of_variant.other {
            check_other(&of_variant, diagnostics);
            if let Some(first) = &rows.other {
                let first = first.ident.unraw();
                diagnostics.error(
                    span,
                    format!(
                        "`{first}` already reads all other entities: remove one of the two `other`"
                    ),
                );
            } else {
                rows.other = Some(known);
            }
            continue;
        }
        check_aliases(&of_variant, attributes, variant, &mut names, diagnostics);
        let text = ty.to_token_stream().to_string();
        if let Some(first) = types.insert(text, &variant.ident) {
            let (first, ident) = (first.unraw(), variant.ident.unraw());
            diagnostics.error(
                ty.span(),
                format!("`{first}` and `{ident}` hold the same struct, so an entity could be either: use another struct in one of them"),
            );
            // The check at compile time would report the same mistake.
            continue;
        }
        rows.known.push(known);
    }
    if rows.known.is_empty() && !unclear {
        let ident = &input.ident;
        let message = if data.variants.is_empty() {
            format!(
                "`{ident}` has no variants: add one for each type of entity, such as `Employee(Employee)`"
            )
        } else {
            format!(
                "`{ident}` has only an `other` variant: add a variant for each type of entity, such as `Employee(Employee)`, or read `tablesdk::DynamicEntity` itself"
            )
        };
        diagnostics.error(ident.span(), message);
    }
    rows
}

/// The one type that a variant holds.
fn held<'a>(
    variant: &'a Variant,
    is_other: bool,
    diagnostics: &mut Diagnostics,
) -> Option<&'a Type> {
    let ident = variant.ident.unraw();
    let example = if is_other {
        "tablesdk::DynamicEntity".to_owned()
    } else {
        ident.to_string()
    };
    let (span, message) = match &variant.fields {
        Fields::Unnamed(fields) => {
            let mut all = fields.unnamed.iter();
            match (all.next(), all.next()) {
                (Some(one), None) => {
                    for attribute in &one.attrs {
                        if attribute.path().is_ident("table") {
                            diagnostics.error(
                                attribute.span(),
                                format!("the field of `{ident}` cannot have attributes: put them on the variant, or on the struct"),
                            );
                        }
                    }
                    return Some(&one.ty);
                }
                (None, _) => (
                    variant.ident.span(),
                    format!("`{ident}` holds nothing: write `{ident}({example})`"),
                ),
                (Some(_), Some(second)) => (
                    second.span(),
                    format!(
                        "a variant holds one struct: remove the others from `{ident}`, as in `{ident}({example})`"
                    ),
                ),
            }
        }
        Fields::Named(fields) => (
            fields.span(),
            format!("a variant holds a struct, not fields of its own: write `{ident}({example})`"),
        ),
        Fields::Unit => (
            variant.ident.span(),
            format!(
                "`{ident}` holds nothing: write `{ident}({example})`, with a struct that derives `TableEntity`"
            ),
        ),
    };
    diagnostics.error(span, message);
    None
}

fn check_other(attributes: &VariantAttributes, diagnostics: &mut Diagnostics) {
    for alias in &attributes.aliases {
        diagnostics.error(
            alias.span(),
            "the variant for all other entities has no entity type: remove the alias",
        );
    }
}

fn check_aliases(
    attributes: &VariantAttributes,
    of_enum: &EnumAttributes,
    variant: &Variant,
    names: &mut HashMap<String, Ident>,
    diagnostics: &mut Diagnostics,
) {
    for alias in &attributes.aliases {
        if of_enum.by_row_key {
            diagnostics.error(
                alias.span(),
                "an alias is an entity type, and this enum distinguishes its variants by row keys: remove the alias, or the `by`",
            );
            continue;
        }
        check_type_name(alias, "an entity type", "Freelancer", diagnostics);
        let ident = &variant.ident;
        if let Some(first) = names.insert(alias.value(), ident.unraw()) {
            diagnostics.error(
                alias.span(),
                format!(
                    "`{first}` already has the alias {:?}: remove one of the two",
                    alias.value()
                ),
            );
        }
    }
}

/// Refuses a variant whose columns have the name of others. Returns whether it did.
fn check_column(
    ident: &Ident,
    columns: &mut HashMap<String, Ident>,
    diagnostics: &mut Diagnostics,
) -> bool {
    let column = column_text(ident);
    let name = ident.unraw();
    let is_shared = SHARED.contains(&column.as_str());
    let owner = columns.insert(column.clone(), name.clone());
    if is_shared {
        diagnostics.error(
            ident.span(),
            format!("the columns of `{name}` would be named `{column}`, like the column of all entities: rename the variant"),
        );
    } else if let Some(first) = &owner {
        diagnostics.error(
            ident.span(),
            format!("the columns of `{first}` and `{name}` would both be named `{column}`: rename one of the variants"),
        );
    }
    is_shared || owner.is_some()
}

fn column_text(variant: &Ident) -> String {
    VariantRule::Snake.apply(&variant.unraw().to_string())
}

/// The columns that all entities have.
const SHARED: [&str; 3] = ["partition_key", "row_key", "timestamp"];
