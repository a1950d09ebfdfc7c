use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

impl Employee {
    fn key(&self) -> (&str, &str) {
        (&self.department, &self.id)
    }
}

fn main() {}
