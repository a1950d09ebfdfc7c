//! `mcp`: what an agent may do, and what its host sees on the streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use fastrand::Rng;
use serde_json::{Value as Json, json};
use tablesdk::{DynamicEntity, ErrorCode, TableEntity, TableServiceClient, Value};
use tablesdk_cli::lines::entity_json;
use tablesdk_server::testing::{Fault, Op};

use super::{STRING, fill, server};
use crate::run::run;

/// The program and its host, which speaks the lines of the protocol.
struct Host {
    program: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
    /// Each byte that the program has printed.
    seen: String,
}

impl Host {
    fn start(words: &[&str], account: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
        command.env_clear().env(STRING, account);
        command.arg("mcp").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
        Self {
            to: program.stdin.take(),
            from: BufReader::new(program.stdout.take().unwrap()),
            program,
            id: 0,
            seen: String::new(),
        }
    }

    /// Starts it, and begins a session.
    fn ready(words: &[&str], account: &str) -> Self {
        let mut host = Self::start(words, account);
        let client = json!({"name": "test", "version": "1"});
        let parameters =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let answer = host.ask("initialize", &parameters);
        let of_answer = |pointer| answer.pointer(pointer).and_then(Json::as_str);
        assert_eq!(of_answer("/result/protocolVersion"), Some("2025-06-18"));
        assert_eq!(of_answer("/result/serverInfo/name"), Some("tables"));
        host.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    fn line(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line.as_bytes()).unwrap();
        to.write_all(b"\n").unwrap();
        to.flush().unwrap();
    }

    fn send(&mut self, message: &Json) {
        self.line(&message.to_string());
    }

