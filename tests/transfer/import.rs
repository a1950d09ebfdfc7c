//! Imports: how records are packed, what a failure leaves, and that the last of two wins.

use std::time::Duration;

use bytes::Bytes;
use harness::Subject;
use harness::faults::{Fault, Op, refusal};
use http::Request;
use tablesdk::transfer::{ImportMode, Record};
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, TableServiceClient, Value};
use tablesdk_server::TableServer;

use crate::{content, records};

fn entity(partition: &str, row: &str, value: impl Into<Value>) -> Record {
    let mut entity = DynamicEntity::new(partition, row);
    entity.properties_mut().set("V", value);
    Record::Entity {
        table: "Tests".to_owned(),
        entity,
    }
}

async fn count(service: &TableServiceClient) -> usize {
    let query = service.table("Tests").query::<DynamicEntity>();
    query.count().await.unwrap()
}

#[tokio::test]
async fn neighbours_of_a_partition_travel_together() {
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    let mut import = subject.service.import(ImportMode::UpsertReplace);
    for index in 0..250 {
        import
            .push(entity("a", &format!("{index:03}"), index))
            .await
            .unwrap();
    }
    import.push(entity("b", "1", 1)).await.unwrap();
    import.push(entity("a", "last", 1)).await.unwrap();
    let report = import.finish().await.unwrap();
    assert_eq!((report.entities, report.is_complete), (252, false));
    assert_eq!((faults.count(Op::Batch), faults.count(Op::Update)), (3, 2));
    assert_eq!(count(&subject.service).await, 252);
}

/// The import's requests in flight hold all permits of the client; the import continues, even if others wait for a permit.
#[tokio::test(start_paused = true)]
async fn an_import_makes_way_for_others_that_need_its_places() {
    let server = TableServer::in_process();
    let service = TableServiceClient::builder(server.endpoint())
        .credential(server.credential())
        .transport(Slow(server.transport()))
        .max_in_flight(1)
        .build()
        .unwrap();
    let mut import = service.import(ImportMode::Insert).batch_size(1);
    for index in 0..40 {
        // A new table now and then, which is created before its entities are taken.
        let table = format!("Table{}", index / 8);
        let entity = DynamicEntity::new("a", format!("{index:02}"));
        let record = Record::Entity { table, entity };
        import.push(record).await.unwrap();
        // The program itself, with the same client.
        assert!(service.table("Table0").table_exists().await.unwrap());
    }
    assert_eq!(import.finish().await.unwrap().entities, 40);
}

/// A slow transport: its future must be polled during the delay, as that of any connection.
#[derive(Debug)]
struct Slow<T>(T);

impl<T: Transport> Transport for Slow<T> {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.0.send(request).await
        })
    }
}

#[tokio::test]
async fn a_batch_stays_within_four_mebibytes_where_keys_are_full_of_quotes() {
    let (subject, _table, _) = Subject::with_faults(RetryPolicy::none()).await;
    // A quote is doubled in the URL, and each of both takes three bytes of it.
    let partition = "'".repeat(500);
    let text = format!("{}{}", "é".repeat(15_000), "a".repeat(7_000));
    let mut import = subject.service.import(ImportMode::UpsertReplace);
    for index in 0..100 {
        let row = format!("{}{index:02}", "'".repeat(498));
        let record = entity(&partition, &row, text.as_str());
        import.push(record).await.unwrap();
    }
    import.finish().await.unwrap();
    assert_eq!(count(&subject.service).await, 100);
}

#[tokio::test]
async fn a_batch_stays_within_four_mebibytes_however_texts_are_escaped() {
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    // Each control character takes six bytes of JSON, and each byte of the key three of the URL.
    let text = "\u{1}".repeat(32 * 1024);
    let mut import = subject.service.import(ImportMode::UpsertReplace);
    for index in 0..60 {
        let row = format!("{}{index:02}", "\u{FFFD}".repeat(500));
        import.push(entity("a", &row, text.as_str())).await.unwrap();
    }
    import.finish().await.unwrap();
    assert!(
        (3..=4).contains(&faults.count(Op::Batch)),
        "{}",
        faults.count(Op::Batch)
    );
    assert_eq!(count(&subject.service).await, 60);
}

