//! Each property has a name of its own, which the service allows.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(rename_all = "pascalCase")]
struct UnknownCase {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(rename_all = "kebab-case")]
struct CaseWithHyphens {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
struct ForbiddenNames {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
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
#[table(rename_all = "PascalCase")]
struct TakenNames {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
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
