//! `/t/NAME/e` and `/t/NAME/new`: one entity, and the change of it that is staged. Nothing is sent
//! here.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use futures::TryStreamExt as _;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use tablesdk::{DynamicEntity, ETag, Error};
use tablesdk_cli::own::AsStored;

use super::super::app::App;
use super::super::entity_form::{EntityForm, Texts};
use super::super::frame::{Content, Frame, Tab};
use super::super::posted::{Change as Changes, Posted};
use super::super::problem;
use super::super::staged::{
    Base, Change, Entry, FieldError, Refused, Selected, Version, entity_of_fields, entity_of_json,
    mends, read_json, stored,
};
use super::super::url;
use crate::error::with_causes;
use crate::escape::key;
use crate::guard::Refusal;
use crate::output::counted;

/// The fields of the URL of an entity.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pk: Option<String>,
    rk: Option<String>,
    view: String,
}

impl Asked {
    fn is_json(&self) -> bool {
        self.view == "json"
    }

    fn into_keys(self) -> (String, String) {
        (self.pk.unwrap_or_default(), self.rk.unwrap_or_default())
    }
}

/// `/t/NAME/e?pk=…&rk=…`: one entity.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    let frame = frame(&table);
    let content = main(of_entity(Arc::clone(&app), table, asked));
    frame.respond(app, content).await
}

/// `/t/NAME/new`: a new entity; with keys, one like that of these keys.
pub(crate) async fn new(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    if let Some(reason) = app.rights.refusal() {
        return problem::refused(&problem::Refusal::ReadOnly(reason));
    }
    let frame = frame(&table);
    let content = main(of_new(Arc::clone(&app), table, asked));
    frame.respond(app, content).await
}

/// Stages a change of an entity.
pub(crate) async fn stage(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Changes(posted): Changes,
) -> Response {
    staged(app, table, &posted, false).await
}

/// Stages a new entity.
pub(crate) async fn stage_new(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Changes(posted): Changes,
) -> Response {
    staged(app, table, &posted, true).await
}

/// Stages deletes of the selected rows of a grid.
pub(crate) async fn stage_deletes(
    State(app): State<Arc<App>>,
    Path(table): Path<String>,
    Changes(posted): Changes,
) -> Response {
    let rows = posted.all("key").map(|text| Selected::of(&table, text));
    let Ok(rows) = rows.collect::<Result<Vec<_>, _>>() else {
        return problem::refused(&problem::Refusal::Incomplete);
    };
    let is_forced = posted.get("force") == "1";
    let problem = match kept(&app, &table, &rows).await {
        Err(error) => problem::shown(&error),
        Ok(refusals) if !refusals.is_empty() && !is_forced => {
            to_force(&app, &table, &posted, &refusals)
        }
        Ok(_) if rows.is_empty() => {
            let advice = html! { p { "Tick the boxes at the left of the rows." } };
            problem::notice("nothing staged", "No row is selected.", advice)
        }
        Ok(refusals) => match stage_rows(&app, &table, rows, &refusals, &posted) {
            Ok(()) => return Redirect::to("/review").into_response(),
            Err(problem) => problem,
        },
    };
    again(app, &table, problem).await
}

fn frame(table: &str) -> Frame {
    Frame {
        title: table.to_owned(),
        table: Some(table.to_owned()),
        tab: Tab::Entities,
        tools: html! {},
        query: html! {},
    }
}

async fn main(shown: impl Future<Output = Markup>) -> Content {
    Content::of(shown.await)
}

/// The page of a form that was not accepted.
async fn again(app: Arc<App>, table: &str, shown: Markup) -> Response {
    let response = frame(table).respond(app, main(async { shown })).await;
    (StatusCode::UNPROCESSABLE_ENTITY, response).into_response()
}

async fn of_entity(app: Arc<App>, table: String, asked: Asked) -> Markup {
    let is_json = asked.is_json();
    let keys = asked.into_keys();
    let entry = app.staged().of(&table, &keys.0, &keys.1).cloned();
    match stored(&app.service.table(&table), (&keys.0, &keys.1)).await {
        Err(error) => problem::shown(&error),
        Ok(found) => match form(&app, &table, keys.clone(), found, entry, is_json) {
            Some(form) => form.show(),
            None => missing(&app, &table, &keys),
        },
    }
}

