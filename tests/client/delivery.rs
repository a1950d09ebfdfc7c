//! Requests without an answer: whether the service may have carried them out is told, never guessed.

use harness::{LosesAnswers, Subject};
use tablesdk::{ErrorKind, TableServiceClient};
use tablesdk_server::TableServer;

use crate::Employee;

#[tokio::test]
async fn a_lost_answer_leaves_the_outcome_unknown() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let losing = LosesAnswers(subject.server.transport());
    let service = TableServiceClient::builder(subject.server.endpoint())
        .credential(subject.server.credential())
        .transport(losing)
        .build()
        .unwrap();
    let ada = Employee::new("1", "Ada", 36);
    let error = service.table("Tests").insert(&ada).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.is_outcome_unknown());
    assert_eq!(
        *table
            .get(Employee::key("Sales", "1"))
            .await
            .unwrap()
            .unwrap(),
        ada,
        "it was written all the same"
    );
}

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
