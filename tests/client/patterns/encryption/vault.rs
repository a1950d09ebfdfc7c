//! A provider of keys that does what a test says.

use std::mem::take;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use tablesdk::encryption::{ContentKey, KeyProvider, LocalKey, ProviderFuture, WrappedKey};
use tokio::task::yield_now;

/// Local keys that count, and that refuse, panic or are interrupted.
#[derive(Clone)]
pub(super) struct Vault {
    keys: Vec<LocalKey>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(super) struct State {
    /// The keys that were wrapped.
    pub(super) wrapped: Vec<[u8; 32]>,
    pub(super) unwrapped: usize,
    pub(super) refuses: bool,
    /// True if the next call panics.
    pub(super) panics: bool,
    rival: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Vault {
    pub(super) fn new(keys: impl IntoIterator<Item = LocalKey>) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            state: Arc::default(),
        }
    }

    /// Another client acts while the next key is wrapped.
    pub(super) fn interrupted(self, rival: impl Future<Output = ()> + Send + 'static) -> Self {
        self.state().rival = Some(Box::pin(rival));
        self
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl KeyProvider for Vault {
    fn key_id(&self) -> String {
        self.keys.key_id()
    }

    fn wrap<'a>(&'a self, key: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        self.state().wrapped.push(*key.as_bytes());
        let rival = self.state().rival.take();
        Box::pin(async move {
            if let Some(rival) = rival {
                rival.await;
            }
            self.keys.wrap(key).await
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        Box::pin(async {
            self.state().unwrapped += 1;
            yield_now().await;
            let panics = take(&mut self.state().panics);
            assert!(!panics, "once");
            if self.state().refuses {
                return Err("the vault does not respond".into());
            }
            self.keys.unwrap(wrapped).await
        })
    }
}
