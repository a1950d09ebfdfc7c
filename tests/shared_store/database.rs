//! The use of the database by servers: tables, rights, errors, TLS, and what is removed from it.

use std::future::pending;
use std::time::{Duration, Instant};

use harness::log::Log;
use harness::postgres::{Database, PASSWORD, PASSWORD_IN_URL, Postgres, database};
use tablesdk::{DynamicEntity, TableServiceClient};
use tablesdk_server::TableServer;

/// A server over a database.
async fn server(url: &str) -> std::io::Result<TableServer> {
    TableServer::builder().postgres(url).start().await
}

fn client(server: &TableServer) -> TableServiceClient {
    TableServiceClient::from_connection_string(&server.connection_string()).unwrap()
}

fn entity(row_key: &str) -> DynamicEntity {
    DynamicEntity::new("p", row_key)
}

/// Asserts that a server cannot use its database, and that the error has these reasons, and no
/// password.
async fn assert_refused(url: &str, reasons: &[&str]) {
    let started = server(url).await;
    let error = started.expect_err("the database cannot be used");
    let text = error.to_string();
    for password in [PASSWORD, PASSWORD_IN_URL] {
        assert!(!text.contains(password), "{text}");
    }
    for reason in reasons {
        assert!(text.contains(reason), "{text}");
    }
}

/// Waits until a statement returns this.
async fn wait_for(database: &Database, statement: &str, expected: &[&str]) {
    let began = Instant::now();
    loop {
        let found = database.sql(statement);
        if found == expected {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{statement}: {found:?}"
        );
        // The server runs on this thread, too.
        tokio::time::timeout(Duration::from_millis(50), pending::<()>())
            .await
            .unwrap_err();
    }
}

#[tokio::test]
async fn servers_that_start_together_create_the_tables_once() {
    let Some(database) = database() else { return };
    let servers = (0..8).map(|_| server(database.url()));
    for server in futures::future::join_all(servers).await {
        drop(server.unwrap());
    }
    assert_eq!(database.sql("SELECT version FROM tablesdk_schema"), ["1"]);
}

#[tokio::test]
async fn tables_of_a_later_version_are_refused() {
    let Some(database) = database() else { return };
    drop(server(database.url()).await.unwrap());
    database.sql("UPDATE tablesdk_schema SET version = 2");
    assert_refused(database.url(), &["version 2", "version 1"]).await;
}

#[tokio::test]
async fn a_server_in_process_connects_with_its_first_request() {
    let Some(database) = database() else { return };
    let server = TableServer::builder().postgres(database.url());
    let server = server.in_process().unwrap();
    let service = TableServiceClient::in_process(&server);
    let table = service.table("people");
    table.create_table().await.unwrap();
    table.insert(&entity("a")).await.unwrap();
    // Its tables are not in its memory.
    assert!(server.snapshot().is_err() && server.dump().is_err());
    server.reset().unwrap_err();
}

