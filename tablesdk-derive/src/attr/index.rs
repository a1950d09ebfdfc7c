//! The grammar of `index(ByEmail, row_key = "email_{email}", unique, derive(Serialize))` and of
//! `copy(ManagerOf)`.

use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Ident, LitStr, Path, Token, token};

use super::item::{Item, Value};

/// An index of the entity.
#[derive(Clone)]
pub(crate) struct IndexAttribute {
    /// The type of the entries, which the derive generates.
    pub(crate) ident: Ident,
    /// The derives of that type, beside those that it has anyway.
    pub(crate) derives: Vec<Path>,
    /// `None` where the entries are in the partition of their entity.
    pub(crate) partition_key: Option<LitStr>,
    pub(crate) row_key: LitStr,
    /// True if no two entities of a partition may have an entry with the same row key.
    pub(crate) is_unique: bool,
    /// The name under which the entries are stored, where it is not the name of the type.
    pub(crate) name: Option<LitStr>,
}

/// A type that is computed from the entity.
#[derive(Clone)]
pub(crate) struct CopyAttribute {
    pub(crate) path: Path,
    /// The name under which the copies are stored, where it is not made of the names of both
    /// structs.
    pub(crate) name: Option<LitStr>,
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
        let (mut partition_key, mut row_key, mut name) = (None, None, None);
        let (mut is_unique, mut derives) = (None, None);
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "derive" => {
                    if derives.replace(paths(&word, input)?).is_some() {
                        return Err(twice(&word));
                    }
                }
                "name" => text(&mut name, &word, input)?,
                "partition_key" => text(&mut partition_key, &word, input)?,
                "row_key" => text(&mut row_key, &word, input)?,
                "unique" => {
                    if is_unique.replace(word.span()).is_some() {
                        return Err(twice(&word));
                    }
                }
                other => {
                    let message = format!(
                        "unknown option `{other}` of an index: the options are `derive`, `name`, `partition_key`, `row_key` and `unique`"
                    );
                    return Err(syn::Error::new(word.span(), message));
                }
            }
        }
        let Some(row_key) = row_key else {
            let message =
                format!("the index `{ident}` needs a row key for its entries: write `{EXAMPLE}`");
            return Err(syn::Error::new(ident.span(), message));
        };
        Ok(Self {
            ident,
            derives: derives.unwrap_or_default(),
            partition_key,
            row_key,
            is_unique: is_unique.is_some(),
            name,
        })
    }
}

impl CopyAttribute {
    pub(super) fn parse(item: &Item) -> syn::Result<Self> {
        let parser = |input: ParseStream<'_>| {
            let (path, mut name) = (input.parse()?, None);
            while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
                let word: Ident = input.parse()?;
                if word != "name" {
                    return Err(input.error("expected `name`"));
                }
                text(&mut name, &word, input)?;
            }
            Ok(Self { path, name })
        };
        let parsed = match &item.value {
            Value::List(tokens) => parser.parse2(tokens.clone()).ok(),
            Value::None | Value::Text(_) | Value::Other => None,
        };
        parsed.ok_or_else(|| {
            item.error(
                "`copy` takes one type that implements `CopyOf`, and may take a name: write `#[table(copy(ManagerOf))]` or `#[table(copy(ManagerOf, name = \"Employee.ManagerOf\"))]`"
                    .to_owned(),
            )
        })
    }

    /// The name under which the copies of that entity are stored.
    pub(crate) fn stored_name(&self, entity: &Ident) -> String {
        let last = self.path.segments.last();
        let copy = last.map_or_else(String::new, |last| last.ident.unraw().to_string());
        let given = self.name.as_ref().map(LitStr::value);
        given.unwrap_or_else(|| format!("{}.{copy}", entity.unraw()))
    }
}

/// Parses `= "…"`.
fn text(known: &mut Option<LitStr>, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    input.parse::<Token![=]>()?;
    match known.replace(input.parse()?) {
        Some(_) => Err(twice(word)),
        None => Ok(()),
    }
}

/// Parses `(Serialize, serde::Deserialize)`.
fn paths(word: &Ident, input: ParseStream<'_>) -> syn::Result<Vec<Path>> {
    let wrong = || {
        let message = "`derive` takes the derives of the entries: write `derive(PartialEq, serde::Serialize)`";
        syn::Error::new(word.span(), message)
    };
    if !input.peek(token::Paren) {
        return Err(wrong());
    }
    let content;
    syn::parenthesized!(content in input);
    let paths = content.parse_terminated(Path::parse_mod_style, Token![,]);
    let paths: Vec<_> = paths.map_err(|_| wrong())?.into_iter().collect();
    if paths.is_empty() {
        return Err(wrong());
    }
    for path in &paths {
        let last = path.segments.last().map(|last| last.ident.to_string());
        if let Some(last @ ("TableEntity" | "TableProperties")) = last.as_deref() {
            let message = format!(
                "the entries of an index are read as entities without a derive: remove `{last}`"
            );
            return Err(syn::Error::new_spanned(path, message));
        }
    }
    Ok(paths)
}

fn twice(word: &Ident) -> syn::Error {
    let message = format!("duplicate option `{word}`: remove one of the two");
    syn::Error::new(word.span(), message)
}

const EXAMPLE: &str = r#"#[table(index(ByEmail, row_key = "email_{email}", unique))]"#;
