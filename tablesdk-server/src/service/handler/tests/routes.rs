//! The operation of each method on each resource, with its conditions, and the errors for all other requests.

use super::*;

const POINT: &str = "people(PartitionKey='p',RowKey='r')";
const ENTITY: &str = r#"{"PartitionKey":"p","RowKey":"r","a":1}"#;

/// A table with one entity.
fn people() -> Client {
    let client = Client::with_table();
    assert_eq!(client.send("POST", "people", &[], ENTITY).status(), 201);
    client
}

#[test]
fn a_verb_that_a_resource_does_not_have_is_refused() {
    let client = people();
    let not_allowed = (405, "MethodNotAllowed");
    for (resource, verbs) in [
        ("Tables", "PUT PATCH MERGE DELETE HEAD OPTIONS"),
        ("Tables('people')", "PUT PATCH MERGE POST HEAD OPTIONS"),
        ("people", "PUT PATCH MERGE DELETE HEAD OPTIONS"),
        ("people()", "PUT PATCH MERGE DELETE HEAD OPTIONS"),
        (POINT, "POST HEAD OPTIONS"),
        ("people?comp=acl", "POST PATCH MERGE DELETE OPTIONS"),
        (
            "?restype=service&comp=properties",
            "POST PATCH MERGE DELETE OPTIONS",
        ),
        (
            "?restype=service&comp=stats",
            "PUT POST PATCH MERGE DELETE OPTIONS",
        ),
        ("$batch", "GET PUT PATCH MERGE DELETE HEAD OPTIONS"),
        ("$metadata", "PUT POST PATCH MERGE DELETE HEAD OPTIONS"),
    ] {
        for verb in verbs.split(' ') {
            let response = client.send(verb, resource, &[], "");
            assert_eq!(status_and_code(&response), not_allowed, "{verb} {resource}");
        }
        for verb in ["BREW", "get", "TRACE", "CONNECT", "COPY"] {
            let response = client.send(verb, resource, &[], "");
            let expected = (405, "UnsupportedHttpVerb");
            assert_eq!(status_and_code(&response), expected, "{verb} {resource}");
        }
    }
}

#[test]
fn what_is_xml_can_be_asked_for_with_head() {
    let client = people();
    for resource in ["people?comp=acl", "?restype=service&comp=properties"] {
        let response = client.send("HEAD", resource, &[], "");
        assert_eq!(response.status(), 200, "{resource}");
        assert_eq!(header(&response, "content-type"), Some("application/xml"));
    }
    let missing = client.send("HEAD", "nobody?comp=acl", &[], "");
    assert_eq!(missing.status(), 404);
}

#[test]
fn the_model_names_the_properties_that_everything_has() {
    let client = people();
    for accept in ["application/xml", "application/json", "*/*"] {
        let response = client.send("GET", "$metadata", &[("accept", accept)], "");
        assert_eq!(response.status(), 200, "{accept}");
        assert_eq!(header(&response, "content-type"), Some("application/xml"));
        let text = body(&response);
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?><edmx:Edmx "));
        assert!(text.contains("<Schema Namespace=\"acct\" "), "{text}");
        for property in [
            "Name=\"PartitionKey\" Type=\"Edm.String\"",
            "Name=\"RowKey\" Type=\"Edm.String\"",
            "Name=\"Timestamp\" Type=\"Edm.DateTime\"",
            "Name=\"TableName\" Type=\"Edm.String\"",
        ] {
            assert!(text.contains(property), "{text}");
        }
        assert!(!text.contains("people"), "{text}");
    }
}

#[test]
fn a_resource_of_the_account_behind_a_table_is_told_so() {
    let client = people();
    let keys = "The number of keys specified in the URI does not match number of key properties for the resource 'acct.people'.";
    let multipart = [("content-type", "multipart/mixed; boundary=b")];
    for (method, resource, headers, content, expected, message) in [
        (
            "POST",
            "people/Tables",
            &[][..],
            r#"{"TableName":"more"}"#,
            (400, "PropertiesNeedValue"),
            "The values are not specified for all properties in the entity.",
        ),
        (
            "POST",
            "missing/Tables",
            &[],
            r#"{"TableName":"more"}"#,
            (404, "TableNotFound"),
            "The table specified does not exist.",
        ),
        (
            "DELETE",
            "people/Tables('x')",
            &[],
            "",
            (400, "InvalidInput"),
            keys,
        ),
        (
            "DELETE",
            "people/Tables%28%27people%27%29",
            &[],
            "",
            (400, "InvalidInput"),
            keys,
        ),
        (
            "GET",
            "people/Tables",
            &[],
            "",
            (501, "NotImplemented"),
            "The requested operation is not implemented on the specified resource.",
        ),
        (
            "GET",
            "people/Tables()?$top=1",
            &[],
            "",
            (501, "NotImplemented"),
            "",
        ),
        (
            "POST",
            "people/$batch",
            &multipart,
            "--b--",
            (415, "MediaTypeNotSupported"),
            "None of the provided media types are supported",
        ),
        (
            "PUT",
            "people/Tables",
            &[],
            "",
            (405, "MethodNotAllowed"),
            "",
        ),
        ("GET", "people/cities", &[], "", (400, "InvalidUri"), ""),
        ("GET", "people/$metadata", &[], "", (400, "InvalidUri"), ""),
    ] {
        let response = client.send(method, resource, headers, content);
        assert_eq!(status_and_code(&response), expected, "{method} {resource}");
        let text = body(&response);
        assert!(text.contains(message), "{method} {resource}: {text}");
    }
    let properties = "people/?restype=service&comp=properties";
    for method in ["GET", "PUT"] {
        let response = client.send(method, properties, &[], "");
        let expected = (400, "InvalidQueryParameterValue");
        assert_eq!(status_and_code(&response), expected, "{method}");
        assert!(body(&response).contains(
            "Value for one of the query parameters specified in the request URI is invalid."
        ));
    }
}

