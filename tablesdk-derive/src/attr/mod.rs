//! The grammar of `#[table(…)]`, with one struct for each position.
//!
//! `unclear` records that an item was not understood, so that its consequences are not reported as
//! further mistakes. Does not know which words fit together: the check does.

mod entity_type;
mod expires;
mod index;
mod item;

use proc_macro2::Span;
use syn::{Attribute, Ident, LitStr, Path};

pub(crate) use self::expires::{Bucket, ExpiresAttribute};
pub(crate) use self::index::{CopyAttribute, IndexAttribute, IndexTable};
pub(crate) use self::item::{Item, Position, crate_path, each, mark, once};

use self::entity_type::EntityTypeAttributes;
use self::item::{Value, path};
use crate::diagnostics::Diagnostics;
use crate::name::RenameRule;

/// The attributes of the struct.
#[derive(Clone, Default)]
pub(crate) struct StructAttributes {
    /// The types that are computed from the entity.
    pub(crate) copies: Vec<CopyAttribute>,
    pub(crate) entity_type: EntityTypeAttributes,
    pub(crate) indexes: Vec<IndexAttribute>,
    pub(crate) keys: Option<Ident>,
    pub(crate) krate: Option<Path>,
    pub(crate) partition_key: Option<LitStr>,
    pub(crate) projection: Option<Span>,
    pub(crate) rename_all: Option<RenameRule>,
    pub(crate) row_key: Option<LitStr>,
    /// True if an item that was refused may have been meant to mark a key.
    pub(crate) unclear: bool,
    pub(crate) wide: Option<Span>,
}

impl StructAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        parsed.unclear = each(attributes, &STRUCT, diagnostics, |word, item| match word {
            "copy" => {
                parsed.copies.push(CopyAttribute::parse(item)?);
                Ok(())
            }
            "crate" => once(&mut parsed.krate, item, crate_path(item)?),
            "index" => {
                parsed.indexes.push(IndexAttribute::parse(item)?);
                Ok(())
            }
            "keys" => once(&mut parsed.keys, item, type_name(item, "EmployeeKeys")?),
            "partition_key" => once(
                &mut parsed.partition_key,
                item,
                template(item, "{department}")?,
            ),
            "projection" => mark(&mut parsed.projection, item),
            "rename_all" => {
                let rule = RenameRule::parse(item.text("PascalCase")?)?;
                once(&mut parsed.rename_all, item, rule)
            }
            "row_key" => once(&mut parsed.row_key, item, template(item, "empid_{id:06}")?),
            "wide" => mark(&mut parsed.wide, item),
            _ => parsed.entity_type.take(word, item),
        });
        parsed
    }
}

/// The attributes of a field.
#[derive(Clone, Default)]
pub(crate) struct FieldAttributes {
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) encrypt: Option<Encrypt>,
    pub(crate) etag: Option<Span>,
    pub(crate) expires: Option<ExpiresAttribute>,
    pub(crate) flatten: Option<Span>,
    pub(crate) json: Option<Span>,
    pub(crate) mixed_integers: Option<Span>,
    pub(crate) partition_key: Option<Span>,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) rest: Option<Span>,
    pub(crate) row_key: Option<Span>,
    pub(crate) skip: Option<Span>,
    pub(crate) store: Option<Span>,
    pub(crate) timestamp: Option<Span>,
    pub(crate) with: Option<(Span, Path)>,
    /// True if an item that was refused may have been meant to mark a key.
    pub(crate) unclear: bool,
}

/// How the value of a field is encrypted.
#[derive(Clone, Copy)]
pub(crate) struct Encrypt {
    pub(crate) span: Span,
    /// True if a second property shows which values are equal.
    pub(crate) has_lookup: bool,
}

