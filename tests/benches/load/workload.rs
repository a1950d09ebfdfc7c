//! A table on a server, and for each operation the signed requests as bytes.
//!
//! The table has partitions of entities with ten properties. What is measured never depends on what
//! was measured before: inserts take new keys, deletes get entities of their own to delete.

use std::error::Error;
use std::io::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::try_join_all;
use http::{HeaderName, HeaderValue, Request, Response, Uri, header};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::operation::{
    Prefer, batch, create_table, delete_entity, delete_table, get_entity, insert_entity,
    query_entities, update_entity,
};
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{EntityKey, Guid, IfMatch, TableName, Timestamp};

use crate::connection::Connection;
use crate::entity::entity;
use crate::requests::{HOLE, Requests, Template};
use crate::servers::Account;

/// The operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    PointRead,
    Insert,
    Upsert,
    Merge,
    Delete,
    Batch,
    UpsertBatch,
    Page,
    Scan,
    Filter,
}

impl Operation {
    pub(crate) const ALL: [Self; 10] = [
        Self::PointRead,
        Self::Insert,
        Self::Upsert,
        Self::Merge,
        Self::Delete,
        Self::Batch,
        Self::UpsertBatch,
        Self::Page,
        Self::Scan,
        Self::Filter,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PointRead => "point-read",
            Self::Insert => "insert",
            Self::Upsert => "upsert",
            Self::Merge => "merge",
            Self::Delete => "delete",
            Self::Batch => "batch",
            Self::UpsertBatch => "upsert-batch",
            Self::Page => "page",
            Self::Scan => "scan",
            Self::Filter => "filter",
        }
    }

    /// The status of a success.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::PointRead | Self::Page | Self::Scan | Self::Filter => 200,
            Self::Batch | Self::UpsertBatch => 202,
            Self::Insert | Self::Upsert | Self::Merge | Self::Delete => 204,
        }
    }
}

/// The size of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) entities: usize,
    pub(crate) entities_per_partition: usize,
    /// How many bytes of strings each entity has in addition to its ten properties.
    pub(crate) text_bytes: usize,
}

impl Shape {
    /// Partitions of a thousand entities, each with its ten properties alone.
    pub(crate) const fn of(entities: usize) -> Self {
        Self {
            entities,
            entities_per_partition: 1000,
            text_bytes: 0,
        }
    }

    /// All entities in one partition.
    pub(crate) const fn in_one_partition(entities: usize) -> Self {
        Self {
            entities_per_partition: entities,
            ..Self::of(entities)
        }
    }

    fn partition_of(self, number: usize) -> String {
        format!("p{:07}", number / self.entities_per_partition)
    }
}

/// A table on a server.
#[derive(Debug)]
pub(crate) struct Workload {
    account: Account,
    address: SocketAddr,
    shape: Shape,
    table: TableName,
    /// The number of the next entity that is new.
    next: Arc<AtomicUsize>,
}

impl Workload {
    /// Creates a table and fills it.
    pub(crate) async fn create(account: Account, shape: Shape) -> Result<Self, Box<dyn Error>> {
        let address = address_of(&account)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let workload = Self {
            account,
            address,
            shape,
            table: TableName::new(format!(
                "load{}x{}",
                since.as_micros(),
                TABLES.fetch_add(1, Ordering::Relaxed)
            ))?,
            next: Arc::new(AtomicUsize::new(shape.entities)),
        };
        let create = create_table::Request {
            name: workload.table.clone(),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        };
        let create = create.encode(&workload.account.endpoint);
        workload.send(&workload.wire(create)?, 204).await?;
        try_join_all((0..FILLING).map(|first| workload.fill(first))).await?;
        Ok(workload)
    }

    /// Inserts the entities of every fourth partition, from that one on.
    async fn fill(&self, first: usize) -> Result<(), Box<dyn Error>> {
        let Shape {
            entities,
            entities_per_partition: size,
            ..
        } = self.shape;
        for start in (0..entities).step_by(size).skip(first).step_by(FILLING) {
            let numbers: Vec<usize> = (start..entities.min(start + size)).collect();
            self.insert(&numbers, &self.shape.partition_of(start))
                .await?;
        }
        Ok(())
    }

    /// The server is somewhere else now, with the same table.
    pub(crate) fn moved_to(&mut self, account: Account) -> Result<(), Box<dyn Error>> {
        self.address = address_of(&account)?;
        self.account = account;
        Ok(())
    }

    /// Deletes the table.
    pub(crate) async fn delete(self) -> Result<(), Box<dyn Error>> {
        self.send(&self.delete_request()?, 204).await
    }

