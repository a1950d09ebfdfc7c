//! The contents of a request, as rules and the journal see it.

use tablesdk_protocol::filter::{AccessClass, ComparisonOperator, Filter};
use tablesdk_protocol::operation::batch::{Change, Query, Received};
use tablesdk_protocol::operation::{Operation, get_entity, insert_entity, query_entities};
use tablesdk_protocol::{EntityKey, Value};

use super::Op;

/// The contents of an authenticated request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestInfo {
    /// `None` for a request to a resource that does not exist.
    pub(super) op: Option<Op>,
    pub(super) account: String,
    pub(super) table: Option<String>,
    /// The entities that a request names, one for each change of a batch. Those of a body that
    /// cannot be read are missing.
    pub(super) entities: Vec<RequestedEntity>,
    /// The partition of a query that is restricted to one, and of all other requests for entities.
    pub(super) partition_key: Option<String>,
    pub(super) query: Option<RequestedQuery>,
}

/// An entity that a request names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RequestedEntity {
    /// The operation that the request asks for, or the change of a batch.
    pub op: Op,
    /// The key of the entity.
    pub key: EntityKey,
}

/// The query of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RequestedQuery {
    /// How the server finds the entities.
    pub access: AccessClass,
    /// The filter in its normal form.
    pub filter: Option<String>,
    /// Why Azure Table storage refuses the filter, if the flavor of the server accepts it.
    pub filter_refusal: Option<String>,
    /// The names of the properties to return; all if it is `None`.
    pub select: Option<Vec<String>>,
    /// The maximum number of entities of the page.
    pub top: Option<usize>,
    /// True if the request asks for a page after the first.
    pub is_continuation: bool,
}

impl RequestedQuery {
    /// Returns true if the query reads a range of the partitions whose keys begin as those of the
    /// Rust client's own entities: the buckets of entities that expire. No program writes there, so
    /// the range has no other entities.
    pub(super) fn is_of_own_entities(&self) -> bool {
        use ComparisonOperator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let filter = self.filter.as_deref().and_then(|text| text.parse().ok());
        let Some(Filter::And(terms)) = &filter else {
            return false;
        };
        let is_bounded = |operators: [ComparisonOperator; 2]| {
            terms.iter().any(|term| match term {
                Filter::Comparison(it) if it.property == "PartitionKey" => {
                    let is_own = matches!(&it.literal, Value::String(key) if key.starts_with(OWN));
                    is_own && operators.contains(&it.operator)
                }
                _ => false,
            })
        };
        is_bounded([GreaterThan, GreaterThanOrEqual]) && is_bounded([LessThan, LessThanOrEqual])
    }
}

/// The beginning of the keys of the client's own entities.
const OWN: &str = "~tablesdk.";

impl RequestInfo {
    pub(super) fn new(account: &str, operation: &Operation) -> Self {
        let mut info = Self::unknown(account);
        info.op = Op::of(operation);
        info.fill(operation);
        info
    }

    /// A request of which nothing is known but the account.
    pub(super) fn unknown(account: &str) -> Self {
        Self {
            op: None,
            account: account.to_owned(),
            table: None,
            entities: Vec::new(),
            partition_key: None,
            query: None,
        }
    }

    fn fill(&mut self, operation: &Operation) {
        match operation {
            Operation::Batch(Received::Changes { changes, .. }) => {
                for change in changes {
                    self.fill_change(change);
                }
            }
            Operation::CreateTable(request) => self.table = Some(request.name.to_string()),
            Operation::DeleteEntity(request) => {
                self.fill_entity(Op::DeleteEntity, request.table.as_str(), &request.key);
            }
            Operation::DeleteTable(request) => self.table = Some(request.name.to_string()),
            Operation::GetEntity(request)
            | Operation::Batch(Received::Query(Ok(Query::Entity(request)))) => {
                self.fill_get(request);
            }
            Operation::GetTable(request) => self.table = Some(request.name.to_string()),
            Operation::GetTableAcl(request) => self.table = Some(request.table.to_string()),
            Operation::InsertEntity(request) => self.fill_insert(request),
            Operation::QueryEntities(request)
            | Operation::Batch(Received::Query(Ok(Query::Entities(request)))) => {
                self.fill_query(request);
            }
            Operation::SetTableAcl(request) => self.table = Some(request.table.to_string()),
            Operation::UpdateEntity(request) => {
                if let Some(op) = Op::of(operation) {
                    self.fill_entity(op, request.table.as_str(), &request.key);
                }
            }
            Operation::Misplaced(table, _) => self.table = Some(table.to_string()),
            _ => {}
        }
    }

    fn fill_change(&mut self, change: &Change) {
        let op = Op::of_change(change);
        match change {
            Change::Delete(request) => self.fill_entity(op, request.table.as_str(), &request.key),
            Change::Insert(request) => self.fill_insert(request),
            Change::Update(request) => self.fill_entity(op, request.table.as_str(), &request.key),
        }
    }

    fn fill_entity(&mut self, op: Op, table: &str, key: &EntityKey) {
        self.table = Some(table.to_owned());
        self.partition_key = Some(key.partition_key().to_string());
        self.entities.push(RequestedEntity {
            op,
            key: key.clone(),
        });
    }

    fn fill_get(&mut self, request: &get_entity::Request) {
        self.fill_entity(Op::QueryEntity, request.table.as_str(), &request.key);
    }

    fn fill_insert(&mut self, request: &insert_entity::Request) {
        self.table = Some(request.table.to_string());
        let key = request.entity.read().and_then(|mut body| body.take_key());
        if let Ok(key) = key {
            self.fill_entity(Op::InsertEntity, request.table.as_str(), &key);
        }
    }

    fn fill_query(&mut self, request: &query_entities::Request) {
        let filter = request.filter.as_ref();
        self.table = Some(request.table.to_string());
        self.partition_key = AccessClass::partition(filter).map(ToOwned::to_owned);
        self.query = Some(RequestedQuery {
            access: AccessClass::of(filter),
            filter: filter.map(ToString::to_string),
            filter_refusal: request.filter_refusal.as_ref().map(ToString::to_string),
            select: request.select.clone(),
            top: request.top,
            is_continuation: request.continuation.is_some(),
        });
    }
}