/// The value of a field whose property is absent.
#[derive(Clone)]
pub(crate) struct DefaultValue {
    pub(crate) span: Span,
    /// The function that makes it; `None` for `Default::default`.
    pub(crate) function: Option<Path>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        parsed.unclear = each(attributes, &FIELD, diagnostics, |word, item| match word {
            "alias" => {
                parsed.aliases.push(item.text("OldName")?.clone());
                Ok(())
            }
            "default" => once(&mut parsed.default, item, default_value(item)?),
            "encrypt" => once(&mut parsed.encrypt, item, encrypt(item)?),
            "etag" => mark(&mut parsed.etag, item),
            "expires" => once(&mut parsed.expires, item, ExpiresAttribute::parse(item)?),
            "flatten" => mark(&mut parsed.flatten, item),
            "json" => mark(&mut parsed.json, item),
            "mixed_integers" => mark(&mut parsed.mixed_integers, item),
            "partition_key" => key_mark(&mut parsed.partition_key, item),
            "prefix" => once(&mut parsed.prefix, item, item.text("Home_")?.clone()),
            "rename" => once(&mut parsed.rename, item, item.text("HiredOn")?.clone()),
            "rest" => mark(&mut parsed.rest, item),
            "row_key" => key_mark(&mut parsed.row_key, item),
            "skip" => mark(&mut parsed.skip, item),
            "store" => mark(&mut parsed.store, item),
            "timestamp" => mark(&mut parsed.timestamp, item),
            "with" => {
                let module = path(item, "path::to::module", "crate::cents")?;
                once(&mut parsed.with, item, (item.word.span(), module))
            }
            _ => unreachable!("`{word}` is among the words of a field"),
        });
        parsed
    }

    /// The roles of the field with their spans. More than one is a mistake.
    pub(crate) fn roles(&self) -> Vec<(Role, Span)> {
        let with = self.with.as_ref().map(|(span, _)| *span);
        let marks = [
            (Role::PartitionKey, self.partition_key),
            (Role::RowKey, self.row_key),
            (Role::Flatten, self.flatten),
            (Role::Json, self.json),
            (Role::With, with),
            (Role::Rest, self.rest),
            (Role::Skip, self.skip),
            (Role::ETag, self.etag),
            (Role::Timestamp, self.timestamp),
        ];
        marks
            .into_iter()
            .filter_map(|(role, span)| Some((role, span?)))
            .collect()
    }
}

/// The role of a field that is not an ordinary property.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    ETag,
    Flatten,
    Json,
    PartitionKey,
    Rest,
    RowKey,
    Skip,
    Timestamp,
    With,
}

impl Role {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::ETag => "etag",
            Self::Flatten => "flatten",
            Self::Json => "json",
            Self::PartitionKey => "partition_key",
            Self::Rest => "rest",
            Self::RowKey => "row_key",
            Self::Skip => "skip",
            Self::Timestamp => "timestamp",
            Self::With => "with",
        }
    }

    pub(crate) const fn is_key(self) -> bool {
        matches!(self, Self::PartitionKey | Self::RowKey)
    }
}

/// The attributes of an enum or newtype that is the value of a property.
#[derive(Default)]
pub(crate) struct ValueAttributes {
    pub(crate) krate: Option<Path>,
    pub(crate) rename_all: Option<LitStr>,
}

impl ValueAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, &VALUE, diagnostics, |word, item| match word {
            "crate" => once(&mut parsed.krate, item, crate_path(item)?),
            "rename_all" => once(
                &mut parsed.rename_all,
                item,
                item.text("snake_case")?.clone(),
            ),
            _ => unreachable!("`{word}` is among the words of a value"),
        });
        parsed
    }
}

/// The attributes of a variant of an enum that is the value of a property.
#[derive(Default)]
pub(crate) struct VariantAttributes {
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) other: Option<Span>,
    pub(crate) rename: Option<LitStr>,
}

impl VariantAttributes {
    pub(crate) fn parse(attributes: &[Attribute], diagnostics: &mut Diagnostics) -> Self {
        let mut parsed = Self::default();
        each(attributes, &VARIANT, diagnostics, |word, item| match word {
            "alias" => {
                parsed.aliases.push(item.text("old_name")?.clone());
                Ok(())
            }
            "other" => mark(&mut parsed.other, item),
            "rename" => once(&mut parsed.rename, item, item.text("on_leave")?.clone()),
            _ => unreachable!("`{word}` is among the words of a variant"),
        });
        parsed
    }
}

