//! Differences of the form of responses.

use super::{Subject, differences, outcome, present};

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

    "Headers that no operation needs":
    async fn common_headers(subject: &Subject) -> ["Server, x-ms-client-request-id", "none", "Server, x-ms-client-request-id"] {
        let id = ["x-ms-client-request-id: abc"];
        let response = subject.send("GET /Tables", &id, "").await;
        assert!(response.header("x-ms-request-id").is_some(), "{response:?}");
        present(&response, &["Server", "x-ms-client-request-id"])
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
        match kinds.collect::<Vec<_>>().as_slice() {
            [] => "none".to_owned(),
            kinds => kinds.join(", "),
        }
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
}
