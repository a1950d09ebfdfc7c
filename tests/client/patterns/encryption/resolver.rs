//! Entities without a type, whose encrypted properties a resolver names.

use std::error::Error as _;
use std::time::Duration;

use futures::TryStreamExt as _;
use harness::client;
use tablesdk::counter::Counter;
use tablesdk::encryption::Keyring;
use tablesdk::lease::Lease;
use tablesdk::outbox::Step;
use tablesdk::sequence::Sequence;
use tablesdk::{
    DynamicEntity, Error, ErrorKind, TableClient, TableEntity, TableServiceClient, Value,
};
use tablesdk_server::TableServer;

use super::{Patient, binary, get, january, keyring, stored};

fn resolving() -> Keyring {
    Keyring::new(january()).resolver(|_, _, name| ["Name", "Email", "Born"].contains(&name))
}

/// A table with a resolver, with keys alone, and without keys.
struct Tables {
    dynamic: TableClient,
    typed: TableClient,
    raw: TableClient,
    service: TableServiceClient,
    _server: TableServer,
}

async fn start() -> Tables {
    let server = TableServer::in_process();
    let service = client(&server);
    let raw = service.table("Patients");
    raw.create_table().await.unwrap();
    Tables {
        dynamic: raw.with_encryption(resolving()),
        typed: raw.with_encryption(keyring()),
        raw,
        service,
        _server: server,
    }
}

fn ada() -> DynamicEntity {
    DynamicEntity::new("Ward", "1")
        .with("Name", "Ada Lovelace")
        .with("Email", "ada@contoso.com")
        .with("Born", 1815)
        .with("Visits", 1_i64)
}

fn without_metadata(entity: &DynamicEntity) -> DynamicEntity {
    let (partition, row) = (entity.partition_key(), entity.row_key());
    DynamicEntity::new(partition, row).with_properties(entity.properties().clone())
}

#[tokio::test]
async fn a_struct_reads_what_a_resolver_encrypts_and_the_other_way_round() {
    let tables = start().await;
    tables.dynamic.insert(&ada()).await.unwrap();
    let raw = stored(&tables.raw, "1").await;
    assert_eq!(binary(&raw, "Name").len(), 46 + 1 + "Ada Lovelace".len());
    assert_eq!(raw.properties().get("Visits"), Some(&Value::Int64(1)));
    assert_eq!(get(&tables.typed, "1").await, Patient::ada());
    // Types are not affected.
    assert_eq!(get(&tables.dynamic, "1").await, Patient::ada());
    tables
        .dynamic
        .upsert_replace(&Patient::ada())
        .await
        .unwrap();
    let found = tables
        .dynamic
        .get::<DynamicEntity>(("Ward", "1"))
        .await
        .unwrap()
        .unwrap();
    let mut read = without_metadata(&found);
    read.properties_mut().remove("Email__eq");
    assert_eq!(read, ada());
}

