//! Many values of one kind in one entity, a property for each. See [`Series`].
//!
//! A series is a group of properties like a flattened struct, so it knows nothing of requests.

use std::array;
use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use tablesdk_protocol::Timestamp;
use tablesdk_protocol::wire::json::RawProperty;

use crate::entity::field_codec::field;
use crate::entity::flatten::TableProperties;
use crate::entity::schema::SchemaPart;
use crate::entity::{
    ColumnScope, EntityError, EntityProblem, PropertyValue, PropertyWriter, Schema,
};
use crate::query::Column;
use crate::value_error::{MissingSlot, ValueError};

/// `N` slots for values of one type in one entity: a property for each slot that has a value.
///
/// It is a field of an entity, with `flatten` and a prefix. The properties have the names of the
/// slots after the prefix, in as many digits as the last slot needs: `H00` to `H23`. An entity has
/// at most 252 properties, those of its other fields included. One with more is
/// [wide](derive@crate::TableEntity#wide).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Messages");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
/// use tablesdk::series::Series;
/// use time::macros::date;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{employee}", row_key = "{day}")]
/// struct MessageDay {
///     employee: String,
///     day: time::Date,
///     #[table(flatten, prefix = "H")]
///     hours: Series<i32, 24>,
/// }
///
/// // One slot, without a read: the other slots stay as they are.
/// let day = date!(2024 - 03 - 15);
/// table.upsert_merge(&MessageDay { employee: "ann".into(), day, hours: Series::from([(9, 42)]) }).await?;
/// table.patch(MessageDay::key("ann", day)).set(|d| d.hours.slot(10), 17).await?;
///
/// // A count, which needs the value before it.
/// let add = |d: &mut MessageDay| {
///     *d.hours[9].get_or_insert(0) += 1;
///     Ok(())
/// };
/// table.modify(MessageDay::key("ann", day), add).exactly_once().await?;
///
/// let read = table.get(MessageDay::key("ann", day)).await?.expect("was written");
/// assert_eq!(read.hours[8..12], [None, Some(43), Some(17), None]);
/// let filled: Vec<(usize, &i32)> = read.hours.filled().collect();
/// assert_eq!(filled, [(9, &43), (10, &17)]);
///
/// let busy = table.query::<MessageDay>().partition("ann").filter(|d| d.hours.slot(9).gt(40));
/// assert_eq!(busy.select(|d| d.hours.slot(9)).collect().await?, [Some(43)]);
/// # Ok(())
/// # }
/// ```
///
/// A slot has any type that is a [`PropertyValue`]. `None` is an absent property, so a merge does
/// not clear a slot: use `modify` or `replace`. A series derefs to an array of `N` options, whose
/// indexes panic from `N` on as those of every array.
///
/// # Writes without a read
///
/// `upsert_merge` and `patch` set slots without a read. After a lost response, the client sends
/// such a write again, and a delayed duplicate may arrive later still. It then writes the same
/// value to the same slot. So it has no effect on a slot that is written once. In a slot that is
/// written twice, it may bring the first value back: use `modify` for counts and corrections.
///
/// # More values than slots
///
/// The next values go to the next entity. [`slot_of`](Self::slot_of) and [`slot_at`](Self::slot_at)
/// say which entity and which slot a value belongs to, from its number or its time alone. So each
/// value is one merge, also the first one of an entity:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Samples");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
/// use tablesdk::series::Series;
///
/// type Values = Series<f64, 240>;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{sensor}", row_key = "{block:010}")]
/// struct Samples {
///     sensor: String,
///     block: u64,
///     #[table(flatten, prefix = "S")]
///     values: Values,
/// }
///
/// for (number, celsius) in [(239, 18.5), (240, 18.7)] {
///     let (block, slot) = Values::slot_of(number);
///     let sample = Samples { sensor: "roof".into(), block, values: Series::from([(slot, celsius)]) };
///     table.upsert_merge(&sample).await?;
/// }
/// let blocks = table.query::<Samples>().partition("roof").collect().await?;
/// assert_eq!((blocks[0].values[239], blocks[1].values[0]), (Some(18.5), Some(18.7)));
/// # Ok(())
/// # }
/// ```
///
/// # Other numbers of slots
///
/// The names depend on the number of digits of `N - 1`: `Series<_, 24>` and `Series<_, 60>` have
/// the same names for the slots that both have, `Series<_, 120>` has others. A property of a slot
/// that the type does not have is ignored, as are other properties that a struct does not have.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Series<T, const N: usize> {
    // In the heap: entities are moved, also into and out of futures.
    slots: Box<[Option<T>; N]>,
    /// The first slot that was given and does not exist, which the write reports.
    missing: Option<usize>,
}