#[tokio::test]
async fn the_last_of_two_records_of_one_entity_wins() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    // The first requests are the slowest: without care they would come last.
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    tokio::time::pause();
    let delays = (1..=400)
        .rev()
        .map(|step| Fault::Delay(Duration::from_millis(step)));
    faults.plan(Op::Update, delays.clone());
    faults.plan(Op::Batch, delays);
    let mut import = subject
        .service
        .import(ImportMode::UpsertReplace)
        .concurrency(16);
    let mut last = std::collections::BTreeMap::new();
    for value in 0..400 {
        let key = (random.u8(..3), random.u8(..4));
        last.insert(key, value);
        let record = entity(&format!("p{}", key.0), &format!("r{}", key.1), value);
        import.push(record).await.unwrap();
    }
    import.finish().await.unwrap();
    let stored = content(&records(&subject.service).await);
    let expected: Vec<_> = last.values().map(|value| Value::Int32(*value)).collect();
    let found: Vec<_> = stored["Tests"]
        .iter()
        .map(|it| it.properties().get("V").unwrap().clone())
        .collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_was_stored_is_told_after_a_failure_and_another_import_goes_on_there() {
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    let all: Vec<_> = (0..950)
        .map(|index| entity("a", &format!("{index:03}"), index))
        .collect();
    for fails_at in 0..10 {
        let (passes, fault) = (
            vec![Fault::Pass; fails_at],
            Fault::Answer(refusal(500, "InternalError")),
        );
        faults.plan(Op::Batch, passes.into_iter().chain([fault]));
        let mut import = subject
            .service
            .import(ImportMode::UpsertReplace)
            .concurrency(4);
        let mut failed = None;
        for record in all.clone() {
            if let Err(error) = import.push(record).await {
                failed = Some(error);
                break;
            }
        }
        if failed.is_none() {
            failed = import.finish().await.err();
        }
        let error = failed.expect("one request fails");
        assert_eq!(error.code().map(ErrorCode::as_str), Some("InternalError"));
        let stored = import.stored();
        assert_eq!(
            stored,
            fails_at as u64 * 100,
            "all before the one that failed"
        );
        let table = subject.service.table("Tests");
        let stored_rows = table
            .query::<DynamicEntity>()
            .filter(|e| e.property("RowKey").lt(format!("{stored:03}")));
        assert_eq!(stored_rows.count().await.unwrap() as u64, stored);
        let again = import.push(entity("a", "x", 1)).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Input);

        let before = faults.count(Op::Batch);
        let mut import = subject
            .service
            .import(ImportMode::UpsertReplace)
            .skip(stored);
        assert_eq!(import.stored(), stored);
        for record in all.clone() {
            import.push(record).await.unwrap();
        }
        assert_eq!(import.finish().await.unwrap().entities, 950);
        assert_eq!(import.stored(), 950);
        assert_eq!(
            faults.count(Op::Batch) - before,
            10 - fails_at,
            "none twice"
        );
        assert_eq!(count(&subject.service).await, 950);
        subject.service.table("Tests").delete_table().await.unwrap();
        subject.service.table("Tests").create_table().await.unwrap();
    }
}

#[tokio::test]
async fn modes_do_what_they_say() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let two = |name: &str| {
        let mut entity = DynamicEntity::new("a", "b");
        entity.properties_mut().set(name, 1);
        entity
    };
    table.insert(&two("Old")).await.unwrap();
    let new = || Record::Entity {
        table: "tests".to_owned(),
        entity: two("New"),
    };
    let names = || async {
        let read = table
            .get::<DynamicEntity>(("a", "b"))
            .await
            .unwrap()
            .unwrap();
        read.properties()
            .iter()
            .map(|(name, _)| name.to_owned())
            .collect::<Vec<_>>()
    };

    let mut import = subject.service.import(ImportMode::Insert);
    import.push(new()).await.unwrap();
    let error = import.finish().await.unwrap_err();
    assert!(error.is_conflict() && error.key().is_some(), "{error:?}");
    assert_eq!(names().await, ["Old"]);

    let mut import = subject.service.import(ImportMode::UpsertMerge);
    import.push(new()).await.unwrap();
    import.finish().await.unwrap();
    assert_eq!(names().await.len(), 2);

    let mut import = subject.service.import(ImportMode::UpsertReplace);
    import.push(new()).await.unwrap();
    import.finish().await.unwrap();
    assert_eq!(names().await, ["New"]);
}

