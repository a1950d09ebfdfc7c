//! The operations with XML bodies: stored access policies, service properties and statistics.

use super::*;

const ACL: &str = "people?comp=acl";
const PROPERTIES: &str = "?restype=service&comp=properties";
const START: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

#[test]
fn policies_are_given_back_as_they_were_given() {
    let client = Client::with_table();
    let get = || {
        let response = client.send("GET", ACL, &[("accept", "application/xml")], "");
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "content-type"), Some("application/xml"));
        for absent in ["cache-control", "x-content-type-options"] {
            assert_eq!(header(&response, absent), None);
        }
        assert_eq!(header(&response, "x-ms-version"), Some("2019-02-02"));
        let body = body(&response).strip_prefix(START).unwrap();
        body.to_owned()
    };
    assert_eq!(get(), "<SignedIdentifiers />");
    let set = "<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier><Id>all</Id><AccessPolicy><Start>2021-06-08T02:05:09Z</Start><Expiry>2030-01-01</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>some</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>none</Id><AccessPolicy /></SignedIdentifier></SignedIdentifiers>";
    let response = client.send("PUT", "PEOPLE?comp=acl", &[], set);
    assert_eq!((response.status().as_u16(), body(&response)), (204, ""));
    assert_eq!(
        get(),
        "<SignedIdentifiers><SignedIdentifier><Id>all</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2030-01-01T00:00:00.0000000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>some</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>none</Id></SignedIdentifier></SignedIdentifiers>"
    );
    // An empty body is an empty list.
    assert_eq!(client.send("PUT", ACL, &[], "").status(), 204);
    assert_eq!(get(), "<SignedIdentifiers />");
}

#[test]
fn policies_that_break_a_rule_change_nothing() {
    let client = Client::with_table();
    let identifier = |id: &str| format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>");
    let document = |content: &str| format!("<SignedIdentifiers>{content}</SignedIdentifiers>");
    let kept = document(&identifier("kept"));
    assert_eq!(client.send("PUT", ACL, &[], &kept).status(), 204);
    let invalid = (400, "InvalidXmlDocument");
    for content in [
        document(
            &(0..6)
                .map(|n| identifier(&n.to_string()))
                .collect::<String>(),
        ),
        document(&(identifier("a") + &identifier("a"))),
        document(&identifier(&"x".repeat(65))),
        document(
            "<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>x</Permission></AccessPolicy></SignedIdentifier>",
        ),
        document(
            "<SignedIdentifier><Id>a</Id><AccessPolicy><Start>2021-06-08T02:05:09.123Z</Start></AccessPolicy></SignedIdentifier>",
        ),
        "<!DOCTYPE x [<!ENTITY y 'z'>]><SignedIdentifiers />".to_owned(),
        "{}".to_owned(),
    ] {
        let response = client.send("PUT", ACL, &[], &content);
        assert_eq!(status_and_code(&response), invalid, "{content}");
        assert_eq!(header(&response, "content-type"), Some("application/xml"));
        assert_eq!(header(&response, "x-ms-error-code"), Some(invalid.1));
    }
    let response = client.send("GET", ACL, &[], "");
    assert_eq!(body(&response), format!("{START}{kept}"));

    for (method, resource, expected) in [
        ("GET", "nobody?comp=acl", (404, "TableNotFound")),
        ("PUT", "nobody?comp=acl", (404, "TableNotFound")),
        ("DELETE", ACL, (405, "MethodNotAllowed")),
        ("GET", "?comp=acl", (400, "InvalidQueryParameterValue")),
        (
            "GET",
            "Tables?comp=acl",
            (400, "InvalidQueryParameterValue"),
        ),
        (
            "GET",
            "people?comp=acls",
            (400, "InvalidQueryParameterValue"),
        ),
    ] {
        let response = client.send(method, resource, &[], "");
        assert_eq!(status_and_code(&response), expected, "{method} {resource}");
    }
}

#[test]
fn properties_change_as_far_as_they_are_given() {
    let client = Client::with_table();
    let get = || {
        let response = client.send("GET", PROPERTIES, &[], "");
        assert_eq!(response.status(), 200);
        body(&response).to_owned()
    };
    let initial = get();
    let content = initial.strip_prefix(START).unwrap();
    assert_eq!(
        content,
        "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>"
    );
    let rule = "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>";
    let set = |content: &str| {
        let document = format!("<StorageServiceProperties>{content}</StorageServiceProperties>");
        let response = client.send("PUT", PROPERTIES, &[], &document);
        (
            response.status().as_u16(),
            status_and_code(&response).1.to_owned(),
        )
    };
    let accepted = (202, String::new());
    assert_eq!(set(rule), accepted);
    assert_eq!(get(), initial.replace("<Cors />", rule));
    assert_eq!(set(""), accepted);
    assert_eq!(get(), initial.replace("<Cors />", rule));
    assert_eq!(set("<Cors></Cors>"), accepted);
    assert_eq!(get(), initial);

    let invalid = (400, "InvalidXmlDocument".to_owned());
    let days = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy></HourMetrics>";
    assert_eq!(set(days), invalid);
    assert_eq!(
        set("<HourMetrics><Enabled>true</Enabled></HourMetrics>"),
        invalid
    );
    let rules = rule.replace("<CorsRule>", "").replace("</CorsRule>", "");
    assert_eq!(set(&rules), invalid);
    let inner = rule.replace("<Cors>", "").replace("</Cors>", "");
    assert_eq!(set(&format!("<Cors>{}</Cors>", inner.repeat(6))), invalid);
    assert_eq!(get(), initial);

    for (method, resource, expected) in [
        ("PUT", PROPERTIES, (400, "InvalidXmlDocument")),
        ("POST", PROPERTIES, (405, "MethodNotAllowed")),
        (
            "GET",
            "?comp=properties",
            (400, "InvalidQueryParameterValue"),
        ),
        (
            "GET",
            "?restype=service",
            (400, "InvalidQueryParameterValue"),
        ),
        (
            "GET",
            "people/?restype=service&comp=properties",
            (400, "InvalidQueryParameterValue"),
        ),
    ] {
        let response = client.send(method, resource, &[], "");
        assert_eq!(status_and_code(&response), expected, "{method} {resource}");
    }
}

#[test]
fn the_secondary_alone_tells_how_far_it_is() {
    let client = Client::new();
    let primary = client.send("GET", "?restype=service&comp=stats", &[], "");
    let expected = (400, "InvalidQueryParameterValue");
    assert_eq!(status_and_code(&primary), expected);
    for path in [
        "/acct-secondary/",
        "/acct-secondary",
        "/acct-secondary/acct/",
    ] {
        let path = format!("{path}?restype=service&comp=stats");
        let mut request = client.request("GET", &path, &[], "");
        client.sign(&mut request, Scheme::SharedKey);
        assert_eq!(
            body(&client.call(request)),
            format!(
                "{START}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Fri, 15 Mar 2024 10:20:30 GMT</LastSyncTime></GeoReplication></StorageServiceStats>"
            )
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_document_is_answered(
        text in "(</?(SignedIdentifiers?|StorageServiceProperties|Cors|Id)( /)?>|&[a-z#0-9]{0,3};|<!|x){0,12}",
        resource in "people\\?comp=acl|\\?restype=service&comp=properties",
    ) {
        let client = Client::with_table();
        let status = client.send("PUT", &resource, &[], &text).status().as_u16();
        proptest::prop_assert!([202, 204, 400].contains(&status), "{status}");
    }
}
