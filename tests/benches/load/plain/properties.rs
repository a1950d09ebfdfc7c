//! The properties of an entity as `serde_json` reads them, in the order of the body: in a list,
//! which takes less time and memory than a map of so few.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

#[derive(Clone)]
pub(super) struct Properties(Vec<(String, Value)>);

impl Properties {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let mut properties = self.iter();
        properties.find_map(|(known, value)| (known == name).then_some(value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Sets a property, which may be there.
    pub(super) fn set(&mut self, name: String, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, stored)) => *stored = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets all properties of another list.
    pub(super) fn merge(&mut self, changed: Self) {
        for (name, value) in changed.0 {
            self.set(name, value);
        }
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Properties;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut properties = Vec::with_capacity(USUAL);
                while let Some(property) = map.next_entry()? {
                    properties.push(property);
                }
                Ok(Properties(properties))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// How many properties and annotations an entity usually has.
const USUAL: usize = 16;
