//! Cells of the table in the guide to choosing a pattern that say no: a verb whose bound the type
//! does not meet.

use tablesdk::index::CopyOf;
use tablesdk::outbox::Step;
use tablesdk::{TableClient, TableEntity, Timestamp};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(ByName, row_key = "name_{name}_{id}"))]
struct Indexed {
    department: String,
    id: String,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(ByUniqueName, row_key = "name_{name}", unique))]
struct Unique {
    department: String,
    id: String,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(index(ByNameOfAll, partition_key = "name_{name}", row_key = "in_{department}_{id}"))]
struct OverPartitions {
    department: String,
    id: String,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "row_{id}")]
#[table(copy(NameOf))]
struct Copied {
    department: String,
    id: String,
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "name_of_{id}")]
struct NameOf {
    department: String,
    id: String,
}

impl CopyOf<Copied> for NameOf {
    fn copies_of(of: &Copied) -> impl IntoIterator<Item = Self> {
        let (department, id) = (of.department.clone(), of.id.clone());
        [Self { department, id }]
    }
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "row_{id}")]
struct InBuckets {
    department: String,
    id: String,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

async fn upsert(table: &TableClient, a: Indexed, b: Unique, c: OverPartitions, d: Copied, e: InBuckets) {
    let _ = table.upsert_replace(&a).await; // index: upsert
    let _ = table.upsert_replace(&b).await; // unique: upsert
    let _ = table.upsert_replace(&c).await; // over partitions: upsert
    let _ = table.upsert_replace(&d).await; // copy: upsert
    let _ = table.upsert_merge(&e).await; // expires in buckets: upsert
}

async fn merge(table: &TableClient, a: Indexed, b: Unique, c: OverPartitions, d: Copied, e: InBuckets) {
    let _ = table.merge(&mut table.insert(&a).await.unwrap()).await; // index: merge
    let _ = table.merge(&mut table.insert(&b).await.unwrap()).await; // unique: merge
    let _ = table.merge(&mut table.insert(&c).await.unwrap()).await; // over partitions: merge
    let _ = table.merge(&mut table.insert(&d).await.unwrap()).await; // copy: merge
    let _ = table.merge(&mut table.insert(&e).await.unwrap()).await; // expires in buckets: merge
}

fn step(table: &TableClient, a: Indexed, b: Unique, c: OverPartitions, d: Copied, e: InBuckets) {
    let _ = Step::upsert_replace(table, &a); // index: step
    let _ = Step::upsert_replace(table, &b); // unique: step
    let _ = Step::upsert_replace(table, &c); // over partitions: step
    let _ = Step::upsert_merge(table, &d); // copy: step
    let _ = Step::upsert_merge(table, &e); // expires in buckets: step
}

fn main() {}
