//! The structs of a module, before they are text: how each field is named and what it reads.

use std::collections::{BTreeSet, HashSet};

use tablesdk::DynamicEntity;
use tablesdk_protocol::limits::PROPERTIES_MAX;

use super::columns::Columns;
use super::keys::{self, is_year};
use super::kinds::{By, Kind, Kinds};
use super::looks;
use super::names::{FieldNames, Rule, TypeName, TypeNames, field_name, of_table, type_name};
use super::properties::{FieldType, count, range, same_as_key, values};
use super::template::{Form, Piece, Template};
use crate::schema::{Property, Schema};

/// A Rust module whose structs read the entities of a sample. [`Display`](std::fmt::Display) writes
/// its source.
#[derive(Clone, Debug)]
pub struct Module {
    pub(super) table: String,
    pub(super) entities: usize,
    /// The names of the indexes of which the table has entries.
    pub(super) indexes: Vec<String>,
    pub(super) by: By,
    /// The enum, if there are entities of several kinds.
    pub(super) rows: Option<String>,
    pub(super) structs: Vec<Struct>,
    /// The number of entities that have no type.
    pub(super) others: usize,
}

/// A struct for the entities of one kind.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    pub(super) name: String,
    /// The value or the text that distinguishes the kind.
    pub(super) label: String,
    pub(super) entities: usize,
    pub(super) rule: Rule,
    pub(super) partition_key: Key,
    pub(super) row_key: Key,
    pub(super) fields: Vec<Field>,
    pub(super) rest: Option<Rest>,
}

/// A key: a field, or a template of fields.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) template: Option<Template>,
    /// The fields of the parts, in their order; the one field without a template.
    pub(super) fields: Vec<KeyField>,
    /// The form of the keys, in words.
    pub(super) looks: String,
}

#[derive(Clone, Debug)]
pub(super) struct KeyField {
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) doc: String,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) property: String,
    pub(super) reads: FieldType,
    pub(super) is_optional: bool,
    pub(super) doc: String,
}

/// The field that has all properties without a field of their own.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) name: String,
    /// Their names, with what is known about each.
    pub(super) properties: Vec<(String, String)>,
}

impl Module {
    pub(super) fn infer(
        table: &str,
        name: Option<TypeName>,
        entities: &[DynamicEntity],
        indexes: &BTreeSet<String>,
    ) -> Self {
        let mut name = name;
        let Kinds {
            by,
            all: kinds,
            others,
        } = Kinds::of(entities);
        let mut names = TypeNames::default();
        let has_rows = kinds.len() > 1 || others > 0;
        let rows = has_rows.then(|| match name.take() {
            Some(name) => names.take(name.as_str()),
            None => names.take(&format!("{}Row", of_table(table).as_str())),
        });
        let structs = kinds.iter().map(|kind| {
            let name = match name.take() {
                Some(name) => names.take(name.as_str()),
                None if kind.label.is_empty() => names.take(of_table(table).as_str()),
                None => names.take(&type_name(kind.label)),
            };
            Struct::infer(name, kind, &by)
        });
        let structs = structs.collect();
        Self {
            table: table.to_owned(),
            entities: entities.len(),
            indexes: indexes.iter().cloned().collect(),
            by,
            rows,
            structs,
            others,
        }
    }
}

impl Struct {
    fn infer(name: String, kind: &Kind<'_>, by: &By) -> Self {
        let type_property = match by {
            By::Type(property) => Some(property.as_str()),
            By::Nothing | By::RowKey => None,
        };
        let lead = if *by == By::RowKey { kind.label } else { "" };
        let mut names = FieldNames::default();
        let (fields, rest) = fields(kind, type_property, &mut names);
        let pairs = fields.iter().map(|it| (&*it.name, &*it.property));
        let rule = Rule::of(&pairs.collect::<Vec<_>>());
        let count = kind.entities.len();
        let partitions = kind.entities.iter().map(|it| it.partition_key()).collect();
        let rows = kind.entities.iter().map(|it| it.row_key()).collect();
        Self {
            name,
            label: kind.label.to_owned(),
            entities: count,
            rule,
            // The number of entities in a partition proves nothing about its key.
            partition_key: Key::infer("partition", &partitions, 0, "", &mut names),
            row_key: Key::infer("row", &rows, count, lead, &mut names),
            fields,
            rest,
        }
    }
}

/// The fields of the properties, and the field of those that have none of their own.
fn fields(
    kind: &Kind<'_>,
    type_property: Option<&str>,
    names: &mut FieldNames,
) -> (Vec<Field>, Option<Rest>) {
    let mut schema = Schema::default();
    for entity in &kind.entities {
        schema.add(entity);
    }
    let columns = Columns::of(kind.entities.iter().copied());
    // The first two are the keys.
    let properties = schema.properties().iter().skip(2);
    let properties = properties.filter(|it| Some(it.name()) != type_property);
    let properties: Vec<_> = properties.collect();
    let max = PROPERTIES_MAX - usize::from(type_property.is_some());
    let modelled = modelled(&properties, max);
    let (mut fields, mut rest) = (Vec::new(), Vec::new());
    for property in properties {
        match FieldType::of(property).filter(|_| modelled.contains(property.name())) {
            Some(reads) => fields.push(Field::new(property, reads, kind, &columns, names)),
            None => rest.push((property.name().to_owned(), types(property))),
        }
    }
    let rest = (!rest.is_empty()).then(|| Rest {
        name: names.take("other"),
        properties: rest,
    });
    (fields, rest)
}

