//! The derive finds the crate under the name that the attribute gives.

mod vendored {
    pub use tablesdk as tables;
}

#[derive(vendored::tables::TableEntity)]
#[table(crate = "crate::vendored::tables")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: Option<String>,
}

fn main() {
    use vendored::tables::WritableEntity as _;
    let employee = Employee {
        department: "Sales".into(),
        id: "1".into(),
        name: None,
    };
    assert_eq!(
        employee.entity_key().unwrap().to_string(),
        "(\"Sales\", \"1\")"
    );
}
