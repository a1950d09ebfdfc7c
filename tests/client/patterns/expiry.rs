//! Entities that expire: which reads return them, and what writes do with them.

use tablesdk::expiry::Expires;
use tablesdk::{DynamicEntity, TableClient, TableEntity, Timestamp};

use super::on_both_transports;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
#[table(index(ByDevice, row_key = "device_{device}_{id:06}"))]
#[table(index(
    OfDevice,
    partition_key = "device_{device}",
    row_key = "of_{user}_{id:06}"
))]
struct Session {
    user: String,
    id: u32,
    device: Option<String>,
    #[table(expires, rename = "Until")]
    until: Option<Timestamp>,
}

/// The properties that other programs may still show.
#[derive(Debug, TableEntity)]
#[table(projection)]
struct Device {
    device: Option<String>,
}

#[derive(Debug, TableEntity)]
#[table(projection)]
struct Expiry {
    #[table(expires, rename = "Until")]
    until: Option<Timestamp>,
}

/// Hours from now.
pub(crate) fn hours(hours: i64) -> Timestamp {
    let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
    Timestamp::from_unix_ticks(now.unix_ticks() + hours * 3600 * 10_000_000).unwrap()
}

fn session(id: u32, until: Option<Timestamp>) -> Session {
    let device = Some("phone".to_owned());
    Session {
        user: "ann".to_owned(),
        id,
        device,
        until,
    }
}

/// Sessions 1 and 3 are over, 2 and 4 are not.
async fn four(table: &TableClient) {
    for (id, until) in [
        (1, Some(hours(-1))),
        (2, Some(hours(1))),
        (3, Some(hours(-2))),
        (4, None),
    ] {
        table.insert(&session(id, until)).await.unwrap();
    }
}

