//! The handler. No response but the signature itself has anything of the account, the table or a
//! user in it.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use tablesdk::{Error, ErrorKind};

use crate::signatures::Signatures;

/// The header in which the gateway names the user.
pub const USER: &str = "x-ms-client-principal-id";

pub fn routes(signatures: Signatures) -> Router {
    Router::new()
        .route("/signature", post(sign))
        .with_state(signatures)
}

#[derive(Deserialize)]
struct Wish {
    #[serde(default)]
    add: bool,
}

async fn sign(
    State(signatures): State<Signatures>,
    headers: HeaderMap,
    wish: Query<Wish>,
) -> Result<Response, Problem> {
    let user = user(&headers)?;
    let signature = signatures.sign(user, wish.add)?;
    let expires_at = signature.expires_at;
    // Debug, since an id may have characters that end a line of the log.
    tracing::info!(?user, add = wish.add, %expires_at, "signed");
    // No cache may keep it.
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    Ok((no_store, Json(signature)).into_response())
}

fn user(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(USER).iter();
    // Of two values, the gateway has set one at most.
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Problem::NoUser);
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok("") | Err(_) => Err(Problem::NoUser),
        Ok(user) => Ok(user),
    }
}

enum Problem {
    NoUser,
    /// The id is too long for a key, or has characters that no key can have.
    NotAUser,
    Failed,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Input {
            return Self::NotAUser;
        }
        // Its message may name the account and the table: it is for the log.
        tracing::error!(%error, "not signed");
        Self::Failed
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, reason) = match self {
            Self::NoUser => (StatusCode::UNAUTHORIZED, "there is no user"),
            Self::NotAUser => (StatusCode::BAD_REQUEST, "the id of the user is not valid"),
            Self::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
        };
        (status, reason).into_response()
    }
}
