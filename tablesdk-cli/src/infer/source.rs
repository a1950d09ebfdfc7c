//! The text of a module, as rustfmt writes it. This file decides nothing.

use std::fmt::{self, Display, Formatter};

use super::kinds::By;
use super::model::{ENTITIES, Field, Key, Module, Struct, counted, grouped};
use super::names::identifier;
use super::properties::FieldType;
use super::template::{Form, Piece};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_imports(f)?;
        for one in &self.structs {
            writeln!(f)?;
            one.write(self, f)?;
        }
        self.write_rows(f)?;
        if self.has_numbers() {
            write!(f, "{NUMBER}")?;
        }
        Ok(())
    }
}

impl Module {
    /// Writes the description of the module, and its requirements.
    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (table, count) = (&self.table, counted_entities(self.entities));
        writeln!(
            f,
            "// The entities of the table {table}, inferred from {count}."
        )?;
        writeln!(f, "//\n// [dependencies]")?;
        writeln!(f, "// tablesdk = \"{}\"", env!("CARGO_PKG_VERSION"))?;
        if self.has_form(Form::Day) {
            writeln!(f, "// time = \"0.3\"")?;
        }
        if !self.indexes.is_empty() {
            let names = self.indexes.iter().map(|name| in_comment(name));
            let names = names.collect::<Vec<_>>().join(", ");
            writeln!(f, "//\n// The table has entries of the indexes {names}.")?;
            writeln!(f, "// Declare them by `index(…)` before you write.")?;
        }
        writeln!(f)
    }

    fn write_imports(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let has = |name: &str| {
            let fields = self.structs.iter().flat_map(|it| &it.fields);
            let mut types = fields.map(|it| it.reads.rust());
            types.any(|found| found == name)
        };
        let numbers = self.has_numbers();
        let imports = [
            ("DynamicEntity", self.others > 0),
            ("EdmType", numbers),
            ("Guid", has("Guid") || self.has_form(Form::Guid)),
            (
                "Properties",
                self.structs.iter().any(|it| it.rest.is_some()),
            ),
            ("PropertyValue", numbers),
            ("TableEntity", true),
            (
                "Timestamp",
                has("Timestamp") || self.has_form(Form::Instant) || self.has_form(Form::Ticks),
            ),
            ("Value", numbers),
        ];
        let names = imports.iter().filter(|(_, is_used)| *is_used);
        let names: Vec<_> = names.map(|(name, _)| *name).collect();
        if numbers {
            writeln!(f, "use tablesdk::entity::{{ValueError, ValueRef}};")?;
        }
        let line = match names.as_slice() {
            [one] => format!("use tablesdk::{one};"),
            _ => format!("use tablesdk::{{{}}};", names.join(", ")),
        };
        if line.len() <= LINE_MAX {
            return writeln!(f, "{line}");
        }
        // All of them fit into the line between.
        writeln!(f, "use tablesdk::{{\n    {},\n}};", names.join(", "))
    }

    fn has_form(&self, form: Form) -> bool {
        let keys = self
            .structs
            .iter()
            .flat_map(|it| [&it.partition_key, &it.row_key]);
        keys.flat_map(|key| &key.fields).any(|it| it.form == form)
    }

    fn has_numbers(&self) -> bool {
        let fields = self.structs.iter().flat_map(|it| &it.fields);
        fields.into_iter().any(|it| it.reads == FieldType::Number)
    }

    /// The enum of all kinds.
    fn write_rows(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        writeln!(f, "\n/// An entity of any kind in the table.")?;
        writeln!(f, "#[derive(Clone, Debug, PartialEq, TableEntity)]")?;
        if self.by == By::RowKey {
            writeln!(f, "#[table(by = \"row_key\")]")?;
        }
        writeln!(f, "pub enum {rows} {{")?;
        for Struct { name, entities, .. } in &self.structs {
            writeln!(
                f,
                "    /// {}.\n    {name}({name}),",
                counted_entities(*entities)
            )?;
        }
        if self.others > 0 {
            let count = counted_entities(self.others);
            writeln!(f, "    /// {count} without a type.\n    #[table(other)]")?;
            writeln!(f, "    Other(DynamicEntity),")?;
        }
        writeln!(f, "}}")
    }
}

