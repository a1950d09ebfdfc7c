//! The kinds of entities that share a table: told apart by a property that names the type, or by
//! the beginnings of the row keys. This file knows neither templates nor names of Rust.

use std::collections::HashSet;

use tablesdk::{DynamicEntity, Value};
use tablesdk_protocol::check_property_name;

use super::columns::{Column, Columns};
use super::sample::TEXT_MAX;

/// The entities of one kind.
#[derive(Debug)]
pub(super) struct Kind<'s> {
    /// The value of the property, or the text that the row keys begin with. Empty if all entities
    /// are of one kind.
    pub(super) label: &'s str,
    pub(super) entities: Vec<&'s DynamicEntity>,
}

/// How the kinds are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// There is one kind.
    Nothing,
    /// The property of that name.
    Type(String),
    RowKey,
}

/// The kinds, in the order in which they were seen first, and the number of entities that are of
/// none.
pub(super) struct Kinds<'s> {
    pub(super) by: By,
    pub(super) all: Vec<Kind<'s>>,
    pub(super) others: usize,
}

impl<'s> Kinds<'s> {
    /// A property with a usual name decides first, then row keys, then any other property.
    pub(super) fn of(entities: &'s [DynamicEntity]) -> Self {
        let columns = Columns::of(entities);
        let of = |is_usual, difference| by_property(entities, &columns, is_usual, difference);
        of(true, Difference::Either)
            .or_else(|| by_row_key(entities, &columns))
            .or_else(|| of(false, Difference::Both))
            .unwrap_or_else(|| Self {
                by: By::Nothing,
                all: vec![Kind {
                    label: "",
                    entities: entities.iter().collect(),
                }],
                others: 0,
            })
    }
}

#[derive(Clone, Copy)]
enum Difference {
    /// Each of the two has a property that the other has not.
    Both,
    /// One of the two has.
    Either,
}

/// The label of each entity, as a position among the names.
struct Labels<'s> {
    names: Vec<&'s str>,
    of_entities: Vec<Option<usize>>,
}

impl<'s> Labels<'s> {
    /// The labels of so many entities. `None` if there are more than that many labels.
    fn of(
        entities: usize,
        labels: impl Iterator<Item = (usize, &'s str)>,
        max: usize,
    ) -> Option<Self> {
        let mut names: Vec<&str> = Vec::new();
        let mut of_entities = vec![None; entities];
        for (entity, label) in labels {
            let known = names.iter().position(|name| *name == label);
            if known.is_none() && names.len() == max {
                return None;
            }
            let position = known.unwrap_or(names.len());
            if known.is_none() {
                names.push(label);
            }
            if let Some(label) = of_entities.get_mut(entity) {
                *label = Some(position);
            }
        }
        Some(Self { names, of_entities })
    }

    /// The number of entities of each label, among these.
    fn counts(&self, entities: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut counts = vec![0; self.names.len()];
        for entity in entities {
            let label = self.of_entities.get(entity).copied().flatten();
            if let Some(count) = label.and_then(|label| counts.get_mut(label)) {
                *count += 1;
            }
        }
        counts
    }

    fn others(&self) -> usize {
        self.of_entities.iter().filter(|it| it.is_none()).count()
    }

    /// Returns true if the properties of every two kinds differ. Otherwise the label distinguishes
    /// entities of one kind.
    fn differ(&self, columns: &Columns<'_>, difference: Difference) -> bool {
        let totals = self.counts(0..self.of_entities.len());
        // The pairs of which all entities of the one have a property, and none of the other has it.
        let mut own = HashSet::new();
        let optional = columns
            .iter()
            .filter(|it| it.values.len() < self.of_entities.len());
        for column in optional {
            let counts = self.counts(column.values.iter().map(|(entity, _)| *entity));
            let shares = || (0..).zip(counts.iter().zip(&totals));
            let always = shares().filter(|(_, (count, total))| count == total);
            for (one, _) in always {
                let never = shares().filter(|(_, (count, _))| **count == 0);
                own.extend(never.map(|(other, _)| (one, other)));
            }
        }
        let labels = 0..self.names.len();
        let mut pairs = labels.flat_map(|one| (0..one).map(move |other| (one, other)));
        pairs.all(|(one, other)| {
            let (first, second) = (own.contains(&(one, other)), own.contains(&(other, one)));
            match difference {
                Difference::Both => first && second,
                Difference::Either => first || second,
            }
        })
    }

    fn kinds(&self, by: By, entities: &'s [DynamicEntity]) -> Kinds<'s> {
        let kinds = self.names.iter().map(|label| Kind {
            label,
            entities: Vec::new(),
        });
        let mut all: Vec<_> = kinds.collect();
        for (entity, label) in entities.iter().zip(&self.of_entities) {
            if let Some(kind) = label.and_then(|label| all.get_mut(label)) {
                kind.entities.push(entity);
            }
        }
        let others = self.others();
        Kinds { by, all, others }
    }
}

fn by_property<'s>(
    entities: &'s [DynamicEntity],
    columns: &Columns<'s>,
    usual: bool,
    difference: Difference,
) -> Option<Kinds<'s>> {
    let candidates = columns.iter().filter(|it| is_usual(it.name) == usual);
    let found = candidates.filter_map(|column| {
        let labels = types(column, entities.len(), columns, difference)?;
        Some((labels.others(), labels.names.len(), column.name, labels))
    });
    let (.., name, labels) =
        found.min_by_key(|(others, kinds, name, _)| (*others, *kinds, *name))?;
    Some(labels.kinds(By::Type(name.to_owned()), entities))
}

