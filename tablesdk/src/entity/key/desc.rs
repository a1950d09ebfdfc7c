//! The greatest first: a key part whose text counts from the end.

use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::part::{KeyNumber, KeyPart};
use crate::entity::{Ordered, PropertyValue, ValueError};
use crate::sealed::Derived;

/// A part of a key that puts the newest, or the largest, first.
///
/// A table has its rows in ascending order of their keys, and no other. With `Desc` the first rows
/// of a partition are the latest: the *log tail* of the [design guide], which asks for *inverted
/// ticks*. The text of a number is its distance from the greatest of its type; that of a date its
/// distance from the end of the year 9999 in 100 ns steps, 19 digits, as .NET programs write it.
///
/// Filters and row ranges are in terms of the value: `at.ge(yesterday)` is what happened since
/// yesterday.
///
/// In a template, `{at:desc}` makes the same keys, and the field stays a `Timestamp`: see
/// [key templates](derive@crate::TableEntity#key-templates).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Claims");
/// # table.create_table().await?;
/// use tablesdk::key::Desc;
/// use tablesdk::{TableEntity, Timestamp};
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{employee}", row_key = "{at}_{number:04}")]
/// struct ExpenseClaim {
///     employee: String,
///     at: Desc<Timestamp>,
///     number: u32,
///     amount: f64,
/// }
///
/// let claim = |day: &str, number| -> Result<_, Box<dyn std::error::Error>> {
///     let at = Desc(day.parse()?);
///     Ok(ExpenseClaim { employee: "jonesj".into(), at, number, amount: 12.5 })
/// };
/// for day in ["2024-03-13T09:00:00Z", "2024-03-15T09:00:00Z", "2024-03-14T09:00:00Z"] {
///     table.insert(&claim(day, 1)?).await?;
/// }
/// let newest = table.query::<ExpenseClaim>().partition("jonesj").first().await?.unwrap();
/// assert_eq!(newest.at.0.to_string(), "2024-03-15T09:00:00Z");
///
/// let since: Timestamp = "2024-03-14T00:00:00Z".parse()?;
/// let recent = table.query::<ExpenseClaim>().partition("jonesj").rows(ExpenseClaim::rows().at(since..));
/// assert_eq!(recent.count().await?, 2);
/// # Ok(())
/// # }
/// ```
///
/// [design guide]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-guide#log-tail-pattern
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a newtype that is made by hand")]
pub struct Desc<T>(pub T);

impl<T> From<T> for Desc<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: KeyNumber> KeyPart for Desc<T> {
    const WIDTH: Option<usize> = Some(digits_of(T::LAST));
    const DESCENDING: bool = true;

    fn to_key(&self) -> Result<String, ValueError> {
        to_key(&self.0)
    }

    fn from_key(text: &str) -> Result<Self, ValueError> {
        from_key(text).map(Self)
    }
}

pub(super) fn to_key<T: KeyNumber>(value: &T) -> Result<String, ValueError> {
    let left = T::LAST - value.to_number()?.min(T::LAST);
    Ok(format!("{left:0width$}", width = digits_of(T::LAST)))
}

pub(super) fn from_key<T: KeyNumber>(text: &str) -> Result<T, ValueError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let left = text.parse::<u64>().ok();
    match left.and_then(|left| T::LAST.checked_sub(left)) {
        Some(number) if digits && text.len() == digits_of(T::LAST) => T::from_number(number),
        _ => Err(ValueError::unreadable(
            text,
            format_args!(
                "a key that has the greatest value of this type first has {} digits",
                digits_of(T::LAST)
            ),
        )),
    }
}

/// As a property it is stored as what it holds.
impl<T: PropertyValue> PropertyValue for Desc<T> {
    const EDM_TYPE: EdmType = T::EDM_TYPE;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        self.0.to_value()
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        T::from_value(value).map(Self)
    }
}

impl<T: Ordered> Ordered for Desc<T> {
    const ORDERED: Derived = Derived;
}

/// How many digits the number has.
pub(super) const fn digits_of(number: u64) -> usize {
    match number.checked_ilog10() {
        // At most 20.
        Some(log) => log as usize + 1,
        None => 1,
    }
}
