//! Names of properties: how they are derived from the names of fields, and which ones the service
//! accepts.
//!
//! The rules of the service:
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model#property-names>. The protocol
//! crate checks names that are given at run time.

use syn::LitStr;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use crate::diagnostics::closest;

/// How the name of a property is derived from the name of its field, which is assumed to be in
/// snake case.
#[derive(Clone, Copy)]
pub(crate) enum RenameRule {
    Camel,
    Pascal,
    /// `lowercase` and `snake_case`: fields are both already.
    Snake,
    /// `UPPERCASE` and `SCREAMING_SNAKE_CASE`.
    Upper,
}

impl RenameRule {
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        let value = text.value();
        if let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == value) {
            return Ok(*rule);
        }
        let names = RULES.map(|(name, _)| name);
        let message = if value.contains('-') {
            format!(
                "`{value}` puts hyphens into names, and the service does not allow hyphens: use one of `{}`",
                names.join("`, `")
            )
        } else if let Some(known) = closest(&value, &names) {
            format!("unknown rule `{value}`, did you mean `{known}`?")
        } else {
            format!(
                "unknown rule `{value}`: the rules are `{}`",
                names.join("`, `")
            )
        };
        Err(syn::Error::new(text.span(), message))
    }

    /// The rules that may change the name of a field.
    pub(crate) const CHANGING: [Self; 3] = [Self::Camel, Self::Pascal, Self::Upper];

    /// The bit of the rule in a set of rules; 0 for the rule that changes no name.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Camel => 1,
            Self::Pascal => 2,
            Self::Upper => 4,
            Self::Snake => 0,
        }
    }

    /// The rule as it is written.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Camel => "camelCase",
            Self::Pascal => "PascalCase",
            Self::Upper => "SCREAMING_SNAKE_CASE",
            Self::Snake => "snake_case",
        }
    }

    /// Like serde, also for letters outside ASCII.
    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Camel => {
                let pascal = Self::Pascal.apply(field);
                let mut letters = pascal.chars();
                let first = letters.next().into_iter().flat_map(char::to_lowercase);
                first.chain(letters).collect()
            }
            Self::Pascal => field.split('_').flat_map(capitalized).collect(),
            Self::Snake => field.to_owned(),
            Self::Upper => field.to_uppercase(),
        }
    }
}

/// How the string of a variant is derived from its name, which is assumed to be in Pascal case. The
/// string may have hyphens.
#[derive(Clone, Copy)]
pub(crate) enum VariantRule {
    Camel,
    Kebab,
    Lower,
    Pascal,
    ScreamingKebab,
    ScreamingSnake,
    Snake,
    Upper,
}

impl VariantRule {
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        let value = text.value();
        if let Some((_, rule)) = VARIANT_RULES.iter().find(|(name, _)| *name == value) {
            return Ok(*rule);
        }
        let names = VARIANT_RULES.map(|(name, _)| name);
        let message = match closest(&value, &names) {
            Some(known) => format!("unknown rule `{value}`, did you mean `{known}`?"),
            None => format!(
                "unknown rule `{value}`: the rules are `{}`",
                names.join("`, `")
            ),
        };
        Err(syn::Error::new(text.span(), message))
    }

    /// Like serde.
    pub(crate) fn apply(self, variant: &str) -> String {
        match self {
            Self::Camel => {
                let mut letters = variant.chars();
                let first = letters.next().into_iter().flat_map(char::to_lowercase);
                first.chain(letters).collect()
            }
            Self::Kebab => separated(variant, '-'),
            Self::Lower => variant.to_lowercase(),
            Self::Pascal => variant.to_owned(),
            Self::ScreamingKebab => separated(variant, '-').to_uppercase(),
            Self::ScreamingSnake => separated(variant, '_').to_uppercase(),
            Self::Snake => separated(variant, '_'),
            Self::Upper => variant.to_uppercase(),
        }
    }
}

