//! One table for each hour, day, month or year. See [`RollingTable`].
//!
//! A stream and `drop_before` list the tables with the prefix: a program creates only some of the
//! periods of a range, and each missing table would cost a request and an error in the log.

use std::error::Error as StdError;
use std::ops::{Bound, RangeBounds};

use futures_util::{StreamExt as _, TryStreamExt as _};
use tablesdk_protocol::Timestamp;
use tablesdk_protocol::limits::TABLE_NAME_LENGTH_MAX;

use crate::action::{Action, QueryTables, delete_table};
use crate::client::{TableClient, TableServiceClient};
use crate::error::Error;
use crate::pipeline::{PipelineHandle, Table};
use crate::query::EntityStream;

/// A series of tables, one for each period of time: entities that are deleted by their age, such as
/// logs, are deleted by dropping a table, which is one request for any number of entities.
///
/// The name of a table is a prefix and the digits of its period in UTC, such as `Logins20240315`.
/// The program passes the instants: nothing here reads a clock. It creates the tables itself, best
/// ahead of time, since a new table is slow at first.
///
/// The prefix starts with a letter, and contains only letters and digits. Its last character is no
/// digit, and it leaves room for the digits in the 63 characters of a name: a day has 8. A prefix
/// that breaks a rule is reported by the operations on the tables. All programs write the prefix in
/// the same case: the list of tables is by the case in which they were created.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// use futures::TryStreamExt;
/// use tablesdk::TableEntity;
/// use tablesdk::rolling::{Period, RollingTable};
/// use time::macros::datetime;
/// use time::{Duration, OffsetDateTime};
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{user}", row_key = "{at}")]
/// struct Login {
///     user: String,
///     at: OffsetDateTime,
/// }
///
/// let logins = RollingTable::new(&service, "Logins", Period::Day);
/// let monday = datetime!(2024-03-11 9:30 UTC);
/// for day in 0..5 {
///     let login = Login { user: "ann".into(), at: monday + Duration::days(day) };
///     let table = logins.at(login.at);
///     table.create_table().if_missing().await?;
///     table.insert(&login).await?;
/// }
///
/// let of_ann = logins.stream(..monday + Duration::days(2), |day| day.query::<Login>().partition("ann").stream());
/// let of_ann: Vec<_> = of_ann.try_collect().await?;
/// assert_eq!(of_ann.len(), 3, "Monday to Wednesday");
///
/// let dropped = logins.drop_before(monday + Duration::days(2)).await?;
/// assert_eq!(dropped, ["Logins20240311", "Logins20240312"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RollingTable {
    pipeline: PipelineHandle,
    prefix: String,
    period: Period,
}

/// The time for which a table of a [`RollingTable`] has the entities.
///
/// ```
/// # let server = tablesdk_server::TableServer::in_process();
/// # let service = tablesdk::TableServiceClient::in_process(&server);
/// use tablesdk::Timestamp;
/// use tablesdk::rolling::{Period, RollingTable};
///
/// let instant: Timestamp = "2024-03-15T10:20:30Z".parse()?;
/// let name = |period| RollingTable::new(&service, "Logins", period).at(instant).name().to_owned();
/// assert_eq!(name(Period::Hour), "Logins2024031510");
/// assert_eq!(name(Period::Month), "Logins202403");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// An hour: ten digits.
    Hour,
    /// A day: eight digits.
    Day,
    /// A month: six digits.
    Month,
    /// A year: four digits.
    Year,
}

impl Period {
    const fn digits(self) -> usize {
        match self {
            Self::Hour => 10,
            Self::Day => 8,
            Self::Month => 6,
            Self::Year => 4,
        }
    }

    /// The digits of the period of an instant. They sort as the instants do.
    fn of(self, instant: Timestamp) -> String {
        let printed = instant.to_string();
        let digits = printed.chars().filter(char::is_ascii_digit);
        digits.take(self.digits()).collect()
    }

