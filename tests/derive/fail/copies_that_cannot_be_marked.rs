use tablesdk::index::CopyOf;
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(copy(PartOf, name = "Part"))]
struct Employee {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(projection, partition_key = "{department}", row_key = "dept")]
struct PartOf {
    department: String,
    newest: u32,
}

impl CopyOf<Employee> for PartOf {
    fn copies_of(employee: &Employee) -> impl IntoIterator<Item = Self> {
        let department = employee.department.clone();
        [Self { department, newest: employee.id }]
    }
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "source_{id:06}")]
#[table(copy(Marked))]
struct Source {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "copy_{id:06}")]
struct Marked {
    department: String,
    id: u32,
    #[table(flatten, prefix = "Tablesdk")]
    of: Of,
}

#[derive(TableProperties)]
#[table(rename_all = "PascalCase")]
struct Of {
    source: String,
}

impl CopyOf<Source> for Marked {
    fn copies_of(_: &Source) -> impl IntoIterator<Item = Self> {
        None
    }
}

fn main() {}
