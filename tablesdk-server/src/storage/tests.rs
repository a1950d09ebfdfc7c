//! The guarantees of every storage, on which the engine relies, and the additional guarantees of a
//! durable storage.

use super::*;

/// A storage of a test that differs from another one in a few methods.
pub(crate) trait StorageDouble: Send + Sync {
    /// The storage that has all other methods.
    fn inner(&self) -> &dyn Storage;

    fn snapshot(&self) -> Box<dyn Snapshot> {
        self.inner().snapshot()
    }

    fn uncommitted(&self) -> Box<dyn Snapshot> {
        self.inner().uncommitted()
    }

    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
        self.inner().commit(batch)
    }

    fn is_persistent(&self) -> bool {
        self.inner().is_persistent()
    }
}

impl<T: StorageDouble> Storage for T {
    fn snapshot(&self) -> Box<dyn Snapshot> {
        StorageDouble::snapshot(self)
    }

    fn uncommitted(&self) -> Box<dyn Snapshot> {
        StorageDouble::uncommitted(self)
    }

    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
        StorageDouble::commit(self, batch)
    }

    fn wait_durable(&self) -> Commit {
        self.inner().wait_durable()
    }

    fn has_backpressure(&self) -> bool {
        self.inner().has_backpressure()
    }

    fn is_persistent(&self) -> bool {
        StorageDouble::is_persistent(self)
    }

    fn closed(&self) -> Closed {
        self.inner().closed()
    }
}

