//! The facts about the properties of an entity that are known at compile time.

use std::borrow::Cow;

use tablesdk_protocol::limits::{PROPERTIES_MAX, PROPERTY_NAME_UNITS_MAX};
use tablesdk_protocol::{EdmType, KeyKind};

use super::EntityType;
use super::column_scope::ColumnScope;
use super::encrypted::{Encryption, lookup_name};
use super::entity_type::refuse;
use super::key::KeyTemplate;
use super::table_form::TableForm;
use super::variants::Dispatch;

/// The properties that a struct is stored as, keys left out.
///
/// ```
/// use tablesdk::{EdmType, TableEntity};
///
/// #[derive(TableEntity)]
/// #[table(rename_all = "PascalCase")]
/// struct Person {
///     #[table(partition_key)]
///     country: String,
///     #[table(row_key)]
///     id: String,
///     first_name: String,
///     age: Option<i32>,
/// }
///
/// let schema = Person::SCHEMA;
/// assert_eq!(schema.row_key().expect("it has one").text(), "{id}");
/// let [name, age] = &schema.properties()[..] else { panic!("it has two properties") };
/// assert_eq!((name.name().as_ref(), name.is_optional()), ("FirstName", false));
/// assert_eq!((age.edm_type(), age.is_optional()), (EdmType::Int32, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    entity: &'static str,
    pub(super) parts: &'static [SchemaPart],
    pub(super) projection: bool,
    partition_key: Option<KeyTemplate>,
    row_key: Option<KeyTemplate>,
    pub(super) entity_type: Option<EntityType>,
    /// The variants of an enum.
    pub(super) dispatch: Option<Dispatch>,
    /// The property with the instant at which an entity expires.
    pub(crate) expires: Option<&'static str>,
    /// The place of the entries of an index.
    pub(super) entry: Option<EntryPlace>,
    /// The other table that the entities are in.
    table: Option<TableForm>,
    /// With what the row keys of its entries in indexes begin.
    pub(super) row_keys_of_entries: &'static [&'static str],
    /// True if the partition keys of the entities begin with a text of their own.
    pub(super) told_by_partition: bool,
    /// True for a type with a mistake, of which nothing is known.
    pub(super) stub: bool,
    /// For a flattened struct without `rename_all`, the set of the rules that its names do not
    /// follow. Neither derive sees the attributes of the other struct, so the outer one compares
    /// this with its own rule at compile time: a forgotten rule is a compiler message.
    unrenamed: u8,
}

/// Where the entries of an index are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryPlace {
    /// In the partition of their entity.
    Together,
    Elsewhere,
    /// There, and each is reserved before its entity is written.
    Reserved,
}

/// The properties of a field.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "made by generated code alone")]
pub enum SchemaPart {
    /// The properties of a flattened struct, and the prefix of their names.
    Group(&'static str, &'static Schema),
    /// One property.
    Property(PropertySchema),
}

