use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}")]
struct Review {
    department: String,
    employee: tablesdk::key::Desc<String>,
}

fn main() {}
