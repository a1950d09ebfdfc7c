//! What a query would send, for people to read. Holds nothing secret.

use std::fmt;

use super::BetterIndex;
use crate::filter::AccessClass;

/// What a query sends first, and how the service finds what it asks for. Printed, it is a line for each.
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
    pub(crate) index: Option<BetterIndex>,
    /// Whether the entities come in the order of their keys.
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

    /// What it costs.
    pub const fn access(&self) -> AccessClass {
        self.access
    }

    /// Whether the entities come in the order of their keys. On [Cosmos DB](crate::guide::cosmos_db), those of several partitions are in no
    /// order.
    pub const fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// The name of the [index](crate::guide::indexes) that would answer the query, where the query itself reads all entities of a
    /// partition, or of the table, and its filter gives leading parts of the keys of that index. Printed, the explanation names the
    /// methods to call. An index in the partitions of its entities answers for one partition, and one in other partitions for the whole table.
    ///
    /// ```
    #[doc = include_str!("../docs/indexed.md")]
    /// let query = table.query::<Employee>().partition("Sales").filter(|e| e.email.eq("ada@contoso.com"));
    /// assert_eq!(query.explain()?.index(), Some("ByEmail"));
    ///
    /// let better = table.query::<ByEmail>().partition("Sales").rows(ByEmail::rows().email("ada@contoso.com"));
    /// assert_eq!(better.explain()?.access().as_str(), "point");
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(&self) -> Option<&'static str> {
        self.index.as_ref().map(BetterIndex::name)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            url,
            filter,
            access,
            index,
            is_ordered,
        } = self;
        writeln!(f, "access: {access}")?;
        let filter = filter.as_deref().unwrap_or("none");
        writeln!(f, "filter: {filter}")?;
        if let Some(index) = index {
            writeln!(f, "index: {index}")?;
        }
        if !is_ordered {
            writeln!(f, "order: none between partitions")?;
        }
        write!(f, "request: {method} {url}")
    }
}
