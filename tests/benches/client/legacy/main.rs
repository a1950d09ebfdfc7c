//! Measures the unofficial crate `azure_data_tables` 0.21 against a server of fixed bytes:
//! processor time per operation.
//!
//! Usage: legacy-client CONNECTION_STRING

use std::error::Error;
use std::fs;
use std::future::Future;

use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::operations::InsertEntityResponse;
use azure_data_tables::prelude::*;
use azure_storage::{CloudLocation, StorageCredentials};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    partition_key: String,
    row_key: String,
    first_name: String,
    last_name: String,
    email: String,
    department: String,
    age: i32,
    badge: String,
    salary: f64,
    remote: bool,
    hired: String,
    office: String,
}

impl Employee {
    fn new(number: u32) -> Self {
        Self {
            partition_key: "sales".to_owned(),
            row_key: format!("{number:010}"),
            first_name: format!("Firstname{number:08}"),
            last_name: format!("Lastname{number:08}"),
            email: format!("employee{number:08}@contoso.example"),
            department: "Research and development".to_owned(),
            age: number as i32,
            badge: (u64::from(number) << 33).to_string(),
            salary: f64::from(number) * 101.25,
            remote: number % 2 == 0,
            hired: "2023-11-14T22:13:20Z".to_owned(),
            office: "c9da6455-213d-42c9-9a79-3e9149a57833".to_owned(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let text = std::env::args().nth(1).ok_or("no connection string")?;
    let setting = |name: &str| {
        let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(key, _)| *key == name);
        found
            .map(|(_, value)| value.to_owned())
            .ok_or("a part of the connection string is missing")
    };
    let (account, key) = (setting("AccountName")?, setting("AccountKey")?);
    let location = CloudLocation::Custom {
        account: account.clone(),
        uri: setting("TableEndpoint")?,
    };
    let credentials = StorageCredentials::access_key(account, key);
    let service = TableServiceClientBuilder::with_location(location, credentials).build();
    let table = service.table_client("people");
    let employees: Vec<_> = (0..100).map(Employee::new).collect();

    measure("point-read", 2000, || async {
        let partition = table.partition_key_client("sales");
        let entity = partition.entity_client("0000000007");
        entity.get::<Employee>().await?;
        Ok(())
    })
    .await?;
    measure("insert", 2000, || async {
        let _inserted: InsertEntityResponse<Employee> = table.insert(&employees[0])?.await?;
        Ok(())
    })
    .await?;
    measure("page", 100, || async {
        let query = table.query().filter(Filter::new("PartitionKey eq 'sales'"));
        let mut pages = query.into_stream::<Employee>();
        while let Some(page) = pages.next().await {
            page?;
        }
        Ok(())
    })
    .await?;
    measure("batch", 300, || async {
        let mut batch = table.partition_key_client("sales").transaction();
        for employee in &employees {
            batch = batch.insert(employee)?;
        }
        batch.await?;
        Ok(())
    })
    .await
}

/// Prints the microseconds of processor time that an operation needs.
async fn measure<F>(name: &str, count: u32, operation: impl Fn() -> F) -> Result<(), Box<dyn Error>>
where
    F: Future<Output = Result<(), Box<dyn Error>>>,
{
    operation().await?;
    let before = processor_time()?;
    for _ in 0..count {
        operation().await?;
    }
    let micros = (processor_time()? - before) / 1e3 / f64::from(count);
    println!("{name}\t{micros}");
    Ok(())
}

/// The nanoseconds that this thread ran.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(statistics.split(' ').next().unwrap_or_default().parse()?)
}
