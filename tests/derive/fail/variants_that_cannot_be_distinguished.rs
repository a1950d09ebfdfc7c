//! Mistakes that the compiler finds: an entity belongs to one variant; all variants treat it alike.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(entity_type = "Department", partition_key = "{id}", row_key = "{row}")]
struct Department {
    id: String,
    row: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee", partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: String,
    id: String,
}

#[derive(TableEntity)]
enum AliasIsTheTypeOfAnother {
    Department(Department),
    #[table(alias = "Department")]
    Employee(Employee),
}

#[derive(TableEntity)]
enum AliasIsTheTypeOfItsStruct {
    #[table(alias = "Department")]
    Department(Department),
}

#[derive(TableEntity)]
#[table(entity_type = "Department", partition_key = "{id}", row_key = "{row}")]
struct Office {
    id: String,
    row: String,
}

#[derive(TableEntity)]
enum OneEntityType {
    Department(Department),
    Office(Office),
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Untyped {
    department: String,
    id: String,
}

#[derive(TableEntity)]
enum WithoutEntityType {
    Department(Department),
    Untyped(Untyped),
}

#[derive(TableEntity)]
#[table(entity_type = "Kinded", entity_type_property = "Kind")]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Kinded {
    department: String,
    id: String,
}

#[derive(TableEntity)]
enum TwoProperties {
    Department(Department),
    Kinded(Kinded),
}

/// An older version has a different entity type.
#[derive(TableEntity)]
#[table(entity_type = "Department", from = "Office", partition_key = "{id}", row_key = "{row}")]
struct NewOffice {
    id: String,
    row: String,
}

impl From<Office> for NewOffice {
    fn from(old: Office) -> Self {
        Self { id: old.id, row: old.row }
    }
}

#[derive(TableEntity)]
#[table(projection, entity_type = "Employee")]
struct Name {
    name: String,
}

#[derive(TableEntity)]
enum WithAProjection {
    Name(Name),
}

/// Who may write an entity could change its type, and with it whether a property is decrypted.
#[derive(TableEntity)]
#[table(entity_type = "Patient", partition_key = "{ward}", row_key = "{id}")]
struct Patient {
    ward: String,
    id: String,
    #[table(encrypt)]
    name: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Nurse", partition_key = "{ward}", row_key = "{id}")]
struct Nurse {
    ward: String,
    id: String,
    name: String,
}

#[derive(TableEntity)]
enum EncryptedInOneVariant {
    Patient(Patient),
    Nurse(Nurse),
}

#[derive(TableProperties)]
struct Contact {
    #[table(encrypt(eq))]
    email: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{country}", row_key = "{id}")]
struct Customer {
    country: String,
    id: String,
    #[table(flatten)]
    contact: Contact,
    #[table(rename = "email__eq")]
    same_email: bool,
}

fn main() {}
