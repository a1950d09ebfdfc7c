//! The compiler's message for a query that is awaited: which methods choose its result.
//!
//! A query is no action, since its result can be all items, a stream of them, or a page. To collect
//! a table into memory without a word in the program that says so would be the wrong choice of the
//! three.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::parallel::ParallelQuery;
use crate::action::{QueryEntities, QueryTables};
use crate::error::Error;
use crate::query::Selection;

/// Implemented for nothing. Only with a bound that is not satisfied is there a place for a message.
#[diagnostic::on_unimplemented(
    message = "a query is not awaited: end it with `.collect()` or `.stream()`",
    label = "a method that chooses the result is missing",
    note = "`.collect()` reads all items into a `Vec`, `.stream()` yields them as they arrive, `.page(…)` reads one page",
    note = "a query of entities also has `.first()`, `.one()`, `.exists()` and `.count()`"
)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait AwaitedQuery<Q> {}

macro_rules! not_awaited {
    ($([$($generics:tt)*] $query:ty, $item:ty, where ($($bound:tt)+);)+) => {
        $(#[doc(hidden)]
        impl<$($generics)*> Future for $query
        where
            $($bound)+
        {
            type Output = Result<Vec<$item>, Error>;

            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
                Poll::Pending
            }
        })+
    };
}

not_awaited! {
    [E, S: Selection<E>] QueryEntities<E, S>, S::Item, where ((): AwaitedQuery<Self>);
    [E, S: Selection<E>, O] ParallelQuery<E, S, O>, S::Item, where ((): AwaitedQuery<Self>);
    [] QueryTables, String, where (for<'q> (): AwaitedQuery<&'q Self>);
}