/// The names of the properties that have fields of their own: those of most entities, if there are
/// too many.
fn modelled<'p>(properties: &[&'p Property], max: usize) -> HashSet<&'p str> {
    let readable = properties.iter().filter(|it| FieldType::of(it).is_some());
    let mut readable: Vec<_> = readable.collect();
    readable.sort_by_key(|it| std::cmp::Reverse(count(it)));
    readable.iter().take(max).map(|it| it.name()).collect()
}

/// The types of a property, such as `Edm.Double` in 12 entities.
fn types(property: &Property) -> String {
    let types = property.types().iter().map(|it| {
        let (edm_type, count) = (it.edm_type().as_str(), grouped(it.entities()));
        format!("`{edm_type}` in {count}")
    });
    types.collect::<Vec<_>>().join(", ")
}

impl Field {
    fn new(
        property: &Property,
        reads: FieldType,
        kind: &Kind<'_>,
        columns: &Columns<'_>,
        names: &mut FieldNames,
    ) -> Self {
        let (count, all) = (count(property), kind.entities.len() as u64);
        let is_optional = count < all;
        let mut doc = if is_optional {
            format!("In {} of {} entities", grouped(count), grouped(all))
        } else {
            "In all entities".to_owned()
        };
        let more = of_chunks(property.name(), columns)
            .or_else(|| range(property))
            .or_else(|| same_as_key(&kind.entities, columns.get(property.name())?))
            .or_else(|| values(columns.get(property.name())?));
        if let Some(more) = more {
            doc += "; ";
            doc += &more;
        }
        Self {
            name: names.take(&field_name(property.name())),
            property: property.name().to_owned(),
            reads,
            is_optional,
            doc: doc + ".",
        }
    }
}

/// The purpose of a property that the client writes beside a value in chunks: the number of chunks,
/// or the checksum.
fn of_chunks(name: &str, columns: &Columns<'_>) -> Option<String> {
    let of_number = name.strip_suffix("__n").map(|value| (value, "__sha"));
    let of_checksum = name.strip_suffix("__sha").map(|value| (value, "__n"));
    let (value, other) = of_number.or(of_checksum)?;
    columns.get(value)?;
    columns.get(&format!("{value}{other}"))?;
    let value = value.escape_debug();
    Some(format!(
        "`{value}` is a value in chunks: read and write it by `tablesdk::chunked::Chunked`"
    ))
}

impl Key {
    /// The noun is that of the key.
    fn infer(
        noun: &str,
        keys: &BTreeSet<&str>,
        entities: usize,
        lead: &str,
        names: &mut FieldNames,
    ) -> Self {
        let template = keys::template(keys, entities, lead);
        let looks = looks::of_keys(keys, template.as_ref());
        let Some(template) = template else {
            let count = counted(keys.len(), VALUES);
            let field = KeyField {
                name: names.take(&format!("{noun}_key")),
                form: Form::Text,
                doc: format!("The {noun} key; {count}."),
            };
            return Self {
                template: None,
                fields: vec![field],
                looks,
            };
        };
        let parts = keys.iter().filter_map(|key| template.read(key));
        let parts: Vec<_> = parts.collect();
        let mut fields = Vec::new();
        let mut word = "";
        for piece in &template.pieces {
            match piece {
                Piece::Literal(text) => word = text,
                Piece::Part(form) => {
                    let index = fields.len();
                    let texts = parts.iter().filter_map(|all| all.get(index).copied());
                    let texts: BTreeSet<_> = texts.collect();
                    let before = fields.last().map(|it: &KeyField| it.name.as_str());
                    let name = part_name(*form, word, before, &texts).unwrap_or(noun);
                    let name = names.take(&field_name(name));
                    let doc = format!("In the {noun} key; {}.", extent(*form, &texts));
                    fields.push(KeyField {
                        name,
                        form: *form,
                        doc,
                    });
                    word = "";
                }
            }
        }
        Self {
            template: Some(template),
            fields,
            looks,
        }
    }
}

/// The name of a part, by the word before it, or by its type.
fn part_name<'w>(
    form: Form,
    word: &'w str,
    before: Option<&str>,
    texts: &BTreeSet<&str>,
) -> Option<&'w str> {
    let word = word.trim_matches(|c: char| !c.is_alphabetic());
    if !word.is_empty() {
        return Some(word);
    }
    match (form, before) {
        (Form::Day, _) => Some("date"),
        (Form::Guid, _) => Some("id"),
        (Form::Instant | Form::Ticks, _) => Some("at"),
        (Form::Number(2), Some("year")) => Some("month"),
        (Form::Number(2), Some("month")) => Some("day"),
        (Form::Number(_), _) if texts.iter().all(|text| is_year(text)) => Some("year"),
        (Form::Number(_), _) => Some("number"),
        (Form::Escaped | Form::Text, _) => None,
    }
}

/// The values of a part: all texts of one width sort as the values do.
fn extent(form: Form, texts: &BTreeSet<&str>) -> String {
    let ends = texts.first().zip(texts.last());
    let Some((first, last)) = ends.filter(|_| matches!(form, Form::Number(_) | Form::Day)) else {
        return counted(texts.len(), VALUES);
    };
    let (first, last) = (shown(form, first), shown(form, last));
    if first == last {
        return format!("always {first}");
    }
    format!("{first} to {last}")
}

fn shown(form: Form, text: &str) -> &str {
    let without_zeros = text.trim_start_matches('0');
    match form {
        Form::Number(_) if without_zeros.is_empty() => "0",
        Form::Number(_) => without_zeros,
        _ => text,
    }
}

/// `1 value`, or `1,000 values`.
pub(super) fn counted(count: usize, [one, many]: [&str; 2]) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(count as u64)),
    }
}

pub(super) const ENTITIES: [&str; 2] = ["entity", "entities"];
const VALUES: [&str; 2] = ["value", "values"];

/// A number with commas.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
