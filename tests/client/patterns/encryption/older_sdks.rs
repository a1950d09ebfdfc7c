//! Entities that Microsoft's older SDKs encrypted: read beside those of this crate, and only read.
//! The vectors were made by those SDKs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use harness::client;
use serde_json::Value as Json;
use tablesdk::encryption::{
    ContentKey, KeyProvider, Keyring, LocalKey, ProviderFuture, WrappedKey,
};
use tablesdk::{
    DynamicEntity, Error, ErrorCode, ErrorKind, RetryPolicy, TableClient, TableEntity, Value,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::january;

/// The entity of the first vector.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", partition_key = "{group}", row_key = "{id}")]
struct Note {
    group: String,
    id: String,
    #[table(encrypt)]
    secret1: String,
    #[table(encrypt(eq))]
    secret2: String,
    plain: String,
}

impl Note {
    fn new(id: &str) -> Self {
        Self {
            group: GROUP.to_owned(),
            id: id.to_owned(),
            secret1: "new".to_owned(),
            secret2: "newer".to_owned(),
            plain: "plain".to_owned(),
        }
    }
}

#[derive(Debug, PartialEq, TableEntity)]
#[table(projection)]
struct Secret {
    #[table(rename = "Secret1", encrypt)]
    secret: String,
}

const GROUP: &str = "Größe'1";
const ID: &str = "キー 2";
const METADATA: &str = "_ClientEncryptionMetadata1";
const NAMES: &str = "_ClientEncryptionMetadata2";

fn vectors() -> Vec<Json> {
    let file = include_str!("../../../fixtures/old-encryption-vectors.json");
    let file: Json = serde_json::from_str(file).unwrap();
    file["vectors"].as_array().unwrap().clone()
}

/// The entity of a vector, as it is stored.
fn stored(vector: &Json) -> DynamicEntity {
    let stored = vector["stored"].as_object().unwrap();
    let text = |name: &str| stored[name].as_str().unwrap();
    let mut entity = DynamicEntity::new(text("PartitionKey"), text("RowKey"));
    for (name, value) in stored {
        if name.contains('@') || ["PartitionKey", "RowKey"].contains(&name.as_str()) {
            continue;
        }
        let annotation = stored.get(&format!("{name}@odata.type"));
        let value = match (annotation.and_then(Json::as_str), value) {
            (Some("Edm.Binary"), Json::String(text)) => {
                Value::Binary(BASE64_STANDARD.decode(text).unwrap())
            }
            (Some("Edm.DateTime"), Json::String(text)) => Value::DateTime(text.parse().unwrap()),
            (Some("Edm.Guid"), Json::String(text)) => Value::Guid(text.parse().unwrap()),
            (Some("Edm.Int64"), Json::String(text)) => Value::Int64(text.parse().unwrap()),
            (None, Json::String(text)) => Value::String(text.clone()),
            (None, Json::Bool(value)) => Value::Boolean(*value),
            (None, Json::Number(number)) => match number.as_i64() {
                Some(number) => Value::Int32(i32::try_from(number).unwrap()),
                None => Value::Double(number.as_f64().unwrap()),
            },
            other => panic!("{name}: {other:?}"),
        };
        entity = entity.with(name, value);
    }
    entity
}

fn hex(text: &Json) -> [u8; 32] {
    let text = text.as_str().unwrap();
    std::array::from_fn(|index| u8::from_str_radix(&text[2 * index..][..2], 16).unwrap())
}

/// The key of a vector, or the content key in its place where only a vault has the key.
#[derive(Clone)]
struct Provider {
    key: LocalKey,
    content_key: Option<[u8; 32]>,
    is_out: Arc<AtomicBool>,
    unwrapped: Arc<AtomicUsize>,
}

impl Provider {
    fn of(vector: &Json) -> Self {
        let key_id = vector["key_id"].as_str().unwrap();
        let is_rsa = vector["algorithm"] != "A256KW";
        let key = if is_rsa {
            [0; 32]
        } else {
            hex(&vector["key_encryption_key_hex"])
        };
        Self {
            key: LocalKey::new(key_id, key),
            content_key: is_rsa.then(|| hex(&vector["content_key_hex"])),
            is_out: Arc::default(),
            unwrapped: Arc::default(),
        }
    }
}

impl KeyProvider for Provider {
    fn key_id(&self) -> String {
        self.key.key_id()
    }

    fn wrap<'a>(&'a self, _: &'a ContentKey) -> ProviderFuture<'a, Vec<u8>> {
        panic!("nothing is written in the old form")
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> ProviderFuture<'a, ContentKey> {
        self.unwrapped.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if self.is_out.load(Ordering::Relaxed) {
                return Err("the vault does not respond".into());
            }
            match self.content_key {
                Some(key)
                    if wrapped.algorithm() == Some("RSA-OAEP")
                        && wrapped.as_bytes().len() == 256 =>
                {
                    Ok(ContentKey::new(key))
                }
                Some(_) => Err(wrapped.refusal()),
                None => self.key.unwrap(wrapped).await,
            }
        })
    }
}

