//! `ls`, `query`, `get` and `schema`: what they print, to programs and to people.

use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use tablesdk::{DynamicEntity, TableServiceClient};

use super::run::run;
use super::{STRING, fill, server};

pub(crate) fn lines(out: &str) -> Vec<Json> {
    let lines = out.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn row_keys(out: &str) -> Vec<String> {
    let rows = lines(out).into_iter();
    rows.map(|row| row.get("RowKey").and_then(Json::as_str).unwrap().to_owned())
        .collect()
}

/// Three employees in two partitions.
async fn employees(service: &TableServiceClient) {
    let table = service.table("Employees");
    table.create_table().await.unwrap();
    for (department, id, name, age) in [
        ("Sales", "000001", "Ada", 36_i64),
        ("Sales", "000017", "a\u{202e}b", 7),
        ("Marketing", "000002", "", 45),
    ] {
        let employee = DynamicEntity::new(department, id);
        let employee = employee.with("Name", name).with("Age", age);
        table.insert(&employee).await.unwrap();
    }
    let noted = DynamicEntity::new("Sales", "000017").with("Note", vec![0_u8, 255]);
    table.upsert_merge(&noted).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_prints_the_entities_of_its_conditions() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    for (words, access, expected) in [
        (
            &["--partition", "Sales"][..],
            "partition",
            &["000001", "000017"][..],
        ),
        (
            &["--partition", "Sales", "--row", "000017"],
            "point",
            &["000017"],
        ),
        (
            &["--partition", "Sales", "--rows", "000002.."],
            "row range",
            &["000017"],
        ),
        (
            &["--partition", "Sales", "--rows", "..000017"],
            "row range",
            &["000001"],
        ),
        (
            &["--partition", "Sales", "--rows", "000001..000002"],
            "row range",
            &["000001"],
        ),
        (
            &["--partition", "Sales", "--row-prefix", "00001"],
            "row range",
            &["000017"],
        ),
        (
            &["--partition", "Sales", "--filter", "Age gt 7L"],
            "partition",
            &["000001"],
        ),
        (&["--scan"], "scan", &["000002", "000001", "000017"]),
        (&["--filter", "Age gt 40L", "--scan"], "scan", &["000002"]),
        (&["--partition", "Nobody"], "partition", &[]),
    ] {
        let words = [&["query", "Employees"], words].concat();
        let (code, out, errors) = run(&words, &account).await;
        assert_eq!(
            (code, row_keys(&out)),
            (0, expected.iter().map(ToString::to_string).collect()),
            "{words:?}: {errors}"
        );
        assert!(
            errors.starts_with(&format!("access: {access}, ")),
            "{errors}"
        );
        let more = errors.contains("; 1 request, and one for each further page\n");
        assert_eq!(more, access != "point", "{errors}");
        let notes = errors.lines().count();
        assert_eq!(notes, if expected.is_empty() { 2 } else { 1 }, "{errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_the_json_of_the_service() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let words = ["get", "Employees", "Sales", "000017"];
    let (code, out, errors) = run(&words, &account).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    let mut line = lines(&out).remove(0);
    let members = line.as_object_mut().unwrap();
    assert!(members.remove("Timestamp").is_some());
    let table = service.table("Employees");
    let stored = table.get::<DynamicEntity>(("Sales", "000017")).await;
    let stored = stored.unwrap().unwrap();
    let expected = json!({
        "odata.etag": stored.etag().as_str(),
        "PartitionKey": "Sales", "RowKey": "000017",
        "Age@odata.type": "Edm.Int64", "Age": "7",
        "Name": "a\u{202e}b",
        "Note@odata.type": "Edm.Binary", "Note": "AP8=",
    });
    assert_eq!(line, expected);

    let words = [
        "query",
        "Employees",
        "--partition",
        "Sales",
        "--select",
        "Age,Name",
        "--take",
        "1",
    ];
    let (_, out, _) = run(&words, &account).await;
    let line = lines(&out).remove(0);
    assert!(line.get("Note").is_none() && line["Age"] == "36", "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_and_wrong_arguments_send_nothing() {
    let (server, service, account) = server().await;
    employees(&service).await;
    let journal = server.journal();
    for (words, problem) in [
        (&["query", "Employees"][..], "use --scan"),
        (
            &["query", "Employees", "--filter", "Age gt 7"],
            "use --scan",
        ),
        (&["query", "Employees", "--filter", "Age >"], "Age >"),
        (&["query", "Employees", "--partition", "a/b"], "'/'"),
        (
            &["query", "Employees", "--partition", "a", "--rows", "1"],
            "two points",
        ),
        (
            &["query", "Employees", "--row", "1", "--rows", "1.."],
            "cannot be used with",
        ),
        (
            &["query", "Employees", "--partition", "a", "--continue", "x"],
            "token",
        ),
        (
            &["query", "Employees", "--partition", "a", "--take", "0"],
            "0",
        ),
        (&["query", "a", "--partition", "a"], "table"),
        (&["get", "Employees", "a\n", "1"], "partition key"),
        (&["quer", "Employees"], "query"),
    ] {
        let (code, out, errors) = run(words, &account).await;
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {errors}");
        assert!(errors.contains(problem), "{words:?}: {errors}");
    }
    assert_eq!(journal.requests().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_goes_on_where_an_earlier_one_ended() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 1_234).await;
    let query = ["query", "People", "--partition", "p"];
    let (_, out, errors) = run(&query, &account).await;
    assert_eq!(out.lines().count(), 1_000);
    let token = errors
        .split(' ')
        .skip_while(|word| *word != "--continue")
        .nth(1);
    let words = [&query[..], &["--continue", token.unwrap(), "--take", "200"]].concat();
    let (_, out, errors) = run(&words, &account).await;
    let next = row_keys(&out);
    assert_eq!(
        (next.len(), &*next[0], &*next[199]),
        (200, "01000", "01199")
    );
    assert!(errors.contains("--continue"), "{errors}");
    let (_, out, errors) = run(&[&query[..], &["--all"]].concat(), &account).await;
    assert_eq!(out.lines().count(), 1_234);
    assert!(!errors.contains("--continue"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_columns() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let words = ["query", "Employees", "--scan", "--output", "table"];
    let (code, out, _) = run(&words, &account).await;
    let rows: Vec<Vec<&str>> = out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(code, 0);
    assert_eq!(
        rows[0],
        ["PartitionKey", "RowKey", "Name", "Age", "Note", "Timestamp"]
    );
    assert_eq!(rows[1][..4], ["Marketing", "000002", "\"\"", "45"]);
    assert_eq!(rows[2][..4], ["Sales", "000001", "Ada", "36"]);
    assert_eq!(
        rows[3][..7],
        ["Sales", "000017", r"a\u{202e}b", "7", "2", "bytes:", "00ff"]
    );

    let words = ["get", "Employees", "Sales", "000001", "--output", "table"];
    let (_, out, _) = run(&words, &account).await;
    let rows: Vec<Vec<&str>> = out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[4], ["Age", "Edm.Int64", "36"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_has_a_line_for_each_type_of_a_property() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let retired = DynamicEntity::new("Sales", "000018").with("Age", "unknown");
    service.table("Employees").insert(&retired).await.unwrap();
    let (code, out, errors) = run(&["schema", "Employees"], &account).await;
    assert_eq!(
        (code, errors.as_str()),
        (0, "all 4 entities, in 2 partitions\n")
    );
    let ages: Vec<_> = lines(&out)
        .into_iter()
        .filter(|line| line["property"] == "Age")
        .collect();
    let line = |of_type: &str, entities: u64, smallest: &str, largest: &str, bytes: u64| {
        json!({
            "property": "Age", "type": of_type, "entities": entities, "smallest": smallest, "largest": largest,
            "bytesMean": bytes, "bytesMax": bytes,
        })
    };
    assert_eq!(
        ages,
        [
            line("Edm.Int64", 3, "7", "45", 8),
            line("Edm.String", 1, "unknown", "unknown", 18)
        ]
    );
    let words = ["schema", "Employees", "--sample", "2", "--output", "table"];
    let (_, out, _) = run(&words, &account).await;
    let age = out.lines().find(|line| line.starts_with("Age")).unwrap();
    let age: Vec<_> = age.split_whitespace().collect();
    assert_eq!(
        age,
        ["Age", "Edm.Int64", "2", "(100%)", "36", "45", "8", "8"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_listed_and_folded() {
    let (_server, service, account) = server().await;
    for name in ["Logins20240312", "Logins20240311", "employees", "Zebras"] {
        service.table(name).create_table().await.unwrap();
    }
    let (code, out, errors) = run(&["ls"], &account).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    let names = ["employees", "Logins20240311", "Logins20240312", "Zebras"];
    assert_eq!(lines(&out), names.map(|name| json!({ "table": name })));
    let (_, out, _) = run(&["ls", "--output", "table"], &account).await;
    assert_eq!(
        out,
        "employees\nLogins20240311 to Logins20240312 (2 tables)\nZebras\n"
    );
    let (_, out, _) = run(&["ls", "Log", "--output", "table"], &account).await;
    assert_eq!(out, "Logins20240311 to Logins20240312 (2 tables)\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_or_a_table_that_is_missing_is_an_error() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let (code, out, errors) = run(&["get", "Employees", "Sales", "9"], &account).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        errors,
        "tables: Employees has no entity (\"Sales\", \"9\")\n"
    );
    for words in [
        &["get", "Nothing", "a", "1"][..],
        &["query", "Nothing", "--scan"],
    ] {
        let (code, _, errors) = run(words, &account).await;
        assert!(
            code == 1 && errors.contains("TableNotFound"),
            "{code} {errors}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_ends_is_no_error() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 1_000).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
    command
        .env_clear()
        .env(STRING, &account)
        .args(["query", "People", "--partition", "p"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let ended = ended.await.unwrap();
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{errors}");
    assert!(!errors.contains("tables:"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_one_number() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let words = ["query", "Employees", "--partition", "Sales", "--count"];
    let (code, out, errors) = run(&words, &account).await;
    assert_eq!((code, out.as_str()), (0, "{\"count\":2}\n"), "{errors}");
    let words = [&words[..], &["--output", "table"]].concat();
    assert_eq!(run(&words, &account).await.1, "2\n");
    let words = [&words[..], &["--all"]].concat();
    assert_eq!(run(&words, &account).await.0, 2);
}