on_both_transports! {
    async fn expired_entities_are_not_returned_unless_they_are_asked_for(subject: Subject) {
        let table = subject.table().await;
        four(&table).await;
        let key = |id| Session::key("ann", id);
        assert!(table.get(key(1)).await.unwrap().is_none());
        assert_eq!(table.get(key(2)).await.unwrap().unwrap().id, 2);
        assert_eq!(table.get(key(4)).tracked().await.unwrap().unwrap().until, None);
        let over = table.get(key(1)).including_expired().await.unwrap().unwrap();
        assert!(over.expires_at().unwrap() < hours(0));
        let id = |entity: tablesdk::Stored<DynamicEntity>| Ok(entity.row_key().to_owned());
        assert_eq!(table.get::<Session>(key(1)).resolve(id).await.unwrap(), None);
        assert!(table.get::<Session>(key(1)).including_expired().resolve(id).await.unwrap().is_some());

        let many = table.get_many([1, 2, 3, 4].map(key)).await.unwrap();
        let many: Vec<_> = many.into_iter().map(|found| found.map(|it| it.id)).collect();
        assert_eq!(many, [None, Some(2), None, Some(4)]);
        let many = table.get_many([1, 2].map(key)).including_expired().await.unwrap();
        assert!(many.iter().all(Option::is_some));

        let of_ann = || table.query::<Session>().partition("ann");
        assert_eq!(of_ann().select(|s| s.id).collect().await.unwrap(), [2, 4]);
        assert_eq!(of_ann().count().await.unwrap(), 2);
        assert_eq!(of_ann().including_expired().count().await.unwrap(), 4);
        assert_eq!(of_ann().first().await.unwrap().unwrap().id, 2);
        assert_eq!(of_ann().take(1).collect().await.unwrap()[0].id, 2);
        assert_eq!(of_ann().page_size(1).collect().await.unwrap().len(), 2);
        let one = |id: u32| of_ann().rows(Session::rows().id(id));
        assert!(!one(1).exists().await.unwrap() && one(2).exists().await.unwrap());
        assert!(one(3).one().await.unwrap().is_none() && one(4).one().await.unwrap().is_some());
        assert!(one(3).including_expired().one().await.unwrap().is_some());
        let names = of_ann().resolve(id);
        assert_eq!(names.collect().await.unwrap(), ["session_000002", "session_000004"]);
        let parts = table.query::<Session>().partitions(["ann", "bob"]).in_order();
        assert_eq!(parts.count().await.unwrap(), 2);
        let all = table.query::<Session>().including_expired().partitions(["ann", "bob"]);
        assert_eq!(all.collect().await.unwrap().len(), 4);
        let by_key = table.query::<Session>().odata("PartitionKey eq 'ann' and RowKey eq 'session_000001'");
        assert!(by_key.first().await.unwrap().is_none());

        // All of them are shown to programs that do not know that they expire.
        assert_eq!(table.query::<DynamicEntity>().partition("ann").odata("Until gt datetime'1700-01-01'").count().await.unwrap(), 6);
        assert!(table.get::<DynamicEntity>(("ann", "session_000001")).await.unwrap().is_some());
        let device = table.get::<Device>(("ann", "session_000001")).await.unwrap();
        assert_eq!(device.unwrap().device.as_deref(), Some("phone"));
        assert!(table.get::<Expiry>(("ann", "session_000001")).await.unwrap().is_none());
        let expiry = table.get::<Expiry>(("ann", "session_000002")).await.unwrap();
        assert!(expiry.unwrap().until > Some(hours(0)));
    }

    async fn the_entries_of_expired_entities_are_not_returned(subject: Subject) {
        let table = subject.table().await;
        four(&table).await;
        let by_device = || table.query::<ByDevice>().partition("ann").rows(ByDevice::rows().device("phone"));
        assert_eq!(by_device().select(|s| s.id).collect().await.unwrap(), [2, 4]);
        assert_eq!(by_device().including_expired().count().await.unwrap(), 4);
        assert_eq!(by_device().follow().collect().await.unwrap().len(), 2);
        assert_eq!(by_device().including_expired().follow().collect().await.unwrap().len(), 4);
        let entry = |id| ByDevice::key("ann", id, "phone");
        assert!(table.get(entry(1)).await.unwrap().is_none());
        assert!(table.get(entry(1)).follow().await.unwrap().is_none());
        assert!(table.get(entry(1)).including_expired().follow().await.unwrap().is_some());
        assert!(table.get(entry(2)).follow().await.unwrap().is_some());

        let of_device = || table.query::<OfDevice>().partition(OfDevice::partition("phone"));
        assert_eq!(of_device().unverified().count().await.unwrap(), 2);
        assert_eq!(of_device().follow().collect().await.unwrap().len(), 2);
        assert_eq!(of_device().including_expired().follow().collect().await.unwrap().len(), 4);
        let entry = |id| OfDevice::key("phone", "ann", id);
        assert!(table.get(entry(1)).unverified().await.unwrap().is_none());
        assert!(table.get(entry(1)).including_expired().unverified().await.unwrap().is_some());
        assert!(table.get(entry(1)).follow().await.unwrap().is_none());
    }

    async fn an_insert_replaces_an_expired_entity(subject: Subject) {
        let table = subject.table().await;
        let over = Session { device: Some("laptop".to_owned()), ..session(1, Some(hours(-1))) };
        table.insert(&over).await.unwrap();
        let stored = table.insert(&session(1, Some(hours(1)))).exactly_once().await.unwrap();
        let found = table.get(Session::key("ann", 1)).await.unwrap().unwrap();
        assert_eq!((found.etag(), &*found), (stored.etag(), &*stored));
        let devices = table.query::<DynamicEntity>().collect().await.unwrap();
        let devices: Vec<_> = devices.iter().map(|it| it.row_key()).collect();
        assert_eq!(devices, ["device_phone_000001", "session_000001", "of_ann_000001"]);
        let error = table.insert(&session(1, Some(hours(1)))).await.unwrap_err();
        assert!(error.is_conflict());
        table.batch("ann").insert(&session(2, Some(hours(-1)))).await.unwrap();
        let again = table.batch("ann").insert(&session(2, Some(hours(1)))).await;
        assert!(again.unwrap_err().is_conflict(), "a batch has no second round");
    }

    async fn modify_treats_an_expired_entity_as_missing(subject: Subject) {
        let table = subject.table().await;
        four(&table).await;
        let prolong = |s: &mut Session| {
            s.until = Some(hours(2));
            Ok(())
        };
        let error = table.modify(Session::key("ann", 1), prolong).await.unwrap_err();
        assert!(error.is_not_found() && error.key().is_some(), "{error}");
        table.modify(Session::key("ann", 2), prolong).await.unwrap();
        let made = || Session { device: None, ..session(3, None) };
        let modified = table.modify(Session::key("ann", 3), prolong).or_insert(made).await.unwrap();
        assert_eq!(modified.device, None);
        let found = table.get(Session::key("ann", 3)).await.unwrap().unwrap();
        assert!(found.device.is_none() && found.until.unwrap() > hours(1));
        assert_eq!(table.query::<ByDevice>().partition("ann").including_expired().count().await.unwrap(), 3);
        // A write of what was read does not look.
        let mut over = table.get(Session::key("ann", 1)).including_expired().await.unwrap().unwrap();
        over.until = Some(hours(1));
        table.replace(&mut over).await.unwrap();
        assert!(table.get(Session::key("ann", 1)).await.unwrap().is_some());
    }
}

