//! The outbox: the entities that steps write, and what arrives late.

use std::time::Duration;

use futures::stream;
use harness::client_with;
use tablesdk::outbox::{Outbox, Step};
use tablesdk::{DynamicEntity, ETag, Properties, RetryPolicy, TableEntity, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, InjectedFault, Op};
use tokio::time::sleep;

use super::{
    HOUR, commit, company, delete_title, drain, leave, outbox_rows, report, set_title, stored,
    stored_title, title,
};

const HALF_AN_HOUR: Duration = Duration::from_secs(1_801);

/// The next insert of a title arrives once more, half an hour later.
fn late_insert(server: &TableServer) -> InjectedFault {
    let inserts = server.faults().on(Op::InsertEntity).table("Titles");
    let late = Fault::late_duplicate(Duration::from_secs(1_800));
    inserts.times(1).inject(late)
}

fn titled(row: &str) -> DynamicEntity {
    DynamicEntity::new("Titles", row).with("Title", row)
}

#[tokio::test(start_paused = true)]
async fn steps_of_every_kind_follow_in_their_order() {
    let (server, table, titles) = company().await;
    let remark = DynamicEntity::new("Titles", "Sales").with("Remark", "merged");
    let old = DynamicEntity::new("Titles", "Old").with("Title", "old");
    titles.insert(&old).await.unwrap();
    let other = DynamicEntity::new("Elsewhere", "1").with("Title", "in the same table");
    let steps = [
        set_title(&titles, "Sales"),
        Step::upsert_merge(&titles, &remark),
        Step::delete(&titles, ("Titles", "Old")),
        Step::upsert_replace(&table, &other),
    ];
    commit(&table, steps).await;
    for (table, key, name, expected) in [
        (&titles, ("Titles", "Sales"), "Title", Some("Sales")),
        (&titles, ("Titles", "Sales"), "Remark", Some("merged")),
        (&titles, ("Titles", "Old"), "Title", None),
        (
            &table,
            ("Elsewhere", "1"),
            "Title",
            Some("in the same table"),
        ),
    ] {
        let found = stored(table, key, name).await;
        assert_eq!(found.as_deref(), expected, "{key:?}");
    }
    // What a delete step deleted is looked at once more.
    let rows = outbox_rows(&server);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[1], "removed.00000000000000000003");
    drain(&table).await;
    assert_eq!(outbox_rows(&server).len(), 3);
    server.clock().advance(HOUR + Duration::from_secs(60));
    drain(&table).await;
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A property of the entity that no step has stays after a merge, and not after a replace.
#[tokio::test(start_paused = true)]
async fn a_step_merges_into_what_the_program_has_written() {
    let (_server, table, titles) = company().await;
    let with_floor = title("Sales").with("Floor", "3");
    titles.insert(&with_floor).await.unwrap();
    let read = async || {
        let found = titles.get::<DynamicEntity>(("Titles", "Sales")).await;
        found.unwrap().unwrap().into_inner()
    };
    let floor = Some(Value::from("3"));
    commit(&table, [Step::upsert_merge(&titles, &title("a"))]).await;
    assert_eq!(read().await.properties().get("Floor"), floor.as_ref());
    // An entity that a step has written can be written by the next one as it was read.
    let step = Step::upsert_replace(&titles, &read().await);
    commit(&table, [step]).await;
    assert_eq!(read().await.properties().get("Floor"), floor.as_ref());
    commit(&table, [set_title(&titles, "c")]).await;
    assert_eq!(read().await.properties().get("Floor"), None);
}

/// The stamp of the entity shows it, without another attempt of a worker.
#[tokio::test(start_paused = true)]
async fn a_step_whose_response_is_lost_is_not_one_that_failed() {
    let (server, table, titles) = company().await;
    leave(&table, [set_title(&titles, "a")]).await;
    let writes = server.faults().on_writes().table("Titles");
    let lost = writes.times(1).inject(Fault::lost_response());
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let drained = Outbox::new(&service.table("Company")).drain().await;
    assert_eq!(drained.unwrap(), report(1, 0, 0, 0));
    assert_eq!(lost.hits(), 1);
}

