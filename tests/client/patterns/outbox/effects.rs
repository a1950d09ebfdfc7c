//! The outbox: the entities that steps write, and what arrives late.

use std::time::Duration;

use futures::stream;
use harness::client_with;
use tablesdk::outbox::{Outbox, Step};
use tablesdk::{DynamicEntity, ETag, Properties, RetryPolicy, TableEntity};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::{HOUR, company, department, outbox_rows, report, stored, stored_title, title};

#[tokio::test(start_paused = true)]
async fn steps_of_every_kind_follow_in_their_order() {
    let (server, table, titles) = company().await;
    let remark = DynamicEntity::new("Titles", "Sales").with("Remark", "merged");
    let old = DynamicEntity::new("Titles", "Old");
    titles.insert(&old).await.unwrap();
    let other = DynamicEntity::new("Elsewhere", "1").with("Title", "in the same table");
    let batch = table
        .batch("Sales")
        .insert(&department("Sales"))
        .step(Step::upsert_replace(&titles, &title("Sales")))
        .step(Step::upsert_merge(&titles, &remark))
        .step(Step::delete(&titles, ("Titles", "Old")))
        .step(Step::upsert_replace(&table, &other));
    batch.await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("Sales"));
    let key = ("Titles", "Sales");
    assert_eq!(
        stored(&titles, key, "Remark").await.as_deref(),
        Some("merged")
    );
    assert!(
        titles
            .get::<DynamicEntity>(("Titles", "Old"))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        table
            .get::<DynamicEntity>(("Elsewhere", "1"))
            .await
            .unwrap()
            .is_some()
    );
    // What a delete step deleted is looked at once more.
    let rows = outbox_rows(&server);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[1], "removed.00000000000000000003");
    let outbox = Outbox::new(&table);
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server).len(), 3);
    server.clock().advance(HOUR + Duration::from_secs(60));
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A property of the entity that no step has stays after a merge, and not after a replace.
#[tokio::test(start_paused = true)]
async fn a_step_merges_into_what_the_program_has_written() {
    let (_server, table, titles) = company().await;
    titles
        .insert(&title("Sales").with("Floor", "3"))
        .await
        .unwrap();
    let renamed = |name| Step::upsert_merge(&titles, &title(name));
    let batch = table.batch("Sales").insert(&department("a"));
    batch.step(renamed("a")).await.unwrap();
    let key = ("Titles", "Sales");
    assert_eq!(stored(&titles, key, "Floor").await.as_deref(), Some("3"));
    // An entity that a step has written can be written by the next one as it was read.
    let read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    let batch = table.batch("Sales").upsert_replace(&department("b"));
    batch
        .step(Step::upsert_replace(&titles, &*read))
        .await
        .unwrap();
    assert_eq!(stored(&titles, key, "Floor").await.as_deref(), Some("3"));
    let batch = table.batch("Sales").upsert_replace(&department("c"));
    batch
        .step(Step::upsert_replace(&titles, &title("c")))
        .await
        .unwrap();
    let read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    assert_eq!(read.properties().get("Floor"), None);
}

