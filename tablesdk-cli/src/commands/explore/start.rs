//! How the page gets into the browser: the port, the URL that is used once, and the file that opens
//! it.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{DOCTYPE, html};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::app::App;
use super::gate::Gate;
use super::problem::{self, Refusal};
use crate::error::{AnyError, UsageError};
use crate::output::{counted, note};

/// Listens on a port of this machine alone.
pub(super) async fn listen(port: Option<u16>) -> Result<TcpListener, AnyError> {
    if let Some(port) = port {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        return listener.map_err(|error| {
            UsageError(format!("--port: 127.0.0.1:{port} cannot be used: {error}").into()).into()
        });
    }
    for port in PORT..PORT + PORTS_TRIED {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            listener => return Ok(listener?),
        }
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)
}

/// Prints the URL that opens the page, and opens a browser. The file for it is kept as long as the
/// result.
pub(super) fn show(gate: &Gate, in_browser: bool) -> Result<Option<TempDir>, AnyError> {
    let Some(url) = gate.opening_url() else {
        return Ok(None);
    };
    // Not as in other commands, for which nothing is left to do if no program reads what they
    // print.
    print(&url).map_err(|error| format!("the URL of the page cannot be printed: {error}"))?;
    if !in_browser {
        return Ok(None);
    }
    let directory = tempfile::Builder::new().prefix("tables-").tempdir()?;
    let file = directory.path().join("open.html");
    write_private(&file, &redirecting(&url))?;
    if let Err(error) = open::that_detached(&file) {
        note(&format!(
            "no browser was opened: {error}. Open the URL in one"
        ));
    }
    Ok(Some(directory))
}

fn print(url: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{url}")?;
    out.flush()
}

/// Writes a file that its owner alone reads. So the arguments of the browser, which all users see,
/// have no token.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// A page that goes on to another one. The redirect of a response would still count as one from
/// another site, without the cookie.
fn redirecting(url: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0;url=" (url) };
                title { "tables" }
            }
            body { p { a href=(url) { "Open the page" } } }
        }
    };
    page.into_string()
}

#[derive(Deserialize)]
pub(super) struct Opening {
    #[serde(default)]
    token: String,
}

/// `/open`: sets the cookie, once.
pub(super) async fn open(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(Opening { token }): Query<Opening>,
) -> Response {
    if let Some(cookie) = app.gate.open(&token) {
        let page = axum::response::Html(redirecting("/"));
        return ([(SET_COOKIE, cookie)], page).into_response();
    }
    if app.gate.knows(&headers) {
        // A reload.
        return Redirect::to("/").into_response();
    }
    problem::refused(&Refusal::Opening)
}

/// Waits until Ctrl-C ends the page: in a terminal, only after it was said how many staged changes
/// are lost.
pub(super) async fn interrupted(app: &App) {
    let mut told = 0;
    while tokio::signal::ctrl_c().await.is_ok() {
        let count = app.staged().len();
        if count == told {
            return;
        }
        let changes = counted(count as u64, "staged change", "staged changes");
        if !io::stdin().is_terminal() {
            return note(&format!("lost without being sent: {changes}"));
        }
        note(&format!(
            "to end without sending {changes}, press Ctrl-C again"
        ));
        told = count;
    }
}

const PORT: u16 = 10010;
const PORTS_TRIED: u16 = 100;
