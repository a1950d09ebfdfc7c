//! The texts of a form, and the entity that they are. An error names the property, its type and the
//! rule of the type.

use std::collections::HashSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tablesdk::{DynamicEntity, ETag, EdmType, Properties, Value};
use tablesdk_cli::lines::Line;
use tablesdk_cli::own::AsStored;
use tablesdk_cli::records::{ReadOptions, Records, typed_value};
use tablesdk_protocol::check_property_name;
use tablesdk_protocol::wire::json::{EntityWriter, PropertyProblem};

use super::change::Target;
use crate::escape::{acts, harmless, harmless_json, shortened};

/// One property of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// A type such as `Edm.Int64`, [`ABSENT`] or [`UNCHANGED`].
    pub(crate) edm_type: String,
    pub(crate) text: String,
}

/// The type of a property that is removed.
pub(crate) const ABSENT: &str = "absent";
/// The type of a property whose value is not in the form.
pub(crate) const UNCHANGED: &str = "unchanged";

/// Why a form is no entity. Without a name, it is about the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) name: Option<String>,
    pub(crate) problem: String,
}

impl FieldError {
    fn of(name: &str, problem: String) -> Self {
        let name = Some(name.to_owned());
        Self { name, problem }
    }

    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self {
            name: None,
            problem: harmless(&problem.into()),
        }
    }
}

/// Why a value has no text that a form can change: the JSON of the entity has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// It is too long.
    Long,
    /// Some of its characters would act on the page, or would not come back.
    Acts,
}

/// The text of a value in a form.
pub(crate) fn editable(value: &Value) -> Result<String, Fixed> {
    let text = match value {
        Value::Binary(bytes) => STANDARD.encode(bytes),
        Value::Boolean(value) => value.to_string(),
        Value::DateTime(value) => value.to_string(),
        Value::Double(value) if value.is_infinite() => {
            let sign = if *value < 0.0 { "-" } else { "" };
            format!("{sign}Infinity")
        }
        // The digits that read back, and NaN.
        Value::Double(value) => format!("{value:?}"),
        Value::Guid(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::String(text) => text.clone(),
    };
    // A browser sends each end of a line as CR and LF.
    if text.chars().any(|c| acts(c) && c != '\n' && c != '\t') {
        return Err(Fixed::Acts);
    }
    if text.len() > TEXT_MAX {
        return Err(Fixed::Long);
    }
    Ok(text)
}

/// The entity of a form. What the form does not contain is as in the version that was read.
pub(crate) fn entity_of_fields(
    (partition, row): (&str, &str),
    fields: &[Field],
    base: Option<&DynamicEntity>,
) -> Result<DynamicEntity, Vec<FieldError>> {
    let none = Properties::new();
    let base = base.map_or(&none, DynamicEntity::properties);
    let mut entity = DynamicEntity::new(partition, row);
    let (mut seen, mut errors) = (HashSet::new(), Vec::new());
    for field in fields {
        // The empty line for a new property.
        if field.name.is_empty() && field.text.is_empty() {
            continue;
        }
        if !seen.insert(&*field.name) {
            let problem = "a property is there at most once".to_owned();
            errors.push(FieldError::of(&field.name, problem));
            continue;
        }
        match field.value(base) {
            Ok(Some(value)) => drop(entity.properties_mut().set(&field.name, value)),
            Ok(None) => {}
            Err(problem) => errors.push(FieldError::of(&field.name, problem)),
        }
    }
    // The page of a form may have ended early.
    for (name, value) in base.iter().filter(|(name, _)| !seen.contains(name)) {
        entity.properties_mut().set(name, value.clone());
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    check(&entity).map_err(|error| vec![error])?;
    Ok(entity)
}

impl Field {
    fn value(&self, base: &Properties) -> Result<Option<Value>, String> {
        check_property_name(&self.name).map_err(|problem| {
            let name = shortened(&harmless(&self.name), SHOWN_MAX);
            format!("{name:?} cannot be the name of a property: {problem}")
        })?;
        match &*self.edm_type {
            ABSENT => Ok(None),
            UNCHANGED => Ok(base.get(&self.name).cloned()),
            edm_type => self.typed(edm_type).map(Some),
        }
    }

    fn typed(&self, edm_type: &str) -> Result<Value, String> {
        let lines = self.text.replace("\r\n", "\n");
        let text = match edm_type {
            STRING => &*lines,
            _ => lines.trim(),
        };
        if edm_type == DATE_TIME && is_cut(text) {
            return Err(cut(text));
        }
        typed_value(edm_type, text).map_err(|problem| {
            let known = edm_type.parse::<EdmType>().ok();
            let text = shortened(&harmless(text), SHOWN_MAX);
            match (problem, known) {
                (PropertyProblem::Mismatch { .. }, Some(known)) => {
                    format!("{text:?} is no {edm_type}, which is {}", rule(known))
                }
                (problem, Some(known)) => {
                    format!("{text:?}: {problem}. {edm_type} is {}", rule(known))
                }
                (_, None) => {
                    let edm_type = shortened(&harmless(edm_type), SHOWN_MAX);
                    format!("{edm_type:?} is not one of the eight types, such as Edm.String")
                }
            }
        })
    }
}

/// Returns true if a time is more exact than a stored one, which has seven digits of a second.
fn is_cut(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |it| it.1);
    let digits = fraction.chars().take_while(char::is_ascii_digit);
    digits.skip(7).any(|digit| digit != '0')
}

fn cut(text: &str) -> String {
    let text = shortened(&harmless(text), SHOWN_MAX);
    let rule = rule(EdmType::DateTime);
    format!("{text:?} has more than seven digits of a second. Edm.DateTime is {rule}")
}

/// The form of the values of a type, in words.
pub(crate) const fn rule(edm_type: EdmType) -> &'static str {
    match edm_type {
        EdmType::Binary => "bytes in Base64, such as 3q2+7w==",
        EdmType::Boolean => "true or false",
        EdmType::DateTime => {
            "a time in UTC from the year 1601 on, such as 2024-02-29T12:34:56.1234567Z"
        }
        EdmType::Double => "a number such as 1.5 or -1e-7, or NaN, Infinity, -Infinity",
        EdmType::Guid => "a GUID, such as c9da6455-213d-42c9-9a79-3e9149a57833",
        EdmType::Int32 => "an integer from -2147483648 to 2147483647",
        EdmType::Int64 => "an integer from -9223372036854775808 to 9223372036854775807",
        EdmType::String => "a text of at most 32,768 UTF-16 units",
    }
}

