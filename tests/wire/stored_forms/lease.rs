//! The entity of a lease.

use std::time::Duration;

use tablesdk::lease::Lease;
use tablesdk::{DynamicEntity, TableClient};

use super::Transcript;

#[tokio::test]
async fn leases_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let acquire = async |table: &TableClient| {
        let lease = Lease::acquire(table, ("payroll", "lock"), Duration::from_secs(60));
        lease.holder("server 1").await.unwrap().expect("it is free")
    };
    let mut lease = transcript.add("acquire a new one", acquire).await;
    let renew = async |_: &TableClient| lease.renew().await.unwrap();
    transcript.add("renew", renew).await;
    let run = DynamicEntity::new("payroll", "run").with("Employees", 250);
    let fence = async |table: &TableClient| {
        let batch = lease.fence(table.batch("payroll")).insert(&run);
        drop(batch.await.unwrap());
    };
    transcript.add("a fenced batch", fence).await;
    let release = async |_: &TableClient| lease.release().await.unwrap();
    transcript.add("release", release).await;
    transcript.add("acquire a released one", acquire).await;
    transcript.assert_is("lease.http");
}
