//! A connection to the database that ends while a write is carried out, and a database that is
//! away: what clients are told is true.

use std::time::Duration;

use harness::outcome::{Found, found};
use harness::postgres::Postgres;
use harness::raw::RawClient;
use harness::written::Row;
use tablesdk::{ETag, Error, RetryPolicy, TableClient};
use tablesdk_server::TableServer;

use crate::relay::Cut;
use crate::relayed::{NEW, OLD, Subject, client};
use crate::workload::{TABLE, single_attempts};

fn patient() -> RetryPolicy {
    RetryPolicy::exponential()
        .attempts(8)
        .delay(Duration::from_millis(1))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Insert,
    UpsertReplace,
    ReplaceIf,
    DeleteIf,
    Batch,
}

const VERBS: [Verb; 5] = [
    Verb::Insert,
    Verb::UpsertReplace,
    Verb::ReplaceIf,
    Verb::DeleteIf,
    Verb::Batch,
];

/// Writes the entity, and in a batch also a second one.
async fn write(verb: Verb, table: &TableClient, row: &str, etag: ETag) -> Result<(), Error> {
    let new = Row::whole("p", row, NEW);
    match verb {
        Verb::Insert => table.insert(&new).await.map(drop),
        Verb::UpsertReplace => table.upsert_replace(&new).await.map(drop),
        Verb::ReplaceIf => table.replace_if(&new, etag).await.map(drop),
        Verb::DeleteIf => {
            let delete = table.delete(Row::key("p", row)).if_match(etag);
            delete.await.map(drop)
        }
        Verb::Batch => {
            let second = Row::whole("p", &format!("{row}-second"), NEW);
            let batch = table.batch("p").replace_if(&new, etag).insert(&second);
            batch.await.map(drop)
        }
    }
}

/// Cuts the connection at each statement of each write, one after another.
#[tokio::test]
async fn a_cut_connection_to_the_database_never_gives_a_wrong_result() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let table = subject.table(single_attempts());
    for verb in VERBS {
        for cut in [Cut::Before, Cut::After] {
            let mut unknown = 0;
            for statement in 0.. {
                let row = format!("{verb:?}-{cut:?}-{statement}");
                let etag = match verb {
                    Verb::Insert => "W/\"unused\"".parse().unwrap(),
                    _ => subject.put(&row).await,
                };
                subject.relay.cut(cut, statement);
                let written = write(verb, &table, &row, etag).await;
                let is_cut = subject.relay.has_cut();
                let stored = subject.stored(&row).await.map(|(token, _)| token);
                let is_applied = stored == Some(NEW).filter(|_| verb != Verb::DeleteIf);
                if verb == Verb::Batch {
                    let second = subject.stored(&format!("{row}-second")).await;
                    assert_eq!(second.is_some(), is_applied, "{row}: a part of the batch");
                }
                let shown = (&row, &written, is_applied);
                match &written {
                    Ok(()) => assert!(is_applied, "{shown:?}"),
                    Err(error) if error.is_outcome_unknown() => {
                        // At the commit: the server cannot know, and says nothing.
                        assert_eq!(is_applied, cut == Cut::After, "{shown:?}");
                        assert!(error.status().is_none(), "{shown:?}");
                        unknown += 1;
                    }
                    Err(error) => {
                        assert!(!is_applied && error.is_throttled(), "{shown:?}");
                    }
                }
                if !is_cut {
                    assert!(written.is_ok(), "{shown:?}");
                    break;
                }
            }
            assert_eq!(unknown, 1, "{verb:?} {cut:?}");
        }
    }
}

#[tokio::test]
async fn a_client_that_tries_again_resolves_an_unknown_outcome() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let table = subject.table(patient());
    for cut in [Cut::Before, Cut::After] {
        let mut unknown = 0;
        for statement in 0.. {
            let row = format!("plain-{cut:?}-{statement}");
            let etag = subject.put(&row).await;
            subject.relay.cut(cut, statement);
            let new = Row::whole("p", &row, NEW);
            let replaced = table.replace_if(&new, etag).await;
            let is_cut = subject.relay.has_cut();
            let (token, etag) = subject.stored(&row).await.unwrap();
            assert_eq!(token, NEW);
            match replaced {
                Ok(replaced) => assert_eq!(replaced, etag),
                // The second attempt finds the entity changed, by the first one or by another
                // client.
                Err(error) => {
                    assert_eq!(found(&error), Found::Equal);
                    unknown += 1;
                }
            }
            if !is_cut {
                break;
            }
        }
        assert_eq!(unknown, u32::from(cut == Cut::After));
    }
}

#[tokio::test]
async fn an_exactly_once_write_is_applied_once_whichever_statement_is_cut() {
    let Some(subject) = Subject::start().await else {
        return;
    };
    let table = subject.table(patient());
    for cut in [Cut::Before, Cut::After] {
        for statement in 0.. {
            let row = format!("once-{cut:?}-{statement}");
            subject.put(&row).await;
            let stored = subject.direct.get::<Row>(Row::key("p", row.as_str())).await;
            let mut stored = stored.unwrap().unwrap();
            *stored = Row::whole("p", &row, NEW);
            subject.relay.cut(cut, statement);
            table.replace(&mut stored).exactly_once().await.unwrap();
            let is_cut = subject.relay.has_cut();
            let now = subject.stored(&row).await.unwrap();
            assert_eq!(now, (NEW, stored.etag().clone()));
            if !is_cut {
                // A read and a commit at least.
                assert!(statement >= 2);
                break;
            }
        }
    }
}

#[tokio::test]
async fn without_a_database_requests_get_503_until_it_is_back() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let server = TableServer::builder().postgres(database.url("postgres"));
    let server = server.start().await.unwrap();
    let table = client(&server, RetryPolicy::default()).table(TABLE);
    table.create_table().await.unwrap();
    table.insert(&Row::whole("p", "r", OLD)).await.unwrap();
    let raw = RawClient::of(&server);
    for is_killed in [true, false] {
        if is_killed {
            database.kill();
        } else {
            database.stop();
        }
        let entity = format!("/{TABLE}(PartitionKey='p',RowKey='r')");
        let (get, put) = (format!("GET {entity}"), format!("PUT {entity}"));
        let headers = ["Content-Type: application/json", "Accept: application/json"];
        let requests = [(&*get, ""), (&*put, "{}"), ("GET /Tables", "")];
        for (line, body) in requests {
            let response = raw.send(true, line, &headers, body).await.unwrap();
            assert_eq!((response.status, response.code()), (503, "ServerBusy"));
            let after = response.header("retry-after").unwrap();
            assert!((1..=60).contains(&after.parse().unwrap()), "{after}");
        }
        database.start_again();
        // Without a restart of the server, and all that was stored is there.
        let row = table.get::<Row>(Row::key("p", "r")).await.unwrap();
        assert_eq!(row.unwrap().token, OLD);
        let old = Row::whole("p", "r", OLD);
        table.upsert_replace(&old).await.unwrap();
    }
}
