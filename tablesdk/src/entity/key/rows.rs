//! Ranges of rows within a partition, by the leading parts of their keys.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::{KeyKind, RowKey};

use super::access::KeyAccess;
use super::argument::IntoKeyPart;
use super::desc::Desc;
use super::escaped::Escaped;
use super::part::KeyPart;
use super::template::{KeyTemplate, KeyWriter};
use crate::entity::{EntityError, EntityProblem, Ordered, ValueError};
use crate::filter::end_of_prefix;
use crate::sealed::Seal;

/// Rows of entities of type `E` whose keys lie in a range. See
/// [`QueryEntities::rows`](crate::action::QueryEntities::rows).
///
/// ```
/// use tablesdk::TableEntity;
/// use tablesdk::key::RowRange;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{department}", row_key = "{employee:06}_{year:04}")]
/// struct Review {
///     department: String,
///     employee: u32,
///     year: u16,
/// }
///
/// // What `QueryEntities::rows` takes: all of one employee, some years of theirs, some employees.
/// let all: RowRange<Review> = Review::rows().employee(17).into();
/// let recent: RowRange<Review> = Review::rows().employee(17).year(2023..).into();
/// let some: RowRange<Review> = Review::rows().employee(100..200).into();
/// ```
#[must_use = "a range does nothing until a query has it"]
pub struct RowRange<E> {
    ends: Result<(Bound<String>, Bound<String>), EntityError>,
    entity: PhantomData<fn() -> E>,
}

impl<E> RowRange<E> {
    const fn new(ends: Result<(Bound<String>, Bound<String>), EntityError>) -> Self {
        Self {
            ends,
            entity: PhantomData,
        }
    }

    /// The same range as that of another type, such as an enum that `E` is a variant of.
    pub fn of<R>(self) -> RowRange<R> {
        RowRange::new(self.ends)
    }

    /// All rows whose key starts with the text.
    fn starting_with(text: &str) -> Self {
        let to = end_of_prefix(text).map_or(Bound::Unbounded, Bound::Excluded);
        Self::new(checked((Bound::Included(text.to_owned()), to)))
    }

    /// Returns true if all keys in the range begin with the text.
    pub(crate) fn begins_with(&self, text: &str) -> bool {
        let Ok((from, to)) = &self.ends else {
            return false;
        };
        let (Bound::Included(from) | Bound::Excluded(from)) = from else {
            return false;
        };
        let ends_in_time = match to {
            Bound::Included(to) => to.starts_with(text),
            Bound::Excluded(to) => to.starts_with(text) || Some(to) == end_of_prefix(text).as_ref(),
            Bound::Unbounded => end_of_prefix(text).is_none(),
        };
        from.starts_with(text) && ends_in_time
    }

    /// The condition; `None` where all rows meet it.
    pub(crate) fn into_tree(self) -> Result<Option<Tree>, EntityError> {
        use ComparisonOperator::{
            Equal, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual,
        };
        let name = KeyKind::RowKey.property();
        let tree = |operator, text: String| Tree::comparison(name, operator, text);
        Ok(match self.ends? {
            (Bound::Included(from), Bound::Included(to)) if from == to => Some(tree(Equal, from)),
            (from, to) => {
                let from = match from {
                    // No key is less than the empty one.
                    Bound::Included(text) if text.is_empty() => None,
                    Bound::Included(text) => Some(tree(GreaterThanOrEqual, text)),
                    Bound::Excluded(text) => Some(tree(GreaterThan, text)),
                    Bound::Unbounded => None,
                };
                let to = match to {
                    Bound::Included(text) => Some(tree(LessThanOrEqual, text)),
                    Bound::Excluded(text) => Some(tree(LessThan, text)),
                    Bound::Unbounded => None,
                };
                from.into_iter().chain(to).reduce(Tree::and)
            }
        })
    }
}

impl<E> Clone for RowRange<E> {
    fn clone(&self) -> Self {
        Self::new(self.ends.clone())
    }
}

impl<E> fmt::Debug for RowRange<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ends {
            Ok(ends) => f.debug_tuple("RowRange").field(ends).finish(),
            Err(error) => fmt::Debug::fmt(error, f),
        }
    }
}

