//! Each property has a name of its own, which the service allows.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(rename_all = "pascalCase", partition_key = "{department}", row_key = "{id}")]
struct UnknownCase {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(rename_all = "kebab-case", partition_key = "{department}", row_key = "{id}")]
struct CaseWithHyphens {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct ForbiddenNames {
    department: String,
    id: String,
    #[table(rename = "first-name")]
    first: String,
    #[table(rename = "2nd")]
    second: String,
    #[table(rename = "")]
    third: String,
    #[table(rename = "odata.etag")]
    fourth: String,
    #[table(rename = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
    fifth: i32,
    #[table(flatten, prefix = "home-")]
    home: Home,
    #[table(flatten, prefix = "1")]
    work: Home,
    #[table(flatten = "Home")]
    office: Home,
    #[table(prefix = "Home_")]
    not_flattened: String,
}

#[derive(TableProperties)]
struct Home {
    city: String,
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase", partition_key = "{department}", row_key = "{id}")]
struct TakenNames {
    department: String,
    id: String,
    timestamp: i64,
    #[table(rename = "RowKey")]
    name: String,
    first_name: String,
    #[table(rename = "FirstName")]
    given_name: String,
    #[table(alias = "LastName", alias = "RowKey")]
    nickname: Option<String>,
    last_name: String,
}

fn main() {}
