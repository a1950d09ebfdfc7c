//! `entity_type` on a struct: the name of the type, its aliases, and the older versions of the
//! struct.
//!
//! Two structs may not share a name. This is checked where both are known: at compile time, in
//! generated code.
//!
//! An older version is a struct with a `From` or `TryFrom`, not a conversion of properties: the
//! compiler checks the struct, and the conversion can be tested without a table. Each version names
//! only the one before.

use syn::{Ident, LitStr, Path};

use crate::attr::StructAttributes;
use crate::diagnostics::{Diagnostics, abbreviated};
use crate::input::Target;
use crate::name::problem_of;

/// The checked entity type of a struct.
pub(crate) struct EntityType {
    pub(crate) property: String,
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    pub(crate) older: Vec<Path>,
}

impl EntityType {
    pub(crate) fn check(
        entity: &Ident,
        attributes: &StructAttributes,
        target: Target,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let given = &attributes.entity_type;
        if target == Target::Group {
            for (word, span) in given.words() {
                diagnostics.error(
                    span,
                    format!("`{word}` is about the entity as a whole: move it to the struct that derives `TableEntity`"),
                );
            }
            return None;
        }
        let Some((_, name)) = &given.name else {
            for (word, span) in given.words() {
                let what = match word {
                    "alias" => "another name of the entity type",
                    "from" => "an older version, identified by its entity type",
                    _ => "where the entity type is stored",
                };
                let or = if word == "alias" {
                    ", or move the alias to a field"
                } else {
                    ""
                };
                diagnostics.error(
                    span,
                    format!("on the struct, `{word}` is {what}, and `{entity}` has none: add `entity_type = \"{entity}\"`{or}"),
                );
            }
            return None;
        };
        if let Some((_, property)) = &given.property
            && let Some(problem) = problem_of(&property.value())
        {
            let shown = abbreviated(&property.value());
            diagnostics.error(
                property.span(),
                format!("`{shown}` cannot name a property: {problem}; choose another"),
            );
        }
        if let (Some(_), Some((span, _))) = (attributes.projection, given.older.first()) {
            diagnostics.error(
                *span,
                "a projection requests only its own properties, not those of an older version: read the whole struct, or give the projection an `alias` if it fits the old entities as well",
            );
        }
        let aliases = given.aliases.iter().map(|(_, alias)| alias);
        let mut seen: Vec<String> = Vec::new();
        for name in [name].into_iter().chain(aliases) {
            check_type_name(name, "an entity type", "Employee", diagnostics);
            if seen.contains(&name.value()) {
                diagnostics.error(
                    name.span(),
                    format!(
                        "`{entity}` already has the entity type {:?}: remove the alias",
                        name.value()
                    ),
                );
            }
            seen.push(name.value());
        }
        Some(Self {
            property: given.property_name()?,
            name: name.value(),
            aliases: given
                .aliases
                .iter()
                .map(|(_, alias)| alias.value())
                .collect(),
            older: given.older.iter().map(|(_, older)| older.clone()).collect(),
        })
    }
}

/// Refuses a string that cannot be the name of a type.
pub(crate) fn check_type_name(
    name: &LitStr,
    what: &str,
    example: &str,
    diagnostics: &mut Diagnostics,
) {
    let text = name.value();
    let message = if text.trim().is_empty() {
        format!("{what} is not empty: write one, such as \"{example}\"")
    } else if text.encode_utf16().count() > NAME_UNITS_MAX {
        format!("{what} is part of every query: choose one of at most {NAME_UNITS_MAX} characters")
    } else if text.chars().any(char::is_control) {
        format!("{what} cannot have control characters: remove them")
    } else {
        return;
    };
    diagnostics.error(name.span(), message);
}

/// A limit of this crate: every query of the struct has the name in its URL.
const NAME_UNITS_MAX: usize = 128;
