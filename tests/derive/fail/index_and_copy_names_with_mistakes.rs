use tablesdk::TableEntity;

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(TwiceByA, row_key = "b_{a}", unique), index(TwiceByA, row_key = "c_{b}", unique))]
#[table(index(Twice, row_key = "d_{c}", unique))]
#[table(copy(Copied), copy(Copied))]
struct Twice {
    department: String,
    id: u32,
    a: String,
    b: String,
    c: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}", entity_type = "SameName")]
#[table(index(SameNameByA, row_key = "b_{a}", unique, name = "SameName"))]
#[table(index(SameNameByB, row_key = "c_{b}", unique, name = "x"), index(SameNameByC, row_key = "d_{c}", unique, name = "x"))]
#[table(copy(Copied, name = "SameName.Named"), copy(Named), copy(others::Named))]
struct SameName {
    department: String,
    id: u32,
    a: String,
    b: String,
    c: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(BadNameByA, row_key = "b_{a}", unique, name = ""), copy(Copied, name = "a\n"))]
struct BadName {
    department: String,
    id: u32,
    a: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(BadSyntaxByA, row_key = "c_{a}", unique, name = "a", name = "b"), copy(Copied, nam = "a"))]
struct BadSyntax {
    department: String,
    id: u32,
    a: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(MarkedByA, row_key = "b_{a}", unique))]
struct Marked {
    department: String,
    id: u32,
    #[table(rename = "TablesdkIndex")]
    a: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "a_{id:06}")]
#[table(index(FewDigitsByA, row_key = "b_{a}_{id:03}"))]
#[table(index(FewDigitsByB, partition_key = "c_{id:05}", row_key = "c_{department}"))]
struct FewDigits {
    department: String,
    id: u32,
    a: String,
}

fn main() {}