    /// The request to delete the table.
    pub(crate) fn delete_request(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        let delete = delete_table::Request {
            name: self.table.clone(),
        };
        self.wire(delete.encode(&self.account.endpoint))
    }

    /// Point reads or inserts of one entity each, for a server in this process.
    pub(crate) fn prepared(
        &self,
        operation: Operation,
        count: usize,
    ) -> Result<Vec<Request<Bytes>>, Box<dyn Error>> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let request = |number: usize| match operation {
            Operation::PointRead => self.signed(self.get((number * 7919) % self.shape.entities)?),
            Operation::Insert => {
                let insert = self.new_entity(NEW, &row_key(number), number);
                self.signed(insert.encode(&self.account.endpoint))
            }
            _ => Err(format!("{} is not prepared", operation.name()).into()),
        };
        (first..first + count).map(request).collect()
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The answer to one request of an operation.
    pub(crate) async fn sample(
        &self,
        operation: Operation,
    ) -> Result<Response<Bytes>, Box<dyn Error>> {
        let requests = self.requests(operation, 1).await?;
        let mut buffer = Vec::new();
        let request = requests.next(&mut buffer).ok_or("no request to sample")?;
        let mut connection = Connection::open(self.address).await?;
        let answer = connection.exchange(request).await?;
        let head = String::from_utf8_lossy(answer.head);
        let body = Bytes::copy_from_slice(answer.body);
        if answer.status != operation.status() {
            let body = String::from_utf8_lossy(&body);
            return Err(format!("{}: {head}{body}", operation.name()).into());
        }
        let refused = b"HTTP/1.1 4";
        if operation.status() == 202 && body.windows(refused.len()).any(|w| w == refused) {
            return Err(format!("a batch is refused: {}", String::from_utf8_lossy(&body)).into());
        }
        let mut response = Response::new(body);
        *response.status_mut() = answer.status.try_into()?;
        for (name, value) in head.split("\r\n").filter_map(|line| line.split_once(':')) {
            let name: HeaderName = name.parse()?;
            // These hyper writes itself.
            let is_framing = [
                header::CONNECTION,
                header::CONTENT_LENGTH,
                header::DATE,
                header::TRANSFER_ENCODING,
            ];
            if !is_framing.contains(&name) && name != "keep-alive" {
                response.headers_mut().append(name, value.trim().parse()?);
            }
        }
        Ok(response)
    }

    /// Requests of an operation: at least that many that can be sent one after another.
    pub(crate) async fn requests(
        &self,
        operation: Operation,
        count: usize,
    ) -> Result<Requests, Box<dyn Error>> {
        let endpoint = &self.account.endpoint;
        let numbers = self.spread(KEYS);
        let single = |requests: Result<Vec<_>, _>| requests.map(|all| Requests::cycle(all, 1.0));
        match operation {
            Operation::PointRead => {
                single(numbers.map(|number| self.wire(self.get(number)?)).collect())
            }
            Operation::Upsert => single(
                numbers
                    .map(|number| self.wire(self.update(number, Mode::Replace)?.encode(endpoint)))
                    .collect(),
            ),
            Operation::Merge => single(
                numbers
                    .map(|number| self.wire(self.update(number, Mode::Merge)?.encode(endpoint)))
                    .collect(),
            ),
            Operation::UpsertBatch => {
                let batches = self.partitions().map(|first| {
                    let upserts = (first..(first + BATCH).min(self.shape.entities)).map(|number| {
                        Ok(batch::Change::Update(self.update(number, Mode::Replace)?))
                    });
                    let upserts = upserts.collect::<Result<_, Box<dyn Error>>>()?;
                    self.wire(batch::Request::Changes(upserts).encode(endpoint, Guid::default()))
                });
                let batches = batches.collect::<Result<Vec<_>, _>>()?;
                Ok(Requests::cycle(batches, as_f64(BATCH)))
            }
            Operation::Page => {
                let pages = self
                    .partitions()
                    .map(|first| self.wire(self.query(Some(first), None, None).encode(endpoint)));
                let entities = self.shape.entities_per_partition.min(self.shape.entities);
                Ok(Requests::cycle(
                    pages.collect::<Result<_, _>>()?,
                    as_f64(entities.min(1000)),
                ))
            }
            Operation::Scan => {
                let pages = self.walk(None, None).await?;
                let entities = as_f64(self.shape.entities) / as_f64(pages.len());
                Ok(Requests::cycle(pages, entities))
            }
            Operation::Filter => {
                let mut pages = Vec::new();
                let mut entities = 0;
                for first in self.partitions() {
                    // One of a thousand.
                    let old = Filter::comparison("Age", ComparisonOperator::GreaterThan, 998);
                    pages.extend(self.walk(Some(first), Some(&old)).await?);
                    let rest = self.shape.entities - first;
                    entities += self.shape.entities_per_partition.min(rest);
                }
                let entities = as_f64(entities) / as_f64(pages.len());
                Ok(Requests::cycle(pages, entities))
            }
            Operation::Insert => {
                let insert = self.new_entity(NEW, HOLE, 0);
                let template = Template::new(self.wire(insert.encode(endpoint))?);
                Ok(Requests::fresh(template, &self.next))
            }
            Operation::Batch => {
                let inserts = (0..BATCH).map(|number| self.new_entity(NEW, HOLE, number));
                let batch = batch::Request::Changes(inserts.map(batch::Change::Insert).collect());
                let template = Template::new(self.wire(batch.encode(endpoint, Guid::default()))?);
                Ok(Requests::fresh(template, &self.next))
            }
            Operation::Delete => {
                let first = self.next.fetch_add(count, Ordering::Relaxed);
                let numbers: Vec<usize> = (first..first + count).collect();
                self.insert(&numbers, NEW).await?;
                let requests = numbers.iter().map(|number| {
                    let delete = delete_entity::Request {
                        table: self.table.clone(),
                        key: EntityKey::new(NEW, row_key(*number))?,
                        if_match: IfMatch::Any,
                    };
                    self.wire(delete.encode(endpoint))
                });
                let requests = requests.collect::<Result<Vec<_>, _>>()?;
                Ok(Requests::once(requests))
            }
        }
    }

