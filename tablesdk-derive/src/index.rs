//! The indexes of an entity. The entries of an index are a struct like the entity, with other keys:
//! this file makes it of the entity's fields, and it is checked as if it had been written.
//!
//! An entry has every property of the entity, or those that `only` names, and the parts of the
//! entity's keys that its own keys do not have.

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{GenericArgument, LitStr, PathArguments, Type};

use crate::attr::{FieldAttributes, IndexAttribute, StructAttributes};
use crate::check::{Kind, Model, Part, check};
use crate::diagnostics::{Diagnostics, closest};
use crate::entity_type::check_type_name;
use crate::input::{IndexOf, Input, InputField, Target};
use crate::name::KeyName;
use crate::template::{PartForm, Piece, Template, names};

/// The checked entries of each index.
pub(crate) fn models<'a>(
    entity: &'a Model<'a>,
    attributes: &'a StructAttributes,
) -> syn::Result<Vec<Model<'a>>> {
    let mut diagnostics = Diagnostics::new();
    if let (Some(copy), Some(problem)) = (attributes.copies.first(), problem_of(entity, "copy")) {
        diagnostics.error(copy.path.span(), problem);
    }
    check_names(entity, attributes, &mut diagnostics);
    let Some(first) = attributes.indexes.first() else {
        return diagnostics.finish(Some(Vec::new()));
    };
    let problem = problem_of(entity, "index").or_else(|| problem_of_older(entity));
    let problem = problem.map(|problem| (first.ident.span(), problem));
    if let Some((span, problem)) = problem.or_else(|| problem_of_field(entity)) {
        diagnostics.error(span, problem);
        return diagnostics.finish(None);
    }
    let mut models = Vec::new();
    for index in &attributes.indexes {
        check_only(entity, index, &mut diagnostics);
        match check(input_of(entity, attributes, index)) {
            Ok(model) => {
                check_partition(entity, index, &mut diagnostics);
                check_owners(entity, index, &model, &mut diagnostics);
                check_digits(entity, &model, &mut diagnostics);
                models.push(model);
            }
            Err(error) => diagnostics.push(error),
        }
    }
    let beside: Vec<_> = models.iter().filter(|model| is_beside(model)).collect();
    if !beside.is_empty() && !are_told_by_row(entity, &beside) {
        check_prefixes(entity, &beside, &mut diagnostics);
        for model in models.iter_mut().filter(|model| is_beside(model)) {
            model.is_told_by_partition = true;
        }
    }
    diagnostics.finish(Some(models))
}

/// Why a struct cannot have an index or a copy.
fn problem_of(entity: &Model<'_>, word: &str) -> Option<String> {
    let name = entity.ident.unraw();
    Some(if entity.target == Target::Group {
        format!("a flattened struct has no key: move `{word}` to the entity")
    } else if entity.projection {
        format!("a projection is a part of an entity: move `{word}` to the whole struct")
    } else if !entity.generics.params.is_empty() {
        format!(
            "`{name}` has parameters, and the entries of an index and copies have none: remove them, or the `{word}`"
        )
    } else {
        return None;
    })
}

fn problem_of_older(entity: &Model<'_>) -> Option<String> {
    let older = entity.entity_type.as_ref().map(|known| &known.older);
    let has_older = older.is_some_and(|older| !older.is_empty());
    let name = entity.ident.unraw();
    has_older.then(|| format!("`{name}` reads older versions with `from`, which the entries of an index do not: remove one of the two"))
}

/// The name under which the entries of an index are stored.
fn stored_name(entity: &Model<'_>, index: &IndexAttribute) -> String {
    let ident = index.ident.unraw();
    match &index.name {
        Some(name) => name.value(),
        None if entity.entity_type.is_some() => ident.to_string(),
        None => format!("{}.{ident}", entity.ident.unraw()),
    }
}