fn keyring(vector: &Json) -> Keyring {
    Keyring::new(january()).also_older_sdks(Provider::of(vector))
}

/// A keyring that also reads a vector's entity without a type.
fn resolving(vector: &Json) -> Keyring {
    let names: Vec<String> = serde_json::from_value(vector["names"].clone()).unwrap();
    keyring(vector).resolver(move |_, _, name| names.iter().any(|known| known == name))
}

async fn start() -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client(&server).table("Notes");
    table.create_table().await.unwrap();
    (server, table)
}

/// A table with the entity of the first vector and one of this crate, with keys and without.
async fn old_and_new() -> (TableServer, TableClient, TableClient) {
    let (server, raw) = start().await;
    let table = raw.with_encryption(keyring(&vectors()[0]));
    raw.insert(&stored(&vectors()[0])).await.unwrap();
    table.insert(&Note::new("1")).await.unwrap();
    (server, table, raw)
}

fn old_note() -> Note {
    let plain = &vectors()[0]["plain"];
    let text = |name: &str| plain[name].as_str().unwrap().to_owned();
    Note {
        secret1: text("Secret1"),
        secret2: text("Secret2"),
        ..Note::new(ID)
    }
}

async fn read(table: &TableClient, entity: &DynamicEntity) -> Result<DynamicEntity, Error> {
    let key = (entity.partition_key(), entity.row_key());
    let found = table.get::<DynamicEntity>(key).await?;
    Ok(found.expect("it exists").into_inner())
}