    /// Returns true if digits are those of a period.
    fn has(self, digits: &str) -> bool {
        let start = digits.get(..4).and_then(|year| {
            let part = |at: usize, first| digits.get(at..at + 2).unwrap_or(first);
            let (month, day, hour) = (part(4, "01"), part(6, "01"), part(8, "00"));
            format!("{year}-{month}-{day}T{hour}:00Z").parse().ok()
        });
        start.is_some_and(|start| self.of(start) == digits)
    }
}

/// Why something is not an instant.
type InstantProblem = Box<dyn StdError + Send + Sync>;

impl RollingTable {
    /// The tables of an account with that prefix. Sends nothing.
    pub fn new(service: &TableServiceClient, prefix: impl Into<String>, period: Period) -> Self {
        Self {
            pipeline: service.pipeline.clone(),
            prefix: prefix.into(),
            period,
        }
    }

    /// The table of the period that contains an instant. Sends nothing, and does not create the
    /// table.
    ///
    /// Takes a [`Timestamp`], a [`SystemTime`](std::time::SystemTime) or, with the feature `time`,
    /// an `OffsetDateTime`.
    pub fn at<T>(&self, instant: T) -> TableClient
    where
        T: TryInto<Timestamp, Error: Into<Box<dyn StdError + Send + Sync>>>,
    {
        let pipeline = self.pipeline.clone();
        TableClient::of(match self.digits_at(instant) {
            Ok(digits) => Table::new(pipeline, format!("{}{digits}", self.prefix)),
            Err(problem) => Table::refused(pipeline, self.prefix.clone(), &problem.to_string()),
        })
    }