/// The form of an entity as it is stored, and as it is staged. `None` if it is neither.
fn form<'f>(
    app: &'f App,
    table: &'f str,
    keys: (String, String),
    found: Option<Version>,
    staged: Option<Entry>,
    is_json: bool,
) -> Option<EntityForm<'f>> {
    let etag = found.as_ref().map(|it| it.etag.clone());
    let found = found.map(|it| it.entity);
    let (wanted, base, is_new, is_stale, etag) = match &staged {
        None => (found.clone()?, found, false, false, etag),
        Some(entry) => {
            let change = &entry.change;
            let is_new = change.etag().is_none();
            // An insert rests on no version, also if there is one by now.
            let base = change.base.clone().or_else(|| found.filter(|_| !is_new));
            let wanted = change.wanted().or_else(|| base.clone());
            let is_stale = !is_new && etag.as_ref() != change.etag();
            (wanted?, base, is_new, is_stale, change.etag().cloned())
        }
    };
    Some(EntityForm {
        app,
        table,
        keys,
        is_new,
        texts: Texts::of(&wanted, base.as_ref(), is_json),
        base,
        etag,
        is_forced: staged
            .as_ref()
            .is_some_and(|it| !it.change.mends.is_empty()),
        staged,
        errors: Vec::new(),
        refusals: Vec::new(),
        is_stale,
    })
}

fn missing(app: &App, table: &str, keys: &(String, String)) -> Markup {
    let text = format!("{table} has no entity {}.", key(&keys.0, &keys.1));
    problem::notice(
        "missing",
        &text,
        html! {
            p.actions {
                a.button href=(app.tables.last(table)) { "Entities" }
                @if app.rights.refusal().is_none() { a.button href=(url::new_entity(table)) { "New entity" } }
            }
        },
    )
}

async fn of_new(app: Arc<App>, table: String, asked: Asked) -> Markup {
    let is_json = asked.is_json();
    let is_clone = asked.pk.is_some() && asked.rk.is_some();
    let keys = asked.into_keys();
    let source = if is_clone {
        stored(&app.service.table(&table), (&keys.0, &keys.1)).await
    } else {
        Ok(None)
    };
    let source = match source {
        Err(error) => return problem::shown(&error),
        Ok(None) if is_clone => return missing(&app, &table, &keys),
        Ok(source) => source.map(|it| it.entity),
    };
    let wanted = source.clone();
    let wanted = wanted.unwrap_or_else(|| DynamicEntity::new(&*keys.0, &*keys.1));
    let form = EntityForm {
        app: &app,
        table: &table,
        keys,
        is_new: true,
        texts: Texts::of(&wanted, source.as_ref(), is_json),
        base: source,
        etag: None,
        staged: None,
        errors: Vec::new(),
        refusals: Vec::new(),
        is_forced: false,
        is_stale: false,
    };
    form.show()
}

async fn staged(app: Arc<App>, table: String, posted: &Posted, is_new: bool) -> Response {
    let Some(draft) = Draft::of(&table, posted, is_new) else {
        return problem::refused(&problem::Refusal::Incomplete);
    };
    match draft.stage(&app).await {
        Ok((partition, row)) => {
            Redirect::to(&url::entity(&table, &partition, &row)).into_response()
        }
        Err(refused) => {
            let shown = draft.form(&app, refused).show();
            again(app, &table, shown).await
        }
    }
}

/// The content of a form that was sent.
struct Draft<'p> {
    table: &'p str,
    keys: (String, String),
    is_new: bool,
    texts: Texts,
    base: Option<DynamicEntity>,
    etag: Option<ETag>,
    action: &'p str,
    is_forced: bool,
    /// The id of the staged change that the form has shown.
    shown: Option<u64>,
}

/// Why nothing is staged.
#[derive(Default)]
struct NotStaged {
    errors: Vec<FieldError>,
    refusals: Vec<Refusal>,
    /// The change of the entity that another form has staged.
    other: Option<Entry>,
}

impl NotStaged {
    fn whole(problem: impl Into<String>) -> Self {
        Self {
            errors: vec![FieldError::whole(problem)],
            ..Self::default()
        }
    }

    fn refused(refused: &Refused, known: Option<&Entry>) -> Self {
        let is_other = *refused == Refused::Restaged;
        Self {
            other: known.filter(|_| is_other).cloned(),
            ..Self::whole(refused.to_string())
        }
    }
}

