//! Explanations of queries and batches, for people to read. They contain nothing secret.

use std::fmt;

use crate::filter::AccessClass;

/// The requests of a query or of a [batch](crate::action::Batch::explain) before they are sent, and
/// the way in which the service finds the entities. `Display` writes a line for each fact.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// let query = table.query::<Employee>().partition("Sales").filter(|e| e.name.eq("Ada"));
/// let explanation = query.explain()?;
/// assert!(explanation.url().contains("/Employees()?$filter="));
/// assert_eq!(explanation.filter(), Some("PartitionKey eq 'Sales' and Name eq 'Ada'"));
/// assert_eq!(explanation.access().as_str(), "partition");
/// assert_eq!(explanation.requests(), 1);
/// assert_eq!(explanation.more_requests(), Some("one for each further page"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) filter: Option<String>,
    pub(crate) access: AccessClass,
    pub(crate) advice: Option<Advice>,
    /// True if the entities come in the order of their keys.
    pub(crate) is_ordered: bool,
    pub(crate) requests: usize,
    pub(crate) more: Option<&'static str>,
    /// The changes of a batch; `None` of a query.
    pub(crate) changes: Option<usize>,
    pub(crate) contradiction: Option<String>,
}

impl Explanation {
    /// The number of requests, each of which is a [transaction of the
    /// bill](crate::guide::costs). With [`more_requests`](Self::more_requests), it is the least
    /// number. Retries, and requests that another client's writes or earlier failures require, are
    /// not among them.
    pub const fn requests(&self) -> usize {
        self.requests
    }

    /// The rule for the requests beyond [`requests`](Self::requests). `None` if there are none: the
    /// number is exact.
    pub const fn more_requests(&self) -> Option<&str> {
        self.more
    }

    /// The number of changes in the request of a batch, of which there may be 100: those of the
    /// program, entries of indexes and copies in the same partition, steps of the outbox, and the
    /// marker of `exactly_once`. 0 of a query.
    pub const fn changes(&self) -> usize {
        match self.changes {
            Some(changes) => changes,
            None => 0,
        }
    }

    /// The URL of the first request, without a credential. Of a batch, that of the request with the
    /// changes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The filter in OData, if there is one.
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// The class of the access, which determines the cost. A batch finds its entities by their
    /// keys: [`Point`](AccessClass::Point).
    pub const fn access(&self) -> AccessClass {
        self.access
    }

    /// Returns true if the entities come in the order of their keys. On [Cosmos
    /// DB](crate::guide::cosmos_db), the entities of several partitions are in no order.
    pub const fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// The property whose bounds in the filter exclude each other: the query finds nothing,
    /// whatever is stored. `None` where it may find something.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// // Strings are in the order of their characters, in which '10' is before '9'.
    /// let query = table.query::<Employee>().filter(|e| e.id.ge("9") & e.id.lt("10"));
    /// assert_eq!(query.explain()?.contradiction(), Some("RowKey"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn contradiction(&self) -> Option<&str> {
        self.contradiction.as_deref()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            url,
            filter,
            access,
            advice,
            is_ordered,
            requests,
            more,
            changes,
            contradiction,
        } = self;
        if let Some(changes) = changes {
            writeln!(f, "changes: {changes}")?;
        } else {
            writeln!(f, "access: {access}")?;
            let filter = filter.as_deref().unwrap_or("none");
            writeln!(f, "filter: {filter}")?;
        }
        if let Some(advice) = advice {
            writeln!(f, "{}: {advice}", advice.noun)?;
        }
        if let Some(property) = contradiction {
            writeln!(
                f,
                "result: none, since the bounds of {property} exclude each other"
            )?;
        }
        if !is_ordered {
            writeln!(f, "order: none between partitions")?;
        }
        match more {
            Some(more) => writeln!(f, "requests: at least {requests}, and {more}")?,
            None => writeln!(f, "requests: {requests}")?,
        }
        write!(f, "request: {method} {url}")
    }
}

/// Another query that would answer one that reads more entities than it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// The noun of the advice in a line of an explanation.
    pub(crate) noun: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
