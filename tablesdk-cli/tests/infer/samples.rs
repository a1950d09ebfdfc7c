//! Which entities of a table are looked at.

use futures::stream;
use tablesdk::DynamicEntity;
use tablesdk_cli::infer::Sample;

use crate::table;

#[tokio::test]
async fn a_sample_has_entities_from_behind_those_that_begin_alike() {
    let (_server, table) = table("Logs").await;
    let rows = ["ann", "bob"].into_iter().flat_map(|user| {
        let rows = (0..600).map(move |row| format!("{user}_{row:06}"));
        rows.map(|row| DynamicEntity::new("tenant_a", row))
    });
    let others = (0..50).map(|row| DynamicEntity::new("z", format!("eve_{row:06}")));
    let all = rows.chain(others);
    let report = table.bulk().insert(stream::iter(all)).await.unwrap();
    assert!(report.is_success());

    let sample = Sample::read(&table, 200).await.unwrap();
    assert_eq!(
        (sample.len(), sample.partitions(), sample.is_complete()),
        (200, 2, false)
    );
    let module = sample.module("Logs", None).unwrap().to_string();
    // The first 200 alone would be `ann_{ann:06}`, in partitions that begin with `tenant_`.
    assert!(
        module.contains("row_key = \"{row}_{number:06}\""),
        "{module}"
    );
    assert!(!module.contains("partition_key = "), "{module}");

    for (count, len, is_complete) in [
        (1, 1, false),
        (1_249, 1_249, false),
        (1_250, 1_250, true),
        (5_000, 1_250, true),
    ] {
        let sample = Sample::read(&table, count).await.unwrap();
        assert_eq!(
            (sample.len(), sample.is_complete()),
            (len, is_complete),
            "{count}"
        );
        let module = sample.module("Logs", None);
        assert!(module.is_ok(), "{count}");
    }
}
