//! Access of generated code to a field, behind one function for each kind of field.
//!
//! All that a derive asks of a field's type it asks by way of [`field`],
//! [`key_part`](super::key_part) and their like. A type that does not fit is then refused in the
//! same words at the same place each time, which the compiler reports once.

#![expect(clippy::missing_errors_doc, reason = "called by generated code alone")]

use std::borrow::Cow;

use tablesdk_protocol::wire::json::RawProperty;
use tablesdk_protocol::{ETag, EdmType, Timestamp, Value, ValueRef};

use super::column_scope::ColumnScope;
use super::properties::RestField;
use super::reader::{convert, value_of};
use super::{
    EntityError, EntityProblem, Field, PropertyReader, PropertySchema, PropertyWriter, Schema,
    ValueError,
};

type ToValue<F> = fn(&F) -> Result<Option<ValueRef<'_>>, ValueError>;
type FromValue<F> = fn(Option<Value>) -> Result<Option<F>, ValueError>;
type FromJson<F> = fn(&RawProperty<'_>) -> Option<F>;

/// Access to a field that is a property.
#[derive(Clone, Copy, Debug)]
pub struct FieldAccess<F> {
    edm_type: EdmType,
    optional: bool,
    to_value: ToValue<F>,
    from_value: FromValue<F>,
    /// For values in the form in which the service writes them: without a `Value` in between.
    from_json: FromJson<F>,
}

/// Access to a field of type `F`.
pub const fn field<F: Field>() -> FieldAccess<F> {
    FieldAccess {
        edm_type: F::EDM_TYPE,
        optional: F::OPTIONAL,
        to_value: F::to_value,
        from_value: F::from_value,
        from_json: F::from_json,
    }
}

/// Access to a field of any type that two functions convert to and from `P`.
pub const fn with_field<F, P: Field>(
    to_value: ToValue<F>,
    from_value: FromValue<F>,
) -> FieldAccess<F> {
    FieldAccess {
        edm_type: P::EDM_TYPE,
        optional: P::OPTIONAL,
        to_value,
        from_value,
        from_json: |_| None,
    }
}

/// The value to store for a field that a function of the program has converted.
pub fn with_to_value<P: Field>(
    property: Result<P, ValueError>,
) -> Result<Option<ValueRef<'static>>, ValueError> {
    let property = property?;
    Ok(property.to_value()?.map(|value| match value.into_value() {
        Value::Binary(bytes) => ValueRef::Binary(bytes.into()),
        Value::Boolean(value) => ValueRef::Boolean(value),
        Value::DateTime(value) => ValueRef::DateTime(value),
        Value::Double(value) => ValueRef::Double(value),
        Value::Guid(value) => ValueRef::Guid(value),
        Value::Int32(value) => ValueRef::Int32(value),
        Value::Int64(value) => ValueRef::Int64(value),
        Value::String(text) => ValueRef::String(text.into()),
    }))
}

/// A stored value, as a function of the user's makes a field of it.
pub fn with_from_value<F, P: Field>(
    value: Option<Value>,
    from_property: impl FnOnce(P) -> Result<F, ValueError>,
) -> Result<Option<F>, ValueError> {
    P::from_value(value)?.map(from_property).transpose()
}

impl<F> FieldAccess<F> {
    /// The property in the schema.
    pub const fn schema(self, name: &'static str) -> PropertySchema {
        PropertySchema::new(name, self.edm_type, self.optional)
    }

    /// Refuses at compile time a column that cannot hold integers of both widths.
    #[track_caller]
    pub const fn check_mixed_integers(self) {
        assert!(
            matches!(self.edm_type, EdmType::Int64),
            "`mixed_integers` is for fields stored as Edm.Int64: an i64, a u32, or an Option of one"
        );
    }

    /// Refuses at compile time a field that is no instant.
    #[track_caller]
    pub const fn check_instant(self) {
        assert!(
            matches!(self.edm_type, EdmType::DateTime),
            "`expires` is for an instant: a `Timestamp`, a `time::OffsetDateTime`, a `chrono::DateTime<Utc>`, a `jiff::Timestamp`, or an Option of one"
        );
    }

    /// The value of an instant.
    pub fn instant(self, field: &F) -> Option<Timestamp> {
        match (self.to_value)(field) {
            Ok(Some(ValueRef::DateTime(instant))) => Some(instant),
            // Of a value that cannot be stored, the write itself is refused.
            _ => None,
        }
    }

    /// Writes the field.
    pub fn write(
        self,
        writer: &mut PropertyWriter<'_>,
        name: &'static str,
        field: &F,
    ) -> Result<(), EntityError> {
        match (self.to_value)(field) {
            Ok(Some(value)) => writer.value(name, &value),
            Ok(None) => Ok(()),
            Err(error) => Err(writer.refused(name, error)),
        }
    }

    /// An empty slot for the field.
    #[inline]
    pub const fn slot(self, name: &'static str) -> Slot<F> {
        Slot {
            access: self,
            name,
            seen: 0,
            rank: u32::MAX,
            value: None,
        }
    }

    /// The value of a field marked `timestamp`.
    pub fn read_timestamp(self, reader: &PropertyReader<'_, '_>) -> Result<F, EntityError> {
        let value = reader.timestamp()?.map(Value::DateTime);
        convert("Timestamp", self.edm_type, (self.from_value)(value))
    }

    /// Sets the field marked `timestamp` to the time of a write, where the ETag contains it.
    pub fn set_timestamp(self, field: &mut F, etag: &ETag) {
        let value = etag.timestamp().map(Value::DateTime);
        if let Ok(Some(value)) = (self.from_value)(value) {
            *field = value;
        }
    }

