//! The form of one entity: its properties with their types, or its JSON. It shows what is staged,
//! and what is wrong with a text.

use maud::{Markup, html};
use tablesdk::{DynamicEntity, ETag, EdmType, Properties, Value};
use tablesdk_cli::own::Kept;

use super::app::App;
use super::pages::copy;
use super::posted::Posted;
use super::recipe;
use super::staged::{
    ABSENT, Difference, Entry, Field, FieldError, Fixed, State, UNCHANGED, base_text, editable,
    json_of, rule,
};
use super::url;
use crate::escape::{harmless, key, shortened};
use crate::guard::Refusal;
use crate::show::cell;

/// The content of a form.
pub(super) struct EntityForm<'f> {
    pub(super) app: &'f App,
    pub(super) table: &'f str,
    pub(super) keys: (String, String),
    /// True if the entity is not stored yet.
    pub(super) is_new: bool,
    pub(super) texts: Texts,
    /// The version that the form is made of; for a new entity, the one that it is a copy of.
    pub(super) base: Option<DynamicEntity>,
    pub(super) etag: Option<ETag>,
    /// The staged change of the entity.
    pub(super) staged: Option<Entry>,
    pub(super) errors: Vec<FieldError>,
    /// Why the change needs to be forced.
    pub(super) refusals: Vec<Refusal>,
    pub(super) is_forced: bool,
    /// True if the stored version differs from that of the staged change.
    pub(super) is_stale: bool,
}

/// The texts that a person changes.
pub(super) enum Texts {
    Fields(Vec<Field>),
    Json(String),
}

impl Texts {
    /// The fields of an entity. Its JSON if that was asked for, or if a value that fields cannot
    /// hold differs from that of the version that was read.
    pub(super) fn of(entity: &DynamicEntity, base: Option<&DynamicEntity>, is_json: bool) -> Self {
        let known = base.map(DynamicEntity::properties);
        let is_lost = |(name, value): (&str, &Value)| {
            editable(value).is_err() && known.and_then(|it| it.get(name)) != Some(value)
        };
        if is_json || entity.properties().iter().any(is_lost) {
            return Self::Json(json_of(entity, None));
        }
        let fields = entity.properties().iter().map(|(name, value)| {
            let (edm_type, text) = match editable(value) {
                Ok(text) => (value.edm_type().as_str(), text),
                Err(_) => (UNCHANGED, String::new()),
            };
            Field {
                name: name.to_owned(),
                edm_type: edm_type.to_owned(),
                text,
            }
        });
        let mut fields: Vec<_> = fields.collect();
        // What is to be removed stays to be seen.
        let removed = known.into_iter().flat_map(Properties::iter);
        let removed = removed.filter(|(name, _)| entity.properties().get(name).is_none());
        fields.extend(removed.map(|(name, value)| Field {
            name: name.to_owned(),
            edm_type: ABSENT.to_owned(),
            text: editable(value).unwrap_or_default(),
        }));
        Self::Fields(fields)
    }

    /// The texts that were sent. `None` if the form is not complete.
    pub(super) fn posted(posted: &Posted) -> Option<Self> {
        if posted.get("view") == "json" {
            return Some(Self::Json(posted.get("json").to_owned()));
        }
        let [names, types, texts] =
            ["name", "type", "value"].map(|name| posted.all(name).collect::<Vec<_>>());
        if names.len() != types.len() || names.len() != texts.len() {
            return None;
        }
        let fields = names.into_iter().zip(types).zip(texts);
        let fields = fields.map(|((name, edm_type), text)| Field {
            name: name.to_owned(),
            edm_type: edm_type.to_owned(),
            text: text.to_owned(),
        });
        Some(Self::Fields(fields.collect()))
    }
}

