//! The name of a deleted table, which can stay taken for some time.

use super::*;

#[test]
fn a_deleted_name_is_held_for_the_chosen_time() {
    let hold = Duration::from_secs(40);
    let client = Client::with(|options| options.table_name_hold = hold).and_table();
    let deleted = client.send("DELETE", "Tables('people')", &[], "");
    assert_eq!(deleted.status(), 204);
    let tables = client.send("GET", "Tables", &[], "");
    assert_eq!(body(&tables), r#"{"value":[]}"#);
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let point = "people(PartitionKey='p',RowKey='r')";
    for (method, resource, content, code) in [
        ("GET", "people()", "", "TableNotFound"),
        ("GET", point, "", "TableNotFound"),
        ("POST", "people", entity, "TableNotFound"),
        ("PUT", point, "{}", "TableNotFound"),
        ("GET", "people?comp=acl", "", "TableNotFound"),
        ("GET", "Tables('people')", "", "ResourceNotFound"),
        ("DELETE", "Tables('people')", "", "ResourceNotFound"),
    ] {
        let response = client.send(method, resource, &[], content);
        assert_eq!(
            status_and_code(&response),
            (404, code),
            "{method} {resource}"
        );
    }
    let create = |name: &str| {
        client.send(
            "POST",
            "Tables",
            &[],
            &format!(r#"{{"TableName":"{name}"}}"#),
        )
    };
    client.advance(39);
    for name in ["people", "PEOPLE"] {
        assert_eq!(status_and_code(&create(name)), (409, "TableBeingDeleted"));
    }
    assert_eq!(create("cities").status(), 201);
    client.advance(2);
    assert_eq!(create("people").status(), 201);
    assert_eq!(client.send("GET", "people()", &[], "").status(), 200);
}
