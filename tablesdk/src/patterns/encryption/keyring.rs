//! The keys of a client, and when they are loaded. This module knows neither what they encrypt nor
//! where they are stored.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tablesdk_protocol::{Guid, Timestamp};

use super::envelope::DataKey;
use super::{KeyProvider, LocalKey, extension};
use crate::error::Error;
use crate::shared_call::SharedCall;

/// The keys with which a client encrypts and decrypts properties. Cloning it is cheap; clones share
/// the keys.
///
/// ```
#[doc = include_str!("../../docs/encrypted.md")]
/// table.insert(&Employee::new("Sales", "1", "AB 12 34 56 C", "ada@contoso.com")).await?;
///
/// let ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
/// assert_eq!(ada.insurance_number, "AB 12 34 56 C");
///
/// // A client without the keys reads bytes.
/// use tablesdk::{DynamicEntity, EdmType};
///
/// let stored = service.table("Employees").get::<DynamicEntity>(("Sales", "1")).await?.expect("it exists");
/// assert_eq!(stored.properties().get("InsuranceNumber").map(|value| value.edm_type()), Some(EdmType::Binary));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Keyring {
    inner: Arc<Inner>,
    /// Unwraps the keys of entities that older SDKs encrypted.
    older: Option<Arc<dyn KeyProvider>>,
    /// Decides for entities without a type.
    resolver: Option<Arc<Resolver>>,
}

/// Returns true if the property with that partition key, row key and name is encrypted.
pub(super) type Resolver = dyn Fn(&str, &str, &str) -> bool + Send + Sync;

struct Inner {
    state: RwLock<LoadedKeys>,
    source: Option<Arc<dyn KeySource>>,
    /// Keys that are not loaded, and encrypt nothing.
    others: Vec<DataKey>,
    loading: SharedCall<Result<(), Arc<Error>>>,
}

struct LoadedKeys {
    keys: Arc<Keys>,
    /// By the clock of the source.
    loaded_at: Timestamp,
    /// When keys were last loaded because the key of a value was not there. Who writes values with
    /// keys that do not exist causes no more requests than one a minute.
    fetched_at: Option<Timestamp>,
}

impl LoadedKeys {
    fn is_old(&self, now: Timestamp) -> bool {
        now.abs_diff(self.loaded_at) >= MAX_AGE
    }
}

/// Where keys are loaded from.
pub(crate) trait KeySource: Send + Sync {
    fn now(&self) -> Timestamp;

    /// All keys. Those that are known are not unwrapped again.
    fn load<'a>(&'a self, known: &'a [DataKey]) -> SourceFuture<'a, Keys>;

    /// Adds a key, which becomes the one that encrypts.
    fn rotate(&self) -> SourceFuture<'_, ()>;

    /// Wraps the keys with the key that wraps now, and returns how many had another.
    fn rewrap(&self) -> SourceFuture<'_, usize>;
}

pub(crate) type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The keys of a keyring at one time.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The key that encrypts.
    pub(crate) current: DataKey,
    /// All, the current one included.
    pub(crate) all: Vec<DataKey>,
}

impl Keys {
    pub(super) const fn current(&self) -> &DataKey {
        &self.current
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &DataKey> {
        self.all.iter()
    }

    pub(crate) fn find(&self, id: Guid) -> Option<&DataKey> {
        self.all.iter().find(|key| key.id == id)
    }
}

impl Keyring {
    /// A keyring that encrypts with a key of the program itself.
    pub fn new(key: LocalKey) -> Self {
        let current = key.into_data_key();
        let all = vec![current.clone()];
        Self::of(Keys { current, all }, None, Timestamp::UNIX_EPOCH)
    }

    /// Keys that were just loaded, in a load that began at that time of the source.
    pub(crate) fn loaded(keys: Keys, source: Arc<dyn KeySource>, at: Timestamp) -> Self {
        Self::of(keys, Some(source), at)
    }

    fn of(keys: Keys, source: Option<Arc<dyn KeySource>>, loaded_at: Timestamp) -> Self {
        let state = LoadedKeys {
            keys: Arc::new(keys),
            loaded_at,
            fetched_at: None,
        };
        Self {
            inner: Arc::new(Inner {
                state: RwLock::new(state),
                source,
                others: Vec::new(),
                loading: SharedCall::new(),
            }),
            older: None,
            resolver: None,
        }
    }

