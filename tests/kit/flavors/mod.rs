//! The flavors of the server: what each of them responds where they differ, and that the client
//! works with each.
//!
//! A difference is a row of the tables in the guides `cosmos_db` and `testing`, a request, and the
//! responses of the flavors.

mod batches;
mod client;
mod entities;
mod golden;
mod keys;
mod responses;
mod signatures;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use harness::raw::{RawClient, Response};
use tablesdk::SharedKey;
use tablesdk_server::TableServer;
use tablesdk_server::testing::Flavor;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// One difference between the flavors.
struct Difference {
    /// The first column of the row in the guide.
    matter: &'static str,
    /// Sends a request, and describes the response.
    observe: for<'a> fn(&'a Subject) -> LocalBoxFuture<'a, String>,
    /// The responses of Azure Table storage and Cosmos DB, and of Azurite, if its flavor has the
    /// difference or is as Azure Table storage there.
    expected: &'static [&'static str],
}

/// A test for each difference, against all flavors, and the list of them.
macro_rules! differences {
    ($($matter:literal: async fn $name:ident($subject:ident: &Subject) -> [$($expected:literal),*] $body:block)*) => {
        pub(super) const DIFFERENCES: &[super::Difference] = &[$(super::Difference {
            matter: $matter,
            observe: |subject| Box::pin($name(subject)),
            expected: &[$($expected),*],
        }),*];

        $(async fn $name($subject: &Subject) -> String $body)*

        mod each_flavor {
            $(#[tokio::test]
            async fn $name() {
                super::super::assert_each($matter, super::DIFFERENCES).await;
            })*
        }
    };
}
use differences;

/// The subject of an observation: a server, and a client of strings.
struct Subject {
    client: RawClient,
    /// `None` at Azurite itself.
    server: Option<TableServer>,
}

impl Subject {
    async fn with(flavor: Flavor) -> Self {
        let server = TableServer::builder().flavor(flavor).start().await.unwrap();
        let subject = Self {
            client: RawClient::of(&server),
            server: Some(server),
        };
        subject.create("People").await;
        subject
    }