impl<T, const N: usize> Series<T, N> {
    /// A series without values.
    pub fn new() -> Self {
        Self {
            slots: Box::new(array::from_fn(|_| None)),
            missing: None,
        }
    }

    /// The slots that have a value, in order.
    pub fn filled(&self) -> impl DoubleEndedIterator<Item = (usize, &T)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }

    /// The number of the entity, and the slot in it, in which the value of that number belongs:
    /// entity 0 has the values 0 to `N - 1`.
    ///
    /// ```
    /// use tablesdk::series::Series;
    ///
    /// assert_eq!(Series::<f64, 240>::slot_of(239), (0, 239));
    /// assert_eq!(Series::<f64, 240>::slot_of(240), (1, 0));
    /// ```
    pub fn slot_of(number: u64) -> (u64, usize) {
        let slots = u64::try_from(Self::SLOTS).unwrap_or(u64::MAX);
        let slot = usize::try_from(number % slots).unwrap_or_default();
        (number / slots, slot)
    }

    /// The start of the period of `N` times `length` that contains an instant, for the key of the
    /// entity, and the slot of the instant in it. Periods follow each other from 1970-01-01 in UTC:
    /// those of a day start at midnight, and those of a week on Thursday.
    ///
    /// Takes a [`Timestamp`], a [`SystemTime`](std::time::SystemTime) or, with the feature `time`,
    /// an `OffsetDateTime`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tablesdk::Timestamp;
    /// use tablesdk::series::Series;
    ///
    /// let at: Timestamp = "2024-03-15T10:25:00Z".parse()?;
    /// let (day, slot) = Series::<i32, 144>::slot_at(at, Duration::from_secs(600))?;
    /// assert_eq!((day.to_string(), slot), ("2024-03-15T00:00:00Z".into(), 62));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When `length` is not a whole number of 100 ns, or is 0, and when the instant or the start of
    /// its period is outside the years 1601 to 9999.
    pub fn slot_at<I>(instant: I, length: Duration) -> Result<(Timestamp, usize), ValueError>
    where
        I: TryInto<Timestamp, Error: Into<Box<dyn StdError + Send + Sync>>>,
    {
        let instant = instant.try_into();
        let instant = instant.map_err(|error| ValueError::unwritable(error.into()))?;
        let nanos = length.as_nanos();
        let ticks = i64::try_from(nanos / 100).ok();
        let ticks = ticks.filter(|ticks| *ticks > 0 && nanos.is_multiple_of(100));
        let period = ticks.zip(i64::try_from(Self::SLOTS).ok());
        let period = period.and_then(|(ticks, slots)| ticks.checked_mul(slots));
        let (Some(ticks), Some(period)) = (ticks, period) else {
            return Err(ValueError::out_of_range(format_args!("{length:?}"), LENGTH));
        };
        let within = instant.unix_ticks().rem_euclid(period);
        let start = Timestamp::from_unix_ticks(instant.unix_ticks() - within);
        let start = start.map_err(ValueError::unwritable)?;
        Ok((start, usize::try_from(within / ticks).unwrap_or_default()))
    }

    fn fill(&mut self, slot: usize, value: T) {
        match self.slots.get_mut(slot) {
            Some(place) => *place = Some(value),
            None => self.missing = self.missing.or(Some(slot)),
        }
    }

    /// `N`, which is neither 0 nor too large.
    const SLOTS: usize = {
        assert!(N > 0, "a series has at least one slot");
        assert!(N <= 100_000, "a series has at most 100000 slots");
        N
    };

    /// The digits of each slot, of which names have the last ones.
    const DIGITS: &'static [[u8; DIGITS_MAX]; N] = &digits();

    #[expect(
        clippy::indexing_slicing,
        reason = "the callers pass a slot that exists"
    )]
    const fn name(slot: usize) -> &'static str {
        let digits = Self::DIGITS[slot].as_slice();
        let (_, digits) = digits.split_at(DIGITS_MAX - width(Self::SLOTS));
        match str::from_utf8(digits) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    /// The slot of that name.
    fn named(name: &str) -> Option<usize> {
        let is_name = name.len() == width(N) && name.bytes().all(|byte| byte.is_ascii_digit());
        let slot = is_name.then(|| name.parse().ok()).flatten();
        slot.filter(|slot| *slot < N)
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "at compile time, and within the bounds by the conditions of the loops"
)]
const fn digits<const N: usize>() -> [[u8; DIGITS_MAX]; N] {
    let mut names = [[b'0'; DIGITS_MAX]; N];
    let mut slot = 0;
    while slot < N {
        let (mut rest, mut at) = (slot, DIGITS_MAX);
        while at > 0 {
            at -= 1;
            names[slot][at] = b"0123456789"[rest % 10];
            rest /= 10;
        }
        slot += 1;
    }
    names
}

