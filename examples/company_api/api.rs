//! The handlers. A response with an employee has an `ETag`; a request that changes the employee has
//! it as `If-Match`.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use tablesdk::entity::EntityError;
use tablesdk::{ETag, Error, ErrorKind, Stored, TableClient};

use crate::model::{self, ByEmail, Department, Employee, Refusal};

pub fn routes(table: TableClient) -> Router {
    Router::new()
        .route("/departments", post(create))
        .route("/departments/{department}/employees", get(list).post(hire))
        .route(
            "/departments/{department}/employees/{id}",
            get(read).patch(change).delete(dismiss),
        )
        .route("/departments/{department}/emails/{email}", get(find))
        .with_state(table)
}

type Table = State<TableClient>;
type Key = Path<(String, String)>;
type Reply = Result<Response, Problem>;

#[derive(Deserialize)]
struct Start {
    next: Option<String>,
}

#[derive(Deserialize)]
struct Change {
    email: Option<String>,
    salary: Option<f64>,
}

async fn create(table: Table, Json(department): Json<Department>) -> Reply {
    let department = table.insert(&department).await?;
    Ok((StatusCode::CREATED, Json(department)).into_response())
}

async fn list(table: Table, department: Path<String>, start: Query<Start>) -> Reply {
    let employees = table.query::<Employee>().partition(&*department).values();
    let page = employees.page_size(50).page_after(start.next.as_deref());
    Ok(Json(page.await?).into_response())
}

async fn hire(table: Table, department: Path<String>, mut employee: Json<Employee>) -> Reply {
    employee.department = department.0;
    let hired = model::hire(&table, &employee).await?;
    Ok((StatusCode::CREATED, with_etag(&hired)).into_response())
}

async fn read(table: Table, Path((department, id)): Key) -> Reply {
    let employee = table.get(Employee::key(department, id)).await?;
    Ok(with_etag(&employee.ok_or(Refusal::NoEmployee)?))
}

async fn find(table: Table, Path((department, email)): Key) -> Reply {
    // The ETag of an entry is not that of its employee.
    let entry = table.get(ByEmail::key(department, email)).follow();
    Ok(with_etag(&entry.await?.ok_or(Refusal::NoEmployee)?))
}

async fn change(table: Table, id: Key, headers: HeaderMap, change: Json<Change>) -> Reply {
    // The index needs what was stored, so a `patch` does not compile.
    let modify = table.modify(Employee::key(&id.0.0, &id.0.1), |employee| {
        if let Some(email) = &change.email {
            employee.email.clone_from(email);
        }
        employee.salary = change.salary.unwrap_or(employee.salary);
        Ok(())
    });
    let employee = modify.if_match(if_match(&headers)?).await?;
    Ok([(header::ETAG, employee.etag().to_string())].into_response())
}

async fn dismiss(table: Table, Path((department, id)): Key, headers: HeaderMap) -> Reply {
    model::dismiss(&table, &department, &id, &if_match(&headers)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn with_etag(employee: &Stored<Employee>) -> Response {
    let etag = employee.etag().to_string();
    ([(header::ETAG, etag)], Json(employee)).into_response()
}

fn if_match(headers: &HeaderMap) -> Result<ETag, Problem> {
    let value = headers.get(header::IF_MATCH);
    let value = value.ok_or_else(|| problem(StatusCode::PRECONDITION_REQUIRED, "no If-Match"))?;
    let etag = match value.to_str().map(str::trim) {
        // Any version, as long as the employee exists.
        Ok("*") => Some(ETag::ANY),
        value => value.ok().and_then(|value| value.parse().ok()),
    };
    etag.ok_or_else(|| problem(StatusCode::BAD_REQUEST, "If-Match is not an ETag"))
}

/// The response to a request that failed: its status, what the client may know, and after which
/// time it may try again.
struct Problem(StatusCode, String, Option<Duration>);

fn problem(status: StatusCode, reason: &(impl ToString + ?Sized)) -> Problem {
    Problem(status, reason.to_string(), None)
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::NoDepartment | Refusal::NoEmployee => StatusCode::NOT_FOUND,
            Refusal::Changed => StatusCode::PRECONDITION_FAILED,
        };
        problem(status, &refusal)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return (*refusal).into();
        }
        // The message names the account, the table and the key: for the log, and not for the
        // client.
        eprintln!("{error}");
        let (status, reason) = match error.kind() {
            ErrorKind::Input => match error.downcast_ref::<EntityError>() {
                // Which key or value of the request, and why.
                Some(reason) => return problem(StatusCode::BAD_REQUEST, reason),
                None => (StatusCode::BAD_REQUEST, "the request is not valid"),
            },
            _ if error.is_not_found() => (StatusCode::NOT_FOUND, "there is no such entity"),
            _ if error.index() == Some("ByEmail") => {
                (StatusCode::CONFLICT, "the e-mail address is taken")
            }
            _ if error.is_conflict() => (StatusCode::CONFLICT, "it exists already"),
            _ if error.is_precondition_failed() => {
                (StatusCode::PRECONDITION_FAILED, "it has changed")
            }
            _ if error.is_unavailable() => {
                let wait = error.retry_after().or(Some(Duration::from_secs(1)));
                let reason = "try again later".to_owned();
                return Self(StatusCode::SERVICE_UNAVAILABLE, reason, wait);
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
        };
        problem(status, reason)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self(status, reason, wait) = self;
        let seconds = wait.map(|wait| wait.as_millis().div_ceil(1000).to_string());
        let retry_after = seconds.map(|seconds| [(header::RETRY_AFTER, seconds)]);
        match retry_after {
            Some(retry_after) => (status, retry_after, reason).into_response(),
            None => (status, reason).into_response(),
        }
    }
}