impl<'p> Draft<'p> {
    fn of(table: &'p str, posted: &'p Posted, is_new: bool) -> Option<Self> {
        let (base, etag) = match posted.get("base") {
            "" => (None, None),
            text => {
                let (base, etag) = read_json(table, text).ok()?;
                (Some(base), etag)
            }
        };
        // What is not new rests on a version.
        if !is_new && etag.is_none() {
            return None;
        }
        Some(Self {
            table,
            keys: (posted.get("pk").to_owned(), posted.get("rk").to_owned()),
            is_new,
            texts: Texts::posted(posted)?,
            base,
            etag,
            action: posted.get("action"),
            is_forced: posted.get("force") == "1",
            shown: posted.get("staged").parse().ok(),
        })
    }

    /// Stages the change. Returns the keys of its entity.
    async fn stage(&self, app: &App) -> Result<(String, String), NotStaged> {
        let Some(mut change) = self.change()? else {
            return self.withdraw(app);
        };
        let table = app.service.table(self.table);
        let wanted = change.wanted();
        let base = self.base.iter().filter(|_| !self.is_new);
        let versions = base.chain(&wanted);
        let refusals = app
            .keeper
            .refusals(&table, &change.target.partition, versions)
            .await
            .map_err(|error| NotStaged::whole(with_causes(&error)))?;
        if !refusals.is_empty() && !self.is_forced {
            return Err(NotStaged {
                refusals,
                ..NotStaged::default()
            });
        }
        change.mends = mends(&refusals);
        let keys = (change.target.partition.clone(), change.target.row.clone());
        let mut staged = app.staged();
        let restaged = staged.restage(change, self.shown);
        restaged.map_err(|refused| {
            NotStaged::refused(&refused, staged.of(self.table, &keys.0, &keys.1))
        })?;
        Ok(keys)
    }

    /// Nothing differs from what is stored, any more.
    fn withdraw(&self, app: &App) -> Result<(String, String), NotStaged> {
        let mut staged = app.staged();
        let (partition, row) = &self.keys;
        let known = staged.shown_of(self.table, (partition, row), self.shown);
        let known = known.map_err(|refused| {
            NotStaged::refused(&refused, staged.of(self.table, partition, row))
        })?;
        let Some(id) = known else {
            return Err(NotStaged::whole(SAME));
        };
        let withdrawn = staged.withdraw(id);
        withdrawn.map_err(|refused| NotStaged::refused(&refused, None))?;
        Ok(self.keys.clone())
    }

    /// The change; `None` if nothing differs.
    fn change(&self) -> Result<Option<Change>, NotStaged> {
        let base = self.base.clone().zip(self.etag.clone());
        let base = base.map(|(entity, etag)| Base::new(etag, entity));
        if let ("delete", Some(base)) = (self.action, base.clone()) {
            return Ok(Some(Change::delete_of(self.table, base)));
        }
        let entity = self.entity().map_err(|errors| NotStaged {
            errors,
            ..NotStaged::default()
        })?;
        let keys = (entity.partition_key(), entity.row_key());
        let Some(base) = base.filter(|_| !self.is_new) else {
            return Ok(Some(Change::insert(self.table, entity)));
        };
        if keys != (&*self.keys.0, &*self.keys.1) {
            return Err(NotStaged::whole(OTHER_KEYS));
        }
        Ok(match self.action {
            "replace" => Some(Change::replace(self.table, entity, base)),
            _ => Change::edit(self.table, entity, base),
        })
    }

    fn entity(&self) -> Result<DynamicEntity, Vec<FieldError>> {
        match &self.texts {
            Texts::Json(json) => entity_of_json(self.table, json).map_err(|error| vec![error]),
            Texts::Fields(fields) => {
                entity_of_fields((&self.keys.0, &self.keys.1), fields, self.base.as_ref())
            }
        }
    }