    /// Runs a query on each table whose period overlaps a range of instants, the oldest table
    /// first. Tables that do not exist are passed over.
    ///
    /// One request lists the tables. The query itself is not restricted to the range: at both ends,
    /// a table may have entities outside it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// use futures::TryStreamExt;
    /// use tablesdk::rolling::{Period, RollingTable};
    /// use tablesdk::{DynamicEntity, Timestamp};
    ///
    /// let logins = RollingTable::new(&service, "Logins", Period::Month);
    /// let (february, june): (Timestamp, Timestamp) = ("2024-02-01".parse()?, "2024-06-01".parse()?);
    /// for month in [february, june] {
    ///     logins.at(month).create_table().await?;
    ///     logins.at(month).insert(&DynamicEntity::new("ann", "1")).await?;
    /// }
    /// let query = |month: &tablesdk::TableClient| month.query::<DynamicEntity>().stream();
    /// let until_june: Vec<_> = logins.stream(february..june, query).try_collect().await?;
    /// assert_eq!(until_june.len(), 1, "June is not in the range");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the queries. A shared access signature needs the permission to list tables.
    pub fn stream<I, T: Send + 'static>(
        &self,
        range: impl RangeBounds<I>,
        mut query: impl FnMut(&TableClient) -> EntityStream<T> + Send + 'static,
    ) -> EntityStream<T>
    where
        I: TryInto<Timestamp, Error: Into<Box<dyn StdError + Send + Sync>>> + Clone,
    {
        let (first, last) = match self.ends(&range) {
            Ok(ends) => ends,
            Err(problem) => return EntityStream::failed(self.refused("query entities", problem)),
        };
        let this = self.clone();
        let items = async_stream::stream! {
            let (start, end) = (this.period.of(first), this.period.of(last));
            let names = if first <= last {
                this.names(|digits| *start <= *digits && *digits <= *end).await
            } else {
                Ok(Vec::new())
            };
            match names {
                Ok(names) => for name in names {
                    let mut items = query(&TableClient::new(this.pipeline.clone(), name));
                    while let Some(item) = items.next().await {
                        // Another client dropped the table after the list was read.
                        if item.as_ref().is_err_and(Error::is_table_not_found) {
                            break;
                        }
                        yield item;
                    }
                },
                Err(error) => yield Err(error),
            }
        };
        EntityStream::first(None, items)
    }

    /// Deletes the tables whose periods end before an instant or at it, the oldest first, and
    /// returns their names. The table of the period that contains the instant stays.
    ///
    /// One request lists the tables, and one deletes each. After an error, the call can be made
    /// again: tables that were deleted are not found again. Only tables are deleted whose name is
    /// the prefix with the digits of a period.
    ///
    /// # Errors
    ///
    /// The errors of the service. A shared access signature needs the permissions to list and to
    /// delete tables.
    pub fn drop_before<T>(&self, instant: T) -> Action<Vec<String>>
    where
        T: TryInto<Timestamp, Error: Into<Box<dyn StdError + Send + Sync>>>,
    {
        let end = self.digits_at(instant);
        let this = self.clone();
        Action::new(&self.pipeline, move |pipeline| async move {
            let this = Self { pipeline, ..this };
            let end = end.map_err(|problem| this.refused("delete table", problem))?;
            let mut dropped = Vec::new();
            for name in this.names(|digits| *digits < *end).await? {
                if delete_table(Table::new(this.pipeline.clone(), name.clone())).await? {
                    dropped.push(name);
                }
            }
            Ok(dropped)
        })
    }

    /// The names of the tables that exist and whose digits are wanted, the oldest first.
    async fn names(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        let tables = QueryTables::new(self.pipeline.clone()).starting_with(self.prefix.as_str());
        let mut names: Vec<String> = tables.stream().try_collect().await?;
        names.retain(|name| {
            let digits = name.strip_prefix(&self.prefix);
            digits.is_some_and(|digits| self.period.has(digits) && is_wanted(digits))
        });
        names.sort_unstable();
        Ok(names)
    }

    fn digits_at<T>(&self, instant: T) -> Result<String, InstantProblem>
    where
        T: TryInto<Timestamp, Error: Into<InstantProblem>>,
    {
        self.check()?;
        Ok(self.period.of(instant.try_into().map_err(Into::into)?))
    }

    /// The first and the last instant of a range.
    fn ends<I>(&self, range: &impl RangeBounds<I>) -> Result<(Timestamp, Timestamp), InstantProblem>
    where
        I: TryInto<Timestamp, Error: Into<InstantProblem>> + Clone,
    {
        self.check()?;
        let instant = |at: &I| at.clone().try_into().map_err(Into::into);
        let first = match range.start_bound() {
            Bound::Included(at) => instant(at)?,
            Bound::Excluded(at) => instant(at)?.next(),
            Bound::Unbounded => Timestamp::MIN,
        };
        let last = match range.end_bound() {
            Bound::Included(at) => instant(at)?,
            Bound::Excluded(at) => Timestamp::from_unix_ticks(instant(at)?.unix_ticks() - 1)?,
            Bound::Unbounded => Timestamp::MAX,
        };
        Ok((first, last))
    }

    fn check(&self) -> Result<(), PrefixError> {
        let (prefix, digits) = (&self.prefix, self.period.digits());
        let rule = if !prefix.starts_with(|first: char| first.is_ascii_alphabetic()) {
            "does not start with a letter".to_owned()
        } else if !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            "has a character that is neither a letter nor a digit".to_owned()
        } else if prefix.ends_with(|last: char| last.is_ascii_digit()) {
            "ends with a digit, and the digits of the period follow it".to_owned()
        } else if prefix.len() + digits > TABLE_NAME_LENGTH_MAX {
            let most = TABLE_NAME_LENGTH_MAX - digits;
            format!("is longer than {most} characters: the period has {digits} digits")
        } else {
            return Ok(());
        };
        let prefix = prefix.clone();
        Err(PrefixError { prefix, rule })
    }

    fn refused(&self, operation: &'static str, problem: InstantProblem) -> Error {
        let error = Error::input(problem).with_operation(operation);
        self.pipeline.locate(error)
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("the prefix {prefix:?} of a rolling table {rule}")]
struct PrefixError {
    prefix: String,
    rule: String,
}
