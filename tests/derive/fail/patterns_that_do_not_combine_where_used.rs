//! Cells of the table in the guide to choosing a pattern that say no: a verb that asserts what the
//! type is where it is used.

use tablesdk::index::CopyOf;
use tablesdk::outbox::Step;
use tablesdk::{Stored, TableClient, TableEntity, Timestamp};

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

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "row_{id}")]
struct Encrypted {
    department: String,
    id: String,
    #[table(encrypt)]
    name: String,
}

fn patch(table: &TableClient) {
    let _ = table.patch(Indexed::key("Sales", "1")).set(|e| e.name, "Ada"); // index: patch
    let _ = table.patch(Unique::key("Sales", "1")).set(|e| e.name, "Ada"); // unique: patch
    let _ = table.patch(OverPartitions::key("Sales", "1")).set(|e| e.name, "Ada"); // over partitions: patch
    let _ = table.patch(Copied::key("Sales", "1")).set(|e| e.name, "Ada"); // copy: patch
    let _ = table.patch(InBuckets::key("Sales", "1")).set(|e| e.until, Timestamp::UNIX_EPOCH); // expires in buckets: patch
}

fn delete(table: &TableClient) {
    let _ = table.delete(Indexed::key("Sales", "1")); // index: delete
    let _ = table.delete(Unique::key("Sales", "1")); // unique: delete
    let _ = table.delete(OverPartitions::key("Sales", "1")); // over partitions: delete
    let _ = table.delete(Copied::key("Sales", "1")); // copy: delete
    let _ = table.delete(InBuckets::key("Sales", "1")); // expires in buckets: delete
}

fn move_all(table: &TableClient, archive: &TableClient) {
    let _ = table.query::<Indexed>().move_to(archive); // index: query.move_to, in `fn MoveAll::<'_>::new::<Indexed,
    let _ = table.query::<Unique>().move_to(archive); // unique: query.move_to, in `fn MoveAll::<'_>::new::<Unique,
    let _ = table.query::<OverPartitions>().move_to(archive); // over partitions: query.move_to, in `fn MoveAll::<'_>::new::<OverPartitions,
    let _ = table.query::<Copied>().move_to(archive); // copy: query.move_to, in `fn MoveAll::<'_>::new::<Copied,
    let _ = table.query::<InBuckets>().move_to(archive); // expires in buckets: query.move_to, in `fn MoveAll::<'_>::new::<InBuckets,
    let _ = table.query::<Encrypted>().move_to(archive); // encrypt: query.move_to
}

fn encrypted(table: &TableClient, archive: &TableClient, stored: Stored<Encrypted>) {
    let _ = Step::upsert_replace(table, &*stored); // encrypt: step, in `fn tablesdk::outbox::Step::write::<Encrypted>`
    let _ = table.move_to(archive, stored); // encrypt: move_to, in `fn MoveEntity::<Encrypted>::new`
}

fn main() {
    let connection = "UseDevelopmentStorage=true";
    let service = tablesdk::TableServiceClient::from_connection_string(connection).unwrap();
    let (table, archive) = (service.table("Company"), service.table("Archive"));
    patch(&table);
    delete(&table);
    move_all(&table, &archive);
    let called: fn(&TableClient, &TableClient, Stored<Encrypted>) = encrypted;
    std::hint::black_box(called);
}
