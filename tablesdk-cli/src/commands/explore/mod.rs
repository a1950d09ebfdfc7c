//! `tables explore`: a page to see and change the tables of an account.
//!
//! The program serves the page to the browser of the same person on the same machine, and to no one
//! else: see [`gate`]. Each response is complete HTML; the scripts make it quicker, and nothing
//! needs them.

mod app;
mod assets;
mod bar;
mod chart;
mod entity_form;
mod found;
mod frame;
mod gate;
mod grid;
mod in_turn;
mod keys;
mod kit;
mod pages;
mod posted;
mod problem;
mod question;
mod random;
mod recipe;
mod settings;
mod staged;
mod start;
mod tables;
mod url;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use clap::Args;

use self::app::App;
use self::kit::Kit;
use self::pages::{bench, columns, copy, entities, entity, history, home, review, schema};
use crate::account::{Account, built};
use crate::error::{AnyError, UsageError};
use crate::output::{Output, note};
use crate::requests;

/// Open a page in the browser, to see and change the tables
///
/// The page is for this machine alone, and for the browser that opens the printed URL first.
/// Changes are collected, shown as requests, and sent only then. An account that is not on
/// this machine is changed with --write alone.
///
///   tables explore --emulator
///   tables explore --read-only
///
/// Ctrl-C ends it. If staged changes would be lost, a terminal asks for a second one.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Explore {
    /// The port of the page. Default: 10010, or the next free one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Print the URL, and open no browser
    #[arg(long)]
    no_open: bool,
    /// Refuse every change
    #[arg(long, conflicts_with = "write")]
    read_only: bool,
    /// Allow changes of an account that is not on this machine
    #[arg(long)]
    write: bool,
    /// Show the test bench of a server for tests: the URL that `tablesdk-server --test` prints
    /// as "test"
    #[arg(long, value_name = "URL")]
    test_endpoint: Option<String>,
    #[command(flatten)]
    account: Account,
}

impl Explore {
    /// Serves the page until Ctrl-C.
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        if output.has_form() {
            let problem = "explore prints the URL of a page: --output does not apply";
            return Err(UsageError(problem.into()).into());
        }
        let kit = self.test_endpoint.as_deref().map(Kit::new).transpose()?;
        let service = built(self.account.builder()?.on_operation(requests::count))?;
        let rights = app::Rights::new(&service, self.read_only, self.write);
        let listener = start::listen(self.port).await?;
        let port = listener.local_addr()?.port();
        let app = Arc::new(App::new(service, rights, kit, port)?);
        note(&format!(
            "the page shows {}: {}",
            app.service.endpoint(),
            app.rights
        ));
        let opened = start::show(&app.gate, !self.no_open)?;
        let served = axum::serve(listener, router(Arc::clone(&app)));
        tokio::select! {
            served = served.into_future() => served?,
            () = start::interrupted(&app) => {}
        }
        drop(opened);
        Ok(())
    }
}

fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(home::show))
        .route("/tables", get(home::open))
        .route("/tables/refresh", post(home::refresh))
        .route("/t/{table}", get(entities::show))
        .route("/t/{table}/access", get(entities::access))
        .route("/t/{table}/text", get(copy::text))
        .route("/t/{table}/columns", post(columns::choose))
        .route("/t/{table}/width", post(columns::resize))
        .route("/t/{table}/e", get(entity::show).post(entity::stage))
        .route("/t/{table}/new", get(entity::new).post(entity::stage_new))
        .route("/t/{table}/delete", post(entity::stage_deletes))
        .route("/review", get(review::show))
        .route("/review/send", post(review::send))
        .route("/review/discard", post(review::discard))
        .route("/review/restore", post(review::restore))
        .route("/review/resolve", post(review::resolve))
        .route("/review/dismiss", post(review::dismiss))
        .route("/t/{table}/schema", get(schema::show))
        .route("/history", get(history::show))
        .route("/history/forget", post(history::forget))
        .route("/history/clear", post(history::clear))
        .merge(bench::routes())
        .route("/open", get(start::open))
        .route("/assets/{version}/{name}", get(assets::serve))
        .fallback(problem::no_page)
        .layer(DefaultBodyLimit::max(posted::FORM_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&app), gate::guard))
        .with_state(app)
}
