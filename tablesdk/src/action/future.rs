//! The running form of an action.

use std::pin::Pin;

use crate::error::Error;

/// The running form of an action.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use std::future::IntoFuture;
/// use tablesdk::ETag;
/// use tablesdk::action::ActionFuture;
///
/// // Verbs of different types, together.
/// let grace = Employee::new("Sales", "2", "Grace");
/// let writes: Vec<ActionFuture<'_, ETag>> = vec![
///     table.upsert_replace(&grace).into_future(),
///     table.patch(Employee::key("Sales", "1")).set(|e| e.name, "Ada Lovelace").into_future(),
/// ];
/// let etags = futures::future::try_join_all(writes).await?;
/// # assert_eq!(etags.len(), 2);
/// # Ok(())
/// # }
/// ```
pub type ActionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;