/// The stamp of the entity shows it, without another attempt of a worker.
#[tokio::test(start_paused = true)]
async fn a_step_whose_response_is_lost_is_not_one_that_failed() {
    let (server, table, titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    let batch = batch.step(Step::upsert_replace(&titles, &title("a")));
    batch.leave_steps().await.unwrap();
    let writes = server.faults().on_writes().table("Titles");
    let lost = writes.times(1).inject(Fault::lost_response());
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let drained = Outbox::new(&service.table("Company")).drain().await;
    assert_eq!(drained.unwrap(), report(1, 0, 0, 0));
    assert_eq!(lost.hits(), 1);
}

/// A late insert of an earlier step brings a deleted entity back: it is deleted again, when no such request can be in flight any more.
#[tokio::test(start_paused = true)]
async fn a_deleted_entity_that_comes_back_is_deleted_again() {
    let (server, table, titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    let step = Step::upsert_replace(&titles, &title("a"));
    let inserts = server.faults().on(Op::InsertEntity).table("Titles");
    let late = Fault::late_duplicate(Duration::from_secs(1_800));
    let injected = inserts.times(1).inject(late);
    batch.step(step).await.unwrap();
    assert_eq!(injected.hits(), 1);
    let batch = table.batch("Sales").upsert_replace(&department("b"));
    batch
        .step(Step::delete(&titles, ("Titles", "Sales")))
        .await
        .unwrap();
    sleep(Duration::from_secs(1_801)).await;
    assert_eq!(
        stored_title(&titles).await.as_deref(),
        Some("a"),
        "it came back"
    );
    let outbox = Outbox::new(&table);
    outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    sleep(HOUR).await;
    outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await, None);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// The entity shows that the step was applied, although its entry was not deleted: what the program wrote since stays.
#[tokio::test(start_paused = true)]
async fn a_step_that_was_applied_is_not_applied_again() {
    let (server, table, titles) = company().await;
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.inject(Fault::reset());
    let batch = table.batch("Sales").insert(&department("a"));
    batch
        .step(Step::upsert_replace(&titles, &title("a")))
        .await
        .unwrap();
    assert!(injected.hits() > 0);
    server.faults().clear();
    let key = ("Titles", "Sales");
    let mut read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    read.properties_mut().set("Title", "edited");
    titles.replace(&mut read).await.unwrap();
    assert_eq!(
        Outbox::new(&table).drain().await.unwrap(),
        report(1, 0, 0, 0)
    );
    assert_eq!(stored_title(&titles).await.as_deref(), Some("edited"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// An entity that is inserted is a new one, which no step has written: else the worker would delete it as one that came back late.
#[tokio::test(start_paused = true)]
async fn a_deleted_entity_that_the_program_puts_back_stays() {
    let (server, table, titles) = company().await;
    let keys = ["insert", "upsert", "batch", "transaction", "bulk"];
    let steps = async |step: &dyn Fn(&str) -> Step| {
        let mut batch = table.batch("Sales").upsert_replace(&department("a"));
        for row in keys {
            batch = batch.step(step(row));
        }
        batch.await.unwrap();
    };
    let written = |row: &str| DynamicEntity::new("Titles", row).with("Title", row);
    steps(&|row| Step::upsert_replace(&titles, &written(row))).await;
    let mut backup = Vec::new();
    for row in keys {
        let found = titles.get::<DynamicEntity>(("Titles", row)).await.unwrap();
        let found = found.unwrap().into_inner();
        assert!(found.properties().get("TablesdkStepOf").is_some());
        backup.push(found);
    }
    steps(&|row| Step::delete(&titles, ("Titles", row))).await;
    let [insert, upsert, batch, transaction, bulk] = &backup[..] else {
        unreachable!("there are 5 keys")
    };
    titles.insert(insert).await.unwrap();
    titles.upsert_replace(upsert).await.unwrap();
    titles.batch("Titles").insert(batch).await.unwrap();
    let inserting = titles.transaction("Titles", async |tx| {
        tx.insert(transaction);
        Ok(())
    });
    inserting.await.unwrap();
    let bulk = titles.bulk().insert(stream::iter([bulk]));
    assert_eq!(bulk.await.unwrap().progress().written, 1);
    server.clock().advance(HOUR + Duration::from_secs(60));
    Outbox::new(&table).drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
    for row in keys {
        let title = stored(&titles, ("Titles", row), "Title").await;
        assert_eq!(title.as_deref(), Some(row));
    }
}

/// Else the worker that comes after would write the deleted entity anew.
#[tokio::test(start_paused = true)]
async fn an_applied_step_is_removed_before_a_delete_step_begins() {
    let (server, table, titles) = company().await;
    let batch = table
        .batch("Sales")
        .insert(&department("a"))
        .step(Step::upsert_replace(&titles, &title("a")))
        .step(Step::delete(&titles, ("Titles", "Sales")));
    batch.leave_steps().await.unwrap();
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.inject(Fault::reset());
    let outbox = Outbox::new(&table);
    drop(outbox.drain().await);
    assert!(injected.hits() > 0);
    server.faults().clear();
    sleep(Duration::from_secs(31)).await;
    outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await, None);
}

/// A worker that is slow for hours does not write what was deleted meanwhile, when the delete is not looked at any more.
#[tokio::test(start_paused = true)]
async fn a_worker_reads_the_log_again_after_a_long_pause() {
    let (server, table, titles) = company().await;
    for step in [
        Step::upsert_replace(&titles, &title("a")),
        Step::delete(&titles, ("Titles", "Sales")),
    ] {
        let batch = table.batch("Sales").upsert_replace(&department("a"));
        batch.step(step).leave_steps().await.unwrap();
    }
    let patient = RetryPolicy::none().try_timeout(HOUR * 3).deadline(HOUR * 3);
    let slow = client_with(&server, |builder| builder.retry(patient)).table("Company");
    let reads = server.faults().on(Op::QueryEntity).table("Titles");
    let pause = Fault::delayed_response(HOUR * 2);
    let injected = reads.times(1).inject(pause);
    let others = async {
        for pause in [60, 60, 3_700, 60] {
            sleep(Duration::from_secs(pause)).await;
            Outbox::new(&table).drain().await.unwrap();
        }
        assert_eq!(outbox_rows(&server), ["head"]);
    };
    let slow = Outbox::new(&slow);
    let (drained, ()) = tokio::join!(slow.drain(), others);
    assert_eq!((drained.unwrap(), injected.hits()), (report(0, 0, 0, 0), 1));
    assert_eq!(stored_title(&titles).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_step_does_not_merge_into_an_entity_that_came_back() {
    let (server, table, titles) = company().await;
    let inserts = server.faults().on(Op::InsertEntity).table("Titles");
    let late = Fault::late_duplicate(Duration::from_secs(1_800));
    let injected = inserts.times(1).inject(late);
    let write = async |step| {
        let batch = table.batch("Sales").upsert_replace(&department("a"));
        batch.step(step).await.unwrap();
    };
    write(Step::upsert_replace(&titles, &title("a"))).await;
    write(Step::delete(&titles, ("Titles", "Sales"))).await;
    assert_eq!(injected.hits(), 1);
    sleep(Duration::from_secs(1_801)).await;
    let remark = DynamicEntity::new("Titles", "Sales").with("Remark", "new");
    write(Step::upsert_merge(&titles, &remark)).await;
    let found = titles
        .get::<DynamicEntity>(("Titles", "Sales"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.properties().get("Title"), None);
    assert_eq!(found.properties().read::<String>("Remark").unwrap(), "new");
    sleep(HOUR).await;
    Outbox::new(&table).drain().await.unwrap();
    // It is newer than the delete step.
    assert!(
        titles
            .get::<DynamicEntity>(("Titles", "Sales"))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A struct that keeps what it does not model.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Kept {
    department: String,
    id: String,
    #[table(rest)]
    rest: Properties,
}

/// Else a worker would take the entity for one that a step before the delete step has written, and delete it.
#[tokio::test(start_paused = true)]
async fn an_entity_that_gets_the_rest_of_another_is_not_that_of_its_step() {
    for way in [
        "replace",
        "merge",
        "replace_if",
        "merge_if",
        "replace_if any",
        "merge_if any",
        "changed_only",
        "modify",
        "batch",
        "transaction",
    ] {
        let (server, table, titles) = company().await;
        let entity = |row: &str| DynamicEntity::new("Titles", row).with("Title", row);
        let steps = [
            Step::upsert_replace(&titles, &entity("old")),
            Step::upsert_replace(&titles, &entity("new")),
            Step::delete(&titles, ("Titles", "new")),
        ];
        for step in steps {
            table.batch("Sales").step(step).await.unwrap();
        }
        titles.insert(&entity("new")).await.unwrap();
        let get = async |row: &str| {
            let found = titles.get(Kept::key("Titles", row)).tracked().await;
            found.unwrap().expect("it was written")
        };
        let rest = get("old").await.rest.clone();
        assert!(rest.get("TablesdkStepOf").is_some());
        let mut new = get("new").await;
        new.rest = rest.clone();
        let etag = new.etag().clone();
        match way {
            "replace" => drop(titles.replace(&mut new).await.unwrap()),
            "merge" => drop(titles.merge(&mut new).await.unwrap()),
            "changed_only" => drop(titles.merge(&mut new).changed_only().await.unwrap()),
            "replace_if" => drop(titles.replace_if(&*new, etag).await.unwrap()),
            "merge_if" => drop(titles.merge_if(&*new, etag).await.unwrap()),
            "replace_if any" => drop(titles.replace_if(&*new, ETag::ANY).await.unwrap()),
            "merge_if any" => drop(titles.merge_if(&*new, ETag::ANY).await.unwrap()),
            "modify" => {
                let change = |e: &mut Kept| {
                    e.rest = rest.clone();
                    Ok(())
                };
                let key = Kept::key("Titles", "new");
                drop(titles.modify(key, change).await.unwrap());
            }
            "batch" => drop(titles.batch("Titles").replace(&mut new).await.unwrap()),
            _ => {
                let change = titles.transaction("Titles", async |tx| {
                    let mut new = tx
                        .get(Kept::key("Titles", "new"))
                        .await?
                        .ok_or("it is there")?;
                    new.rest = rest.clone();
                    tx.replace(new);
                    Ok(())
                });
                change.await.unwrap();
            }
        }
        assert_eq!(
            stored(&titles, ("Titles", "new"), "Title").await.as_deref(),
            Some("old"),
            "{way}"
        );
        server.clock().advance(HOUR + Duration::from_secs(1));
        Outbox::new(&table).drain().await.unwrap();
        assert!(
            titles
                .get(Kept::key("Titles", "new"))
                .await
                .unwrap()
                .is_some(),
            "{way}"
        );
        assert_eq!(outbox_rows(&server), ["head"], "{way}");
    }
}

/// An entity that was read keeps its own stamp: else a step whose entry could not be deleted would be applied over what the program wrote.
#[tokio::test(start_paused = true)]
async fn an_entity_that_is_read_and_replaced_is_still_that_of_its_step() {
    let (_server, table, titles) = company().await;
    let step = Step::upsert_replace(&titles, &title("a"));
    table.batch("Sales").step(step).await.unwrap();
    let get = async || {
        let found = titles.get(Kept::key("Titles", "Sales")).tracked().await;
        found.unwrap().expect("a step wrote it")
    };
    let stamp = get().await.rest.get("TablesdkStepOf").cloned();
    assert!(stamp.is_some());
    let mut kept = get().await;
    for name in ["b", "c"] {
        kept.rest.set("Title", name);
        titles.replace(&mut kept).await.unwrap();
        assert_eq!(get().await.rest.get("TablesdkStepOf"), stamp.as_ref());
    }
    let mut kept = get().await;
    kept.rest.set("Title", None::<String>);
    titles.merge(&mut kept).changed_only().await.unwrap();
    assert_eq!(get().await.rest.get("TablesdkStepOf"), stamp.as_ref());
    let change = |e: &mut Kept| {
        e.rest.set("Title", "d");
        Ok(())
    };
    let key = Kept::key("Titles", "Sales");
    drop(titles.modify(key, change).await.unwrap());
    let found = get().await;
    assert_eq!(found.rest.read::<String>("Title").unwrap(), "d");
    assert_eq!(found.rest.get("TablesdkStepOf"), stamp.as_ref());
}