#[tokio::test]
async fn a_file_that_was_cut_or_miscounts_is_told() {
    let subject = Subject::in_process();
    let import = |records: Vec<Record>| {
        let service = subject.service.clone();
        async move {
            let mut import = service.import(ImportMode::UpsertReplace);
            for record in records {
                import.push(record).await?;
            }
            import.finish().await
        }
    };
    let table = || Record::Table {
        name: "Tests".to_owned(),
    };
    let end = |tables, entities| Record::End { tables, entities };
    let whole = vec![Record::Start, table(), entity("a", "1", 1), end(1, 1)];
    assert!(import(whole.clone()).await.unwrap().is_complete);
    // Two files one after another.
    let twice = import([whole.clone(), whole.clone()].concat())
        .await
        .unwrap();
    assert_eq!(
        (twice.is_complete, twice.tables, twice.entities),
        (true, 2, 2)
    );

    let cut = import(vec![Record::Start, table(), entity("a", "1", 1)])
        .await
        .unwrap();
    assert!(!cut.is_complete);
    assert!(!import(Vec::new()).await.unwrap().is_complete);
    for wrong in [end(1, 2), end(2, 1), end(0, 0)] {
        let records = vec![Record::Start, table(), entity("a", "1", 1), wrong];
        let error = import(records).await.unwrap_err();
        assert!(
            format!("{error:?}").contains("1 tables and 1 entities came"),
            "{error:?}"
        );
    }
    let after_the_end = [whole, vec![entity("a", "2", 1)]].concat();
    assert!(
        format!("{:?}", import(after_the_end).await.unwrap_err()).contains("after that of the end")
    );
}

#[tokio::test]
async fn tables_are_created_once_and_only_if_wanted() {
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    let before = faults.count(Op::CreateTable);
    let mut import = subject.service.import(ImportMode::UpsertReplace);
    for row in ["1", "2", "3"] {
        import.push(entity("a", row, 1)).await.unwrap();
    }
    import.finish().await.unwrap();
    assert_eq!(faults.count(Op::CreateTable) - before, 1);

    subject.service.table("Tests").delete_table().await.unwrap();
    let import = subject.service.import(ImportMode::UpsertReplace);
    let mut import = import.create_tables(false);
    import.push(entity("a", "1", 1)).await.unwrap();
    let error = import.finish().await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_eq!(import.stored(), 0);
}

#[tokio::test]
async fn a_push_that_is_dropped_loses_nothing_silently() {
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    tokio::time::pause();
    faults.plan(Op::Update, [Fault::Delay(Duration::from_secs(5))]);
    let mut import = subject
        .service
        .import(ImportMode::UpsertReplace)
        .concurrency(1);
    import.push(entity("a", "1", 1)).await.unwrap();
    import.push(entity("b", "1", 1)).await.unwrap();
    // It waits for the first request, and is given up.
    let waited =
        tokio::time::timeout(Duration::from_secs(1), import.push(entity("c", "1", 1))).await;
    assert!(waited.is_err());
    assert_eq!(import.stored(), 0);
    let error = import.push(entity("d", "1", 1)).await.unwrap_err();
    assert!(format!("{error:?}").contains("was dropped"), "{error:?}");
    assert!(import.finish().await.is_err());
}

#[tokio::test]
async fn an_import_that_could_send_nothing_is_refused() {
    let (subject, _table, faults) = Subject::with_faults(RetryPolicy::none()).await;
    let before = faults.seen().len();
    let import = || subject.service.import(ImportMode::Insert);
    for (mut import, rule) in [
        (import().concurrency(0), "a concurrency of 0"),
        (
            import().batch_size(0),
            "a batch size of 0 is not from 1 to 100",
        ),
        (
            import().batch_size(101),
            "a batch size of 101 is not from 1 to 100",
        ),
    ] {
        let error = import.push(entity("a", "1", 1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(format!("{error:?}").contains(rule), "{error:?}");
        assert!(import.finish().await.is_err());
    }
    assert_eq!(faults.seen().len(), before);
}
