//! Entities as variants of an enum. An enum uses the type of a variant through one trait, so that
//! the compiler reports a type that is no entity once.

use std::any::TypeId;

use tablesdk_protocol::{ETag, EntityKey};

use super::attached::{Attach, Extensions, Facts, Memory, Remembered, Variant};
use super::encrypted::check_no_plain_text;
use super::{
    ColumnScope, DynamicEntity, EntityError, EntityProblem, PropertyReader, PropertyWriter, Schema,
    TableEntity, WritableEntity,
};

/// An entity that can be a variant of an enum of entities. What derives
/// [`TableEntity`](crate::TableEntity) is one.
///
/// Its columns are then those of the enum, restricted to the rows of the variant. An enum is no
/// variant of another one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a variant of an enum of entities",
    label = "not a struct that derives `TableEntity`",
    note = "a variant holds a struct: add `#[derive(TableEntity)]` to it",
    note = "enums of entities cannot be nested: add the variants of the inner enum to the outer one"
)]
pub trait EntityVariant: Sized {
    /// The columns, as those of `E`.
    type ColumnsOf<E>: Copy;

    /// Access to the value of a variant.
    #[doc(hidden)]
    const ACCESS: VariantAccess<Self>;

    /// The columns, as those of `E`, for the entities that the prefix selects.
    #[doc(hidden)]
    fn columns_of<E>(scope: ColumnScope) -> Self::ColumnsOf<E>;
}

/// Access to the value of a variant.
#[doc(hidden)]
#[derive(Debug)]
pub struct VariantAccess<V> {
    schema: &'static Schema,
    facts: Facts,
    read: fn(&mut PropertyReader<'_, '_>) -> Result<V, EntityError>,
    written_as: fn(&mut V, &ETag),
    id: fn() -> TypeId,
    attach: fn(&V, &mut Attach<'_>) -> Result<(), EntityError>,
    remember: fn(&V, &mut Memory, Remembered),
    extensions: fn(&mut Extensions<'_>),
    /// Not of a projection.
    write: Option<WriteAccess<V>>,
}

#[derive(Debug)]
struct WriteAccess<V> {
    key: fn(&V) -> Result<EntityKey, EntityError>,
    write: fn(&V, &mut PropertyWriter<'_>) -> Result<(), EntityError>,
}

/// Access to an entity.
#[doc(hidden)]
pub const fn variant<V: WritableEntity>() -> VariantAccess<V> {
    VariantAccess {
        write: Some(WriteAccess {
            key: V::entity_key,
            write: V::write,
        }),
        ..projected_variant::<V>()
    }
}

/// Access to a part of an entity, which cannot be written.
#[doc(hidden)]
pub const fn projected_variant<V: TableEntity>() -> VariantAccess<V> {
    VariantAccess {
        schema: const { &V::SCHEMA },
        facts: V::FACTS,
        read: V::read,
        written_as: V::written_as,
        id: TypeId::of::<V>,
        attach: V::attach,
        remember: V::remember,
        extensions: V::extensions,
        write: None,
    }
}

#[expect(clippy::missing_errors_doc, reason = "called by generated code alone")]
impl<V> VariantAccess<V> {
    /// The schema of the type.
    pub const fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Returns true if the value can be written.
    pub const fn is_writable(&self) -> bool {
        self.write.is_some()
    }

    /// Reads it.
    pub fn read(&self, reader: &mut PropertyReader<'_, '_>) -> Result<V, EntityError> {
        (self.read)(reader)
    }

    /// Notes in it as which version it was written.
    pub fn written_as(&self, value: &mut V, etag: &ETag) {
        (self.written_as)(value, etag);
    }

    /// The facts about the type that are known at compile time.
    pub const fn facts(&self) -> Facts {
        self.facts
    }

    /// Adds what goes along with a write of it.
    pub fn attach(&self, value: &V, attach: &mut Attach<'_>) -> Result<(), EntityError> {
        attach.replace_variant((self.id)());
        (self.attach)(value, attach)
    }

    /// Notes what has to be known of it when it is written again.
    pub fn remember(&self, value: &V, memory: &mut Memory, how: Remembered) {
        (self.remember)(value, memory, how);
        memory.keep(Variant((self.id)()));
    }

    /// Adds the patterns that take part in all its reads and writes.
    pub fn extensions(&self, extensions: &mut Extensions<'_>) {
        (self.extensions)(extensions);
    }

    /// Refuses at compile time an entry of an index, which an enum would not verify, and a type
    /// whose entries would have plain text.
    pub const fn check_held(&self) {
        assert!(
            !self.facts.is_entry,
            "an enum of entities cannot hold an entry of an index: query the entries by themselves"
        );
        check_no_plain_text(self.facts, self.schema);
    }

    /// Its key. An enum with a variant that cannot be written has been refused at compile time.
    pub fn key(&self, value: &V) -> Result<EntityKey, EntityError> {
        match &self.write {
            Some(write) => (write.key)(value),
            None => Err(EntityProblem::Unwritable.into()),
        }
    }

    /// Writes it.
    pub fn write(&self, value: &V, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        match &self.write {
            Some(write) => (write.write)(value, writer),
            None => Err(EntityProblem::Unwritable.into()),
        }
    }
}

/// The schema of an older version.
#[doc(hidden)]
pub const fn schema_of<V: EntityVariant>() -> &'static Schema {
    V::ACCESS.schema
}

/// Refuses at compile time what cannot hold every entity.
#[doc(hidden)]
pub const fn check_other<V: OtherVariant>() {}

/// The value of a variant marked `other`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot hold an entity of any type",
    label = "not a `tablesdk::DynamicEntity`",
    note = "the variant marked `other` takes what no other variant does, whatever its properties: it holds a `tablesdk::DynamicEntity`"
)]
pub trait OtherVariant {}

impl OtherVariant for DynamicEntity {}
