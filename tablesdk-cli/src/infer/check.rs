//! Checks by the rules of the derive whether a module reads an entity. So the output can be checked
//! where no compiler is.

use std::collections::HashMap;

use tablesdk::{DynamicEntity, Value};

use super::kinds::By;
use super::model::{Key, Module, Struct};
use super::template::Template;

/// Why a module does not read an entity.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// The entity is of no kind that the module has.
    #[error("the entity is of no kind that the module has")]
    Kind,
    /// A key does not follow the template.
    #[error("the {0} does not follow the template")]
    Key(&'static str),
    /// A property is absent, or of another type than its field.
    #[error("the property {0:?} is absent or of another type")]
    Property(String),
}

impl Module {
    /// Checks that a struct of the module reads an entity.
    ///
    /// # Errors
    ///
    /// When none does.
    pub fn check(&self, entity: &DynamicEntity) -> Result<(), Unreadable> {
        match self.struct_of(entity) {
            Some(found) => found.check(entity),
            None if self.others > 0 => Ok(()),
            None => Err(Unreadable::Kind),
        }
    }

    fn struct_of(&self, entity: &DynamicEntity) -> Option<&Struct> {
        let mut structs = self.structs.iter();
        match &self.by {
            By::Nothing => structs.next(),
            By::Type(property) => structs.find(|it| {
                let value = entity.properties().get(property);
                matches!(value, Some(Value::String(value)) if *value == it.label)
            }),
            By::RowKey => structs.find(|it| {
                let prefix = it.row_key.template.as_ref().map(Template::prefix);
                prefix.is_some_and(|prefix| entity.row_key().starts_with(prefix))
            }),
        }
    }
}

impl Struct {
    fn check(&self, entity: &DynamicEntity) -> Result<(), Unreadable> {
        self.partition_key
            .check("partition key", entity.partition_key())?;
        self.row_key.check("row key", entity.row_key())?;
        let properties: HashMap<_, _> = entity.properties().iter().collect();
        for field in &self.fields {
            let is_readable = match properties.get(field.property.as_str()) {
                Some(value) => field.reads.reads(value),
                None => field.is_optional,
            };
            if !is_readable {
                return Err(Unreadable::Property(field.property.clone()));
            }
        }
        Ok(())
    }
}

impl Key {
    fn check(&self, noun: &'static str, key: &str) -> Result<(), Unreadable> {
        match &self.template {
            Some(template) if template.read(key).is_none() => Err(Unreadable::Key(noun)),
            _ => Ok(()),
        }
    }
}
