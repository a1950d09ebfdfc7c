//! The hooks that the derive adds to an entity for the patterns that take part in its reads and
//! writes. Opaque here: a pattern makes the parts, the verbs carry them, and the same pattern opens
//! them.

use std::any::{Any, TypeId};
use std::sync::OnceLock;
use std::{fmt, iter};

use super::{Schema, TableEntity};

/// The facts about a type that are known at compile time. For a plain type, the verbs contain no
/// code of any pattern.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub(crate) is_entry: bool,
    pub(crate) has_riders: bool,
    pub(crate) is_extended: bool,
}

impl Facts {
    /// A type of no pattern.
    pub const PLAIN: Self = Self {
        is_entry: false,
        has_riders: false,
        is_extended: false,
    };

    /// Other entities are written together with each entity of the type.
    #[must_use]
    pub const fn with_riders(mut self) -> Self {
        self.has_riders = true;
        self
    }

    /// An entity of the type is written together with another one, and not by itself.
    #[must_use]
    pub const fn entry(mut self) -> Self {
        self.is_entry = true;
        self
    }

    /// A pattern takes part in reads and writes of the type, whatever the value.
    #[must_use]
    pub const fn extended(mut self) -> Self {
        self.is_extended = true;
        self
    }

    /// Adds the facts of a schema, which may encrypt properties.
    #[must_use]
    pub const fn of_schema(mut self, schema: &Schema) -> Self {
        self.is_extended |= schema.encrypts();
        self
    }

    /// Returns true if each write of an entity is complete by itself.
    pub(crate) const fn is_standalone(self) -> bool {
        !self.is_entry && !self.has_riders
    }

    /// Adds the facts of a variant to those of its enum.
    #[must_use]
    pub const fn or(mut self, variant: Self) -> Self {
        self.is_entry |= variant.is_entry;
        self.has_riders |= variant.has_riders;
        self.is_extended |= variant.is_extended;
        self
    }
}

/// Collects what goes along with a write of an entity.
pub struct Attach<'a> {
    /// The notes of patterns about the stored entity; none for an insert.
    pub(crate) memory: &'a Memory,
    /// The collection of [`extend`](crate::action::extend), which gets the riders.
    pub(crate) sink: &'a mut dyn Any,
}

impl Attach<'_> {
    /// Adds what goes along with the removal of the stored entity.
    pub(crate) fn remove_stored(&mut self) {
        let memory = self.memory;
        memory.remove(self);
    }

    /// For a value that has become another variant of its enum: removes the stored one, and inserts
    /// the value.
    pub(super) fn replace_variant(&mut self, now: TypeId) {
        let stored = self.memory.get::<Variant>();
        if stored.is_some_and(|stored| stored.0 != now) {
            self.remove_stored();
            self.memory = const { &Memory::NONE };
        }
    }
}

impl fmt::Debug for Attach<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attach").finish_non_exhaustive()
    }
}

/// Collects the patterns that take part in all reads and writes of a type.
pub struct Extensions<'a> {
    /// The schema of the type, of an enum that of the enum.
    pub(crate) schema: &'static Schema,
    /// The collection of [`extend`](crate::action::extend), which gets the extensions.
    pub(crate) sink: &'a mut dyn Any,
}

impl fmt::Debug for Extensions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}

/// Adds a pattern that takes part in reads and writes of entities without a schema, from now on: it
/// decides by the client that runs them.
#[cfg(feature = "encryption")]
pub(crate) fn extend_dynamic(by: fn(&mut Extensions<'_>)) {
    OF_DYNAMIC.get_or_init(|| by);
}

/// Adds the pattern of entities without a schema.
pub(super) fn dynamic(extensions: &mut Extensions<'_>) {
    if let Some(by) = OF_DYNAMIC.get() {
        by(extensions);
    }
}

static OF_DYNAMIC: OnceLock<fn(&mut Extensions<'_>)> = OnceLock::new();

/// How a value became the one that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "made by this crate alone")]
pub enum Remembered {
    /// It was read.
    Read,
    /// It was written.
    Written,
}

/// The notes of patterns about a stored value. Each pattern has at most one note.
#[derive(Clone, Default)]
pub struct Memory(Option<Box<Kept<dyn AnyNote>>>);

struct Kept<N: ?Sized> {
    next: Memory,
    note: N,
}

/// A note of a pattern.
pub(crate) trait Note: Clone + Send + Sync + 'static {
    /// Adds what goes along with the removal of the value.
    fn remove(&self, _attach: &mut Attach<'_>) {}
}

trait AnyNote: Send + Sync + 'static {
    fn as_any(&self) -> &dyn Any;

    fn kept(&self, next: Memory) -> Box<Kept<dyn AnyNote>>;

    fn remove(&self, attach: &mut Attach<'_>);
}

impl<N: Note> AnyNote for N {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kept(&self, next: Memory) -> Box<Kept<dyn AnyNote>> {
        let note = self.clone();
        Box::new(Kept { next, note })
    }

    fn remove(&self, attach: &mut Attach<'_>) {
        Note::remove(self, attach);
    }
}

impl Clone for Box<Kept<dyn AnyNote>> {
    fn clone(&self) -> Self {
        self.note.kept(self.next.clone())
    }
}

impl Memory {
    pub(crate) const NONE: Self = Self(None);

    /// The notes about a value that was read or written.
    pub(crate) fn of<E: TableEntity>(value: &E, how: Remembered) -> Self {
        let mut memory = Self::NONE;
        if const { E::FACTS.has_riders } {
            value.remember(&mut memory, how);
        }
        memory
    }

    /// Adds a note.
    pub(crate) fn keep<N: Note>(&mut self, note: N) {
        let next = std::mem::take(self);
        self.0 = Some(Box::new(Kept { next, note }));
    }

    /// The note of that type.
    pub(crate) fn get<N: 'static>(&self) -> Option<&N> {
        self.notes().find_map(|note| note.as_any().downcast_ref())
    }

    fn remove(&self, attach: &mut Attach<'_>) {
        self.notes().for_each(|note| note.remove(attach));
    }

    fn notes(&self) -> impl Iterator<Item = &dyn AnyNote> {
        let kept = iter::successors(self.0.as_deref(), |kept| kept.next.0.as_deref());
        kept.map(|kept| &kept.note)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

/// The type of the variant of an enum.
#[derive(Clone, Copy)]
pub(super) struct Variant(pub(super) TypeId);

impl Note for Variant {}

/// Refuses at compile time a type without the patterns of its schema: its `TableEntity` is written
/// by hand, and would store in plain text what another type encrypts, and show what another type
/// hides.
pub(crate) const fn check_extended<E: TableEntity>() {
    assert!(
        E::FACTS.is_extended || !(E::SCHEMA.encrypts() || E::SCHEMA.expires.is_some()),
        "a type whose `TableEntity` is written by hand cannot have the schema of a type with encrypted properties, or of one that expires: derive it"
    );
}