fn batch(keys: &[&'static str]) -> WriteBatch {
    let mut batch = WriteBatch::default();
    for key in keys {
        batch.put(*key, format!("record of {key}"));
    }
    batch
}

async fn write(storage: &dyn Storage, batch: WriteBatch) {
    storage.commit(batch).unwrap().await.unwrap();
}

fn keys(snapshot: &dyn Snapshot, start: &str, end: &str) -> Vec<String> {
    let records = snapshot.range(start.as_bytes(), end.as_bytes());
    records
        .map(|record| String::from_utf8(record.unwrap().0.to_vec()).unwrap())
        .collect()
}

/// Runs a test on every kind of storage.
async fn on_every_storage(test: impl AsyncFn(&dyn Storage)) {
    test(&MemoryStorage::default()).await;
    #[cfg(feature = "durable")]
    for durability in [Durability::Relaxed, Durability::Sync] {
        let directory = tempfile::tempdir().unwrap();
        test(&DurableStorage::open(directory.path(), durability).unwrap()).await;
    }
}

#[tokio::test]
async fn ranges_are_ordered_and_half_open() {
    on_every_storage(async |storage| {
        write(storage, batch(&["c", "a", "b", "bb", "d"])).await;
        for snapshot in [storage.snapshot(), storage.uncommitted()] {
            assert_eq!(keys(&*snapshot, "a", "c"), ["a", "b", "bb"]);
            assert_eq!(keys(&*snapshot, "aa", "z"), ["b", "bb", "c", "d"]);
            for (start, end) in [("b", "b"), ("c", "a"), ("e", "z")] {
                assert!(keys(&*snapshot, start, end).is_empty(), "{start} to {end}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn visitors_get_a_range_until_they_break() {
    on_every_storage(async |storage| {
        write(storage, batch(&["c", "a", "b", "bb", "d"])).await;
        for snapshot in [storage.snapshot(), storage.uncommitted()] {
            for (last, expected) in [("b", &["a", "b"][..]), ("z", &["a", "b", "bb", "c"])] {
                let mut visited = Vec::new();
                let result = snapshot.visit(b"a", b"d", &mut |key, record| {
                    let key = str::from_utf8(key).unwrap();
                    assert_eq!(record, format!("record of {key}").as_bytes());
                    visited.push(key.to_owned());
                    Ok(if key == last {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    })
                });
                assert_eq!(result, Ok(()));
                assert_eq!(visited, expected);
            }
            let failed = StorageError::corrupt("record");
            let result = snapshot.visit(b"a", b"d", &mut |_, _| Err(failed.clone()));
            assert_eq!(result, Err(failed));
        }
    })
    .await;
}

#[tokio::test]
async fn snapshots_do_not_see_later_writes() {
    on_every_storage(async |storage| {
        write(storage, batch(&["a", "b"])).await;
        let before = storage.snapshot();
        let mut batch = WriteBatch::default();
        batch.put("c", "new");
        batch.put("a", "changed");
        batch.delete("b");
        batch.delete("never there");
        write(storage, batch).await;

        assert_eq!(keys(&*before, "a", "z"), ["a", "b"]);
        let record = before.get(b"a");
        assert_eq!(record, Ok(Some(Slice::Borrowed(b"record of a"))));
        for after in [storage.snapshot(), storage.uncommitted()] {
            assert_eq!(keys(&*after, "a", "z"), ["a", "c"]);
            assert_eq!(after.get(b"a"), Ok(Some(Slice::Borrowed(b"changed"))));
            assert_eq!(after.get(b"b"), Ok(None));
        }
    })
    .await;
}

#[tokio::test]
async fn batches_apply_writes_in_order() {
    on_every_storage(async |storage| {
        let mut batch = WriteBatch::default();
        batch.put("a", "first");
        batch.delete("a");
        batch.put("a", "last");
        write(storage, batch).await;
        let snapshot = storage.snapshot();
        assert_eq!(snapshot.get(b"a"), Ok(Some(Slice::Borrowed(b"last"))));
    })
    .await;
}

#[tokio::test]
async fn uncommitted_has_writes_that_are_not_durable() {
    on_every_storage(async |storage| {
        let mut commits = Vec::new();
        for key in ["a", "b", "c", "d"] {
            commits.push(storage.commit(batch(&[key])).unwrap());
            assert!(storage.uncommitted().get(key.as_bytes()).unwrap().is_some());
        }
        storage.wait_durable().await.unwrap();
        assert_eq!(keys(&*storage.snapshot(), "a", "z"), ["a", "b", "c", "d"]);
        for commit in commits {
            commit.await.unwrap();
        }
        storage.wait_durable().await.unwrap();
    })
    .await;
}

#[cfg(feature = "durable")]
mod directories {
    use std::fs;
    use std::io::ErrorKind;
    use std::path::Path;

    use super::*;

    fn open(path: &Path) -> io::Result<DurableStorage> {
        DurableStorage::open(path, Durability::Sync)
    }

    fn refusal(path: &Path) -> (ErrorKind, String) {
        let error = open(path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&path.display().to_string()), "{text}");
        (error.kind(), text)
    }

    #[tokio::test]
    async fn reopened_directories_have_all_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/on/the/way");
        for round in b'a'..=b'c' {
            let storage = open(&path).unwrap();
            for old in b'a'..round {
                let snapshot = storage.snapshot();
                let record = snapshot.get(&[old]).unwrap();
                assert_eq!(record, Some(Slice::Borrowed(b"record")), "{round} {old}");
            }
            let mut batch = WriteBatch::default();
            batch.put(vec![round], "record");
            // A write is stored when the storage is closed, even if its caller does not wait.
            drop(storage.commit(batch).unwrap());
        }
    }

    #[tokio::test]
    async fn a_directory_is_open_once() {
        let directory = tempfile::tempdir().unwrap();
        let storage = open(directory.path()).unwrap();
        let (kind, text) = refusal(directory.path());
        assert_eq!(kind, ErrorKind::ResourceBusy);
        let holder = format!("process {}", std::process::id());
        assert!(text.contains(&holder), "{text}");
        drop(storage);
        open(directory.path()).unwrap();
    }

    #[test]
    fn other_directories_are_left_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let note = directory.path().join("note");
        fs::write(&note, "mine").unwrap();
        assert_eq!(refusal(directory.path()).0, ErrorKind::InvalidInput);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(refusal(&note).0, ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_directory_of_another_format_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        drop(open(directory.path()).unwrap());
        let format = directory.path().join("FORMAT");
        for (text, message) in [
            ("tablesdk-server data, format 1\n", "has format \"1\""),
            ("tablesdk-server data, format 2\n", "has format \"2\""),
            ("tablesdk-server data, format 3\n", "has format \"3\""),
            ("tablesdk-server data, format 5\n", "has format \"5\""),
            ("something", "says something else"),
            ("", "says something else"),
        ] {
            fs::write(&format, text).unwrap();
            let (kind, refusal) = refusal(directory.path());
            assert_eq!(kind, ErrorKind::InvalidData);
            assert!(refusal.contains(message), "{refusal}");
        }
    }

    #[test]
    fn incomplete_directories_are_created_again() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("FORMAT.new"), "tablesdk-ser").unwrap();
        open(directory.path()).unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn writes_to_removed_directories_are_refused() {
        let remove = |path: &Path| fs::remove_dir_all(path).unwrap();
        let move_away = |path: &Path| fs::rename(path, path.with_extension("moved")).unwrap();
        let replace = |path: &Path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            drop(open(path).unwrap());
        };
        let empty = |path: &Path| fs::remove_dir_all(path.join("records")).unwrap();
        let changes: [&dyn Fn(&Path); 4] = [&remove, &move_away, &replace, &empty];
        for (index, change) in changes.into_iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("tables");
            let storage = open(&path).unwrap();
            write(&storage, batch(&["a"])).await;
            change(&path);
            let refused = storage.commit(batch(&["b"])).unwrap().await.unwrap_err();
            let text = refused.to_string();
            assert!(
                text.contains(&path.display().to_string()),
                "{index}: {text}"
            );
            assert!(
                text.contains("removed, moved or replaced"),
                "{index}: {text}"
            );
            assert_eq!(storage.is_writable(), Err(refused.clone()));
            assert_eq!(storage.commit(batch(&["c"])).unwrap_err(), refused);
            assert_eq!(keys(&*storage.snapshot(), "a", "z"), ["a"], "{index}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn removed_directories_are_noticed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tables");
        let storage = open(&path).unwrap();
        assert_eq!(storage.is_writable(), Ok(()));
        fs::remove_dir_all(&path).unwrap();
        storage.is_writable().unwrap_err();
    }
}