    /// A new table, with one entity.
    async fn create(&self, table: &str) {
        let name = format!(r#"{{"TableName":"{table}"}}"#);
        let created = self.send("POST /Tables", &[], &name).await;
        assert_eq!(created.status, 201, "{created:?}");
        let entity = r#"{"PartitionKey":"p","RowKey":"r","A":1,"D@odata.type":"Edm.DateTime","D":"2020-01-01T01:02:00Z"}"#;
        let inserted = self.send(&format!("POST /{table}"), &[], entity).await;
        assert_eq!(inserted.status, 201, "{inserted:?}");
    }

    /// Sends a signed request with the usual headers and these.
    async fn send(&self, request_line: &str, headers: &[&str], body: &str) -> Response {
        self.request(true, request_line, headers, body).await
    }

    /// The same with a signature in the URL instead.
    async fn send_sas(&self, method: &str, path: &str, sas: &str, body: &str) -> Response {
        let line = format!("{method} {path}?{sas}");
        self.request(false, &line, &[], body).await
    }

    async fn request(
        &self,
        sign: bool,
        request_line: &str,
        headers: &[&str],
        body: &str,
    ) -> Response {
        let names = headers.iter().filter_map(|line| line.split_once(": "));
        let names: Vec<_> = names.map(|(name, _)| name).collect();
        let mut lines = headers.to_vec();
        for line in [
            "Accept: application/json;odata=minimalmetadata",
            "Content-Type: application/json",
            "x-ms-version: 2019-02-02",
        ] {
            let (name, _) = line.split_once(": ").unwrap();
            if !names.contains(&name) {
                lines.push(line);
            }
        }
        let sent = self.client.send(sign, request_line, &lines, body).await;
        sent.unwrap_or_else(|error| panic!("{request_line}: {error}"))
    }
}

/// The status of a response, and its error, as text.
fn outcome(response: &Response) -> String {
    let code = code(&response.head, &response.body);
    format!("{} {code}", response.status).trim_end().to_owned()
}

/// The code of an error, which may be in a header, in JSON or in XML.
fn code(head: &str, body: &str) -> String {
    let named = |text: &str, start: &str, end: char| {
        let (_, rest) = text.split_once(start)?;
        rest.split(end).next().map(str::to_owned)
    };
    named(body, r#""code":""#, '"')
        .or_else(|| named(body, "<m:code>", '<'))
        .or_else(|| named(body, "<Code>", '<'))
        .or_else(|| named(head, "x-ms-error-code: ", '\r'))
        .unwrap_or_default()
}

/// Which of these headers a response has.
fn present(response: &Response, names: &[&str]) -> String {
    let present = names.iter().filter(|name| response.header(name).is_some());
    or_none(&present.copied().collect::<Vec<_>>())
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

async fn assert_each(matter: &str, differences: &[Difference]) {
    let difference = differences.iter().find(|other| other.matter == matter);
    let difference = difference.unwrap();
    for (flavor, expected) in FLAVORS.into_iter().zip(difference.expected) {
        let subject = Subject::with(flavor).await;
        let observed = (difference.observe)(&subject).await;
        assert_eq!(observed, *expected, "{flavor:?}: {matter}");
    }
    let [storage, others @ ..] = difference.expected else {
        panic!("{matter}");
    };
    assert!(others.iter().any(|other| other != storage), "{matter}");
}

/// All differences in the order of the guide.
fn all() -> impl Iterator<Item = &'static Difference> {
    [
        entities::DIFFERENCES,
        batches::DIFFERENCES,
        signatures::DIFFERENCES,
        responses::DIFFERENCES,
    ]
    .into_iter()
    .flatten()
}

/// The tables of the guides contain what the tests observe.
#[test]
fn the_guides_list_the_differences() {
    let cosmos_db = include_str!("../../../tablesdk/src/guide/cosmos_db.md");
    let azurite = include_str!("../../../tablesdk/src/guide/testing.md");
    for (guide, name, place) in [(cosmos_db, "Cosmos DB", 1), (azurite, "Azurite", 2)] {
        let head = format!("\n| what | Storage | {name} | source |\n|---|---|---|---|\n");
        let (_, table) = guide.split_once(&head).unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let plain = |cell: &str| cell.trim().replace('`', "");
        let listed = rows.map(|row| row.split('|').skip(1).take(3).map(plain).collect());
        let listed: Vec<Vec<_>> = listed.collect();
        let tested = all().filter_map(|difference| {
            let storage = difference.expected.first()?;
            let other = difference.expected.get(place)?;
            let row = [difference.matter, storage, other].map(plain);
            (storage != other).then(|| row.to_vec())
        });
        assert_eq!(listed, tested.collect::<Vec<_>>(), "{name}");
    }
}

/// Azurite itself responds as its flavor does.
#[tokio::test]
#[ignore = "needs Azurite: tests/interop/install.sh"]
async fn azurite_is_as_its_flavor() {
    let azurite = Azurite::start().await;
    let mut differing = Vec::new();
    for difference in all() {
        let subject = azurite.subject();
        let [_, _, expected] = difference.expected else {
            continue;
        };
        if difference.matter == ONLY_OF_THE_KIT {
            continue;
        }
        subject.create("People").await;
        let observed = (difference.observe)(&subject).await;
        // The table is missing where the difference is that it can be deleted.
        subject.send("DELETE /Tables('People')", &[], "").await;
        if observed != *expected {
            println!("{}: {observed}, and not {expected}", difference.matter);
            differing.push(difference.matter);
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
}

/// Azurite as a process, which ends when this is dropped.
struct Azurite {
    address: SocketAddr,
    _process: Child,
}

impl Azurite {
    async fn start() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
        // With port 0, Azurite does not print the port.
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let program = target.join("interop/node/node_modules/.bin/azurite-table");
        let mut process = Command::new(program)
            .args(["--inMemoryPersistence", "--disableTelemetry"])
            .args(["--tableHost", "127.0.0.1"])
            .args(["--tablePort", &address.port().to_string()])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("tests/interop/install.sh installed it");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let started = async {
            let mut line = String::new();
            while !line.contains("successfully started") {
                line = lines.next_line().await.unwrap().expect("Azurite starts");
            }
        };
        timeout(START_MAX, started).await.expect("Azurite starts");
        // From now on, its log is thrown away.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            address,
            _process: process,
        }
    }

    fn subject(&self) -> Subject {
        let key = SharedKey::new("devstoreaccount1", DEVELOPMENT_KEY).unwrap();
        let address = self.address;
        Subject {
            client: RawClient { address, key },
            server: None,
        }
    }
}

const START_MAX: Duration = Duration::from_secs(60);

const FLAVORS: [Flavor; 3] = [Flavor::Storage, Flavor::CosmosDb, Flavor::Azurite];

/// The difference that needs the kit's throttle.
const ONLY_OF_THE_KIT: &str = "Throttling";

const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