#[tokio::test]
async fn the_port_of_operators_refuses_backups_of_a_database() {
    let Some(database) = database() else { return };
    let server = TableServer::builder().postgres(database.url());
    let server = server.admin_port(0).start().await.unwrap();
    let url = |path: &str| format!("http://{}{path}", server.admin_addr().unwrap());
    let refused = reqwest::Client::new().post(url("/backup")).send();
    let refused = refused.await.unwrap();
    assert_eq!(refused.status(), 501);
    let text = refused.text().await.unwrap();
    assert!(text.contains("with its own tools"), "{text}");
    let metrics = reqwest::get(url("/metrics")).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(
        metrics.contains("tablesdk_storage_writable 1\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_server_needs_no_right_to_create_tables() {
    let Some(cluster) = Postgres::start() else {
        return;
    };
    cluster.sql("postgres", "CREATE DATABASE tables");
    drop(server(&cluster.url("tables")).await.unwrap());
    for statement in [
        "CREATE ROLE limited LOGIN",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON tablesdk_records TO limited",
        "GRANT SELECT ON tablesdk_schema TO limited",
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON tablesdk_records, tablesdk_schema TO reader",
    ] {
        cluster.sql("tables", statement);
    }
    let url = cluster.url("tables");
    let (scheme, address) = url.split_once("://").unwrap();
    let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
    let of = |user: &str| format!("{scheme}://{user}@{address}");
    assert_refused(&of("reader"), &["the user reader needs the rights"]).await;
    let server = server(&of("limited")).await.unwrap();
    let table = client(&server).table("people");
    table.create_table().await.unwrap();
    table.insert(&entity("a")).await.unwrap();
    table.delete_table().await.unwrap();
}

#[tokio::test]
async fn a_start_without_a_database_fails_with_the_reason() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let url = format!("postgres://u:{PASSWORD_IN_URL}@127.0.0.1:{port}/db");
    assert_refused(&url, &["refused", &format!("127.0.0.1:{port}: ")]).await;
    let url = format!("mysql://u:{PASSWORD_IN_URL}@127.0.0.1/db");
    assert_refused(&url, &["postgres://"]).await;
    let Some(cluster) = Postgres::start_with_password() else {
        return;
    };
    assert_refused(&cluster.url("missing"), &["missing"]).await;
}

#[tokio::test]
async fn the_certificate_of_the_database_is_verified() {
    let Some((cluster, root)) = Postgres::start_with_tls() else {
        return;
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), root).unwrap();
    let url = cluster.url("postgres");
    let with = |parameters: &str| format!("{url}?{parameters}");
    let trusted = format!("sslmode=verify-full&sslrootcert={}", file.path().display());
    drop(server(&with(&trusted)).await.unwrap());
    assert_refused(&with("sslmode=require"), &["certificate"]).await;
    std::fs::write(file.path(), "no certificate").unwrap();
    assert_refused(&with(&trusted), &["sslrootcert"]).await;
}

#[tokio::test]
async fn what_removed_records_leave_is_swept() {
    let Some(database) = database() else { return };
    let one = server(database.url()).await.unwrap();
    let table = client(&one).table("people");
    table.create_table().await.unwrap();
    for row_key in ["old", "recent", "kept"] {
        table.insert(&entity(row_key)).await.unwrap();
    }
    for row_key in ["old", "recent"] {
        table.delete(("p", row_key)).await.unwrap();
    }
    let left = "SELECT convert_from(substring(key from 12), 'UTF8') FROM tablesdk_records \
        WHERE get_byte(key, 0) = 101 ORDER BY key";
    assert_eq!(database.sql(left), ["kept", "old", "recent"]);
    one.shutdown().await.unwrap();
    database.sql(
        "UPDATE tablesdk_records SET removed_at = now() - interval '16 minutes' \
         WHERE substring(key from 12) = 'old'::bytea",
    );
    // The lease of a server that has stopped.
    database.sql("DELETE FROM tablesdk_records WHERE get_byte(key, 0) = 99");
    let _other = server(database.url()).await.unwrap();
    wait_for(&database, left, &["kept", "recent"]).await;
}

#[tokio::test]
async fn entities_of_a_deleted_table_are_removed() {
    let Some(database) = database() else { return };
    let one = server(database.url()).await.unwrap();
    let table = client(&one).table("people");
    table.create_table().await.unwrap();
    let entities = (0..2500).map(|number| entity(&format!("{number:05}")));
    let report = table.bulk().insert(futures::stream::iter(entities)).await;
    assert_eq!(report.unwrap().progress().written, 2500);
    table.delete_table().await.unwrap();
    table.create_table().await.unwrap();
    table.insert(&entity("new")).await.unwrap();
    let count = "SELECT count(*) FROM tablesdk_records WHERE get_byte(key, 0) = 101";
    wait_for(&database, count, &["1"]).await;
    let kept = table.query::<DynamicEntity>().collect().await;
    assert_eq!(kept.unwrap().len(), 1);
}

/// A session of another program, at the level that a database may have by default.
async fn serializable(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    // It reads by the index, so that it depends on no other rows.
    let settings = "SET default_transaction_isolation = 'serializable'; SET enable_seqscan = off";
    client.batch_execute(settings).await.unwrap();
    client
}

