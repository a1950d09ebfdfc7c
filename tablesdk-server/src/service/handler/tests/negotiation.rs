//! The headers and parameters of requests: versions, formats, preferences, checksum and timeout.

use super::*;

const ENTITY: &str = r#"{"PartitionKey":"p","RowKey":"r"}"#;
const SERVICE: &str = "?restype=service&comp=properties";

#[test]
fn every_date_is_a_version_and_comes_back() {
    let client = Client::with_table();
    for version in ["2013-08-15", "2019-02-02", "2026-04-06", "9999-12-31"] {
        let response = client.send("GET", "people()", &[("x-ms-version", version)], "");
        assert_eq!(response.status(), 200, "{version}");
        assert_eq!(header(&response, "x-ms-version"), Some(version));
    }
    let response = client.send("GET", "people()", &[("x-ms-version", "")], "");
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "x-ms-version"), None);
    for version in [
        "latest",
        "2019-2-2",
        "2019-02-30",
        "2019-02-02 ",
        "20190202",
        "*",
    ] {
        for resource in ["people()", SERVICE] {
            let headers = [("x-ms-version", version)];
            let response = client.send("GET", resource, &headers, "");
            let expected = (400, "InvalidHeaderValue");
            assert_eq!(status_and_code(&response), expected, "{version}");
            assert_eq!(header(&response, "x-ms-version"), None);
        }
    }
}

#[test]
fn json_needs_a_version_that_has_it() {
    let client = Client::with_table();
    let refused = (415, "JsonFormatNotSupported");
    for (name, version) in [
        ("x-ms-version", "2012-02-12"),
        ("x-ms-version", "2009-04-14"),
        ("dataserviceversion", "1.0;NetFx"),
        ("dataserviceversion", "2.0"),
        ("maxdataserviceversion", "2.0;NetFx"),
    ] {
        let headers = [(name, version)];
        for (method, resource, content) in [
            ("GET", "Tables", ""),
            ("POST", "Tables", r#"{"TableName":"more"}"#),
            ("GET", "people()", ""),
            ("POST", "people", ENTITY),
            ("GET", "people(PartitionKey='p',RowKey='r')", ""),
            ("PUT", "people(PartitionKey='p',RowKey='r')", "{}"),
        ] {
            let response = client.send(method, resource, &headers, content);
            assert_eq!(status_and_code(&response), refused, "{version} {resource}");
        }
        // What is no JSON has been there before it.
        let response = client.send("GET", SERVICE, &headers, "");
        assert_eq!(response.status(), 200, "{version}");
        let delete = [(name, version), ("if-match", "*")];
        let point = "people(PartitionKey='p',RowKey='r')";
        let response = client.send("DELETE", point, &delete, "");
        assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
    }
    let newest = [
        ("dataserviceversion", "1.0;NetFx"),
        ("maxdataserviceversion", "3.0;NetFx"),
    ];
    let response = client.send("GET", "people()?$select=a", &newest, "");
    assert_eq!(response.status(), 200);
}

#[test]
fn a_projection_needs_more_than_the_first_version_of_odata() {
    let client = Client::with_table();
    let headers = [("dataserviceversion", "1.0")];
    for resource in [
        "people()?$select=a",
        "people(PartitionKey='p',RowKey='r')?$select=a,b",
    ] {
        let response = client.send("GET", resource, &headers, "");
        assert_eq!(status_and_code(&response), (400, "InvalidInput"));
        assert!(body(&response).contains("One of the request inputs is not valid."));
    }
}

#[test]
fn the_most_specific_format_is_chosen() {
    let client = Client::with_table();
    let ok = |level: &str| format!("application/json;odata={level};streaming=true;charset=utf-8");
    let (none, minimal, full) = (ok("nometadata"), ok("minimalmetadata"), ok("fullmetadata"));
    for (accept, format, expected) in [
        ("", "", &minimal),
        ("*/*", "", &minimal),
        ("application/*", "", &minimal),
        ("application/json", "", &minimal),
        ("application/json;odata=nometadata", "", &none),
        ("Application/JSON; OData=NoMetadata", "", &none),
        (
            "application/json;charset=utf-8;odata=fullmetadata",
            "",
            &full,
        ),
        (
            "application/json, application/json;odata=fullmetadata",
            "",
            &full,
        ),
        (
            "application/atom+xml,application/json;odata=nometadata",
            "",
            &none,
        ),
        ("text/html, */*;q=0.1", "", &minimal),
        (
            "application/json;odata=verbose,application/json",
            "",
            &minimal,
        ),
        // `$format` wins, also over what could not be had.
        (
            "application/json;odata=nometadata",
            "application/json;odata=fullmetadata",
            &full,
        ),
        (
            "application/atom+xml",
            "application%2Fjson%3B%20odata%3Dnometadata",
            &none,
        ),
    ] {
        for resource in ["people()", "Tables", "Tables('people')"] {
            let resource = match format {
                "" => resource.to_owned(),
                format => format!("{resource}?$format={format}"),
            };
            let response = client.send("GET", &resource, &[("accept", accept)], "");
            assert_eq!(response.status(), 200, "{accept} {resource}");
            let content_type = header(&response, "content-type").unwrap();
            assert_eq!(content_type, expected, "{accept} {resource}");
        }
    }
    for (accept, format, expected) in [
        ("application/atom+xml", "", (415, "AtomFormatNotSupported")),
        (
            "application/atom+xml,application/xml",
            "",
            (415, "AtomFormatNotSupported"),
        ),
        (
            "application/json;odata=verbose",
            "",
            (415, "JsonVerboseFormatNotSupported"),
        ),
        ("text/html", "", (415, "MediaTypeNotSupported")),
        (
            "application/json",
            "application/atom%2Bxml",
            (415, "AtomFormatNotSupported"),
        ),
        (
            "application/json",
            "application/json;odata=verbose",
            (415, "JsonVerboseFormatNotSupported"),
        ),
    ] {
        let resource = match format {
            "" => "people()".to_owned(),
            format => format!("people()?$format={format}"),
        };
        let response = client.send("GET", &resource, &[("accept", accept)], "");
        assert_eq!(status_and_code(&response), expected, "{accept} {format}");
    }
    let mut two = client.request("GET", "/acct/people()", &[("accept", "*/*")], "");
    two.headers_mut().append(
        "accept",
        HeaderValue::from_static("application/json;odata=nometadata"),
    );
    client.sign(&mut two, Scheme::SharedKey);
    let response = client.call(two);
    assert_eq!(header(&response, "content-type"), Some(&*none));
}

#[test]
fn a_preference_is_honoured_in_every_form() {
    let client = Client::with_table();
    for (row, prefer, status, applied) in [
        ("1", "return-no-content", 204, Some("return-no-content")),
        ("2", "Return-No-Content;x=y", 204, Some("return-no-content")),
        (
            "3",
            "respond-async, return-content",
            201,
            Some("return-content"),
        ),
        (
            "4",
            "return-content, return-no-content",
            201,
            Some("return-content"),
        ),
        ("5", "return=minimal", 201, None),
    ] {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);
        let response = client.send("POST", "people", &[("prefer", prefer)], &entity);
        assert_eq!(response.status(), status, "{prefer}");
        assert_eq!(header(&response, "preference-applied"), applied, "{prefer}");
        assert_eq!(body(&response).is_empty(), status == 204, "{prefer}");
    }
}

