//! The grammar of `index(ByEmail, row_key = "email_{email}", unique, derive(Serialize))` and of
//! `copy(ManagerOf)`.

use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Path, Token, parenthesized, token};

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
    /// The fields that the entries have beside those of keys; `None` where they have all.
    pub(crate) only: Option<Vec<Ident>>,
    /// `None` where the entries are in the table of their entity.
    pub(crate) table: Option<IndexTable>,
}

/// The name of the table of the entries: that of the table of the entities, between two texts.
#[derive(Clone)]
pub(crate) struct IndexTable {
    pub(crate) before: String,
    pub(crate) after: String,
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
        let (mut partition_key, mut row_key, mut name, mut table) = (None, None, None, None);
        let (mut is_unique, mut derives, mut only) = (None, None, None);
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
                "only" => {
                    if only.replace(fields(&word, input)?).is_some() {
                        return Err(twice(&word));
                    }
                }
                "partition_key" => text(&mut partition_key, &word, input)?,
                "row_key" => text(&mut row_key, &word, input)?,
                "table" => text(&mut table, &word, input)?,
                "unique" => {
                    if is_unique.replace(word.span()).is_some() {
                        return Err(twice(&word));
                    }
                }
                other => {
                    let message = format!(
                        "unknown option `{other}` of an index: the options are `derive`, `name`, `only`, `partition_key`, `row_key`, `table` and `unique`"
                    );
                    return Err(syn::Error::new(word.span(), message));
                }
            }
        }
        let table = table.map(|table| IndexTable::parse(&table, &ident));
        let table = table.transpose()?;
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
            only,
            table,
        })
    }

    /// Returns true if the entries have the property of a field beside their keys.
    pub(crate) fn has(&self, field: &str) -> bool {
        let Some(only) = &self.only else { return true };
        only.iter().any(|only| only.unraw() == field)
    }

    /// Returns true if no transaction writes the entries together with their entity.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        self.partition_key.is_some() || self.table.is_some()
    }
}

impl IndexTable {
    /// The names of both tables lead to each other. One table for the entries of several tables of
    /// entities would mix them.
    fn parse(text: &LitStr, index: &Ident) -> syn::Result<Self> {
        let name = text.value();
        let example = format!("write `table = \"{TABLE}{}\"`", index.unraw());
        let problem = |message: String| Err(syn::Error::new(text.span(), message));
        let Some((before, after)) = name.split_once(TABLE) else {
            return problem(format!(
                "the table of an index has the name of the table of its entities in its own, because each table of entities has one: {example}"
            ));
        };
        let fixed = [before, after].concat();
        if fixed.is_empty() {
            return problem(format!(
                "this is the table of the entities: remove `table`, or {example}"
            ));
        }
        if let Some(character) = fixed.chars().find(|it| !it.is_ascii_alphanumeric()) {
            return problem(format!(
                "the name of a table consists of letters and digits, and {character:?} is neither: {example}"
            ));
        }
        if before.starts_with(|first: char| first.is_ascii_digit()) {
            return problem(format!(
                "the name of a table begins with a letter: {example}"
            ));
        }
        if fixed.len() > FIXED_MAX {
            return problem(format!(
                "the name of a table has at most 63 characters, and at least 3 of them are the name of the table of the entities: shorten the other {} to {FIXED_MAX}",
                fixed.len()
            ));
        }
        let (before, after) = (before.to_owned(), after.to_owned());
        Ok(Self { before, after })
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
    parenthesized!(content in input);
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

/// Parses `(email, name)`.
fn fields(word: &Ident, input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    let parse = || {
        let content;
        parenthesized!(content in input);
        let fields = Punctuated::<Ident, Token![,]>::parse_terminated_with;
        fields(&content, Ident::parse_any)
    };
    let message =
        "`only` takes the names of fields: write `only(email, name)`, or `only()` for keys alone";
    let fields = parse().map_err(|_| syn::Error::new(word.span(), message))?;
    Ok(fields.into_iter().collect())
}

fn twice(word: &Ident) -> syn::Error {
    let message = format!("duplicate option `{word}`: remove one of the two");
    syn::Error::new(word.span(), message)
}

const TABLE: &str = "{table}";
/// The longest name of a table, without the shortest one.
const FIXED_MAX: usize = 60;
const EXAMPLE: &str = r#"#[table(index(ByEmail, row_key = "email_{email}", unique))]"#;
