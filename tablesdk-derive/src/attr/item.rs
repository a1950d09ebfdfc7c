//! The grammar that all positions share: items between commas, each a word, alone or with a value.
//!
//! A mistake in one item does not hide the others. Knows the words of a position as a list, and not
//! what any of them means.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Attribute, Ident, LitStr, Path, Token};

use crate::diagnostics::{Diagnostics, closest};

/// A position of attributes, and the words known there.
pub(crate) struct Position {
    pub(crate) words: &'static [&'static str],
    /// The other position, and the words known there.
    pub(crate) other: &'static str,
    pub(crate) other_words: &'static [&'static str],
    /// A third position, if there is one.
    pub(crate) third: &'static str,
    pub(crate) third_words: &'static [&'static str],
}

impl Position {
    /// The known word that an unknown word is probably a misspelling of.
    fn meant(&self, word: &str) -> Option<&'static str> {
        closest(
            word,
            &[self.words, self.other_words, self.third_words].concat(),
        )
    }

    fn refusal(&self, word: &str, meant: Option<&str>) -> String {
        let is_third =
            |meant| !self.other_words.contains(&meant) && self.third_words.contains(&meant);
        let other = match meant {
            Some(meant) if is_third(meant) => self.third,
            _ => self.other,
        };
        match meant {
            Some(meant) if meant == word => format!("`{word}` belongs on {other}: move it there"),
            Some(meant) if self.words.contains(&meant) => {
                format!("unknown attribute `{word}`, did you mean `{meant}`?")
            }
            Some(meant) => format!(
                "unknown attribute `{word}`, did you mean `{meant}`, which belongs on {other}?"
            ),
            None => {
                let words = self.words.join("`, `");
                format!("unknown attribute `{word}`: the attributes here are `{words}`")
            }
        }
    }
}

/// Calls `take` for each item with a word that is known here. Returns whether an item was refused
/// that may have been meant to mark a key.
pub(crate) fn each(
    attributes: &[Attribute],
    position: &Position,
    diagnostics: &mut Diagnostics,
    mut take: impl FnMut(&str, &Item) -> syn::Result<()>,
) -> bool {
    let mut unclear = false;
    for attribute in attributes {
        if !attribute.path().is_ident("table") {
            continue;
        }
        let items = items(attribute, position).unwrap_or_else(|error| {
            diagnostics.push(error);
            unclear = true;
            Vec::new()
        });
        for item in &items {
            let word = item.word.to_string();
            let taken = if position.words.contains(&&*word) {
                take(&word, item)
            } else {
                let meant = position.meant(&word);
                unclear |= meant.is_none_or(|meant| meant.ends_with("_key"));
                Err(item.error(position.refusal(&word, meant)))
            };
            if let Err(error) = taken {
                unclear |= word.ends_with("_key");
                diagnostics.push(error);
            }
        }
    }
    unclear
}

fn items(attribute: &Attribute, position: &Position) -> syn::Result<Vec<Item>> {
    attribute
        .meta
        .require_list()
        .map_err(|error| {
            syn::Error::new(
                error.span(),
                "attributes are in parentheses: write `#[table(word)]` or `#[table(word = \"string\")]`",
            )
        })?
        .parse_args_with(|input: ParseStream<'_>| {
            let mut items = Vec::new();
            while !input.is_empty() {
                items.push(Item::parse(input, position)?);
                // An item ends at a comma or at the end.
                input.parse::<Option<Token![,]>>()?;
            }
            Ok(items)
        })
}

/// One item between the commas: a word, alone or with a value.
pub(crate) struct Item {
    pub(crate) word: Ident,
    pub(super) value: Value,
}

pub(super) enum Value {
    None,
    /// `(…)`
    List(TokenStream),
    /// `= "text"`
    Text(LitStr),
    /// Anything else. No word takes it.
    Other,
}

impl Item {
    fn parse(input: ParseStream<'_>, position: &Position) -> syn::Result<Self> {
        // `crate` is a keyword, hence any identifier.
        let Ok(word) = input.call(Ident::parse_any) else {
            let words = position.words.join("`, `");
            return Err(input.error(format!("expected one of `{words}`")));
        };
        let mut value = Value::None;
        if input.peek(Token![=]) && input.peek2(LitStr) {
            input.parse::<Token![=]>()?;
            value = Value::Text(input.parse()?);
        } else if input.peek(syn::token::Paren) {
            let content;
            syn::parenthesized!(content in input);
            value = Value::List(content.parse()?);
        }
        // Skips any other tokens, so that the next item can be read.
        while !input.is_empty() && !input.peek(Token![,]) {
            input.parse::<TokenTree>()?;
            value = Value::Other;
        }
        Ok(Self { word, value })
    }

    /// The string after the equals sign.
    pub(crate) fn text(&self, example: &str) -> syn::Result<&LitStr> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::None | Value::List(_) | Value::Other => {
                let word = &self.word;
                Err(self.error(format!(
                    "`{word}` takes a string: write `#[table({word} = \"{example}\")]`"
                )))
            }
        }
    }

    pub(crate) fn error(&self, message: String) -> syn::Error {
        syn::Error::new(self.word.span(), message)
    }
}

/// A word without a value.
pub(crate) fn mark(slot: &mut Option<Span>, item: &Item) -> syn::Result<()> {
    let word = &item.word;
    once(slot, item, word.span())?;
    match item.value {
        Value::None => Ok(()),
        Value::List(_) | Value::Text(_) | Value::Other => {
            Err(item.error(format!("`{word}` takes no value: write `#[table({word})]`")))
        }
    }
}

pub(crate) fn once<T>(slot: &mut Option<T>, item: &Item, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => {
            let word = &item.word;
            Err(item.error(format!(
                "duplicate attribute `{word}`: remove one of the two"
            )))
        }
    }
}

pub(crate) fn path(item: &Item, example: &str, good: &str) -> syn::Result<Path> {
    let text = item.text(example)?;
    text.parse_with(Path::parse_mod_style).map_err(|_| {
        let message = format!("this is not a path: write it as in a `use`, such as `{good}`");
        syn::Error::new(text.span(), message)
    })
}

pub(crate) fn crate_path(item: &Item) -> syn::Result<Path> {
    path(item, "path::to::tablesdk", "crate::tablesdk")
}