/// A late insert of an earlier step brings a deleted entity back: it is deleted again, when no such
/// request can be in flight any more.
#[tokio::test(start_paused = true)]
async fn a_deleted_entity_that_comes_back_is_deleted_again() {
    let (server, table, titles) = company().await;
    let injected = late_insert(&server);
    commit(&table, [set_title(&titles, "a")]).await;
    commit(&table, [delete_title(&titles)]).await;
    sleep(HALF_AN_HOUR).await;
    assert_eq!(injected.hits(), 1);
    for pause in [Duration::ZERO, HOUR] {
        // It came back.
        assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
        sleep(pause).await;
        drain(&table).await;
    }
    assert_eq!(stored_title(&titles).await, None);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// The entity shows that the step was applied, although its entry was not deleted: what the program
/// wrote since stays.
#[tokio::test(start_paused = true)]
async fn a_step_that_was_applied_is_not_applied_again() {
    let (server, table, titles) = company().await;
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.inject(Fault::reset());
    commit(&table, [set_title(&titles, "a")]).await;
    assert!(injected.hits() > 0);
    server.faults().clear();
    let key = ("Titles", "Sales");
    let mut read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    read.properties_mut().set("Title", "edited");
    titles.replace(&mut read).await.unwrap();
    assert_eq!(drain(&table).await, report(1, 0, 0, 0));
    assert_eq!(stored_title(&titles).await.as_deref(), Some("edited"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// An entity that is inserted is a new one, which no step has written: else the worker would delete
/// it as one that came back late.
#[tokio::test(start_paused = true)]
async fn a_deleted_entity_that_the_program_puts_back_stays() {
    let (server, table, titles) = company().await;
    let keys = ["insert", "upsert", "batch", "transaction", "bulk"];
    let steps = keys.map(|row| Step::upsert_replace(&titles, &titled(row)));
    commit(&table, steps).await;
    let mut backup = Vec::new();
    for row in keys {
        let found = titles.get::<DynamicEntity>(("Titles", row)).await.unwrap();
        let found = found.unwrap().into_inner();
        assert!(found.properties().get("TablesdkStepOf").is_some());
        backup.push(found);
    }
    let steps = keys.map(|row| Step::delete(&titles, ("Titles", row)));
    commit(&table, steps).await;
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
    drain(&table).await;
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
    leave(&table, [set_title(&titles, "a"), delete_title(&titles)]).await;
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

/// A worker that is slow for hours does not write what was deleted meanwhile, when the delete is
/// not looked at any more.
#[tokio::test(start_paused = true)]
async fn a_worker_reads_the_log_again_after_a_long_pause() {
    let (server, table, titles) = company().await;
    for step in [set_title(&titles, "a"), delete_title(&titles)] {
        leave(&table, [step]).await;
    }
    let patient = RetryPolicy::none().try_timeout(HOUR * 3).deadline(HOUR * 3);
    let slow = client_with(&server, |builder| builder.retry(patient)).table("Company");
    let reads = server.faults().on(Op::QueryEntity).table("Titles");
    let pause = Fault::delayed_response(HOUR * 2);
    let injected = reads.times(1).inject(pause);
    let others = async {
        for pause in [60, 60, 3_700, 60] {
            sleep(Duration::from_secs(pause)).await;
            drain(&table).await;
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
    let injected = late_insert(&server);
    commit(&table, [set_title(&titles, "a")]).await;
    commit(&table, [delete_title(&titles)]).await;
    sleep(HALF_AN_HOUR).await;
    assert_eq!(injected.hits(), 1);
    let remark = DynamicEntity::new("Titles", "Sales").with("Remark", "new");
    commit(&table, [Step::upsert_merge(&titles, &remark)]).await;
    // The entity is newer than the delete step.
    for pause in [Duration::ZERO, HOUR] {
        sleep(pause).await;
        drain(&table).await;
        let found = titles.get::<DynamicEntity>(("Titles", "Sales")).await;
        let found = found.unwrap().expect("a step wrote it").into_inner();
        assert_eq!(found.properties().get("Title"), None);
        assert_eq!(found.properties().read::<String>("Remark").unwrap(), "new");
    }
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

/// Else a worker would take the entity for one that a step before the delete step has written, and
/// delete it.
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
        for step in [
            Step::upsert_replace(&titles, &titled("old")),
            Step::upsert_replace(&titles, &titled("new")),
            Step::delete(&titles, ("Titles", "new")),
        ] {
            commit(&table, [step]).await;
        }
        titles.insert(&titled("new")).await.unwrap();
        let get = async |row: &str| {
            let found = titles.get(Kept::key("Titles", row)).tracked().await;
            found.unwrap().expect("it was written")
        };
        let rest = get("old").await.rest.clone();
        assert!(rest.get("TablesdkStepOf").is_some());
        let mut new = get("new").await;
        new.rest = rest.clone();
        let (key, etag) = (Kept::key("Titles", "new"), new.etag().clone());
        let take_rest = |e: &mut Kept| {
            e.rest = rest.clone();
            Ok(())
        };
        match way {
            "replace" => drop(titles.replace(&mut new).await.unwrap()),
            "merge" => drop(titles.merge(&mut new).await.unwrap()),
            "changed_only" => drop(titles.merge(&mut new).changed_only().await.unwrap()),
            "replace_if" => drop(titles.replace_if(&*new, etag).await.unwrap()),
            "merge_if" => drop(titles.merge_if(&*new, etag).await.unwrap()),
            "replace_if any" => drop(titles.replace_if(&*new, ETag::ANY).await.unwrap()),
            "merge_if any" => drop(titles.merge_if(&*new, ETag::ANY).await.unwrap()),
            "modify" => drop(titles.modify(key, take_rest).await.unwrap()),
            "batch" => drop(titles.batch("Titles").replace(&mut new).await.unwrap()),
            _ => {
                let change = titles.transaction("Titles", async |tx| {
                    let mut new = tx.get(key.clone()).await?.ok_or("it is there")?;
                    take_rest(&mut new)?;
                    tx.replace(new);
                    Ok(())
                });
                change.await.unwrap();
            }
        }
        let title = async || stored(&titles, ("Titles", "new"), "Title").await;
        assert_eq!(title().await.as_deref(), Some("old"), "{way}");
        server.clock().advance(HOUR + Duration::from_secs(1));
        drain(&table).await;
        assert_eq!(title().await.as_deref(), Some("old"), "{way}");
        assert_eq!(outbox_rows(&server), ["head"], "{way}");
    }
}

/// An entity that was read keeps its own stamp: else a step whose entry could not be deleted would
/// be applied over what the program wrote.
#[tokio::test(start_paused = true)]
async fn an_entity_that_is_read_and_replaced_is_still_that_of_its_step() {
    let (_server, table, titles) = company().await;
    commit(&table, [set_title(&titles, "a")]).await;
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
    let mut kept = get().await;
    assert_eq!(kept.rest.read::<String>("Title").unwrap(), "d");
    assert_eq!(kept.rest.get("TablesdkStepOf"), stamp.as_ref());
    // To the key that it has.
    for name in ["e", "f"] {
        kept.rest.set("Title", name);
        titles.move_key(&mut kept).await.unwrap();
        assert_eq!(get().await.rest.get("TablesdkStepOf"), stamp.as_ref());
    }
}
