//! The grammar of `#[table(…)]`, one struct for each position it may stand in.
//!
//! A mistake in one item does not hide the others. What was not understood is remembered, so that nothing that follows from
//! it is reported as a second mistake.

use proc_macro2::{Span, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Attribute, Ident, LitStr, Path, Token};

use crate::diagnostics::{Diagnostics, closest};
use crate::name::RenameRule;

/// What stands on the struct.
#[derive(Default)]
pub(crate) struct StructAttributes {
    pub(crate) krate: Option<Path>,
    pub(crate) rename_all: Option<RenameRule>,
    /// Whether something that was refused may have been meant to mark a key.
    pub(crate) unclear: bool,
}

impl StructAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        parsed.unclear = each(attributes, &STRUCT, diagnostics, |word, item| match word {
            "crate" => once(&mut parsed.krate, item, path(item)?),
            "rename_all" => {
                let rule = RenameRule::parse(item.text("PascalCase")?)?;
                once(&mut parsed.rename_all, item, rule)
            }
            _ => unreachable!("`{word}` is among the words of a struct"),
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
    /// Whether something that was refused may have been meant to mark a key.
    pub(crate) unclear: bool,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        parsed.unclear = each(attributes, &FIELD, diagnostics, |word, item| match word {
            "partition_key" => mark(&mut parsed.partition_key, item),
            "rename" => once(&mut parsed.rename, item, item.text("HiredOn")?.clone()),
            "row_key" => mark(&mut parsed.row_key, item),
            _ => unreachable!("`{word}` is among the words of a field"),
        });
        parsed
    }
}

/// Where an attribute may stand, and the words known there.
struct Position {
    words: &'static [&'static str],
    /// What to call the other place, and the words known there.
    other: &'static str,
    other_words: &'static [&'static str],
}

const STRUCT: Position = Position {
    words: &STRUCT_WORDS,
    other: "a field",
    other_words: &FIELD_WORDS,
};

const FIELD: Position = Position {
    words: &FIELD_WORDS,
    other: "the struct",
    other_words: &STRUCT_WORDS,
};

/// Calls `take` for each item with a word that is known here. Says whether something was refused that may have been meant
/// to mark a key.
fn each(
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
                diagnostics.push(error);
            }
        }
    }
    unclear
}

fn items(attribute: &Attribute, position: &Position) -> syn::Result<Vec<Item>> {
    attribute
        .meta
        .require_list()?
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

impl Position {
    /// The word that one that is not known here was meant to be.
    fn meant(&self, word: &str) -> Option<&'static str> {
        closest(word, &[self.words, self.other_words].concat())
    }

    fn refusal(&self, word: &str, meant: Option<&str>) -> String {
        let other = self.other;
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
                format!("unknown attribute `{word}`: known here are `{words}`")
            }
        }
    }
}

/// One item between the commas: a word, alone or with something behind it.
struct Item {
    word: Ident,
    value: Value,
}

enum Value {
    None,
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
        }
        // Whatever else stands here is left behind, so that the next item can be read.
        while !input.is_empty() && !input.peek(Token![,]) {
            input.parse::<TokenTree>()?;
            value = Value::Other;
        }
        Ok(Self { word, value })
    }

    /// The text behind the equals sign.
    fn text(&self, example: &str) -> syn::Result<&LitStr> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::None | Value::Other => {
                let word = &self.word;
                Err(self.error(format!(
                    "`{word}` takes a text: write `#[table({word} = \"{example}\")]`"
                )))
            }
        }
    }

    fn error(&self, message: String) -> syn::Error {
        syn::Error::new(self.word.span(), message)
    }
}

/// A word that stands alone.
fn mark(slot: &mut Option<Span>, item: &Item) -> syn::Result<()> {
    let word = &item.word;
    once(slot, item, word.span())?;
    match item.value {
        Value::None => Ok(()),
        Value::Text(_) | Value::Other => {
            Err(item.error(format!("`{word}` stands alone: write `#[table({word})]`")))
        }
    }
}

fn path(item: &Item) -> syn::Result<Path> {
    let text = item.text("path::to::tablesdk")?;
    text.parse_with(Path::parse_mod_style).map_err(|_| {
        let message = "this is no path: write it as in a `use`, such as `crate::tablesdk`";
        syn::Error::new(text.span(), message)
    })
}

fn once<T>(slot: &mut Option<T>, item: &Item, value: T) -> syn::Result<()> {
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

const FIELD_WORDS: [&str; 3] = ["partition_key", "rename", "row_key"];
const STRUCT_WORDS: [&str; 2] = ["crate", "rename_all"];
