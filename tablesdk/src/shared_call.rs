//! A call that several callers wait for at the same time. It knows nothing of what it does.

use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};

/// The call that is under way, if one is.
///
/// Each of its callers polls it. So a caller that is polled no more, and is not dropped either, stops none of the others, as it would if it
/// had a lock. The call is dropped with its last caller.
pub(crate) struct SharedCall<T: Clone>(Mutex<Option<WeakShared<BoxFuture<'static, T>>>>);

impl<T: Clone> SharedCall<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Joins the call that is under way, or begins one.
    pub(crate) fn join<F>(&self, begin: impl FnOnce() -> F) -> Shared<BoxFuture<'static, T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = current.as_ref().and_then(WeakShared::upgrade);
        under_way
            .filter(|call| call.peek().is_none())
            .unwrap_or_else(|| {
                let call = begin().boxed().shared();
                *current = call.downgrade();
                call
            })
    }
}