impl Schema {
    /// The schema of the struct of that name.
    pub const fn new(entity: &'static str, parts: &'static [SchemaPart]) -> Self {
        Self {
            entity,
            parts,
            projection: false,
            partition_key: None,
            row_key: None,
            entity_type: None,
            dispatch: None,
            expires: None,
            entry: None,
            table: None,
            row_keys_of_entries: &[],
            told_by_partition: false,
            stub: false,
            unrenamed: 0,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn unrenamed(mut self, rules: u8) -> Self {
        self.unrenamed = rules;
        self
    }

    /// Refuses at compile time to flatten this struct into one whose names follow a rule, if it has
    /// no rule of its own.
    // Neither derive sees the other struct. A name in the wrong case would show only when other
    // programs do not find the property.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check_rename_all(&self, bit: u8, rule: &str, owner: &str) {
        if self.unrenamed & bit != 0 {
            refuse(&[
                "`",
                self.entity,
                "` has no `rename_all`, and does not take over that of `",
                owner,
                "`: add `#[table(rename_all = \"",
                rule,
                "\")]` to `",
                self.entity,
                "`, or `rename_all = \"snake_case\"` if its properties have the names of its fields",
            ]);
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn key(mut self, template: KeyTemplate) -> Self {
        match template.part() {
            KeyKind::PartitionKey => self.partition_key = Some(template),
            KeyKind::RowKey => self.row_key = Some(template),
        }
        self
    }

    /// Marks the schema of a type with a mistake. Checks skip it, so that only that mistake is
    /// reported.
    #[doc(hidden)]
    #[must_use]
    pub const fn stub(mut self) -> Self {
        self.stub = true;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn projection(mut self) -> Self {
        self.projection = true;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn entry(mut self) -> Self {
        self.entry = Some(EntryPlace::Together);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn row_keys_of_entries(mut self, beginnings: &'static [&'static str]) -> Self {
        self.row_keys_of_entries = beginnings;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn entry_elsewhere(mut self) -> Self {
        self.entry = Some(EntryPlace::Elsewhere);
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn entry_reserved(mut self) -> Self {
        self.entry = Some(EntryPlace::Reserved);
        self
    }

    /// Tells the entities of the type from others by the beginning of their partition keys.
    #[doc(hidden)]
    #[must_use]
    pub const fn told_by_partition(mut self) -> Self {
        self.told_by_partition = true;
        self
    }

    /// The entities are in a table whose name is that of the table which a program names, between
    /// two texts.
    #[doc(hidden)]
    #[must_use]
    pub const fn in_table(mut self, before: &'static str, after: &'static str) -> Self {
        self.table = Some(TableForm::new(before, after));
        self
    }

    /// The other table that the entities are in; `None` where they are in the table that a program
    /// names.
    pub(crate) const fn table(&self) -> Option<TableForm> {
        self.table
    }

    /// Returns true if the schema is that of entries in other partitions than their entities.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        matches!(
            self.entry,
            Some(EntryPlace::Elsewhere | EntryPlace::Reserved)
        )
    }

    /// Returns true if a stored entry itself shows whether its entity may be missing.
    pub(crate) const fn is_reserved_first(&self) -> bool {
        matches!(self.entry, Some(EntryPlace::Reserved))
    }

    /// The name of the struct.
    pub const fn entity(&self) -> &'static str {
        self.entity
    }

    /// Returns true if the struct is a projection: a part of a stored entity, which can only be
    /// read.
    pub const fn is_projection(&self) -> bool {
        self.projection
    }

    /// How the partition key is made; `None` where no field is a part of it.
    pub const fn partition_key(&self) -> Option<KeyTemplate> {
        self.partition_key
    }

    /// How the row key is made; `None` where no field is a part of it.
    pub const fn row_key(&self) -> Option<KeyTemplate> {
        self.row_key
    }

    /// How that key is made, for code that knows that it is.
    #[doc(hidden)]
    pub const fn template(&self, part: KeyKind) -> KeyTemplate {
        let known = match part {
            KeyKind::PartitionKey => self.partition_key,
            KeyKind::RowKey => self.row_key,
        };
        match known {
            Some(template) => template,
            None => KeyTemplate::new(part, "", &[]),
        }
    }

    /// The properties, in the order of their fields; those of flattened structs in place of their
    /// field. The one that holds the [entity type](Self::entity_type) has no field, and an enum of
    /// entities has no properties of its own.
    pub fn properties(&self) -> Vec<PropertySchema> {
        let mut properties = Vec::new();
        self.append(ColumnScope::ROOT, &mut properties);
        properties
    }

    fn append(&self, scope: ColumnScope, properties: &mut Vec<PropertySchema>) {
        for part in self.parts {
            match part {
                SchemaPart::Group(text, schema) => schema.append(scope.then(text), properties),
                SchemaPart::Property(property) => {
                    properties.push(PropertySchema { scope, ..*property });
                }
            }
        }
    }

    /// The names that a query selects; `None` selects all properties.
    pub(crate) fn select(&self) -> Option<Vec<String>> {
        if !self.projection {
            return None;
        }
        if self.dispatch.is_some() {
            return self.select_of_variants();
        }
        // Both keys belong to whatever is stored, and so does the timestamp, where the ETag does
        // not hold it.
        let mut names = vec![
            "PartitionKey".to_owned(),
            "RowKey".to_owned(),
            "Timestamp".to_owned(),
        ];
        names.extend(self.type_property().map(str::to_owned));
        for property in self.properties() {
            let aliases = property.aliases.iter().copied();
            let all = [property.name].into_iter().chain(aliases);
            names.extend(all.map(|name| property.scope.name(name).into_owned()));
            if property.has_lookup() {
                names.push(lookup_name(&property.name()));
            }
        }
        Some(names)
    }

    /// Refuses at compile time what the derive cannot see, since it does not know the structs that
    /// are flattened.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check(&self) {
        self.check_beside(&[]);
    }

    /// As [`check`](Self::check), for an entity that is stored with these properties as well.
    #[track_caller]
    pub(crate) const fn check_beside(&self, reserved: &'static [&'static str]) {
        self.check_names::<512>(
            PROPERTIES_MAX,
            "the entity has more than 252 properties, including those of flattened structs and the slots of series: mark it `#[table(wide)]`, or split it",
            reserved,
        );
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the condition of the loop"
    )]
    #[track_caller]
    pub(crate) const fn check_names<const SLOTS: usize>(
        &self,
        max: usize,
        too_many: &'static str,
        reserved: &'static [&'static str],
    ) {
        let mut names = Names {
            slots: [0; SLOTS],
            count: 0,
            max,
            too_many,
            reserved,
        };
        let mut index = 0;
        while index < reserved.len() {
            names.add(ColumnScope::ROOT, reserved[index]);
            index += 1;
        }
        if let Some(entity_type) = &self.entity_type {
            names.add(ColumnScope::ROOT, entity_type.property());
        }
        names.add_all(self, ColumnScope::ROOT);
        self.check_encryption();
    }
}

