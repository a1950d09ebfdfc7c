use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{kind}", row_key = "{email:escaped}")]
struct Lookup {
    kind: String,
    email: String,
}

fn main() {
    let _ = Lookup::rows().email("a".."b");
    let _ = Lookup::columns().email.ge("a");
}
