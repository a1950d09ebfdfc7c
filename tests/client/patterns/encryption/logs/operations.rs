//! Operations that succeed and fail, each of which is shown.

use futures::{StreamExt as _, stream};
use harness::proxy::{Proxy, Reply, service_response};
use tablesdk::{DynamicEntity, ETag, Guid, TableClient, TableEntity as _, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::super::binary;
use super::super::every::{CITY, ENCRYPTED, Every, GUID, NAME, NOTE, NUMBER, Small, every};
use super::shown::{Shown, run};

/// All operations with properties that are encrypted, and what may fail of them.
pub(super) async fn writes(table: &TableClient, server: &TableServer, shown: &mut Shown) {
    let (ada, key) = (every("1"), || Every::key("1"));
    run!(shown, table.insert(&ada).exactly_once());
    run!(shown, table.insert(&ada));
    run!(shown, table.upsert_merge(&ada));
    run!(shown, table.upsert_replace(&ada));
    run!(shown, table.merge_if(&ada, ETag::ANY));
    run!(shown, table.replace_if(&ada, ETag::ANY));
    run!(
        shown,
        table
            .patch(key())
            .set(|c| c.string, NAME)
            .set(|c| c.int64, NUMBER)
    );
    let mut tracked = run!(shown, table.get(key()).tracked()).flatten().unwrap();
    tracked.int64 = -1;
    run!(shown, table.merge(&mut tracked).changed_only());
    tracked.int64 = NUMBER;
    let mut stale = tracked.clone();
    run!(shown, table.replace(&mut tracked));
    run!(shown, table.replace(&mut stale));
    run!(
        shown,
        table.modify(key(), |every: &mut Every| {
            every.visits += 1;
            Ok(())
        })
    );
    run!(
        shown,
        table.modify(key(), |_: &mut Every| Err::<(), _>("aborted".into()))
    );
    let both = || table.batch("Ward").upsert_replace(&ada).insert(&every("1"));
    run!(shown, both());
    if let Some(result) = run!(shown, table.batch("Ward").merge_if(&ada, ETag::ANY)) {
        shown.debug(&result);
    }
    let read = table.transaction("Ward", async |tx| {
        let mut found = tx.get(key()).await?.ok_or("it exists")?;
        found.visits += 1;
        tx.replace(found);
        Ok(format!("{tx:?}"))
    });
    let text = shown.result(read.await);
    shown.texts.extend(text);
    let bulk = table
        .bulk()
        .insert(stream::iter(["1", "2", "3"].map(every)));
    let report = bulk.await.unwrap();
    assert_eq!(report.failures().len(), 1);
    shown.debug(&report);
    for fault in [
        Fault::lost_response,
        Fault::reset,
        Fault::corrupted_response,
    ] {
        let faults = server.faults();
        let injected = faults.on_writes().times(9).inject(fault());
        run!(shown, table.insert(&every("9")));
        run!(shown, both());
        injected.remove();
        let injected = faults.on_reads().times(9).inject(fault());
        run!(shown, table.get(key()));
        injected.remove();
    }
    table.delete(("Ward", "9")).await.unwrap();
    // Longer than a string, and than what is encrypted.
    let long = |text: String| Every {
        string: text,
        ..every("8")
    };
    run!(shown, table.insert(&long(NAME.repeat(2_000))));
    run!(
        shown,
        table.insert(&long(format!("{NAME}{}", "€".repeat(22_000))))
    );
}

pub(super) async fn queries(table: &TableClient, shown: &mut Shown) {
    let filter = || {
        let c = Every::columns();
        let name = c.string.eq(NAME) & !c.string.is_in(["x", CITY]);
        name & c.int64.eq(NUMBER) & c.guid.eq(GUID.parse::<Guid>().unwrap())
    };
    shown.debug(&filter());
    let query = || table.query::<Every>().filter(|_| filter());
    shown.debug(&query());
    shown.display(&query().explain().unwrap());
    assert_eq!(run!(shown, query() => collect).unwrap().len(), 3);
    assert_eq!(run!(shown, query() => count), Some(3));
    let page = run!(shown, query().page_size(1) => page(None)).unwrap();
    let next = page.next.unwrap();
    shown.texts.extend([format!("{next:?}"), next.to_string()]);
    run!(shown, query().page_size(1) => page(next.clone()));
    let of_city = || table.query::<Every>().filter(|c| c.string.eq(CITY));
    // Of another query.
    run!(shown, of_city() => page(next));
    run!(shown, query().select(|c| (c.string, c.binary)) => one);
    // Too long to be stored, and too large for the type.
    let too_long = "€".repeat(30_000) + NAME;
    run!(shown, table.query::<Every>().filter(|c| c.string.eq(too_long)) => collect);
    run!(shown, table.get::<Small>(("Ward", "1")));
    run!(shown, table.query::<Small>() => collect);
    let small = table.query::<Small>().skip_unreadable(|_| ());
    assert!(small.collect().await.unwrap().is_empty());
    let report = of_city().delete_all().await.unwrap();
    shown.debug(&report);
}

/// Reads of values that were changed, and of ones that other programs have written.
pub(super) async fn tampering(table: &TableClient, raw: &TableClient, shown: &mut Shown) {
    let right = raw
        .get::<DynamicEntity>(("Ward", "1"))
        .await
        .unwrap()
        .unwrap()
        .into_inner();
    for property in ENCRYPTED {
        let bytes = binary(&right, property);
        let mut values = vec![
            Value::Binary(bytes[..bytes.len() - 1].to_vec()),
            // What was stored before the property was encrypted.
            Value::from(NAME),
            Value::Binary(NOTE.to_vec()),
            Value::Int64(NUMBER),
        ];
        for at in [0, 5, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            values.push(Value::Binary(changed));
        }
        for value in values {
            let mut changed = right.clone();
            changed.properties_mut().set(property, value);
            raw.upsert_replace(&changed).await.unwrap();
            assert!(
                run!(shown, table.get(Every::key("1"))).is_none(),
                "{property}"
            );
            let all: Vec<_> = table.query::<Every>().stream().collect().await;
            for one in all {
                shown.result(one);
            }
            let modify = table.modify(Every::key("1"), |_: &mut Every| Ok(()));
            run!(shown, modify);
        }
    }
    raw.upsert_replace(&right).await.unwrap();
}

/// A response whose values are no Base64, or that ends early.
pub(super) async fn malformed(table: &TableClient, proxy: &Proxy, shown: &mut Shown) {
    for body in [
        r#"{"PartitionKey":"Ward","RowKey":"1","string@odata.type":"Edm.Binary","string":"?AQE!"}"#,
        r#"{"PartitionKey":"Ward","RowKey":"1","string@odata.type":"Edm.Binary","string":7}"#,
        r#"{"PartitionKey":"Ward","RowKey":"1","string@odata.type":"Edm.Binary","string":"AQE"#,
    ] {
        let response = service_response(200).header("etag", "\"x\"");
        let response = response.body(body.into()).unwrap();
        proxy.plan(Op::QueryEntity, [Reply::Respond(response)]);
        assert!(run!(shown, table.get(Every::key("1"))).is_none(), "{body}");
    }
}