/// In lower case, with a separator before each capital letter except the first.
fn separated(variant: &str, separator: char) -> String {
    let mut text = String::new();
    for (index, letter) in variant.char_indices() {
        if index > 0 && letter.is_uppercase() {
            text.push(separator);
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn capitalized(word: &str) -> impl Iterator<Item = char> {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters)
}

/// The reason why a property cannot have this name.
pub(crate) fn problem_of(name: &str) -> Option<String> {
    let units = name.encode_utf16().count();
    let first = name.chars().next();
    if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
        Some("a property of the service has this name".to_owned())
    } else if name.starts_with("odata.") {
        Some("names that begin with `odata.` are reserved for the protocol".to_owned())
    } else if first.is_none() {
        Some("it is empty".to_owned())
    } else if units > NAME_UNITS_MAX {
        Some(format!(
            "its {units} UTF-16 units are more than {NAME_UNITS_MAX}"
        ))
    } else if let Some(first) = first.filter(|first| !starts_name(*first)) {
        Some(format!(
            "it begins with {first:?}, not with a letter or `_`"
        ))
    } else {
        let bad = name.chars().find(|character| !continues_name(*character));
        bad.map(|bad| format!("{bad:?} is not a letter, digit or `_`"))
    }
}

/// Returns true if a name may start with this character, as an identifier of C#.
fn starts_name(character: char) -> bool {
    character == '_'
        || character.general_category_group() == GeneralCategoryGroup::Letter
        || character.general_category() == GeneralCategory::LetterNumber
}

/// Returns true if this character may follow in a name, as in an identifier of C#.
fn continues_name(character: char) -> bool {
    starts_name(character)
        || matches!(
            character.general_category(),
            GeneralCategory::NonspacingMark
                | GeneralCategory::SpacingMark
                | GeneralCategory::DecimalNumber
                | GeneralCategory::ConnectorPunctuation
                | GeneralCategory::Format
        )
}

const RULES: [(&str, RenameRule); 6] = [
    ("lowercase", RenameRule::Snake),
    ("UPPERCASE", RenameRule::Upper),
    ("PascalCase", RenameRule::Pascal),
    ("camelCase", RenameRule::Camel),
    ("snake_case", RenameRule::Snake),
    ("SCREAMING_SNAKE_CASE", RenameRule::Upper),
];

const VARIANT_RULES: [(&str, VariantRule); 8] = [
    ("lowercase", VariantRule::Lower),
    ("UPPERCASE", VariantRule::Upper),
    ("PascalCase", VariantRule::Pascal),
    ("camelCase", VariantRule::Camel),
    ("snake_case", VariantRule::Snake),
    ("SCREAMING_SNAKE_CASE", VariantRule::ScreamingSnake),
    ("kebab-case", VariantRule::Kebab),
    ("SCREAMING-KEBAB-CASE", VariantRule::ScreamingKebab),
];

const NAME_UNITS_MAX: usize = 255;

/// Which of the two keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyName {
    Partition,
    Row,
}

impl KeyName {
    pub(crate) const BOTH: [Self; 2] = [Self::Partition, Self::Row];

    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Partition => "partition key",
            Self::Row => "row key",
        }
    }

    /// The property that holds it.
    pub(crate) const fn property(self) -> &'static str {
        match self {
            Self::Partition => "PartitionKey",
            Self::Row => "RowKey",
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Partition => "partition_key",
            Self::Row => "row_key",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_fields_as_in_serde() {
        for (field, pascal, camel, upper) in [
            ("first_name", "FirstName", "firstName", "FIRST_NAME"),
            ("x", "X", "x", "X"),
            ("_id", "Id", "id", "_ID"),
            ("line_2", "Line2", "line2", "LINE_2"),
            ("größe", "Größe", "größe", "GRÖSSE"),
        ] {
            assert_eq!(RenameRule::Pascal.apply(field), pascal);
            assert_eq!(RenameRule::Camel.apply(field), camel);
            assert_eq!(RenameRule::Upper.apply(field), upper);
            assert_eq!(RenameRule::Snake.apply(field), field);
        }
    }

    #[test]
    fn texts_follow_from_variants_as_in_serde() {
        let texts: Vec<_> = VARIANT_RULES
            .iter()
            .map(|(_, rule)| rule.apply("OnLeave"))
            .collect();
        assert_eq!(
            texts,
            [
                "onleave", "ONLEAVE", "OnLeave", "onLeave", "on_leave", "ON_LEAVE", "on-leave",
                "ON-LEAVE"
            ]
        );
    }

    #[test]
    fn names_are_held_to_the_rules_of_the_service() {
        let longest = "é".repeat(255);
        for name in [
            "a",
            "_",
            "_1",
            "ETag",
            "timestamp",
            "naïve_2",
            "啊齄",
            &longest,
        ] {
            assert_eq!(problem_of(name), None, "{name}");
        }
        let too_long = "😀".repeat(128);
        for (name, reason) in [
            ("Timestamp", "a property of the service"),
            ("odata.etag", "are reserved for the protocol"),
            ("", "empty"),
            ("1st", "begins with '1'"),
            ("hired-on", "'-' is not a letter"),
            ("a.b", "'.' is not a letter"),
            (&too_long, "256 UTF-16 units"),
        ] {
            let problem = problem_of(name).unwrap();
            assert!(problem.contains(reason), "{name}: {problem}");
        }
    }
}
