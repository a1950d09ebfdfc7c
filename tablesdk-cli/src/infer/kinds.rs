//! The kinds of entities that share a table: told apart by a property that names the type, or by the beginnings of the row keys. This
//! file knows neither templates nor names of Rust.

use std::collections::{BTreeSet, HashMap, HashSet};

use tablesdk::{DynamicEntity, Value};
use tablesdk_protocol::check_property_name;

use super::sample::TEXT_MAX;

/// The entities of one kind.
#[derive(Debug)]
pub(super) struct Kind<'s> {
    /// The value of the property, or the text that the row keys begin with. Empty if all entities are of one kind.
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

/// The kinds, in the order in which they were seen first, and the number of entities that are of none.
pub(super) struct Kinds<'s> {
    pub(super) by: By,
    pub(super) all: Vec<Kind<'s>>,
    pub(super) others: usize,
}

impl<'s> Kinds<'s> {
    /// A property with a usual name decides first, then row keys, then any other property.
    pub(super) fn of(entities: &'s [DynamicEntity]) -> Self {
        let usual = |name: &&str| is_usual(name);
        by_property(entities, usual, Difference::Either)
            .or_else(|| by_row_key(entities))
            .or_else(|| by_property(entities, |name| !is_usual(name), Difference::Both))
            .unwrap_or_else(|| Self {
                by: By::Nothing,
                all: vec![Kind {
                    label: "",
                    entities: entities.iter().collect(),
                }],
                others: 0,
            })
    }

    /// Entities by their label. One without a label is of no kind.
    fn labelled(
        by: By,
        entities: &'s [DynamicEntity],
        label: impl Fn(&'s DynamicEntity) -> Option<&'s str>,
    ) -> Self {
        let mut kinds: Vec<Kind<'s>> = Vec::new();
        let mut positions = HashMap::new();
        let mut others = 0;
        for entity in entities {
            let Some(label) = label(entity) else {
                others += 1;
                continue;
            };
            let position = *positions.entry(label).or_insert(kinds.len());
            if let Some(kind) = kinds.get_mut(position) {
                kind.entities.push(entity);
            } else {
                kinds.push(Kind {
                    label,
                    entities: vec![entity],
                });
            }
        }
        Self {
            by,
            all: kinds,
            others,
        }
    }

    /// Whether the properties of each two kinds differ. Else the label says something else about entities of one kind.
    fn differ(&self, difference: Difference) -> bool {
        let of_kind = |kind: &Kind<'s>| Presence::of(&kind.entities);
        let all: Vec<_> = self.all.iter().map(of_kind).collect();
        let mut pairs = (1..).zip(&all).flat_map(|(next, one)| {
            let others = all.get(next..).unwrap_or_default();
            others.iter().map(move |other| (one, other))
        });
        pairs.all(|(one, other)| {
            let (first, second) = (one.has_own(other), other.has_own(one));
            match difference {
                Difference::Both => first && second,
                Difference::Either => first || second,
            }
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

/// The properties of a kind.
struct Presence<'s> {
    always: HashSet<&'s str>,
    ever: HashSet<&'s str>,
}

impl<'s> Presence<'s> {
    fn of(entities: &[&'s DynamicEntity]) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let all = entities.iter().flat_map(|it| it.properties().iter());
        for (name, _) in all {
            *counts.entry(name).or_default() += 1;
        }
        let always = counts.iter().filter(|(_, count)| **count == entities.len());
        Self {
            always: always.map(|(name, _)| *name).collect(),
            ever: counts.keys().copied().collect(),
        }
    }

    /// Whether all of these have a property that none of the others has.
    fn has_own(&self, other: &Self) -> bool {
        self.always.iter().any(|name| !other.ever.contains(name))
    }
}

fn by_property(
    entities: &[DynamicEntity],
    is_candidate: impl Fn(&&str) -> bool,
    difference: Difference,
) -> Option<Kinds<'_>> {
    let names = entities.iter().flat_map(|it| it.properties().iter());
    let names: BTreeSet<_> = names.map(|(name, _)| name).collect();
    let candidates = names.into_iter().filter(is_candidate);
    let found = candidates.filter_map(|name| by_type(entities, name, difference));
    found.min_by_key(|found| (found.others, found.all.len()))
}

/// The kinds by a property, if it is one that names a type.
fn by_type<'s>(
    entities: &'s [DynamicEntity],
    name: &str,
    difference: Difference,
) -> Option<Kinds<'s>> {
    check_property_name(name).ok()?;
    let values = entities.iter().map(|it| it.properties().get(name));
    let mut seen = HashSet::new();
    for value in values.flatten() {
        let Value::String(value) = value else {
            return None;
        };
        seen.insert(is_type_name(value).then_some(value)?);
        if seen.len() > KINDS_MAX {
            return None;
        }
    }
    let kinds = Kinds::labelled(By::Type(name.to_owned()), entities, |entity| {
        match entity.properties().get(name) {
            Some(Value::String(value)) => Some(value),
            _ => None,
        }
    });
    let labelled = entities.len() - kinds.others;
    let is_complete = match difference {
        Difference::Either => kinds.others < labelled,
        Difference::Both => kinds.others == 0 && labelled >= 2 * kinds.all.len(),
    };
    // The client gives this property to each entity that has a type.
    let is_clients = name == "EntityType";
    let is_apart = kinds.all.len() > 1 && kinds.differ(difference);
    (is_complete && (is_clients || is_apart)).then_some(kinds)
}

/// The kinds by the words that the row keys begin with.
fn by_row_key(entities: &[DynamicEntity]) -> Option<Kinds<'_>> {
    let leads = entities.iter().map(|it| lead(it.row_key()));
    let mut seen = HashSet::new();
    for lead in leads {
        seen.insert(lead?);
        if seen.len() > LEADS_MAX {
            return None;
        }
    }
    let begins = |one: &&str| {
        let mut others = seen.iter().filter(|other| *other != one);
        others.any(|other| other.starts_with(*one))
    };
    if seen.len() < 2 || entities.len() <= seen.len() || seen.iter().any(begins) {
        return None;
    }
    let kinds = Kinds::labelled(By::RowKey, entities, |it| lead(it.row_key()));
    kinds.differ(Difference::Either).then_some(kinds)
}

/// The word that a row key begins with, with the separator behind it: `empid_` of `empid_000223`, and `head` of `head`.
pub(super) fn lead(row_key: &str) -> Option<&str> {
    let end = row_key.find(|c: char| !c.is_ascii_alphabetic());
    let Some(end) = end else {
        return (!row_key.is_empty()).then_some(row_key);
    };
    let separator = row_key.get(end..)?.chars().next()?;
    let is_lead = end > 0 && matches!(separator, '_' | '-' | ':' | '|');
    row_key.get(..=end).filter(|_| is_lead)
}

/// Whether a property of this name usually names the type of an entity.
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
