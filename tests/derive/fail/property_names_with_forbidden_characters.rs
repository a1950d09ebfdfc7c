use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    #[table(rename = "first-name")]
    first: String,
    #[table(rename = "2nd")]
    second: String,
    #[table(rename = "")]
    third: String,
    #[table(rename = "odata.etag")]
    fourth: String,
}

fn main() {}