/// Each index is a type of its own, and entries and copies are recognized by the names that they
/// are stored under.
fn check_names(entity: &Model<'_>, attributes: &StructAttributes, diagnostics: &mut Diagnostics) {
    let mut idents = vec![entity.ident.clone()];
    let entity_type = entity.entity_type.iter();
    let mut stored: Vec<_> = entity_type
        .flat_map(|known| known.aliases.iter().chain([&known.name]))
        .cloned()
        .collect();
    let mut check = |stored: &mut Vec<String>, name: String, given: Option<&LitStr>, span: Span| {
        if let Some(given) = given {
            check_type_name(given, "a stored name", "Employee.ByEmail", diagnostics);
        }
        if stored.contains(&name) {
            diagnostics.error(
                given.map_or(span, LitStr::span),
                format!("{name:?} is already stored for this entity, or for another index or copy of it: give this one another `name`"),
            );
        }
        stored.push(name);
    };
    let mut duplicates = Vec::new();
    for index in &attributes.indexes {
        if idents.contains(&index.ident) {
            duplicates.push(&index.ident);
        } else {
            let (name, span) = (stored_name(entity, index), index.ident.span());
            check(&mut stored, name, index.name.as_ref(), span);
            idents.push(index.ident.clone());
        }
    }
    stored.clear();
    let mut paths = Vec::new();
    for copy in &attributes.copies {
        let path = copy.path.to_token_stream().to_string();
        if paths.contains(&path) {
            duplicates.extend(copy.path.segments.last().map(|last| &last.ident));
        } else {
            let (name, span) = (copy.stored_name(&entity.ident), copy.path.span());
            check(&mut stored, name, copy.name.as_ref(), span);
            paths.push(path);
        }
    }
    for ident in duplicates {
        diagnostics.error(
            ident.span(),
            format!("`{ident}` is already this struct, or another index or copy of it: remove one of the two, or rename it"),
        );
    }
}

/// `only` names properties, each once.
fn check_only(entity: &Model<'_>, index: &IndexAttribute, diagnostics: &mut Diagnostics) {
    let mut known = Vec::new();
    for only in index.only.iter().flatten() {
        let name = only.unraw().to_string();
        let mut parts = entity.parts.iter();
        let part = parts.find(|part| part.field.plain_name() == name);
        let problem = match part.map(|part| &part.kind) {
            Some(_) if known.contains(&name) => {
                format!("`{name}` is named twice: remove one of the two")
            }
            Some(
                Kind::Property(_)
                | Kind::KeyPart {
                    stored: Some(_), ..
                }
                | Kind::Group { .. }
                | Kind::Rest,
            ) => {
                known.push(name);
                continue;
            }
            Some(Kind::Key(_) | Kind::KeyPart { .. }) => {
                format!("every entry has the keys of its entity: remove `{name}` from `only`")
            }
            Some(Kind::Skip { .. }) => {
                format!("`{name}` is not stored: remove it from `only`")
            }
            Some(Kind::ETag | Kind::Timestamp) => format!(
                "`{name}` is no property of the entity, and an entry has its own in `Stored`: remove it from `only`"
            ),
            None => {
                let fields = entity.properties().map(|(field, _)| field.plain_name());
                let fields: Vec<_> = fields.collect();
                let fields: Vec<_> = fields.iter().map(String::as_str).collect();
                let entity = entity.ident.unraw();
                match closest(&name, &fields) {
                    Some(meant) => {
                        format!("`{entity}` has no field `{name}`, did you mean `{meant}`?")
                    }
                    None => format!("`{entity}` has no field `{name}`: `only` names fields"),
                }
            }
        };
        diagnostics.error(only.span(), problem);
    }
}

/// With fewer digits than in the key of the entity, there would be entities without an entry, and
/// they could not be written.
fn check_digits(entity: &Model<'_>, entries: &Model<'_>, diagnostics: &mut Diagnostics) {
    let templates = |model: &Model<'_>| -> Vec<(usize, usize, Span)> {
        let templates = KeyName::BOTH
            .into_iter()
            .filter_map(|name| model.keys.get(name));
        let parts = templates.flat_map(|template| {
            template.pieces.iter().filter_map(|piece| match piece {
                Piece::Part {
                    field,
                    form: PartForm::Digits(digits),
                } => Some((*field, *digits, template.span)),
                _ => None,
            })
        });
        parts.collect()
    };
    let of_entity = templates(entity);
    for (field, digits, span) in templates(entries) {
        let Some(Part { field, .. }) = entries.parts.get(field) else {
            continue;
        };
        let mut known = of_entity.iter();
        let known = known.find_map(|(known, digits, _)| {
            let known = entity.parts.get(*known)?;
            (known.field.ident == field.ident).then_some(*digits)
        });
        if let Some(known) = known.filter(|known| *known > digits) {
            let name = field.plain_name();
            diagnostics.error(
                span,
                format!("`{name}` has up to {known} digits in the key of the entity: write `{{{name}:0{known}}}`"),
            );
        }
    }
}

/// Without an entity type, the entries are marked by a property.
fn problem_of_field(entity: &Model<'_>) -> Option<(Span, String)> {
    let mut properties = entity.properties().filter(|_| entity.entity_type.is_none());
    let (field, _) = properties.find(|(_, property)| {
        property.name == MARK || property.aliases.iter().any(|alias| alias == MARK)
    })?;
    let (_, span) = field.stored_name(entity.rename_all);
    let problem =
        format!("the property `{MARK}` marks the entries of indexes: give this one another name");
    Some((span, problem))
}

