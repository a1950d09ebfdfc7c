//! Sequences and counters beside a program in Python, which takes numbers and adds amounts.

use harness::Subject;
use tablesdk::counter::Counter;
use tablesdk::sequence::Sequence;

use crate::child::run_python;

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_takes_numbers_and_counts() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let claims = Sequence::new(&table, ("numbers", "claims")).block(3);
    assert_eq!(claims.next().await.unwrap(), 1);
    let views = Counter::new(&table, ("home", "views")).shards(1);
    views.add(2).await.unwrap();
    views.add(3).await.unwrap();
    run_python("counters.py", &subject).await;

    // Python has taken 4 to 13.
    for expected in [2, 3, 14, 15] {
        assert_eq!(claims.next().await.unwrap(), expected);
    }
    let letters = Sequence::new(&table, ("numbers", "letters"));
    assert_eq!(letters.next().await.unwrap(), 1_000);

    let amounts: i64 = 2 + 3 + (0..20).sum::<i64>() + (0..40).sum::<i64>() - 3 * 10;
    assert_eq!(views.value().await.unwrap(), amounts);
    // Its shard has another version, and the others have been written by Python alone.
    views.add(7).await.unwrap();
    let others = Counter::new(&table, ("home", "views")).shards(2);
    for _ in 0..10 {
        others.add(1).await.unwrap();
    }
    assert_eq!(views.value().await.unwrap(), amounts + 7 + 10);
}