/// How many digits the last slot has.
const fn width(slots: usize) -> usize {
    match slots.saturating_sub(1).checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

const DIGITS_MAX: usize = 5;
const LENGTH: &str = "the length of a slot is a whole number of 100 ns, at least 1, and the slots together last less than 29,000 years";

impl<T: PropertyValue + Send + 'static, const N: usize> Series<T, N> {
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the condition of the loop"
    )]
    const PARTS: &'static [SchemaPart] = &{
        let access = field::<Option<T>>();
        let mut parts = [SchemaPart::Property(access.schema("")); N];
        let mut slot = 0;
        while slot < Self::SLOTS {
            let access = field::<Option<T>>();
            parts[slot] = SchemaPart::Property(access.schema(Self::name(slot)));
            slot += 1;
        }
        parts
    };
}

impl<T: PropertyValue + Send + 'static, const N: usize> TableProperties for Series<T, N> {
    type Columns<E> = SeriesColumns<E, T, N>;
    type Slots = Self;

    const SCHEMA: Schema = Schema::new("Series", Self::PARTS);

    fn columns<E>(scope: ColumnScope) -> SeriesColumns<E, T, N> {
        SeriesColumns {
            scope,
            marker: PhantomData,
        }
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        if let Some(slot) = self.missing {
            let error = ValueError::unwritable(MissingSlot { slot, slots: N });
            return Err(writer.refused("", error));
        }
        for (slot, value) in self.slots.iter().enumerate() {
            field::<Option<T>>().write(writer, Self::name(slot), value)?;
        }
        Ok(())
    }

    fn slots() -> Self {
        Self::new()
    }

    fn fill(slots: &mut Self, name: &str, property: &RawProperty<'_>) -> Result<bool, EntityError> {
        let Some(slot) = Self::named(name) else {
            return Ok(false);
        };
        let value = field::<Option<T>>().read(property.name(), Some(property))?;
        if let Some(place) = slots.slots.get_mut(slot) {
            if place.is_some() {
                let property = property.name().to_owned();
                return Err(EntityProblem::DuplicateProperty { property }.into());
            }
            *place = value;
        }
        Ok(true)
    }

    fn finish(slots: Self, _: ColumnScope) -> Result<Self, EntityError> {
        Ok(slots)
    }
}

/// The columns of a [`Series`]: one for each slot.
pub struct SeriesColumns<E, T, const N: usize> {
    scope: ColumnScope,
    marker: PhantomData<fn() -> (E, T)>,
}

