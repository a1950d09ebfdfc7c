//! Stored access policies, service properties and statistics as the service's documentation and recordings have them.

use tablesdk_server::TableServer;

use crate::raw::send;

const XML: &str = "Content-Type: application/xml";
const ACCEPT: &str = "Accept: application/xml";
const PROPERTIES: &str = "/?restype=service&comp=properties";

/// What every body of XML starts with; the first three bytes are a byte order mark.
const START: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";

async fn people() -> TableServer {
    let server = TableServer::start().await.unwrap();
    let json = "Content-Type: application/json";
    let created = send(
        &server,
        true,
        "POST /Tables",
        &[json],
        r#"{"TableName":"people"}"#,
    )
    .await;
    assert_eq!(created.status, 201, "{created:?}");
    server
}

#[tokio::test]
async fn stored_access_policies() {
    let server = people().await;
    let answer = send(&server, true, "GET /people?comp=acl", &[ACCEPT], "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body, format!("{START}<SignedIdentifiers />"));
    assert_eq!(answer.header("Content-Type"), Some("application/xml"));
    assert_eq!(answer.header("Cache-Control"), None);
    assert_eq!(answer.header("X-Content-Type-Options"), None);

    // As the Python client writes them.
    let policies = "<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier><Id>policy-1</Id><AccessPolicy><Start>2021-06-08T02:05:09Z</Start><Expiry>2021-06-08T03:10:09Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>partial</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id><AccessPolicy /></SignedIdentifier></SignedIdentifiers>";
    let answer = send(
        &server,
        true,
        "PUT /people?comp=acl",
        &[XML, ACCEPT],
        policies,
    )
    .await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (204, ""),
        "{answer:?}"
    );
    let answer = send(&server, true, "GET /people?comp=acl", &[ACCEPT], "").await;
    assert_eq!(
        answer.body,
        format!(
            "{START}<SignedIdentifiers><SignedIdentifier><Id>policy-1</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>partial</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id></SignedIdentifier></SignedIdentifiers>"
        )
    );
}

#[tokio::test]
async fn an_error_of_an_operation_with_xml_is_xml() {
    let server = people().await;
    let identifier = "<SignedIdentifier><Id>same</Id></SignedIdentifier>";
    let policies = format!("<SignedIdentifiers>{identifier}{identifier}</SignedIdentifiers>");
    let answer = send(&server, true, "PUT /people?comp=acl", &[XML], &policies).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(answer.header("Content-Type"), Some("application/xml"));
    assert_eq!(answer.header("x-ms-error-code"), Some("InvalidXmlDocument"));
    let start = "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>InvalidXmlDocument</m:code><m:message xml:lang=\"en-US\">XML specified is not syntactically valid.\nRequestId:";
    assert!(answer.body.starts_with(start), "{answer:?}");
    assert!(
        answer.body.ends_with("Z</m:message></m:error>"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn service_properties() {
    let server = people().await;
    let answer = send(&server, true, &format!("GET {PROPERTIES}"), &[ACCEPT], "").await;
    let initial = format!(
        "{START}<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>"
    );
    assert_eq!((answer.status, &answer.body), (200, &initial));
    assert_eq!(answer.header("Content-Type"), Some("application/xml"));

    let cors = "<Cors><CorsRule><AllowedOrigins>www.xyz.com,www.ab.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-data*,x-ms-meta-xyz</AllowedHeaders><ExposedHeaders>x-ms-meta-data*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>";
    for (rules, expected) in [
        (cors, initial.replace("<Cors />", cors)),
        ("", initial.replace("<Cors />", cors)),
        ("<Cors />", initial),
    ] {
        let body = format!(
            "<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties>{rules}</StorageServiceProperties>"
        );
        let answer = send(&server, true, &format!("PUT {PROPERTIES}"), &[XML], &body).await;
        assert_eq!((answer.status, &*answer.body), (202, ""), "{answer:?}");
        let answer = send(&server, true, &format!("GET {PROPERTIES}"), &[ACCEPT], "").await;
        assert_eq!(answer.body, expected);
    }
}

#[tokio::test]
async fn statistics_are_those_of_the_secondary() {
    let server = people().await;
    let request = "GET /?restype=service&comp=stats";
    let answer = send(&server, true, request, &[ACCEPT], "").await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(
        answer.header("x-ms-error-code"),
        Some("InvalidQueryParameterValue")
    );
    // The helper puts the account in front, so that this is `/acct-secondary/`.
    let request = "GET -secondary/?restype=service&comp=stats";
    let answer = send(&server, true, request, &[ACCEPT], "").await;
    let start =
        format!("{START}<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>");
    let end = " GMT</LastSyncTime></GeoReplication></StorageServiceStats>";
    assert!(
        answer.body.starts_with(&start) && answer.body.ends_with(end),
        "{answer:?}"
    );
}
