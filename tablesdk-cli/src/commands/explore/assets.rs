//! The stylesheet, the scripts and the icon, which are parts of the program.
//!
//! A browser keeps them, so that a page waits for none of them: the path of a file changes with the
//! files.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const KEPT: &str = "private, max-age=31536000, immutable";

/// Each file with its type.
const FILES: [(&str, &str, &str); 10] = [
    ("style.css", CSS, include_str!("assets/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("again.js", SCRIPT, include_str!("assets/again.js")),
    ("copy.js", SCRIPT, include_str!("assets/copy.js")),
    ("edit.js", SCRIPT, include_str!("assets/edit.js")),
    ("bench.js", SCRIPT, include_str!("assets/bench.js")),
    ("grid.js", SCRIPT, include_str!("assets/grid.js")),
    ("post.js", SCRIPT, include_str!("assets/post.js")),
    ("review.js", SCRIPT, include_str!("assets/review.js")),
    ("query.js", SCRIPT, include_str!("assets/query.js")),
];

/// The part of a path that differs where one of the files differs.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    FILES.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
});

/// `/assets/VERSION/NAME`
pub(super) async fn serve(Path((version, name)): Path<(String, String)>) -> Response {
    let mut files = FILES.iter().filter(|_| version == *VERSION);
    match files.find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => {
            ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, KEPT)], *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The path of a file.
pub(super) fn path(name: &str) -> String {
    format!("/assets/{}/{name}", *VERSION)
}

/// The head of each page.
pub(super) fn head(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width";
        meta name="color-scheme" content="light dark";
        title { (title) " · tables" }
        link rel="icon" href=(path("icon.svg"));
        link rel="stylesheet" href=(path("style.css"));
        @for (name, ..) in FILES.iter().filter(|(_, kind, _)| *kind == SCRIPT) {
            script type="module" src=(path(name)) {}
        }
    }
}
