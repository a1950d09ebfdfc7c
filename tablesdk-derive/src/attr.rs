//! The grammar of `#[table(…)]`, one struct for each position it may stand in.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, LitStr, Path, Token, parenthesized, token};

use crate::diagnostics::{Diagnostics, did_you_mean};
use crate::name::RenameRule;

/// What stands on the struct.
#[derive(Default)]
pub(crate) struct StructAttributes {
    pub(crate) krate: Option<Path>,
    pub(crate) rename_all: Option<RenameRule>,
}

impl StructAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, diagnostics, |word, meta| match word {
            "crate" => once(&mut parsed.krate, meta, text(meta)?.parse()?),
            "rename_all" => once(
                &mut parsed.rename_all,
                meta,
                RenameRule::parse(&text(meta)?)?,
            ),
            _ => Err(unknown(
                word,
                meta,
                &["crate", "rename_all"],
                &FIELD_WORDS,
                "a field",
            )),
        });
        parsed
    }
}

/// What stands on a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) partition_key: Option<Span>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) row_key: Option<Span>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, diagnostics, |word, meta| {
            let span = meta.path.span();
            match word {
                "partition_key" => once(&mut parsed.partition_key, meta, span),
                "rename" => once(&mut parsed.rename, meta, text(meta)?),
                "row_key" => once(&mut parsed.row_key, meta, span),
                _ => Err(unknown(
                    word,
                    meta,
                    &FIELD_WORDS,
                    &["crate", "rename_all"],
                    "the struct",
                )),
            }
        });
        parsed
    }
}

/// Calls `take` for each item of each `#[table(…)]`. A mistake in one does not hide the next.
fn each(
    attributes: &[Attribute],
    diagnostics: &mut Diagnostics,
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<()>,
) {
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("table"))
    {
        let parsed = attribute.parse_nested_meta(|meta| {
            let word = meta
                .path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            if let Err(error) = take(&word, &meta) {
                diagnostics.push(error);
                skip_value(&meta)?;
            }
            Ok(())
        });
        if let Err(error) = parsed {
            diagnostics.push(error);
        }
    }
}

/// Leaves an item's value behind, whatever it is, so that the next item can be read.
fn skip_value(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(token::Paren) {
        let content;
        parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}

fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

fn once<T>(slot: &mut Option<T>, meta: &ParseNestedMeta<'_>, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("this stands here twice; remove one")),
    }
}

fn unknown(
    word: &str,
    meta: &ParseNestedMeta<'_>,
    known: &[&str],
    elsewhere: &[&str],
    place: &str,
) -> syn::Error {
    if elsewhere.contains(&word) {
        return meta.error(format!("`{word}` belongs on {place}"));
    }
    let list = known.join("`, `");
    let suggestion = did_you_mean(word, known);
    meta.error(format!(
        "unknown attribute `{word}`{suggestion} Known here are `{list}`"
    ))
}

const FIELD_WORDS: [&str; 3] = ["partition_key", "rename", "row_key"];
