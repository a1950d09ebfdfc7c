//! Imports: what a failure leaves, where the next import continues, and which files are rejected.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::Request;
use tablesdk::transport::{Transport, TransportError, TransportFuture};
use tablesdk::{DynamicEntity, TableServiceClient, Value};
use tablesdk_cli::import::{ImportError, ImportReport, Mode, WriteOptions, import};
use tablesdk_cli::lines::{Line, Totals};
use tablesdk_cli::records::{ReadOptions, Records};
use tablesdk_server::TableServer;

use crate::{client, client_with, in_process, records};

fn entity(row: &str, value: i32) -> Line {
    let mut entity = DynamicEntity::new("a", row);
    entity.properties_mut().set("V", value);
    let table = "Tests".to_owned();
    Line::Entity { table, entity }
}

fn file(lines: &[Line]) -> Vec<u8> {
    let mut file = Vec::new();
    for line in lines {
        line.write(&mut file);
    }
    file
}

fn table() -> Line {
    Line::Table("Tests".to_owned())
}

fn end(tables: u64, entities: u64) -> Line {
    Line::End(Totals { tables, entities })
}

async fn run(service: &TableServiceClient, lines: &[Line], skip: u64) -> ImportReport {
    let options = WriteOptions::default();
    import(service, records(&file(lines)), &options, skip, |_, _| {}).await
}

async fn count(service: &TableServiceClient) -> u64 {
    let query = service.table("Tests").query::<DynamicEntity>();
    query.count().await.unwrap() as u64
}

/// Loses the response of one batch.
#[derive(Debug)]
struct Lossy {
    server: Arc<dyn Transport>,
    /// The number of batches before that one.
    batches: AtomicU64,
}

impl Transport for Lossy {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        let is_batch = request.uri().path().ends_with("$batch");
        let is_lost = is_batch && self.batches.fetch_sub(1, Ordering::Relaxed) == 0;
        Box::pin(async move {
            let response = self.server.send(request).await?;
            if is_lost {
                return Err(TransportError::maybe_sent("the response was lost"));
            }
            Ok(response)
        })
    }
}

#[tokio::test]
async fn an_import_continues_after_an_unknown_outcome() {
    let lines: Vec<_> = [Line::Start, table()]
        .into_iter()
        .chain((0..950).map(|index| entity(&format!("{index:03}"), index)))
        .chain([end(1, 950)])
        .collect();
    for batches in 0..10 {
        let server = TableServer::in_process();
        let lossy = Lossy {
            server: server.transport(),
            batches: AtomicU64::new(batches),
        };
        let report = run(&client_with(&server, lossy), &lines, 0).await;
        assert!(report.error.is_none(), "{report:?}");
        let lost = if batches == 9 { 50 } else { 100 };
        assert_eq!(report.failures.len(), lost);
        let (line, failure) = &report.failures[0];
        assert!(failure.is_outcome_unknown());
        assert_eq!(
            (line.number(), report.done),
            (batches * 100 + 3, batches * 100 + 2)
        );

        let report = run(&client(&server), &lines, report.done).await;
        assert!(
            report.error.is_none() && report.failures.is_empty(),
            "{report:?}"
        );
        assert_eq!((report.done, report.totals.entities), (953, 950));
        assert_eq!(count(&client(&server)).await, 950);
    }
}

#[tokio::test]
async fn rejected_entities_are_reported_with_their_lines() {
    let (_server, service) = in_process();
    let other = Line::Entity {
        table: "Others".to_owned(),
        entity: DynamicEntity::new("a/b", "not a key"),
    };
    let lines = [
        Line::Start,
        table(),
        entity("1", 1),
        entity("2", 1),
        other,
        entity("3", 1),
        end(1, 4),
    ];
    service.table("Tests").create_table().await.unwrap();
    let stored = DynamicEntity::new("a", "2");
    service.table("Tests").insert(&stored).await.unwrap();
    let mut options = WriteOptions::default();
    options.mode = Mode::Insert;
    let report = import(&service, records(&file(&lines)), &options, 0, |_, _| {}).await;
    assert!(report.error.is_none(), "{report:?}");
    let failed: Vec<_> = report
        .failures
        .iter()
        .map(|(line, _)| line.number())
        .collect();
    assert_eq!((failed, report.done), (vec![4, 5], 7));
    assert!(report.failures[0].1.error().is_conflict());
    assert_eq!(count(&service).await, 3);

    // The first failure ends the import, and the line is done.
    options.max_failures = 1;
    let report = import(&service, records(&file(&lines)), &options, 2, |_, _| {}).await;
    assert!(
        matches!(report.error, Some(ImportError::Write(_))),
        "{report:?}"
    );
}

