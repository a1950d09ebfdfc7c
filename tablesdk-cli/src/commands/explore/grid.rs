//! The grid of a page of entities: a table with a column for each property.

use std::collections::HashMap;

use maud::{Markup, html};
use tablesdk::{DynamicEntity, EdmType, Stored, Value};
use tablesdk_cli::own::Kept;

use super::staged::{Becomes, Mark, Marks, Selected};
use super::url;
use crate::escape::{harmless, shortened};
use crate::show::{Names, cell};

/// A page of entities, with the columns that are shown.
pub(super) struct Grid<'g> {
    table: &'g str,
    entities: &'g [Stored<DynamicEntity>],
    marks: Marks,
    columns: Vec<Column>,
    /// The further properties that the entities have.
    hidden: Vec<String>,
}

/// A property of the entities.
struct Column {
    name: String,
    kind: Kind,
    /// Characters of the longest cell, up to a limit.
    chars: usize,
    /// The width that was chosen.
    width: Option<u16>,
}

/// The types of the values of a column.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Unseen,
    One(EdmType),
    Mixed,
}

impl<'g> Grid<'g> {
    /// The columns are the chosen ones in their order, or all properties in the order in which they
    /// are seen first.
    pub(super) fn new(
        table: &'g str,
        entities: &'g [Stored<DynamicEntity>],
        chosen: &[String],
        width: impl Fn(&str) -> Option<u16>,
        marks: Marks,
    ) -> Self {
        let mut names = Names::default();
        let seen = names.of(entities);
        let shown = match chosen {
            [] => seen,
            chosen => chosen,
        };
        let shown: Vec<_> = shown.iter().take(COLUMNS_MAX).collect();
        let mut columns: Vec<_> = shown
            .iter()
            .map(|name| Column::new(name, width(name)))
            .collect();
        let positions: HashMap<_, _> = shown
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), at))
            .collect();
        for entity in entities {
            for (name, value) in entity.properties().iter() {
                let column = positions.get(name).and_then(|at| columns.get_mut(*at));
                if let Some(column) = column {
                    column.note(value);
                }
            }
        }
        let hidden = seen
            .iter()
            .filter(|name| !positions.contains_key(name.as_str()));
        Self {
            table,
            entities,
            hidden: hidden.cloned().collect(),
            marks,
            columns,
        }
    }

    /// The names of the properties that are shown.
    pub(super) fn shown(&self) -> Vec<String> {
        self.columns
            .iter()
            .map(|column| column.name.clone())
            .collect()
    }

    /// The names of the properties of the entities that are not shown.
    pub(super) fn hidden(&self) -> &[String] {
        &self.hidden
    }

    pub(super) fn show(&self) -> Markup {
        let keys = ["PartitionKey", "RowKey"];
        let key_chars = [
            self.chars(DynamicEntity::partition_key),
            self.chars(DynamicEntity::row_key),
        ];
        let columns = html! {
            colgroup {
                col width="30";
                @for chars in key_chars { col width=(width(chars, 0)); }
                @for column in &self.columns { col width=(column.width()); }
                col;
            }
        };
        let first = self.entities.len().min(ROWS_FIRST);
        let (first, more) = self.entities.split_at(first);
        html! {
            table.grid #grid data-table=(self.table) {
                caption.hidden { "Entities of " (self.table) }
                (columns)
                thead {
                    tr {
                        th.pick scope="col" { input type="checkbox" aria-label="Select all" data-all; }
                        @for name in keys { th.key scope="col" { (name) } }
                        @for column in &self.columns { (column.heading()) }
                        th aria-hidden="true" {}
                    }
                }
                tbody { @for entity in first { (self.row(entity)) } }
            }
            // The script moves these rows into the table while nothing else waits. A browser is
            // slow with many cells at once.
            @if !more.is_empty() {
                noscript #more {
                    table.grid {
                        (columns)
                        tbody { @for entity in more { (self.row(entity)) } }
                    }
                }
            }
        }
    }

    fn chars(&self, key: impl Fn(&DynamicEntity) -> &str) -> usize {
        let chars = self
            .entities
            .iter()
            .map(|entity| key(entity).chars().count());
        chars
            .max()
            .unwrap_or_default()
            .clamp(KEY_CHARS_MIN, CHARS_MAX)
    }

    fn row(&self, entity: &Stored<DynamicEntity>) -> Markup {
        let (partition, row) = (entity.partition_key(), entity.row_key());
        let kept = Kept::of(entity);
        let picked = Selected::text(partition, row, entity.etag());
        let mark = self.marks.of(partition, row);
        let is_deleted = mark.is_some_and(|it| it.is_delete);
        html! {
            tr.kept[kept.is_some()].changes[mark.is_some()].deleted[is_deleted] title=[kept.as_ref().map(ToString::to_string)] {
                td.pick { input type="checkbox" name="key" form="picked" value=(picked) aria-label={ "Select " (shown(row)) }; }
                td.key { (shown(partition)) }
                td.key { a href=(url::entity(self.table, partition, row)) { (shown(row)) } }
                @for column in &self.columns { (column.cell(entity, mark)) }
                td {}
            }
        }
    }
}

