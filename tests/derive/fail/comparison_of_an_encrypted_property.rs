use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(encrypt)]
    insurance_number: String,
    #[table(encrypt(eq))]
    email: String,
}

fn query(table: &TableClient) {
    let _ = table.query::<Employee>().filter(|e| e.insurance_number.eq("AB 12"));
    let _ = table.query::<Employee>().filter(|e| e.email.ge("a"));
    let _ = table.query::<Employee>().filter(|e| e.email.starts_with("a") & e.email.eq(5));
}

fn main() {}
