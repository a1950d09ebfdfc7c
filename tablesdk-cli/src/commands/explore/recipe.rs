//! The texts that a page offers for use elsewhere: a query or an entity as a Rust program and as a
//! `curl` command, a row and a cell. No text contains a credential: the program and the command
//! take it from an environment variable. This file knows nothing of HTML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tablesdk::{DynamicEntity, Error, TableClient, Value};
use tablesdk_cli::lines::entity_json;

use crate::commands::query::Asked;
use crate::escape::harmless_json;
use crate::selection::{Rows, Selection};

/// A program that prints the entities of a query. `select` has the properties to read, or none for
/// all of them.
pub(super) fn rust_query(
    table: &str,
    selection: &Selection,
    select: &[String],
    page_size: usize,
) -> String {
    let mut calls = vec![".query::<DynamicEntity>()".to_owned()];
    calls.extend(conditions(selection));
    if !select.is_empty() {
        let names: Vec<_> = select.iter().map(|name| rust(name)).collect();
        let names = names.join(", ");
        calls.push(format!(".select(|e| e.properties([{names}]))"));
    }
    calls.push(format!(".page_size({page_size})"));
    calls.push(".stream()".to_owned());
    let (query, table) = (chain(&calls), rust(table));
    format!(
        "\
//! [dependencies]
//! futures = \"0.3\"
//! tablesdk = \"{VERSION}\"
//! tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}

use futures::TryStreamExt as _;
use tablesdk::{{DynamicEntity, TableServiceClient}};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    // The connection string in $AZURE_STORAGE_CONNECTION_STRING.
    let service = TableServiceClient::from_env()?;
    let table = service.table({table});
    let mut entities = {query};
    while let Some(entity) = entities.try_next().await? {{
        println!(\"{{}} {{}}\", entity.partition_key(), entity.row_key());
        for (name, value) in entity.properties().iter() {{
            println!(\"    {{name}}: {{value:?}}\");
        }}
    }}
    Ok(())
}}
"
    )
}

/// A program that prints an entity.
pub(super) fn rust_entity(table: &str, partition: &str, row: &str) -> String {
    let (table, partition, row) = (rust(table), rust(partition), rust(row));
    format!(
        "\
//! [dependencies]
//! tablesdk = \"{VERSION}\"
//! tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}

use tablesdk::{{DynamicEntity, TableServiceClient}};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    // The connection string in $AZURE_STORAGE_CONNECTION_STRING.
    let service = TableServiceClient::from_env()?;
    let table = service.table({table});
    let key = ({partition}, {row});
    let entity = table.get::<DynamicEntity>(key).await?;
    let entity = entity.ok_or(\"there is no such entity\")?;
    for (name, value) in entity.properties().iter() {{
        println!(\"{{name}}: {{value:?}}\");
    }}
    Ok(())
}}
"
    )
}

/// The calls that restrict a query, as [`Selection::query`] makes them.
fn conditions(selection: &Selection) -> Vec<String> {
    let Selection {
        partition,
        row,
        rows,
        row_prefix,
        filter,
    } = selection;
    let of_row = |call: &str, text: &str| {
        let text = rust(text);
        format!(".filter(|e| e.property(\"RowKey\").{call}({text}))")
    };
    let of_rows = |call: &str, text: Option<&String>| {
        let text = text.filter(|text| !text.is_empty());
        text.map(|text| of_row(call, text))
    };
    let [from, to] = match rows {
        Some(Rows { from, to }) => [Some(from), Some(to)],
        None => [None, None],
    };
    let calls = [
        partition
            .as_ref()
            .map(|it| format!(".partition({})", rust(it))),
        row.as_ref().map(|it| of_row("eq", it)),
        row_prefix.as_ref().map(|it| of_row("starts_with", it)),
        of_rows("ge", from),
        of_rows("lt", to),
        filter.as_ref().map(|it| format!(".odata({})", rust(it))),
    ];
    calls.into_iter().flatten().collect()
}