impl<E, T: PropertyValue + Send + 'static, const N: usize> SeriesColumns<E, T, N> {
    /// The column of a slot, for filters, `select` and `patch`. A slot that does not exist is an
    /// error when the action is awaited.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::in_process();
    /// # let table = tablesdk::TableServiceClient::in_process(&server).table("Messages");
    /// use tablesdk::TableEntity;
    /// use tablesdk::series::Series;
    ///
    /// #[derive(TableEntity)]
    /// #[table(partition_key = "{employee}", row_key = "{day}")]
    /// struct MessageDay {
    ///     employee: String,
    ///     day: String,
    ///     #[table(flatten, prefix = "H")]
    ///     hours: Series<i32, 24>,
    /// }
    ///
    /// let patch = table.patch(MessageDay::key("ann", "2024-03-15")).set(|d| d.hours.slot(24), 17);
    /// let error = patch.await.unwrap_err().to_string();
    /// assert!(error.ends_with("there is no slot 24: the series has the slots 0 to 23"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn slot(&self, slot: usize) -> Column<E, Option<T>> {
        if slot < N {
            return Column::new(Series::<T, N>::name(slot)).scope(self.scope);
        }
        let missing = MissingSlot { slot, slots: N };
        Column::new("").scope(self.scope).missing(missing)
    }
}

impl<E, T, const N: usize> Clone for SeriesColumns<E, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, T, const N: usize> Copy for SeriesColumns<E, T, N> {}

impl<E, T, const N: usize> fmt::Debug for SeriesColumns<E, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.scope.name(Series::<T, N>::name(0));
        let last = self.scope.name(Series::<T, N>::name(N - 1));
        f.debug_tuple("SeriesColumns")
            .field(&format_args!("{first} to {last}"))
            .finish()
    }
}

impl<T, const N: usize> Deref for Series<T, N> {
    type Target = [Option<T>; N];

    fn deref(&self) -> &Self::Target {
        &self.slots
    }
}

impl<T, const N: usize> DerefMut for Series<T, N> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.slots
    }
}

impl<T, const N: usize> Default for Series<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// If there are several values for one slot, the last one counts. A slot that does not exist is an
/// error when the series is written.
impl<T, const N: usize> FromIterator<(usize, T)> for Series<T, N> {
    fn from_iter<I: IntoIterator<Item = (usize, T)>>(values: I) -> Self {
        let mut series = Self::new();
        series.extend(values);
        series
    }
}

/// As [`FromIterator`].
impl<T, const N: usize> Extend<(usize, T)> for Series<T, N> {
    fn extend<I: IntoIterator<Item = (usize, T)>>(&mut self, values: I) {
        for (slot, value) in values {
            self.fill(slot, value);
        }
    }
}

/// As [`FromIterator`].
impl<T, const N: usize, const M: usize> From<[(usize, T); M]> for Series<T, N> {
    fn from(values: [(usize, T); M]) -> Self {
        values.into_iter().collect()
    }
}

/// The filled slots.
impl<T: fmt::Debug, const N: usize> fmt::Debug for Series<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        map.entries(self.filled());
        if let Some(slot) = self.missing {
            map.entry(&slot, &"no such slot");
        }
        map.finish()
    }
}

/// As an array with a null for each slot without a value.
#[cfg(feature = "serde")]
impl<T: serde::Serialize, const N: usize> serde::Serialize for Series<T, N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(slot) = self.missing {
            return Err(serde::ser::Error::custom(MissingSlot { slot, slots: N }));
        }
        serializer.collect_seq(self.iter())
    }
}

/// From an array of `N` values or nulls.
#[cfg(feature = "serde")]
impl<'de, T: serde::Deserialize<'de>, const N: usize> serde::Deserialize<'de> for Series<T, N> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let slots = Vec::<Option<T>>::deserialize(deserializer)?;
        let found = slots.len();
        let slots = slots.try_into().map_err(|_| {
            serde::de::Error::custom(format_args!("a series of {N} slots from {found} values"))
        })?;
        Ok(Self {
            slots,
            missing: None,
        })
    }
}
