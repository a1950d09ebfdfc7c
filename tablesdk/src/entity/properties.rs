//! Properties by name, in order, with their exact types: what no struct models.

use tablesdk_protocol::limits::PROPERTIES_MAX;
use tablesdk_protocol::wire::json::{RawProperty, SYSTEM_PROPERTIES};
use tablesdk_protocol::{ShortString, Value, check_property_name};

use super::{
    EntityError, EntityProblem, PropertyValue, PropertyWriter, STEP_OF, Schema, ValueError,
};
use crate::sealed::Seal;

/// Properties with their names and exact EDM types, in the order in which they were read or set.
///
/// As a field marked `#[table(rest)]` it keeps what the struct does not model, so that a replace
/// does not lose it.
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
///
/// // Any type that a field may have. `None` is an absent property.
/// properties.set("Hired", time::OffsetDateTime::now_utc());
/// properties.set("Email", Some("ada@example.org"));
/// properties.set("Age", None::<i32>);
/// assert_eq!(properties.get("Age"), None);
/// # Ok::<(), tablesdk::entity::EntityError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Properties {
    entries: Vec<(ShortString, Value)>,
    /// The values that cannot be stored. A write reports the first.
    refused: Vec<(String, ValueError)>,
    /// The type as which they were read, if it has encrypted properties: these must not be stored
    /// in plain text.
    decrypted_by: Option<&'static Schema>,
}

impl Properties {
    /// No property.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            refused: Vec::new(),
            decrypted_by: None,
        }
    }

    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            entries: Vec::with_capacity(count.min(PROPERTIES_MAX)),
            ..Self::new()
        }
    }

    /// Notes that properties of that type were decrypted.
    pub(super) const fn note_decrypted(&mut self, schema: Option<&'static Schema>) {
        self.decrypted_by = schema;
    }

    /// Refuses to store what was decrypted, unless it is encrypted again.
    fn check_decrypted(&self, encrypts: Option<&'static Schema>) -> Result<(), EntityError> {
        let Some(decrypted_by) = self.decrypted_by else {
            return Ok(());
        };
        let again = encrypts.map(Schema::encrypted_names).unwrap_or_default();
        let secret = decrypted_by.encrypted_names().into_iter().find(|secret| {
            self.get(&secret.name).is_some() && !again.iter().any(|name| name.name == secret.name)
        });
        match secret {
            Some(secret) => Err(EntityProblem::Decrypted {
                property: secret.name,
            }
            .into()),
            None => Ok(()),
        }
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut entries = self.entries.iter();
        entries.find_map(|(known, value)| (*known == *name).then_some(value))
    }

    /// The value of that name as a type: strict, as any field is read.
    ///
    /// # Errors
    ///
    /// When it is missing, of another type, or does not fit.
    pub fn read<T: PropertyValue>(&self, name: &str) -> Result<T, EntityError> {
        match self.get(name) {
            Some(value) => T::from_value(value.clone()).map_err(|error| {
                let is_secret = self.decrypted_by.is_some_and(|it| it.encrypts_as(name));
                let error = if is_secret {
                    error.without_value()
                } else {
                    error
                };
                EntityProblem::value(name, error).into()
            }),
            None => Err(EntityProblem::missing(name, T::EDM_TYPE).into()),
        }
    }

    /// Sets a property, in the place of the one that has that name, else at the end. `None` removes
    /// the property. Returns the previous value. A name that no property has is reported when the
    /// entity is written; so is a value that cannot be stored, such as a date before the year 1601.
    pub fn set(&mut self, name: impl Into<String>, value: impl IntoProperty) -> Option<Value> {
        let name = name.into();
        self.refused.retain(|(known, _)| *known != name);
        match value.into_property() {
            Ok(Some(value)) => self.set_value(name, value),
            Ok(None) => self.remove(&name),
            Err(error) => {
                let previous = self.remove(&name);
                self.refused.push((name, error));
                previous
            }
        }
    }

    fn set_value(&mut self, name: String, value: Value) -> Option<Value> {
        let mut entries = self.entries.iter_mut();
        match entries.find(|(known, _)| *known == *name) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.entries.push((name.into(), value));
                None
            }
        }
    }

    /// Removes a property and gives it back.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.refused.retain(|(known, _)| known != name);
        let index = self.entries.iter().position(|(known, _)| *known == *name)?;
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

    /// Returns true if there are no properties.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reports the first value that was set and cannot be stored.
    pub(super) fn check_values(&self) -> Result<(), EntityError> {
        match self.refused.first() {
            Some((name, error)) => Err(EntityProblem::value(name, error.clone()).into()),
            None => Ok(()),
        }
    }

    /// Adds a property of an answer. A null is an absent one.
    pub(super) fn push(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        if self.get(property.name()).is_some() && !property.is_null() {
            return Err(EntityProblem::duplicate(property.name()).into());
        }
        self.append(property)?;
        // No service sends more, and each is compared with all before it.
        if self.len() > PROPERTIES_MAX {
            return Err(EntityProblem::TooManyProperties { count: self.len() }.into());
        }
        Ok(())
    }

    /// As [`push`](Self::push), of an entity of any size whose names are known to be distinct.
    pub(crate) fn append(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        let value = property.to_value();
        let value = value.map_err(|error| EntityProblem::Payload {
            wanted: None,
            error,
        })?;
        if let Some(value) = value {
            self.entries.push((property.name().into(), value));
        }
        Ok(())
    }

    /// Writes all; `taken_by` says what has a name already.
    pub(super) fn write(
        &self,
        writer: &mut PropertyWriter<'_>,
        taken_by: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<(), EntityError> {
        self.check_decrypted(writer.encrypts)?;
        self.check_values()?;
        for (name, value) in self.iter() {
            if name == STEP_OF && !writer.is_stamped(value) {
                continue;
            }
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

/// By names and values, in any order: the service sorts the properties of an entity at each write
/// but an insert.
impl PartialEq for Properties {
    fn eq(&self, other: &Self) -> bool {
        let mut entries = self.entries.iter();
        self.refused == other.refused
            && self.entries.len() == other.entries.len()
            && (self.entries == other.entries
                || entries.all(|(name, value)| other.get(name.as_str()) == Some(value)))
    }
}

impl<N: Into<String>, V: IntoProperty> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let mut properties = Self::new();
        properties.extend(entries);
        properties
    }
}

impl<N: Into<String>, V: IntoProperty> Extend<(N, V)> for Properties {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, entries: I) {
        for (name, value) in entries {
            self.set(name, value);
        }
    }
}

