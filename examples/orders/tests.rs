//! The service against a server in the process of the test, with faults: no mock, no sleep, in
//! parallel.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use axum::response::Response;
use futures::future::join_all;
use serde_json::{Value, json};
use tablesdk::testing::TestTable;
use tablesdk_server::testing::{Fault, Flavor, Op, Throttle};
use tablesdk_server::{ErrorCode, TableServer};
use tower::ServiceExt as _;

use crate::api::routes;

const FIRST: &str = "/customers/contoso/orders/1";
const ALMOST_HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60 - 1);

/// The service over a new table. The clock of its client is that of the server.
struct Shop {
    api: Router,
    table: TestTable<TableServer>,
}

impl Shop {
    async fn open() -> Self {
        Self::over(TableServer::in_process()).await
    }

    async fn over(server: TableServer) -> Self {
        let table = TestTable::on(server).await;
        let api = routes(table.clone());
        Self { api, table }
    }

    fn server(&self) -> &TableServer {
        self.table
            .server()
            .expect("these tests have servers of their own")
    }

    async fn respond(&self, method: &str, uri: &str, body: Value) -> Response {
        let request = Request::builder().method(method).uri(uri);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        self.api.clone().oneshot(request).await.unwrap()
    }

    async fn call(&self, method: &str, uri: &str, body: Value) -> (u16, Value) {
        let response = self.respond(method, uri, body).await;
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn place(&self, uri: &str, cents: i64) -> u16 {
        let order = json!({ "product": "tea", "cents": cents });
        self.call("PUT", uri, order).await.0
    }

    async fn pay(&self, uri: &str) -> u16 {
        self.call("POST", &format!("{uri}/payment"), Value::Null)
            .await
            .0
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_placed_and_paid() {
    let shop = Shop::open().await;
    let start = "2024-03-15T10:00:00Z".parse().unwrap();
    shop.server().clock().set(start);
    assert_eq!(shop.place(FIRST, 250).await, 200);
    assert_eq!(shop.pay(FIRST).await, 200);
    assert_eq!(
        shop.server().dump().unwrap(),
        "\
Test
Test(PartitionKey='contoso',RowKey='1')
  Cents = 250L
  IsPaid = true
  PayableUntil = datetime'2024-03-15T10:30:00Z'
  Product = \"tea\"
"
    );
}

#[tokio::test(start_paused = true)]
async fn an_order_is_placed_once_when_its_response_is_lost() {
    let shop = Shop::open().await;
    let faults = shop.server().faults();
    let lost = faults.next(Op::InsertEntity, Fault::lost_response());
    let journal = shop.server().journal();
    assert_eq!(shop.place(FIRST, 250).await, 200);
    assert_eq!(lost.hits(), 1);
    assert_eq!(journal.requests().op(Op::InsertEntity).count(), 2);
    // The client of the shop sends the order again, too. Another order needs another id.
    assert_eq!(shop.place(FIRST, 250).await, 200);
    assert_eq!(shop.place(FIRST, 999).await, 409);
}

#[tokio::test(start_paused = true)]
async fn an_order_can_be_paid_for_half_an_hour() {
    let shop = Shop::open().await;
    shop.place(FIRST, 250).await;
    let placed = shop.server().snapshot().unwrap();
    let clock = shop.server().clock();
    clock.freeze();
    clock.advance(ALMOST_HALF_AN_HOUR);
    assert_eq!(shop.pay(FIRST).await, 200);
    shop.server().restore(&placed).unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(shop.pay(FIRST).await, 410);
}

#[tokio::test(start_paused = true)]
async fn payments_at_the_same_time_pay_once() {
    let shop = Shop::open().await;
    shop.place(FIRST, 250).await;
    let payments = join_all((0..8).map(|_| shop.pay(FIRST)));
    assert_eq!(payments.await, [200; 8]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_table_is_reported_after_the_retries() {
    let shop = Shop::open().await;
    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(5));
    let rule = shop.server().faults().on(Op::InsertEntity).inject(busy);
    assert_eq!(shop.place(FIRST, 250).await, 503);
    assert!(rule.hits() > 1, "the client has tried again");
    rule.remove();
    assert_eq!(shop.place(FIRST, 250).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_when_to_try_again_and_not_where_the_table_is() {
    let shop = Shop::open().await;
    shop.place(FIRST, 250).await;
    let list = "/customers/contoso/orders";
    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(90));
    for (fault, status, seconds) in [
        (Fault::reset(), 503, Some("1")),
        (busy, 503, Some("90")),
        (Fault::error(ErrorCode::AuthenticationFailed), 500, None),
    ] {
        let rule = shop.server().faults().on_any().inject(fault);
        for (method, uri) in [
            ("GET", list),
            ("POST", "/customers/contoso/orders/1/payment"),
        ] {
            let response = shop.respond(method, uri, Value::Null).await;
            assert_eq!(response.status().as_u16(), status, "{uri}");
            let retry_after = response.headers().get(header::RETRY_AFTER);
            assert_eq!(retry_after.map(|it| it.to_str().unwrap()), seconds);
            let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            let body = String::from_utf8(body.into()).unwrap();
            for place in [shop.table.name(), "devstoreaccount1", "contoso"] {
                assert!(!body.contains(place), "{body}");
            }
        }
        rule.remove();
    }
    let order = json!({ "product": "tea", "cents": 250 });
    let response = shop
        .respond("PUT", "/customers/a%23b/orders/1", order)
        .await;
    assert_eq!(response.status().as_u16(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_partition_recovers_by_itself() {
    let shop = Shop::open().await;
    shop.server()
        .faults()
        .throttle(Throttle::none().per_partition(40));
    let journal = shop.server().journal();
    for id in 1..=60 {
        let uri = format!("/customers/contoso/orders/{id}");
        // The pauses between the attempts pass in virtual time.
        assert_eq!(shop.place(&uri, 100).await, 200);
    }
    assert_ne!(journal.requests().status(503).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn orders_are_listed_page_by_page_without_a_scan() {
    let builder = TableServer::builder().max_page_entities(3).empty_pages();
    let shop = Shop::over(builder.in_process().unwrap()).await;
    let lines: String = (0..7)
        .map(|id| {
            format!(
                r#"{{"table":"Test","entity":{{"PartitionKey":"contoso","RowKey":"{id}","Product":"tea","Cents@odata.type":"Edm.Int64","Cents":"1","IsPaid":true}}}}"#
            ) + "\n"
        })
        .collect();
    shop.server().load(lines).await.unwrap();
    let journal = shop.server().journal();
    let mut uri = "/customers/contoso/orders".to_owned();
    let mut listed = 0;
    loop {
        let (status, page) = shop.call("GET", &uri, Value::Null).await;
        assert_eq!(status, 200, "{page}");
        listed += page["items"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => uri = format!("/customers/contoso/orders?next={next}"),
            None => break,
        }
    }
    assert_eq!(listed, 7);
    journal.assert_no_scans();
    assert_eq!(journal.lints(), []);
}

#[tokio::test(start_paused = true)]
async fn a_payment_survives_every_fault_at_each_of_its_requests() {
    let shop = Shop::open().await;
    shop.place(FIRST, 250).await;
    let runs = shop.server().at_each_request().run(
        async || shop.pay(FIRST).await,
        async |run| {
            // A customer whose payment was not answered, since the service ended, pays again.
            let status = match run.outcome {
                Some(status) => status,
                None => shop.pay(FIRST).await,
            };
            assert_eq!(status, 200);
            let dump = shop.server().dump().unwrap();
            assert!(dump.contains("IsPaid = true"), "{dump}");
        },
    );
    assert!(runs.await > 10);
}

#[tokio::test(start_paused = true)]
async fn no_fault_of_the_network_loses_or_doubles_an_order() {
    for seed in 0..20 {
        let shop = Shop::open().await;
        shop.server().faults().chaos(seed);
        for id in 0..10 {
            let uri = format!("/customers/contoso/orders/{id}");
            assert_eq!(shop.place(&uri, 100).await, 200, "seed {seed}");
            assert_eq!(shop.pay(&uri).await, 200, "seed {seed}");
        }
        shop.server().faults().clear();
        let dump = shop.server().dump().unwrap();
        assert_eq!(
            dump.matches("IsPaid = true").count(),
            10,
            "seed {seed}: {dump}"
        );
    }
}

/// Cosmos DB for Table responds 429 where Table storage responds 503, has no `PATCH`, and fewer
/// headers.
#[tokio::test(start_paused = true)]
async fn the_service_runs_on_cosmos_db_and_azurite_as_well() {
    for flavor in [Flavor::CosmosDb, Flavor::Azurite] {
        let builder = TableServer::builder().flavor(flavor);
        let shop = Shop::over(builder.in_process().unwrap()).await;
        let throttle = Throttle::none().per_partition(40);
        shop.server().faults().throttle(throttle);
        for id in 1..=30 {
            let uri = format!("/customers/contoso/orders/{id}");
            assert_eq!(shop.place(&uri, 100).await, 200, "{flavor:?}");
            assert_eq!(shop.pay(&uri).await, 200, "{flavor:?}");
        }
        let dump = shop.server().dump().unwrap();
        assert_eq!(
            dump.matches("IsPaid = true").count(),
            30,
            "{flavor:?}: {dump}"
        );
    }
}
