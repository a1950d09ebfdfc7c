//! The entities that a table's shared access signature covers, as a range of keys.

use std::ops::{RangeFrom, RangeInclusive, RangeToInclusive};

use tablesdk_protocol::auth::sas::{SasBound, SasKeyRange};
use tablesdk_protocol::{EntityKey, PartitionKey};

use crate::entity::EntityError;
use crate::entity::key::IntoEntityKey;

/// A range of keys that a shared access signature can have: from a key on, up to and including one,
/// or both.
///
/// The ends are typed keys such as `Employee::key("Sales", "1")`, or the texts of partition key and
/// row key as they are stored. They compare by partition key first, in the order in which queries
/// return entities: the range from `("A", "5")` to `("C", "1")` has all of partition `B` in it.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use tablesdk::sas::Permissions;
///
/// let expiry = std::time::Duration::from_secs(60);
/// let sas = || table.sas().allow(Permissions::READ).expires_in(expiry);
/// sas().keys(Employee::key("Sales", "1")..=Employee::key("Sales", "5")).sign()?;
/// sas().keys(("Sales", "3")..).sign()?;
/// sas().keys(..=("Sales", "3")).sign()?;
/// // One that nothing is in is refused.
/// assert!(sas().keys(("Sales", "3")..=("Sales", "1")).sign().is_err());
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of keys that a shared access signature can have",
    label = "not a range of keys with its last key in it",
    note = "both ends are in the range: write `first..=last`, `first..` or `..=last`"
)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait SasKeys {
    /// The ends, or what is wrong with one of them.
    ///
    /// # Errors
    ///
    /// When a text breaks a rule of the service for keys.
    fn into_ends(self) -> Result<(Option<EntityKey>, Option<EntityKey>), EntityError>;
}

type Ends = (Option<EntityKey>, Option<EntityKey>);

impl<K: IntoEntityKey> SasKeys for RangeInclusive<K> {
    fn into_ends(self) -> Result<Ends, EntityError> {
        let (first, last) = self.into_inner();
        Ok((
            Some(first.into_entity_key()?),
            Some(last.into_entity_key()?),
        ))
    }
}

impl<K: IntoEntityKey> SasKeys for RangeFrom<K> {
    fn into_ends(self) -> Result<Ends, EntityError> {
        Ok((Some(self.start.into_entity_key()?), None))
    }
}

impl<K: IntoEntityKey> SasKeys for RangeToInclusive<K> {
    fn into_ends(self) -> Result<Ends, EntityError> {
        Ok((None, Some(self.end.into_entity_key()?)))
    }
}

/// The keys between two, both included.
pub(super) fn between((first, last): Ends) -> Result<SasKeyRange, InvalidRange> {
    if let (Some(first), Some(last)) = (&first, &last)
        && order(first) > order(last)
    {
        return Err(InvalidRange::UpsideDown);
    }
    let lower = match &first {
        Some(key) => lower(key)?,
        None => None,
    };
    let upper = last.as_ref().map(upper).transpose()?;
    Ok(SasKeyRange::new(lower, upper))
}

/// All keys of the partitions from the first to the last.
pub(super) fn partitions(
    first: PartitionKey,
    last: PartitionKey,
) -> Result<SasKeyRange, InvalidRange> {
    if first.as_str().is_empty() || last.as_str().is_empty() {
        return Err(InvalidRange::EmptyPartitionKey);
    }
    if first > last {
        return Err(InvalidRange::UpsideDown);
    }
    let bound = |key: PartitionKey| SasBound {
        partition_key: key.into_string(),
        row_key: None,
    };
    Ok(SasKeyRange::new(Some(bound(first)), Some(bound(last))))
}