    /// Reads the value of a property that came. A null stands for an absent one, as the answer to a
    /// projection has it.
    fn read_value(&self, name: &str, property: &RawProperty<'_>) -> Result<Option<F>, EntityError> {
        if let Some(value) = (self.from_json)(property) {
            return Ok(Some(value));
        }
        let Some(value) = value_of(property, self.edm_type)? else {
            return Ok(None);
        };
        let value = (self.from_value)(Some(value));
        convert(name, self.edm_type, value).map(Some)
    }

    /// Reads the value of the field, wherever it stands in the entity.
    pub(crate) fn read(
        self,
        name: &str,
        property: Option<&RawProperty<'_>>,
    ) -> Result<F, EntityError> {
        if let Some(property) = property
            && let Some(value) = self.read_value(name, property)?
        {
            return Ok(value);
        }
        convert(name, self.edm_type, (self.from_value)(None))
    }
}

/// Collects the value of one field while the properties pass by.
#[derive(Debug)]
pub struct Slot<F> {
    access: FieldAccess<F>,
    name: &'static str,
    /// The names that came, a bit for each: the name itself, then its aliases.
    seen: u64,
    /// Which name the value came under.
    rank: u32,
    value: Option<F>,
}

impl<F> Slot<F> {
    /// Takes the property that has the name of this slot.
    #[inline]
    pub fn fill(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        self.fill_alias(0, property)
    }

    /// Takes the property that has another name of this slot: the first alias has rank 1. The value
    /// of the lowest rank counts.
    #[inline]
    pub fn fill_alias(&mut self, rank: u32, property: &RawProperty<'_>) -> Result<(), EntityError> {
        let bit = 1_u64.checked_shl(rank).unwrap_or_default();
        if self.seen & bit != 0 {
            return Err(EntityProblem::duplicate(property.name()).into());
        }
        self.seen |= bit;
        if rank < self.rank
            && let Some(value) = self.access.read_value(property.name(), property)?
        {
            (self.value, self.rank) = (Some(value), rank);
        }
        Ok(())
    }

    /// The value of the field; an error when the property did not come, and the field is not an
    /// `Option`.
    #[inline]
    pub fn finish(self, scope: ColumnScope) -> Result<F, EntityError> {
        match self.value {
            Some(value) => Ok(value),
            None => match (self.access.from_value)(None) {
                Ok(Some(value)) => Ok(value),
                absent => convert(&scope.name(self.name), self.access.edm_type, absent),
            },
        }
    }

    /// The value of the field, or the one for when the property did not come.
    pub fn finish_or(self, default: impl FnOnce() -> F) -> F {
        self.value.unwrap_or_else(default)
    }
}

/// The type of a field marked `etag`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold the ETag",
    label = "not an `Option<ETag>`",
    note = "a value that was not read has none: the field is an `Option<tablesdk::ETag>`"
)]
pub trait ETagField: From<Option<ETag>> {}

impl ETagField for Option<ETag> {}

/// Access to a field marked `etag`.
#[derive(Clone, Copy, Debug)]
pub struct ETagAccess<F> {
    make: fn(Option<ETag>) -> F,
}

/// Access to a field marked `etag`.
pub const fn etag_field<F: ETagField>() -> ETagAccess<F> {
    ETagAccess { make: F::from }
}

impl<F> ETagAccess<F> {
    /// The value of the field.
    pub fn make(self, etag: Option<ETag>) -> F {
        (self.make)(etag)
    }
}

/// Access to a field marked `rest`.
#[derive(Clone, Copy, Debug)]
pub struct RestAccess<F> {
    empty: fn(Option<&'static Schema>) -> F,
    take: fn(&mut F, &RawProperty<'_>) -> Result<(), EntityError>,
    write: fn(&F, &mut PropertyWriter<'_>, &Schema) -> Result<(), EntityError>,
}

/// Access to a field marked `rest`.
pub const fn rest_field<F: RestField>() -> RestAccess<F> {
    RestAccess {
        empty: F::rest,
        take: F::take,
        write: F::write_rest,
    }
}

impl<F> RestAccess<F> {
    /// The field, before any property came.
    pub fn empty(self, reader: &PropertyReader<'_, '_>) -> F {
        (self.empty)(reader.decrypted_by())
    }

    /// Takes a property that no other field has.
    pub fn take(self, field: &mut F, property: &RawProperty<'_>) -> Result<(), EntityError> {
        (self.take)(field, property)
    }

    /// Writes all, none of them under the name of a field.
    pub fn write(
        self,
        field: &F,
        writer: &mut PropertyWriter<'_>,
        schema: &Schema,
    ) -> Result<(), EntityError> {
        (self.write)(field, writer, schema)
    }
}

/// The type of a field marked `default` or `skip` alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no default",
    label = "no default for when the property is absent, or is not stored",
    note = "name a function that makes one: `#[table(default = \"path\")]`, beside a `skip`, too; or implement `Default` for the type"
)]
pub trait DefaultField: Default {}

impl<F: Default> DefaultField for F {}

/// A function that makes the default of a field that is not stored, or was absent.
pub const fn default_of<F: DefaultField>() -> fn() -> F {
    F::default
}

/// A text that is stored as it is.
pub const fn text_ref(text: &str) -> ValueRef<'_> {
    ValueRef::String(Cow::Borrowed(text))
}

/// The text as one of its own.
pub fn string(text: &str) -> String {
    text.to_owned()
}
