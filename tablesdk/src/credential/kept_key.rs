//! The user delegation key of a credential: requested once for all signatures, kept, and requested
//! again when a signature would outlive it.
//!
//! Knows neither requests nor the time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tablesdk_protocol::Timestamp;
use tablesdk_protocol::auth::sas::UserDelegationKey;

use crate::error::Error;
use crate::shared_call::SharedCall;

type Got = Result<UserDelegationKey, Arc<Error>>;
type Held = Arc<Mutex<Option<UserDelegationKey>>>;

pub(crate) struct KeptKey {
    held: Held,
    request: SharedCall<Got>,
}

impl KeptKey {
    pub(super) fn new() -> Self {
        Self {
            held: Held::default(),
            request: SharedCall::new(),
        }
    }

    /// A key that is valid until then: the one that is kept, or one that `get` requests. Callers at
    /// the same time share the request.
    pub(crate) async fn until<F>(
        &self,
        time: Timestamp,
        get: impl Fn() -> F + Send + Sync,
    ) -> Result<UserDelegationKey, Error>
    where
        F: Future<Output = Got> + Send + 'static,
    {
        if let Some(key) = lock(&self.held).clone().filter(|key| lasts(key, time)) {
            return Ok(key);
        }
        let begin = || {
            let (held, got) = (Arc::clone(&self.held), get());
            async move {
                // A request that has ended since then may have got it.
                if let Some(key) = lock(&held).clone().filter(|key| lasts(key, time)) {
                    return Ok(key);
                }
                let key = got.await?;
                *lock(&held) = Some(key.clone());
                Ok(key)
            }
        };
        let mut got = self.request.join(begin).await;
        // The caller whose request was under way may need the key for a shorter time.
        if got.as_ref().is_ok_and(|key| !lasts(key, time)) {
            got = self.request.join(begin).await;
        }
        got.map_err(|error| error.for_another_caller())
    }
}

impl fmt::Debug for KeptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptKey").field(&*lock(&self.held)).finish()
    }
}

fn lasts(key: &UserDelegationKey, time: Timestamp) -> bool {
    key.expires_at() >= time
}

fn lock(held: &Held) -> MutexGuard<'_, Option<UserDelegationKey>> {
    // Nothing panics while it is held.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