    /// Adds a key that decrypts what was written with it, and encrypts nothing: an older one, or
    /// one that is to encrypt soon.
    #[must_use]
    pub fn also(self, key: LocalKey) -> Self {
        let key = key.into_data_key();
        let mut keys = Keys::clone(&self.keys());
        keys.all.push(key.clone());
        let loaded_at = self.inner.with_state(|state| state.loaded_at);
        let others = [self.inner.others.clone(), vec![key]].concat();
        let mut keyring = Self::of(keys, self.inner.source.clone(), loaded_at);
        if let Some(inner) = Arc::get_mut(&mut keyring.inner) {
            inner.others = others;
        }
        keyring.older = self.older;
        keyring.resolver = self.resolver;
        keyring
    }

    /// Also reads entities that Microsoft's older SDKs for .NET, Python and Java encrypted, with
    /// the keys of that provider: a [`LocalKey`] or several with the names and secrets of the
    /// symmetric keys (`A256KW`), or a provider of the program, such as one for an RSA key in a
    /// vault. It replaces the provider of an earlier call.
    ///
    /// They are only read. A replace writes the form of this crate. A merge or a patch of such an
    /// entity is refused with [`ErrorKind::Input`](crate::ErrorKind::Input); with this option, each
    /// merge and patch of a type with encrypted properties sends one request more, to find out. An
    /// entity that was changed, and one whose key the provider did not wrap, is
    /// [`ErrorKind::Data`](crate::ErrorKind::Data), and a provider that does not respond
    /// [`ErrorKind::Credential`](crate::ErrorKind::Credential). Most changes of such an entity are
    /// not detected: see [the guide](crate::guide::encryption#entities-of-older-sdks).
    ///
    /// ```
    /// use tablesdk::encryption::{Keyring, LocalKey};
    ///
    /// # let (new, old) = ([7; 32], [8; 32]);
    /// let keyring = Keyring::new(LocalKey::new("2024-01", new))
    ///     .also_older_sdks(LocalKey::new("https://contoso.vault.azure.net/keys/old/1", old));
    /// ```
    #[must_use]
    pub fn also_older_sdks(mut self, provider: impl KeyProvider) -> Self {
        self.older = Some(Arc::new(provider));
        self
    }

    /// Encrypts properties of entities without a type, [`DynamicEntity`](crate::DynamicEntity), for
    /// which the closure returns true. It gets the partition key, the row key and the name of the
    /// property. It must return the same for the same property in all clients and versions of the
    /// program. Entities of other types are not affected.
    ///
    /// Without a resolver, a `DynamicEntity` is stored and read as it is.
    ///
    /// ```
    #[doc = include_str!("../../docs/encrypted.md")]
    /// use tablesdk::DynamicEntity;
    ///
    /// let keyring = Keyring::new(LocalKey::new("2024-01", [7; 32]))
    ///     .resolver(|_partition_key, _row_key, name| name == "InsuranceNumber");
    /// let dynamic = service.table("Employees").with_encryption(keyring);
    /// let ada = DynamicEntity::new("Sales", "1").with("InsuranceNumber", "AB 12 34 56 C");
    /// dynamic.insert(&ada).await?;
    ///
    /// let read = dynamic.get::<DynamicEntity>(("Sales", "1")).await?.expect("it exists");
    /// assert_eq!(read.properties().read::<String>("InsuranceNumber")?, "AB 12 34 56 C");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn resolver(
        mut self,
        is_encrypted: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Some(Arc::new(is_encrypted));
        extension::encrypt_dynamic();
        self
    }

    pub(super) fn older(&self) -> Option<&dyn KeyProvider> {
        self.older.as_deref()
    }

    pub(super) fn resolver_of_dynamic(&self) -> Option<&Arc<Resolver>> {
        self.resolver.as_ref()
    }