/// Names and values, in order, without those that cannot be stored.
impl IntoIterator for Properties {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        let entries = self.entries.into_iter();
        let entries: Vec<_> = entries
            .map(|(name, value)| (name.into_string(), value))
            .collect();
        entries.into_iter()
    }
}

/// The value of a property that is given by name: a [`PropertyValue`], an `Option` of one, a
/// `&str`, or a [`Value`]. `None` is an absent property.
///
/// ```
/// use tablesdk::{DynamicEntity, Timestamp, Value};
///
/// let ada = DynamicEntity::new("Sales", "1")
///     .with("Name", "Ada")
///     .with("Age", 36)
///     .with("Hired", Timestamp::UNIX_EPOCH)
///     .with("Email", None::<String>);
/// assert_eq!(ada.properties().get("Age"), Some(&Value::Int32(36)));
/// assert_eq!(ada.properties().len(), 3);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not one of the types that map onto an EDM type",
    note = "give a value of a type that a field of an entity may have, an `Option` of one, a `&str` or a `tablesdk::Value`"
)]
pub trait IntoProperty {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The value to store; `None` to store none.
    ///
    /// # Errors
    ///
    /// When the stored type cannot hold it.
    fn into_property(self) -> Result<Option<Value>, ValueError>;
}

impl<T: PropertyValue> IntoProperty for T {
    const SEAL: Seal = Seal;

    fn into_property(self) -> Result<Option<Value>, ValueError> {
        Ok(Some(self.to_value()?.into_value()))
    }
}

impl<T: PropertyValue> IntoProperty for Option<T> {
    const SEAL: Seal = Seal;

    fn into_property(self) -> Result<Option<Value>, ValueError> {
        self.map_or(Ok(None), T::into_property)
    }
}

macro_rules! into_property {
    ($($type:ty),+) => {
        $(impl IntoProperty for $type {
            const SEAL: Seal = Seal;

            fn into_property(self) -> Result<Option<Value>, ValueError> {
                Ok(Some(self.into()))
            }
        }

        impl IntoProperty for Option<$type> {
            const SEAL: Seal = Seal;

            fn into_property(self) -> Result<Option<Value>, ValueError> {
                Ok(self.map(Into::into))
            }
        })+
    };
}

into_property!(Value, &str);

impl IntoProperty for &String {
    const SEAL: Seal = Seal;

    fn into_property(self) -> Result<Option<Value>, ValueError> {
        self.as_str().into_property()
    }
}

/// The type of a field marked `rest`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold the rest of an entity",
    label = "not `tablesdk::Properties`",
    note = "a field marked `rest` is a `tablesdk::Properties`, which keeps names and exact types"
)]
pub trait RestField: Sized {
    /// No property yet, of an entity whose encrypted properties were decrypted as that schema says.
    fn rest(decrypted_by: Option<&'static Schema>) -> Self;

    /// Takes a property that no other field has.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code alone")]
    fn take(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError>;

    /// Writes all; `taken` are the names of the fields.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code alone")]
    fn write_rest(
        &self,
        writer: &mut PropertyWriter<'_>,
        schema: &Schema,
    ) -> Result<(), EntityError>;
}

impl RestField for Properties {
    fn rest(decrypted_by: Option<&'static Schema>) -> Self {
        Self {
            decrypted_by,
            ..Self::new()
        }
    }

    fn take(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        self.push(property)
    }

    fn write_rest(
        &self,
        writer: &mut PropertyWriter<'_>,
        schema: &Schema,
    ) -> Result<(), EntityError> {
        if self.is_empty() && self.refused.is_empty() {
            return Ok(());
        }
        let fields = schema.properties();
        let entity_type = schema.type_property();
        let taken_by = |name: &str| {
            let mut fields = fields.iter();
            if entity_type == Some(name) {
                return Some("the entity type");
            }
            let is_field = fields.any(|field| field.name() == name || field.is_alias(name));
            is_field.then_some("a field")
        };
        if schema.entry.is_some() {
            // The entity may have them: in it, parts of its key are no properties.
            let mut others = self.clone();
            others
                .entries
                .retain(|(name, _)| taken_by(name.as_str()).is_none());
            return others.write(writer, taken_by);
        }
        self.write(writer, taken_by)
    }
}
