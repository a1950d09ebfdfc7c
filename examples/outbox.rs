//! A department gets a new title, which another table and a mail are to follow for certain:
//! `cargo run --example outbox`.
//!
//! The steps are stored in the transaction of the department. A worker applies what its writer does
//! not, and tries again what fails. See the [eventually consistent transactions pattern].
//!
//! Without a connection string, it starts the bundled server in this process. With one, as the
//! argument or in `AZURE_STORAGE_CONNECTION_STRING`, it uses that service: it creates tables with
//! new names, and deletes them at the end.
//!
//! [eventually consistent transactions pattern]: https://learn.microsoft.com/azure/storage/tables/table-storage-design-patterns#eventually-consistent-transactions-pattern

use std::error::Error;

use serde::{Deserialize, Serialize};
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{TableClient, TableEntity};
use tablesdk_examples::{connect, unique_name};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, Clone, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{id}",
    row_key = "department"
)]
struct Department {
    id: String,
    title: String,
}

/// The titles of all departments, for a list of them, in one partition of another table.
#[derive(Debug, Clone, TableEntity)]
#[table(rename_all = "PascalCase", partition_key = "titles", row_key = "{id}")]
struct Title {
    id: String,
    title: String,
}

/// Tells the employees.
#[derive(Debug, Serialize, Deserialize)]
struct Renamed {
    title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (service, _server) = connect().await?;
    let company = service.table(unique_name("Company"));
    let titles = service.table(unique_name("Titles"));
    company.create_table().await?;
    titles.create_table().await?;

    // The tables are deleted after an error, too.
    let outcome = tour(&company, &titles).await;
    company.delete_table().await?;
    titles.delete_table().await?;
    outcome
}

async fn tour(company: &TableClient, titles: &TableClient) -> Result<(), Box<dyn Error>> {
    let sales = Department {
        id: "sales".to_owned(),
        title: "Sales".to_owned(),
    };
    company.insert(&sales).await?;

    println!(
        "1. One transaction stores the department and both steps, and the title follows at once:"
    );
    rename(company, titles, "Sales and service").await?;
    let title = titles.get(Title::key("sales")).await?;
    println!("   {}", title.ok_or("the step wrote it")?.title);

    println!("\n2. The message waits for a worker that handles it:");
    let waiting = Outbox::new(company).drain().await?.waiting;
    println!("   {waiting} waiting");

    println!("\n3. A worker runs, and is woken by the next commit:");
    let (mailed, mut mails) = mpsc::unbounded_channel();
    let outbox = Outbox::new(company).on(move |renamed: Received<Renamed>| {
        let mailed = mailed.clone();
        async move {
            let (number, title) = (renamed.number(), &renamed.title);
            mailed.send(format!("mail {number}: you are {title} now"))?;
            Ok(())
        }
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = tokio::spawn(outbox.clone().run(stopped));
    println!("   {}", mails.recv().await.ok_or("the first message")?);
    rename(company, titles, "Sales worldwide").await?;
    println!("   {}", mails.recv().await.ok_or("the second message")?);
    drop(stop);
    let report = worker.await??;
    println!("   {} waiting", report.waiting);
    let poisoned = outbox.poisoned().await?;
    println!("   {} set aside after 10 attempts", poisoned.len());
    Ok(())
}

async fn rename(
    company: &TableClient,
    titles: &TableClient,
    to: &str,
) -> Result<(), tablesdk::Error> {
    let rename = company.transaction("sales", async |tx| {
        let key = Department::key("sales");
        let mut sales = tx.get(key).await?.ok_or("no such department")?;
        sales.title = to.into();
        let (id, title) = (sales.id.clone(), sales.title.clone());
        tx.replace(sales)
            .step(Step::upsert_replace(
                titles,
                &Title {
                    id,
                    title: title.clone(),
                },
            ))
            .step(Step::message(&Renamed { title }));
        Ok(())
    });
    rename.await
}
