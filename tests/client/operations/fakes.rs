//! Results of a fake of a program's own trait, in place of a table: the guide to testing has such a
//! trait, and runs it.

use http::StatusCode;
use tablesdk::action::CurrentState;
use tablesdk::query::{Page, PageToken};
use tablesdk::{Error, ErrorCode, ErrorKind};

use super::*;

#[tokio::test]
async fn a_service_error_is_as_that_of_the_service() {
    let of = |code| Error::service(code);
    assert!(of(ErrorCode::ResourceNotFound).is_not_found());
    assert!(of(ErrorCode::TableNotFound).is_table_not_found());
    assert!(of(ErrorCode::EntityAlreadyExists).is_conflict());
    assert!(of(ErrorCode::UpdateConditionNotSatisfied).is_precondition_failed());
    assert!(of(ErrorCode::AuthenticationFailed).is_denied());
    assert!(of(ErrorCode::TooManyRequests).is_throttled());
    let busy = of(ErrorCode::ServerBusy);
    assert!(busy.is_throttled());
    assert_eq!(busy.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert!(busy.to_string().contains(ErrorCode::ServerBusy.message()));

    let subject = harness::Subject::in_process();
    let missing = subject.service.table("Missing");
    let real = missing.insert(&Employee::ada()).await.unwrap_err();
    let fake = of(ErrorCode::TableNotFound);
    assert_eq!((real.kind(), real.status()), (fake.kind(), fake.status()));
    // The message of a real one, without its place.
    assert!(real.to_string().contains(&fake.to_string()), "{real}");
}

#[test]
fn errors_of_a_bad_network_have_no_code() {
    let silent = Error::no_response();
    assert_eq!((silent.kind(), silent.code()), (ErrorKind::Transport, None));
    let lost = Error::outcome_unknown(CurrentState::Unread);
    assert_eq!(
        (lost.kind(), lost.code()),
        (ErrorKind::OutcomeUnknown, None)
    );
    assert!(matches!(lost.current(), Some(CurrentState::Unread)));
    assert!(!lost.is_conflict());
}

#[tokio::test]
async fn a_fake_token_is_that_of_its_key_and_not_of_a_table() {
    let subject = harness::Subject::in_process();
    let table = subject.table().await;
    let ada = table.insert(&Employee::ada()).await.unwrap();
    let other = table
        .insert(&Employee::new("2", "Grace", 50))
        .await
        .unwrap();
    let token = PageToken::fake(ada.key());
    assert_ne!(token, PageToken::fake(other.key()));
    let page = Page::new(vec![other], Some(token.clone()));
    assert_eq!((page.items.len(), page.next.as_ref()), (1, Some(&token)));
    // Through a URL.
    assert_eq!(token.to_string().parse::<PageToken>().unwrap(), token);
    let error = table
        .query::<Employee>()
        .page(Some(token))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}
