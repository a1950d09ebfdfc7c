//! The PostgreSQL of the tests: what a test may rely on when it kills a database.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness::postgres::{self, Postgres, Programs, sql};

/// Starts this program again for a single test, as a process that a test may kill.
const CHILD: &str = "TABLESDK_TEST_POSTGRES_CHILD";

#[test]
fn each_test_has_an_empty_database_of_its_own() {
    let (Some(one), Some(other)) = (postgres::database(), postgres::database()) else {
        return;
    };
    one.sql("CREATE TABLE t (n INT)");
    one.sql("INSERT INTO t VALUES (1)");
    other.sql("CREATE TABLE t (n INT)");
    assert_eq!(one.sql("SELECT n FROM t"), ["1"]);
    assert_eq!(other.sql("SELECT n FROM t"), [""; 0]);
    let url = one.url().to_owned();
    drop(one);
    sql(&url, "SELECT 1").expect_err("the database is deleted");
}

/// Both kinds of runtimes block for it.
#[tokio::test]
async fn a_runtime_takes_a_database() {
    if let Some(database) = postgres::database() {
        assert_eq!(database.sql("SELECT 1"), ["1"]);
    }
}

#[test]
fn a_killed_cluster_keeps_its_data() {
    let Some(cluster) = Postgres::start() else {
        return;
    };
    for name in ["one", "other"] {
        cluster.sql("postgres", &format!("CREATE DATABASE {name}"));
        cluster.sql(name, "CREATE TABLE t (name TEXT)");
        cluster.sql(name, &format!("INSERT INTO t VALUES ('{name}')"));
    }
    cluster.kill();
    let refused = sql(&cluster.url("one"), "SELECT 1");
    refused.expect_err("nothing listens");
    cluster.start_again();
    for name in ["one", "other"] {
        assert_eq!(cluster.sql(name, "SELECT name FROM t"), [name]);
    }
    cluster.stop();
    cluster.start_again();
    assert_eq!(cluster.sql("one", "SELECT name FROM t"), ["one"]);
}

#[test]
fn a_cluster_demands_its_password() {
    let Some(cluster) = Postgres::start_with_password() else {
        return;
    };
    assert_eq!(cluster.sql("postgres", "SELECT 1"), ["1"]);
    let url = cluster.url("postgres");
    let (_, address) = url.split_once('@').unwrap();
    let refused = sql(&format!("postgres://postgres@{address}"), "SELECT 1");
    refused.expect_err("there is a password");
    let standby = cluster.standby();
    assert_eq!(standby.sql("postgres", "SELECT pg_is_in_recovery()"), ["t"]);
}

#[test]
fn a_cluster_offers_tls() {
    let Some((cluster, certificate)) = Postgres::start_with_tls() else {
        return;
    };
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"));
    // The request for TLS, to which the other response is `N`.
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.port())).unwrap();
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    let mut response = [0];
    stream.read_exact(&mut response).unwrap();
    assert_eq!(response, *b"S");
    assert_eq!(cluster.sql("postgres", "SELECT 1"), ["1"]);
}

#[test]
fn a_promoted_standby_has_each_acknowledged_row() {
    let Some(first) = Postgres::start() else {
        return;
    };
    first.sql("postgres", "CREATE TABLE t (n INT)");
    let second = first.standby();
    let read_only = sql(&second.url("postgres"), "INSERT INTO t VALUES (0)");
    read_only.expect_err("a standby is read-only");
    for n in 1..=100 {
        first.sql("postgres", &format!("INSERT INTO t VALUES ({n})"));
    }
    first.kill();
    second.promote();
    let count = "SELECT count(*) FROM t";
    assert_eq!(second.sql("postgres", count), ["100"]);
    // It has no standby yet, and does not wait for one.
    second.sql("postgres", "INSERT INTO t VALUES (101)");
    let third = second.standby();
    second.sql("postgres", "INSERT INTO t VALUES (102)");
    second.kill();
    third.promote();
    assert_eq!(third.sql("postgres", count), ["102"]);
}

/// Otherwise, the test above would pass without a guarantee.
#[test]
fn a_commit_waits_for_the_standby() {
    let Some(first) = Postgres::start() else {
        return;
    };
    first.sql("postgres", "CREATE TABLE t (n INT)");
    let second = first.standby();
    second.stop();
    std::thread::scope(|scope| {
        let insert = scope.spawn(|| first.sql("postgres", "INSERT INTO t VALUES (1)"));
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        while first.sql("postgres", waiting) != ["1"] {
            assert!(!insert.is_finished(), "the commit did not wait");
        }
        second.start_again();
        insert.join().unwrap();
    });
}

/// The program that the test below starts and kills.
#[test]
fn a_test_that_is_killed() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (Some(cluster), Some(database)) = (Postgres::start(), postgres::database()) else {
        return;
    };
    println!("own={}\nshared={}", cluster.url("postgres"), database.url());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn no_cluster_outlives_a_killed_test() {
    if Programs::find().is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres::a_test_that_is_killed", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let urls = lines.map_while(Result::ok).filter_map(|line| {
        let (_, url) = line.split_once("=postgres://")?;
        Some(format!("postgres://{url}"))
    });
    let urls: Vec<_> = urls.take(2).collect();
    let directories = urls.iter().map(|url| sql(url, "SHOW data_directory"));
    let directories: Vec<_> = directories.flat_map(Result::unwrap).collect();
    assert_eq!(directories.len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while directories.iter().any(|path| Path::new(path).exists()) {
        assert!(Instant::now() < end, "a cluster outlives its test");
        std::thread::yield_now();
    }
    for url in urls {
        sql(&url, "SELECT 1").expect_err("nothing listens");
    }
}