    /// At most so many numbers of entities, from all over the table and not in its order.
    fn spread(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let entities = self.shape.entities;
        let count = count.min(entities);
        let mut numbers: Vec<_> = (0..count).map(|place| place * entities / count).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut numbers);
        numbers.into_iter()
    }

    /// The numbers of the first entities of some partitions, from all over the table.
    fn partitions(&self) -> impl Iterator<Item = usize> + use<> {
        let size = self.shape.entities_per_partition;
        let partitions = self.shape.entities.div_ceil(size);
        let count = PARTITIONS.min(partitions);
        (0..count).map(move |place| place * partitions / count * size)
    }

    fn get(&self, number: usize) -> Result<Request<Bytes>, Box<dyn Error>> {
        let get = get_entity::Request {
            table: self.table.clone(),
            key: EntityKey::new(self.shape.partition_of(number), row_key(number))?,
            select: None,
            level: MetadataLevel::Minimal,
        };
        Ok(get.encode(&self.account.endpoint))
    }

    fn update(&self, number: usize, mode: Mode) -> Result<update_entity::Request, Box<dyn Error>> {
        let (partition, row) = (self.shape.partition_of(number), row_key(number));
        Ok(update_entity::Request {
            table: self.table.clone(),
            mode,
            // Without a condition, a merge is an upsert, too: this one needs the entity.
            if_match: (mode == Mode::Merge).then_some(IfMatch::Any),
            entity: entity(&partition, &row, number, self.shape.text_bytes),
            key: EntityKey::new(partition, row)?,
        })
    }

    /// A query of the table, or of the partition that has an entity.
    fn query(
        &self,
        of: Option<usize>,
        and: Option<&Filter>,
        continuation: Option<EntityContinuation>,
    ) -> query_entities::Request {
        let within = of.map(|number| {
            let partition = self.shape.partition_of(number);
            Filter::comparison("PartitionKey", ComparisonOperator::Equal, partition)
        });
        query_entities::Request {
            filter_refusal: None,
            table: self.table.clone(),
            filter: match (within, and.cloned()) {
                (Some(within), Some(filter)) => Some(within.and(filter)),
                (within, filter) => within.or(filter),
            },
            select: None,
            top: None,
            continuation,
            level: MetadataLevel::Minimal,
        }
    }

    /// The requests for all pages of a query, one after another.
    async fn walk(
        &self,
        of: Option<usize>,
        and: Option<&Filter>,
    ) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        let mut connection = Connection::open(self.address).await?;
        let mut requests = Vec::new();
        let mut continuation = None;
        loop {
            let query = self.query(of, and, continuation);
            let request = self.wire(query.encode(&self.account.endpoint))?;
            let answer = connection.exchange(&request).await?;
            if answer.status != 200 {
                let body = String::from_utf8_lossy(answer.body);
                return Err(format!("{}: {body}", answer.status).into());
            }
            let next = continuation_of(answer.head);
            requests.push(request);
            match next {
                Some(next) => continuation = Some(next),
                None => return Ok(requests),
            }
        }
    }

    fn new_entity(&self, partition: &str, row: &str, number: usize) -> insert_entity::Request {
        insert_entity::Request {
            table: self.table.clone(),
            entity: entity(partition, row, number, self.shape.text_bytes),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        }
    }

    /// Inserts entities of those numbers into a partition, a hundred at a time.
    async fn insert(&self, numbers: &[usize], partition: &str) -> Result<(), Box<dyn Error>> {
        let mut connection = Connection::open(self.address).await?;
        for numbers in numbers.chunks(BATCH) {
            let inserts = numbers.iter().map(|number| {
                let row = row_key(*number);
                batch::Change::Insert(self.new_entity(partition, &row, *number))
            });
            let batch = batch::Request::Changes(inserts.collect());
            let request = self.wire(batch.encode(&self.account.endpoint, Guid::default()))?;
            let answer = connection.exchange(&request).await?;
            let body = String::from_utf8_lossy(answer.body);
            if answer.status != 202 || body.contains("HTTP/1.1 4") {
                return Err(format!("filling the table: {}: {body}", answer.status).into());
            }
        }
        Ok(())
    }

    async fn send(&self, request: &[u8], status: u16) -> Result<(), Box<dyn Error>> {
        let mut connection = Connection::open(self.address).await?;
        let answer = connection.exchange(request).await?;
        if answer.status != status {
            let body = String::from_utf8_lossy(answer.body);
            return Err(format!("{}: {body}", answer.status).into());
        }
        Ok(())
    }

    /// A request that is signed now, which is good for a quarter of an hour.
    fn signed(&self, mut request: Request<Bytes>) -> Result<Request<Bytes>, Box<dyn Error>> {
        let key = &self.account.key;
        let now = Timestamp::try_from(SystemTime::now())?;
        let authority = request.uri().authority().map(ToString::to_string);
        let length = request.body().len();
        let headers = request.headers_mut();
        let authority = authority.ok_or("the endpoint has no host")?;
        headers.insert(header::HOST, HeaderValue::try_from(authority)?);
        headers.insert(header::CONTENT_LENGTH, length.into());
        headers.insert("x-ms-date", HeaderValue::try_from(now.to_http_date())?);
        headers.insert("x-ms-version", HeaderValue::from_static("2019-02-02"));
        let text = string_to_sign(
            Scheme::SharedKey,
            key.account(),
            request.method(),
            request.uri(),
            request.headers(),
        );
        let signature = key.sign(&text);
        let authorization = format!("SharedKey {}:{}", key.account(), signature.expose());
        let authorization = HeaderValue::try_from(authorization)?;
        request
            .headers_mut()
            .insert(header::AUTHORIZATION, authorization);
        Ok(request)
    }

    /// A signed request as bytes.
    fn wire(&self, request: Request<Bytes>) -> Result<Vec<u8>, Box<dyn Error>> {
        let request = self.signed(request)?;
        let path = request.uri().path_and_query().map(ToString::to_string);
        let mut bytes = Vec::with_capacity(1024 + request.body().len());
        write!(
            bytes,
            "{} {} HTTP/1.1\r\n",
            request.method(),
            path.unwrap_or_default()
        )?;
        for (name, value) in request.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(request.body());
        Ok(bytes)
    }
}