/// The texts that the caller gave are ones that a key can have.
fn checked(
    ends: (Bound<String>, Bound<String>),
) -> Result<(Bound<String>, Bound<String>), EntityError> {
    if let Bound::Included(text) | Bound::Excluded(text) = &ends.0 {
        RowKey::new(text)?;
    }
    Ok(ends)
}

/// The rows for which the leading parts of the key are given, so far.
// A range of keys has leading parts as values and one part as a range. The methods allow nothing
// else: `rows().year(2023..)` without the parts before it does not compile.
pub struct Rows<E> {
    key: KeyWriter,
    entity: PhantomData<fn() -> E>,
}

impl<E> Rows<E> {
    /// All rows that the template makes.
    pub const fn new(template: KeyTemplate) -> Self {
        Self {
            key: template.write(),
            entity: PhantomData,
        }
    }

    /// Those with one value in the next part.
    #[must_use]
    pub fn equal<P>(self, access: KeyAccess<P>, value: &P) -> Self {
        Self {
            key: self.key.part(access, value),
            entity: PhantomData,
        }
    }

    /// Those with a value of a range in the next part.
    pub fn between<P>(mut self, access: KeyAccess<P>, from: Bound<P>, to: Bound<P>) -> RowRange<E> {
        self.key.literal();
        let is_last = self.key.is_at_last();
        if !is_last && !self.key.is_fixed() {
            return RowRange::new(Err(self.no_range()));
        }
        let prefix = match self.key.clone().into_text() {
            Ok(prefix) => prefix,
            Err(error) => return RowRange::new(Err(error)),
        };
        let text = |end: Bound<P>| {
            Ok::<_, EntityError>(match end {
                Bound::Included(value) => Bound::Included(self.text(access, &value)?),
                Bound::Excluded(value) => Bound::Excluded(self.text(access, &value)?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        let (first, last) = if access.is_descending() {
            (to, from)
        } else {
            (from, to)
        };
        let ends = (|| Ok((text(first)?, text(last)?)))();
        RowRange::new(ends.and_then(|(from, to)| {
            // Behind a part that is not the last, all keys that continue it belong to it.
            let from = match from {
                Bound::Excluded(text) if !is_last => {
                    end_of_prefix(&text).map_or(Bound::Excluded(text), Bound::Included)
                }
                Bound::Unbounded => Bound::Included(prefix.clone()),
                from => from,
            };
            let to = match to {
                Bound::Included(text) if !is_last => {
                    end_of_prefix(&text).map_or(Bound::Unbounded, Bound::Excluded)
                }
                Bound::Unbounded => {
                    end_of_prefix(&prefix).map_or(Bound::Unbounded, Bound::Excluded)
                }
                to => to,
            };
            checked((from, to))
        }))
    }

    fn text<P>(&self, access: KeyAccess<P>, value: &P) -> Result<String, EntityError> {
        self.key.clone().part(access, value).into_text()
    }

    fn no_range(&self) -> EntityError {
        let template = self.key.template();
        EntityProblem::KeyUnwritable {
            part: template.part(),
            template: template.text(),
            field: self.key.field(),
            error: ValueError::unwritable(
                "it is of variable width and not the last part, so that its keys do not order as its values do: give one value instead of a range",
            ),
        }
        .into()
    }
}

impl<E> From<Rows<E>> for RowRange<E> {
    fn from(mut rows: Rows<E>) -> Self {
        // A separator belongs to the part before it.
        rows.key.literal();
        let is_complete = rows.key.is_complete();
        match rows.key.into_text() {
            Ok(text) if is_complete => {
                let end = Bound::Included(text);
                Self::new(checked((end.clone(), end)))
            }
            Ok(text) => Self::starting_with(&text),
            Err(error) => Self::new(Err(error)),
        }
    }
}

impl<E> Clone for Rows<E> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            entity: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Rows<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rows").field(&self.key).finish()
    }
}

/// As many leading parts of a row key as are given.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "named by generated code alone")]
pub struct Given<const PARTS: usize>;

/// Is implemented for the number of parts before one: that many must be given.
#[diagnostic::on_unimplemented(
    message = "the parts of a row key are given in the order of its template, each once",
    label = "not the next part of the row key"
)]
pub trait PartsBefore<const PARTS: usize> {}

