//! Results of the closure of `filter`, and the message for a comparison by an operator, which
//! returns a `bool`.

use std::cmp::Ordering;

use super::Column;
use crate::entity::DynamicColumn;
use crate::filter::Filter;
use crate::sealed::Seal;

/// The result of the closure of [`filter`](crate::action::QueryEntities::filter): a [`Filter`].
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::query::IntoFilter;
/// use tablesdk::{TableClient, TableEntity};
///
/// // What a function of the program takes to pass it on.
/// async fn count<F: IntoFilter<Employee>>(
///     table: &TableClient,
///     filter: impl FnOnce(<Employee as TableEntity>::Columns) -> F,
/// ) -> Result<usize, tablesdk::Error> {
///     table.query::<Employee>().partition("Sales").filter(filter).count().await
/// }
/// assert_eq!(count(&table, |e| e.name.eq("Ada")).await?, 1);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on `{E}`",
    label = "not a condition",
    note = "a column is compared by a method: `.gt(5.0)` in place of `> 5.0`; the others are `ge`, `lt`, `le`, `eq` and `ne`",
    note = "conditions are combined with `&`, `|` and `!`, and not with `&&` and `||`"
)]
pub trait IntoFilter<E> {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The filter.
    fn into_filter(self) -> Filter<E>;
}

impl<E> IntoFilter<E> for Filter<E> {
    const SEAL: Seal = Seal;

    fn into_filter(self) -> Self {
        self
    }
}

// The methods of a column with the same names take `&self`, so that they come first for a reference
// to a column, too. The operators exist so that the compiler reaches the message of `IntoFilter`.
// Without them, it says that `>` cannot be applied, and no attribute changes that message.

macro_rules! refuse_operators {
    ($([$($param:ident),+] $column:ty;)+) => {
        $(#[doc(hidden)]
        impl<$($param,)+ L> PartialEq<L> for $column {
            fn eq(&self, _: &L) -> bool {
                const { refuse::<L>() }
            }
        }

        #[doc(hidden)]
        impl<$($param,)+ L> PartialOrd<L> for $column {
            fn partial_cmp(&self, _: &L) -> Option<Ordering> {
                const { refuse::<L>() };
                None
            }
        })+
    };
}

refuse_operators! {
    [E, F] Column<E, F>;
    [E] DynamicColumn<E>;
}

/// Ends the compilation of a comparison outside of a filter. It reads the size of the other side,
/// which no type has, because the compiler evaluates a constant that depends on no type when it
/// optimizes this crate, although nothing is compared here.
///
/// ```compile_fail,E0080
#[doc = include_str!("../docs/employees.md")]
/// use tablesdk::{DynamicEntity, TableEntity};
/// let salary = DynamicEntity::columns().property("Salary");
/// let _ = salary > 5.0;
/// # Ok(())
/// # }
/// ```
const fn refuse<L>() -> bool {
    assert!(
        size_of::<L>() > isize::MAX.unsigned_abs(),
        "a column is compared by a method, such as `.gt(5.0)` in place of `> 5.0`, and the result is a filter"
    );
    false
}
