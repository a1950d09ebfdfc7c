//! Requests to a server that does not run: the outcome is not ambiguous, because the server certainly did not receive them.

use harness::Subject;
use tablesdk::{ErrorKind, TableServiceClient};
use tablesdk_server::TableServer;

#[tokio::test]
async fn a_server_that_is_gone_was_not_reached() {
    let server = TableServer::start().await.unwrap();
    let service = TableServiceClient::from_connection_string(&server.connection_string()).unwrap();
    drop(server);
    let error = service.tables().collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
    assert!(!error.is_outcome_unknown(), "{error:?}");

    let server = TableServer::in_process();
    let subject = Subject::with_transport(TableServer::in_process(), server.transport());
    drop(server);
    let error = subject.service.tables().collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
    assert!(!error.is_outcome_unknown(), "{error:?}");
}