#[derive(Debug, TableEntity)]
#[table(
    partition_key = "{user}",
    row_key = "guest_{id:06}",
    entity_type = "Guest"
)]
struct Guest {
    user: String,
    id: u32,
    #[table(expires)]
    until: time::OffsetDateTime,
}

/// Its property of the same name is something else.
#[derive(Debug, TableEntity)]
#[table(
    partition_key = "{user}",
    row_key = "member_{id:06}",
    entity_type = "Member"
)]
struct Member {
    user: String,
    id: u32,
    until: chrono::DateTime<chrono::Utc>,
}

#[derive(Debug, TableEntity)]
enum Visitor {
    Guest(Guest),
    Member(Member),
}

#[derive(Debug, TableEntity)]
#[table(by = "row_key")]
enum ByKey {
    Guest(Guest),
    Member(Member),
}

on_both_transports! {
    async fn a_variant_expires_and_another_does_not(subject: Subject) {
        let table = subject.table().await;
        let past = time::OffsetDateTime::now_utc() - time::Duration::hours(1);
        let member = std::time::SystemTime::UNIX_EPOCH.into();
        let user = || "ann".to_owned();
        table.insert(&Guest { user: user(), id: 1, until: past }).await.unwrap();
        table.insert(&Guest { user: user(), id: 2, until: past + time::Duration::hours(2) }).await.unwrap();
        table.insert(&Member { user: user(), id: 1, until: member }).await.unwrap();
        let found = table.query::<Visitor>().partition("ann").collect().await.unwrap();
        let found: Vec<_> = found.iter().map(|it| it.key().row_key().as_str()).collect();
        assert_eq!(found, ["guest_000002", "member_000001"]);
        assert_eq!(table.query::<ByKey>().partition("ann").count().await.unwrap(), 2);
        assert_eq!(table.query::<ByKey>().including_expired().count().await.unwrap(), 3);
        for (row, is_found) in [("guest_000001", false), ("guest_000002", true), ("member_000001", true)] {
            assert_eq!(table.get::<Visitor>(("ann", row)).await.unwrap().is_some(), is_found, "{row}");
            assert_eq!(table.get::<ByKey>(("ann", row)).await.unwrap().is_some(), is_found, "{row}");
        }
        let guest = table.get::<Visitor>(("ann", "guest_000001")).including_expired().await.unwrap();
        assert!(matches!(guest.unwrap().into_inner(), Visitor::Guest(Guest { id: 1, .. })));
    }

    async fn a_page_token_is_valid_later(subject: Subject) {
        let table = subject.table().await;
        four(&table).await;
        let page = || table.query::<Session>().partition("ann").take(1);
        let first = page().page(None).await.unwrap();
        let token = first.next.expect("there is another").to_string();
        let second = page().page_after(Some(&token)).await.unwrap();
        assert_eq!((first.items[0].id, second.items[0].id), (2, 4));
    }
}

#[test]
fn the_condition_is_in_the_request_and_not_in_the_access_class() {
    let table = harness::client(&tablesdk_server::TableServer::in_process()).table("Tests");
    let query = table.query::<Session>().partition("ann");
    let explanation = query.explain().unwrap();
    let filter = explanation.filter().unwrap();
    assert!(
        filter.contains("PartitionKey eq 'ann'")
            && filter.contains(
                " and not (Until ge datetime'1601-01-01T00:00:00Z' and Until le datetime'20"
            ),
        "{filter}"
    );
    assert!(
        explanation.url().contains("Until%20le"),
        "{}",
        explanation.url()
    );
    let shown = table
        .query::<Session>()
        .including_expired()
        .explain()
        .unwrap();
    assert!(!shown.filter().unwrap().contains("Until"));
}
