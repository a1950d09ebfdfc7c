//! Answers of bounded size: what does not fit is cut, and the answer says so. This module knows no
//! requests.

use rmcp::model::JsonObject;
use serde_json::{Value as Json, json};
use tablesdk::{DynamicEntity, Stored};
use tablesdk_cli::lines::entity_json;

use crate::escape::{acts, harmless, harmless_json};

/// How many bytes the parts of an answer have that can be many: the text of an answer has 64 KiB at
/// most, with a token of up to 16 KiB.
pub(super) const PARTS_BYTES_MAX: usize = 46 * 1024;
/// Longer values are cut, unless they are selected.
const VALUE_CHARS_MAX: usize = 1024;
const ERROR_CHARS_MAX: usize = 4096;

/// The text of an answer: JSON, whose strings act neither on a terminal nor on the order of a text.
pub(super) fn text(mut answer: JsonObject) -> String {
    let notes = notes(&answer);
    if !notes.is_empty() {
        answer.insert("note".to_owned(), notes.join(" ").into());
    }
    harmless_json(&Json::Object(answer).to_string())
}

/// How to read what the answer does not have.
fn notes(answer: &JsonObject) -> Vec<&'static str> {
    let entities = answer.get("entities").and_then(Json::as_array);
    let entities = entities.into_iter().flatten().filter_map(Json::as_object);
    let has = |name: &str| {
        entities
            .clone()
            .chain([answer])
            .any(|it| it.contains_key(name))
    };
    let notes = [
        ("continue", "There may be more: pass \"continue\"."),
        (
            "cut",
            "\"cut\" has parts of values: get_entity with \"select\" and \"offset\" reads the rest.",
        ),
        (
            "omittedProperties",
            "Properties were omitted: \"select\" reads those that it names.",
        ),
    ];
    let notes = notes.into_iter().filter(|(name, _)| has(name));
    notes.map(|(_, note)| note).collect()
}

/// The text of an error.
pub(super) fn error(text: &str) -> String {
    let text = harmless(text);
    match text.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => {
            let shown: String = text.chars().take(ERROR_CHARS_MAX).collect();
            format!("{shown}… ({} bytes are cut)", text.len() - end)
        }
        None => text,
    }
}

/// How many bytes a value has in the text of an answer.
pub(super) fn bytes(value: &Json) -> usize {
    harmless_json(&value.to_string()).len()
}

/// The selected part of an entity.
#[derive(Clone, Copy, Default)]
pub(super) struct View<'a> {
    /// All properties, if there are none.
    pub(super) select: &'a [String],
    /// The first character of the selected value.
    pub(super) offset: Option<usize>,
}

/// An entity as an answer has it.
pub(super) struct Shown {
    pub(super) json: Json,
    pub(super) bytes: usize,
    /// The properties whose values are cut or left out.
    pub(super) cut: Vec<String>,
}

impl View<'_> {
    /// Shows an entity in at most [`PARTS_BYTES_MAX`] bytes.
    pub(super) fn of(self, entity: &Stored<DynamicEntity>) -> Shown {
        let mut members = members(entity);
        let mut shown = Parts::default();
        for key in ["PartitionKey", "RowKey", "Timestamp"] {
            if let Some(value) = members.remove(key) {
                shown.add(key, value);
            }
        }
        let of_entity = entity.properties().iter().map(|(name, _)| name);
        for name in of_entity.filter(|name| self.selects(name)) {
            let annotation = format!("{name}@odata.type");
            let annotation = members.remove(&annotation).map(|value| (annotation, value));
            if let Some(value) = members.remove(name) {
                shown.property(name, value, annotation, self);
            }
        }
        shown.finish(entity)
    }

    fn selects(self, name: &str) -> bool {
        self.select.is_empty() || self.select.iter().any(|selected| selected == name)
    }

    const fn chars_max(self) -> usize {
        if self.select.is_empty() {
            VALUE_CHARS_MAX
        } else {
            usize::MAX
        }
    }
}

/// The members of the JSON of an entity.
fn members(entity: &DynamicEntity) -> JsonObject {
    // It is what this program writes itself.
    serde_json::from_slice(&entity_json(entity)).unwrap_or_default()
}

/// The parts of an entity that is shown.
#[derive(Default)]
struct Parts {
    whole: JsonObject,
    cut: JsonObject,
    omitted: Vec<String>,
    bytes: usize,
}

impl Parts {
    fn add(&mut self, name: &str, value: Json) {
        self.bytes += member_bytes(name, &value);
        self.whole.insert(name.to_owned(), value);
    }

    fn property(
        &mut self,
        name: &str,
        value: Json,
        annotation: Option<(String, Json)>,
        view: View<'_>,
    ) {
        let text = value.as_str();
        let is_cut = text.is_some_and(|text| {
            view.offset.is_some() || text.chars().nth(view.chars_max()).is_some()
        });
        let annotated = annotation
            .iter()
            .map(|(name, value)| member_bytes(name, value));
        let bytes = member_bytes(name, &value) + annotated.sum::<usize>();
        if !is_cut && self.bytes + bytes <= ENTITY_BYTES_MAX {
            self.add(name, value);
            if let Some((name, value)) = annotation {
                self.add(&name, value);
            }
            return;
        }
        match text {
            Some(text) => self.cut(name, text, view),
            None => self.omitted.push(name.to_owned()),
        }
    }

    /// Shows a part of a text, if there is room for any.
    fn cut(&mut self, name: &str, text: &str, view: View<'_>) {
        let offset = view.offset.unwrap_or_default();
        let frame = json!({"text": "", "offset": offset, "characters": text.chars().count()});
        let frame_bytes = member_bytes(name, &frame);
        let Some(left) = ENTITY_BYTES_MAX.checked_sub(self.bytes + frame_bytes) else {
            self.omitted.push(name.to_owned());
            return;
        };
        let mut bytes = 0;
        let chars = text.chars().skip(offset).take(view.chars_max());
        let part: String = chars
            .take_while(|character| {
                bytes += character_bytes(*character);
                bytes <= left
            })
            .collect();
        self.bytes += frame_bytes + part.chars().map(character_bytes).sum::<usize>();
        let mut frame = frame;
        if let Some(text) = frame.get_mut("text") {
            *text = part.into();
        }
        self.cut.insert(name.to_owned(), frame);
    }

    fn finish(self, entity: &Stored<DynamicEntity>) -> Shown {
        let mut json = JsonObject::new();
        let mut add = |name: &str, value| json.insert(name.to_owned(), value);
        let cut = self.cut.keys().chain(&self.omitted).cloned().collect();
        add("etag", entity.etag().as_str().into());
        add("entity", self.whole.into());
        if !self.cut.is_empty() {
            add("cut", self.cut.into());
        }
        if !self.omitted.is_empty() {
            add("omittedProperties", self.omitted.len().into());
        }
        let json = Json::Object(json);
        Shown {
            bytes: bytes(&json),
            json,
            cut,
        }
    }
}

/// A name and its value, with what stands around them.
fn member_bytes(name: &str, value: &Json) -> usize {
    bytes(&name.into()) + bytes(value) + 2
}

/// How many bytes a character takes in a string of JSON, or more.
fn character_bytes(character: char) -> usize {
    match character {
        '"' | '\\' => 2,
        _ if acts(character) => 6,
        _ => character.len_utf8(),
    }
}

/// Its properties; the rest is for the ETag and the names of the parts.
const ENTITY_BYTES_MAX: usize = PARTS_BYTES_MAX - 1024;
