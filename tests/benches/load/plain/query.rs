//! Queries: pages of up to 1,000 entities, selected by comparisons that are joined by `and`.

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;

use super::store::{Entity, Key, Tables};

/// The response with a page of entities.
pub(super) fn respond(
    tables: &Tables,
    table: &str,
    query: &str,
) -> Result<Response<Full<Bytes>>, StatusCode> {
    #[derive(Serialize)]
    struct Page<'a> {
        #[serde(rename = "odata.metadata")]
        metadata: String,
        value: &'a [&'a Entity],
    }

    let mut filter = Vec::new();
    let mut from = (String::new(), String::new());
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| StatusCode::BAD_REQUEST)?.into_owned();
        match &*percent_decode_str(name).decode_utf8_lossy() {
            "$filter" => filter = parse(&value).ok_or(StatusCode::NOT_IMPLEMENTED)?,
            "NextPartitionKey" => from.0 = value,
            "NextRowKey" => from.1 = value,
            _ => {}
        }
    }
    let partition = filter.iter().find_map(Comparison::partition).cloned();
    if let (Some(partition), true) = (&partition, from.0.is_empty()) {
        from.0.clone_from(partition);
    }
    let mut page = Vec::new();
    let mut next: Option<&Key> = None;
    let range = (Bound::Included(from), Bound::Unbounded);
    for (key, entity) in tables.table(table)?.range(range) {
        if partition
            .as_ref()
            .is_some_and(|partition| *partition != key.0)
        {
            break;
        }
        if filter.iter().all(|comparison| comparison.holds(entity)) {
            if page.len() == PAGE {
                next = Some(key);
                break;
            }
            page.push(entity);
        }
    }
    let metadata = format!("{}/$metadata#{table}", super::ACCOUNT);
    let body = serde_json::to_vec(&Page {
        metadata,
        value: &page,
    });
    let body = body.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let mut response = Response::builder()
        .header(header::CONTENT_TYPE, super::JSON)
        .header("x-ms-version", super::VERSION);
    if let Some((partition, row)) = next {
        let token = |key: &str| utf8_percent_encode(key, NON_ALPHANUMERIC).to_string();
        response = response
            .header("x-ms-continuation-NextPartitionKey", token(partition))
            .header("x-ms-continuation-NextRowKey", token(row));
    }
    let response = response.body(Full::new(body.into()));
    response.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

/// A property compared with a literal.
struct Comparison {
    name: String,
    operator: fn(Ordering) -> bool,
    is_equality: bool,
    literal: Value,
}

impl Comparison {
    fn holds(&self, entity: &Entity) -> bool {
        let Some(value) = entity.properties.get(&self.name) else {
            return false;
        };
        let ordering = match (value, &self.literal) {
            (Value::String(value), Value::String(literal)) => Some(value.cmp(literal)),
            (Value::Number(value), Value::Number(literal)) => {
                let (value, literal) = (value.as_f64(), literal.as_f64());
                value.zip(literal).and_then(|(a, b)| a.partial_cmp(&b))
            }
            (Value::Bool(value), Value::Bool(literal)) => Some(value.cmp(literal)),
            _ => None,
        };
        ordering.is_some_and(self.operator)
    }

    /// The only partition that has entities for which this holds.
    fn partition(&self) -> Option<&String> {
        match &self.literal {
            Value::String(literal) if self.is_equality && self.name == "PartitionKey" => {
                Some(literal)
            }
            _ => None,
        }
    }
}

/// `A eq 'b' and (C gt 1)`: no `or`, no `not`, and no literals but strings, numbers and booleans.
fn parse(filter: &str) -> Option<Vec<Comparison>> {
    filter.split(" and ").map(comparison).collect()
}

fn comparison(text: &str) -> Option<Comparison> {
    let text = text.trim_matches(['(', ')', ' ']);
    let mut parts = text.splitn(3, ' ');
    let (name, operator, literal) = (parts.next()?, parts.next()?, parts.next()?);
    let matches: fn(Ordering) -> bool = match operator {
        "eq" => Ordering::is_eq,
        "ne" => Ordering::is_ne,
        "lt" => Ordering::is_lt,
        "le" => Ordering::is_le,
        "gt" => Ordering::is_gt,
        "ge" => Ordering::is_ge,
        _ => return None,
    };
    let literal = match literal.strip_prefix('\'') {
        Some(string) => Value::from(string.strip_suffix('\'')?.replace("''", "'")),
        None => serde_json::from_str(literal).ok()?,
    };
    Some(Comparison {
        name: name.to_owned(),
        operator: matches,
        is_equality: operator == "eq",
        literal,
    })
}

/// The most entities of a page.
const PAGE: usize = 1000;
