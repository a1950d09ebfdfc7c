//! The type of an entity as a property of its own: what it is called, and which names are read.
//! Knows nothing of how a row finds its variant.

use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

use super::{EntityError, EntityProblem, PropertyReader, Schema};

/// The name that a struct has in the table, beside those of other structs:
/// `#[table(entity_type = "Employee")]`.
///
/// ```
/// use tablesdk::TableEntity;
///
/// #[derive(TableEntity)]
/// #[table(entity_type = "Contractor", alias = "Freelancer")]
/// struct Contractor {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
/// }
///
/// let entity_type = Contractor::SCHEMA.entity_type().expect("it has one");
/// assert_eq!((entity_type.property(), entity_type.name()), ("EntityType", "Contractor"));
/// assert_eq!(entity_type.names(), ["Contractor", "Freelancer"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityType {
    property: &'static str,
    name: &'static str,
    aliases: &'static [&'static str],
    older: &'static [&'static Schema],
}

impl EntityType {
    #[doc(hidden)]
    pub const fn new(
        property: &'static str,
        name: &'static str,
        aliases: &'static [&'static str],
        older: &'static [&'static Schema],
    ) -> Self {
        Self {
            property,
            name,
            aliases,
            older,
        }
    }

    /// The property that holds the name.
    pub const fn property(&self) -> &'static str {
        self.property
    }

    /// The name that is written.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Every name that is read: the one that is written, its aliases, and those of older versions.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = self.own_names();
        let older = self.older.iter().filter_map(|schema| schema.entity_type());
        names.extend(older.flat_map(|older| older.names()));
        names
    }

    /// The names of this version.
    pub(super) fn own_names(&self) -> Vec<&'static str> {
        let mut names = vec![self.name];
        names.extend(self.aliases);
        names
    }

    pub(super) const fn older(&self) -> &'static [&'static Schema] {
        self.older
    }

    /// Returns true if the name is the name of this struct, in this version.
    pub(super) const fn is_own(&self, name: &str) -> bool {
        equal(self.name, name) || contains(self.aliases, name)
    }

    /// Returns true if entities with that name are read, those of older versions included.
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, too, and within the bounds by the condition of the loop"
    )]
    pub(super) const fn accepts(&self, name: &str) -> bool {
        let mut index = 0;
        while index < self.older.len() {
            if let Some(older) = &self.older[index].entity_type
                && older.accepts(name)
            {
                return true;
            }
            index += 1;
        }
        self.is_own(name)
    }

    /// The first of the names that `accepts` takes, too.
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the conditions of the loops"
    )]
    pub(super) const fn shared_with(
        &self,
        more: &'static [&'static str],
        other: &Self,
        other_more: &[&str],
    ) -> Option<&'static str> {
        if other.accepts(self.name) || contains(other_more, self.name) {
            return Some(self.name);
        }
        let lists = [self.aliases, more];
        let mut list = 0;
        while list < lists.len() {
            let mut index = 0;
            while index < lists[list].len() {
                let name = lists[list][index];
                if other.accepts(name) || contains(other_more, name) {
                    return Some(name);
                }
                index += 1;
            }
            list += 1;
        }
        let mut index = 0;
        while index < self.older.len() {
            if let Some(older) = &self.older[index].entity_type
                && let Some(name) = older.shared_with(&[], other, other_more)
            {
                return Some(name);
            }
            index += 1;
        }
        None
    }

    /// Refuses at compile time older versions that cannot be distinguished from this one.
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the conditions of the loops"
    )]
    #[track_caller]
    const fn check(&self) {
        let mut index = 0;
        while index < self.older.len() {
            if self.older[index].stub {
                index += 1;
                continue;
            }
            let Some(older) = &self.older[index].entity_type else {
                refuse(&[
                    "`",
                    self.older[index].entity(),
                    "` has no entity type to identify its entities: add `#[table(entity_type = \"…\")]` to the struct",
                ]);
            };
            if !equal(older.property, self.property) {
                refuse(&[
                    "`",
                    self.older[index].entity(),
                    "` has its entity type in the property `",
                    older.property,
                    "`, and the newer version in `",
                    self.property,
                    "`: use one property, with `#[table(entity_type_property = \"…\")]`",
                ]);
            }
            let own = Self {
                older: &[],
                ..*self
            };
            if let Some(name) = older.shared_with(&[], &own, &[]) {
                refuse(&[
                    "`",
                    self.older[index].entity(),
                    "` has the entity type \"",
                    name,
                    "\" of the newer version: give the newer one another, such as \"",
                    name,
                    ".v2\"",
                ]);
            }
            let mut before = 0;
            while before < index {
                if let Some(other) = &self.older[before].entity_type
                    && let Some(name) = older.shared_with(&[], other, &[])
                {
                    refuse(&[
                        "`",
                        self.older[before].entity(),
                        "` and `",
                        self.older[index].entity(),
                        "` are both read as \"",
                        name,
                        "\": keep one of them, which is made from the other",
                    ]);
                }
                before += 1;
            }
            index += 1;
        }
    }

    /// The condition for entities with one of the names.
    pub(super) fn condition(property: &str, names: &[&str]) -> Option<Tree> {
        let names = names.iter();
        let conditions =
            names.map(|name| Tree::comparison(property, ComparisonOperator::Equal, *name));
        conditions.reduce(Tree::or)
    }

    fn wrong(&self, found: Option<&str>) -> EntityError {
        wrong_type(self.property, &self.names(), found)
    }
}

