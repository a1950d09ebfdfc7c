//! The reads of a write with entries or copies before it writes.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use harness::Subject;
use http::header::ETAG;
use http::{Method, Request};
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{ErrorKind, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;

use super::staff::{Staff, checked, open};

/// 60 copies are lost and 60 gained: whether there are too many changes is known only after reads.
/// 101 gained ones are too many at once.
#[tokio::test(start_paused = true)]
async fn copies_are_read_several_at_a_time_and_too_many_are_not_read() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let skills = |range: Range<u32>| range.map(|skill| format!("{skill:03}")).collect();
    let skilled = Staff {
        skills: skills(0..60),
        ..Staff::new(1, "Ada", &[])
    };
    let mut ada = table.insert(&skilled).await.unwrap();
    let slow = faults.on(Op::QueryEntity);
    let slow = slow.inject(Fault::delay(Duration::from_secs(1)));
    let began = Instant::now();
    ada.name = "Lovelace".into();
    table.replace(&mut ada).await.unwrap();
    assert_eq!((slow.hits(), began.elapsed().as_secs()), (60, 8));

    // All that stay are written, and so are all that come.
    for (range, reads, changes) in [(0..100, 60, 101), (60..120, 120, 121)] {
        ada.skills = skills(range);
        let error = table.replace(&mut ada).await.unwrap_err();
        assert_eq!((error.kind(), slow.hits()), (ErrorKind::Input, reads));
        let rule = format!("these 1 are {changes} with the entries");
        assert!(error.to_string().contains(&rule), "{error}");
    }
}

/// A backend that has the ETag of an entity only in the body.
#[derive(Debug)]
struct WithoutHeader<T>(T);

impl<T: Transport> Transport for WithoutHeader<T> {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let is_read = request.method() == Method::GET;
            let mut response = self.0.send(request).await?;
            if is_read {
                response.headers_mut().remove(ETAG);
            }
            Ok(response)
        })
    }
}

#[tokio::test]
async fn every_reader_takes_the_etag_of_the_body_where_there_is_no_header() {
    let server = TableServer::in_process();
    let transport = WithoutHeader(server.transport());
    let subject = Subject::with_transport(server, transport);
    let table = subject.table().await;
    open(&table).await;
    let manager = Staff {
        badge: Some(7),
        is_manager: true,
        ..Staff::new(1, "Ada", &["Maths"])
    };
    let mut ada = table.insert(&manager).await.unwrap();
    ada.name = "Lovelace".into();
    table.replace(&mut ada).await.unwrap();
    let modified = table.modify(Staff::key("Sales", 1), |staff| {
        staff.badge = Some(8);
        Ok(())
    });
    modified.await.unwrap();
    let changed = table.transaction("Sales", async |tx| {
        let mut ada = tx.get(Staff::key("Sales", 1)).await?.ok_or("inserted")?;
        ada.skills.clear();
        tx.replace(ada);
        Ok(())
    });
    changed.exactly_once().await.unwrap();
    ada.name = "Byron".into();
    let error = table.replace(&mut ada).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    let report = table.repair::<Staff>().await.unwrap();
    assert!(report.is_right(), "{report:?}");
    assert_eq!(checked(&table).await[0].badge, Some(8));
}