// SERVICE: an empty field counts as an absent one. At the start of a range that is the same; at its
// end it would let in everything that comes behind.
fn lower(key: &EntityKey) -> Result<Option<SasBound>, InvalidRange> {
    let (partition_key, row_key) = texts(key);
    match (partition_key.is_empty(), row_key.is_empty()) {
        (true, true) => Ok(None),
        (true, false) => Err(InvalidRange::EmptyPartitionKey),
        (false, is_whole) => Ok(Some(SasBound {
            partition_key,
            row_key: (!is_whole).then_some(row_key),
        })),
    }
}

fn upper(key: &EntityKey) -> Result<SasBound, InvalidRange> {
    let (partition_key, row_key) = texts(key);
    if partition_key.is_empty() {
        return Err(InvalidRange::EmptyPartitionKey);
    }
    if row_key.is_empty() {
        return Err(InvalidRange::EmptyLastRowKey);
    }
    Ok(SasBound {
        partition_key,
        row_key: Some(row_key),
    })
}

fn texts(key: &EntityKey) -> (String, String) {
    let (partition_key, row_key) = (key.partition_key(), key.row_key());
    (
        partition_key.as_str().to_owned(),
        row_key.as_str().to_owned(),
    )
}

fn order(key: &EntityKey) -> (&PartitionKey, &tablesdk_protocol::RowKey) {
    (key.partition_key(), key.row_key())
}

/// Why a range of keys cannot be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidRange {
    #[error(
        "a shared access signature cannot end at an empty row key: it would cover the whole partition"
    )]
    EmptyLastRowKey,
    #[error(
        "a shared access signature cannot be limited by an empty partition key: it would have no limit there"
    )]
    EmptyPartitionKey,
    #[error("the keys of the shared access signature end before they start")]
    UpsideDown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(keys: impl SasKeys) -> Result<SasKeyRange, InvalidRange> {
        between(keys.into_ends().unwrap())
    }

    fn bound(partition_key: &str, row_key: Option<&str>) -> SasBound {
        SasBound {
            partition_key: partition_key.to_owned(),
            row_key: row_key.map(str::to_owned),
        }
    }

    #[test]
    fn ranges_become_bounds() {
        let (a1, b2) = (bound("A", Some("1")), bound("B", Some("2")));
        let (a1, b2) = (Some(a1), Some(b2));
        let both = range(("A", "1")..=("B", "2")).unwrap();
        assert_eq!((both.first, both.last), (a1.clone(), b2.clone()));
        let from = range(("A", "1")..).unwrap();
        assert_eq!((from.first, from.last), (a1, None));
        let to = range(..=("B", "2")).unwrap();
        assert_eq!((to.first, to.last), (None, b2));
        // The first of a partition is where it starts.
        let whole = range(("A", "")..=("A", "9")).unwrap();
        assert_eq!(whole.first, Some(bound("A", None)));
        assert_eq!(range(("", "")..).unwrap(), SasKeyRange::default());
    }

    #[test]
    fn an_end_that_would_not_be_signed_is_refused() {
        for (keys, problem) in [
            (("B", "1")..=("A", "2"), InvalidRange::UpsideDown),
            (("A", "2")..=("A", "1"), InvalidRange::UpsideDown),
            // By UTF-16 units.
            (("\u{FF5E}", "1")..=("😀", "1"), InvalidRange::UpsideDown),
            (("A", "")..=("A", ""), InvalidRange::EmptyLastRowKey),
            (("", "1")..=("A", "1"), InvalidRange::EmptyPartitionKey),
            (("", "")..=("", "1"), InvalidRange::EmptyPartitionKey),
        ] {
            assert_eq!(range(keys.clone()), Err(problem), "{keys:?}");
        }
        let key = |text: &str| PartitionKey::new(text).unwrap();
        for (first, last, problem) in [
            ("", "", InvalidRange::EmptyPartitionKey),
            ("", "A", InvalidRange::EmptyPartitionKey),
            ("B", "A", InvalidRange::UpsideDown),
        ] {
            assert_eq!(partitions(key(first), key(last)), Err(problem));
        }
    }
}
