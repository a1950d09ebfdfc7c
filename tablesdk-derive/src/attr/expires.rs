//! The grammar of `expires(bucket = "1h", name = "Session")`.

use proc_macro2::Span;
use syn::parse::{ParseStream, Parser as _};
use syn::{Ident, LitStr, Token};

use super::item::{Item, Value};

/// A field with the instant at which the entity expires.
#[derive(Clone)]
pub(crate) struct ExpiresAttribute {
    pub(crate) span: Span,
    pub(crate) bucket: Option<Bucket>,
}

/// How expired entities are found by an index.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) seconds: i64,
    /// The name under which the entries are stored, where it is not the name of the struct.
    pub(crate) name: Option<LitStr>,
}

impl ExpiresAttribute {
    pub(super) fn parse(item: &Item) -> syn::Result<Self> {
        let bucket = match &item.value {
            Value::None => None,
            Value::List(tokens) => {
                let parser = |input: ParseStream<'_>| Bucket::parse(item, input);
                Some(parser.parse2(tokens.clone())?)
            }
            Value::Text(_) | Value::Other => return Err(form(item)),
        };
        let span = item.word.span();
        Ok(Self { span, bucket })
    }
}

impl Bucket {
    fn parse(item: &Item, input: ParseStream<'_>) -> syn::Result<Self> {
        let (mut bucket, mut name) = (None, None);
        while !input.is_empty() {
            let word: Ident = input.parse().map_err(|_| form(item))?;
            let slot = match word.to_string().as_str() {
                "bucket" => &mut bucket,
                "name" => &mut name,
                _ => return Err(form(item)),
            };
            input.parse::<Token![=]>().map_err(|_| form(item))?;
            let text: LitStr = input.parse().map_err(|_| form(item))?;
            if slot.replace(text).is_some() {
                let message =
                    format!("duplicate option `{word}` of `expires`: remove one of the two");
                return Err(syn::Error::new(word.span(), message));
            }
            input.parse::<Option<Token![,]>>()?;
        }
        let bucket = bucket.ok_or_else(|| form(item))?;
        let seconds = seconds_of(&bucket.value()).ok_or_else(|| {
            let message = "a bucket is a number of minutes, hours or days, at most 365 days: write one such as `15m`, `1h` or `1d`";
            syn::Error::new(bucket.span(), message)
        })?;
        if let Some(name) = &name
            && !is_name(&name.value())
        {
            let message = "a name that is a part of keys has at most 64 letters, digits and `_`: choose another";
            return Err(syn::Error::new(name.span(), message));
        }
        Ok(Self { seconds, name })
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |character: char| character.is_alphanumeric() || character == '_';
    (1..=64).contains(&name.chars().count()) && name.chars().all(is_allowed)
}

fn seconds_of(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        'm' => 60,
        'h' => 60 * 60,
        'd' => DAY,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = number.parse().ok().filter(|_| is_number)?;
    let seconds = number.checked_mul(seconds)?;
    (1..=365 * DAY).contains(&seconds).then_some(seconds)
}

fn form(item: &Item) -> syn::Error {
    item.error(
        "`expires` takes nothing, or the size of its buckets and a name: write `#[table(expires)]` or `#[table(expires(bucket = \"1h\"))]`"
            .to_owned(),
    )
}

const DAY: i64 = 24 * 60 * 60;
