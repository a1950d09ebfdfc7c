use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(rename_all = "Pascal")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(renam = "Name")]
    name: String,
    #[table(rename = "a b")]
    nick: String,
}

fn uses_it_all_the_same(table: &tablesdk::TableClient) {
    let _ = table.get(Employee::key("Sales", "1"));
    let _ = table.query::<Employee>().filter(|e| e.name.eq("Ada"));
}

fn main() {}
