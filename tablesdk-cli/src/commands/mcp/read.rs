//! The tools that read.

use rmcp::model::JsonObject;
use serde_json::{Value as Json, json};
use tablesdk::query::{AccessClass, PageToken};
use tablesdk::{DynamicEntity, RetryPolicy, Value};
use tablesdk_cli::sampling;
use tablesdk_cli::schema::{Schema, TypeOfProperty};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use super::answer::{PARTS_BYTES_MAX, Shown, View, bytes};
use super::server::Server;
use super::tools::{GetEntity, ListTables, QueryEntities, TableSchema};
use crate::commands::get::existing;
use crate::commands::ls::names;
use crate::commands::query::Asked;
use crate::commands::schema::line;
use crate::error::AnyError;
use crate::escape::shortened;
use crate::selection::cost;

impl Server {
    pub(super) async fn list_tables(&self, asked: ListTables) -> Result<JsonObject, AnyError> {
        let tables = self.service.tables();
        let names = names(tables.starting_with(asked.prefix.unwrap_or_default())).await?;
        let after = asked.resume.map(|name| name.to_ascii_lowercase());
        let names = names.into_iter();
        let names = names.filter(|name| after < Some(name.to_ascii_lowercase()));
        let (tables, rest) = fitting(names.map(Json::from));
        let mut answer = JsonObject::new();
        if rest.is_some()
            && let Some(last) = tables.last()
        {
            answer.insert("continue".to_owned(), last.clone());
        }
        answer.insert("tables".to_owned(), tables.into());
        Ok(answer)
    }

    pub(super) async fn table_schema(&self, asked: TableSchema) -> Result<JsonObject, AnyError> {
        let table = self.service.table(asked.table);
        let sample = asked.sample.unwrap_or(SAMPLE);
        let (schema, is_complete) = sampling::read::<Schema>(&table, sample).await?;
        let skip = asked.resume.unwrap_or_default();
        let all = schema.properties().iter();
        let all = all.flat_map(|it| it.types().iter().map(|of_type| (it.name(), of_type)));
        let lines = all.skip(skip);
        let (lines, rest) = fitting(lines.map(|(name, of_type)| short_line(name, of_type)));
        let mut answer = object(json!({
            "entities": schema.entities(),
            "partitions": schema.partitions().at_least(),
            "allEntities": is_complete,
        }));
        if rest.is_some() {
            answer.insert("continue".to_owned(), (skip + lines.len()).into());
        }
        answer.insert("properties".to_owned(), lines.into());
        Ok(answer)
    }

    pub(super) async fn get_entity(&self, asked: GetEntity) -> Result<JsonObject, AnyError> {
        if asked.offset.is_some() && asked.select.len() != 1 {
            return Err("\"offset\" needs \"select\" with the name of one property".into());
        }
        let table = self.service.table(asked.table);
        let key = (asked.partition_key.as_str(), asked.row_key.as_str());
        let found = existing::<DynamicEntity>(&table, key).await?;
        let value = asked
            .select
            .first()
            .and_then(|name| found.properties().get(name));
        let is_text = matches!(value, Some(Value::Binary(_) | Value::String(_)));
        if asked.offset.is_some() && !is_text {
            return Err("\"offset\" is for a property with a string or binary".into());
        }
        let view = View {
            select: &asked.select,
            offset: asked.offset,
        };
        Ok(object(view.of(&found).json))
    }

    pub(super) async fn query_entities(
        &self,
        asked: QueryEntities,
    ) -> Result<JsonObject, AnyError> {
        asked.selection.check()?;
        let token = asked.resume.as_deref().map(str::parse::<PageToken>);
        let token = token.transpose()?;
        let left = asked.take.unwrap_or(TAKE);
        let asked = Asked {
            table: self.service.table(asked.table),
            selection: asked.selection,
            select: asked.select,
            retry: RetryPolicy::exponential(),
        };
        let access = asked.access()?;
        if access == AccessClass::Scan && !self.rights.scan {
            let problem = "the query looks at the whole table, which this server was not started for (--allow-scans): name a \"partition\"";
            return Err(problem.into());
        }
        let (entities, next) = read_on(&asked, token, left).await?;
        let mut answer = object(json!({
            "access": access.to_string(),
            "cost": cost(access),
        }));
        if let Some(token) = next {
            answer.insert("continue".to_owned(), token.to_string().into());
        }
        answer.insert("entities".to_owned(), entities.into());
        Ok(answer)
    }
}

/// A line of the schema with values that are no longer than an agent needs to see what they are
/// like.
fn short_line(name: &str, of_type: &TypeOfProperty) -> Json {
    let mut line = line(name, of_type);
    for bound in ["smallest", "largest"] {
        if let Some(Json::String(text)) = line.get_mut(bound) {
            *text = shortened(text, BOUND_CHARS_MAX);
        }
    }
    line
}

/// Reads pages until there are enough entities, or no more fit into an answer. The token is that of
/// what follows.
async fn read_on(
    asked: &Asked,
    mut token: Option<PageToken>,
    mut left: usize,
) -> Result<(Vec<Json>, Option<PageToken>), AnyError> {
    let view = View {
        select: &asked.select,
        offset: None,
    };
    let mut entities = Vec::new();
    let mut room = PARTS_BYTES_MAX;
    let mut size = left.min(PAGE_ITEMS_MAX);
    let mut is_full = false;
    for _ in 0..PAGES_MAX {
        let page = asked.page(size, token.clone()).await?;
        let shown: Vec<Shown> = page.items.iter().map(|entity| view.of(entity)).collect();
        let fitting = fitting_of(&shown, room);
        if fitting < shown.len() {
            if fitting == 0 {
                break;
            }
            // A token is that of a whole page. So a page of those that fit is asked for.
            size = fitting;
            is_full = true;
            continue;
        }
        room -= shown.iter().map(|it| it.bytes + 1).sum::<usize>();
        left = left.saturating_sub(shown.len());
        entities.extend(shown.into_iter().map(|it| it.json));
        token = page.next;
        if token.is_none() || left == 0 || is_full {
            return Ok((entities, token));
        }
        size = left.min(PAGE_ITEMS_MAX);
    }
    match token {
        // No token says that a first page was never read to its end.
        None => Err("the entities change while they are read".into()),
        Some(_) => Ok((entities, token)),
    }
}

/// How many of them fit, from the first one on.
fn fitting_of(shown: &[Shown], mut room: usize) -> usize {
    let fit = shown.iter().take_while(|it| {
        let rest = room.checked_sub(it.bytes + 1);
        room = rest.unwrap_or_default();
        rest.is_some()
    });
    fit.count()
}

/// The first values, as many as fit into an answer, and the next one.
fn fitting(values: impl Iterator<Item = Json>) -> (Vec<Json>, Option<Json>) {
    let mut room = PARTS_BYTES_MAX;
    let mut fitting = Vec::new();
    for value in values {
        match room.checked_sub(bytes(&value) + 1) {
            Some(rest) => room = rest,
            None => return (fitting, Some(value)),
        }
        fitting.push(value);
    }
    (fitting, None)
}

/// The members of what is written as an object.
fn object(json: Json) -> JsonObject {
    match json {
        Json::Object(members) => members,
        _ => JsonObject::new(),
    }
}

/// How many entities a schema is made of, as on the command line.
const SAMPLE: usize = 1000;
/// How many entities a query returns: an agent reads each of them.
const TAKE: usize = 50;
/// A call ends while its host still waits for it.
const PAGES_MAX: usize = 10;
const BOUND_CHARS_MAX: usize = 100;