pub(crate) fn address_of(account: &Account) -> Result<SocketAddr, Box<dyn Error>> {
    let uri: Uri = account.endpoint.as_str().parse()?;
    let host = uri.host().ok_or("the endpoint has no host")?;
    let mut addresses = (host, uri.port_u16().unwrap_or(80)).to_socket_addrs()?;
    let address = addresses.next();
    Ok(address.ok_or("the endpoint's host has no address")?)
}

/// Where the next page starts, as the head of a response says.
fn continuation_of(head: &[u8]) -> Option<EntityContinuation> {
    let head = String::from_utf8_lossy(head);
    let value = |wanted: &str| {
        let mut headers = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let found = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim().to_owned())
    };
    Some(EntityContinuation {
        next_partition_key: value("x-ms-continuation-NextPartitionKey")?,
        next_row_key: value("x-ms-continuation-NextRowKey"),
    })
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn row_key(number: usize) -> String {
    format!("{number:010}")
}

/// The partition of what is added while measuring.
const NEW: &str = "new";
const BATCH: usize = 100;
/// How many connections fill a table.
const FILLING: usize = 4;
/// Numbers the tables of this process, which are created within one microsecond of each other,
/// maybe.
static TABLES: AtomicU64 = AtomicU64::new(0);
/// How many different entities are read and written.
const KEYS: usize = 10_000;
/// How many different partitions are read.
const PARTITIONS: usize = 100;
