//! The rules for the two keys of an entity: each is one field, or a template of several fields.

use proc_macro2::Span;
use syn::{Ident, LitStr};

use crate::attr::StructAttributes;
use crate::diagnostics::Diagnostics;
use crate::input::InputField;
use crate::name::KeyName;
use crate::template::{Piece, Template};

/// The templates of the keys of an entity. A projection may have none.
#[derive(Default)]
pub(crate) struct Keys {
    pub(crate) partition_key: Option<Template>,
    pub(crate) row_key: Option<Template>,
}

impl Keys {
    pub(crate) fn get(&self, name: KeyName) -> Option<&Template> {
        match name {
            KeyName::Partition => self.partition_key.as_ref(),
            KeyName::Row => self.row_key.as_ref(),
        }
    }
}

impl KeyName {
    const fn example(self) -> &'static str {
        match self {
            Self::Partition => "{department}",
            Self::Row => "empid_{id:06}",
        }
    }

    pub(crate) fn mark(self, field: &InputField<'_>) -> Option<Span> {
        match self {
            Self::Partition => field.attributes.partition_key,
            Self::Row => field.attributes.row_key,
        }
    }

    const fn template(self, attributes: &StructAttributes) -> Option<&LitStr> {
        match self {
            Self::Partition => attributes.partition_key.as_ref(),
            Self::Row => attributes.row_key.as_ref(),
        }
    }
}

