//! A call that several callers wait for at the same time. It knows nothing of what it does.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};

/// The call that is under way, if one is.
///
/// Each of its callers polls it. So a caller that is polled no more, and is not dropped either,
/// stops none of the others, as it would if it had a lock. The call is dropped with its last
/// caller. If it panics, one of its callers does, and the others begin another one.
pub(crate) struct SharedCall<T: Clone>(Mutex<Option<WeakShared<Call<T>>>>);

type Call<T> = BoxFuture<'static, Result<T, Arc<Panic>>>;

/// The panic of a call, until one of its callers has taken it.
type Panic = Mutex<Option<Box<dyn Any + Send>>>;

impl<T: Clone> SharedCall<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The result of the call that is under way, or of one that begins here.
    pub(crate) async fn join<F>(&self, begin: impl Fn() -> F + Send) -> T
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + Sync,
    {
        loop {
            let panic = match self.current(&begin).await {
                Ok(result) => return result,
                Err(panic) => panic,
            };
            let panic = panic.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(panic) = panic {
                resume_unwind(panic);
            }
        }
    }

    fn current<F>(&self, begin: impl Fn() -> F) -> Shared<Call<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = current.as_ref().and_then(WeakShared::upgrade);
        under_way
            .filter(|call| call.peek().is_none())
            .unwrap_or_else(|| {
                // What it shares with its callers is behind locks, and whole at each await.
                let call = AssertUnwindSafe(begin()).catch_unwind();
                let call =
                    call.map(|result| result.map_err(|panic| Arc::new(Mutex::new(Some(panic)))));
                let call = call.boxed().shared();
                *current = call.downgrade();
                call
            })
    }
}
