//! The grammar of `index(ByEmail, row_key = "email_{email}", unique)`.

use syn::parse::{ParseStream, Parser as _};
use syn::{Ident, LitStr, Token};

use super::{Item, Value};

/// An index of the entity.
#[derive(Clone)]
pub(crate) struct IndexAttribute {
    /// The type of the entries, which the derive generates.
    pub(crate) ident: Ident,
    /// `None` where the entries are in the partition of their entity.
    pub(crate) partition_key: Option<LitStr>,
    pub(crate) row_key: LitStr,
    /// Whether no two entities of a partition have an entry with the same row key.
    pub(crate) is_unique: bool,
}

impl IndexAttribute {
    pub(super) fn parse(item: &Item) -> syn::Result<Self> {
        let Value::List(tokens) = &item.value else {
            return Err(item.error(format!(
                "`index` takes a type to generate and the row key of its entries: write `{EXAMPLE}`"
            )));
        };
        let parser = |input: ParseStream<'_>| Self::parse_list(item, input);
        parser.parse2(tokens.clone())
    }

    fn parse_list(item: &Item, input: ParseStream<'_>) -> syn::Result<Self> {
        let ident = match input.parse::<Ident>() {
            Ok(ident) if !input.peek(Token![=]) => ident,
            _ => {
                return Err(item.error(format!(
                    "an index begins with the name of the type of its entries: write `{EXAMPLE}`"
                )));
            }
        };
        let (mut partition_key, mut row_key) = (None, None);
        let mut is_unique = None;
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "partition_key" => template(&mut partition_key, &word, input)?,
                "row_key" => template(&mut row_key, &word, input)?,
                "unique" => {
                    if is_unique.replace(word.span()).is_some() {
                        return Err(twice(&word));
                    }
                }
                other => {
                    let message = format!(
                        "unknown option `{other}` of an index: the options are `partition_key`, `row_key` and `unique`"
                    );
                    return Err(syn::Error::new(word.span(), message));
                }
            }
        }
        if let (Some(_), Some(unique)) = (&partition_key, is_unique) {
            let message = "an index with a `partition_key` cannot be unique, because no transaction spans partitions: remove one of the two";
            return Err(syn::Error::new(unique, message));
        }
        let Some(row_key) = row_key else {
            let message =
                format!("the index `{ident}` needs a row key for its entries: write `{EXAMPLE}`");
            return Err(syn::Error::new(ident.span(), message));
        };
        Ok(Self {
            ident,
            partition_key,
            row_key,
            is_unique: is_unique.is_some(),
        })
    }
}

/// Parses `= "…"`.
fn template(known: &mut Option<LitStr>, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    input.parse::<Token![=]>()?;
    match known.replace(input.parse()?) {
        Some(_) => Err(twice(word)),
        None => Ok(()),
    }
}

fn twice(word: &Ident) -> syn::Error {
    let message = format!("duplicate option `{word}` of an index: remove one of the two");
    syn::Error::new(word.span(), message)
}

const EXAMPLE: &str = r#"#[table(index(ByEmail, row_key = "email_{email}", unique))]"#;