/// The labels by a property, if it is one that names a type.
fn types<'s>(
    column: &Column<'s>,
    entities: usize,
    columns: &Columns<'_>,
    difference: Difference,
) -> Option<Labels<'s>> {
    check_property_name(column.name).ok()?;
    let mut values = column.values.iter().map(|(_, value)| *value);
    if !values.all(|value| matches!(value, Value::String(value) if is_type_name(value))) {
        return None;
    }
    let labels = column
        .values
        .iter()
        .filter_map(|(entity, value)| match value {
            Value::String(value) => Some((*entity, value.as_str())),
            _ => None,
        });
    let labels = Labels::of(entities, labels, KINDS_MAX)?;
    let labelled = column.values.len();
    let is_complete = match difference {
        Difference::Either => entities - labelled < labelled,
        Difference::Both => labelled == entities && labelled >= 2 * labels.names.len(),
    };
    // The client gives this property to each entity that has a type.
    let is_type = || {
        let is_clients = column.name == "EntityType";
        is_clients || (labels.names.len() > 1 && labels.differ(columns, difference))
    };
    (is_complete && is_type()).then_some(labels)
}

/// The kinds by the words that the row keys begin with.
fn by_row_key<'s>(entities: &'s [DynamicEntity], columns: &Columns<'_>) -> Option<Kinds<'s>> {
    let leads = entities.iter().map(|it| lead(it.row_key()));
    let leads = leads.collect::<Option<Vec<_>>>()?;
    let labels = Labels::of(entities.len(), (0..).zip(leads), LEADS_MAX)?;
    let begins = |one: &&str| {
        let mut others = labels.names.iter().filter(|other| *other != one);
        others.any(|other| other.starts_with(*one))
    };
    let is_apart = labels.names.len() > 1
        && labels.names.len() < entities.len()
        && !labels.names.iter().any(begins)
        && labels.differ(columns, Difference::Either);
    is_apart.then(|| labels.kinds(By::RowKey, entities))
}

/// The word that a row key begins with, with the separator behind it: `empid_` of `empid_000223`,
/// and `head` of `head`.
pub(super) fn lead(row_key: &str) -> Option<&str> {
    let end = row_key.find(|c: char| !c.is_ascii_alphabetic());
    let Some(end) = end else {
        return (!row_key.is_empty()).then_some(row_key);
    };
    let separator = row_key.get(end..)?.chars().next()?;
    let is_lead = end > 0 && matches!(separator, '_' | '-' | ':' | '|');
    row_key.get(..=end).filter(|_| is_lead)
}

