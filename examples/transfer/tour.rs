//! What it does without arguments: all three commands between two bundled servers, each interrupted and called again.

use std::fs;
use std::path::PathBuf;

use tablesdk::{DynamicEntity, TableServiceClient, Value};
use tablesdk_server::TableServer;

use crate::{AnyError, Existing, Mode, copy, export, import};

pub async fn run() -> Result<(), AnyError> {
    let folder = Folder::new()?;
    let (first, second) = (TableServer::start().await?, TableServer::start().await?);
    let old = TableServiceClient::from_connection_string(&first.connection_string())?;
    let new = TableServiceClient::from_connection_string(&second.connection_string())?;
    fill(&old).await?;

    let file = folder.0.join("tables.jsonl");
    if let Err(error) = export::run(&old, &[], &file, Some(2)).await {
        println!("export: {error}");
    }
    let done = export::run(&old, &[], &file, None).await?;
    println!("export, called again: {done}");
    for line in fs::read_to_string(&file)?.lines().take(3) {
        println!("   {line}");
    }

    let mode = |mode| Mode {
        mode,
        batch_size: 100,
    };
    let insert = mode(Existing::Refuse);
    // Nothing that is there may be overwritten, and nothing that arrived is sent again.
    if let Err(error) = import::run(&new, &insert, &file, Some(1_234)).await {
        println!("import: {error}");
    }
    let done = import::run(&new, &insert, &file, None).await?;
    println!("import, called again: {done}");
    let read = new
        .table("Readings")
        .get::<DynamicEntity>(("sensor 1", "000007"));
    let reading = read.await?.ok_or("the reading did not arrive")?;
    println!("   with its types: {:?}", reading.properties().get("Count"));

    let third = TableServer::start().await?;
    let newest = TableServiceClient::from_connection_string(&third.connection_string())?;
    let state = folder.0.join("copy.state");
    let replace = mode(Existing::Replace);
    if let Err(error) = copy::run(&new, &newest, &[], &replace, &state, Some(1)).await {
        println!("copy: {error}");
    }
    let done = copy::run(&new, &newest, &[], &replace, &state, None).await?;
    println!("copy, called again: {done}");
    let there = newest
        .table("Readings")
        .query::<DynamicEntity>()
        .count()
        .await?;
    println!("   {there} readings in the third account");
    Ok(())
}

/// Two tables, one of them with three pages of entities.
async fn fill(service: &TableServiceClient) -> Result<(), AnyError> {
    service.table("Empty").create_table().await?;
    let table = service.table("Readings");
    table.create_table().await?;
    for sensor in 0..5 {
        for first in (0..500).step_by(100) {
            let partition = format!("sensor {sensor}");
            let batch =
                (first..first + 100).fold(table.batch(partition.as_str()), |batch, index| {
                    let mut entity = DynamicEntity::new(partition.as_str(), format!("{index:06}"));
                    let properties = entity.properties_mut();
                    properties.set("Celsius", f64::from(index) / 10.0);
                    properties.set("Count", Value::Int64(i64::from(index) << 32));
                    batch.insert(&entity)
                });
            batch.await?;
        }
    }
    Ok(())
}

/// A folder of our own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, AnyError> {
        let path = std::env::temp_dir().join(format!("tablesdk-transfer-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It may be looked at by hand; nothing depends on it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
