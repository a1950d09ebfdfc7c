//! What is known of an entity's properties at compile time.

use tablesdk_protocol::EdmType;

/// The properties that a struct is stored as, keys left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    entity: &'static str,
    properties: &'static [PropertySchema],
}

impl Schema {
    /// The schema of the struct of that name.
    pub const fn new(entity: &'static str, properties: &'static [PropertySchema]) -> Self {
        Self { entity, properties }
    }

    /// The name of the struct.
    pub const fn entity(&self) -> &'static str {
        self.entity
    }

    /// The properties, in the order of their fields.
    pub const fn properties(&self) -> &'static [PropertySchema] {
        self.properties
    }
}

/// One property of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertySchema {
    name: &'static str,
    edm_type: EdmType,
    optional: bool,
}

impl PropertySchema {
    pub(super) const fn new(name: &'static str, edm_type: EdmType, optional: bool) -> Self {
        Self {
            name,
            edm_type,
            optional,
        }
    }

    /// The name in the table.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The type in the table.
    pub const fn edm_type(&self) -> EdmType {
        self.edm_type
    }

    /// Whether the field is an `Option`.
    pub const fn is_optional(&self) -> bool {
        self.optional
    }
}