/// Returns true if a property of this name usually names the type of an entity.
fn is_usual(name: &str) -> bool {
    let name = name.replace('_', "").to_ascii_lowercase();
    let ends = ["type", "kind", "class", "discriminator"];
    ends.iter().any(|end| name.ends_with(end)) || name == "classname"
}

fn is_type_name(value: &str) -> bool {
    let length = value.chars().count();
    !value.trim().is_empty() && length < TEXT_MAX && !value.contains(char::is_control)
}

/// More are hardly types.
const KINDS_MAX: usize = 16;
const LEADS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of the kinds, with the number of entities of each.
    fn labels(entities: &[DynamicEntity]) -> (By, Vec<(&str, usize)>, usize) {
        let Kinds { by, all, others } = Kinds::of(entities);
        let kinds = all.iter().map(|it| (it.label, it.entities.len()));
        (by, kinds.collect(), others)
    }

    fn row(key: &str, properties: &[(&str, &str)]) -> DynamicEntity {
        let mut entity = DynamicEntity::new("p", key);
        entity.properties_mut().extend(properties.iter().copied());
        entity
    }

    #[test]
    fn a_property_that_names_the_type_makes_kinds() {
        let dog = row("1", &[("Kind", "dog"), ("Name", "Rex"), ("Breed", "x")]);
        let cat = row("2", &[("Kind", "cat"), ("Name", "Tom")]);
        let entities = [dog, cat];
        let kinds = vec![("dog", 1), ("cat", 1)];
        assert_eq!(labels(&entities), (By::Type("Kind".into()), kinds, 0));

        // Any name, if each has a property of its own.
        let post = row("1", &[("What", "post"), ("Text", "x")]);
        let vote = row("2", &[("What", "vote"), ("Up", "x")]);
        let entities = [post.clone(), vote.clone(), post, vote];
        let kinds = vec![("post", 2), ("vote", 2)];
        assert_eq!(labels(&entities), (By::Type("What".into()), kinds, 0));
    }

    #[test]
    fn the_type_of_the_client_is_one_if_there_is_one_kind() {
        let entities = [
            row("1", &[("EntityType", "Dog")]),
            row("2", &[("EntityType", "Dog")]),
            row("3", &[]),
        ];
        let kinds = vec![("Dog", 2)];
        assert_eq!(labels(&entities), (By::Type("EntityType".into()), kinds, 1));
    }

    #[test]
    fn row_keys_that_begin_with_a_word_make_kinds() {
        let head = row("head", &[("Customer", "x")]);
        let item = |number: &str| row(number, &[("Cents", "x")]);
        let entities = [head, item("item_0001"), item("item_0002")];
        let kinds = vec![("head", 1), ("item_", 2)];
        assert_eq!(labels(&entities), (By::RowKey, kinds, 0));
    }

    #[test]
    fn what_entities_of_one_kind_differ_in_makes_no_kinds() {
        let one = |entities: &[DynamicEntity]| {
            assert_eq!(
                labels(entities),
                (By::Nothing, vec![("", entities.len())], 0)
            );
        };
        // A state, a name, a type that decides nothing, and a property that is no string.
        one(&[
            row("1", &[("State", "open")]),
            row("2", &[("State", "closed"), ("At", "x")]),
            row("3", &[("State", "open")]),
        ]);
        one(&[
            row("1", &[("Name", "a"), ("A", "x")]),
            row("2", &[("Name", "b"), ("B", "x")]),
        ]);
        one(&[
            row("1", &[("Type", "a"), ("A", "x")]),
            row("2", &[("Type", "b"), ("A", "x")]),
        ]);
        one(&[
            row("ann_1", &[("A", "x")]),
            row("bob_1", &[("A", "x")]),
            row("bob_2", &[("A", "x")]),
        ]);
        // One beginning begins with the other.
        one(&[
            row("item_1", &[("A", "x")]),
            row("item", &[("B", "x")]),
            row("item_2", &[("A", "x")]),
        ]);
        let number = row("1", &[("A", "x")]).with("Kind", 1);
        one(&[number, row("2", &[("Kind", "b"), ("B", "x")])]);
    }
}
