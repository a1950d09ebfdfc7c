//! Differences of the form of responses.

use super::{Subject, differences, or_none, outcome, present};

const ENTITY: &str = "/People(PartitionKey='p',RowKey='r')";

differences! {
    "The protocol version of a response":
    async fn the_version_of_a_response(subject: &Subject) -> ["2019-02-02", "none", "2026-06-06"] {
        let response = subject.send("GET /Tables", &[], "").await;
        response.header("x-ms-version").unwrap_or("none").to_owned()
    }

    "A request with an unknown protocol version":
    async fn an_unknown_version(subject: &Subject) -> ["200", "200", "400 InvalidHeaderValue"] {
        outcome(&subject.send("GET /Tables", &["x-ms-version: 2019-02-03"], "").await)
    }

    "The client's id of a request":
    async fn common_headers(subject: &Subject) -> ["x-ms-client-request-id", "none", "x-ms-client-request-id"] {
        let id = ["x-ms-client-request-id: abc"];
        let response = subject.send("GET /Tables", &id, "").await;
        assert!(response.header("x-ms-request-id").is_some(), "{response:?}");
        assert!(response.header("server").is_some(), "{response:?}");
        present(&response, &["x-ms-client-request-id"])
    }

    "The code of an error in the header `x-ms-error-code`":
    async fn the_code_in_a_header(subject: &Subject) -> ["XML, authentication", "none", "JSON, XML, authentication"] {
        let code = ["x-ms-error-code"];
        let has_code = |response| present(&response, &code) != "none";
        let json = subject.send("GET /Tables('Missing')", &[], "").await;
        let xml = subject.send("GET /Missing?comp=acl", &["Accept: application/xml"], "").await;
        let unsigned = subject.request(false, "GET /Tables", &[], "").await;
        let kinds = [("JSON", json), ("XML", xml), ("authentication", unsigned)];
        let kinds = kinds.into_iter().filter_map(|(kind, response)| has_code(response).then_some(kind));
        or_none(&kinds.collect::<Vec<_>>())
    }

    "The message of an error":
    async fn the_message_of_an_error(subject: &Subject) -> ["en-US, RequestId, Time", "en-us, RequestID", "en-US, RequestId, Time"] {
        let response = subject.send("GET /People(PartitionKey='p',RowKey='missing')", &[], "").await;
        let id = response.header("x-ms-request-id").unwrap();
        assert!(response.body.contains(id), "{response:?}");
        let (_, message) = response.body.split_once(r#""lang":""#).unwrap();
        let (language, text) = message.split_once(r#"","value":""#).unwrap();
        let lines = text.split(r"\n").skip(1).filter_map(|line| line.split_once(':'));
        let names = lines.map(|(name, _)| name);
        [language].into_iter().chain(names).collect::<Vec<_>>().join(", ")
    }

    "`odata.metadata` of a list":
    async fn the_metadata_of_a_list(subject: &Subject) -> ["first", "last", "first"] {
        let place = |body: &str| {
            let value = body.find(r#""value":["#).unwrap();
            let metadata = body.find(r#""odata.metadata":"#).unwrap();
            if metadata < value { "first" } else { "last" }
        };
        let entities = subject.send("GET /People()", &[], "").await.body;
        let tables = subject.send("GET /Tables", &[], "").await.body;
        for body in [&entities, &tables] {
            let start = body.find('{').unwrap();
            let end = body.rfind('}').unwrap();
            serde_json::from_str::<serde_json::Value>(&body[start..=end]).unwrap();
        }
        assert_eq!(place(&entities), place(&tables));
        place(&entities).to_owned()
    }

    "Zeros at the end of the fraction of a date and time":
    async fn digits_of_a_time(subject: &Subject) -> ["2020-01-01T01:02:00Z", "2020-01-01T01:02:00.0000000Z", "2020-01-01T01:02:00Z"] {
        let response = subject.send(&format!("GET {ENTITY}"), &[], "").await;
        let (_, time) = response.body.split_once(r#""D":""#).unwrap();
        time.split('"').next().unwrap().to_owned()
    }

    "`$format` of a query":
    async fn the_format_of_a_query(subject: &Subject) -> ["counts", "is ignored"] {
        let line = format!("GET {ENTITY}?$format=application/json;odata=fullmetadata");
        let response = subject.send(&line, &[], "").await;
        assert!(response.body.contains("odata.metadata"), "{response:?}");
        if response.body.contains("odata.editLink") { "counts" } else { "is ignored" }.to_owned()
    }

    "`Content-Type` of an entity":
    async fn the_type_of_an_entity(subject: &Subject) -> [
        "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
        "application/json;odata=minimalmetadata"
    ] {
        let response = subject.send(&format!("GET {ENTITY}"), &[], "").await;
        response.header("content-type").unwrap().to_owned()
    }

    "The metadata of an error, by its `Content-Type`":
    async fn the_level_of_an_error(subject: &Subject) -> [
        "as accepted",
        "as accepted for reads and 409, or else all"
    ] {
        let level = |response: &super::Response| {
            let content_type = response.header("content-type").unwrap();
            let (_, level) = content_type.split_once("odata=").unwrap();
            level.split(';').next().unwrap().to_owned()
        };
        let read = subject.send("GET /People(PartitionKey='p',RowKey='missing')", &[], "").await;
        let insert = subject.send("POST /People", &[], r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
        let update = "PUT /People(PartitionKey='p',RowKey='missing')";
        let update = subject.send(update, &["If-Match: *"], "{}").await;
        assert_eq!([read.status, insert.status, update.status], [404, 409, 404]);
        assert_eq!([level(&read), level(&insert)], ["minimalmetadata"; 2]);
        match level(&update).as_str() {
            "minimalmetadata" => "as accepted",
            "fullmetadata" => "as accepted for reads and 409, or else all",
            other => panic!("{other}"),
        }
        .to_owned()
    }

    "`Content-Type` of an upsert and of an update":
    async fn the_type_of_an_upsert(subject: &Subject) -> ["none", "application/json, none"] {
        let upsert = subject.send(&format!("PUT {ENTITY}"), &[], "{}").await;
        let update = subject.send(&format!("PUT {ENTITY}"), &["If-Match: *"], "{}").await;
        assert_eq!([upsert.status, update.status], [204, 204]);
        assert_eq!(update.header("content-type"), None);
        match upsert.header("content-type") {
            None => "none".to_owned(),
            Some(content_type) => format!("{content_type}, none"),
        }
    }

    "The ETag of a new table":
    async fn the_etag_of_a_table(subject: &Subject) -> ["none", "ETag"] {
        let created = subject.send("POST /Tables", &[], r#"{"TableName":"Others"}"#).await;
        assert_eq!(created.status, 201, "{created:?}");
        let etag = present(&created, &["ETag"]);
        subject.send("DELETE /Tables('Others')", &[], "").await;
        etag
    }

    "`odata.metadata` of an entity":
    async fn the_metadata_of_an_entity(subject: &Subject) -> [
        "/$metadata#People/@Element&$select=A",
        "/People/$metadata#People/@Element"
    ] {
        let response = subject.send(&format!("GET {ENTITY}?$select=A"), &[], "").await;
        let (_, url) = response.body.split_once(r#""odata.metadata":""#).unwrap();
        let (url, _) = url.split_once('"').unwrap();
        let account = format!("/{}", subject.client.key.account());
        url.split_once(&account).unwrap().1.to_owned()
    }

    "The phrase behind the status 200":
    async fn the_reason_phrase(subject: &Subject) -> ["OK", "Ok"] {
        let response = subject.send("GET /Tables", &[], "").await;
        let (_, phrase) = response.head.lines().next().unwrap().split_once(" 200 ").unwrap();
        phrase.to_owned()
    }

    "The character `@` in `Location`":
    async fn an_at_sign_in_a_location(subject: &Subject) -> ["%40", "@"] {
        let body = r#"{"PartitionKey":"p","RowKey":"a@b"}"#;
        let inserted = subject.send("POST /People", &[], body).await;
        let location = inserted.header("location").unwrap();
        let (_, key) = location.split_once("RowKey='a").unwrap();
        key.strip_suffix("b')").unwrap().to_owned()
    }
}
