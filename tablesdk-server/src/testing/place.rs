//! [`Place`]: the partition at which a request begins, and so the range that serves it.

use std::cmp::Ordering;

use tablesdk_protocol::continuation::decode_token;
use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::operation::batch::{Query, Received};
use tablesdk_protocol::operation::{Operation, query_entities};
use tablesdk_protocol::{Value, compare_utf16};

use super::request::RequestInfo;

/// The partition at which a request for entities begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The account, and the table in lower case.
    pub(super) table: (String, String),
    pub(super) partition_key: String,
}

impl Place {
    /// `None` for a request that is not for entities.
    pub(super) fn of(info: &RequestInfo, operation: &Operation) -> Option<Self> {
        let partition_key = match (&info.partition_key, operation) {
            (Some(partition_key), _) => partition_key.clone(),
            (
                None,
                Operation::QueryEntities(request)
                | Operation::Batch(Received::Query(Ok(Query::Entities(request)))),
            ) => start_of(request),
            _ => return None,
        };
        Some(Self {
            table: table_of(&info.account, info.table.as_ref()?),
            partition_key,
        })
    }
}

/// A table, as the maps name it.
pub(super) fn table_of(account: &str, table: &str) -> (String, String) {
    (account.to_owned(), table.to_ascii_lowercase())
}

/// The first partition that a query reads.
fn start_of(request: &query_entities::Request) -> String {
    let token = request.continuation.as_ref().and_then(|continuation| {
        // An empty page adds a `~`, which no token contains.
        decode_token(continuation.next_partition_key.trim_end_matches('~')).ok()
    });
    let filter = request.filter.as_ref().and_then(first_partition);
    match (token, filter) {
        (Some(token), Some(filter)) if is_less(&token, filter) => filter.to_owned(),
        (Some(token), _) => token,
        (None, filter) => filter.unwrap_or_default().to_owned(),
    }
}

/// The first partition for which a filter can hold; `None` if there is none.
fn first_partition(filter: &Filter) -> Option<&str> {
    filter.fold(|filter, terms: Vec<Option<&str>>| match filter {
        Filter::And(_) => {
            let terms: Option<Vec<_>> = terms.into_iter().collect();
            terms?.into_iter().max_by(|a, b| compare_utf16(a, b))
        }
        Filter::Or(_) => {
            let possible = terms.into_iter().flatten();
            possible.min_by(|a, b| compare_utf16(a, b))
        }
        Filter::Comparison(comparison) if comparison.property == "PartitionKey" => {
            use ComparisonOperator::{Equal, GreaterThan, GreaterThanOrEqual};
            match (&comparison.literal, comparison.operator) {
                (Value::String(key), Equal | GreaterThan | GreaterThanOrEqual) => Some(key),
                _ => Some(""),
            }
        }
        Filter::Constant(false) => None,
        _ => Some(""),
    })
}

fn is_less(a: &str, b: &str) -> bool {
    compare_utf16(a, b) == Ordering::Less
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_begins_at_the_first_partition_of_its_filter() {
        for (filter, first) in [
            ("Name eq 'Ada'", Some("")),
            ("PartitionKey eq 'm'", Some("m")),
            ("PartitionKey gt 'm' and PartitionKey lt 'p'", Some("m")),
            ("PartitionKey ge 'd' and PartitionKey ge 'm'", Some("m")),
            ("PartitionKey eq 'm' or PartitionKey eq 'd'", Some("d")),
            ("PartitionKey eq 'm' or Name eq 'Ada'", Some("")),
            ("not (PartitionKey lt 'm')", Some("")),
            ("PartitionKey le 'm' and RowKey eq 'x'", Some("")),
        ] {
            let filter: Filter = filter.parse().unwrap();
            assert_eq!(first_partition(&filter), first, "{filter}");
        }
    }
}
