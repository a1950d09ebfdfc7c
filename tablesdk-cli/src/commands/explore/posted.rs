//! The forms that the page sends: [`Posted`], and [`Change`], which needs the right to change
//! tables.

use std::sync::Arc;

use axum::Form;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::Response;

use super::app::App;
use super::problem::{self, Refusal};

/// The fields of a form whose token is that of the page.
pub(super) struct Posted(Vec<(String, String)>);

impl Posted {
    /// The first field with this name; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| &**value).unwrap_or_default()
    }

    /// All fields with this name, in their order.
    pub(super) fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        let fields = self.0.iter().filter(move |(known, _)| known == name);
        fields.map(|(_, value)| &**value)
    }

    async fn read(request: Request, app: &App) -> Result<Self, Refusal> {
        let form = Form::<Vec<(String, String)>>::from_request(request, &()).await;
        let Form(fields) = form.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Refusal::TooLarge,
            _ => Refusal::Form,
        })?;
        let posted = Self(fields);
        if app.gate.is_form_token(posted.get(TOKEN)) {
            Ok(posted)
        } else {
            Err(Refusal::Form)
        }
    }
}

impl FromRequest<Arc<App>> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let posted = Self::read(request, app).await;
        posted.map_err(|refusal| problem::refused(&refusal))
    }
}

/// The fields of a form that changes tables.
pub(super) struct Change(pub(super) Posted);

impl FromRequest<Arc<App>> for Change {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        if let Some(reason) = app.rights.refusal() {
            return Err(problem::refused(&Refusal::ReadOnly(reason)));
        }
        Posted::from_request(request, app).await.map(Self)
    }
}

/// The field of a form with its token.
pub(super) const TOKEN: &str = "token";
/// The fields of a hundred large changes fit.
pub(super) const FORM_BYTES_MAX: usize = 16 << 20;
