//! Create, query and delete tables.
//!
//! The bytes of answers, and every refusal with its code. What becomes of the entities of a deleted table in the storage is
//! tested in the engine.

use super::*;

#[test]
fn a_table_is_created_with_or_without_content() {
    let client = Client::new();
    let minimal = ("accept", "application/json;odata=minimalmetadata");
    let created = client.send("POST", "Tables", &[minimal], r#"{"TableName":"People"}"#);
    assert_eq!(created.status(), 201);
    let location = "http://127.0.0.1:10002/acct/Tables('People')";
    assert_eq!(header(&created, "location"), Some(location));
    assert_eq!(header(&created, "preference-applied"), None);
    assert_eq!(
        body(&created),
        r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables/@Element","TableName":"People"}"#
    );

    let prefer = ("prefer", "return-no-content");
    let created = client.send("POST", "Tables", &[prefer], r#"{"TableName":"cities"}"#);
    assert_eq!((created.status().as_u16(), body(&created)), (204, ""));
    let location = "http://127.0.0.1:10002/acct/Tables('cities')";
    assert_eq!(header(&created, "location"), Some(location));
    assert_eq!(header(&created, "dataserviceid"), Some(location));
    assert_eq!(
        header(&created, "preference-applied"),
        Some("return-no-content")
    );
}

#[test]
fn a_table_that_cannot_be_created_is_refused() {
    let client = Client::with_table();
    for (body, expected) in [
        (r#"{"TableName":"PEOPLE"}"#, (409, "TableAlreadyExists")),
        (r#"{"TableName":"a-b-c"}"#, (400, "InvalidResourceName")),
        (r#"{"TableName":"Tables"}"#, (400, "InvalidResourceName")),
        (r#"{"TableName":"ab"}"#, (400, "OutOfRangeInput")),
        (r#"{"TableName":null}"#, (400, "PropertiesNeedValue")),
        ("{}", (400, "PropertiesNeedValue")),
        (r#"{"TableName":5}"#, (400, "InvalidInput")),
        ("{", (400, "InvalidInput")),
    ] {
        let response = client.send("POST", "Tables", &[], body);
        assert_eq!(status_and_code(&response), expected, "{body}");
    }
    let text = ("content-type", "text/plain");
    let response = client.send("POST", "Tables", &[text], r#"{"TableName":"cities"}"#);
    assert_eq!(status_and_code(&response), (415, "MediaTypeNotSupported"));
}

#[test]
fn a_deleted_table_is_gone_with_its_entities() {
    let client = Client::with_table();
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    assert_eq!(client.send("POST", "people", &[], entity).status(), 201);
    let deleted = client.send("DELETE", "Tables('PEOPLE')", &[], "");
    assert_eq!((deleted.status().as_u16(), body(&deleted)), (204, ""));
    let again = client.send("DELETE", "Tables('people')", &[], "");
    assert_eq!(status_and_code(&again), (404, "ResourceNotFound"));
    let entities = client.send("GET", "people()", &[], "");
    assert_eq!(status_and_code(&entities), (404, "TableNotFound"));
    let created = client.send("POST", "Tables", &[], r#"{"TableName":"people"}"#);
    assert_eq!(created.status(), 201);
    assert_eq!(
        body(&client.send("GET", "people()", &[], "")),
        r#"{"value":[]}"#
    );
}

#[test]
fn one_table_is_found_by_its_name() {
    let client = Client::new();
    client.send("POST", "Tables", &[], r#"{"TableName":"People"}"#);
    let found = client.send("GET", "Tables('pEOPLE')", &[], "");
    assert_eq!(found.status(), 200);
    assert_eq!(body(&found), r#"{"TableName":"People"}"#);
    let minimal = ("accept", "application/json;odata=minimalmetadata");
    let found = client.send("GET", "Tables('People')", &[minimal], "");
    assert_eq!(
        body(&found),
        r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#Tables/@Element","TableName":"People"}"#
    );
    let missing = client.send("GET", "Tables('nobody')", &[], "");
    assert_eq!(status_and_code(&missing), (404, "ResourceNotFound"));
}

#[test]
fn tables_are_listed_in_the_order_of_their_lower_cased_names() {
    let client = Client::new();
    for name in ["Delta", "charlie", "bravo", "Alpha"] {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        assert_eq!(client.send("POST", "Tables", &[], &body).status(), 201);
    }
    let list = |names: &[&str]| {
        let names: Vec<_> = names
            .iter()
            .map(|name| format!(r#"{{"TableName":"{name}"}}"#))
            .collect();
        format!(r#"{{"value":[{}]}}"#, names.join(","))
    };
    for (query, names) in [
        ("", &["Alpha", "bravo", "charlie", "Delta"][..]),
        ("?$filter=TableName%20ge%20'b'", &["bravo", "charlie"]),
        ("?$filter=TableName%20eq%20'Delta'", &["Delta"]),
        ("?$filter=false", &[]),
        ("?$top=0", &[]),
        ("?$top=4", &["Alpha", "bravo", "charlie", "Delta"]),
    ] {
        let page = client.send("GET", &format!("Tables{query}"), &[], "");
        assert_eq!(body(&page), list(names), "{query}");
        assert_eq!(header(&page, "x-ms-continuation-nexttablename"), None);
    }
    let page = client.send("GET", "Tables?$top=3", &[], "");
    assert_eq!(body(&page), list(&["Alpha", "bravo", "charlie"]));
    let next = header(&page, "x-ms-continuation-nexttablename").unwrap();
    let page = client.send(
        "GET",
        &format!("Tables?$top=3&NextTableName={next}"),
        &[],
        "",
    );
    assert_eq!(body(&page), list(&["Delta"]));
    for query in [
        "$top=-1",
        "$top=1001",
        "NextTableName=x",
        "NextTableName=",
        "$filter=a%20b",
    ] {
        let page = client.send("GET", &format!("Tables?{query}"), &[], "");
        assert_eq!(status_and_code(&page), (400, "InvalidInput"), "{query}");
    }
}

#[test]
fn the_name_of_a_deleted_table_can_stay_taken_for_a_while() {
    let client = Client::holding_names(Duration::from_secs(40));
    let create = r#"{"TableName":"people"}"#;
    assert_eq!(client.send("POST", "Tables", &[], create).status(), 201);
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
    client.advance(39);
    for name in ["people", "PEOPLE"] {
        let create = format!(r#"{{"TableName":"{name}"}}"#);
        let refused = client.send("POST", "Tables", &[], &create);
        assert_eq!(status_and_code(&refused), (409, "TableBeingDeleted"));
    }
    let other = client.send("POST", "Tables", &[], r#"{"TableName":"cities"}"#);
    assert_eq!(other.status(), 201);
    client.advance(2);
    assert_eq!(client.send("POST", "Tables", &[], create).status(), 201);
    assert_eq!(client.send("GET", "people()", &[], "").status(), 200);
}

#[test]
fn the_tables_of_metrics_are_empty_and_cannot_be_changed() {
    let client = Client::with_table();
    let name = "$MetricsHourPrimaryTransactionsTable";
    let minimal = [("accept", "application/json;odata=minimalmetadata")];
    let page = client.send("GET", &format!("{name}()?$filter=a%20eq%201"), &minimal, "");
    assert_eq!(
        (page.status().as_u16(), body(&page)),
        (
            200,
            r#"{"odata.metadata":"http://127.0.0.1:10002/acct/$metadata#$MetricsHourPrimaryTransactionsTable","value":[]}"#
        )
    );
    let point = format!("{name}(PartitionKey='p',RowKey='r')");
    let found = client.send("GET", &format!("Tables('{name}')"), &[], "");
    assert_eq!(body(&found), format!(r#"{{"TableName":"{name}"}}"#));
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let create = format!(r#"{{"TableName":"{name}"}}"#);
    let refused = (403, "InsufficientAccountPermissions");
    for (method, resource, content, expected) in [
        ("GET", &*point, "", (404, "ResourceNotFound")),
        ("GET", "$MetricsFoo()", "", (400, "InvalidResourceName")),
        ("POST", "Tables", &create, refused),
        ("POST", name, entity, refused),
        ("PUT", &point, "{}", refused),
        ("MERGE", &point, "{}", refused),
        ("DELETE", &format!("Tables('{name}')"), "", refused),
        ("PUT", &format!("{name}?comp=acl"), "", refused),
    ] {
        let response = client.send(method, resource, &[], content);
        assert_eq!(status_and_code(&response), expected, "{method} {resource}");
    }
    let delete = client.send("DELETE", &point, &[("if-match", "*")], "");
    assert_eq!(status_and_code(&delete), refused);
    // They are in no list.
    let tables = client.send("GET", "Tables", &[], "");
    assert_eq!(body(&tables), r#"{"value":[{"TableName":"people"}]}"#);
}