impl EntityForm<'_> {
    pub(super) fn show(&self) -> Markup {
        let (partition, row) = (&*self.keys.0, &*self.keys.1);
        let action = self.action();
        let (is_json, may_write) = (
            matches!(self.texts, Texts::Json(_)),
            self.app.rights.refusal().is_none(),
        );
        html! {
            form.entity.kept[self.kept().is_some()] #entity method="post" action=(action) autocomplete="off" data-staged=[self.staged.as_ref().map(|it| it.change.name())] {
                (self.app.gate.token_field())
                input type="hidden" name="view" value=(if is_json { "json" } else { "fields" });
                @if let Some(base) = &self.base {
                    input type="hidden" name="base" value=(base_text(base, self.etag.as_ref()));
                }
                @if let Some(entry) = &self.staged { input type="hidden" name="staged" value=(entry.id); }
                // The Enter key presses the first button.
                @if may_write { button.hidden name="action" value=(if self.is_new { "insert" } else { "merge" }) tabindex="-1" aria-hidden="true" {} }
                (self.head(is_json))
                (self.notes())
                fieldset.plain disabled[!may_write] {
                    legend.hidden { "Properties" }
                    @if self.is_new { (self.keys()) } @else {
                        input type="hidden" name="pk" value=(partition);
                        input type="hidden" name="rk" value=(row);
                    }
                    @match &self.texts {
                        Texts::Json(json) => (json_field(json)),
                        Texts::Fields(fields) => (self.fields(fields)),
                    }
                }
                @if may_write { (self.buttons()) } @else { (read_only(self.app)) }
            }
        }
    }

    /// The URL that takes what is sent.
    fn action(&self) -> String {
        if self.is_new {
            return url::new_entity(self.table);
        }
        url::entity(self.table, &self.keys.0, &self.keys.1)
    }

    /// The URL of the form.
    fn url(&self) -> String {
        match (&self.staged, &self.base) {
            _ if !self.is_new => url::entity(self.table, &self.keys.0, &self.keys.1),
            // The keys of the form may be others.
            (Some(entry), _) => {
                let target = &entry.change.target;
                url::entity(self.table, &target.partition, &target.row)
            }
            (None, Some(copied)) => {
                url::clone_of(self.table, copied.partition_key(), copied.row_key())
            }
            (None, None) => url::new_entity(self.table),
        }
    }

    fn head(&self, is_json: bool) -> Markup {
        let (partition, row) = (&*self.keys.0, &*self.keys.1);
        let with = |view: &str| {
            let url = self.url();
            let joint = if url.contains('?') { "&" } else { "?" };
            format!("{url}{joint}view={view}")
        };
        html! {
            header {
                div.title {
                    h2 tabindex="-1" {
                        @if self.is_new { "New entity" } @else { (shortened(&harmless(row), TITLE_MAX)) }
                    }
                    (self.pills())
                    div.end.tools {
                        @if is_json { a.button.quiet href=(with("fields")) { "Properties" } }
                        @else { a.button.quiet href=(with("json")) { "JSON" } }
                        @if !self.is_new && self.app.rights.refusal().is_none() {
                            a.button.quiet href=(url::clone_of(self.table, partition, row)) { "Clone" }
                        }
                        @if !self.is_new { (self.copies()) }
                        a.button.quiet.close href=(self.app.tables.last(self.table)) aria-label="Close" title="Close (Escape)" { "✕" }
                    }
                }
                @if !self.is_new {
                    div.mono.muted { (key(partition, row)) }
                    @if let Some(etag) = &self.etag { div.mono.muted { (harmless(etag.as_str())) } }
                }
            }
        }
    }

    /// The stored entity as texts for elsewhere.
    fn copies(&self) -> Markup {
        let (partition, row) = &self.keys;
        let table = self.app.service.table(self.table);
        let rust = recipe::rust_entity(self.table, partition, row);
        let curl = recipe::curl_entity(&table, partition, row).unwrap_or_default();
        let json = self.base.as_ref();
        let json = json.map(|base| base_text(base, self.etag.as_ref()));
        let json = json.unwrap_or_default();
        let summary = html! { summary.button.quiet aria-label="Copy" title="Copy" { "⋯" } };
        let texts = [("Rust", &*rust), ("curl", &*curl), ("JSON", &*json)];
        copy::menu("inset", &summary, "copy", &texts)
    }

    fn pills(&self) -> Markup {
        html! {
            @if let Some(kept) = self.kept() { span.pill.warn title=(harmless(&kept.to_string())) { "kept by the library" } }
            @if let Some(entry) = &self.staged {
                span.pill.staged { "staged " (entry.change.name()) }
                @if matches!(entry.state, State::Conflict(_) | State::Unknown(..)) { a.pill.bad href="/review" { "needs a decision" } }
            }
        }
    }

    fn kept(&self) -> Option<Kept> {
        self.base
            .as_ref()
            .filter(|_| !self.is_new)
            .and_then(Kept::of)
    }

    /// The errors and warnings of the form.
    fn notes(&self) -> Markup {
        let whole = self.errors.iter().filter(|it| it.name.is_none());
        let is_removal = self.staged.as_ref().is_some_and(|entry| {
            entry.change.name() == "replace" && !entry.change.difference().removed.is_empty()
        });
        html! {
            @if !self.errors.is_empty() {
                div.note.bad role="alert" {
                    strong { "Nothing is staged." }
                    @for error in whole { p { (error.problem) } }
                }
            }
            @if self.is_stale { p.note.warn role="alert" { "Another client has written this entity since. The staged change rests on the version before, and will meet a conflict." } }
            @if is_removal { p.note { "A merge cannot remove a property: this change replaces all of them." } }
            @if let (Some(entry), true) = (&self.staged, self.app.rights.refusal().is_none()) {
                p.note { "This " (entry.change.name()) " is staged, and not sent. " button.link name="id" value=(entry.id) formaction="/review/discard" { "Discard it" } }
            }
            (self.switch())
        }
    }

    /// The switch without which an entity of the library is not written.
    fn switch(&self) -> Markup {
        let kept = self.kept();
        if kept.is_none() && self.refusals.is_empty() {
            return html! {};
        }
        html! {
            div.note.warn role="alert" {
                @for refusal in &self.refusals {
                    p { (refusal.problem) ": nothing is staged. To write it anyway, tick the box; then " (refusal.mend) "." }
                }
                @if let (Some(kept), true) = (&kept, self.refusals.is_empty()) {
                    p { "This is " (harmless(&kept.to_string())) ", which the library keeps in step with other entities. After a write by hand, " (harmless(kept.mend())) "." }
                }
                label { input type="checkbox" name="force" value="1" checked[self.is_forced]; " Write it anyway" }
            }
        }
    }

    fn keys(&self) -> Markup {
        let (partition, row) = (&*self.keys.0, &*self.keys.1);
        // A copy needs another row key. What is wrong goes first.
        let first = match &self.base {
            _ if !self.errors.is_empty() => "",
            Some(_) => "rk",
            None => "pk",
        };
        html! {
            @if let Texts::Fields(_) = &self.texts {
                @for (name, label, value) in [("pk", "PartitionKey", partition), ("rk", "RowKey", row)] {
                    label.property.of-key {
                        span.name { (label) }
                        span.type { "String" }
                        input.key.mono name=(name) value=(value) spellcheck="false" autofocus[name == first];
                    }
                }
            }
        }
    }

    fn fields(&self, fields: &[Field]) -> Markup {
        let change = self.staged.as_ref().map(|entry| &entry.change);
        let wanted = Wanted {
            difference: change.map(|it| it.difference()).unwrap_or_default(),
            entity: change
                .and_then(|it| it.wanted())
                .or_else(|| self.base.clone()),
        };
        let has = |entity: &Option<DynamicEntity>, name: &str| {
            let properties = entity.as_ref().map(DynamicEntity::properties);
            properties.is_some_and(|it| it.get(name).is_some())
        };
        let is_known =
            |field: &&Field| has(&self.base, &field.name) || has(&wanted.entity, &field.name);
        let (known, new): (Vec<_>, Vec<_>) = fields.iter().partition(is_known);
        let is_blank = |field: &Field| field.name.is_empty() && field.text.is_empty();
        let new: Vec<_> = new.into_iter().filter(|it| !is_blank(it)).collect();
        let blank = Field::default();
        html! {
            @for (at, field) in known.into_iter().enumerate() { (self.property(at, field, &wanted)) }
            details.more open[self.is_new || !new.is_empty()] {
                summary.link { "+ property" }
                @for (at, field) in new.into_iter().enumerate() { (new_property(at, field, self.problem(field))) }
                @for at in 0..NEW_PROPERTIES { (new_property(at, &blank, None)) }
            }
        }
    }

    fn problem(&self, field: &Field) -> Option<&FieldError> {
        let mut errors = self.errors.iter();
        errors.find(|it| it.name.as_deref() == Some(&field.name))
    }

    fn property(&self, at: usize, field: &Field, wanted: &Wanted) -> Markup {
        let base = self.base.as_ref().filter(|_| !self.is_new);
        let stored = base.and_then(|it| it.properties().get(&field.name));
        let fixed = stored.or_else(|| self.base.as_ref()?.properties().get(&field.name));
        let name = harmless(&field.name);
        let problem = self.problem(field);
        let described = problem.map(|_| format!("wrong-{at}"));
        let is_staged = wanted.difference.of_property(&field.name).is_some();
        let value = wanted.entity.as_ref();
        let value = value.and_then(|it| it.properties().get(&field.name));
        let in_grid = value
            .map(|value| shortened(&cell(value), CELL_MAX))
            .unwrap_or_default();
        let shown = fixed
            .map(|value| shortened(&cell(value), FIXED_MAX))
            .unwrap_or_default();
        // A text of the form would take the place of the value.
        let is_fixed = matches!(&*field.edm_type, UNCHANGED | ABSENT);
        let fixed = fixed.filter(|_| is_fixed);
        let reason = fixed.and_then(|value| editable(value).err());
        html! {
            div.property.staged[is_staged].wrong[problem.is_some()] data-name=(field.name) data-shown=(in_grid) {
                span.name title=(name) { (name) }
                input type="hidden" name="name" value=(field.name);
                (types(field, &name, fixed.filter(|_| reason.is_some())))
                @if let Some(reason) = reason {
                    input type="hidden" name="value" value="";
                    span.fixed.mono title=(why(reason)) { (shown) " " small { (why(reason)) } }
                } @else {
                    (text(field, &name, described.as_deref()))
                }
                @if let Some(problem) = problem { p.problem id=[&described] role="alert" { (problem.problem) } }
            }
        }
    }

    fn buttons(&self) -> Markup {
        html! {
            footer.actions {
                @if self.is_new {
                    button.button.primary name="action" value="insert" { "Stage insert" }
                } @else {
                    button.button.primary name="action" value="merge" { "Stage merge" }
                    button.button name="action" value="replace" { "Stage replace" }
                }
                span.end {}
                @if !self.is_new { button.button.quiet.danger name="action" value="delete" { "Stage delete" } }
            }
        }
    }
}

