//! Differences of single operations.

use tablesdk_server::testing::Throttle;

use super::{Subject, differences, outcome, present};

const ENTITY: &str = "/People(PartitionKey='p',RowKey='r')";

/// Inserts an entity of so many times half a mebibyte, as the service counts.
async fn insert_large(subject: &Subject, halves: usize) -> String {
    // Each character counts as two bytes.
    let part = "x".repeat(32 * 1024);
    let parts = (0..8 * halves).map(|index| format!(r#""P{index}":"{part}""#));
    let parts = parts.collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"large",{parts}}}"#);
    outcome(&subject.send("POST /People", &[], &body).await)
}

/// Evaluates a filter: `true` if it selects the entity, `false` if it does not, or the error.
async fn filtered(subject: &Subject, filter: &str) -> String {
    let filter = filter.replace(' ', "%20");
    let response = subject
        .send(&format!("GET /People()?$filter={filter}"), &[], "")
        .await;
    match response.status {
        200 => response.body.contains(r#""RowKey":"r""#).to_string(),
        _ => outcome(&response),
    }
}

/// The names of the properties of an entity, in their order.
async fn order(subject: &Subject) -> String {
    let path = "GET /People(PartitionKey='p',RowKey='order')";
    let plain = ["Accept: application/json;odata=nometadata"];
    let read = subject.send(path, &plain, "").await;
    let names = read.body.split(['{', ',']).filter_map(|member| {
        let (name, _) = member.strip_prefix('"')?.split_once("\":")?;
        Some(name)
    });
    names.collect::<Vec<_>>().join(", ")
}

differences! {
    "`PATCH`, a merge":
    async fn a_patch(subject: &Subject) -> ["204", "400 InvalidInput", "204"] {
        let merged = subject.send(&format!("PATCH {ENTITY}"), &[], "{}").await;
        let by_post = format!("POST {ENTITY}");
        let by_post = subject.send(&by_post, &["X-HTTP-Method: MERGE"], "{}").await;
        assert_eq!(by_post.status, 204, "{by_post:?}");
        outcome(&merged)
    }

    "An operation on entities of a missing table":
    async fn a_missing_table(subject: &Subject) -> ["404 TableNotFound", "404 ResourceNotFound", "404 TableNotFound"] {
        let insert = subject.send("POST /Missing", &[], r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
        let get = subject.send("GET /Missing(PartitionKey='p',RowKey='r')", &[], "").await;
        assert_eq!(outcome(&insert), outcome(&get));
        outcome(&get)
    }

    "The case of table names":
    async fn the_case_of_table_names(subject: &Subject) -> ["does not matter", "matters", "matters"] {
        let is_found = async |line, body| {
            let response = subject.send(line, &[], body).await;
            response.status != 404
        };
        assert!(is_found("GET /People()", "").await);
        let is_queried = is_found("GET /people()", "").await;
        for (line, body) in [
            ("GET /PEOPLE(PartitionKey='p',RowKey='r')", ""),
            ("GET /Tables('people')", ""),
            ("POST /people", r#"{"PartitionKey":"p","RowKey":"2"}"#),
        ] {
            assert_eq!(is_found(line, body).await, is_queried, "{line}");
        }
        if is_queried { "does not matter" } else { "matters" }.to_owned()
    }

    "The case of a table's name, to delete the table":
    async fn the_case_to_delete(subject: &Subject) -> ["204", "404 ResourceNotFound", "204"] {
        outcome(&subject.send("DELETE /Tables('people')", &[], "").await)
    }

    "A missing table that is read by its name":
    async fn a_missing_table_by_name(subject: &Subject) -> ["404 ResourceNotFound", "404 ResourceNotFound", "404 TableNotFound"] {
        outcome(&subject.send("GET /Tables('Missing')", &[], "").await)
    }

    "The name of a table before another resource":
    async fn a_misplaced_resource(subject: &Subject) -> ["400 PropertiesNeedValue", "400 InvalidInput", "400 PropertiesNeedValue"] {
        outcome(&subject.send("POST /People/Tables", &[], r#"{"TableName":"Others"}"#).await)
    }

    "A key in the body of an update that is not a string":
    async fn a_key_of_another_type(subject: &Subject) -> ["204", "400 InvalidInput", "204"] {
        let body = r#"{"PartitionKey@odata.type":"Edm.DateTime","PartitionKey":"2020-01-01T00:00:00Z"}"#;
        let update = format!("PUT {ENTITY}");
        let without = subject.send(&update, &[], "{}").await;
        assert_eq!(without.status, 204, "{without:?}");
        outcome(&subject.send(&update, &[], body).await)
    }

    "An insert of 1.5 MiB":
    async fn an_insert_of_one_and_a_half_mebibytes(subject: &Subject) -> ["400 EntityTooLarge", "201", "201"] {
        insert_large(subject, 3).await
    }

    "An insert of 2.5 MiB":
    async fn an_insert_of_two_and_a_half_mebibytes(subject: &Subject) -> ["400 EntityTooLarge", "400 EntityTooLarge", "201"] {
        insert_large(subject, 5).await
    }

    "An insert of 253 properties":
    async fn many_properties(subject: &Subject) -> ["400 TooManyProperties", "201"] {
        let properties = (0..253).map(|index| format!(r#""P{index}":1"#));
        let properties = properties.collect::<Vec<_>>().join(",");
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"many",{properties}}}"#);
        outcome(&subject.send("POST /People", &[], &body).await)
    }

    "A property whose name has 256 characters":
    async fn a_long_name(subject: &Subject) -> ["400 PropertyNameTooLong", "201"] {
        let name = "P".repeat(256);
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"long","{name}":1}}"#);
        outcome(&subject.send("POST /People", &[], &body).await)
    }

    "An insert with an empty key":
    async fn an_empty_key(subject: &Subject) -> ["201", "400 PropertiesNeedValue"] {
        let row = subject.send("POST /People", &[], r#"{"PartitionKey":"p","RowKey":""}"#).await;
        let partition = subject.send("POST /People", &[], r#"{"PartitionKey":"","RowKey":"r"}"#).await;
        assert_eq!(outcome(&row), outcome(&partition));
        outcome(&row)
    }

    "A property with the name `Etag`":
    async fn an_etag_as_a_property(subject: &Subject) -> ["is stored", "is left out"] {
        let body = r#"{"PartitionKey":"p","RowKey":"etag","etag":"a","Etag":"b"}"#;
        subject.send("POST /People", &[], body).await;
        let read = subject.send("GET /People(PartitionKey='p',RowKey='etag')", &[], "").await;
        assert!(read.body.contains(r#""etag":"a""#), "{read:?}");
        if read.body.contains(r#""Etag""#) { "is stored" } else { "is left out" }.to_owned()
    }

    "The order of properties after an insert":
    async fn the_order_after_an_insert(subject: &Subject) -> [
        "PartitionKey, RowKey, Timestamp, B, A",
        "B, RowKey, A, PartitionKey, Timestamp"
    ] {
        let body = r#"{"B":1,"RowKey":"order","A":2,"PartitionKey":"p"}"#;
        subject.send("POST /People", &[], body).await;
        order(subject).await
    }

    "The order of properties after a merge":
    async fn the_order_after_a_merge(subject: &Subject) -> [
        "PartitionKey, RowKey, Timestamp, A, B, C",
        "B, RowKey, PartitionKey, C, A, Timestamp"
    ] {
        let body = r#"{"B":1,"RowKey":"order","PartitionKey":"p","C":3}"#;
        subject.send("POST /People", &[], body).await;
        let merge = "POST /People(PartitionKey='p',RowKey='order')";
        let merged = subject.send(merge, &["X-HTTP-Method: MERGE"], r#"{"B":4,"A":2}"#).await;
        assert_eq!(merged.status, 204, "{merged:?}");
        order(subject).await
    }

    "`$select` of a property that the entity lacks":
    async fn a_selected_property_is_missing(subject: &Subject) -> ["null", "null", "omitted"] {
        let response = subject.send(&format!("GET {ENTITY}?$select=A,Nope"), &[], "").await;
        assert!(response.body.contains(r#""A":1"#), "{response:?}");
        let has_null = response.body.contains(r#""Nope":null"#);
        if has_null { "null" } else { "omitted" }.to_owned()
    }

    "A blank in `$select`":
    async fn a_blank_in_a_selection(subject: &Subject) -> ["is ignored", "is part of a name, which is null"] {
        let response = subject.send(&format!("GET {ENTITY}?$select=RowKey,%20A"), &[], "").await;
        if response.body.contains(r#"" A":null"#) {
            return "is part of a name, which is null".to_owned();
        }
        assert!(response.body.contains(r#""A":1"#), "{response:?}");
        "is ignored".to_owned()
    }

    "`$top` above 1,000":
    async fn a_large_top(subject: &Subject) -> ["400 InvalidInput", "400 InvalidInput", "200"] {
        outcome(&subject.send("GET /People()?$top=1001", &[], "").await)
    }

    "A filter with `null`":
    async fn a_filter_with_null(subject: &Subject) -> ["501 NotImplemented", "501 NotImplemented", "true of a missing property"] {
        let missing = filtered(subject, "Nope eq null").await;
        if missing != "true" {
            return missing;
        }
        assert_eq!(filtered(subject, "A eq null").await, "false");
        assert_eq!(filtered(subject, "A ne null").await, "false");
        "true of a missing property".to_owned()
    }

    "A filter that compares two properties":
    async fn a_filter_with_two_properties(subject: &Subject) -> ["501 NotImplemented", "501 NotImplemented", "200"] {
        let equal = filtered(subject, "PartitionKey ne RowKey").await;
        if equal != "true" {
            return equal;
        }
        assert_eq!(filtered(subject, "A eq A").await, "true");
        assert_eq!(filtered(subject, "A gt A").await, "false");
        assert_eq!(filtered(subject, "A ne Nope").await, "false");
        assert_eq!(filtered(subject, "Nope eq Neither").await, "true");
        "200".to_owned()
    }

    "A filter with a function":
    async fn a_filter_with_a_function(subject: &Subject) -> ["501 NotImplemented", "501 NotImplemented", "400 InvalidInput"] {
        filtered(subject, "startswith(PartitionKey,'p')").await
    }

    "A key that is compared with a binary literal":
    async fn a_key_as_bytes(subject: &Subject) -> ["false", "true"] {
        filtered(subject, "PartitionKey eq X'70'").await
    }

    "An integer beyond 32 bits without `L` in a filter":
    async fn a_long_without_its_suffix(subject: &Subject) -> ["400 InvalidInput", "400 InvalidInput", "true"] {
        filtered(subject, "A lt 2147483648").await
    }

    "A key as a condition":
    async fn a_key_as_a_condition(subject: &Subject) -> ["400 InvalidInput", "400 InvalidInput", "true"] {
        filtered(subject, "(PartitionKey) and (RowKey ge 'r')").await
    }

    "The case of a table's name in a filter":
    async fn the_case_in_a_filter(subject: &Subject) -> ["does not matter", "matters", "matters"] {
        let response = subject.send("GET /Tables?$filter=TableName%20eq%20'people'", &[], "").await;
        assert_eq!(response.status, 200, "{response:?}");
        let is_found = response.body.contains(r#""TableName":"People""#);
        if is_found { "does not matter" } else { "matters" }.to_owned()
    }

    "The name of a table with a hyphen":
    async fn a_bad_name(subject: &Subject) -> ["400 InvalidResourceName", "400 InvalidResourceName", "400"] {
        let created = outcome(&subject.send("POST /Tables", &[], r#"{"TableName":"a-b-c"}"#).await);
        let short = outcome(&subject.send("POST /Tables", &[], r#"{"TableName":"ab"}"#).await);
        assert_eq!(short.contains("OutOfRangeInput"), created.contains("InvalidResourceName"));
        let read = outcome(&subject.send("GET /a-b-c()", &[], "").await);
        assert_eq!(read, created);
        created
    }

    "An `Edm.Guid` that is no GUID":
    async fn an_other_guid(subject: &Subject) -> ["400 InvalidInput", "400 InvalidInput", "201"] {
        let body = r#"{"PartitionKey":"p","RowKey":"guid","G@odata.type":"Edm.Guid","G":"none"}"#;
        let inserted = outcome(&subject.send("POST /People", &[], body).await);
        if inserted == "201" {
            let read = subject.send("GET /People(PartitionKey='p',RowKey='guid')", &[], "").await;
            assert!(read.body.contains(r#""G":"none""#), "{read:?}");
        }
        inserted
    }

    "Six CORS rules":
    async fn six_cors_rules(subject: &Subject) -> ["400 InvalidXmlDocument", "501 NotImplemented", "202"] {
        let rule = "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders>*</AllowedHeaders>\
            <ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>1</MaxAgeInSeconds></CorsRule>";
        let document = format!("<StorageServiceProperties><Cors>{}</Cors></StorageServiceProperties>", rule.repeat(6));
        let headers = ["Accept: application/xml", "Content-Type: application/xml"];
        let line = "PUT /?restype=service&comp=properties";
        let set = outcome(&subject.send(line, &headers, &document).await);
        if set == "202" {
            let set = subject.send("GET /?restype=service&comp=properties", &headers[..1], "").await;
            assert_eq!(set.body.matches("<CorsRule>").count(), 6, "{set:?}");
            let none = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
            subject.send(line, &headers, none).await;
        }
        set
    }

    "Service properties, statistics and stored access policies":
    async fn settings(subject: &Subject) -> ["200", "501 NotImplemented", "200"] {
        let xml = ["Accept: application/xml"];
        let properties = subject.send("GET /?restype=service&comp=properties", &xml, "").await;
        let policies = subject.send("GET /People?comp=acl", &xml, "").await;
        assert_eq!(outcome(&properties), outcome(&policies));
        outcome(&properties)
    }

    "Service properties before they are set":
    async fn initial_properties(subject: &Subject) -> ["log off, metrics on", "501 NotImplemented", "log on, metrics off"] {
        let line = "GET /?restype=service&comp=properties";
        let response = subject.send(line, &["Accept: application/xml"], "").await;
        if response.status != 200 {
            return outcome(&response);
        }
        let is = |part: &str, name: &str| {
            let (_, rest) = response.body.split_once(&format!("<{part}>")).unwrap();
            let (_, value) = rest.split_once(&format!("<{name}>")).unwrap();
            if value.starts_with("true") { "on" } else { "off" }
        };
        let (log, metrics) = (is("Logging", "Read"), is("HourMetrics", "Enabled"));
        format!("log {log}, metrics {metrics}")
    }

    "A stored access policy without some of its fields":
    async fn a_partial_policy(subject: &Subject) -> ["204", "501 NotImplemented", "400"] {
        let body = "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        let xml = ["Accept: application/xml", "Content-Type: application/xml"];
        outcome(&subject.send("PUT /People?comp=acl", &xml, body).await)
    }

    "Throttling":
    async fn throttling(subject: &Subject) -> ["503 ServerBusy", "429 TooManyRequests x-ms-retry-after-ms, Retry-After", "503 ServerBusy"] {
        let server = subject.server.as_ref().unwrap();
        server.faults().throttle(Throttle::none().per_account(1));
        let mut response = subject.send("GET /Tables", &[], "").await;
        while response.status == 200 {
            response = subject.send("GET /Tables", &[], "").await;
        }
        let names = ["x-ms-retry-after-ms", "Retry-After"];
        let names = present(&response, &names).replace("none", "");
        format!("{} {names}", outcome(&response)).trim_end().to_owned()
    }
}
