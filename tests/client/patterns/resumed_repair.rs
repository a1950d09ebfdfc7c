//! A repair that ended with an error, resumed from the token of its progress.

use futures::stream;
use harness::Subject;
use harness::company::indexed::{Employee, checked};
use tablesdk::index::{Repair, RepairReport};
use tablesdk::query::PageToken;
use tablesdk::{DynamicEntity, ETag, Error, ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Op};

use super::repair::foreign;
use super::staff::Staff;

/// The result of the repair, and the position to resume it at, as it was stored.
async fn run(repair: Repair<'_, Employee>) -> (Result<RepairReport, Error>, Option<String>) {
    let mut stored = None;
    let progress = |report: &RepairReport| {
        stored = report.resume_at.as_ref().map(PageToken::to_string);
    };
    let result = repair.progress(progress).await;
    (result, stored)
}

/// Employees that another program wrote, without the entries of their indexes.
async fn insert_foreign(table: &TableClient, ids: std::ops::Range<u32>) {
    let employees = ids.map(|id| foreign(id, "Doe", &format!("{id}@contoso.com")));
    let report = table.bulk().insert(stream::iter(employees)).await.unwrap();
    assert!(report.is_success(), "{:?}", report.failures());
}

#[tokio::test]
async fn a_resumed_repair_does_not_read_the_pages_before_its_token() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    insert_foreign(&table, 0..1_200).await;
    let fault = faults.on(Op::QueryEntities).nth(2);
    fault.inject(Fault::error(ErrorCode::InternalError));
    let (result, stored) = run(table.repair()).await;
    assert_eq!(result.unwrap_err().code(), Some(&ErrorCode::InternalError));

    // What another program does on the first page, meanwhile, is for the next repair.
    let stale = DynamicEntity::new("Sales", "empid_000000").with("Age", 37);
    table.merge_if(&stale, ETag::ANY).await.unwrap();
    let token: PageToken = stored.unwrap().parse().unwrap();
    let report = table.repair::<Employee>().resume_at(token).await.unwrap();
    let found = (report.entities, report.missing, report.stale);
    assert_eq!(found, (200, 400, 0));
    assert_eq!((report.entries, report.resume_at), (2_400, None));
    let report = table.repair::<Employee>().await.unwrap();
    assert_eq!((report.missing, report.stale), (0, 2));
    checked(&table).await;
}

#[tokio::test]
async fn a_repair_with_an_error_at_each_request_is_resumed_to_the_end() {
    for nth in 1.. {
        let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
        insert_foreign(&table, 1..3).await;
        let hopper = Employee::new(3, "Hopper", None);
        table.insert(&hopper).await.unwrap();
        table.delete(("Sales", "empid_000003")).await.unwrap();
        let failed = faults.on_any().nth(nth);
        let failed = failed.inject(Fault::error(ErrorCode::InternalError));
        let (result, stored) = run(table.repair()).await;
        if failed.hits() == 0 {
            assert!(result.unwrap().resume_at.is_none());
            assert!(nth > 10);
            break;
        }
        result.unwrap_err();
        let resumed = table.repair::<Employee>();
        let resumed = match stored {
            Some(token) => resumed.resume_at(token.parse().unwrap()),
            None => resumed,
        };
        assert!(resumed.await.unwrap().is_right());
        assert_eq!(checked(&table).await.len(), 2);
        assert_eq!(table.repair::<Employee>().await.unwrap().mended(), 0);
    }
}

#[tokio::test]
async fn a_repair_refuses_the_token_of_another_one() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let ada = Employee::new(1, "Lovelace", Some("ada@contoso.com"));
    table.insert(&ada).await.unwrap();
    let token = async |repair| run(repair).await.1.unwrap().parse::<PageToken>().unwrap();
    let whole = token(table.repair()).await;
    let sales = token(table.repair().partition("Sales")).await;
    let hopper = Employee::new(2, "Hopper", None);
    table.insert(&hopper).await.unwrap();
    let page = table.query::<Employee>().take(1).page(None).await.unwrap();

    let journal = subject.server().journal();
    let repair = || table.repair::<Employee>();
    let other_partition = repair().partition("Legal").resume_at(sales.clone());
    let without_partition = repair().resume_at(sales);
    let other_type = table.repair::<Staff>().resume_at(whole.clone());
    let of_a_query = repair().resume_at(page.next.unwrap());
    for refused in [
        other_partition.await,
        without_partition.await,
        other_type.await,
        of_a_query.await,
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let rule = "the token comes from a repair of another table, entity type or partition";
        assert!(error.to_string().contains(rule), "{error}");
    }
    let query = table.query::<Employee>().page(whole.clone()).await;
    assert_eq!(query.unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(journal.requests().count(), 0, "nothing is sent");
    let text = whole.to_string();
    for end in 0..text.len() {
        let parsed = text[..end].parse::<PageToken>();
        assert!(parsed.is_err() || parsed.is_ok_and(|token| token != whole));
    }
}