/// The entries of an index, as if they had been written as a struct.
fn input_of<'a>(
    entity: &'a Model<'a>,
    attributes: &StructAttributes,
    index: &'a IndexAttribute,
) -> Input<'a> {
    let templates = index.partition_key.iter().chain([&index.row_key]);
    let parts: Vec<_> = templates
        .flat_map(|template| names(&template.value()).collect::<Vec<_>>())
        .collect();
    let mut required = Vec::new();
    let parts_of_entry = entity.parts.iter().enumerate();
    let parts_of_entry = parts_of_entry.filter(|(position, part)| {
        let name = part.field.plain_name();
        match part.kind {
            _ if index.only.is_none() => true,
            // They lead to the entity, and to the entry.
            Kind::Key(_) | Kind::KeyPart { .. } => true,
            _ if parts.contains(&name) => true,
            // An entry is hidden as its entity is.
            _ if entity.expires == Some(*position) => true,
            _ => index.has(&name),
        }
    });
    let fields = parts_of_entry.map(|(_, part)| {
        let field = &part.field;
        let is_in_key = parts.contains(&field.plain_name());
        let mut ty = field.ty;
        if let (true, Some(inner)) = (is_in_key, value_of_option(ty)) {
            required.push(field.ident.clone());
            ty = inner;
        }
        InputField {
            ty,
            attributes: attributes_in_entry(field, &part.kind, index, is_in_key),
            part_of: None,
            ..field.clone()
        }
    });
    let fields = fields.collect();
    let mut entity_type = attributes.entity_type.clone();
    entity_type.aliases.clear();
    let span = index.ident.span();
    if entity_type.name.is_none() {
        // It distinguishes the entry from an entity of another type under the same row key.
        entity_type.property = Some((span, LitStr::new(MARK, span)));
    }
    let name = index.name.clone();
    let name = name.unwrap_or_else(|| LitStr::new(&stored_name(entity, index), span));
    entity_type.name = Some((span, name));
    Input {
        target: Target::Entity,
        ident: &index.ident,
        vis: entity.vis,
        generics: entity.generics,
        attributes: StructAttributes {
            entity_type,
            copies: Vec::new(),
            indexes: Vec::new(),
            keys: None,
            partition_key: index
                .partition_key
                .clone()
                .or_else(|| attributes.partition_key.clone()),
            row_key: Some(index.row_key.clone()),
            ..attributes.clone()
        },
        fields,
        others: entity.others.clone(),
        index_of: Some(IndexOf {
            entity: entity.ident.clone(),
            derives: index.derives.clone(),
            is_elsewhere: index.is_elsewhere(),
            is_unique: index.is_unique,
            is_whole: index.only.is_none(),
            table: index.table.clone(),
            required,
        }),
        lints: entity.lints.clone(),
        diagnostics: Diagnostics::new(),
    }
}

/// The attributes of a field in the entry. A field that cannot be a part of a key keeps its
/// attributes, and the check says so.
fn attributes_in_entry(
    field: &InputField<'_>,
    kind: &Kind,
    index: &IndexAttribute,
    is_in_key: bool,
) -> FieldAttributes {
    let mut attributes = field.attributes.clone();
    let span = Some(field.ident.span());
    let is_own = |key: &KeyName| *key == KeyName::Row || index.partition_key.is_some();
    match kind {
        Kind::Key(key) | Kind::KeyPart { key, stored: None } if is_own(key) => {
            attributes.partition_key = None;
            attributes.row_key = None;
        }
        Kind::KeyPart {
            key,
            stored: Some(_),
        } if is_own(key) => {
            attributes.store = attributes.store.filter(|_| is_in_key);
        }
        // Other programs, and filters, find it as a property, too.
        Kind::Property(_) if is_in_key => {
            attributes.aliases.clear();
            attributes.default = None;
            attributes.store = span;
        }
        _ => {}
    }
    if !index.has(&field.plain_name()) {
        // The key has the value.
        attributes.store = None;
    }
    attributes
}

/// Entries that are written in another way than their entity are in other partitions.
fn check_partition(entity: &Model<'_>, index: &IndexAttribute, diagnostics: &mut Diagnostics) {
    let of_entity = entity.keys.get(KeyName::Partition);
    if let (Some(of_entity), Some(of_entries), None) =
        (of_entity, &index.partition_key, &index.table)
        && of_entity.text == of_entries.value()
    {
        diagnostics.error(
            of_entries.span(),
            "the entries have the partition key of the entity: remove this one, and they are written in one transaction",
        );
    }
}

