//! A hot partition, spread over several: which of them a row is in.

use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::desc::digits_of;
use super::part::KeyPart;
use crate::entity::{Ordered, PropertyValue, ValueError};
use crate::sealed::Derived;

/// One of `N` shards, as a part of a partition key.
///
/// Entities with ever growing keys, such as the hour, are all written to one partition, and a
/// partition has its limit: about 2,000 entities a second. With a shard at the beginning of its key
/// there are `N` partitions, which are not neighbors. A reader queries all of them: [`Shard::all`],
/// and [`merged`](crate::action::ParallelQuery::merged) for one order.
///
/// The text is the number, from 0, in as many digits as `N - 1` has.
///
/// ```
/// use tablesdk::TableEntity;
/// use tablesdk::key::Shard;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{shard}_{hour}", row_key = "{id}")]
/// struct Event {
///     shard: Shard<16>,
///     hour: String,
///     id: String,
/// }
///
/// let id = "device-17";
/// let event = Event { hour: "2024-03-15T10".into(), shard: Shard::of(id), id: id.into() };
/// # use tablesdk::WritableEntity;
/// # assert_eq!(event.entity_key()?.partition_key().as_str(), "14_2024-03-15T10");
/// let partitions = Shard::all().map(|shard| Event::partition(shard, "2024-03-15T10"));
/// assert_eq!(partitions.count(), 16);
/// # Ok::<(), tablesdk::entity::EntityError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard<const N: u32>(u32);

impl<const N: u32> Shard<N> {
    /// The shard of that number; `None` from `N` on.
    pub const fn new(number: u32) -> Option<Self> {
        if number < N { Some(Self(number)) } else { None }
    }

    /// The shard in which something belongs, by its bytes: always the same for the same bytes and
    /// `N`, in every version of this library. It is FNV-1a with 64 bits, its halves folded, modulo
    /// `N`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        const { assert!(N > 0, "there is no shard among none: `N` is at least 1") };
        let hash = bytes
            .as_ref()
            .iter()
            .fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3_u64)
            });
        let folded = (hash >> 32) ^ (hash & u64::from(u32::MAX));
        // Less than `N`, which is a u32.
        Self(u32::try_from(folded % u64::from(N)).unwrap_or_default())
    }

    /// Each of the `N` shards.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..N).map(Self)
    }

    /// Its number, from 0.
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl<const N: u32> KeyPart for Shard<N> {
    const WIDTH: Option<usize> = Some(width(N));

    fn to_key(&self) -> Result<String, ValueError> {
        Ok(format!("{:0width$}", self.0, width = width(N)))
    }

    fn from_key(text: &str) -> Result<Self, ValueError> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().and_then(Self::new);
        match number {
            Some(shard) if digits && text.len() == width(N) => Ok(shard),
            _ => Err(ValueError::unreadable(
                text,
                format_args!(
                    "a shard of {N} has {} digits, and is less than {N}",
                    width(N)
                ),
            )),
        }
    }
}

/// As a property it is its number.
impl<const N: u32> PropertyValue for Shard<N> {
    const EDM_TYPE: EdmType = <u32 as PropertyValue>::EDM_TYPE;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Int64(self.0.into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let number = u32::from_value(value)?;
        Self::new(number).ok_or_else(|| {
            ValueError::unreadable(number, format_args!("a shard of {N} is less than {N}"))
        })
    }
}

impl<const N: u32> Ordered for Shard<N> {
    const ORDERED: Derived = Derived;
}

const fn width(count: u32) -> usize {
    digits_of(count.saturating_sub(1) as u64)
}
