use tablesdk::{ETag, TableEntity, Timestamp};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(TableByA, table = "EmployeesByA", row_key = "{a}_{id:06}"))]
#[table(index(TableByB, table = "{table}", row_key = "{a}_{id:06}"))]
#[table(index(TableByC, table = "{table}-by-c", row_key = "{a}_{id:06}"))]
#[table(index(TableByD, table = "{table}{table}", row_key = "{a}_{id:06}"))]
#[table(index(TableByE, table = "1{table}", row_key = "{a}_{id:06}"))]
#[table(index(TableByF, table = "{table}ByAVeryLongNameOfAnIndexThatLeavesNoRoomForTheNameOfATableOfEntities", row_key = "{a}_{id:06}"))]
struct Tables {
    department: String,
    id: u32,
    a: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(TwoOwnersByA, table = "{table}ByA", row_key = "{a}"))]
struct TwoOwners {
    department: String,
    id: u32,
    a: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(OnlyByA, row_key = "b_{a}", unique, only(nam, nothing, name, name)))]
#[table(index(OnlyByB, row_key = "c_{b}", unique, only(department, id, skipped, etag, changed)))]
struct Only {
    department: String,
    id: u32,
    a: String,
    b: String,
    name: String,
    #[table(skip)]
    skipped: u32,
    #[table(etag)]
    etag: Option<ETag>,
    #[table(timestamp)]
    changed: Option<Timestamp>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(BadSyntaxByA, row_key = "b_{a}", unique, only))]
#[table(index(BadSyntaxByB, row_key = "c_{a}", unique, only("a")))]
#[table(index(BadSyntaxByC, row_key = "d_{a}", unique, only(), only()))]
struct BadSyntax {
    department: String,
    id: u32,
    a: String,
}

fn main() {}
