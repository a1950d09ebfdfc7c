//! Ranges of row keys, and of other strings, that begin with the same text.

use tablesdk_protocol::KeyKind;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

/// The condition for row keys that begin with the string.
pub(crate) fn row_key_range(beginning: &str) -> Tree {
    starting_with(KeyKind::RowKey.property(), beginning)
}

/// The condition for values of a property that begin with the string.
pub(crate) fn starting_with(name: &str, beginning: &str) -> Tree {
    let from = Tree::comparison(name, ComparisonOperator::GreaterThanOrEqual, beginning);
    match end_of_prefix(beginning) {
        Some(end) => from.and(Tree::comparison(name, ComparisonOperator::LessThan, end)),
        None => from,
    }
}

/// The condition for the entities of a partition from one row key (included) to another (excluded).
pub(crate) fn rows_in_partition(partition: &str, from: &str, to: &str) -> Tree {
    let row_key = |operator, text| Tree::comparison(KeyKind::RowKey.property(), operator, text);
    let partition_key = KeyKind::PartitionKey.property();
    Tree::comparison(partition_key, ComparisonOperator::Equal, partition)
        .and(row_key(ComparisonOperator::GreaterThanOrEqual, from))
        .and(row_key(ComparisonOperator::LessThan, to))
}

/// The least text that is greater than every text with that prefix; `None` when there is none.
///
/// The order is that of UTF-16 units: characters above U+FFFF come between U+D7FF and U+E000.
pub(crate) fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{D7FF}' => '\u{10000}',
            '\u{10FFFF}' => '\u{E000}',
            '\u{FFFF}' => continue,
            last => char::from_u32(u32::from(last) + 1)?,
        };
        end.push(next);
        return Some(end);
    }
    None
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::compare_utf16;

    use super::*;

    #[test]
    fn the_end_of_a_prefix_follows_the_order_of_utf16() {
        for (prefix, end) in [
            ("", None),
            ("abc", Some("abd")),
            ("a\u{D7FF}", Some("a\u{10000}")),
            ("a\u{10FFFF}", Some("a\u{E000}")),
            ("a\u{FFFF}", Some("b")),
            ("\u{FFFF}\u{FFFF}", None),
        ] {
            assert_eq!(end_of_prefix(prefix).as_deref(), end, "{prefix:?}");
            if let Some(end) = end {
                let longest = format!("{prefix}\u{FFFF}\u{FFFF}");
                assert!(compare_utf16(&longest, end).is_lt(), "{prefix:?}");
            }
        }
    }
}