    /// The form as it was sent, with what is wrong.
    fn form(self, app: &'p App, refused: NotStaged) -> EntityForm<'p> {
        let staged = app.staged();
        let shown = self.shown.and_then(|id| staged.entry(id).cloned());
        EntityForm {
            app,
            table: self.table,
            keys: self.keys,
            is_new: self.is_new,
            texts: self.texts,
            base: self.base,
            etag: self.etag,
            staged: refused.other.or(shown),
            errors: refused.errors,
            refusals: refused.refusals,
            is_forced: self.is_forced,
            is_stale: false,
        }
    }
}

/// Why deletes of these rows need to be forced, by the rules of `tables rm`.
async fn kept(app: &App, table: &str, rows: &[Selected]) -> Result<Vec<Refusal>, Error> {
    let table = app.service.table(table);
    let keys = rows
        .iter()
        .map(|row| (&*row.target.partition, &*row.target.row));
    let mut found = table.get_many::<AsStored, _>(keys).stream();
    let mut refusals: Vec<Refusal> = Vec::new();
    while let Some(entity) = found.try_next().await? {
        let partition = entity.as_ref().map(|it| it.0.partition_key().to_owned());
        let Some(partition) = partition else { continue };
        let entities = entity.iter().map(|it| &it.0);
        let of_row = app.keeper.refusals(&table, &partition, entities).await?;
        for refusal in of_row {
            if !refusals.contains(&refusal) {
                refusals.push(refusal);
            }
        }
    }
    Ok(refusals)
}

/// Stages the deletes, unless they take the place of changes that the form has not shown. An error
/// is what the page shows.
fn stage_rows(
    app: &App,
    table: &str,
    rows: Vec<Selected>,
    refusals: &[Refusal],
    posted: &Posted,
) -> Result<(), Markup> {
    let mut staged = app.staged();
    let replaced = rows.iter().filter_map(|row| {
        let target = &row.target;
        staged.of(&target.table, &target.partition, &target.row)
    });
    let replaced: Vec<_> = replaced.filter(|it| it.change.sent().is_some()).collect();
    let shown: Vec<_> = posted.all("replace").collect();
    let is_shown = |it: &&Entry| shown.contains(&&*it.id.to_string());
    if !replaced.iter().all(is_shown) {
        return Err(to_replace(app, table, posted, &replaced));
    }
    let (mends, count) = (mends(refusals), rows.len());
    for (done, row) in rows.into_iter().enumerate() {
        let mut change = Change::delete(row.target, row.etag, None);
        change.mends.clone_from(&mends);
        staged.stage(change).map_err(|refused| {
            let text = format!("{done} of {count} deletes are staged: {refused}");
            problem::notice("partly staged", &text, html! {})
        })?;
    }
    Ok(())
}

/// Asks whether deletes take the place of staged changes.
fn to_replace(app: &App, table: &str, posted: &Posted, replaced: &[&Entry]) -> Markup {
    let further = replaced.len().saturating_sub(LISTED_MAX);
    let fields = html! {
        @if posted.get("force") == "1" { (FORCE) }
        @for entry in replaced { input type="hidden" name="replace" value=(entry.id); }
    };
    problem::notice(
        "staged already",
        "No delete is staged: it would take the place of a staged change.",
        html! {
            ul {
                @for change in replaced.iter().take(LISTED_MAX).map(|it| &it.change) {
                    li { "The " (change.name()) " of " (key(&change.target.partition, &change.target.row)) }
                }
                @if further > 0 { li { (further) " more" } }
            }
            (anyway(app, table, posted, &fields))
        },
    )
}

/// The form that stages the deletes in spite of what was said.
fn anyway(app: &App, table: &str, posted: &Posted, fields: &Markup) -> Markup {
    let count = posted.all("key").count() as u64;
    html! {
        form.actions method="post" action=(url::deletes(table)) {
            (app.gate.token_field())
            (fields)
            @for key in posted.all("key") { input type="hidden" name="key" value=(key); }
            button.button.danger { "Stage " (counted(count, "delete", "deletes")) " anyway" }
            a.button href=(app.tables.last(table)) { "Leave them" }
        }
    }
}

/// Asks whether the rows are deleted although the library keeps some of them.
fn to_force(app: &App, table: &str, posted: &Posted, refusals: &[Refusal]) -> Markup {
    let further = refusals.len().saturating_sub(LISTED_MAX);
    problem::notice(
        "kept by the library",
        "Nothing is staged: other entities would become stale.",
        html! {
            ul {
                @for refusal in refusals.iter().take(LISTED_MAX) {
                    li { (refusal.problem) ". After a delete, " (refusal.mend) "." }
                }
                @if further > 0 { li { (further) " more" } }
            }
            (anyway(app, table, posted, &html! { (FORCE) }))
        },
    )
}

const FORCE: PreEscaped<&str> = PreEscaped(r#"<input type="hidden" name="force" value="1">"#);
const SAME: &str = "Nothing differs from the version that was read.";
const OTHER_KEYS: &str =
    "The keys of an entity cannot be changed: clone it under the new keys, and delete this one.";
/// How many refusals or changes are listed.
const LISTED_MAX: usize = 20;
