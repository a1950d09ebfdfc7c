//! The bar of staged changes on each page, and the tools that begin a change.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::app::App;
use super::staged::{Entry, Plan, Staged};
use super::url;
use crate::escape::{harmless, shortened};
use crate::output::counted;

/// The bar below the content. Nothing if nothing is staged.
pub(super) fn show(app: &App) -> Markup {
    let staged = app.staged();
    let discarded = staged.discarded().len();
    if staged.is_empty() && discarded == 0 {
        return html! {};
    }
    html! {
        section.bar #bar aria-label="Staged changes" {
            @if discarded > 0 { (self::discarded(app, discarded)) }
            @if !staged.is_empty() { (of_staged(app, &staged)) }
        }
    }
}

fn of_staged(app: &App, staged: &Staged) -> Markup {
    html! {
        strong { (counted(staged.len() as u64, "staged change", "staged changes")) }
        span { (summary(staged)) }
        span.end {}
        form method="post" action="/review/discard" {
            (app.gate.token_field())
            input type="hidden" name="plan" value=(staged.number());
            button.button.quiet name="id" value="all" { "Discard" }
        }
        a.button.staged href="/review" title="R" aria-keyshortcuts="r" { "Review" }
    }
}

/// The notice of discarded changes, with a button that stages them again.
pub(super) fn discarded(app: &App, count: usize) -> Markup {
    html! {
        form.discarded method="post" action="/review/restore" {
            (app.gate.token_field())
            span role="status" { (counted(count as u64, "change was", "changes were")) " discarded." }
            button.link { "Restore" }
            button.link name="what" value="discarded" formaction="/review/dismiss" { "Dismiss" }
        }
    }
}

/// The staged changes, in a sentence.
fn summary(staged: &Staged) -> String {
    if staged.is_sending() {
        return "being sent".to_owned();
    }
    let plan = staged.plan();
    let open = staged.len() - plan.changes();
    let open = match open {
        0 => String::new(),
        1 => "1 needs a decision; ".to_owned(),
        open => format!("{open} need a decision; "),
    };
    format!("{open}{}", of_plan(&plan))
}

/// The changes of a plan, and how they are sent.
pub(super) fn of_plan(plan: &Plan) -> String {
    let counts = counts(plan.transactions.iter().flat_map(|it| &it.entries));
    match &*plan.transactions {
        [] => "nothing can be sent yet".to_owned(),
        [one] => {
            let partition = shortened(&harmless(&one.partition), NAME_MAX);
            let how = match one.entries.len() {
                1 => "one request",
                _ => "one transaction",
            };
            let condition = condition(&one.entries);
            format!(
                "{} · partition {partition}: {counts} — sent as {how}, {condition}",
                one.table
            )
        }
        several => format!(
            "{counts} — sent as {} requests, one after the other",
            several.len()
        ),
    }
}

/// How many changes there are of each kind.
pub(super) fn counts<'e>(entries: impl Iterator<Item = &'e Entry>) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in entries {
        *counts.entry(entry.change.name()).or_default() += 1;
    }
    let counts = counts.into_iter();
    let counts = counts.map(|(name, count)| counted(count, name, &format!("{name}s")));
    counts.collect::<Vec<_>>().join(", ")
}

/// The condition under which a transaction is applied.
fn condition(entries: &[Entry]) -> &'static str {
    let inserts = entries.iter().filter(|it| it.change.etag().is_none());
    match (inserts.count(), entries.len()) {
        (1, 1) => "if no entity has its keys",
        (0, 1) => "under its ETag",
        (0, _) => "each under its ETag",
        (inserts, all) if inserts == all => "if no entities have their keys",
        _ => "each under its ETag, an insert if no entity has its keys",
    }
}

/// The tools of a page of entities. They are left out where nothing is changed.
pub(super) fn tools(app: &App, table: &str) -> Markup {
    if app.rights.refusal().is_some() {
        return html! {};
    }
    html! {
        form #picked method="post" action=(url::deletes(table)) {
            (app.gate.token_field())
            button.button.danger { "Stage deletes" }
        }
        a.button href=(url::new_entity(table)) { "New entity" }
    }
}

const NAME_MAX: usize = 40;