#[test]
fn a_body_is_checked_against_its_checksum() {
    let client = Client::with_table();
    let right = "2VJhdZUhREIjY0yGA9BE7g==";
    let wrong = "1B2M2Y8AsgTpgAmY7PhCfg==";
    for (md5, expected) in [
        (wrong, (400, "Md5Mismatch")),
        ("nonsense", (400, "InvalidMd5")),
        ("1B2M2Y8AsgTpgAmY7PhC", (400, "InvalidMd5")),
        (right, (201, "")),
    ] {
        let response = client.send("POST", "people", &[("content-md5", md5)], ENTITY);
        assert_eq!(status_and_code(&response), expected, "{md5}");
    }
    // Without a body there is one, too; and other operations are guarded as well.
    for (md5, status) in [(wrong, 200), (right, 400)] {
        let response = client.send("GET", "people()", &[("content-md5", md5)], "");
        assert_eq!(response.status(), status, "{md5}");
    }
    let headers = [("content-md5", wrong)];
    let document = "<StorageServiceProperties />";
    let response = client.send("PUT", SERVICE, &headers, document);
    assert_eq!(status_and_code(&response), (400, "Md5Mismatch"));
}

#[test]
fn a_time_limit_is_a_number_of_seconds() {
    let client = Client::with_table();
    for (timeout, expected) in [
        ("30", (200, "")),
        ("1", (200, "")),
        ("", (200, "")),
        ("90", (200, "")),
        ("99999999999999999999999", (200, "")),
        ("0", (400, "OutOfRangeQueryParameterValue")),
        ("-1", (400, "InvalidQueryParameterValue")),
        ("1.5", (400, "InvalidQueryParameterValue")),
        ("%2B5", (400, "InvalidQueryParameterValue")),
        ("soon", (400, "InvalidQueryParameterValue")),
    ] {
        for resource in ["people()?", "Tables?", "people?comp=acl&"] {
            let resource = format!("{resource}timeout={timeout}");
            let response = client.send("GET", &resource, &[], "");
            assert_eq!(status_and_code(&response), expected, "{resource}");
        }
    }
}

#[test]
fn numbers_have_no_signs() {
    let client = Client::with_table();
    for top in ["%2B5", "+5", "-0", "5.0", "0x5", "1e1", "%205%20x"] {
        for resource in ["people()", "Tables"] {
            let response = client.send("GET", &format!("{resource}?$top={top}"), &[], "");
            assert_eq!(status_and_code(&response), (400, "InvalidInput"), "{top}");
        }
    }
    let response = client.send("GET", "people()?$top=007", &[], "");
    assert_eq!(response.status(), 200);
}

#[test]
fn a_client_id_comes_back_if_it_can() {
    let client = Client::with_table();
    let longest = "x".repeat(1024);
    let too_long = "x".repeat(1025);
    for (id, is_echoed) in [
        ("a", true),
        ("!~\"{}", true),
        (&*longest, true),
        (&*too_long, false),
        ("two words", false),
        ("caf\u{e9}", false),
        ("tab\there", false),
    ] {
        for resource in ["people()", "nobody()", SERVICE] {
            let headers = [("x-ms-client-request-id", id)];
            let response = client.send("GET", resource, &headers, "");
            let echoed = header(&response, "x-ms-client-request-id");
            assert_eq!(echoed, is_echoed.then_some(id), "{id:.20}");
        }
    }
}