pub(super) fn wrong_type(property: &str, expected: &[&str], found: Option<&str>) -> EntityError {
    EntityProblem::WrongEntityType {
        property: property.to_owned(),
        expected: expected.iter().map(|name| (*name).to_owned()).collect(),
        found: found.map(str::to_owned),
    }
    .into()
}

impl Schema {
    /// The name by which entities of this struct are known in the table; `None` of a struct that
    /// has none, and of an enum.
    pub const fn entity_type(&self) -> Option<EntityType> {
        self.entity_type
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn with_entity_type(mut self, entity_type: EntityType) -> Self {
        self.entity_type = Some(entity_type);
        self
    }

    /// Refuses at compile time an entity type that cannot be distinguished from those of older
    /// versions.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check_entity_type(&self) {
        if let Some(entity_type) = &self.entity_type {
            entity_type.check();
        }
    }
}

/// Converts an entity of an older version.
#[doc(hidden)]
pub fn upgrade<Old, New>(old: Old, schema: &Schema) -> Result<New, EntityError>
where
    New: TryFrom<Old, Error: std::fmt::Display>,
{
    New::try_from(old).map_err(|error| {
        EntityProblem::Upgrade {
            entity: schema.entity().to_owned(),
            reason: error.to_string(),
        }
        .into()
    })
}

/// Reads the entity type for the code of a struct, before it reads a property.
impl PropertyReader<'_, '_> {
    /// Which of the older versions the entity is of; `None` when of none.
    #[doc(hidden)]
    pub fn older_version(&mut self, schema: &Schema) -> Result<Option<usize>, EntityError> {
        let Some(entity_type) = schema.entity_type else {
            return Ok(None);
        };
        let Some(found) = self.type_text(entity_type.property)? else {
            return Ok(None);
        };
        let mut older = entity_type.older().iter();
        Ok(older.position(|older| {
            let entity_type = older.entity_type();
            entity_type.is_some_and(|entity_type| entity_type.accepts(found))
        }))
    }

    /// Refuses an entity of another type, and takes the property that says so out of what is left
    /// to read.
    #[doc(hidden)]
    pub fn check_type(&mut self, schema: &Schema) -> Result<(), EntityError> {
        let Some(entity_type) = schema.entity_type else {
            return Ok(());
        };
        let found = self.type_text(entity_type.property)?;
        let is_right = found.is_some_and(|found| self.is_accepted() || entity_type.is_own(found));
        if !is_right {
            return Err(entity_type.wrong(found));
        }
        self.hide(entity_type.property);
        Ok(())
    }
}

/// Returns true if two strings are equal; for constants.
pub(super) const fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && begins_with(a, b)
}

/// Returns true if a string begins with another; for constants.
#[expect(
    clippy::indexing_slicing,
    reason = "at compile time, too, and within the bounds by the condition of the loop"
)]
pub(super) const fn begins_with(text: &str, beginning: &str) -> bool {
    let (text, beginning) = (text.as_bytes(), beginning.as_bytes());
    if text.len() < beginning.len() {
        return false;
    }
    let mut index = 0;
    while index < beginning.len() {
        if text[index] != beginning[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[expect(
    clippy::indexing_slicing,
    reason = "at compile time, too, and within the bounds by the condition of the loop"
)]
pub(super) const fn contains(names: &[&str], name: &str) -> bool {
    let mut index = 0;
    while index < names.len() {
        if equal(names[index], name) {
            return true;
        }
        index += 1;
    }
    false
}

/// Ends the compilation with a message of these parts.
#[expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "at compile time, which is what it is for"
)]
#[track_caller]
pub(crate) const fn refuse(parts: &[&str]) -> ! {
    let mut message = [0; MESSAGE_BYTES_MAX];
    let mut length = 0;
    let mut part = 0;
    while part < parts.len() {
        let bytes = parts[part].as_bytes();
        // A part that does not fit is left out as a whole, so that no character is cut in two.
        let mut index = 0;
        while length + bytes.len() - index <= MESSAGE_BYTES_MAX && index < bytes.len() {
            message[length] = bytes[index];
            length += 1;
            index += 1;
        }
        part += 1;
    }
    match str::from_utf8(message.split_at(length).0) {
        Ok(message) => panic!("{}", message),
        Err(_) => panic!("the entity types of two structs do not go together"),
    }
}

const MESSAGE_BYTES_MAX: usize = 1024;
