//! The keys of the page, which `?` shows. Each key that a script takes is in this list.

use maud::{Markup, html};

const KEYS: [(&str, &str); 14] = [
    ("?", "these keys"),
    ("/", "find a table"),
    ("f", "the filter of the query"),
    ("r", "open the review"),
    (
        "Ctrl+Enter",
        "run the query; in an entity, stage it; in the review, send the changes",
    ),
    (
        "arrows, Page Up and Down, Home, End",
        "another cell; with Ctrl, Home and End go to the first and the last row",
    ),
    ("Enter, double click", "open the entity at the value"),
    ("click, with the panel open", "show this row in it"),
    ("Space", "select the row"),
    (
        "Shift+Space, Shift+click",
        "select the rows from the last one",
    ),
    ("Ctrl+C", "copy the cell"),
    ("Ctrl+Shift+C", "copy the row as JSON"),
    ("Alt+←, Alt+→", "make the column narrower or wider"),
    ("Escape", "close the menu, or the panel"),
];

/// The list, which a browser opens without a script, too.
pub(super) fn show() -> Markup {
    html! {
        details.menu.up.keys.end #keys {
            summary.button.quiet { "Keys" }
            div tabindex="0" role="region" aria-label="Keys" { dl { @for (keys, does) in KEYS { dt { (keys) } dd { (does) } } } }
        }
    }
}