#[tokio::test]
async fn the_last_of_two_entities_with_one_key_wins() {
    let (_server, service) = in_process();
    let mut random = fastrand::Rng::with_seed(7);
    let mut last = std::collections::BTreeMap::new();
    let mut lines = vec![Line::Start];
    for value in 0..400 {
        let row = random.u8(..9).to_string();
        lines.push(entity(&row, value));
        last.insert(row, Value::Int32(value));
    }
    lines.push(end(0, 400));
    assert!(run(&service, &lines, 0).await.failures.is_empty());
    let stored = service.table("Tests").query::<DynamicEntity>().collect();
    let stored = stored.await.unwrap();
    let stored: Vec<_> = stored
        .iter()
        .map(|it| it.properties().get("V").unwrap().clone())
        .collect();
    assert_eq!(stored, last.into_values().collect::<Vec<_>>());
}

#[tokio::test]
async fn incomplete_and_miscounted_files_are_errors() {
    let (_server, service) = in_process();
    let whole = [Line::Start, table(), entity("1", 1), end(1, 1)];
    // Two files, one after the other, are one file, and one that was written by hand has no first
    // line.
    for lines in [
        [&whole[..], &whole].concat(),
        [&whole[1..3], &whole].concat(),
        [&whole[1..], &whole].concat(),
    ] {
        let report = run(&service, &lines, 0).await;
        assert!(report.error.is_none(), "{report:?}");
        assert_eq!((report.totals.tables, report.totals.entities), (1, 2));
    }

    for (lines, problem) in [
        (&whole[..3], "it was truncated"),
        (
            &[&whole[..1], &whole].concat(),
            "line 2: an export begins with",
        ),
        (
            &[&whole, &whole[2..3]].concat(),
            "line 5: an export begins with",
        ),
        (&whole[3..], "line 1: an export begins with"),
        (
            &[&whole[1..3], &[end(1, 2)]].concat(),
            "line 3: the last line counts 1 tables and 2 entities, and the file has 1 and 1",
        ),
        (
            &[&whole[..3], &[end(1, 2)]].concat(),
            "line 4: the last line counts 1 tables and 2 entities, and the file has 1 and 1",
        ),
        (
            &[&whole[..3], &[end(2, 1)]].concat(),
            "line 4: the last line",
        ),
    ] {
        let error = run(&service, lines, 0).await.error.unwrap().to_string();
        assert!(error.contains(problem), "{error}");
    }
    let malformed = [file(&whole[..3]), b"{}\n".to_vec()].concat();
    let report = import(
        &service,
        records(&malformed),
        &WriteOptions::default(),
        0,
        |_, _| {},
    )
    .await;
    let error = report.error.unwrap();
    let text = "line 4: the line is neither a table nor an entity, nor the first or last line of an export; a line is expected such as ";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!(report.done, 3);
    assert!(error.source().is_none(), "the message says all");
    // A line without an end is not read into memory as a whole.
    let endless = std::io::Read::chain(&b"{\"table\":\""[..], std::io::repeat(b'a'));
    let endless = std::io::BufReader::new(endless);
    let report = import(
        &service,
        Records::new(endless, &ReadOptions::default()),
        &WriteOptions::default(),
        0,
        |_, _| {},
    )
    .await;
    let error = report.error.unwrap().to_string();
    assert!(error.contains("longer than"), "{error}");
}

#[tokio::test]
async fn tables_are_created_only_if_wanted() {
    let (_server, service) = in_process();
    let mut options = WriteOptions::default();
    options.create_tables = false;
    let lines = file(&[Line::Start, entity("1", 1), end(0, 1)]);
    let report = import(&service, records(&lines), &options, 0, |_, _| {}).await;
    let Some(ImportError::Write(error)) = report.error else {
        panic!("{report:?}");
    };
    assert!(error.error().unwrap().is_table_not_found());
    assert_eq!(report.done, 1);
    options.create_tables = true;
    let report = import(&service, records(&lines), &options, report.done, |_, _| {}).await;
    assert_eq!((report.done, count(&service).await), (3, 1));
}
