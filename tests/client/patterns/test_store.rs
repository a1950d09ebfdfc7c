//! An object store for tests, in memory: it has a clock of its own and latency, and fails where a
//! test says.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::time::{Instant, sleep};

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StoreFault {
    NotSent,
    ResponseLost,
}

#[derive(Clone, Debug)]
pub(crate) struct TestStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    objects: InMemory,
    state: Mutex<State>,
    start: Instant,
    /// How much faster the clock of the store runs.
    pace: u32,
}

#[derive(Clone, Debug)]
struct State {
    clock: DateTime<Utc>,
    dates: HashMap<Path, DateTime<Utc>>,
    requests: usize,
    fault: Option<(usize, StoreFault)>,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        Self::with_pace(1)
    }

    /// The clock of the store is years from that of the client.
    pub(crate) fn with_pace(pace: u32) -> Self {
        Self(Arc::new(Shared {
            objects: InMemory::new(),
            start: Instant::now(),
            pace,
            state: Mutex::new(State {
                clock: "2034-03-15T10:20:30Z".parse().unwrap(),
                dates: HashMap::new(),
                requests: 0,
                fault: None,
            }),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.state().clock += time;
    }

    /// Fails a request, counted from here.
    pub(crate) fn fail(&self, nth: usize, fault: StoreFault) {
        let mut state = self.state();
        (state.requests, state.fault) = (0, Some((nth, fault)));
    }

    /// Returns true if the request that was to fail was sent.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().fault.is_none()
    }

    pub(crate) fn heal(&self) {
        self.state().fault = None;
    }

    pub(crate) fn requests(&self) -> usize {
        self.state().requests
    }

    /// The paths of all objects.
    pub(crate) async fn paths(&self) -> Vec<String> {
        let objects = self.0.objects.list(None);
        let objects = objects.map_ok(|object| object.location.to_string());
        let mut paths: Vec<_> = objects.try_collect().await.unwrap();
        paths.sort();
        paths
    }

    /// Writes an object as another program does.
    pub(crate) async fn write(&self, path: &str, bytes: impl Into<PutPayload>) {
        let path = Path::from(path);
        let options = PutOptions::default();
        self.put_opts(&path, bytes.into(), options).await.unwrap();
    }

    fn now(&self) -> DateTime<Utc> {
        self.state().clock + self.0.start.elapsed() * self.0.pace
    }

    fn dated(&self, object: ObjectMeta) -> ObjectMeta {
        let last_modified = self.state().dates[&object.location];
        ObjectMeta {
            last_modified,
            ..object
        }
    }

    /// A store with the same objects.
    pub(crate) fn fork(&self) -> Self {
        let state = self.state().clone();
        Self(Arc::new(Shared {
            objects: self.0.objects.fork(),
            start: self.0.start,
            pace: self.0.pace,
            state: Mutex::new(state),
        }))
    }

    async fn request<T>(&self, run: impl Future<Output = Result<T>>) -> Result<T> {
        let fault = {
            let State {
                requests, fault, ..
            } = &mut *self.state();
            *requests += 1;
            fault.take_if(|(nth, _)| nth == requests)
        };
        let broken = || Error::Generic {
            store: "test",
            source: "the connection was reset".into(),
        };
        match fault {
            Some((_, StoreFault::NotSent)) => Err(broken()),
            Some((_, StoreFault::ResponseLost)) => {
                run.await?;
                Err(broken())
            }
            None if self.0.pace > 1 => {
                sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                let result = run.await;
                sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                result
            }
            None => run.await,
        }
    }
}

impl fmt::Display for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestStore")
    }
}

fn not_implemented<T>(operation: &str) -> Result<T> {
    Err(Error::NotImplemented {
        operation: operation.to_owned(),
        implementer: "TestStore".to_owned(),
    })
}

#[async_trait]
impl ObjectStore for TestStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.request(async {
            let now = self.now();
            self.state().dates.insert(location.clone(), now);
            self.0.objects.put_opts(location, payload, options).await
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        not_implemented("put_multipart_opts")
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.request(async {
            let found = self.0.objects.get_opts(location, options).await?;
            let meta = self.dated(found.meta.clone());
            Ok(GetResult { meta, ..found })
        })
        .await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let deleted = locations.and_then(move |location| {
            let this = this.clone();
            async move {
                let location = stream::iter([Ok(location)]).boxed();
                let delete = this.0.objects.delete_stream(location);
                let mut deleted = this.request(delete.try_collect::<Vec<_>>()).await?;
                Ok(deleted.remove(0))
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, prefix) = (self.clone(), prefix.cloned());
        let objects = stream::once(async move {
            let objects = this.0.objects.list(prefix.as_ref());
            let objects = this.request(objects.try_collect::<Vec<_>>()).await?;
            let dated = objects.into_iter().map(|object| Ok(this.dated(object)));
            Ok::<_, Error>(stream::iter(dated.collect::<Vec<_>>()))
        });
        objects.try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        not_implemented("list_with_delimiter")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        not_implemented("copy_opts")
    }
}
