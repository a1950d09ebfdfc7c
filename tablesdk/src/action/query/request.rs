//! The request of a query: for a page, or for one entity where the query asks for nothing else. Sends nothing.

use bytes::Bytes;
use http::Request as HttpRequest;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::get_entity;
use tablesdk_protocol::operation::query_entities::Request;
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{Endpoint, EntityKey, TableName};

use crate::action::check_url;
use crate::entity::Schema;
use crate::error::Error;
use crate::filter::AccessClass;
use crate::pipeline::Pipeline;
use crate::query::fingerprint;

/// A query as the service sees it, without its pages.
pub(in crate::action) struct QueryRequest {
    pub(in crate::action) table: TableName,
    pub(in crate::action) filter: Option<Tree>,
    pub(in crate::action) select: Option<Vec<String>>,
    /// The entities of which the expired ones are not read.
    pub(in crate::action) hides_expired: Option<&'static Schema>,
    /// The filter before the values of encrypted properties in it became what is stored, if it has any.
    pub(in crate::action) unsealed: Option<Tree>,
    /// For each key that encrypts such values, beginning with the current one: the filter with what this key alone stores for them.
    pub(in crate::action) by_key: Vec<Tree>,
}

impl QueryRequest {
    /// A query of the client's own: it finds expired entities, too, and compares no encrypted properties.
    pub(in crate::action) const fn own(
        table: TableName,
        filter: Tree,
        select: Option<Vec<String>>,
    ) -> Self {
        Self {
            table,
            filter: Some(filter),
            select,
            hides_expired: None,
            unsealed: None,
            by_key: Vec::new(),
        }
    }

    /// How the service finds the entities.
    pub(in crate::action) fn access(&self) -> AccessClass {
        AccessClass::of(self.filter.as_ref())
    }

    /// The filter in `OData`.
    pub(in crate::action) fn filter(&self) -> Option<String> {
        self.filter.as_ref().map(ToString::to_string)
    }

    /// The query with the condition of now that hides expired entities, where it has one.
    pub(in crate::action) fn now(self, pipeline: &Pipeline) -> Self {
        Self {
            filter: self.filter_now(pipeline),
            hides_expired: None,
            ..self
        }
    }

    fn filter_now(&self, pipeline: &Pipeline) -> Option<Tree> {
        let expired = self
            .hides_expired
            .and_then(|it| it.expired(pipeline.service_now()));
        let own = self.filter.clone().into_iter();
        own.chain(expired.map(|expired| !expired)).reduce(Tree::and)
    }

    /// Identifies the query in its page tokens. The time of a page does not.
    pub(in crate::action) fn fingerprint(&self) -> u64 {
        self.fingerprint_by(self.by_key.first().or(self.filter.as_ref()))
    }

    /// All that identify the query in its page tokens.
    ///
    /// A token must not reveal a value that is compared with an encrypted property, not even to those who try all values: it has a keyed hash
    /// of the value, which is what the property that finds it is made of. The key is the one that encrypted when the token was given out. All
    /// clients have a key before it encrypts, and keep it afterwards. So each accepts the token, in whatever order it has its keys.
    pub(in crate::action) fn fingerprints(&self) -> Vec<u64> {
        if self.by_key.is_empty() {
            return vec![self.fingerprint()];
        }
        let filters = self.by_key.iter();
        filters.map(|it| self.fingerprint_by(Some(it))).collect()
    }

    fn fingerprint_by(&self, filter: Option<&Tree>) -> u64 {
        // Names of tables are compared without regard to case.
        let name = self.table.as_str().to_ascii_lowercase();
        let filter = filter.map(ToString::to_string).unwrap_or_default();
        let columns = self.select.iter().flatten().map(String::as_str);
        fingerprint([name.as_str(), &filter].into_iter().chain(columns))
    }

    /// The key, if the query asks for one entity and nothing else: a read by key is the fastest.
    pub(in crate::action) fn point(&self) -> Option<EntityKey> {
        match self.hides_expired {
            Some(_) => None,
            None => AccessClass::point(self.filter.as_ref()),
        }
    }

    /// The request for the entity of that key.
    pub(in crate::action) fn for_entity(
        &self,
        key: &EntityKey,
        endpoint: &Endpoint,
    ) -> HttpRequest<Bytes> {
        let request = get_entity::Request {
            table: self.table.clone(),
            key: key.clone(),
            select: self.select.clone(),
            level: MetadataLevel::Minimal,
        };
        request.encode(endpoint)
    }

    /// The request for a page of at most `top` entities. Refuses a URL that is longer than the service reads.
    pub(in crate::action) fn for_page(
        &self,
        top: Option<usize>,
        continuation: Option<EntityContinuation>,
        pipeline: &Pipeline,
    ) -> Result<HttpRequest<Bytes>, Error> {
        let request = Request {
            filter_refusal: None,
            table: self.table.clone(),
            filter: self.filter_now(pipeline),
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
    pub(in crate::action) fn partition(&self) -> Option<&str> {
        AccessClass::partition(self.filter.as_ref())
    }

    /// The row key distinguishes the markers of other operations from entities, and the error of an entity names both keys. That
    /// costs some bytes per entity: the partition key is not requested where it is known, or where only row keys are counted.
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

pub(in crate::action) const OPERATION: &str = "query entities";
