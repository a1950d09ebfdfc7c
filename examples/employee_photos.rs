//! Values that are too large for a property: `cargo run --example employee_photos`.
//!
//! The remarks of a review have more than 64 KiB, and are stored in chunks of the entity. The photo
//! of an employee has more than 1 MiB, and is stored in an object store, here a folder; the entity
//! names it by a reference with length and checksum. See the [large entities pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates a table with
//! a new name, and deletes it at the end.
//!
//! [large entities pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#large-entities-pattern

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use object_store::local::LocalFileSystem;
use tablesdk::chunked::Chunked;
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::{DynamicEntity, TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    #[table(flatten, prefix = "Remarks")]
    remarks: Chunked<String>,
    photo: Option<ObjectRef>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let table = service.table(unique_name("Employees"));
    let folder = std::env::temp_dir().join(unique_name("employee_photos"));
    table.create_table().await?;
    fs::create_dir(&folder)?;

    // Table and folder are deleted after an error, too.
    let outcome = tour(&table, &folder).await;
    table.delete_table().await?;
    fs::remove_dir_all(&folder)?;
    outcome
}

async fn tour(table: &TableClient, folder: &Path) -> Result<(), Box<dyn Error>> {
    let photos = Objects::new(LocalFileSystem::new_with_prefix(folder)?, "photos");

    println!("1. The object is written before the entity that names it:");
    let photo = photos.put(vec![7; 3_000_000]).await?;
    let ada = Employee {
        department: "Sales".to_owned(),
        id: 223,
        remarks: Chunked("She is punctual. ".repeat(6_000)),
        photo: Some(photo.clone()),
    };
    let mut ada = table.insert(&ada).await?;
    println!("   a photo of {} bytes", photo.size());

    println!("\n2. What is stored in the entity:");
    let stored = table.get::<DynamicEntity>(("Sales", "empid_000223"));
    let stored = stored.await?.ok_or("was inserted")?;
    for (name, value) in stored.properties().iter() {
        println!("   {name}: {}", value.edm_type());
    }
    let remarks = table.query::<Employee>().select(|e| e.remarks);
    let remarks = remarks.one().await?.ok_or("was inserted")?;
    println!("   remarks of {} bytes", remarks.len());

    println!("\n3. A new photo is a new object:");
    ada.photo = Some(photos.put(vec![8; 2_000_000]).await?);
    table.replace(&mut ada).await?;
    let read = ada.photo.as_ref().ok_or("was put")?;
    println!("   {} bytes now", photos.get(read).await?.len());

    println!(
        "\n4. A program with an old version of the entity can still read the old photo, until a clean-up:"
    );
    println!("   {} bytes before", photos.get(&photo).await?.len());
    let clean_up = || photos.clean_up_objects(table.query::<Employee>().select(|e| e.photo));
    let report = clean_up().await?;
    println!("   {} of {} are recent", report.recent, report.objects);
    for object in fs::read_dir(folder.join("photos"))? {
        let file = File::options().write(true).open(object?.path())?;
        file.set_modified(SystemTime::now() - 2 * DAY)?;
    }
    let report = clean_up().older_than(DAY).await?;
    println!(
        "   two days later, {} is in use and {} was deleted with {} bytes",
        report.in_use, report.deleted, report.deleted_bytes
    );
    if let Err(error) = photos.get(&photo).await {
        println!(
            "   not found: {}",
            error.to_string().contains("read the entity again")
        );
    }
    Ok(())
}