/// The calls behind `table`, as rustfmt would break them.
fn chain(calls: &[String]) -> String {
    let line = format!("table{}", calls.concat());
    if line.chars().count() <= CHAIN_MAX {
        return line;
    }
    let calls = calls.iter().map(|call| format!("\n        {call}"));
    format!("table{}", calls.collect::<String>())
}

/// A literal of Rust. Characters that act on their reader are escaped.
fn rust(text: &str) -> String {
    format!("{text:?}")
}

/// The command that gets the first page of a query.
pub(super) fn curl_query(asked: &Asked, page_size: usize) -> Result<String, Error> {
    Ok(curl(asked.explain_page(page_size)?.url()))
}

/// The command that gets an entity.
pub(super) fn curl_entity(
    table: &TableClient,
    partition: &str,
    row: &str,
) -> Result<String, Error> {
    let query = table.query::<DynamicEntity>().partition(partition);
    let query = query.filter(|e| e.property("RowKey").eq(row));
    Ok(curl(query.explain()?.url()))
}

/// The command that sends a request to this URL, which has no signature. A shared access signature
/// is taken from `$AZURE_STORAGE_SAS_TOKEN`, with or without its question mark.
fn curl(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    let sas = sas(url);
    let url = shell(&format!("{url}{separator}"));
    format!(
        "\
# export AZURE_STORAGE_SAS_TOKEN=\"$({sas})\"
curl --silent --show-error --globoff \\
  --header 'Accept: application/json;odata=minimalmetadata' \\
  {url}\"${{AZURE_STORAGE_SAS_TOKEN#\\?}}\"
"
    )
}

/// The command that signs for the reading of the table of a URL. The key is that of the
/// environment; that of an emulator is known.
fn sas(url: &str) -> String {
    let path = url.split_once("()").map_or(url, |it| it.0);
    let (endpoint, table) = path.rsplit_once('/').unwrap_or_default();
    let account = match endpoint.strip_suffix(EMULATOR) {
        Some(host) => format!(" --table-endpoint {host}{EMULATOR}"),
        None => String::new(),
    };
    format!("tables sas {table} --permissions r --for 1h{account}")
}

/// A word of a shell, in which nothing acts.
fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// An entity as a line of JSON, as `tables put` reads it: without its version, which is another one
/// when it is pasted.
pub(super) fn row(entity: &DynamicEntity) -> String {
    harmless_json(&String::from_utf8_lossy(&entity_json(entity)))
}

/// A value as text: the string itself, and bytes in Base64.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Binary(bytes) => STANDARD.encode(bytes),
        Value::String(text) => text.clone(),
        other => crate::show::cell(other),
    }
}

