//! Names of Rust for properties, kinds and tables: identifiers in ASCII, each once, and the
//! attributes for what they change.

use std::collections::HashSet;
use std::str::FromStr;

use deunicode::deunicode_with_tofu;
use heck::{ToSnakeCase as _, ToUpperCamelCase as _};

/// The name of a struct or an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName(String);

impl FromStr for TypeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_camel = text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric())
            && text.len() <= TYPE_MAX;
        if !is_camel {
            return Err(format!(
                "the name of a struct has at most {TYPE_MAX} letters and digits of ASCII and begins with a capital letter, such as Employee"
            ));
        }
        if RESERVED_TYPES.contains(&text) {
            return Err(format!("{text} is the name of another type in the module"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TypeName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a struct for the entities of a table: `Employee` for `Employees`, and `Login` for
/// `Logins20240315`.
pub(super) fn of_table(table: &str) -> TypeName {
    let without_digits = table.trim_end_matches(|c: char| c.is_ascii_digit());
    TypeName(type_name(&singular(without_digits)))
}

/// The singular of an English word. Most tables have English names.
fn singular(plural: &str) -> String {
    if let Some(stem) = plural.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let is_plural = plural.ends_with('s')
        && !["ss", "us", "is"]
            .iter()
            .any(|ending| plural.ends_with(ending));
    let singular = plural.strip_suffix('s').filter(|_| is_plural);
    singular.unwrap_or(plural).to_owned()
}

/// The name of a type, which may not be free.
pub(super) fn type_name(text: &str) -> String {
    let mut name = ascii(text).to_upper_camel_case();
    name.truncate(TYPE_MAX);
    // Only words of several letters have small ones.
    if name.len() > 2 && name.chars().all(|c| c.is_ascii_uppercase()) {
        name = capitalized(&name.to_ascii_lowercase());
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "Kind");
    }
    name
}

/// The name of a field, which may not be free: in snake case, without `r#`.
pub(super) fn field_name(text: &str) -> String {
    let mut name = ascii(text).to_snake_case();
    name.truncate(FIELD_MAX);
    let name = name.trim_end_matches('_');
    match name.chars().next() {
        None => "property".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name.to_owned(),
    }
}

/// Words of letters and digits of ASCII.
fn ascii(text: &str) -> String {
    let text = deunicode_with_tofu(text, "");
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(word).collect()
}

/// The identifier of a field.
pub(super) fn identifier(field: &str) -> String {
    if KEYWORDS.contains(&field) {
        format!("r#{field}")
    } else {
        field.to_owned()
    }
}

/// The names of the fields of a struct.
#[derive(Debug, Default)]
pub(super) struct FieldNames(HashSet<String>);

impl FieldNames {
    /// This name if it is free, else one with a number.
    pub(super) fn take(&mut self, name: &str) -> String {
        let free = (1_usize..).map(|number| numbered(name, number));
        let mut free = free.filter(|name| !NO_IDENTIFIERS.contains(&name.as_str()));
        let free = free.find(|name| !self.0.contains(name));
        let name = free.unwrap_or_default();
        self.0.insert(name.clone());
        name
    }
}

fn numbered(name: &str, number: usize) -> String {
    match number {
        1 => name.to_owned(),
        _ => format!("{name}_{number}"),
    }
}

/// The names of the types of a module.
#[derive(Debug, Default)]
pub(super) struct TypeNames(HashSet<String>);

impl TypeNames {
    /// This name if it and those that the derive makes of it are free, else one with a number.
    pub(super) fn take(&mut self, name: &str) -> String {
        let numbers = (1_usize..).map(|number| match number {
            1 => name.to_owned(),
            _ => format!("{name}{number}"),
        });
        let mut free = numbers.filter(|name| !RESERVED_TYPES.contains(&name.as_str()));
        let free = free.find(|name| generated(name).all(|name| !self.0.contains(&name)));
        let name = free.unwrap_or_default();
        self.0.extend(generated(&name));
        name
    }
}

/// The types of a struct. Those that differ in their case alone would have columns of one name.
fn generated(name: &str) -> impl Iterator<Item = String> {
    let suffixes = ["", "Columns", "Rows"].into_iter();
    suffixes.map(move |suffix| format!("{name}{suffix}").to_ascii_lowercase())
}

/// How the derive makes the names of properties from those of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Snake,
    Pascal,
    Camel,
    Upper,
}

impl Rule {
    const ALL: [Self; 4] = [Self::Snake, Self::Pascal, Self::Camel, Self::Upper];

    /// The rule under which the fewest fields need an attribute of their own. Pairs are a field and
    /// its property.
    pub(super) fn of(pairs: &[(&str, &str)]) -> Self {
        let renamed = |rule: &Self| {
            let differs = |(field, property): &&(&str, &str)| rule.apply(field) != *property;
            pairs.iter().filter(differs).count()
        };
        let rules = Self::ALL.into_iter();
        rules.min_by_key(renamed).unwrap_or(Self::Snake)
    }

    /// As the derive writes it; the rule that changes nothing is not written.
    pub(super) const fn word(self) -> Option<&'static str> {
        match self {
            Self::Snake => None,
            Self::Pascal => Some("PascalCase"),
            Self::Camel => Some("camelCase"),
            Self::Upper => Some("SCREAMING_SNAKE_CASE"),
        }
    }

    /// The rules of serde, for names in ASCII.
    pub(super) fn apply(self, field: &str) -> String {
        match self {
            Self::Snake => field.to_owned(),
            Self::Pascal => field.split('_').map(capitalized).collect(),
            Self::Camel => {
                let pascal = Self::Pascal.apply(field);
                let mut letters = pascal.chars();
                let first = letters.next().map(|first| first.to_ascii_lowercase());
                first.into_iter().chain(letters).collect()
            }
            Self::Upper => field.to_ascii_uppercase(),
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Longer names are cut: the source keeps to its width.
const FIELD_MAX: usize = 40;
const TYPE_MAX: usize = 40;

/// Types that the module uses, those of its enum, and a keyword.
const RESERVED_TYPES: [&str; 26] = [
    "Box",
    "Clone",
    "Debug",
    "DynamicEntity",
    "EdmType",
    "Err",
    "Guid",
    "None",
    "Number",
    "Ok",
    "Option",
    "Other",
    "PartitionKey",
    "Properties",
    "PropertyValue",
    "Result",
    "RowKey",
    "Self",
    "Some",
    "String",
    "TableEntity",
    "Timestamp",
    "Value",
    "ValueError",
    "ValueRef",
    "Vec",
];

/// Keywords that no field can be named after, not even with `r#`.
const NO_IDENTIFIERS: [&str; 3] = ["crate", "self", "super"];

/// The other keywords of all editions.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_an_ascii_name() {
        for (property, field) in [
            ("FirstName", "first_name"),
            ("HTTPStatus", "http_status"),
            ("ETag", "e_tag"),
            ("_1st", "_1st"),
            ("Größe", "grosse"),
            ("type", "type"),
            ("D001", "d001"),
            ("___", "property"),
            ("\u{301}", "property"),
        ] {
            assert_eq!(field_name(property), field);
        }
        assert_eq!(field_name(&"Äb".repeat(100)).len(), FIELD_MAX);
        assert_eq!(identifier("type"), "r#type");
    }

    #[test]
    fn a_name_is_given_once() {
        let mut fields = FieldNames::default();
        let names = ["a", "a", "a_2", "self"].map(|name| fields.take(name));
        assert_eq!(names, ["a", "a_2", "a_2_2", "self_2"]);
        let mut types = TypeNames::default();
        let names = ["A", "AColumns", "a", "Option"].map(|name| types.take(name));
        assert_eq!(names, ["A", "AColumns2", "a2", "Option2"]);
    }

    #[test]
    fn a_struct_is_named_after_its_table() {
        for (table, name) in [
            ("Employees", "Employee"),
            ("Logins20240315", "Login"),
            ("companies", "Company"),
            ("status", "Status"),
            ("Address", "Address"),
            ("x1", "X"),
        ] {
            assert_eq!(of_table(table), TypeName(name.to_owned()));
        }
        for text in ["employee", "Größe", "", "Option", "A B", "1A"] {
            assert!(text.parse::<TypeName>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_rule_with_the_fewest_renames_is_chosen() {
        assert_eq!(Rule::of(&[]), Rule::Snake);
        assert_eq!(
            Rule::of(&[("first_name", "FirstName"), ("x", "x")]),
            Rule::Snake
        );
        let pairs = [("first_name", "FirstName"), ("a_b", "AB"), ("x", "x")];
        assert_eq!(Rule::of(&pairs), Rule::Pascal);
        assert_eq!(Rule::of(&[("first_name", "firstName")]), Rule::Camel);
        assert_eq!(Rule::of(&[("first_name", "FIRST_NAME")]), Rule::Upper);
    }
}
