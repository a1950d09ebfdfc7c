//! A row key belongs to one variant, also where it is that of an entry in an index.
use tablesdk::{TableEntity, TableProperties};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "emp_{id}")]
#[table(index(EmployeeByName, row_key = "name_{name}_{id}"))]
struct Employee {
    department: String,
    id: String,
    name: String,
}

#[derive(TableEntity)]
struct Unmarked {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum WithoutAPrefix {
    Employee(Employee),
    Unmarked(Unmarked),
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "emp_review_{id}")]
struct Review {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum OverlappingPrefixes {
    Employee(Employee),
    Review(Review),
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "name_{name}")]
struct Name {
    department: String,
    name: String,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum PrefixOfEntries {
    Employee(Employee),
    Name(Name),
}

#[derive(TableEntity)]
#[table(by = "row_key", projection)]
enum VariantIsAnEntry {
    Employee(Employee),
    Entry(EmployeeByName),
}

#[derive(Clone, Debug, TableProperties)]
struct Secret {
    #[table(encrypt)]
    name: String,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{ward}", row_key = "patient_{id:06}")]
#[table(index(ByRoom, row_key = "room_{room}_{id:06}"))]
struct Patient {
    ward: String,
    id: u32,
    room: String,
    #[table(flatten)]
    secret: Secret,
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum EncryptedWithAnIndex {
    Patient(Patient),
}

fn main() {}
