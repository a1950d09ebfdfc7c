//! The program with identities that have a role, the wrong one or none, and without an identity.

use tablesdk::{ErrorCode, ErrorKind};

use crate::{advice, local, record};

#[tokio::test]
async fn an_identity_with_the_role_records_runs() {
    let service = local::connect(None).unwrap();
    for expected in [1, 2, 2] {
        let runs = record(&service, "daily-report", 2).await.unwrap();
        assert_eq!(runs.len(), expected);
        assert!(runs.is_sorted_by(|a, b| a.started > b.started), "{runs:?}");
    }
}

#[tokio::test]
async fn an_identity_with_another_role_is_denied_and_the_program_names_the_right_one() {
    let service = local::connect(Some(local::READER)).unwrap();
    let error = record(&service, "daily-report", 1).await.unwrap_err();
    assert_eq!(
        error.code(),
        Some(&ErrorCode::AuthorizationPermissionMismatch)
    );
    assert!(
        advice(&error)
            .unwrap()
            .contains("Storage Table Data Contributor")
    );
}

#[tokio::test]
async fn an_identity_that_is_not_there_is_an_error_of_the_credential() {
    let service = local::connect(Some("22222222-2222-2222-2222-222222222222")).unwrap();
    let error = record(&service, "daily-report", 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credential);
    assert!(advice(&error).unwrap().contains("AZURE_CLIENT_ID"));
    let reason = error.downcast_ref::<azure_core::Error>().unwrap();
    assert!(reason.to_string().contains("not been assigned"), "{reason}");
    // Neither hides why.
    assert!(error.to_string().contains("not been assigned"), "{error}");
}
