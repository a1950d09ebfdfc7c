//! Tables of tests: on a server of their own, and in an account.

use std::process::Command;

use tablesdk::ETag;
use tablesdk::testing::TestTable;
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Flavor, Op};

use crate::Employee;

#[tokio::test]
async fn each_test_has_a_server_of_its_own() {
    let (one, other) = (
        TestTable::on(TableServer::in_process()).await,
        TestTable::on(TableServer::in_process()).await,
    );
    one.insert(&Employee::ada()).await.unwrap();
    assert_eq!(other.query::<Employee>().count().await.unwrap(), 0);
    let journal = one.server().unwrap().journal();
    one.insert(&Employee::new("2", "Grace", 50)).await.unwrap();
    assert_eq!(journal.requests().op(Op::InsertEntity).count(), 1);
}

#[tokio::test]
async fn a_server_of_any_flavor_has_a_table() {
    for flavor in [Flavor::Storage, Flavor::CosmosDb, Flavor::Azurite] {
        let server = TableServer::builder().flavor(flavor).in_process();
        let table = TestTable::on(server.unwrap()).await;
        table.insert(&Employee::ada()).await.unwrap();
        table.merge_if(&Employee::ada(), ETag::ANY).await.unwrap();
        assert!(Employee::find(&table).await.is_some(), "{flavor:?}");
    }
}

/// Runs itself in a process with a blank account.
#[tokio::test]
async fn a_blank_account_is_none() {
    const ACCOUNT: &str = "TABLESDK_TEST_ACCOUNT";
    if std::env::var(ACCOUNT).is_ok_and(|account| account == " ") {
        let table = TestTable::new(TableServer::in_process).await;
        assert!(table.server().is_some());
        return;
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "test_table::a_blank_account_is_none"]);
    let output = test.env(ACCOUNT, " ").output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("1 passed"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_an_account_is_deleted_at_the_end() {
    let account = TableServer::start().await.unwrap();
    let tables = || async {
        let service = harness::client(&account);
        service.tables().collect().await.unwrap()
    };
    let table = TestTable::<TableServer>::in_account(account.connection_string()).await;
    let other = TestTable::<TableServer>::in_account(account.connection_string()).await;
    assert!(table.server().is_none());
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(tables().await.len(), 2);
    drop(other);
    assert_eq!(tables().await, [table.name().to_owned()]);
    let failed = tokio::spawn(async move {
        let _table = table;
        panic!("the test fails");
    });
    assert!(failed.await.is_err());
    assert!(tables().await.is_empty());
}
