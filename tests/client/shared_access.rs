//! A client that was given a shared access signature and no key.

use harness::Subject;
use tablesdk::{ErrorCode, TableServiceClient};
use tablesdk_protocol::auth::sas::{Sas, TablePermissions, TableSas};

use crate::Employee;

#[tokio::test]
async fn a_signature_in_a_connection_string_grants_what_it_says_and_is_never_shown() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    table.insert(&Employee::new("1", "Ada", 36)).await.unwrap();

    let expiry: tablesdk::Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
    let permissions = TablePermissions::parse("ra").unwrap();
    let sas = TableSas::new("Tests".parse().unwrap(), permissions, expiry);
    let token = Sas::from(sas)
        .sign(&subject.server.credential())
        .expose()
        .to_string();
    let endpoint = subject.server.endpoint();
    for question_mark in ["", "?"] {
        let text = format!("TableEndpoint={endpoint};SharedAccessSignature={question_mark}{token}");
        let service = TableServiceClient::from_connection_string(&text).unwrap();
        let guest = service.table("Tests");
        // With a query of its own, and without one.
        let found = guest
            .query::<Employee>()
            .filter(|e| e.age.gt(30))
            .collect()
            .await
            .unwrap();
        assert_eq!(found.len(), 1);
        assert!(
            guest
                .get(Employee::key("Sales", "1"))
                .await
                .unwrap()
                .is_some()
        );

        let error = guest.delete(("Sales", "1")).await.unwrap_err();
        assert!(error.is_denied());
        assert_eq!(
            error.code(),
            Some(&ErrorCode::AuthorizationPermissionMismatch)
        );
        let (_, signature) = token.split_once("sig=").unwrap();
        let signature = signature.split('&').next().unwrap();
        let shown = format!("{error} {error:?} {service:?} {guest:?}");
        assert!(!shown.contains(signature), "{shown}");
    }
}