#[tokio::test]
async fn reads_succeed_in_a_database_that_is_serializable_by_default() {
    let Some(cluster) = Postgres::start() else {
        return;
    };
    for statement in [
        "CREATE DATABASE tables",
        "ALTER DATABASE tables SET default_transaction_isolation = 'serializable'",
        "ALTER SYSTEM SET max_prepared_transactions = 1",
    ] {
        cluster.sql("postgres", statement);
    }
    cluster.stop();
    cluster.start_again();
    let server = server(&cluster.url("tables")).await.unwrap();
    let table = client(&server).table("people");
    table.create_table().await.unwrap();
    for row in ["x", "y"] {
        table.insert(&entity(row)).await.unwrap();
    }
    // A transaction that has read y before it changed, has written x, and is about to be committed:
    // PostgreSQL refuses each transaction that is serializable and reads x.
    let url = cluster.url("tables");
    let (writer, other) = (serializable(&url).await, serializable(&url).await);
    let keys =
        "SELECT encode(key, 'hex') FROM tablesdk_records WHERE get_byte(key, 0) = 101 ORDER BY key";
    let keys = cluster.sql("tables", keys);
    let [x, y] = keys.as_slice() else {
        panic!("two entities: {keys:?}");
    };
    let read = |key: &str| format!("SELECT record FROM tablesdk_records WHERE key = '\\x{key}'");
    let begin = format!("BEGIN; {}", read(y));
    writer.batch_execute(&begin).await.unwrap();
    for (session, key) in [(&other, y), (&writer, x)] {
        let write = format!("UPDATE tablesdk_records SET record = record WHERE key = '\\x{key}'");
        assert_eq!(session.execute(&write, &[]).await.unwrap(), 1);
    }
    writer
        .batch_execute("PREPARE TRANSACTION 'w'")
        .await
        .unwrap();
    let refused = other.query_opt(&read(x), &[]).await;
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "40001");

    let found = table.get::<DynamicEntity>(("p", "x")).await.unwrap();
    assert!(found.is_some());
    let rows = table.query::<DynamicEntity>().count().await.unwrap();
    assert_eq!(rows, 2);
    writer.batch_execute("COMMIT PREPARED 'w'").await.unwrap();
}

#[tokio::test]
async fn connections_that_the_database_closes_are_logged_once() {
    let Some(database) = database() else { return };
    let (log, _collecting) = Log::start();
    let server = server(database.url()).await.unwrap();
    let table = client(&server).table("people");
    table.create_table().await.unwrap();
    table.insert(&entity("a")).await.unwrap();
    let warnings = || -> Vec<String> {
        let lines = log.text();
        // A connection that the clean-up of deleted tables was using is another matter.
        let is_of_idle = |line: &&str| line.contains(" WARN ") && line.contains("::kept:");
        let warnings = lines.lines().filter(is_of_idle);
        warnings.map(str::to_owned).collect()
    };
    let read = async || {
        let found = table.get::<DynamicEntity>(("p", "a")).await.unwrap();
        assert!(found.is_some());
    };
    let ended = || {
        let text = log.text();
        text.matches("a connection to the database ended").count()
    };
    for _ in 0..5 {
        read().await;
        let before = ended();
        let closed = database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'tablesdk-server'",
        );
        // Until the server has noticed it of each: one that still counts as open would be one that
        // is kept.
        let began = Instant::now();
        while ended() < before + closed.len() && began.elapsed() < Duration::from_secs(20) {
            tokio::task::yield_now().await;
        }
    }
    read().await;
    // A request of the server itself may meet one that is kept: then each line comes again, but
    // never twice in a row.
    let closes = |line: &String| line.contains("the database closes connections");
    let keeps = |line: &String| line.contains("the database keeps connections");
    let logged = warnings();
    let mut odd = logged.iter().step_by(2);
    let mut even = logged.iter().skip(1).step_by(2);
    assert!(odd.all(closes) && even.all(keeps), "{logged:#?}");
    assert!(logged[0].contains("administrator command"), "{logged:#?}");
    // They stay open for longer than the ones that were closed.
    let began = Instant::now();
    let is_kept = || warnings().last().is_some_and(keeps);
    while !is_kept() && began.elapsed() < Duration::from_secs(60) {
        read().await;
    }
    assert!(is_kept(), "{:#?}", warnings());
}
