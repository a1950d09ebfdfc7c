//! Explanations of queries, for people to read. They contain nothing secret.

use std::fmt;

use crate::filter::AccessClass;

/// The first request of a query, and the way in which the service finds its entities. `Display`
/// writes a line for each fact.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// let query = table.query::<Employee>().partition("Sales").filter(|e| e.name.eq("Ada"));
/// let explanation = query.explain()?;
/// assert!(explanation.url().contains("/Employees()?$filter="));
/// assert_eq!(explanation.filter(), Some("PartitionKey eq 'Sales' and Name eq 'Ada'"));
/// assert_eq!(explanation.access().as_str(), "partition");
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
}

impl Explanation {
    /// The URL of the first request, without a credential.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The filter in OData, if there is one.
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// The class of the access, which determines the cost.
    pub const fn access(&self) -> AccessClass {
        self.access
    }

    /// Returns true if the entities come in the order of their keys. On [Cosmos
    /// DB](crate::guide::cosmos_db), the entities of several partitions are in no order.
    pub const fn is_ordered(&self) -> bool {
        self.is_ordered
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
        } = self;
        writeln!(f, "access: {access}")?;
        let filter = filter.as_deref().unwrap_or("none");
        writeln!(f, "filter: {filter}")?;
        if let Some(advice) = advice {
            writeln!(f, "{}: {advice}", advice.noun)?;
        }
        if !is_ordered {
            writeln!(f, "order: none between partitions")?;
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
