use tablesdk::index::CopyOf;
use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(copy(Skilled), copy(Unrelated), copy(Text))]
struct Employee {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "skill_{id:06}")]
struct Skilled {
    department: String,
    id: u32,
}

impl CopyOf<Employee> for Skilled {
    fn copies_of(_: &Employee) -> impl IntoIterator<Item = Self> {
        None
    }
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "other_{id:06}")]
struct Unrelated {
    department: String,
    id: u32,
}

struct Text(String);

#[derive(TableEntity)]
#[table(projection)]
struct WithoutKeys {
    name: String,
}

impl CopyOf<Employee> for WithoutKeys {
    fn copies_of(_: &Employee) -> impl IntoIterator<Item = Self> {
        None
    }
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "id_{id:06}", index(ByName, row_key = "name_{name}", unique))]
struct WithIndex {
    department: String,
    id: u32,
    name: String,
}

impl CopyOf<Employee> for WithIndex {
    fn copies_of(_: &Employee) -> impl IntoIterator<Item = Self> {
        None
    }
}

async fn write(table: &TableClient, ada: Employee) -> tablesdk::Result<()> {
    table.upsert_replace(&ada).await?;
    Ok(())
}

fn main() {}
