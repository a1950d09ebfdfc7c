//! Wide entities beside a program in Python, which reads what our client wrote, and replaces one.

use harness::Subject;
use tablesdk::{DynamicEntity, Value};

use crate::child::run_python;

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_and_writes_wide_entities() {
    let subject = Subject::over_http().await;
    let maps = subject.table().await.wide::<DynamicEntity>();
    let numbers = |count: i32, first: i32| {
        let properties = (0..count).map(move |index| (format!("P{index:04}"), index + first));
        DynamicEntity::new("ann", "numbers").with_properties(properties.collect())
    };
    maps.insert(&numbers(1_000, 0)).await.unwrap();
    let bytes = (0..50_u8).map(|index| {
        let value = Value::Binary(vec![index; 64 * 1024]);
        (format!("P{index:02}"), value)
    });
    let bytes = DynamicEntity::new("ann", "bytes").with_properties(bytes.collect());
    maps.insert(&bytes).await.unwrap();
    run_python("wide.py", &subject).await;
    let found = maps.get(("ann", "numbers")).await.unwrap().unwrap();
    assert_eq!(found.properties(), numbers(600, 1).properties());
    let some = maps.select(("ann", "numbers"), |e| {
        e.properties(["P0000", "P0250", "P0599"])
    });
    assert_eq!(some.await.unwrap().unwrap().properties().len(), 3);
}
