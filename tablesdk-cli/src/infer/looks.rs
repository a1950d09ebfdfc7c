//! The description of a table in an inferred module: its kinds, and the form of their keys. This
//! file knows nothing of Rust.

use std::collections::BTreeSet;

use super::kinds::By;
use super::model::{Key, Module, Struct};
use super::template::{Form, Piece, Template};

/// A kind of entities.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KindLooks<'m> {
    /// The value of the property, or the beginning of the row keys, by which the kind is
    /// recognized. Empty if there is one kind.
    pub label: &'m str,
    /// How many entities of the sample are of the kind.
    pub entities: usize,
    of: &'m Struct,
}

/// The form of the keys of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyLooks<'m> {
    /// The template that all of them follow, if they do.
    pub template: Option<String>,
    /// The form in words.
    pub words: &'m str,
}

impl Module {
    /// The kinds of entities, in the order in which they were seen first.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = KindLooks<'_>> {
        self.structs.iter().map(|of| KindLooks {
            label: &of.label,
            entities: of.entities,
            of,
        })
    }

    /// The property that distinguishes the kinds; `None` if there is one kind.
    pub fn kinds_by(&self) -> Option<&str> {
        match &self.by {
            By::Nothing => None,
            By::Type(property) => Some(property),
            By::RowKey => Some("RowKey"),
        }
    }

    /// The number of entities that are of no kind.
    pub const fn others(&self) -> usize {
        self.others
    }

    /// The one kind of several whose entities have the property.
    pub fn only_kind(&self, property: &str) -> Option<&str> {
        if self.others > 0 || self.structs.len() < 2 || self.kinds_by() == Some(property) {
            return None;
        }
        let mut having = self.structs.iter().filter(|it| it.has(property));
        match (having.next(), having.next()) {
            (Some(only), None) => Some(&only.label),
            _ => None,
        }
    }
}

impl Struct {
    fn has(&self, property: &str) -> bool {
        let mut rest = self.rest.iter().flat_map(|rest| &rest.properties);
        self.fields.iter().any(|field| field.property == property)
            || rest.any(|(name, _)| name == property)
    }
}

impl<'m> KindLooks<'m> {
    /// The partition keys of the kind.
    pub fn partition_key(&self) -> KeyLooks<'m> {
        self.of.partition_key.looks()
    }

    /// The row keys of the kind.
    pub fn row_key(&self) -> KeyLooks<'m> {
        self.of.row_key.looks()
    }
}

impl Key {
    fn looks(&self) -> KeyLooks<'_> {
        KeyLooks {
            template: self.template_text(),
            words: &self.looks,
        }
    }
}

/// The form of keys, in words.
pub(super) fn of_keys(keys: &BTreeSet<&str>, template: Option<&Template>) -> String {
    match template.map(|it| it.pieces.as_slice()) {
        Some([Piece::Part(form)]) => of_form(*form),
        Some([Piece::Literal(_)]) => "always the same".to_owned(),
        Some(_) => "all of one form".to_owned(),
        None => of_texts(keys),
    }
}

fn of_form(form: Form) -> String {
    match form {
        Form::Number(digits) => format!("{digits} digits, padded: sorts as numbers"),
        Form::Day => "days: sorts by date".to_owned(),
        Form::Instant => "instants: sorts by time".to_owned(),
        Form::Ticks => "inverted ticks: the newest first".to_owned(),
        Form::Guid => "GUIDs: in no order of use".to_owned(),
        Form::Escaped => "text with escapes".to_owned(),
        Form::Text => "text".to_owned(),
    }
}

fn of_texts(keys: &BTreeSet<&str>) -> String {
    let is_number = |key: &&str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    let lengths: BTreeSet<_> = keys.iter().map(|key| key.len()).collect();
    match lengths.len() {
        1 if keys.len() == 1 => "always the same".to_owned(),
        1 if keys.iter().all(is_number) => "numbers of one width: sorts as numbers".to_owned(),
        _ if keys.iter().all(is_number) => "numbers without padding: 10 sorts before 9".to_owned(),
        _ => "text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tablesdk::DynamicEntity;

    use crate::infer::{Module, Sample};

    fn module(entities: impl IntoIterator<Item = DynamicEntity>) -> Module {
        let mut sample = Sample::default();
        for entity in entities {
            sample.add(&entity);
        }
        sample.module("Employees", None).expect("it reads them")
    }

    #[test]
    fn row_keys_look_like_something() {
        for (keys, template, words) in [
            (
                &["000017", "000145"][..],
                Some("{number:06}"),
                "6 digits, padded: sorts as numbers",
            ),
            (
                &["9", "10"],
                None,
                "numbers without padding: 10 sorts before 9",
            ),
            (
                &["11", "10"],
                None,
                "numbers of one width: sorts as numbers",
            ),
            (
                &["empid_01", "empid_02", "empid_10"],
                Some("empid_{empid:02}"),
                "all of one form",
            ),
            (
                &["2024-03-15", "2024-03-16"],
                Some("{date}"),
                "days: sorts by date",
            ),
            (&["Ada", "Alan"], None, "text"),
            (&["", "1"], None, "text"),
            (&[""], None, "always the same"),
        ] {
            let module = module(keys.iter().map(|key| DynamicEntity::new("p", *key)));
            let kind = module.kinds().next().expect("there is one");
            let looks = kind.row_key();
            assert_eq!((looks.template.as_deref(), looks.words), (template, words));
        }
    }

    #[test]
    fn a_property_of_one_kind_names_it() {
        let employee = |row: &str| {
            let entity = DynamicEntity::new("Sales", row).with("EntityType", "Employee");
            entity.with("Name", "Ada").with("Age", 36)
        };
        let department = DynamicEntity::new("Sales", "dept").with("EntityType", "Department");
        let department = department.with("Name", "Sales");
        let module = module([employee("1"), employee("2"), department]);
        assert_eq!(module.kinds_by(), Some("EntityType"));
        let kinds: Vec<_> = module.kinds().map(|it| (it.label, it.entities)).collect();
        assert_eq!(kinds, [("Employee", 2), ("Department", 1)]);
        assert_eq!(module.only_kind("Age"), Some("Employee"));
        assert_eq!(module.only_kind("Name"), None);
        assert_eq!(module.only_kind("EntityType"), None);
    }
}