/// The limits of the service, which the client checks before it sends an entity.
fn check(entity: &DynamicEntity) -> Result<(), FieldError> {
    let entity = AsStored(entity.clone());
    let checked = DynamicEntity::from_entity(&entity);
    checked
        .map(drop)
        .map_err(|error| FieldError::whole(error.to_string()))
}

/// The JSON of an entity for a form: a property a line. With its version, it begins with
/// `odata.etag`.
pub(crate) fn json_of(entity: &DynamicEntity, etag: Option<&ETag>) -> String {
    let mut lines = Vec::new();
    let mut member = |name: &str, value: &Value| {
        let mut writer = EntityWriter::new();
        writer.property(name, &value.as_ref());
        let json = writer.finish();
        let json = String::from_utf8_lossy(&json).into_owned();
        let members = json.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        lines.push(harmless_json(members.unwrap_or(&json)));
    };
    if let Some(etag) = etag {
        member("odata.etag", &etag.as_str().into());
    }
    member("PartitionKey", &entity.partition_key().into());
    member("RowKey", &entity.row_key().into());
    for (name, value) in entity.properties().iter() {
        member(name, value);
    }
    let mut json = String::from("{");
    for (index, line) in lines.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // To write to a string does not fail.
        let _ = write!(json, "{comma}\n  {line}");
    }
    json.push_str("\n}");
    json
}

/// The entity of a JSON object, as `tables get` prints it, within the limits of the service.
pub(crate) fn entity_of_json(table: &str, json: &str) -> Result<DynamicEntity, FieldError> {
    let (entity, _) = read_json(table, json)?;
    for (name, _) in entity.properties().iter() {
        check_property_name(name).map_err(|problem| {
            let problem = format!("{name:?} cannot be the name of a property: {problem}");
            FieldError::whole(problem)
        })?;
    }
    check_times(json)?;
    check(&entity)?;
    Ok(entity)
}

