//! The handlers.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use tablesdk::entity::EntityError;
use tablesdk::{Error, ErrorKind, TableClient};

use crate::orders::{self, Order, Problem};

pub fn routes(table: TableClient) -> Router {
    Router::new()
        .route("/customers/{customer}/orders", get(list))
        .route("/customers/{customer}/orders/{id}", put(place))
        .route("/customers/{customer}/orders/{id}/payment", post(pay))
        .with_state(table)
}

type Table = State<TableClient>;

#[derive(Deserialize)]
struct Start {
    next: Option<String>,
}

async fn place(
    State(table): Table,
    Path((customer, id)): Path<(String, String)>,
    Json(order): Json<Order>,
) -> Result<Json<Order>, Problem> {
    let order = Order {
        customer,
        id,
        is_paid: false,
        ..order
    };
    orders::place(&table, order).await.map(Json)
}

async fn pay(
    State(table): Table,
    Path((customer, id)): Path<(String, String)>,
) -> Result<Json<Order>, Problem> {
    orders::pay(&table, &customer, &id).await.map(Json)
}

async fn list(
    State(table): Table,
    customer: Path<String>,
    start: Query<Start>,
) -> Result<Response, Problem> {
    let orders = table.query::<Order>().partition(&*customer).values();
    let page = orders.page_after(start.next.as_deref()).await?;
    Ok(Json(page).into_response())
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::IdTaken => StatusCode::CONFLICT,
            Self::TooLate => StatusCode::GONE,
            Self::Unclear => return unavailable(&self, None),
            Self::Table(error) => return response_to(error),
        };
        (status, self.to_string()).into_response()
    }
}

/// The response to an error of the table. Its message names the account, the table and the key: it
/// is for the log, and not for the client.
fn response_to(error: &Error) -> Response {
    eprintln!("{error}");
    let (status, reason) = match error.kind() {
        ErrorKind::Input => match error.downcast_ref::<EntityError>() {
            // Which key or value of the request, and why.
            Some(reason) => return (StatusCode::BAD_REQUEST, reason.to_string()).into_response(),
            None => (StatusCode::BAD_REQUEST, "the request is not valid"),
        },
        _ if error.is_not_found() => (StatusCode::NOT_FOUND, "there is no such order"),
        _ if error.is_unavailable() => return unavailable("try again later", error.retry_after()),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
    };
    (status, reason).into_response()
}

/// The client may send the same request again after a while.
fn unavailable(reason: &(impl ToString + ?Sized), wait: Option<Duration>) -> Response {
    let wait = wait.unwrap_or(Duration::from_secs(1));
    let seconds = wait.as_millis().div_ceil(1000).to_string();
    let retry_after = [(header::RETRY_AFTER, seconds)];
    let status = StatusCode::SERVICE_UNAVAILABLE;
    (status, retry_after, reason.to_string()).into_response()
}