impl<const PARTS: usize> PartsBefore<PARTS> for Given<PARTS> {}

/// A part of a key of type `P` in a range of rows: one value, or any of Rust's ranges of values.
///
/// ```
/// use tablesdk::TableEntity;
/// use tablesdk::key::RowRange;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{station}", row_key = "{day}")]
/// struct Weather {
///     station: String,
///     day: u32,
/// }
///
/// let one: RowRange<Weather> = Weather::rows().day(20_240_315).into();
/// let march: RowRange<Weather> = Weather::rows().day(20_240_301..=20_240_331).into();
/// let since: RowRange<Weather> = Weather::rows().day(20_240_101..).into();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives neither a part of a key that is a `{P}`, nor a range of them",
    label = "expected a `{P}`, or a range such as `from..to`"
)]
pub trait KeyRange<P> {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The rows after this part: with one value the next part may be given, after a range nothing
    /// more.
    type Rows<E, Next>;

    /// Narrows the rows.
    #[doc(hidden)]
    fn narrow<E, Next>(
        self,
        rows: Rows<E>,
        access: KeyAccess<P>,
        next: fn(Rows<E>) -> Next,
    ) -> Self::Rows<E, Next>;
}

macro_rules! value {
    ($([$($param:ident)?] $type:ty => $part:ty;)+) => {
        $(impl$(<$param: KeyPart>)? KeyRange<$part> for $type {
            const SEAL: Seal = Seal;
            type Rows<E, Next> = Next;

            fn narrow<E, Next>(
                self,
                rows: Rows<E>,
                access: KeyAccess<$part>,
                next: fn(Rows<E>) -> Next,
            ) -> Next {
                next(rows.equal(access, &self.into_key_part()))
            }
        })+
    };
}

value! {
    [P] P => P;
    [] &str => String;
    [] &String => String;
    [] &str => Escaped<String>;
    [] &String => Escaped<String>;
    [T] T => Desc<T>;
    [T] T => Escaped<T>;
}

macro_rules! range {
    ($([$($generics:tt)+] $type:ty, $range:ident => $bounds:expr;)+) => {
        $(impl<$($generics)+> KeyRange<P> for $type {
            const SEAL: Seal = Seal;
            type Rows<E, Next> = RowRange<E>;

            fn narrow<E, Next>(
                self,
                rows: Rows<E>,
                access: KeyAccess<P>,
                _: fn(Rows<E>) -> Next,
            ) -> RowRange<E> {
                let $range = self;
                let (from, to) = $bounds;
                rows.between(access, from, to)
            }
        })+
    };
}

range! {
    [P: Ordered, A: IntoKeyPart<P>] Range<A>, range => (included(range.start), excluded(range.end));
    [P: Ordered, A: IntoKeyPart<P>] RangeFrom<A>, range => (included(range.start), Bound::Unbounded);
    [P: Ordered, A: IntoKeyPart<P>] RangeTo<A>, range => (Bound::Unbounded, excluded(range.end));
    [P: Ordered, A: IntoKeyPart<P>] RangeToInclusive<A>, range => (Bound::Unbounded, included(range.end));
    [P: Ordered, A: IntoKeyPart<P>] RangeInclusive<A>, range => {
        let (from, to) = range.into_inner();
        (included(from), included(to))
    };
    [P: Ordered, A: IntoKeyPart<P>] (Bound<A>, Bound<A>), range => {
        (range.0.map(A::into_key_part), range.1.map(A::into_key_part))
    };
    [P] RangeFull, _range => (Bound::Unbounded, Bound::Unbounded);
}

fn included<P>(end: impl IntoKeyPart<P>) -> Bound<P> {
    Bound::Included(end.into_key_part())
}

fn excluded<P>(end: impl IntoKeyPart<P>) -> Bound<P> {
    Bound::Excluded(end.into_key_part())
}