    /// Sends a request. Returns its id.
    fn request(&mut self, method: &str, parameters: &Json) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        id
    }

    fn receive(&mut self) -> Json {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        self.seen.push_str(&line);
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, parameters: &Json) -> Json {
        let id = self.request(method, parameters);
        let answer = self.receive();
        assert_eq!(answer.get("id"), Some(&id.into()), "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: &Json) -> Json {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The answer of a tool.
    fn answer(&mut self, tool: &str, arguments: &Json) -> Json {
        let (is_error, text) = text(&self.call(tool, arguments));
        assert!(!is_error, "{tool} {arguments}: {text}");
        assert!(text.len() <= 64 * 1024, "{tool}: {} bytes", text.len());
        serde_json::from_str(&text).unwrap()
    }

    /// The error of a tool.
    fn error(&mut self, tool: &str, arguments: &Json) -> String {
        let (is_error, text) = text(&self.call(tool, arguments));
        assert!(is_error, "{tool} {arguments}: {text}");
        text
    }

    /// Ends the input. Returns how the program ended, and standard error.
    fn end(mut self) -> (ExitStatus, String) {
        drop(self.to.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.from, &mut rest).unwrap();
        assert_eq!(rest, "", "no message is left");
        let output = self.program.wait_with_output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    }
}

/// The text of a tool's result, after a flag that is true if the result is an error.
fn text(answer: &Json) -> (bool, String) {
    let of_result = |pointer| answer.pointer(pointer).unwrap_or(&Json::Null);
    let blocks = of_result("/result/content").as_array().map(Vec::len);
    assert_eq!(blocks, Some(1), "{answer}");
    assert_eq!(of_result("/result/content/0/type"), "text");
    let text = of_result("/result/content/0/text").as_str().unwrap();
    let is_error = of_result("/result/isError").as_bool().unwrap();
    (is_error, text.to_owned())
}

fn row_keys(answer: &Json) -> Vec<&str> {
    let entities = answer.get("entities").and_then(Json::as_array).unwrap();
    let row_keys = entities.iter().map(|it| it.pointer("/entity/RowKey"));
    row_keys
        .map(|it| it.and_then(Json::as_str).unwrap())
        .collect()
}

async fn employees(service: &TableServiceClient) {
    let table = service.table("Employees");
    table.create_table().await.unwrap();
    for (department, id, age) in [("Sales", "1", 36_i64), ("Sales", "2", 45), ("IT", "3", 20)] {
        let employee = DynamicEntity::new(department, id).with("Age", age);
        table.insert(&employee).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_tables_under_keys() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    fill(&service, "People", 1).await;
    let mut host = Host::ready(&[], &account);

    let answer = host.answer("list_tables", &json!({}));
    let expected = json!({"tables": ["Employees", "People"], "requests": 1});
    assert_eq!(answer, expected);
    let answer = host.answer("list_tables", &json!({"prefix": "Peo"}));
    assert_eq!(answer["tables"], json!(["People"]));
    let answer = host.answer("list_tables", &json!({"continue": "employees"}));
    assert_eq!(answer["tables"], json!(["People"]));

    let answer = host.answer("table_schema", &json!({"table": "Employees"}));
    assert_eq!(
        (
            &answer["entities"],
            &answer["partitions"],
            &answer["requests"]
        ),
        (&3.into(), &2.into(), &1.into())
    );
    let age = json!({
        "property": "Age", "type": "Edm.Int64", "entities": 3, "smallest": "20", "largest": "45",
        "bytesMean": 8, "bytesMax": 8,
    });
    let properties = answer["properties"].as_array().unwrap();
    assert!(properties.contains(&age), "{answer}");

    let key = json!({"table": "Employees", "partitionKey": "Sales", "rowKey": "2"});
    let answer = host.answer("get_entity", &key);
    let stored = service
        .table("Employees")
        .get::<DynamicEntity>(("Sales", "2"));
    let stored = stored.await.unwrap().unwrap();
    assert_eq!(answer["etag"], stored.etag().as_str());
    assert_eq!(answer["entity"]["Age"], "45");
    assert_eq!(answer["entity"]["Age@odata.type"], "Edm.Int64");

    for (conditions, access, expected) in [
        (json!({"partition": "Sales"}), "partition", &["1", "2"][..]),
        (json!({"partition": "Sales", "row": "2"}), "point", &["2"]),
        (
            json!({"partition": "Sales", "rows": "2.."}),
            "row range",
            &["2"],
        ),
        (
            json!({"partition": "Sales", "rowPrefix": "1"}),
            "row range",
            &["1"],
        ),
        (
            json!({"partition": "Sales", "filter": "Age gt 40L"}),
            "partition",
            &["2"],
        ),
    ] {
        let mut arguments = conditions;
        arguments["table"] = "Employees".into();
        arguments["select"] = json!(["Age"]);
        let answer = host.answer("query_entities", &arguments);
        assert_eq!(row_keys(&answer), expected, "{arguments}");
        assert_eq!(
            (&answer["access"], &answer["requests"]),
            (&access.into(), &1.into())
        );
        assert!(
            answer["cost"].is_string() && answer.get("continue").is_none(),
            "{answer}"
        );
    }
    let (status, errors) = host.end();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("read-only, no table scans"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_needs_a_right() {
    let (server, service, account) = server().await;
    employees(&service).await;
    let journal = server.journal();
    let scan = json!({"table": "Employees", "filter": "Age gt 30L"});
    let mut host = Host::ready(&[], &account);
    let error = host.error("query_entities", &scan);
    assert!(
        error.contains("whole table") && error.contains("--allow-scans"),
        "{error}"
    );
    assert_eq!(journal.requests().count(), 0);

    let mut host = Host::ready(&["--allow-scans"], &account);
    let answer = host.answer("query_entities", &scan);
    assert_eq!(
        (row_keys(&answer), &answer["access"]),
        (vec!["1", "2"], &"scan".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_goes_on_where_an_earlier_answer_ended() {
    let (_server, service, account) = server().await;
    fill(&service, "People", 130).await;
    let mut host = Host::ready(&[], &account);
    let mut arguments = json!({"table": "People", "partition": "p"});
    let mut found = Vec::new();
    loop {
        let answer = host.answer("query_entities", &arguments);
        found.extend(row_keys(&answer).into_iter().map(str::to_owned));
        match answer.get("continue") {
            Some(token) => arguments["continue"] = token.clone(),
            None => break,
        }
    }
    let expected: Vec<_> = (0..130).map(|index| format!("{index:05}")).collect();
    assert_eq!(found, expected);

    arguments["partition"] = "q".into();
    let error = host.error("query_entities", &arguments);
    assert!(error.contains("page token"), "{error}");
}

/// A random seed, or the one of an earlier run.
#[expect(clippy::print_stdout, reason = "a test that fails shows it")]
fn seed() -> u64 {
    let earlier = std::env::var("TABLESDK_MCP_SEED");
    let seed = earlier.map_or_else(|_| fastrand::u64(..), |it| it.parse().unwrap());
    println!("TABLESDK_MCP_SEED={seed}");
    seed
}

/// Strings of any length and characters.
fn texts(rng: &mut Rng) -> String {
    let longest = rng.choice([10, 3_000, 32_000]).unwrap();
    let length = rng.usize(0..longest);
    let characters = [
        'a', 'ä', '漢', '"', '\\', '\n', '\u{1b}', '\u{202e}', '\u{9b}',
    ];
    let one = rng.choice(characters).unwrap();
    let is_uniform = rng.bool();
    let mut character = || {
        if is_uniform {
            one
        } else {
            rng.choice(characters).unwrap()
        }
    };
    (0..length).map(|_| character()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_bounded_and_says_how_to_read_on() {
    let mut rng = Rng::with_seed(seed());
    let (_server, service, account) = server().await;
    let table = service.table("Hostile");
    table.create_table().await.unwrap();
    let mut stored = Vec::new();
    for row in 0..12 {
        let mut entity = DynamicEntity::new("p\u{202e}'", format!("{row:03}"));
        // One has many properties that are not long.
        if row == 3 {
            for property in 0..rng.usize(100..200) {
                let text = "\u{202e}".repeat(rng.usize(500..1_024));
                entity.properties_mut().set(format!("Many{property}"), text);
            }
        }
        for property in 0..rng.usize(0..7) {
            let name = format!("P{property}{}", "ä".repeat(rng.usize(0..200)));
            entity.properties_mut().set(name, texts(&mut rng));
        }
        entity
            .properties_mut()
            .set("Bytes", Value::Binary(vec![7; rng.usize(0..9_000)]));
        stored.push(table.insert(&entity).await.unwrap());
    }
    let mut host = Host::ready(&[], &account);

    // All entities, each once, in their order.
    let mut arguments = json!({"table": "Hostile", "partition": "p\u{202e}'", "take": 1000});
    let mut shown: Vec<Json> = Vec::new();
    while shown.len() < stored.len() {
        let answer = host.answer("query_entities", &arguments);
        let note = answer["note"].as_str().unwrap_or_default();
        let is_cut = answer["entities"].to_string().contains("\"cut\":");
        assert_eq!(note.contains("get_entity with"), is_cut, "{note}");
        let goes_on = answer.get("continue").is_some();
        assert_eq!(note.contains("pass \"continue\""), goes_on, "{note}");
        let entities = answer["entities"].as_array().unwrap();
        assert!(!entities.is_empty(), "each answer goes on");
        shown.extend(entities.iter().cloned());
        arguments["continue"] = answer["continue"].clone();
    }
    for (entity, shown) in stored.iter().zip(&shown) {
        assert_eq!(shown["etag"], entity.etag().as_str());
        let json: Json = serde_json::from_slice(&entity_json(entity)).unwrap();
        for (name, _) in entity.properties().iter() {
            let expected = json[name].as_str().unwrap();
            if let Some(whole) = shown["entity"].get(name) {
                assert_eq!(whole.as_str(), Some(expected));
                continue;
            }
            let cut = &shown["cut"][name];
            if cut.is_null() {
                assert!(shown["omittedProperties"].as_u64() > Some(0), "{name}");
            } else {
                let text = cut["text"].as_str().unwrap();
                assert!(expected.starts_with(text) && text.len() < expected.len());
                assert_eq!(cut["characters"], expected.chars().count());
            }
            // The rest of it, from part to part.
            let mut read = String::new();
            while read.len() < expected.len() {
                let part = host.answer("get_entity", &json!({
                    "table": "Hostile", "partitionKey": entity.partition_key(), "rowKey": entity.row_key(),
                    "select": [name], "offset": read.chars().count(),
                }));
                let text = part["cut"][name]["text"].as_str().unwrap();
                assert!(!text.is_empty());
                read.push_str(text);
            }
            assert!(read == expected, "{name}");
        }
    }
    // What acts on a terminal is escaped in the text, and so is it in the line.
    assert!(!host.seen.contains(['\u{1b}', '\u{202e}', '\u{9b}']));
    host.answer("table_schema", &json!({"table": "Hostile"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_full_takes_two_requests() {
    let (_server, service, account) = server().await;
    let table = service.table("Large");
    table.create_table().await.unwrap();
    for row in 0..8 {
        let mut entity = DynamicEntity::new("p", row.to_string());
        for property in 0..10 {
            let name = format!("P{property}");
            entity.properties_mut().set(name, "x".repeat(1_000));
        }
        table.insert(&entity).await.unwrap();
    }
    let mut host = Host::ready(&[], &account);
    let query = json!({"table": "Large", "partition": "p"});
    let first = host.answer("query_entities", &query);
    assert_eq!((row_keys(&first).len(), &first["requests"]), (4, &2.into()));
    let query = json!({"table": "Large", "partition": "p", "continue": first["continue"]});
    let second = host.answer("query_entities", &query);
    assert_eq!(row_keys(&second), ["4", "5", "6", "7"]);
    assert_eq!(
        (&second["requests"], second.get("continue")),
        (&1.into(), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_do_not_fit_are_continued() {
    let (_server, service, account) = server().await;
    let mut names: Vec<_> = (0..900)
        .map(|n| format!("T{n:04}{}", "x".repeat(58)))
        .collect();
    for name in &names {
        service.table(name.as_str()).create_table().await.unwrap();
    }
    let wide = service.table(names[0].as_str());
    for row in 0..4 {
        let mut entity = DynamicEntity::new("p", row.to_string());
        for property in 0..150 {
            let name = format!("P{row}{property:03}{}", "x".repeat(200));
            entity.properties_mut().set(name, "value");
        }
        wide.insert(&entity).await.unwrap();
    }
    let mut host = Host::ready(&[], &account);
    let first = host.answer("list_tables", &json!({}));
    let second = host.answer("list_tables", &json!({"continue": first["continue"]}));
    let mut listed = first["tables"].as_array().unwrap().clone();
    listed.extend(second["tables"].as_array().unwrap().iter().cloned());
    assert_eq!(listed, names);
    assert!(second.get("continue").is_none());

    let table = names.remove(0);
    let mut arguments = json!({"table": table});
    let mut properties = Vec::new();
    loop {
        let answer = host.answer("table_schema", &arguments);
        properties.extend(answer["properties"].as_array().unwrap().iter().cloned());
        match answer.get("continue") {
            Some(next) => arguments["continue"] = next.clone(),
            None => break,
        }
    }
    assert_eq!(properties.len(), 2 + 4 * 150);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_not_valid_send_nothing() {
    let (server, service, account) = server().await;
    employees(&service).await;
    let journal = server.journal();
    let mut host = Host::ready(&["--write"], &account);
    let entity = json!({"PartitionKey": "Sales", "RowKey": "1"});
    for (tool, arguments, problem) in [
        (
            "list_tables",
            json!({"name": "E"}),
            "no argument \"name\", but",
        ),
        (
            "get_entity",
            json!({"table": "Employees", "partitionKey": "a"}),
            "\"rowKey\"",
        ),
        (
            "get_entity",
            json!({"table": "x", "partitionKey": "a", "rowKey": "b"}),
            "table",
        ),
        (
            "get_entity",
            json!({"table": "Employees", "partitionKey": "a", "rowKey": "b", "offset": 1}),
            "\"offset\" needs \"select\"",
        ),
        (
            "query_entities",
            json!({"table": "Employees", "partition": "a/b"}),
            "'/'",
        ),
        (
            "query_entities",
            json!({"table": "Employees", "partition": "a", "rows": "1"}),
            "two points",
        ),
        (
            "query_entities",
            json!({"table": "Employees", "partition": "a", "rows": "1..", "row": "1"}),
            "one of \"row\", \"rows\" and \"rowPrefix\"",
        ),
        (
            "query_entities",
            json!({"table": "Employees", "partition": "a", "filter": "Age >"}),
            "Age >",
        ),
        (
            "query_entities",
            json!({"table": "Employees", "partition": "a", "continue": "x"}),
            "token",
        ),
        (
            "query_entities",
            json!({"table": "Employees", "partition": "a", "take": 1001}),
            "between 1 and 1000",
        ),
        (
            "table_schema",
            json!({"table": "Employees", "sample": 0}),
            "between 1 and 10000",
        ),
        (
            "insert_entity",
            json!({"table": "Employees", "entity": {"RowKey": "1"}}),
            "no PartitionKey",
        ),
        (
            "insert_entity",
            json!({"table": "Employees", "entity": {"PartitionKey": "a", "RowKey": "1", "Age": [1]}}),
            "Age",
        ),
        (
            "replace_entity",
            json!({"table": "Employees", "entity": entity}),
            "\"etag\"",
        ),
        (
            "merge_entity",
            json!({"table": "Employees", "entity": entity, "etag": "*"}),
            "*",
        ),
        (
            "delete_entity",
            json!({"table": "Employees", "partitionKey": "a", "rowKey": "b", "etag": "x"}),
            "ETag",
        ),
    ] {
        let error = host.error(tool, &arguments);
        assert!(error.contains(problem), "{tool} {arguments}: {error}");
    }
    assert_eq!(journal.requests().count(), 0);

    let error = host.error(
        "query_entities",
        &json!({"table": "Employees", "partition": "a", "filter": "é".repeat(90_000)}),
    );
    assert!(
        error.len() < 16 * 1024 && error.contains("are cut"),
        "{} bytes",
        error.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_need_a_right_and_their_tools_have_hints() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let reads = [
        "list_tables",
        "table_schema",
        "get_entity",
        "query_entities",
    ];
    let mut host = Host::ready(&[], &account);
    let tools = host.ask("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, reads);
    let arguments = json!({"table": "Employees", "entity": {"PartitionKey": "a", "RowKey": "1"}});
    let answer = host.call("insert_entity", &arguments);
    let error = answer["error"]["message"].as_str().unwrap();
    assert!(error.contains("--write"), "{answer}");
    let answer = host.call("drop_table", &json!({}));
    assert_eq!(answer["error"]["code"], -32602);

    let mut host = Host::ready(&["--write"], &account);
    let tools = host.ask("tools/list", &json!({}));
    for tool in tools["result"]["tools"].as_array().unwrap() {
        let hints = &tool["annotations"];
        let is_read = reads.contains(&tool["name"].as_str().unwrap());
        assert_eq!(hints["readOnlyHint"], is_read, "{tool}");
        assert_eq!(hints["openWorldHint"], false);
        if !is_read {
            let destroys = tool["name"] != "insert_entity";
            assert_eq!(hints["destructiveHint"], destroys, "{tool}");
        }
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["description"].as_str().unwrap().len() > 40);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_is_changed_under_the_etag_that_was_read() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let table = service.table("Employees");
    let mut host = Host::ready(&["--write"], &account);
    let entity = json!({"PartitionKey": "Sales", "RowKey": "9", "Age": 7, "Name": "Ada"});
    let insert = json!({"table": "Employees", "entity": entity});
    let first = host.answer("insert_entity", &insert)["etag"].clone();
    let error = host.error("insert_entity", &insert);
    assert!(error.contains("EntityAlreadyExists"), "{error}");

    let part = json!({"PartitionKey": "Sales", "RowKey": "9", "Age": 8});
    let merge = json!({"table": "Employees", "entity": part, "etag": first});
    let second = host.answer("merge_entity", &merge)["etag"].clone();
    let stored = table
        .get::<DynamicEntity>(("Sales", "9"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(second, stored.etag().as_str());
    assert_eq!(stored.properties().read::<String>("Name").unwrap(), "Ada");
    assert_eq!(stored.properties().read::<i32>("Age").unwrap(), 8);

    for tool in ["merge_entity", "replace_entity"] {
        let error = host.error(tool, &merge);
        assert!(error.contains("was changed since it was read"), "{error}");
    }
    let keys = json!({"table": "Employees", "partitionKey": "Sales", "rowKey": "9", "etag": first});
    let error = host.error("delete_entity", &keys);
    assert!(error.contains("was changed since it was read"), "{error}");

    let replace = json!({"table": "Employees", "entity": part, "etag": second});
    let third = host.answer("replace_entity", &replace)["etag"].clone();
    let stored = table
        .get::<DynamicEntity>(("Sales", "9"))
        .await
        .unwrap()
        .unwrap();
    assert!(stored.properties().get("Name").is_none());
    let mut keys = keys;
    keys["etag"] = third;
    assert_eq!(host.answer("delete_entity", &keys)["deleted"], true);
    assert!(host.error("delete_entity", &keys).contains("has no entity"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replace_does_not_remove_a_value_that_was_cut() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let table = service.table("Employees");
    let long = DynamicEntity::new("Sales", "9").with("Note", "x".repeat(1025));
    let etag = table
        .insert(&long)
        .await
        .unwrap()
        .etag()
        .as_str()
        .to_owned();
    let mut host = Host::ready(&["--write"], &account);
    let mut replace = json!({
        "table": "Employees", "etag": etag, "entity": {"PartitionKey": "Sales", "RowKey": "9"},
    });
    let error = host.error("replace_entity", &replace);
    assert!(error.contains("\"Note\""), "{error}");
    replace["entity"]["Note"] = Json::Null;
    host.answer("replace_entity", &replace);
    let stored = table
        .get::<DynamicEntity>(("Sales", "9"))
        .await
        .unwrap()
        .unwrap();
    assert!(stored.properties().get("Note").is_none());
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_keeps_is_not_written() {
    let (_server, service, account) = server().await;
    let table = service.table("Indexed");
    table.create_table().await.unwrap();
    let ada = Employee {
        department: "Sales".to_owned(),
        id: 1,
        email: "ada@contoso.com".to_owned(),
    };
    table.insert(&ada).await.unwrap();
    let plain = service.table("Plain");
    plain.create_table().await.unwrap();
    let mut host = Host::ready(&["--write"], &account);
    for row in ["empid_000001", "email_ada@contoso.com"] {
        let keys = json!({"table": "Indexed", "partitionKey": "Sales", "rowKey": row});
        let etag = host.answer("get_entity", &keys)["etag"].clone();
        let mut delete = keys;
        delete["etag"] = etag.clone();
        let error = host.error("delete_entity", &delete);
        assert!(error.contains("nothing is written"), "{error}");
        let entity = json!({"PartitionKey": "Sales", "RowKey": row, "Email": "b@contoso.com"});
        for tool in ["merge_entity", "replace_entity"] {
            let change = json!({"table": "Indexed", "entity": entity, "etag": etag});
            let error = host.error(tool, &change);
            assert!(error.contains("ByEmail"), "{error}");
        }
    }
    for (name, entity) in [
        ("Indexed", json!({"PartitionKey": "Sales", "RowKey": "2"})),
        (
            "Plain",
            json!({"PartitionKey": "a", "RowKey": "~tablesdk.outbox.head"}),
        ),
        (
            "Plain",
            json!({"PartitionKey": "a", "RowKey": "1", "TablesdkIndex": "Employee.ByEmail"}),
        ),
        (
            "Plain",
            json!({"PartitionKey": "a", "RowKey": "2024!5be0cd19137e2179!01"}),
        ),
    ] {
        let error = host.error("insert_entity", &json!({"table": name, "entity": entity}));
        assert!(error.contains("nothing is written"), "{error}");
    }
    assert_eq!(plain.query::<DynamicEntity>().count().await.unwrap(), 0);
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_no_messages_do_not_end_the_program() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let mut host = Host::start(&[], &account);
    let lines = [
        "",
        "hello",
        "{\"jsonrpc\":",
        "[1,2]",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"unheard/of\"}",
        "\u{feff}null",
    ];
    for line in lines {
        host.line(line);
    }
    let mut rng = Rng::with_seed(seed());
    let bytes = (0..10_000).map(|_| rng.u8(..)).collect::<Vec<_>>();
    host.to.as_mut().unwrap().write_all(&bytes).unwrap();
    host.line("");
    host.line(&"[".repeat(1_000_000));
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    host.line(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\",\"params\":{deep}}}"
    ));
    host.line(&format!("\"{}\"", "x".repeat(5_000_000)));
    host.request("ping", &json!({}));
    let is_of = |answer: &Json, id: u64| answer["id"] == id;
    while !is_of(&host.receive(), 1) {}
    let client = json!({"name": "test", "version": "1"});
    let parameters =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    assert!(host.ask("initialize", &parameters)["result"].is_object());
    for line in lines {
        host.line(line);
    }
    let id = host.request("tools/call", &json!({"name": "list_tables"}));
    let answer = loop {
        let answer = host.receive();
        if is_of(&answer, id) {
            break answer;
        }
    };
    assert!(text(&answer).1.contains("Employees"));
    let (status, errors) = host.end();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_run_side_by_side_and_one_can_be_cancelled() {
    let (server, service, account) = server().await;
    employees(&service).await;
    let faults = server.faults();
    let mut held = faults
        .on(Op::QueryEntities)
        .times(8)
        .inject(Fault::no_response());
    let mut host = Host::ready(&[], &account);
    let query = json!({"table": "Employees", "partition": "Sales"});
    let call = json!({"name": "query_entities", "arguments": query});
    let slow: Vec<_> = (0..8).map(|_| host.request("tools/call", &call)).collect();
    held.wait_for_hits(8).await;
    // As many as run at the same time wait for the service. So these wait until one of them is
    // cancelled.
    let ids: Vec<_> = (0..20).map(|_| host.request("tools/call", &call)).collect();
    host.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow[3]},
    }));
    let mut answered: Vec<u64> = ids
        .iter()
        .map(|_| {
            let answer = host.receive();
            assert!(text(&answer).1.contains("\"requests\":1"), "{answer}");
            answer["id"].as_u64().unwrap()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    assert!(!host.seen.contains("cancelled"));
    for id in slow {
        host.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
        }));
    }
    let (status, errors) = host.end();
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_cancelled_is_carried_out() {
    let (server, service, account) = server().await;
    employees(&service).await;
    let faults = server.faults();
    let mut held = faults.next(Op::InsertEntity, Fault::no_response());
    let mut host = Host::ready(&["--write"], &account);
    let entity = json!({"PartitionKey": "Sales", "RowKey": "9"});
    let arguments = json!({"table": "Employees", "entity": entity});
    let call = json!({"name": "insert_entity", "arguments": arguments});
    let id = host.request("tools/call", &call);
    held.wait_for_hits(1).await;
    host.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
    }));
    // When this is answered, the program knows of it.
    host.ask("tools/list", &json!({}));
    faults.clear();
    let (status, errors) = host.end();
    assert_eq!(status.code(), Some(0), "{errors}");
    let stored = service
        .table("Employees")
        .get::<DynamicEntity>(("Sales", "9"));
    assert!(stored.await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_count_as_requests() {
    let (server, service, account) = server().await;
    employees(&service).await;
    server
        .faults()
        .next(Op::QueryEntities, Fault::error(ErrorCode::ServerBusy));
    let mut host = Host::ready(&[], &account);
    let query = json!({"table": "Employees", "partition": "Sales"});
    assert_eq!(host.answer("query_entities", &query)["requests"], 2);
    assert_eq!(host.answer("query_entities", &query)["requests"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_input_is_a_good_end() {
    let (_server, service, account) = server().await;
    employees(&service).await;
    let (status, errors) = Host::start(&[], &account).end();
    assert_eq!(status.code(), Some(0), "{errors}");

    // What was asked for before the end is answered.
    let mut host = Host::ready(&[], &account);
    let id = host.request("tools/call", &json!({"name": "list_tables"}));
    drop(host.to.take());
    assert_eq!(host.receive()["id"], id);
    assert_eq!(host.end().0.code(), Some(0));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_program_while_it_waits_for_input() {
    let (_server, _service, account) = server().await;
    let mut host = Host::ready(&[], &account);
    host.ask("ping", &json!({}));
    let id = host.program.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(killed.success());
    assert_eq!(host.program.wait().unwrap().code(), Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_contains_a_secret() {
    let (server, service, account) = server().await;
    employees(&service).await;
    let key = account.split("AccountKey=").nth(1).unwrap();
    let key = key.split(';').next().unwrap();
    let mut host = Host::ready(&["--write"], &account);
    let query = json!({"table": "Employees", "partition": "Sales"});
    for fault in [
        Fault::error(ErrorCode::AuthenticationFailed),
        Fault::error(ErrorCode::ResourceNotFound),
        Fault::corrupted_response(),
    ] {
        server.faults().on_reads().inject(fault);
        host.error("list_tables", &json!({}));
        host.error("query_entities", &query);
        server.faults().clear();
    }
    host.answer("query_entities", &query);
    let seen = host.seen.clone();
    let (_, errors) = host.end();
    for text in [&seen, &errors] {
        assert!(!text.contains(key) && !text.contains("SharedKey"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_an_account_does_not_start() {
    let (code, out, errors) = run(&["mcp", "--table-endpoint", "x"], "").await;
    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    let (_server, _service, account) = server().await;
    let (code, out, errors) = run(&["mcp", "--output", "json"], &account).await;
    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    assert!(errors.contains("--output"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_help_has_the_configuration_of_a_host() {
    let (code, out, _) = run(&["mcp", "--help"], "").await;
    let from = out.split_once("{\"mcpServers\"").unwrap().1;
    let entry = from.split_once("}}}").unwrap().0;
    let entry: Json = serde_json::from_str(&format!("{{\"mcpServers\"{entry}}}}}}}")).unwrap();
    let server = &entry["mcpServers"]["tables"];
    assert_eq!((code, &server["args"]), (0, &json!(["mcp"])));
    assert!(server["env"][STRING].is_string());
}
