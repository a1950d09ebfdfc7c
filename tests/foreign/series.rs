//! A series beside a program in Python: it reads slots that our client wrote, and merges slots that
//! our client reads.

use harness::Subject;
use tablesdk::TableEntity;
use tablesdk::series::Series;

use crate::child::run_python;

#[derive(Debug, TableEntity)]
#[table(partition_key = "{employee}", row_key = "{day}")]
struct MessageDay {
    employee: String,
    day: String,
    #[table(flatten, prefix = "H")]
    hours: Series<i32, 24>,
    #[table(flatten, prefix = "S")]
    seconds: Series<i64, 101>,
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_and_merges_slots() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let day = MessageDay {
        employee: "ann".into(),
        day: "2024-03-15".into(),
        hours: Series::from([(0, 3), (9, 42), (23, 1)]),
        seconds: Series::from([(100, 1 << 40)]),
    };
    table.upsert_merge(&day).await.unwrap();
    run_python("series.py", &subject).await;
    let key = MessageDay::key("ann", "2024-03-15");
    let read = table.get(key).await.unwrap().unwrap();
    let expected = Series::from([(0, 3), (9, 42), (10, 17), (23, 1)]);
    assert_eq!(read.hours, expected);
    assert_eq!(read.seconds, Series::from([(7, 1 << 41), (100, 1 << 40)]));
}