/// The libraries have the version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The end of the endpoint of an emulator.
const EMULATOR: &str = "/devstoreaccount1";
/// rustfmt's width of a chain in one line.
const CHAIN_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use tablesdk::sas::Permissions;
    use tablesdk::{RetryPolicy, TableServiceClient};
    use tablesdk_server::TableServer;

    use super::*;
    use crate::escape::acts;

    /// Difficult characters that keys can have.
    const AWKWARD: [&str; 6] = [
        "O'Brien \"quoted\"",
        "$HOME $(id) `id` !x",
        "100% {a,b} [1-3]",
        "\u{1f600}\u{202e}abc\u{feff}",
        "a&b=c;d|e>f~*",
        "",
    ];

    fn selection(partition: &str) -> Selection {
        Selection {
            partition: Some(partition.to_owned()),
            row: None,
            rows: None,
            row_prefix: None,
            filter: None,
        }
    }

    /// Selections that find the entity of each partition, and those that find none.
    fn selections(partition: &str, row: &str) -> Vec<(Selection, usize)> {
        let rows = |from: &str, to: &str| Rows {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let found = [
            selection(partition),
            Selection {
                row: Some(row.to_owned()),
                ..selection(partition)
            },
            Selection {
                rows: Some(rows(row, "\u{10ffff}")),
                ..selection(partition)
            },
            Selection {
                row_prefix: Some(row.to_owned()),
                filter: Some(
                    "Note eq 'a ''quoted''\n\\\"line\"' and Age lt 9000000000L".to_owned(),
                ),
                ..selection(partition)
            },
        ];
        let missed = Selection {
            rows: Some(rows("\u{10ffff}", "")),
            ..selection(partition)
        };
        let found = found.into_iter().map(|it| (it, 1));
        found.chain([(missed, 0)]).collect()
    }

    async fn filled() -> (TableServer, String, TableClient) {
        let server = TableServer::start().await.expect("a server");
        let account = server.connection_string();
        let service = TableServiceClient::from_connection_string(&account).expect("a client");
        let table = service.table("Employees");
        table.create_table().await.expect("the table is new");
        for key in AWKWARD {
            let entity = DynamicEntity::new(key, key)
                .with("Note", "a 'quoted'\n\\\"line\"")
                .with("Age", 36_i64)
                .with("Other", "x");
            table.insert(&entity).await.expect("the keys are valid");
        }
        (server, account, table)
    }

    /// Compiles the programs as one, which runs the one with the number that is its argument.
    fn compiled(place: &Path, programs: &[String]) -> PathBuf {
        let modules = programs.iter().zip(0..).map(|(program, number)| {
            let program = program.replace("async fn main", "pub async fn main");
            format!("mod m{number} {{\n{program}}}\n")
        });
        let calls = 0..programs.len();
        let calls = calls.map(|number| format!("\"{number}\" => m{number}::main(),"));
        let (modules, calls) = (modules.collect::<String>(), calls.collect::<String>());
        let source = format!(
            "#![allow(warnings)]\n{modules}fn main() {{ match &*std::env::args().nth(1).unwrap() {{ {calls} _ => panic!() }}.unwrap() }}"
        );
        let (file, program) = (place.join("main.rs"), place.join("program"));
        fs::write(&file, source).expect("the file is new");
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(compiler)
            .args(["--edition=2024", "--color=never", "-Cdebuginfo=0"])
            .args(tablesdk_rustc_args::library_options!())
            .arg("-o")
            .args([&program, &file])
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        program
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
    }

    async fn output(mut command: Command) -> Output {
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("nothing panics").expect("the program runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_program_of_a_page_compiles_and_prints_its_entities() {
        let (_server, account, _) = filled().await;
        let select = ["Age".to_owned(), "Note".to_owned()];
        let mut programs = Vec::new();
        let mut expected = Vec::new();
        for key in AWKWARD {
            for (selection, count) in selections(key, key) {
                programs.push(rust_query("Employees", &selection, &select, 3));
                expected.push((key, count));
            }
            programs.push(rust_entity("Employees", key, key));
            expected.push((key, 1));
        }
        for program in &programs {
            let acting = program.chars().find(|it| acts(*it) && *it != '\n');
            assert_eq!(acting, None, "{program}");
        }
        let place = tempfile::tempdir().expect("a folder");
        let program = compiled(place.path(), &programs);
        for (number, (key, count)) in expected.into_iter().enumerate() {
            let mut command = Command::new(&program);
            command.arg(number.to_string());
            command.env("AZURE_STORAGE_CONNECTION_STRING", &account);
            let out = text(&output(command).await.stdout);
            // The last program of each key reads one entity, with all properties.
            if number % 6 == 5 {
                let lines: Vec<_> = out.lines().collect();
                assert!(lines.contains(&"Age: Int64(36)"), "{out}");
                assert!(lines.contains(&"Other: String(\"x\")"), "{out}");
                continue;
            }
            let found = out.lines().filter(|line| !line.starts_with("    "));
            let found: Vec<_> = found.collect();
            assert_eq!(found, vec![format!("{key} {key}"); count], "{out}");
            assert_eq!(out.lines().count(), 3 * count, "{out}");
        }
    }

    #[test]
    fn a_program_is_as_rustfmt_writes_it() {
        let place = tempfile::tempdir().expect("a folder");
        let long = Selection {
            row_prefix: Some("empid_".to_owned()),
            ..selection("Sales")
        };
        let short = Selection {
            partition: None,
            ..selection("")
        };
        let programs = [
            rust_query("Employees", &long, &["Age".to_owned()], 100),
            rust_query("Employees", &short, &[], 100),
            rust_entity("Employees", "Sales", "000017"),
        ];
        for (number, program) in programs.iter().enumerate() {
            let file = place.path().join(format!("{number}.rs"));
            fs::write(&file, program).expect("the file is new");
            let formatter = Command::new("rustfmt")
                .args(["--edition=2024", "--check"])
                .arg(file)
                .output();
            match formatter {
                Ok(output) => assert!(output.status.success(), "{}", text(&output.stdout)),
                Err(error) => println!("the format was not checked: {error}"),
            }
        }
    }

    #[test]
    fn the_signature_of_a_command_comes_from_a_command() {
        for (url, command) in [
            (
                "https://contoso.table.core.windows.net/Employees()?$filter=a",
                "tables sas Employees --permissions r --for 1h",
            ),
            (
                "http://azurite:10002/devstoreaccount1/Employees()",
                "tables sas Employees --permissions r --for 1h --table-endpoint http://azurite:10002/devstoreaccount1",
            ),
        ] {
            let line = format!("# export AZURE_STORAGE_SAS_TOKEN=\"$({command})\"");
            assert_eq!(curl(url).lines().next(), Some(&*line));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_shell_passes_the_url_on_as_it_is() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().expect("a folder");
        let fake = place.path().join("curl");
        fs::write(&fake, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").expect("the file is new");
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o700)).expect("it is ours");
        for text_of_url in AWKWARD.map(|key| format!("http://host/t()?$filter=a eq '{key}'")) {
            for token in ["sv=1&sig=%2B", "?sv=1&sig=%2B"] {
                let mut command = Command::new("bash");
                command.args(["-c", &curl(&text_of_url)]);
                let path = format!("{}:/usr/bin:/bin", place.path().display());
                command
                    .env("PATH", path)
                    .env("AZURE_STORAGE_SAS_TOKEN", token);
                let out = text(&output(command).await.stdout);
                let url = out.lines().last().unwrap_or_default();
                assert_eq!(url, format!("{text_of_url}&sv=1&sig=%2B"));
            }
        }
        assert!(curl("http://host/t()").contains("'http://host/t()?'\"$"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_command_of_a_page_gets_its_entities() {
        if Command::new("curl").arg("--version").output().is_err() {
            println!("there is no curl");
            return;
        }
        let (_server, account, table) = filled().await;
        let minute = std::time::Duration::from_secs(60);
        let sas = table.sas().allow(Permissions::READ).expires_in(minute);
        let sas = sas.sign().expect("the client has a key").expose();
        let (_, token) = sas.split_once('?').expect("it is a query");
        let mut commands = Vec::new();
        for key in AWKWARD {
            for (selection, count) in selections(key, key) {
                let asked = Asked {
                    table: table.clone(),
                    selection,
                    select: vec!["Age".to_owned()],
                    retry: RetryPolicy::exponential(),
                };
                commands.push((curl_query(&asked, 10), count));
            }
            commands.push((curl_entity(&table, key, key), 1));
            commands.push((curl_entity(&table, key, "missing"), 0));
        }
        let secret = account.split("AccountKey=").nth(1).unwrap_or_default();
        let secret = secret.split(';').next().unwrap_or_default();
        assert!(!secret.is_empty());
        for (line, count) in commands {
            let line = line.expect("the query is valid");
            assert!(!line.contains(secret));
            let mut command = Command::new("bash");
            command.args(["-c", &line]);
            command.env("AZURE_STORAGE_SAS_TOKEN", token);
            let out = text(&output(command).await.stdout);
            let found = out.matches("\"Age\":\"36\"").count();
            assert_eq!(found, count, "{line}\n{out}");
        }
    }

    #[test]
    fn a_cell_is_copied_as_it_is() {
        for (value, expected) in [
            (Value::String("a\n\u{202e}b".into()), "a\n\u{202e}b"),
            (Value::String(String::new()), ""),
            (Value::Binary(vec![0, 255]), "AP8="),
            (Value::Int64(i64::MIN), "-9223372036854775808"),
            (Value::Double(1.0), "1.0"),
        ] {
            assert_eq!(cell(&value), expected);
        }
    }
}