/// Refuses times that would be cut.
fn check_times(json: &str) -> Result<(), FieldError> {
    let members = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json);
    let members = members.map_err(|error| FieldError::whole(error.to_string()))?;
    let is_time =
        |name: &str| members.get(&format!("{name}@odata.type")) == Some(&DATE_TIME.into());
    for (name, value) in &members {
        let time = value.as_str().filter(|text| is_time(name) && is_cut(text));
        if let Some(time) = time {
            return Err(FieldError::whole(format!("{name}: {}", cut(time))));
        }
    }
    Ok(())
}

/// The entity of a JSON object, and its version, if the object has it.
pub(crate) fn read_json(
    table: &str,
    json: &str,
) -> Result<(DynamicEntity, Option<ETag>), FieldError> {
    let mut options = ReadOptions::default();
    options.table = Some(table.to_owned());
    let mut records = Records::new(json.as_bytes(), &options);
    let mut entity = None;
    while let Some((_, line)) = records.next().transpose().map_err(|error| {
        let text = error.problem().to_string();
        FieldError::whole(text.replace("; --as-string keeps it as a string", ""))
    })? {
        match line {
            Line::Entity { entity: found, .. } if entity.is_none() => {
                entity = Some((found, records.etag().cloned()));
            }
            _ => return Err(FieldError::whole(ONE_OBJECT)),
        }
    }
    entity.ok_or_else(|| FieldError::whole(ONE_OBJECT))
}

/// The same in one line, for a field of a form that is not shown.
pub(crate) fn base_text(entity: &DynamicEntity, etag: Option<&ETag>) -> String {
    let json = json_of(entity, etag);
    json.replace("\n  ", "").replace('\n', "")
}

/// A row of a grid that is selected: its keys and its version, in one field of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) target: Target,
    pub(crate) etag: ETag,
}

impl Selected {
    /// The text of the field.
    pub(crate) fn text(partition: &str, row: &str, etag: &ETag) -> String {
        serde_json::json!([partition, row, etag.as_str()]).to_string()
    }

    pub(crate) fn of(table: &str, text: &str) -> Result<Self, FieldError> {
        let problem =
            || FieldError::whole("a selected row has a partition key, a row key and an ETag");
        let [partition, row, etag]: [String; 3] =
            serde_json::from_str(text).map_err(|_| problem())?;
        let etag = etag.parse::<ETag>().map_err(|_| problem())?;
        Ok(Self {
            target: Target::new(table, partition, row),
            etag,
        })
    }
}

const DATE_TIME: &str = "Edm.DateTime";
const STRING: &str = "Edm.String";
const ONE_OBJECT: &str =
    r#"the JSON of one entity is expected, such as {"PartitionKey":"Sales","RowKey":"1","Age":36}"#;
