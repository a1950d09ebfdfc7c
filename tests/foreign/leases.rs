//! Leases beside a program in Python, which takes one over, releases one, and ends with one.

use std::time::Duration;

use harness::Subject;
use tablesdk::lease::Lease;
use tablesdk::{DynamicEntity, ErrorKind, TableClient};

use crate::child::run_python;

const MINUTE: Duration = Duration::from_secs(60);

async fn acquired(table: &TableClient, row: &str, duration: Duration) -> Lease {
    let lease = Lease::acquire(table, ("payroll", row), duration).holder("rust");
    lease.await.unwrap().expect("it is free")
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_acquires_and_takes_over_leases() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let released = acquired(&table, "released", MINUTE).await;
    released.release().await.unwrap();
    let mut slow = acquired(&table, "expired", Duration::from_millis(500)).await;
    run_python("leases.py", &subject).await;

    // Python holds what our client has not renewed.
    let look = Lease::acquire(&table, ("payroll", "expired"), MINUTE).wait(Duration::ZERO);
    assert!(look.await.unwrap().is_none());
    let run = DynamicEntity::new("payroll", "run");
    let fenced = slow.fence(table.batch("payroll")).insert(&run).await;
    assert!(fenced.unwrap_err().is_precondition_failed());
    let error = slow.renew().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    let expected = r#"the lease was taken over by "python" (token 2, ours was 1)"#;
    assert!(error.to_string().ends_with(expected), "{error}");
    // Its fenced write, and none after its release.
    for (row, is_stored) in [("fenced", true), ("late", false)] {
        let found = table.get::<DynamicEntity>(("payroll", row)).await.unwrap();
        assert_eq!(found.is_some(), is_stored, "{row}");
    }
    // It has released this one, and ended without a release of that one.
    assert_eq!(acquired(&table, "released", MINUTE).await.token(), 3);
    assert_eq!(acquired(&table, "new", MINUTE).await.token(), 2);
}