#[tokio::test]
async fn each_read_without_a_type_decrypts() {
    let tables = start().await;
    tables.dynamic.insert(&ada()).await.unwrap();
    let query = || tables.dynamic.query::<DynamicEntity>();
    let all = query().partition("Ward").collect().await.unwrap();
    assert_eq!(without_metadata(&all[0]), ada());
    let streamed: Vec<_> = query().stream().try_collect().await.unwrap();
    assert_eq!(without_metadata(&streamed[0]), ada());
    let name = query()
        .select(|e| e.properties(["Name"]))
        .collect()
        .await
        .unwrap();
    assert_eq!(
        name[0].properties().get("Name"),
        Some(&Value::from("Ada Lovelace"))
    );
    let read = tables.dynamic.transaction("Ward", async |tx| {
        Ok(tx
            .get::<DynamicEntity>(("Ward", "1"))
            .await?
            .map(|it| without_metadata(&it)))
    });
    assert_eq!(read.await.unwrap(), Some(ada()));
    // Without a resolver, it is what is stored.
    let raw = tables
        .typed
        .get::<DynamicEntity>(("Ward", "1"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        binary(&raw, "Name"),
        binary(&stored(&tables.raw, "1").await, "Name")
    );
}

#[tokio::test]
async fn each_write_without_a_type_encrypts() {
    let tables = start().await;
    let key = ("Ward", "1");
    let (table, name) = (&tables.dynamic, "Ada King");
    let check = async |about: &str| {
        let raw = stored(&tables.raw, "1").await;
        assert_eq!(binary(&raw, "Name").len(), 46 + 1 + name.len(), "{about}");
        let found = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
        assert_eq!(
            found.properties().get("Name"),
            Some(&Value::from(name)),
            "{about}"
        );
        tables.dynamic.upsert_replace(&ada()).await.unwrap();
    };
    let changed = || ada().with("Name", name);
    table.upsert_replace(&changed()).await.unwrap();
    check("upsert_replace").await;
    table.upsert_merge(&changed()).await.unwrap();
    check("upsert_merge").await;
    let change = |entity: &mut DynamicEntity| {
        entity.properties_mut().set("Name", name);
        Ok(())
    };
    table.modify(key, change).await.unwrap();
    check("modify").await;
    let mut tracked = table
        .get::<DynamicEntity>(key)
        .tracked()
        .await
        .unwrap()
        .unwrap();
    tracked.properties_mut().set("Name", name);
    table.merge(&mut tracked).changed_only().await.unwrap();
    check("changed_only").await;
    table
        .batch("Ward")
        .upsert_replace(&changed())
        .exactly_once()
        .await
        .unwrap();
    check("batch").await;
    let report = table
        .bulk()
        .upsert_merge(futures::stream::iter([changed()]))
        .await
        .unwrap();
    assert!(report.is_success());
    check("bulk").await;
    let sent = table.transaction("Ward", async |tx| {
        let mut entity = tx.get::<DynamicEntity>(key).await?.ok_or("no Ada")?;
        entity.properties_mut().set("Name", name);
        tx.replace(entity);
        Ok(())
    });
    sent.await.unwrap();
    check("transaction").await;
}

#[tokio::test]
async fn the_second_property_of_a_struct_follows_the_value() {
    let tables = start().await;
    tables.typed.insert(&Patient::ada()).await.unwrap();
    let change = |entity: &mut DynamicEntity| {
        entity.properties_mut().set("Email", "ada@fabrikam.com");
        Ok(())
    };
    tables.dynamic.modify(("Ward", "1"), change).await.unwrap();
    let found = tables
        .typed
        .query::<Patient>()
        .filter(|p| p.email.eq("ada@fabrikam.com"));
    assert_eq!(found.values().collect().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_resolver_gets_both_keys_and_the_name() {
    let tables = start().await;
    let keyring = Keyring::new(january())
        .resolver(|partition, row, name| (partition, row, name) == ("Ward", "2", "Name"));
    let table = tables.raw.with_encryption(keyring);
    for id in ["1", "2"] {
        let entity = DynamicEntity::new("Ward", id).with("Name", "Ada");
        table.insert(&entity).await.unwrap();
    }
    assert_eq!(
        stored(&tables.raw, "1").await.properties().get("Name"),
        Some(&Value::from("Ada"))
    );
    assert_eq!(
        binary(&stored(&tables.raw, "2").await, "Name").len(),
        46 + 1 + 3
    );
    let all = table.query::<DynamicEntity>().collect().await.unwrap();
    assert!(
        all.iter()
            .all(|it| it.properties().get("Name") == Some(&Value::from("Ada")))
    );
}

#[tokio::test]
async fn a_plain_value_is_not_accepted_in_place_of_an_encrypted_one() {
    let tables = start().await;
    tables.raw.insert(&ada()).await.unwrap();
    let error = tables
        .dynamic
        .get::<DynamicEntity>(("Ward", "1"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
}

#[derive(Debug, TableEntity)]

enum Row {
    Ward(Ward),
    #[table(other)]
    Other(DynamicEntity),
}

#[derive(Debug, TableEntity)]
#[table(entity_type = "Ward")]
struct Ward {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    beds: i32,
}

fn assert_refused(result: Result<(), Error>, about: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{about}: {error}");
    let reason = error.source().map(ToString::to_string).unwrap_or_default();
    assert!(
        format!("{error} {reason}").contains("resolver"),
        "{about}: {error}"
    );
}

#[tokio::test]
async fn writes_that_would_store_plain_text_are_refused() {
    let tables = start().await;
    let table = &tables.dynamic;
    table.insert(&ada()).await.unwrap();
    assert_refused(table.insert(&Row::Other(ada())).await.map(drop), "enum");
    let ward = Ward {
        department: "Ward".to_owned(),
        id: "ward".to_owned(),
        beds: 1,
    };
    table.insert(&Row::Ward(ward)).await.unwrap();
    let other = tables.service.table("Others");
    other.create_table().await.unwrap();
    let read = || async {
        table
            .get::<DynamicEntity>(("Ward", "1"))
            .await
            .unwrap()
            .unwrap()
    };
    assert_refused(
        table.wide::<DynamicEntity>().insert(&ada()).await.map(drop),
        "wide",
    );
    assert_refused(
        table.move_to(&other, read().await).await.map(drop),
        "move_to",
    );
    let mut moved = read().await;
    *moved = DynamicEntity::new("Ward", "9").with_properties(moved.properties().clone());
    assert_refused(table.move_key(&mut moved).await.map(drop), "move_key");
    let all = table
        .query::<DynamicEntity>()
        .move_to(&other)
        .await
        .unwrap_err();
    assert!(all.to_string().contains("resolver"), "{all}");
    let step = Step::upsert_replace(table, &ada());
    assert_refused(table.batch("Ward").step(step).await.map(drop), "step");
    assert_eq!(other.query::<DynamicEntity>().count().await.unwrap(), 0);
}

#[tokio::test]
async fn patterns_store_their_own_entities_as_they_are() {
    let tables = start().await;
    let keyring = Keyring::new(january()).resolver(|_, _, _| true);
    let table = tables.raw.with_encryption(keyring);
    let number = Sequence::new(&table, ("sequences", "orders"))
        .next()
        .await
        .unwrap();
    assert_eq!(number, 1);
    assert_eq!(
        Sequence::new(&tables.raw, ("sequences", "orders"))
            .next()
            .await
            .unwrap(),
        2
    );
    Counter::new(&table, ("counters", "visits"))
        .add(3)
        .await
        .unwrap();
    assert_eq!(
        Counter::new(&tables.raw, ("counters", "visits"))
            .value()
            .await
            .unwrap(),
        3
    );
    let lease = Lease::acquire(&table, ("leases", "payroll"), Duration::from_secs(60));
    let mut lease = lease.await.unwrap().unwrap();
    lease.renew().await.unwrap();
    let all = tables.raw.query::<DynamicEntity>().collect().await.unwrap();
    let is_binary = |value: &Value| matches!(value, Value::Binary(_));
    assert!(
        all.iter()
            .all(|it| !it.properties().iter().any(|(_, value)| is_binary(value))),
        "{all:?}"
    );
}