/// The names so far, as hashes: to compare the texts themselves would take the compiler too long.
/// There are more slots than names.
struct Names<const SLOTS: usize> {
    /// Each hash is in the first free slot after its own. 0 is a free slot.
    slots: [u64; SLOTS],
    count: usize,
    max: usize,
    too_many: &'static str,
    /// The names that mark copies.
    reserved: &'static [&'static str],
}

impl<const SLOTS: usize> Names<SLOTS> {
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the condition of the loop"
    )]
    const fn is_reserved(&self, hash: u64) -> bool {
        let mut index = 0;
        while index < self.reserved.len() {
            if hash_of(ColumnScope::ROOT, self.reserved[index]).0 == hash {
                return true;
            }
            index += 1;
        }
        false
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the conditions of the loops"
    )]
    #[track_caller]
    const fn add_all(&mut self, schema: &Schema, scope: ColumnScope) {
        let mut index = 0;
        while index < schema.parts.len() {
            match &schema.parts[index] {
                SchemaPart::Group(text, schema) => match scope.checked_then(text) {
                    Some(scope) => self.add_all(schema, scope),
                    None => panic!("structs with a prefix are flattened more than three deep"),
                },
                SchemaPart::Property(property) => self.add(scope, property.name),
            }
            index += 1;
        }
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "at compile time, and within the bounds by the conditions"
    )]
    #[track_caller]
    const fn add(&mut self, scope: ColumnScope, name: &'static str) {
        let (hash, units) = hash_of(scope, name);
        assert!(
            units > 0,
            "a flattened value without a prefix has no name: give it one with `#[table(flatten, prefix = \"…\")]`"
        );
        assert!(
            !scope.is_empty() || !name.as_bytes()[0].is_ascii_digit(),
            "the slots of a series have numbers as names: add a prefix that begins with a letter, such as `#[table(flatten, prefix = \"S\")]`"
        );
        assert!(
            units <= PROPERTY_NAME_UNITS_MAX,
            "the name of a property with its prefixes is longer than the 255 UTF-16 units of the service"
        );
        assert!(self.count < self.max, "{}", self.too_many);
        // The lowest bits alone differ too little.
        let mut slot = (hash >> 32 ^ hash & 0xFFFF_FFFF) as usize % SLOTS;
        while self.slots[slot] != 0 {
            if self.slots[slot] == hash {
                let [a, b, c] = *scope.parts();
                if self.is_reserved(hash) {
                    let rule = "` marks copies, and a property of this copy has the name: give the property another";
                    refuse(&["`", a, b, c, name, rule]);
                }
                refuse(&[
                    "two properties have the name `",
                    a,
                    b,
                    c,
                    name,
                    "`: give the flattened struct another prefix with `#[table(flatten, prefix = \"…\")]`",
                ]);
            }
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = hash;
        self.count += 1;
    }
}

