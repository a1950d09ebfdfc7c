//! Settings that every request of a program reads, and that seldom change, are kept in memory:
//! `cargo run --example cached_settings`.
//!
//! A cache of the crate `quick_cache` has the settings of a tenant for a minute. Callers that miss
//! at the same time wait for one query. A write of this program is seen at once by this program;
//! other programs see it within the minute.
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use futures::future::try_join_all;
use quick_cache::sync::Cache;
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{tenant}",
    row_key = "{name}"
)]
struct Setting {
    tenant: String,
    name: String,
    text: String,
}

/// The settings of a tenant as they were read at an instant.
struct Settings {
    by_name: BTreeMap<String, String>,
    read_at: Instant,
}

struct CachedSettings {
    table: TableClient,
    max_age: Duration,
    by_tenant: Cache<String, Arc<Settings>>,
    /// For the tour below.
    queries: AtomicU32,
}

impl CachedSettings {
    /// The settings of at most 1,000 tenants are kept.
    fn new(table: &TableClient, max_age: Duration) -> Self {
        Self {
            table: table.clone(),
            max_age,
            by_tenant: Cache::new(1_000),
            queries: AtomicU32::new(0),
        }
    }

    /// The settings of a tenant, at most `max_age` old. A failed read is not kept.
    async fn of(&self, tenant: &str) -> Result<Arc<Settings>, tablesdk::Error> {
        let is_old = |settings: &Arc<Settings>| settings.read_at.elapsed() >= self.max_age;
        self.by_tenant.remove_if(tenant, is_old);
        self.by_tenant
            .get_or_insert_async(tenant, self.read(tenant))
            .await
    }

    async fn read(&self, tenant: &str) -> Result<Arc<Settings>, tablesdk::Error> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        // Before the query: what is written during it may be missing in its pages.
        let read_at = Instant::now();
        let settings = self.table.query::<Setting>().partition(tenant).stream();
        let by_name = settings.map_ok(|it| (it.name.clone(), it.text.clone()));
        let by_name = by_name.try_collect().await?;
        Ok(Arc::new(Settings { by_name, read_at }))
    }

    /// Writes a setting, and forgets the settings of its tenant, also after an error: the service
    /// may have stored it.
    async fn set(&self, setting: &Setting) -> Result<(), tablesdk::Error> {
        let written = self.table.upsert_replace(setting).await;
        self.by_tenant.remove(&setting.tenant);
        written.map(|_| ())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Settings"));
    table.create_table().await?;

    // The table is deleted after an error, too.
    let outcome = tour(&table).await;
    table.delete_table().await?;
    outcome
}

async fn tour(table: &TableClient) -> Result<(), Box<dyn Error>> {
    table.insert(&setting("blue")).await?;

    println!("1. A hundred callers at the same time share one query:");
    let settings = CachedSettings::new(table, Duration::from_secs(60));
    let found = try_join_all((0..100).map(|_| settings.of("contoso"))).await?;
    println!("   {}", found[0].by_name["colour"]);
    println!("   {} query", settings.queries.load(Ordering::Relaxed));

    println!("\n2. A write of this program is seen at once:");
    settings.set(&setting("green")).await?;
    println!("   {}", settings.of("contoso").await?.by_name["colour"]);

    println!("\n3. A write of another program is seen when what was read is too old:");
    table.upsert_replace(&setting("red")).await?;
    println!(
        "   {} for a minute",
        settings.of("contoso").await?.by_name["colour"]
    );
    let fresh = CachedSettings {
        max_age: Duration::ZERO,
        ..settings
    };
    println!("   {} then", fresh.of("contoso").await?.by_name["colour"]);
    Ok(())
}

fn setting(colour: &str) -> Setting {
    Setting {
        tenant: "contoso".to_owned(),
        name: "colour".to_owned(),
        text: colour.to_owned(),
    }
}