#[test]
fn a_post_stands_for_another_verb_once() {
    let client = people();
    for (method, values, expected) in [
        ("PUT", &["MERGE"][..], (400, "XMethodNotUsingPost")),
        ("GET", &["GET"], (400, "XMethodNotUsingPost")),
        ("POST", &["MERGE", "MERGE"], (400, "XMethodIncorrectCount")),
        ("POST", &["MERGE, PUT"], (400, "XMethodIncorrectCount")),
        ("PUT", &["MERGE", "PUT"], (400, "XMethodIncorrectCount")),
        ("POST", &["GET"], (400, "XMethodIncorrectValue")),
        ("POST", &["POST"], (400, "XMethodIncorrectValue")),
        ("POST", &["merge"], (400, "XMethodIncorrectValue")),
        ("POST", &[""], (400, "XMethodIncorrectValue")),
        ("POST", &["MERGE"], (204, "")),
        ("POST", &["PATCH"], (204, "")),
        ("POST", &["PUT"], (204, "")),
        // Without `If-Match`.
        ("POST", &["DELETE"], (400, "InvalidInput")),
    ] {
        let path = format!("/acct/{POINT}");
        let mut request = client.request(method, &path, &[], r#"{"a":1}"#);
        for value in values {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append("x-http-method", value);
        }
        client.sign(&mut request, Scheme::SharedKey);
        let response = client.call(request);
        assert_eq!(status_and_code(&response), expected, "{method} {values:?}");
    }
    // The rest of the verbs has the rest of the resources.
    let delete = [("x-http-method", "DELETE")];
    let response = client.send("POST", "Tables('people')", &delete, "");
    assert_eq!(response.status(), 204);
}

#[test]
fn a_condition_is_one_tag_on_an_entity() {
    let client = people();
    let current = etag(NOW);
    let current = current.replace("30Z", "30.0000001Z");
    let other = "W/\"0x8D\"";
    let invalid = (400, "InvalidInput");
    let no_condition: [(&str, &str); 0] = [];
    for (method, headers, expected) in [
        ("DELETE", &no_condition[..], invalid),
        ("DELETE", &[("if-none-match", "*")], invalid),
        ("PUT", &[("if-none-match", "*")], invalid),
        ("PUT", &[("if-none-match", &*current)], invalid),
        ("MERGE", &[("if-none-match", other)], invalid),
        ("PUT", &[("if-match", "*"), ("if-none-match", "*")], invalid),
        (
            "DELETE",
            &[("if-match", &*current), ("if-none-match", other)],
            invalid,
        ),
        ("PUT", &[("if-match", "test")], invalid),
        ("PUT", &[("if-match", "\"0x8D\"")], invalid),
        ("PUT", &[("if-match", "0x8D")], invalid),
        ("PUT", &[("if-match", "W/0x8D")], invalid),
        ("PUT", &[("if-match", "W/\"0x8D")], invalid),
        ("PUT", &[("if-match", "W/\"a\", W/\"b\"")], invalid),
        ("PUT", &[("if-match", "*, *")], invalid),
        ("PUT", &[("if-match", " ")], invalid),
        ("DELETE", &[("if-match", "\u{e9}")], invalid),
        (
            "PUT",
            &[("if-match", other)],
            (412, "UpdateConditionNotSatisfied"),
        ),
        (
            "MERGE",
            &[("if-match", &*current.to_lowercase())],
            (412, "UpdateConditionNotSatisfied"),
        ),
        (
            "DELETE",
            &[("if-match", "w/\"\"")],
            (412, "UpdateConditionNotSatisfied"),
        ),
        ("PUT", &[("if-match", &*current)], (204, "")),
        ("PUT", &[("if-match", "*")], (204, "")),
        ("PUT", &[], (204, "")),
    ] {
        let response = client.send(method, POINT, headers, r#"{"a":1}"#);
        assert_eq!(status_and_code(&response), expected, "{method} {headers:?}");
        if headers == [("if-match", "test")] {
            let message = "The etag value 'test' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.";
            assert!(body(&response).contains(message), "{}", body(&response));
        }
    }
    let path = format!("/acct/{POINT}");
    let mut twice = client.request("PUT", &path, &[("if-match", "*")], "");
    twice
        .headers_mut()
        .append("if-match", HeaderValue::from_static("*"));
    client.sign(&mut twice, Scheme::SharedKey);
    assert_eq!(status_and_code(&client.call(twice)), invalid);

    // Existence comes first.
    let missing = "people(PartitionKey='p',RowKey='missing')";
    let response = client.send("PUT", missing, &[("if-match", other)], "");
    assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
    // What is read has no condition.
    for name in ["if-match", "if-none-match"] {
        let response = client.send("GET", POINT, &[(name, other)], "");
        assert_eq!(response.status(), 200, "{name}");
    }
}

#[test]
fn a_table_has_no_condition() {
    let client = people();
    for name in ["if-match", "if-none-match"] {
        for (method, resource, content) in [
            ("GET", "Tables", ""),
            ("POST", "Tables", r#"{"TableName":"more"}"#),
            ("GET", "Tables('people')", ""),
            ("DELETE", "Tables('people')", ""),
        ] {
            let response = client.send(method, resource, &[(name, "*")], content);
            let expected = (400, "InvalidInput");
            assert_eq!(status_and_code(&response), expected, "{method} {resource}");
        }
    }
    let tables = client.send("GET", "Tables", &[], "");
    assert_eq!(body(&tables), r#"{"value":[{"TableName":"people"}]}"#);
}