/// The effect of the staged change.
struct Wanted {
    difference: Difference,
    /// The entity as it is to be.
    entity: Option<DynamicEntity>,
}

/// The types that a value may have, or only its own if the form cannot hold it. The last one
/// removes the property.
fn types(field: &Field, name: &str, fixed: Option<&Value>) -> Markup {
    html! {
        select.type name="type" aria-label={ "Type of " (name) } {
            @if let Some(value) = fixed {
                option value=(UNCHANGED) selected[field.edm_type == UNCHANGED] { (short(value.edm_type())) }
            } @else {
                @for edm_type in TYPES {
                    option value=(edm_type.as_str()) selected[edm_type.as_str() == field.edm_type] title=(rule(edm_type)) { (short(edm_type)) }
                }
            }
            option value=(ABSENT) selected[field.edm_type == ABSENT] { "– remove" }
        }
    }
}

/// The text of a value; with the id of what is wrong with it.
fn text(field: &Field, name: &str, problem: Option<&str>) -> Markup {
    let label = format!("Value of {name}");
    let invalid = problem.map(|_| "true");
    let lines = field
        .text
        .lines()
        .count()
        .max(field.text.len() / LINE_MAX + 1);
    html! {
        @if lines > 1 || field.text.contains('\n') {
            // A browser leaves out the first end of a line.
            textarea.mono name="value" aria-label=(label) rows=(lines.clamp(2, ROWS_MAX)) spellcheck="false" aria-invalid=[invalid] aria-describedby=[problem] autofocus[problem.is_some()] { "\n" (field.text) }
        } @else {
            input.mono name="value" value=(field.text) aria-label=(label) spellcheck="false" aria-invalid=[invalid] aria-describedby=[problem] autofocus[problem.is_some()];
        }
    }
}

