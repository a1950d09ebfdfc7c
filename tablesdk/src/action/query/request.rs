//! The request of a query: for a page, or for one entity where the query asks for nothing else.
//! Sends nothing.

use std::borrow::Cow;

use bytes::Bytes;
use http::Request as HttpRequest;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::get_entity;
use tablesdk_protocol::operation::query_entities::Request;
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{Endpoint, EntityKey, TableName};

use crate::action::extend::extension::{Extensions, Shape};
use crate::action::refusal::check_url;
use crate::error::Error;
use crate::filter::AccessClass;
use crate::pipeline::{Pipeline, Table};
use crate::query::fingerprint;

/// A query without its pages.
#[derive(Clone)]
pub(crate) struct QueryRequest {
    pub(crate) table: TableName,
    pub(crate) filter: Option<Tree>,
    pub(crate) select: Option<Vec<String>>,
}

impl QueryRequest {
    /// A query of the client's own.
    pub(crate) const fn own(table: TableName, filter: Tree, select: Option<Vec<String>>) -> Self {
        Self {
            table,
            filter: Some(filter),
            select,
        }
    }

    /// How the service finds the entities.
    pub(crate) fn access(&self) -> AccessClass {
        AccessClass::of(self.filter.as_ref())
    }

    /// The filter in `OData`.
    pub(crate) fn filter(&self) -> Option<String> {
        self.filter.as_ref().map(ToString::to_string)
    }

    /// The query as it is sent now.
    pub(crate) fn shaped(
        &self,
        table: &Table,
        extensions: &Extensions,
    ) -> Result<Cow<'_, Self>, Error> {
        if extensions.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        let mut shape = Shape {
            filter: self.filter.clone(),
            select: self.select.clone(),
        };
        extensions.shape(table, &mut shape)?;
        let Shape { filter, select } = shape;
        Ok(Cow::Owned(Self {
            table: self.table.clone(),
            filter,
            select,
        }))
    }

    /// All that identify the query in its page tokens; the first one is that of new tokens. The
    /// time of a page does not identify it.
    pub(crate) fn fingerprints(
        &self,
        table: &Table,
        extensions: &Extensions,
    ) -> Result<Vec<u64>, Error> {
        Ok(match extensions.prints(table, self.filter.as_ref())? {
            None => vec![self.fingerprint_by(self.filter.as_ref())],
            Some(prints) => prints
                .iter()
                .map(|print| self.fingerprint_by(Some(print)))
                .collect(),
        })
    }

    fn fingerprint_by(&self, filter: Option<&Tree>) -> u64 {
        // Names of tables are compared without regard to case.
        let name = self.table.as_str().to_ascii_lowercase();
        let filter = filter.map(ToString::to_string).unwrap_or_default();
        let columns = self.select.iter().flatten().map(String::as_str);
        fingerprint([name.as_str(), &filter].into_iter().chain(columns))
    }

    /// The key, if the query asks for one entity and nothing else: a read by key is the fastest.
    pub(crate) fn point(&self) -> Option<EntityKey> {
        AccessClass::point(self.filter.as_ref())
    }

    /// The request for the entity of that key.
    pub(crate) fn for_entity(&self, key: &EntityKey, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let request = get_entity::Request {
            table: self.table.clone(),
            key: key.clone(),
            select: self.select.clone(),
            level: MetadataLevel::Minimal,
        };
        request.encode(endpoint)
    }

    /// The request for a page of at most `top` entities. Refuses a URL that is longer than the
    /// service reads.
    pub(crate) fn for_page(
        &self,
        top: Option<usize>,
        continuation: Option<EntityContinuation>,
        pipeline: &Pipeline,
    ) -> Result<HttpRequest<Bytes>, Error> {
        let request = Request {
            filter_refusal: None,
            table: self.table.clone(),
            filter: self.filter.clone(),
            select: self.select.clone().map(|names| self.with_keys(names)),
            top: top.map(|top| top.min(PAGE_ITEMS_MAX)),
            continuation,
            level: MetadataLevel::Minimal,
        };
        let endpoint = &pipeline.endpoint;
        check_url(OPERATION, request.url_bytes(endpoint))?;
        Ok(request.encode(endpoint))
    }

    /// The partition that the query is restricted to.
    pub(crate) fn partition(&self) -> Option<&str> {
        AccessClass::partition(self.filter.as_ref())
    }

    /// The row key distinguishes the markers of other operations from entities, and the error of an
    /// entity names both keys. That costs some bytes per entity: the partition key is not requested
    /// where it is known, or where only row keys are counted.
    fn with_keys(&self, mut names: Vec<String>) -> Vec<String> {
        let counts = names == ["RowKey"];
        let mut add = |name: &str| {
            if !names.iter().any(|selected| selected == name) {
                names.push(name.to_owned());
            }
        };
        add("RowKey");
        if !counts && self.partition().is_none() {
            add("PartitionKey");
        }
        names
    }
}

pub(crate) const OPERATION: &str = "query entities";