/// Two entities that had one entry would overwrite it for each other.
fn check_owners(
    entity: &Model<'_>,
    index: &IndexAttribute,
    entries: &Model<'_>,
    diagnostics: &mut Diagnostics,
) {
    if index.is_unique {
        return;
    }
    // Entries in the partition of their entity share its partition key.
    let is_in_key = |name: &KeyName| *name == KeyName::Row || index.partition_key.is_some();
    let parts = |model: &Model<'_>| -> Vec<String> {
        let keys = KeyName::BOTH.into_iter().filter(is_in_key);
        let templates = keys.filter_map(|name| model.keys.get(name));
        let fields = templates.flat_map(Template::fields);
        let names = fields.filter_map(|field| Some(model.parts.get(field)?.field.plain_name()));
        names.collect()
    };
    let of_entries = parts(entries);
    let of_entity = parts(entity);
    let missing = of_entity.iter().filter(|name| !of_entries.contains(name));
    let missing: Vec<_> = missing.map(|name| format!("{{{name}}}")).collect();
    if missing.is_empty() {
        return;
    }
    let (name, key) = (entity.ident.unraw(), missing.join("_"));
    diagnostics.error(
        index.row_key.span(),
        if index.is_elsewhere() {
            format!("two entities `{name}` may have an entry with the same keys: add `_{key}` to this one")
        } else {
            format!("two entities `{name}` may have an entry with the same row key: add `_{key}` to it, or `unique` to the index")
        },
    );
}

/// Returns true if the entries are in the table of their entities.
fn is_beside(entries: &Model<'_>) -> bool {
    let index_of = entries.index_of.as_ref();
    index_of.is_some_and(|index_of| index_of.table.is_none())
}

/// Returns true if entities and entries are distinguished by the texts in front of their row keys.
fn are_told_by_row(entity: &Model<'_>, entries: &[&Model<'_>]) -> bool {
    let all: Vec<_> = [entity]
        .into_iter()
        .chain(entries.iter().copied())
        .collect();
    let mut pairs = (1..).zip(&all).flat_map(|(next, one)| {
        let others = all.iter().skip(next);
        others.map(move |other| (one, other))
    });
    pairs.all(|(one, other)| are_told(one, other, KeyName::Row))
}

/// Returns true if the keys of one model begin with another text than those of the other.
fn are_told(one: &Model<'_>, other: &Model<'_>, key: KeyName) -> bool {
    let prefix = |model: &Model<'_>| {
        let template = model.keys.get(key);
        template.map_or("", Template::literal_prefix).to_owned()
    };
    let (one, other) = (prefix(one), prefix(other));
    let is_told = !one.is_empty() && !other.is_empty();
    is_told && !one.starts_with(&other) && !other.starts_with(&one)
}

/// Entities and entries are distinguished by the text in front of their row keys, or of their
/// partition keys.
fn check_prefixes(entity: &Model<'_>, entries: &[&Model<'_>], diagnostics: &mut Diagnostics) {
    let mut known: Vec<(&Model<'_>, &Template)> = Vec::new();
    for model in [entity].into_iter().chain(entries.iter().copied()) {
        let Some(template) = model.keys.get(KeyName::Row) else {
            continue;
        };
        let is_told_from = |other: &Model<'_>| {
            let mut keys = KeyName::BOTH.into_iter();
            keys.any(|key| are_told(model, other, key))
        };
        let name = model.ident.unraw();
        let all = [entity].into_iter().chain(entries.iter().copied());
        let mut others = all.filter(|other| other.ident != model.ident);
        if template.literal_prefix().is_empty() && !others.all(is_told_from) {
            let example = name.to_string().to_lowercase();
            let is_elsewhere = |model: &&Model<'_>| {
                let index_of = model.index_of.as_ref();
                index_of.is_some_and(|index_of| index_of.is_elsewhere)
            };
            let or = if entries.iter().all(is_elsewhere) {
                ", or all partition keys need one"
            } else {
                ""
            };
            diagnostics.error(
                template.span,
                format!("the row keys of `{name}` need a text in front that distinguishes them from the entries of indexes, such as `{example}_{}`{or}", template.text),
            );
            continue;
        }
        let other = known.iter().find(|(other, _)| !is_told_from(other));
        if let Some((other, _)) = other {
            let other = other.ident.unraw();
            diagnostics.error(
                template.span,
                format!("the row keys of `{name}` and of `{other}` cannot be distinguished: let each begin with a text of its own"),
            );
        }
        known.push((model, template));
    }
}

/// The `T` of an `Option<T>`.
fn value_of_option(ty: &Type) -> Option<&Type> {
    let path = match ty {
        Type::Path(path) => path,
        // In a macro.
        Type::Group(group) => return value_of_option(&group.elem),
        Type::Paren(paren) => return value_of_option(&paren.elem),
        _ => return None,
    };
    let segment = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if segment.ident == "Option" => Some(inner),
        _ => None,
    }
}

/// The property with the name of the index, of an entity without an entity type.
const MARK: &str = "TablesdkIndex";