/// Longer values stand in the JSON alone.
const TEXT_MAX: usize = 8 << 10;
/// How many characters of a text are in an error.
const SHOWN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::super::change::Difference;
    use super::super::tests::{etag, ken};
    use super::*;

    fn field(name: &str, edm_type: &str, text: &str) -> Field {
        Field {
            name: name.to_owned(),
            edm_type: edm_type.to_owned(),
            text: text.to_owned(),
        }
    }

    fn entity(fields: &[Field]) -> Result<DynamicEntity, Vec<FieldError>> {
        entity_of_fields(("Sales", "1"), fields, None)
    }

    fn all_types() -> DynamicEntity {
        let date = "2024-02-29T12:34:56.1234567Z";
        let guid = "c9da6455-213d-42c9-9a79-3e9149a57833";
        DynamicEntity::new("Sales", "1")
            .with("Bytes", vec![0_u8, 255, 7])
            .with("No", false)
            .with("At", date.parse::<tablesdk::Timestamp>().expect("a date"))
            .with("Half", 0.1 + 0.2)
            .with("Nan", f64::NAN)
            .with("Low", f64::NEG_INFINITY)
            .with("Zero", -0.0)
            .with("Id", guid.parse::<tablesdk::Guid>().expect("a GUID"))
            .with("Small", i32::MIN)
            .with("Big", i64::MAX)
            .with("Note", "two\nlines, and \"quotes\" <b>&amp;")
            .with("Empty", "")
    }

    #[test]
    fn each_value_comes_back_from_its_text_to_the_bit() {
        let stored = all_types();
        let fields: Vec<_> = stored
            .properties()
            .iter()
            .map(|(name, value)| {
                let text = editable(value).expect("no character acts");
                // As a browser sends it.
                field(name, value.edm_type().as_str(), &text.replace('\n', "\r\n"))
            })
            .collect();
        let read = entity(&fields).expect("it is valid");
        let difference = Difference::of(stored.properties(), read.properties());
        assert_eq!(difference, Difference::default());
    }

    #[test]
    fn each_value_comes_back_from_the_json_to_the_bit() {
        let stored = all_types().with("Acts", "\u{202e}\r\n\u{0}\u{1b}");
        let text = base_text(&stored, Some(&etag(1)));
        assert!(!text.chars().any(acts), "{text}");
        let (read, version) = read_json("Employees", &text).expect("it is valid");
        assert_eq!(version, Some(etag(1)));
        let difference = Difference::of(stored.properties(), read.properties());
        assert_eq!(difference, Difference::default());
        let lines = json_of(&ken(1.0), None);
        let expected = "{\n  \"PartitionKey\":\"Sales\",\n  \"RowKey\":\"000145\",\n  \"Salary@odata.type\":\"Edm.Double\",\"Salary\":1.0,\n  \"Email\":\"kenk@contoso.com\"\n}";
        assert_eq!(lines, expected);
    }

    #[test]
    fn no_time_of_the_json_is_cut() {
        let json = |time: &str| {
            let json = format!(
                r#"{{"PartitionKey":"a","RowKey":"b","Note":"0.12345678","At@odata.type":"Edm.DateTime","At":"2024-02-29T12:34:56.{time}"}}"#
            );
            entity_of_json("Employees", &json)
        };
        for time in ["1234567Z", "123456700Z", "1234567+01:00"] {
            json(time).expect(time);
        }
        let error = json("12345671+01:00").expect_err("it has eight digits");
        assert!(
            error.problem.starts_with(
                "At: \"2024-02-29T12:34:56.12345671+01:00\" has more than seven digits"
            ),
            "{error:?}"
        );
    }

    #[test]
    fn an_error_names_the_property_its_type_and_the_rule() {
        for (edm_type, text, expected) in [
            (
                "Edm.Int32",
                "2147483648",
                "\"2147483648\" is no Edm.Int32, which is an integer from -2147483648 to 2147483647",
            ),
            (
                "Edm.Int64",
                "1.0",
                "\"1.0\" is no Edm.Int64, which is an integer from -9223372036854775808 to 9223372036854775807",
            ),
            (
                "Edm.Boolean",
                "yes",
                "\"yes\" is no Edm.Boolean, which is true or false",
            ),
            (
                "Edm.DateTime",
                "2024-02-30T00:00:00Z",
                "\"2024-02-30T00:00:00Z\" is no Edm.DateTime, which is a time in UTC from the year 1601 on, such as 2024-02-29T12:34:56.1234567Z",
            ),
            (
                "Edm.DateTime",
                "1500-01-01T00:00:00Z",
                "\"1500-01-01T00:00:00Z\": the date lies outside the years 1601 to 9999. Edm.DateTime is a time in UTC from the year 1601 on, such as 2024-02-29T12:34:56.1234567Z",
            ),
            (
                "Edm.DateTime",
                "2024-02-29T12:34:56.12345678Z",
                "\"2024-02-29T12:34:56.12345678Z\" has more than seven digits of a second. Edm.DateTime is a time in UTC from the year 1601 on, such as 2024-02-29T12:34:56.1234567Z",
            ),
            (
                "Edm.Double",
                "",
                "\"\" is no Edm.Double, which is a number such as 1.5 or -1e-7, or NaN, Infinity, -Infinity",
            ),
            (
                "Edm.Guid",
                "7",
                "\"7\" is no Edm.Guid, which is a GUID, such as c9da6455-213d-42c9-9a79-3e9149a57833",
            ),
            (
                "Edm.Binary",
                "0xf",
                "\"0xf\" is no Edm.Binary, which is bytes in Base64, such as 3q2+7w==",
            ),
            (
                "Edm.Int16",
                "7",
                "\"Edm.Int16\" is not one of the eight types, such as Edm.String",
            ),
        ] {
            let errors = entity(&[field("Age", edm_type, text)]).expect_err(text);
            assert_eq!(errors, [FieldError::of("Age", expected.to_owned())]);
        }
    }

    #[test]
    fn all_errors_of_a_form_are_named_at_once() {
        let fields = [
            field("Age", "Edm.Int32", "x"),
            field("Age", "Edm.Int32", "1"),
            field("1st", "Edm.String", "x"),
            field("", "Edm.String", "x"),
            field("", "Edm.String", ""),
        ];
        let errors = entity(&fields).expect_err("none is valid");
        let names: Vec<_> = errors.iter().filter_map(|it| it.name.as_deref()).collect();
        assert_eq!(names, ["Age", "Age", "1st", ""]);
    }

    #[test]
    fn a_form_leaves_out_what_it_removes_and_keeps_what_it_does_not_contain() {
        let base = ken(1.0).with("Photo", vec![7_u8; 60_000]).with("Age", 36);
        let fields = [
            field("Salary", ABSENT, "1.0"),
            field("Photo", UNCHANGED, ""),
            field("Email", "Edm.String", "k@contoso.com"),
        ];
        let keys = ("Sales", "000145");
        let read = entity_of_fields(keys, &fields, Some(&base)).expect("it is valid");
        let expected = DynamicEntity::new("Sales", "000145")
            .with("Photo", vec![7_u8; 60_000])
            .with("Email", "k@contoso.com")
            .with("Age", 36);
        assert_eq!(read, expected);
    }

    #[test]
    fn a_value_that_a_form_cannot_hold_is_fixed() {
        let text = |text: &str| editable(&text.into());
        assert_eq!(text("a\tb\nc"), Ok("a\tb\nc".to_owned()));
        for acting in ["\r\n", "\u{202e}", "\u{0}"] {
            assert_eq!(text(acting), Err(Fixed::Acts));
        }
        assert_eq!(text(&"x".repeat(9000)), Err(Fixed::Long));
        assert_eq!(editable(&vec![0_u8; 8000].into()), Err(Fixed::Long));
    }

    #[test]
    fn the_limits_of_the_service_are_checked_before_anything_is_staged() {
        let long = "x".repeat(40_000);
        let errors = entity(&[field("Note", "Edm.String", &long)]).expect_err("it is too long");
        let problem = errors
            .first()
            .map(|it| it.problem.clone())
            .unwrap_or_default();
        assert!(problem.contains("Note"), "{problem}");
        let keys = ("a/b", "1");
        let errors = entity_of_fields(keys, &[], None).expect_err("a key has no slash");
        let problem = errors
            .first()
            .map(|it| it.problem.clone())
            .unwrap_or_default();
        assert!(problem.contains("partition key"), "{problem}");
    }

    #[test]
    fn json_that_is_not_one_entity_is_refused_with_the_reason() {
        for (json, expected) in [
            ("", "the JSON of one entity is expected"),
            ("[]", "the JSON of one entity is expected"),
            (r#"{"RowKey":"1"}"#, "the entity has no PartitionKey"),
            (
                r#"{"PartitionKey":"a","RowKey":"1","A":{}}"#,
                "property \"A\"",
            ),
            (
                r#"{"PartitionKey":"a","RowKey":"1","A":1,"A":2}"#,
                "a property twice",
            ),
            (
                r#"[{"PartitionKey":"a","RowKey":"1"},{"PartitionKey":"a","RowKey":"2"}]"#,
                "the JSON of one entity is expected",
            ),
            (
                r#"{"PartitionKey":"a","RowKey":"1","1st":2}"#,
                "\"1st\" cannot be the name",
            ),
            (
                "{\"PartitionKey\":\"a\",\"RowKey\":\"1\",\"Age@odata.type\":\"Edm.Int32\",\"Age\":\"x\"}",
                "property \"Age\": the value is not of type Edm.Int32",
            ),
        ] {
            let error = entity_of_json("Employees", json).expect_err(json);
            assert!(
                error.problem.contains(expected),
                "{json}: {}",
                error.problem
            );
        }
    }

    #[test]
    fn a_selected_row_comes_back_with_any_keys() {
        let keys = ("a\u{202e}\"b", "c\r\n'd\u{1f600}");
        let text = Selected::text(keys.0, keys.1, &etag(1));
        let selected = Selected::of("Employees", &text).expect("it is one");
        assert_eq!(selected.target, Target::new("Employees", keys.0, keys.1));
        assert_eq!(selected.etag, etag(1));
        for wrong in ["", "[]", r#"["a","b"]"#, r#"["a","b","*"]"#, "7"] {
            assert!(Selected::of("Employees", wrong).is_err(), "{wrong}");
        }
    }
}
