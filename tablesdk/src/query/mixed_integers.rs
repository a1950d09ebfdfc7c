//! Comparisons of a property that is Int32 in some entities and Int64 in others.

use std::borrow::Cow;

use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

/// A comparison that is also right for a stored Int32. The service does not widen stored values,
/// only literals.
///
/// A literal in the range of Int32 is printed as an Int32. No Int32 equals a literal outside that
/// range, and all of them are on the same side of it. The filter states this in a separate term,
/// since a value of another type than the literal counts as less.
// SERVICE: that a mismatch counts as less is what is known; what is printed is right for a mismatch
// that matches nothing, too.
pub(super) fn comparison(
    name: Cow<'static, str>,
    operator: ComparisonOperator,
    value: i64,
) -> Tree {
    use ComparisonOperator::{
        Equal, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, NotEqual,
    };
    if let Ok(value) = i32::try_from(value) {
        return Tree::comparison(name, operator, value);
    }
    let wide = Tree::comparison(name.clone(), operator, value);
    // True of every Int32, and of no wider number on the other side.
    let all = if value > 0 {
        Tree::comparison(name.clone(), LessThanOrEqual, i32::MAX)
    } else {
        Tree::comparison(name.clone(), GreaterThanOrEqual, i32::MIN)
    };
    let none = if value > 0 {
        Tree::comparison(name, GreaterThan, i32::MAX)
    } else {
        Tree::comparison(name, LessThan, i32::MIN)
    };
    match (operator, value > 0) {
        (Equal, _) => wide.and(none),
        (NotEqual, _) => wide.or(all),
        (GreaterThan | GreaterThanOrEqual, true) | (LessThan | LessThanOrEqual, false) => {
            wide.and(none)
        }
        (GreaterThan | GreaterThanOrEqual, false) | (LessThan | LessThanOrEqual, true) => {
            wide.or(all)
        }
    }
}