fn new_property(at: usize, field: &Field, problem: Option<&FieldError>) -> Markup {
    let described = problem.map(|_| format!("wrong-new-{at}"));
    let chosen = match &*field.edm_type {
        "" => EdmType::String.as_str(),
        edm_type => edm_type,
    };
    html! {
        div.property.wrong[problem.is_some()] {
            input.name name="name" value=(field.name) placeholder="name" aria-label="Name of a new property" spellcheck="false";
            select.type name="type" aria-label="Type of the new property" {
                @for edm_type in TYPES {
                    option value=(edm_type.as_str()) selected[edm_type.as_str() == chosen] title=(rule(edm_type)) { (short(edm_type)) }
                }
            }
            (text(field, "the new property", described.as_deref()))
            @if let Some(problem) = problem { p.problem id=[&described] role="alert" { (problem.problem) } }
        }
    }
}

fn json_field(json: &str) -> Markup {
    html! {
        label.hidden for="json" { "JSON of the entity" }
        textarea.mono.json #json name="json" rows="24" spellcheck="false" { "\n" (json) }
    }
}

fn read_only(app: &App) -> Markup {
    html! {
        footer.actions {
            span.pill.warn { "read only" }
            span.muted { (app.rights.refusal().unwrap_or_default()) }
        }
    }
}

/// Why a field has no text to change.
const fn why(fixed: Fixed) -> &'static str {
    match fixed {
        Fixed::Long => "long: change it as JSON",
        Fixed::Acts => "with control characters: change it as JSON",
    }
}

fn short(edm_type: EdmType) -> &'static str {
    edm_type.as_str().trim_start_matches("Edm.")
}

const TYPES: [EdmType; 8] = [
    EdmType::String,
    EdmType::Int32,
    EdmType::Int64,
    EdmType::Double,
    EdmType::Boolean,
    EdmType::DateTime,
    EdmType::Guid,
    EdmType::Binary,
];
/// How many properties can be added at once.
const NEW_PROPERTIES: usize = 3;
/// Longer texts have a field of several lines.
const LINE_MAX: usize = 80;
const ROWS_MAX: usize = 6;
const FIXED_MAX: usize = 60;
const TITLE_MAX: usize = 60;
/// As many characters as a cell of the grid has.
const CELL_MAX: usize = 160;
