//! The stylesheet, the scripts and the icon, which are parts of the program.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each file with its type.
const FILES: [(&str, &str, &str); 8] = [
    ("style.css", CSS, include_str!("assets/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("copy.js", SCRIPT, include_str!("assets/copy.js")),
    ("edit.js", SCRIPT, include_str!("assets/edit.js")),
    ("bench.js", SCRIPT, include_str!("assets/bench.js")),
    ("grid.js", SCRIPT, include_str!("assets/grid.js")),
    ("post.js", SCRIPT, include_str!("assets/post.js")),
    ("query.js", SCRIPT, include_str!("assets/query.js")),
];

/// `/assets/NAME`
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let file = FILES.iter().find(|(known, ..)| *known == name);
    match file {
        Some((_, kind, text)) => ([(CONTENT_TYPE, *kind)], *text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The head of each page.
pub(super) fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width";
        meta name="color-scheme" content="light dark";
        title { (title) " · tables" }
        link rel="icon" href="/assets/icon.svg";
        link rel="stylesheet" href="/assets/style.css";
        @for (name, ..) in FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            script type="module" src={ "/assets/" (name) } {}
        }
    }
}