#[tokio::test]
async fn the_vectors_of_older_sdks_are_read() {
    for vector in &vectors()[..9] {
        let (_server, raw) = start().await;
        let table = raw.with_encryption(resolving(vector));
        let stored = stored(vector);
        raw.insert(&stored).await.unwrap();
        let found = read(&table, &stored).await.unwrap();
        for (name, plain) in vector["plain"].as_object().unwrap() {
            let expected = Value::from(plain.as_str().unwrap());
            assert_eq!(found.properties().get(name), Some(&expected), "{name}");
        }
        for (name, value) in stored.properties().iter() {
            let is_shown = ![METADATA, NAMES].contains(&name);
            let is_plain = !vector["plain"].as_object().unwrap().contains_key(name);
            let expected = Some(value).filter(|_| is_shown);
            if is_plain {
                assert_eq!(found.properties().get(name), expected, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_change_of_any_part_is_one_error() {
    let vector = &vectors()[0];
    let (_server, raw) = start().await;
    let table = raw.with_encryption(resolving(vector));
    let json = |path: &str, value: Option<&str>| {
        let mut entity = stored(vector);
        let metadata: String = entity.properties().read(METADATA).unwrap();
        let mut metadata: Json = serde_json::from_str(&metadata).unwrap();
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent = metadata
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap();
        match value {
            Some(value) => parent.insert(name.to_owned(), value.into()),
            None => parent.remove(name),
        };
        entity.properties_mut().set(METADATA, metadata.to_string());
        entity
    };
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut entity = stored(vector);
        let mut bytes: Vec<u8> = entity.properties().read(name).unwrap();
        change(&mut bytes);
        entity.properties_mut().set(name, bytes);
        entity
    };
    let last = |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1;
    let mut changed = Vec::new();
    for (path, other) in [
        ("/WrappedContentKey/KeyId", "key-2"),
        ("/WrappedContentKey/Algorithm", "RSA"),
        (
            "/WrappedContentKey/EncryptedKey",
            "IPgFk7mUUNgLvrFIufJOzzeqonZruEjyrQ7mrcBFpFTI8SQItFC+1Q==",
        ),
        ("/EncryptionAgent/Protocol", "2.0"),
        ("/EncryptionAgent/EncryptionAlgorithm", "AES_GCM_256"),
        ("/ContentEncryptionIV", "p7PwAf9kI36InI/DSnF6fQ=="),
    ] {
        changed.extend([
            json(path, Some(other)),
            json(path, None),
            json(path, Some("")),
        ]);
    }
    changed.push(json("/KeyWrappingMetadata", None));
    changed.push(json(
        "/KeyWrappingMetadata/EncryptionLibrary",
        Some("Java 4.0"),
    ));
    for name in ["Secret1", "Secret2", NAMES] {
        changed.extend([
            with(name, &last),
            with(name, &Vec::clear),
            with(name, &|bytes| bytes.truncate(bytes.len() - 1)),
            with(name, &|bytes| bytes.truncate(bytes.len() - 16)),
            with(name, &|bytes| bytes.insert(0, 0)),
        ]);
    }
    changed.push(stored(vector).with(METADATA, 7));
    changed.push(stored(vector).with(METADATA, "x"));
    changed.push(stored(vector).with(NAMES, "[]"));
    let mut without = stored(vector);
    without.properties_mut().remove(NAMES);
    changed.push(without);
    let moved =
        DynamicEntity::new(GROUP, "other").with_properties(stored(vector).properties().clone());
    changed.push(moved);
    let mut errors = Vec::new();
    for entity in &changed {
        raw.upsert_replace(entity).await.unwrap();
        errors.push((format!("{entity:?}"), read(&table, entity).await));
    }
    // Two values, exchanged.
    let exchanged = &vectors()[9];
    let entity = stored(exchanged);
    raw.insert(&entity).await.unwrap();
    let other = raw.with_encryption(resolving(exchanged));
    errors.push(("exchanged".to_owned(), read(&other, &entity).await));
    // Another key of the same name.
    let other = LocalKey::new("key-1", [9; 32]);
    let other = raw.with_encryption(resolving(vector).also_older_sdks(other));
    raw.upsert_replace(&stored(vector)).await.unwrap();
    errors.push(("other key".to_owned(), read(&other, &stored(vector)).await));
    for (about, result) in errors {
        let Err(error) = result else {
            panic!("it is read: {about}");
        };
        assert_eq!(error.kind(), ErrorKind::Data, "{about}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, ONE_ERROR, "{about}");
    }
}

const ONE_ERROR: &str = "property \"_ClientEncryptionMetadata1\": the entity cannot be read as an older SDK encrypted it: it was changed, or the keyring does not have its key";

#[tokio::test]
async fn old_and_new_entities_are_read_beside_each_other() {
    let (_server, table, _) = old_and_new().await;
    let (old, new) = (old_note(), Note::new("1"));
    let query = || table.query::<Note>().partition(GROUP);
    let both = [new.clone(), old.clone()];
    assert_eq!(query().values().collect().await.unwrap(), both);
    let streamed: Vec<_> = query().values().stream().try_collect().await.unwrap();
    assert_eq!(streamed, both);
    for expected in &both {
        let found = table.get(Note::key(GROUP, &expected.id)).await.unwrap();
        assert_eq!(found.unwrap().into_inner(), *expected);
        let columns = query()
            .rows(Note::rows().id(&expected.id))
            .select(|n| n.secret1);
        assert_eq!(columns.one().await.unwrap(), Some(expected.secret1.clone()));
        let read = table.transaction(GROUP, async |tx| {
            Ok(tx
                .get(Note::key(GROUP, &expected.id))
                .await?
                .map(|note| note.secret2.clone()))
        });
        assert_eq!(read.await.unwrap(), Some(expected.secret2.clone()));
    }
    let merged = table.query::<Note>().partitions([GROUP, "other"]).merged();
    assert_eq!(merged.values().collect().await.unwrap(), both);
    let projected = table.query::<Secret>().values().collect().await.unwrap();
    let secrets: Vec<_> = projected.into_iter().map(|it| it.secret).collect();
    assert_eq!(secrets, [new.secret1.clone(), old.secret1.clone()]);
    let many = table.get_many(both.each_ref().map(|note| Note::key(GROUP, &note.id)));
    let many = many.await.unwrap();
    assert_eq!(many.len(), 2);
    assert!(many.iter().all(Option::is_some));
    let resolved = query().resolve(|entity| Ok(entity.properties().read::<String>("Secret2")?));
    assert_eq!(
        resolved.collect().await.unwrap(),
        [new.secret2, old.secret2.clone()]
    );
    // The second property of the old one does not exist.
    let found = query()
        .filter(|n| n.secret2.eq(&old.secret2))
        .collect()
        .await
        .unwrap();
    assert_eq!(found.len(), 0);
    // A projection without encrypted properties needs no keys.
    assert_eq!(
        query().select(|n| n.plain).collect().await.unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_table_is_migrated_by_a_stream_and_a_bulk_replace() {
    let (_server, table, raw) = old_and_new().await;
    let notes = table.query::<Note>().stream();
    let report = table.bulk().replace(notes).await.unwrap();
    assert!(report.is_success(), "{report:?}");
    let entity = raw
        .get::<DynamicEntity>((GROUP, ID))
        .await
        .unwrap()
        .unwrap();
    let names: Vec<_> = entity
        .properties()
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert!(
        !names.iter().any(|name| name == METADATA || name == NAMES),
        "{names:?}"
    );
    // The key of the older SDK is not needed any more, and the values are found.
    let table = raw.with_encryption(Keyring::new(january()));
    let found = table
        .query::<Note>()
        .filter(|n| n.secret2.eq(old_note().secret2));
    assert_eq!(found.values().collect().await.unwrap(), [old_note()]);
}

#[tokio::test]
async fn a_merge_into_an_old_entity_is_refused() {
    let (_server, table, raw) = old_and_new().await;
    let key = || Note::key(GROUP, ID);
    let before = raw
        .get::<DynamicEntity>((GROUP, ID))
        .await
        .unwrap()
        .unwrap();
    let note = || async { table.get(key()).await.unwrap().unwrap() };
    let mut tracked = table.get(key()).tracked().await.unwrap().unwrap();
    "other".clone_into(&mut tracked.plain);
    let refused = [
        table.patch(key()).set(|n| n.secret1, "x").await.map(drop),
        table.patch(key()).set(|n| n.plain, "x").await.map(drop),
        table.merge(&mut note().await).await.map(drop),
        table.merge(&mut tracked).changed_only().await.map(drop),
        table.upsert_merge(&old_note()).await.map(drop),
        table
            .merge_if(&old_note(), tablesdk::ETag::ANY)
            .await
            .map(drop),
        table
            .batch(GROUP)
            .patch(key(), |n| n.set(|n| n.secret1, "x"))
            .await
            .map(drop),
        table
            .transaction(GROUP, async |tx| {
                let mut note = tx.get(key()).await?.ok_or("no note")?;
                "x".clone_into(&mut note.plain);
                tx.merge(note);
                Ok(())
            })
            .await,
    ];
    let bulk = table
        .bulk()
        .upsert_merge(futures::stream::iter([old_note()]));
    let report = bulk.await.unwrap();
    let [failure] = report.failures() else {
        panic!("{report:?}");
    };
    assert!(
        failure.error().to_string().contains("older SDK"),
        "{failure:?}"
    );
    for (index, refused) in refused.into_iter().enumerate() {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{index}: {error}");
        assert!(
            error.to_string().contains("older SDK")
                || std::error::Error::source(&error)
                    .unwrap()
                    .to_string()
                    .contains("older SDK"),
            "{index}: {error:?}"
        );
    }
    // Without a type, too.
    let dynamic = raw.with_encryption(resolving(&vectors()[0]));
    let part = DynamicEntity::new(GROUP, ID).with("Other", 1);
    let error = dynamic.upsert_merge(&part).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let after = raw
        .get::<DynamicEntity>((GROUP, ID))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(after.etag(), before.etag());
    // An entity of this crate, and a missing one, are merged.
    table
        .patch(Note::key(GROUP, "1"))
        .set(|n| n.secret1, "x")
        .await
        .unwrap();
    table.upsert_merge(&Note::new("2")).await.unwrap();
    // A replace is not refused.
    let modified = table.modify(key(), |note| {
        "other".clone_into(&mut note.plain);
        Ok(())
    });
    let modified = modified.await.unwrap().into_inner();
    assert_eq!(
        modified,
        Note {
            plain: "other".to_owned(),
            ..old_note()
        }
    );
    table.patch(key()).set(|n| n.secret1, "x").await.unwrap();
    assert_eq!(note().await.secret1, "x");
}

#[tokio::test]
async fn a_merge_costs_one_request_more_and_a_replace_none() {
    let (server, table, raw) = old_and_new().await;
    let journal = server.journal();
    table
        .patch(Note::key(GROUP, "1"))
        .set(|n| n.plain, "x")
        .await
        .unwrap();
    assert_eq!(journal.requests().len(), 2);
    let other = raw.with_encryption(Keyring::new(january()));
    other
        .patch(Note::key(GROUP, "1"))
        .set(|n| n.plain, "x")
        .await
        .unwrap();
    assert_eq!(journal.requests().len(), 3);
    table.upsert_replace(&old_note()).await.unwrap();
    assert_eq!(journal.requests().len(), 4);
}

/// The read before a merge fails, which does not reject the entity.
#[tokio::test]
async fn a_run_is_resumed_at_an_entity_that_could_not_be_read() {
    let (server, table, _) = old_and_new().await;
    let busy = server.faults().on(Op::QueryEntity);
    let busy = busy.inject(Fault::error(ErrorCode::ServerBusy));
    let run = || {
        let merge = table.bulk().upsert_merge(stream::iter([Note::new("1")]));
        merge.retry(RetryPolicy::none())
    };
    let report = run().await.unwrap();
    assert_eq!(report.failures().len(), 1);
    assert_eq!(report.progress().resume_at, 0);
    busy.remove();
    assert_eq!(run().await.unwrap().progress().resume_at, 1);
}

#[tokio::test]
async fn an_insert_over_an_old_entity_is_a_conflict() {
    let (_server, table, _) = old_and_new().await;
    let error = table.insert(&old_note()).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
}

#[tokio::test]
async fn a_value_that_was_written_anew_is_read_by_its_own_form() {
    let (_server, table, raw) = old_and_new().await;
    // A client whose keyring does not read older SDKs merges: nothing tells it.
    let other = raw.with_encryption(Keyring::new(january()));
    other
        .patch(Note::key(GROUP, ID))
        .set(|n| n.secret1, "x")
        .await
        .unwrap();
    let found = table
        .get(Note::key(GROUP, ID))
        .await
        .unwrap()
        .unwrap()
        .into_inner();
    assert_eq!(
        found,
        Note {
            secret1: "x".to_owned(),
            ..old_note()
        }
    );
}

#[tokio::test]
async fn a_keyring_without_the_old_key_says_what_it_needs() {
    let (_server, _, raw) = old_and_new().await;
    let table = raw.with_encryption(Keyring::new(january()));
    let error = table.get(Note::key(GROUP, ID)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("also_older_sdks"), "{source}");
}

#[derive(Debug, TableEntity)]
#[table(rename_all = "PascalCase", partition_key = "{group}", row_key = "{id}")]
struct Half {
    group: String,
    id: String,
    #[table(encrypt)]
    secret1: String,
}

#[tokio::test]
async fn a_type_that_would_lose_an_encrypted_property_does_not_read_it() {
    let (_server, table, _) = old_and_new().await;
    let error = table.get(Half::key(GROUP, ID)).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        source.starts_with("property \"Secret2\": an older SDK encrypted it"),
        "{source}"
    );
}

#[tokio::test]
async fn an_outage_of_the_provider_is_told_from_a_changed_entity() {
    let vector = &vectors()[1];
    let (_server, raw) = start().await;
    let provider = Provider::of(vector);
    let keyring = resolving(vector).also_older_sdks(provider.clone());
    let table = raw.with_encryption(keyring);
    let entity = stored(vector);
    raw.insert(&entity).await.unwrap();
    provider.is_out.store(true, Ordering::Relaxed);
    let error = read(&table, &entity).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credential);
    provider.is_out.store(false, Ordering::Relaxed);
    read(&table, &entity).await.unwrap();
    // One call of the provider an entity, and some at a time.
    let before = provider.unwrapped.load(Ordering::Relaxed);
    let query = table.query::<DynamicEntity>();
    let page = query.stream().next().await.unwrap().unwrap();
    assert_eq!(
        page.properties().get("Secret1"),
        Some(&Value::from("wrapped by RSA"))
    );
    assert_eq!(provider.unwrapped.load(Ordering::Relaxed), before + 1);
}