impl Struct {
    fn write(&self, module: &Module, f: &mut Formatter<'_>) -> fmt::Result {
        let count = grouped(self.entities as u64);
        let of_all = format!("{count} of {}", counted_entities(module.entities));
        // A label may be any text. In an attribute, it is escaped.
        match &module.by {
            By::Nothing => writeln!(f, "/// {}.", counted_entities(self.entities))?,
            By::Type(property) => writeln!(f, "/// {of_all}, by {}.", in_comment(property))?,
            By::RowKey => writeln!(f, "/// {of_all}, by the row key.")?,
        }
        writeln!(f, "#[derive(Clone, Debug, PartialEq, TableEntity)]")?;
        write_attributes("", &self.attributes(module), f)?;
        writeln!(f, "pub struct {} {{", self.name)?;
        self.partition_key.write_fields("partition_key", f)?;
        self.row_key.write_fields("row_key", f)?;
        for field in &self.fields {
            field.write(self, f)?;
        }
        if let Some(rest) = &self.rest {
            writeln!(f, "    /// The properties that have no field of one type:")?;
            writeln!(f, "    ///")?;
            for (name, types) in &rest.properties {
                writeln!(f, "    /// * {}: {types}", in_comment(name))?;
            }
            writeln!(f, "    #[table(rest)]")?;
            writeln!(f, "    pub {}: Properties,", rest.name)?;
        }
        writeln!(f, "}}")
    }

    fn attributes(&self, module: &Module) -> Vec<String> {
        let mut words = Vec::new();
        if let By::Type(property) = &module.by {
            words.push(format!("entity_type = {:?}", self.label));
            if property != "EntityType" {
                words.push(format!("entity_type_property = {property:?}"));
            }
        }
        if let Some(rule) = self.rule.word() {
            words.push(format!("rename_all = {rule:?}"));
        }
        let keys = [
            ("partition_key", &self.partition_key),
            ("row_key", &self.row_key),
        ];
        for (word, key) in keys {
            if let Some(template) = key.template_text() {
                words.push(format!("{word} = {template:?}"));
            }
        }
        words
    }
}

impl Key {
    /// The template as the derive reads it.
    pub(super) fn template_text(&self) -> Option<String> {
        let template = self.template.as_ref()?;
        let mut fields = self.fields.iter();
        let pieces = template.pieces.iter().map(|piece| match piece {
            Piece::Literal(text) => text.replace('{', "{{").replace('}', "}}"),
            Piece::Part(form) => {
                let name = fields.next().map_or("", |field| field.name.as_str());
                format!("{{{name}{}}}", form.suffix())
            }
        });
        Some(pieces.collect())
    }

    fn write_fields(&self, word: &str, f: &mut Formatter<'_>) -> fmt::Result {
        for field in &self.fields {
            writeln!(f, "    /// {}", field.doc)?;
            if self.template.is_none() {
                writeln!(f, "    #[table({word})]")?;
            }
            let name = identifier(&field.name);
            writeln!(f, "    pub {name}: {},", field.form.rust())?;
        }
        Ok(())
    }
}

impl Field {
    fn write(&self, of: &Struct, f: &mut Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if of.rule.apply(&self.name) != self.property {
            words.push(format!("rename = {:?}", self.property));
        }
        if self.reads == FieldType::MixedIntegers {
            words.push("mixed_integers".to_owned());
        }
        writeln!(f, "    /// {}", self.doc)?;
        write_attributes("    ", &words, f)?;
        let (name, rust) = (identifier(&self.name), self.reads.rust());
        if self.is_optional {
            writeln!(f, "    pub {name}: Option<{rust}>,")
        } else {
            writeln!(f, "    pub {name}: {rust},")
        }
    }
}

/// One attribute with these words: in one line if rustfmt would leave it there.
fn write_attributes(indent: &str, words: &[String], f: &mut Formatter<'_>) -> fmt::Result {
    if words.is_empty() {
        return Ok(());
    }
    let line = words.join(", ");
    let width = line.chars().count();
    let max = if words.len() == 1 {
        LINE_MAX - indent.len() - "#[table()]".len()
    } else {
        WORDS_MAX
    };
    if width <= max {
        return writeln!(f, "{indent}#[table({line})]");
    }
    let lines = words.iter().map(|word| format!("{indent}    {word}"));
    let lines = lines.collect::<Vec<_>>().join(",\n");
    writeln!(f, "{indent}#[table(\n{lines}\n{indent})]")
}

/// A name in a comment, without characters that act on its reader.
fn in_comment(name: &str) -> String {
    format!("`{}`", name.escape_debug())
}

fn counted_entities(count: usize) -> String {
    counted(count, ENTITIES)
}

/// rustfmt's widths of a line, and of several words in an attribute.
const LINE_MAX: usize = 100;
const WORDS_MAX: usize = 70;

/// The type of numbers that are written as Int32 or as Double.
const NUMBER: &str = "
/// A number that is an Int32 in some entities and a Double in others. A write stores a Double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl PropertyValue for Number {
    const EDM_TYPE: EdmType = EdmType::Double;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        self.0.to_value()
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Int32(value) => Ok(Self(value.into())),
            other => f64::from_value(other).map(Self),
        }
    }
}
";
