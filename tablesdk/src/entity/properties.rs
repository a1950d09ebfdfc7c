//! Properties by name, in order, with their exact types: what no struct models.

use tablesdk_protocol::limits::PROPERTIES_MAX;
use tablesdk_protocol::wire::json::{RawProperty, SYSTEM_PROPERTIES};
use tablesdk_protocol::{Value, check_property_name};

use super::{EntityError, EntityProblem, PropertyValue, PropertyWriter, ValueError};

/// Properties with their names and exact EDM types, in the order in which they were read or set.
///
/// As a field marked `#[table(rest)]` it keeps what the struct does not model, so that a replace does not lose it.
///
/// ```
/// use tablesdk::{Properties, Value};
///
/// let mut properties = Properties::new();
/// properties.set("Age", 36);
/// properties.set("Name", "Ada");
/// assert_eq!(properties.get("Age"), Some(&Value::Int32(36)));
/// assert_eq!(properties.read::<String>("Name")?, "Ada");
/// assert!(properties.read::<i64>("Name").is_err());
/// # Ok::<(), tablesdk::entity::EntityError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    entries: Vec<(String, Value)>,
}

impl Properties {
    /// No property.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The value of that name as a type: strict, as any field is read.
    ///
    /// # Errors
    ///
    /// When it is missing, of another type, or does not fit.
    pub fn read<T: PropertyValue>(&self, name: &str) -> Result<T, EntityError> {
        match self.get(name) {
            Some(value) => T::from_value(value.clone())
                .map_err(|error| EntityProblem::value(name, error).into()),
            None => Err(EntityProblem::missing(name, T::EDM_TYPE).into()),
        }
    }

    /// Sets a property, in the place of the one that has that name, else at the end. Gives back what was there. A name that
    /// no property has is reported when the entity is written.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.entries.push((name, value));
                None
            }
        }
    }

    /// Removes a property and gives it back.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.entries.iter().position(|(known, _)| known == name)?;
        Some(self.entries.remove(index).1)
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a property of an answer. A null is an absent one.
    pub(super) fn push(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        let value = property
            .to_value()
            .map_err(|error| EntityProblem::Payload {
                wanted: None,
                error,
            })?;
        let Some(value) = value else {
            return Ok(());
        };
        match self.set(property.name(), value) {
            // No service sends more, and each is compared with all before it.
            None if self.len() > PROPERTIES_MAX => {
                Err(EntityProblem::TooManyProperties { count: self.len() }.into())
            }
            None => Ok(()),
            Some(_) => Err(EntityProblem::duplicate(property.name()).into()),
        }
    }

    /// Writes all; `taken_by` says what has a name already.
    pub(super) fn write(
        &self,
        writer: &mut PropertyWriter<'_>,
        taken_by: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<(), EntityError> {
        for (name, value) in self.iter() {
            let problem = if SYSTEM_PROPERTIES.contains(&name) {
                Some("the service has a property of its own under its name".to_owned())
            } else if let Some(owner) = taken_by(name) {
                Some(format!("{owner} is stored under its name"))
            } else {
                check_property_name(name)
                    .err()
                    .map(|problem| problem.to_string())
            };
            if let Some(problem) = problem {
                return Err(EntityProblem::value(name, ValueError::unwritable(problem)).into());
            }
            writer.value(name, &value.as_ref())?;
        }
        Ok(())
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let mut properties = Self::new();
        properties.extend(entries);
        properties
    }
}

impl<N: Into<String>, V: Into<Value>> Extend<(N, V)> for Properties {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, entries: I) {
        for (name, value) in entries {
            self.set(name, value);
        }
    }
}

impl IntoIterator for Properties {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// The type of a field marked `rest`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold the rest of an entity",
    label = "not `tablesdk::Properties`",
    note = "a field marked `rest` is a `tablesdk::Properties`, which keeps names and exact types"
)]
pub trait RestField: Sized {
    /// No property yet.
    fn rest() -> Self;

    /// Takes a property that no other field has.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code alone")]
    fn take(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError>;

    /// Writes all; `taken` are the names of the fields.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code alone")]
    fn write_rest(
        &self,
        writer: &mut PropertyWriter<'_>,
        schema: &super::Schema,
    ) -> Result<(), EntityError>;
}

impl RestField for Properties {
    fn rest() -> Self {
        Self::new()
    }

    fn take(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        self.push(property)
    }

    fn write_rest(
        &self,
        writer: &mut PropertyWriter<'_>,
        schema: &super::Schema,
    ) -> Result<(), EntityError> {
        if self.is_empty() {
            return Ok(());
        }
        let fields = schema.properties();
        let entity_type = schema.type_property();
        self.write(writer, |name| {
            let mut fields = fields.iter();
            if entity_type == Some(name) {
                return Some("the entity type");
            }
            let is_field = fields.any(|field| field.name() == name || field.is_alias(name));
            is_field.then_some("a field")
        })
    }
}