    /// Makes a new key, which encrypts from an hour and a half later on: until then, all clients
    /// have loaded it, and their filters find what is encrypted with it. Only for a keyring that
    /// was [opened](Self::open).
    ///
    /// Older keys stay and decrypt. If another client makes a new key at the same time, one of the
    /// two encrypts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a keyring of local keys;
    /// [`ErrorKind::Credential`](crate::ErrorKind::Credential) when the provider does not wrap the
    /// key; and those of the service. A key that was stored and did not become the current one does
    /// no harm.
    pub async fn rotate(&self) -> Result<(), Error> {
        self.source()?.rotate().await?;
        // A load that is under way may have begun before.
        self.inner.load().await
    }

    /// Wraps all keys with the key of the provider that wraps now, and returns how many had
    /// another: for a new version of the key in a vault. The values stay as they are. Only for a
    /// keyring that was [opened](Self::open).
    ///
    /// # Errors
    ///
    /// The errors of [`rotate`](Self::rotate). A key that was wrapped before the error stays so,
    /// and the next call continues.
    pub async fn rewrap(&self) -> Result<usize, Error> {
        self.source()?.rewrap().await
    }

    fn source(&self) -> Result<&dyn KeySource, Error> {
        let source = self.inner.source.as_deref();
        source.ok_or_else(|| Error::input("the keys of this keyring are not stored"))
    }

    /// Loads the keys again when they are too old.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let Some(source) = &self.inner.source else {
            return Ok(());
        };
        let now = source.now();
        self.load(|state| state.is_old(now)).await
    }

    /// Returns true if the next write loads the keys again.
    pub(crate) fn is_old(&self) -> bool {
        let source = self.inner.source.as_ref();
        source.is_some_and(|source| self.inner.with_state(|state| state.is_old(source.now())))
    }

    /// Loads keys that other clients have made since.
    pub(crate) async fn fetch(&self, ids: &[Guid]) -> Result<(), Error> {
        let Some(source) = &self.inner.source else {
            return Ok(());
        };
        let now = source.now();
        let is_missing = |state: &LoadedKeys| ids.iter().any(|id| state.keys.find(*id).is_none());
        self.load(|state| {
            let at = state.fetched_at;
            is_missing(state) && at.is_none_or(|at| now.abs_diff(at) >= FETCH_PAUSE)
        })
        .await?;
        // Clients have a key before it encrypts: those that are missing now were not just made.
        if self.inner.with_state(is_missing) {
            let state = self.inner.state.write();
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            state.fetched_at = Some(now);
        }
        Ok(())
    }

    /// Loads the keys if that is needed. Operations that need it at the same time share the
    /// requests, and the error.
    async fn load(&self, is_needed: impl Fn(&LoadedKeys) -> bool) -> Result<(), Error> {
        if !self.inner.with_state(is_needed) {
            return Ok(());
        }
        let load = self.inner.loading.join(|| {
            let inner = Arc::clone(&self.inner);
            async move { inner.load().await.map_err(Arc::new) }
        });
        load.await.map_err(|error| error.for_another_caller())
    }

    /// The keys that were loaded last.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        self.inner.with_state(|state| Arc::clone(&state.keys))
    }
}

impl Inner {
    async fn load(&self) -> Result<(), Error> {
        let Some(source) = &self.source else {
            return Ok(());
        };
        let now = source.now();
        let (known, loaded_at) = self.with_state(|state| {
            // What is too old is unwrapped again, so that a key that the provider has withdrawn is
            // no longer used.
            if state.is_old(now) {
                (Vec::new(), now)
            } else {
                (state.keys.all.clone(), state.loaded_at)
            }
        });
        let mut keys = source.load(&known).await?;
        keys.all.extend_from_slice(&self.others);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = LoadedKeys {
            keys: Arc::new(keys),
            loaded_at,
            fetched_at: state.fetched_at,
        };
        Ok(())
    }

    fn with_state<T>(&self, read: impl FnOnce(&LoadedKeys) -> T) -> T {
        let state = self.state.read();
        read(&state.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Without the secrets.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys();
        f.debug_struct("Keyring")
            .field("current", &keys.current)
            .field("keys", &keys.all)
            .finish()
    }
}

/// How long keys are used before they are loaded again.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// How long a new key waits before it encrypts. By then all clients have loaded it.
pub(crate) const NEW_KEY_WAITS: Duration = Duration::from_secs(5400);
const FETCH_PAUSE: Duration = Duration::from_secs(60);
