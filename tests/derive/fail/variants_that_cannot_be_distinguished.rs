//! What the compiler evaluates: an entity belongs to one variant, and all variants treat it alike.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
    row: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
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
#[table(entity_type = "Department")]
struct Office {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
    row: String,
}

#[derive(TableEntity)]
enum OneEntityType {
    Department(Department),
    Office(Office),
}

#[derive(TableEntity)]
struct Untyped {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
enum WithoutEntityType {
    Department(Department),
    Untyped(Untyped),
}

#[derive(TableEntity)]
#[table(entity_type = "Kinded", entity_type_property = "Kind")]
struct Kinded {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
enum TwoProperties {
    Department(Department),
    Kinded(Kinded),
}

/// An older version has a different entity type.
#[derive(TableEntity)]
#[table(entity_type = "Department", from = "Office")]
struct NewOffice {
    #[table(partition_key)]
    id: String,
    #[table(row_key)]
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
#[table(entity_type = "Patient")]
struct Patient {
    #[table(partition_key)]
    ward: String,
    #[table(row_key)]
    id: String,
    #[table(encrypt)]
    name: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Nurse")]
struct Nurse {
    #[table(partition_key)]
    ward: String,
    #[table(row_key)]
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
struct Customer {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    contact: Contact,
    #[table(rename = "email__eq")]
    same_email: bool,
}

fn main() {}
