//! The values of entities by property: each property is looked at without a search in each entity.

use std::collections::HashMap;

use tablesdk::{DynamicEntity, Value};

/// The properties of entities.
pub(super) struct Columns<'s> {
    /// In the order in which they were seen first.
    all: Vec<Column<'s>>,
    positions: HashMap<&'s str, usize>,
}

/// The values of one property, each with the position of its entity.
pub(super) struct Column<'s> {
    pub(super) name: &'s str,
    pub(super) values: Vec<(usize, &'s Value)>,
}

impl<'s> Columns<'s> {
    pub(super) fn of(entities: impl IntoIterator<Item = &'s DynamicEntity>) -> Self {
        let (mut all, mut positions) = (Vec::new(), HashMap::new());
        for (entity, properties) in (0..).zip(entities) {
            for (name, value) in properties.properties().iter() {
                let position = *positions.entry(name).or_insert_with(|| {
                    let values = Vec::new();
                    all.push(Column { name, values });
                    all.len() - 1
                });
                if let Some(column) = all.get_mut(position) {
                    column.values.push((entity, value));
                }
            }
        }
        Self { all, positions }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Column<'s>> {
        self.all.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Column<'s>> {
        self.all.get(*self.positions.get(name)?)
    }
}