/// FNV-1a over the whole name, and how many UTF-16 units it has.
pub(super) const fn hash_of(scope: ColumnScope, name: &str) -> (u64, usize) {
    let [a, b, c] = *scope.parts();
    let start = (0xCBF2_9CE4_8422_2325, 0);
    hash_on(hash_on(hash_on(hash_on(start, a), b), c), name)
}

#[expect(
    clippy::indexing_slicing,
    reason = "at compile time, and within the bounds by the condition of the loop"
)]
pub(super) const fn hash_on((mut hash, mut units): (u64, usize), text: &str) -> (u64, usize) {
    let bytes = text.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3);
        // A character begins with a byte of another form than those that follow; one of four bytes
        // is two units.
        if byte & 0xC0 != 0x80 {
            units += 1;
        }
        if byte >= 0xF0 {
            units += 1;
        }
        index += 1;
    }
    (hash, units)
}

/// One property of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertySchema {
    scope: ColumnScope,
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    edm_type: EdmType,
    optional: bool,
    encryption: Encryption,
}

impl PropertySchema {
    pub(crate) const fn new(name: &'static str, edm_type: EdmType, optional: bool) -> Self {
        Self {
            scope: ColumnScope::ROOT,
            name,
            aliases: &[],
            edm_type,
            optional,
            encryption: Encryption::No,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn encrypted(mut self) -> Self {
        self.encryption = Encryption::Yes;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn encrypted_with_lookup(mut self) -> Self {
        self.encryption = Encryption::WithLookup;
        self
    }

    /// Returns true if the values are encrypted before they are sent.
    pub const fn is_encrypted(&self) -> bool {
        !matches!(self.encryption, Encryption::No)
    }

    pub(super) const fn has_lookup(&self) -> bool {
        matches!(self.encryption, Encryption::WithLookup)
    }

    pub(super) const fn is_encrypted_as(&self, other: &Self) -> bool {
        self.is_encrypted() == other.is_encrypted() && self.has_lookup() == other.has_lookup()
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Marks a property whose field has a default value when the property is absent.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_default(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Returns true if the property is also read under that name.
    pub(crate) fn is_alias(&self, name: &str) -> bool {
        let mut aliases = self.aliases.iter();
        aliases.any(|alias| self.scope.name(alias) == name)
    }

    /// The name in the table.
    pub fn name(&self) -> Cow<'static, str> {
        self.scope.name(self.name)
    }

    /// The type in the table.
    pub const fn edm_type(&self) -> EdmType {
        self.edm_type
    }

    /// Returns true if the property may be absent: its field is an `Option`, or has a default.
    pub const fn is_optional(&self) -> bool {
        self.optional
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_measured_with_their_prefixes_in_utf16() {
        let scope = ColumnScope::ROOT.then("a_").then("").then("é😀");
        let (hash, units) = hash_of(scope, "啊x");
        assert_eq!(units, "a_é😀啊x".encode_utf16().count());
        assert_eq!(hash, hash_of(ColumnScope::ROOT, "a_é😀啊x").0);
        assert_ne!(hash, hash_of(ColumnScope::ROOT, "a_é😀啊y").0);
        assert_eq!(scope.name("啊x"), "a_é😀啊x");
    }

    #[test]
    #[should_panic(expected = "two properties have the name `ab`")]
    fn names_that_meet_are_found() {
        const GROUP: Schema = Schema::new("Group", &[property("b")]);
        const ENTITY: Schema = Schema::new("E", &[property("ab"), SchemaPart::Group("a", &GROUP)]);
        ENTITY.check();
    }

    #[test]
    #[should_panic(expected = "flattened more than three deep")]
    fn depth_is_bounded() {
        const A: Schema = Schema::new("A", &[property("x")]);
        const B: Schema = Schema::new("B", &[SchemaPart::Group("a", &A)]);
        const C: Schema = Schema::new("C", &[SchemaPart::Group("b", &B)]);
        const D: Schema = Schema::new("D", &[SchemaPart::Group("c", &C)]);
        const E: Schema = Schema::new("E", &[SchemaPart::Group("d", &D)]);
        D.check();
        E.check();
    }

    const fn property(name: &'static str) -> SchemaPart {
        SchemaPart::Property(PropertySchema::new(name, EdmType::String, false))
    }
}