/// Checks the keys. Returns how each key is made, and the names of the missing keys. Records in a
/// field that a template uses it.
pub(crate) fn check_keys(
    entity: &Ident,
    attributes: &StructAttributes,
    fields: &mut [InputField<'_>],
    diagnostics: &mut Diagnostics,
) -> (Keys, Vec<&'static str>) {
    let mut both_marked = false;
    for field in fields.iter().filter(|field| field.is_both_keys()) {
        both_marked = true;
        let (name, span) = (field.plain_name(), field.attributes.row_key);
        diagnostics.error(
            span.unwrap_or_else(|| field.ident.span()),
            format!(
                "`{name}` cannot be both the partition key and the row key: mark another field as one of them"
            ),
        );
    }
    // A refused attribute may have been meant to mark a key. A message about the missing key would
    // be a second one for one mistake.
    let unclear = attributes.unclear || fields.iter().any(|field| field.attributes.unclear);
    let mut keys = Keys::default();
    let mut missing = Vec::new();
    for name in KeyName::BOTH {
        let marked: Vec<usize> = (0_usize..)
            .zip(fields.iter())
            .filter(|(_, field)| name.mark(field).is_some() && !field.is_both_keys())
            .map(|(index, _)| index)
            .collect();
        let key = if let Some(text) = name.template(attributes) {
            refuse_marks(name, fields, &marked, diagnostics);
            let template = Template::parse(text, fields, diagnostics);
            note_parts(name, &template, fields, diagnostics);
            Some(template)
        } else {
            one_field(name, fields, &marked, diagnostics)
        };
        if key.is_none() && !both_marked {
            missing.push(name.property());
            // A projection needs no key.
            if !unclear && attributes.projection.is_none() {
                ask_for_key(entity, attributes, fields, name, diagnostics);
            }
        }
        match name {
            KeyName::Partition => keys.partition_key = key,
            KeyName::Row => keys.row_key = key,
        }
    }
    for field in fields.iter() {
        check_store(field, diagnostics);
    }
    (keys, missing)
}

/// The template of the one field that is marked.
fn one_field(
    name: KeyName,
    fields: &[InputField<'_>],
    marked: &[usize],
    diagnostics: &mut Diagnostics,
) -> Option<Template> {
    for field in marked.iter().filter_map(|index| fields.get(*index)) {
        if let Some(rename) = &field.attributes.rename {
            let (noun, property) = (name.noun(), name.property());
            diagnostics.error(
                rename.span(),
                format!("the {noun} is always stored as `{property}`: remove the `rename`"),
            );
        }
    }
    let [first, more @ ..] = marked else {
        return None;
    };
    let field = fields.get(*first)?;
    let (first_name, noun, word) = (field.plain_name(), name.noun(), name.word());
    for span in more
        .iter()
        .filter_map(|index| name.mark(fields.get(*index)?))
    {
        diagnostics.error(
            span,
            format!("`{first_name}` is already the {noun}: remove one of the two `{word}`"),
        );
    }
    Some(Template::of_field(*first, field))
}

/// A key has a template or a marked field, not both.
fn refuse_marks(
    name: KeyName,
    fields: &[InputField<'_>],
    marked: &[usize],
    diagnostics: &mut Diagnostics,
) {
    for span in marked
        .iter()
        .filter_map(|index| name.mark(fields.get(*index)?))
    {
        let (noun, word) = (name.noun(), name.word());
        diagnostics.error(
            span,
            format!("the {noun} is made by the template on the struct: remove this `{word}`, or the template"),
        );
    }
}

/// Records in the fields of a template that they are parts of the key.
fn note_parts(
    name: KeyName,
    template: &Template,
    fields: &mut [InputField<'_>],
    diagnostics: &mut Diagnostics,
) {
    for piece in &template.pieces {
        let Piece::Part { field, .. } = piece else {
            continue;
        };
        let Some(field) = fields.get_mut(*field) else {
            continue;
        };
        let plain = field.plain_name();
        let in_partition_key =
            field.part_of == Some(KeyName::Partition) || field.attributes.partition_key.is_some();
        if name == KeyName::Row && in_partition_key {
            diagnostics.error(
                template.span,
                format!("`{plain}` is in the partition key, which all entities of a partition share: remove it from the row key"),
            );
        } else if let Some((role, span)) = field.attributes.roles().first() {
            // A mark for this key has been refused before.
            if !role.is_key() {
                let (noun, word) = (name.noun(), role.word());
                diagnostics.error(
                    *span,
                    format!("`{plain}` is a part of the {noun}: remove the `{word}`, or take the field out of the template"),
                );
            }
        }
        field.part_of = Some(name);
    }
}

/// The attributes of a property are for a part of a key only if the part is also stored as a
/// property.
fn check_store(field: &InputField<'_>, diagnostics: &mut Diagnostics) {
    let attributes = &field.attributes;
    let store = attributes.store;
    let plain = field.plain_name();
    let Some(name) = field.part_of else {
        if let Some(span) = store {
            let message = if field.is_key() {
                "a key of one field is stored as the key only: remove the `store`".to_owned()
            } else {
                format!(
                    "`{plain}` is not in a key template, so it is stored without `store`: remove the `store`"
                )
            };
            diagnostics.error(span, message);
        }
        return;
    };
    let noun = name.noun();
    let aliases = attributes
        .aliases
        .iter()
        .map(|alias| ("alias", Some(alias.span())));
    let default = attributes.default.as_ref().map(|default| default.span);
    for (word, span) in aliases.chain([("default", default)]) {
        if let Some(span) = span {
            diagnostics.error(
                span,
                format!("`{plain}` is read from the {noun}: remove the `{word}`"),
            );
        }
    }
    if let Some(encrypt) = attributes.encrypt {
        diagnostics.error(
            encrypt.span,
            format!("`{plain}` is a part of the {noun}, which the service needs as it is: remove the `encrypt`"),
        );
    }
    if store.is_some() {
        return;
    }
    let rename = attributes.rename.as_ref().map(LitStr::span);
    for (word, span) in [
        ("rename", rename),
        ("mixed_integers", attributes.mixed_integers),
    ] {
        if let Some(span) = span {
            diagnostics.error(
                span,
                format!("`{plain}` is stored only in the {noun}, not as a property: remove the `{word}`, or add `store`"),
            );
        }
    }
}

fn ask_for_key(
    entity: &Ident,
    attributes: &StructAttributes,
    fields: &[InputField<'_>],
    name: KeyName,
    diagnostics: &mut Diagnostics,
) {
    let (noun, word) = (name.noun(), name.word());
    // A field with this name was probably meant.
    let meant = fields.iter().find(|field| {
        let (stored, _) = field.stored_name(attributes.rename_all);
        stored == name.property() || field.plain_name() == word
    });
    let message = match meant {
        Some(_) => format!("`{entity}` has no {noun}: add `#[table({word})]` to this field"),
        None => format!(
            "`{entity}` has no {noun}: add `#[table({word})]` to one field, or `#[table({word} = \"{}\")]` to the struct",
            name.example()
        ),
    };
    let span = meant.map_or_else(|| entity.span(), |field| field.ident.span());
    diagnostics.error(span, message);
}