const STRUCT: Position = Position {
    words: &STRUCT_WORDS,
    other: "a field",
    other_words: &FIELD_WORDS,
    third: "",
    third_words: &[],
};

const FIELD: Position = Position {
    words: &FIELD_WORDS,
    other: "the struct",
    other_words: &STRUCT_WORDS,
    third: "",
    third_words: &[],
};

const VALUE: Position = Position {
    words: &["crate", "rename_all"],
    other: "a variant",
    other_words: &VARIANT_WORDS,
    third: "",
    third_words: &[],
};

const VARIANT: Position = Position {
    words: &VARIANT_WORDS,
    other: "the enum",
    other_words: &["crate", "rename_all"],
    third: "",
    third_words: &[],
};

/// `encrypt`, or `encrypt(eq)`.
fn encrypt(item: &Item) -> syn::Result<Encrypt> {
    let span = item.word.span();
    let has_lookup = match &item.value {
        Value::None => Some(false),
        Value::List(list) => (list.to_string() == "eq").then_some(true),
        Value::Text(_) | Value::Other => None,
    };
    let encrypt = has_lookup.map(|has_lookup| Encrypt { span, has_lookup });
    encrypt.ok_or_else(|| {
        item.error(
            "`encrypt` takes nothing or `eq`: write `#[table(encrypt)]`, or `#[table(encrypt(eq))]` to find equal values".to_owned(),
        )
    })
}

/// A word without a value on a field. On the struct, it has a template.
fn key_mark(slot: &mut Option<Span>, item: &Item) -> syn::Result<()> {
    let word = &item.word;
    once(slot, item, word.span())?;
    match &item.value {
        Value::None => Ok(()),
        Value::Text(text) => {
            let text = text.value();
            Err(item.error(format!(
                "a template belongs on the struct: write `#[table({word} = {text:?})]` there, or `#[table({word})]` here"
            )))
        }
        Value::List(_) | Value::Other => {
            Err(item.error(format!("`{word}` takes no value: write `#[table({word})]`")))
        }
    }
}

/// The template of a key.
fn template(item: &Item, example: &str) -> syn::Result<LitStr> {
    match &item.value {
        Value::Text(text) => Ok(text.clone()),
        Value::None | Value::List(_) | Value::Other => {
            let word = &item.word;
            Err(item.error(format!(
                "on the struct `{word}` takes a template: write `#[table({word} = \"{example}\")]`, or mark a field `#[table({word})]`"
            )))
        }
    }
}

/// No value, or the path of a function.
fn default_value(item: &Item) -> syn::Result<DefaultValue> {
    let function = match item.value {
        Value::None => None,
        Value::List(_) | Value::Text(_) | Value::Other => {
            Some(path(item, "path::to::function", "Self::limit")?)
        }
    };
    let span = item.word.span();
    Ok(DefaultValue { span, function })
}

/// The name of a type that the derive generates.
fn type_name(item: &Item, example: &str) -> syn::Result<Ident> {
    let text = item.text(example)?;
    text.parse().map_err(|_| {
        let message = format!("this cannot name a type: write a name such as `{example}`");
        syn::Error::new(text.span(), message)
    })
}

pub(crate) const FIELD_WORDS: [&str; 17] = [
    "alias",
    "default",
    "encrypt",
    "etag",
    "expires",
    "flatten",
    "json",
    "mixed_integers",
    "partition_key",
    "prefix",
    "rename",
    "rest",
    "row_key",
    "skip",
    "store",
    "timestamp",
    "with",
];
pub(crate) const STRUCT_WORDS: [&str; 13] = [
    "alias",
    "copy",
    "crate",
    "entity_type",
    "entity_type_property",
    "from",
    "index",
    "keys",
    "partition_key",
    "projection",
    "rename_all",
    "row_key",
    "wide",
];
const VARIANT_WORDS: [&str; 3] = ["alias", "other", "rename"];