impl Column {
    fn new(name: &str, width: Option<u16>) -> Self {
        Self {
            name: name.to_owned(),
            kind: Kind::Unseen,
            chars: CHARS_MIN,
            width,
        }
    }

    fn width(&self) -> usize {
        let heading = self.name.chars().count() + LABEL_CHARS;
        self.width
            .map_or_else(|| width(self.chars, heading.min(CHARS_MAX)), usize::from)
    }

    fn note(&mut self, value: &Value) {
        let of_value = value.edm_type();
        self.kind = match self.kind {
            Kind::Unseen => Kind::One(of_value),
            Kind::One(known) if known == of_value => self.kind,
            Kind::One(_) | Kind::Mixed => Kind::Mixed,
        };
        let chars = match value {
            Value::String(text) => text.len().min(CHARS_MAX),
            Value::Binary(_) => CHARS_MAX / 2,
            value => cell(value).len(),
        };
        self.chars = self.chars.max(chars).min(CHARS_MAX);
    }

    /// A cell with a value that is to be written.
    fn staged(&self, entity: &DynamicEntity, becomes: Becomes<'_>) -> Markup {
        let title = stored(entity.properties().get(&self.name));
        let Becomes::Value(value) = becomes else {
            return html! { td.absent.staged title=(title) aria-label="to be removed" {} };
        };
        let is_number = matches!(value, Value::Double(_) | Value::Int32(_) | Value::Int64(_));
        html! {
            td.staged.number[is_number] title=(title) { (shortened(&cell(value), CELL_CHARS_MAX)) }
        }
    }

    fn heading(&self) -> Markup {
        let (label, kind) = match self.kind {
            Kind::Unseen => ("", ""),
            Kind::One(edm_type) => (label(edm_type), edm_type.as_str()),
            Kind::Mixed => ("mixed", "several types"),
        };
        html! {
            th scope="col" data-name=(self.name) data-type=(kind) title={ (harmless(&self.name)) " " (kind) } {
                (harmless(&self.name)) " " small { (label) }
            }
        }
    }

    fn cell(&self, entity: &DynamicEntity, mark: Option<&Mark>) -> Markup {
        if let Some(staged) = mark.and_then(|it| it.difference.of_property(&self.name)) {
            return self.staged(entity, staged);
        }
        let Some(value) = entity.properties().get(&self.name) else {
            return html! { td.absent aria-label="absent" {} };
        };
        let text = shortened(&cell(value), CELL_CHARS_MAX);
        match value {
            Value::Double(_) | Value::Int32(_) | Value::Int64(_) => html! { td.number { (text) } },
            Value::String(value) if value.is_empty() => html! { td.empty { (text) } },
            Value::String(_) => html! { td { (text) } },
            _ => html! { td.mono { (text) } },
        }
    }
}

/// The title of a staged cell, with the stored value.
fn stored(value: Option<&Value>) -> String {
    match value {
        Some(value) => format!(
            "staged; stored is {}",
            shortened(&cell(value), CELL_CHARS_MAX)
        ),
        None => "staged; nothing is stored".to_owned(),
    }
}

/// A key in a cell. The empty one differs from an absent value.
fn shown(key: &str) -> String {
    match key {
        "" => "\"\"".to_owned(),
        key => shortened(&harmless(key), CELL_CHARS_MAX),
    }
}

/// The width of a column in pixels, for cells and a heading of so many characters.
fn width(chars: usize, heading: usize) -> usize {
    22 + (chars * 15 / 2).max(heading * 17 / 2)
}

/// A type in the heading of a column.
pub(super) const fn label(edm_type: EdmType) -> &'static str {
    match edm_type {
        EdmType::Binary => "bin",
        EdmType::Boolean => "bool",
        EdmType::DateTime => "date",
        EdmType::Double => "f64",
        EdmType::Guid => "guid",
        EdmType::Int32 => "i32",
        EdmType::Int64 => "i64",
        EdmType::String => "str",
    }
}

/// How many rows are in the table at once: more than a screen has.
const ROWS_FIRST: usize = 30;
/// How many columns a page shows unless they are chosen: a browser is slow with more.
pub(super) const COLUMNS_MAX: usize = 60;
/// The characters of a value in a cell. The entity's own page has all.
const CELL_CHARS_MAX: usize = 160;
const CHARS_MIN: usize = 6;
const CHARS_MAX: usize = 34;
const KEY_CHARS_MIN: usize = 14;
/// Room for the type in a heading.
const LABEL_CHARS: usize = 5;
