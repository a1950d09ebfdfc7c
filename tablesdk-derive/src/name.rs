//! Names of properties: how they follow from those of fields, and which ones the service takes.

use proc_macro2::Span;
use syn::LitStr;

use crate::diagnostics::did_you_mean;

/// How the name of a property follows from that of its field.
#[derive(Clone, Copy)]
pub(crate) enum RenameRule {
    Camel,
    Lower,
    Pascal,
    ScreamingSnake,
    Snake,
    Upper,
}

impl RenameRule {
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        let value = text.value();
        let known = RULES.iter().find(|(name, _)| *name == value);
        if let Some((_, rule)) = known {
            return Ok(*rule);
        }
        let message = if value.contains('-') {
            format!(
                "`{value}` would put hyphens into property names, which the service does not take"
            )
        } else {
            let names = RULES.map(|(name, _)| name);
            let suggestion = did_you_mean(&value, &names);
            format!(
                "unknown case `{value}`{suggestion} The cases are {}",
                names.join(", ")
            )
        };
        Err(syn::Error::new(text.span(), message))
    }

    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Lower | Self::Snake => field.to_lowercase(),
            Self::Upper | Self::ScreamingSnake => field.to_uppercase(),
            Self::Pascal => field.split('_').map(capitalized).collect(),
            Self::Camel => {
                let pascal = Self::Pascal.apply(field);
                let mut letters = pascal.chars();
                let first = letters.next().map(|first| first.to_lowercase().to_string());
                first.unwrap_or_default() + letters.as_str()
            }
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Checks a name against the rules of the service.
pub(crate) fn check_property(name: &str, span: Span) -> syn::Result<()> {
    let reason = if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
        "the service uses this name itself; give the field another one with `#[table(rename = \"…\")]`".to_owned()
    } else if name.is_empty() {
        "it is empty".to_owned()
    } else if name.encode_utf16().count() > 255 {
        "it has more than 255 UTF-16 units".to_owned()
    } else if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        "it does not start with a letter or an underscore".to_owned()
    } else if let Some(c) = name.chars().find(|c| !(c.is_alphanumeric() || *c == '_')) {
        format!("the character {c:?} is no letter, digit or underscore")
    } else {
        return Ok(());
    };
    Err(syn::Error::new(
        span,
        format!("`{name}` cannot name a property: {reason}"),
    ))
}

const RULES: [(&str, RenameRule); 6] = [
    ("lowercase", RenameRule::Lower),
    ("UPPERCASE", RenameRule::Upper),
    ("PascalCase", RenameRule::Pascal),
    ("camelCase", RenameRule::Camel),
    ("snake_case", RenameRule::Snake),
    ("SCREAMING_SNAKE_CASE", RenameRule::ScreamingSnake),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_fields_as_in_serde() {
        for (rule, name) in [
            (RenameRule::Lower, "first_name"),
            (RenameRule::Upper, "FIRST_NAME"),
            (RenameRule::Pascal, "FirstName"),
            (RenameRule::Camel, "firstName"),
            (RenameRule::Snake, "first_name"),
            (RenameRule::ScreamingSnake, "FIRST_NAME"),
        ] {
            assert_eq!(rule.apply("first_name"), name);
        }
        assert_eq!(RenameRule::Camel.apply("x"), "x");
        assert_eq!(RenameRule::Pascal.apply("größe"), "Größe");
    }
}
