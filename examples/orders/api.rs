//! The handlers.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use tablesdk::transport::Clock;
use tablesdk::{Error, TableClient};

use crate::orders::{self, Order, Problem};

pub fn routes(table: TableClient, clock: Arc<dyn Clock>) -> Router {
    Router::new()
        .route("/customers/{customer}/orders", get(list))
        .route("/customers/{customer}/orders/{id}", put(place))
        .route("/customers/{customer}/orders/{id}/payment", post(pay))
        .with_state(Service { table, clock })
}

#[derive(Clone)]
struct Service {
    table: TableClient,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct Start {
    next: Option<String>,
}

async fn place(
    State(service): State<Service>,
    Path((customer, id)): Path<(String, String)>,
    Json(order): Json<Order>,
) -> Result<Json<Order>, Problem> {
    let order = Order {
        customer,
        id,
        is_paid: false,
        ..order
    };
    let now = service.clock.now();
    orders::place(&service.table, order, now).await.map(Json)
}

async fn pay(
    State(service): State<Service>,
    Path((customer, id)): Path<(String, String)>,
) -> Result<Json<Order>, Problem> {
    let now = service.clock.now();
    let paid = orders::pay(&service.table, &customer, &id, now);
    paid.await.map(Json)
}

async fn list(
    State(service): State<Service>,
    customer: Path<String>,
    start: Query<Start>,
) -> Result<Response, Problem> {
    let orders = service
        .table
        .query::<Order>()
        .partition(&*customer)
        .values();
    let page = orders.page_after(start.next.as_deref()).await?;
    Ok(Json(page).into_response())
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::IdTaken => StatusCode::CONFLICT,
            Self::TooLate => StatusCode::GONE,
            Self::Unclear => StatusCode::SERVICE_UNAVAILABLE,
            Self::Table(error) => status_of(error),
        };
        let mut response = (status, self.to_string()).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, 1.into());
        }
        response
    }
}

fn status_of(error: &Error) -> StatusCode {
    if error.is_not_found() {
        StatusCode::NOT_FOUND
    } else if error.is_throttled() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        eprintln!("{error}");
        StatusCode::INTERNAL_SERVER_ERROR
    }
}
