//! The requests: a table, and for each operation the signed requests as bytes.
//!
//! The table has partitions of a thousand entities with ten properties. What is measured never depends on what was measured
//! before: inserts take new keys, deletes get entities of their own to delete.

use std::error::Error;
use std::io::Write as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, Uri, header};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::operation::{
    EntityBody, Prefer, batch, create_table, delete_entity, delete_table, get_entity,
    insert_entity, query_entities, update_entity,
};
use tablesdk_protocol::wire::json::{EntityWriter, MetadataLevel};
use tablesdk_protocol::{EntityKey, Guid, IfMatch, TableName, Timestamp, Value};

use crate::connection::Connection;
use crate::servers::Account;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    PointRead,
    Insert,
    Upsert,
    Merge,
    Delete,
    Batch,
    Page,
    FilteredScan,
}

impl Operation {
    pub(crate) const ALL: [Self; 8] = [
        Self::PointRead,
        Self::Insert,
        Self::Upsert,
        Self::Merge,
        Self::Delete,
        Self::Batch,
        Self::Page,
        Self::FilteredScan,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PointRead => "point-read",
            Self::Insert => "insert",
            Self::Upsert => "upsert",
            Self::Merge => "merge",
            Self::Delete => "delete",
            Self::Batch => "batch-of-100",
            Self::Page => "page-of-1000",
            Self::FilteredScan => "filtered-scan",
        }
    }

    /// The status of a success.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::PointRead | Self::Page | Self::FilteredScan => 200,
            Self::Batch => 202,
            Self::Insert | Self::Upsert | Self::Merge | Self::Delete => 204,
        }
    }
}

/// Requests of one operation, ready to be sent. Clones share them.
#[derive(Clone, Debug)]
pub(crate) enum Requests {
    /// Each in its turn, and again from the start.
    Cycle(Arc<[Vec<u8>]>, Arc<AtomicUsize>),
    /// The same request with new keys in it each time.
    Fresh(Arc<Template>, Arc<AtomicUsize>),
    /// Each once.
    Once(Arc<[Vec<u8>]>, Arc<AtomicUsize>),
}

impl Requests {
    /// The next request, which may be written into the buffer.
    pub(crate) fn next<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Self::Cycle(requests, next) => {
                let place = next.fetch_add(1, Ordering::Relaxed) % requests.len();
                requests.get(place).map(Vec::as_slice)
            }
            Self::Fresh(template, next) => {
                let count = template.holes.len();
                template.fill(next.fetch_add(count, Ordering::Relaxed), buffer);
                Some(buffer)
            }
            Self::Once(requests, next) => {
                let place = next.fetch_add(1, Ordering::Relaxed);
                requests.get(place).map(Vec::as_slice)
            }
        }
    }

    /// The same for a server that does not mind being asked the same twice.
    pub(crate) fn repeated(self) -> Self {
        match self {
            Self::Once(requests, _) => Self::Cycle(requests, Arc::default()),
            requests => requests,
        }
    }
}

/// A request with holes for numbers. The scheme signs no bodies, so filling them leaves the signature good.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
}

impl Template {
    fn new(bytes: Vec<u8>) -> Self {
        let windows = bytes.windows(HOLE.len()).enumerate();
        let holes = windows
            .filter(|(_, window)| *window == HOLE.as_bytes())
            .map(|(place, _)| place)
            .collect();
        Self { bytes, holes }
    }

    /// Writes the request with the numbers from `first` on.
    fn fill(&self, first: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&self.bytes);
        for (number, place) in (first..).zip(&self.holes) {
            let mut hole = buffer.get_mut(*place..*place + HOLE.len());
            if let Some(hole) = &mut hole {
                let _ = write!(hole, "{number:010}");
            }
        }
    }
}

/// A table on a server.
#[derive(Debug)]
pub(crate) struct Workload {
    account: Account,
    address: SocketAddr,
    entities: usize,
    /// How long the text is that each entity has beside its ten properties.
    text_bytes: usize,
    table: TableName,
    /// The number of the next entity that is new.
    next: Arc<AtomicUsize>,
}

impl Workload {
    /// Creates a table and fills it.
    pub(crate) async fn create(
        account: Account,
        entities: usize,
        text_bytes: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let address = address_of(&account)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let workload = Self {
            account,
            address,
            entities,
            text_bytes,
            table: TableName::new(format!("load{}", since.as_micros()))?,
            next: Arc::new(AtomicUsize::new(entities)),
        };
        let create = create_table::Request {
            name: workload.table.clone(),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        };
        let create = create.encode(&workload.account.endpoint);
        workload.send(&[workload.wire(create)?], 204).await?;
        let numbers: Vec<usize> = (0..entities).collect();
        workload.insert(&numbers, partition_of).await?;
        Ok(workload)
    }

    /// The server is somewhere else now, with the same table.
    pub(crate) fn moved_to(&mut self, account: Account) -> Result<(), Box<dyn Error>> {
        self.address = address_of(&account)?;
        self.account = account;
        Ok(())
    }

    /// Deletes the table.
    pub(crate) async fn delete(self) -> Result<(), Box<dyn Error>> {
        let delete = delete_table::Request {
            name: self.table.clone(),
        };
        let delete = delete.encode(&self.account.endpoint);
        self.send(&[self.wire(delete)?], 204).await
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
        if operation == Operation::Batch && body.windows(refused.len()).any(|w| w == refused) {
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
        let cycle = |requests: Result<Vec<_>, _>| {
            requests.map(|requests| Requests::Cycle(requests.into(), Arc::default()))
        };
        let endpoint = &self.account.endpoint;
        let numbers = self.spread(KEYS);
        let partitions = self.spread(PARTITIONS).map(partition_of);
        match operation {
            Operation::PointRead => {
                cycle(numbers.map(|number| self.wire(self.get(number)?)).collect())
            }
            Operation::Upsert => cycle(
                numbers
                    .map(|number| self.wire(self.update(number, Mode::Replace)?))
                    .collect(),
            ),
            Operation::Merge => cycle(
                numbers
                    .map(|number| self.wire(self.update(number, Mode::Merge)?))
                    .collect(),
            ),
            Operation::Page => cycle(
                partitions
                    .map(|partition| self.wire(self.page(&partition, None)))
                    .collect(),
            ),
            Operation::FilteredScan => cycle(
                partitions
                    .map(|partition| {
                        let old = Filter::comparison("Age", ComparisonOperator::GreaterThan, 989);
                        self.wire(self.page(&partition, Some(old)))
                    })
                    .collect(),
            ),
            Operation::Insert => {
                let insert = self.new_entity(NEW, HOLE, 0);
                let template = Template::new(self.wire(insert.encode(endpoint))?);
                Ok(Requests::Fresh(template.into(), Arc::clone(&self.next)))
            }
            Operation::Batch => {
                let inserts = (0..BATCH).map(|number| self.new_entity(NEW, HOLE, number));
                let batch = batch::Request::Changes(inserts.map(batch::Change::Insert).collect());
                let template = Template::new(self.wire(batch.encode(endpoint, Guid::default()))?);
                Ok(Requests::Fresh(template.into(), Arc::clone(&self.next)))
            }
            Operation::Delete => {
                let first = self.next.fetch_add(count, Ordering::Relaxed);
                let numbers: Vec<usize> = (first..first + count).collect();
                self.insert(&numbers, |_| NEW.to_owned()).await?;
                let requests = numbers.iter().map(|number| {
                    let delete = delete_entity::Request {
                        table: self.table.clone(),
                        key: EntityKey::new(NEW, row_key(*number))?,
                        if_match: IfMatch::Any,
                    };
                    self.wire(delete.encode(endpoint))
                });
                let requests = requests.collect::<Result<Vec<_>, _>>()?;
                Ok(Requests::Once(requests.into(), Arc::default()))
            }
        }
    }

    /// At most so many numbers of entities, from all over the table and not in its order.
    fn spread(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let entities = self.entities;
        let count = count.min(entities);
        let mut numbers: Vec<_> = (0..count).map(|place| place * entities / count).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut numbers);
        numbers.into_iter()
    }

    fn get(&self, number: usize) -> Result<Request<Bytes>, Box<dyn Error>> {
        let get = get_entity::Request {
            table: self.table.clone(),
            key: EntityKey::new(partition_of(number), row_key(number))?,
            select: None,
            level: MetadataLevel::Minimal,
        };
        Ok(get.encode(&self.account.endpoint))
    }

    fn update(&self, number: usize, mode: Mode) -> Result<Request<Bytes>, Box<dyn Error>> {
        let key = EntityKey::new(partition_of(number), row_key(number))?;
        let update = update_entity::Request {
            table: self.table.clone(),
            mode,
            // Without a condition, a merge is an upsert, too: this one needs the entity.
            if_match: (mode == Mode::Merge).then_some(IfMatch::Any),
            entity: entity(
                &partition_of(number),
                &row_key(number),
                number,
                self.text_bytes,
            ),
            key,
        };
        Ok(update.encode(&self.account.endpoint))
    }

    fn page(&self, partition: &str, and: Option<Filter>) -> Request<Bytes> {
        let within = Filter::comparison("PartitionKey", ComparisonOperator::Equal, partition);
        let query = query_entities::Request {
            table: self.table.clone(),
            filter: Some(match and {
                Some(filter) => within.and(filter),
                None => within,
            }),
            select: None,
            top: None,
            continuation: None,
            level: MetadataLevel::Minimal,
        };
        query.encode(&self.account.endpoint)
    }

    fn new_entity(&self, partition: &str, row: &str, number: usize) -> insert_entity::Request {
        insert_entity::Request {
            table: self.table.clone(),
            entity: entity(partition, row, number, self.text_bytes),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        }
    }

    /// Inserts entities of those numbers, a hundred of a partition at a time.
    async fn insert(
        &self,
        numbers: &[usize],
        partition_of: impl Fn(usize) -> String,
    ) -> Result<(), Box<dyn Error>> {
        let mut connection = Connection::open(self.address).await?;
        let groups = numbers.chunk_by(|a, b| partition_of(*a) == partition_of(*b));
        for numbers in groups.flat_map(|group| group.chunks(BATCH)) {
            let inserts = numbers.iter().map(|number| {
                let row = row_key(*number);
                batch::Change::Insert(self.new_entity(&partition_of(*number), &row, *number))
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

    async fn send(&self, requests: &[Vec<u8>], status: u16) -> Result<(), Box<dyn Error>> {
        let mut connection = Connection::open(self.address).await?;
        for request in requests {
            let answer = connection.exchange(request).await?;
            if answer.status != status {
                let body = String::from_utf8_lossy(answer.body);
                return Err(format!("{}: {body}", answer.status).into());
            }
        }
        Ok(())
    }

    /// A request as bytes, signed now, which is good for a quarter of an hour.
    fn wire(&self, mut request: Request<Bytes>) -> Result<Vec<u8>, Box<dyn Error>> {
        let key = &self.account.key;
        let now = Timestamp::try_from(SystemTime::now())?;
        let authority = request.uri().authority().map(ToString::to_string);
        let path = request.uri().path_and_query().map(ToString::to_string);
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

        let mut bytes = Vec::with_capacity(1024 + length);
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

fn address_of(account: &Account) -> Result<SocketAddr, Box<dyn Error>> {
    let uri: Uri = account.endpoint.as_str().parse()?;
    let host = uri.host().ok_or("the endpoint has no host")?;
    let mut addresses = (host, uri.port_u16().unwrap_or(80)).to_socket_addrs()?;
    let address = addresses.next();
    Ok(address.ok_or("the endpoint's host has no address")?)
}

/// An entity with ten properties, of every type but Binary, and a text of that length, if any.
fn entity(partition: &str, row: &str, number: usize, text_bytes: usize) -> EntityBody {
    let small = i32::try_from(number % 1000).unwrap_or_default();
    let guid = Guid::from_bytes((number as u128).to_be_bytes());
    let hired = Timestamp::from_unix_ticks(17_000_000_000_000_000 + i64::from(small) * 1_234_567);
    let properties = [
        ("FirstName", Value::from(format!("Firstname{number:08}"))),
        ("LastName", Value::from(format!("Lastname{number:08}"))),
        (
            "Email",
            Value::from(format!("employee{number:08}@contoso.example")),
        ),
        ("Department", Value::from("Research and development")),
        ("Age", Value::from(small)),
        ("Badge", Value::from(i64::from(small) << 33)),
        ("Salary", Value::from(f64::from(small) * 101.25)),
        ("Remote", Value::from(number.is_multiple_of(2))),
        ("Hired", Value::from(hired.unwrap_or(Timestamp::UNIX_EPOCH))),
        ("Office", Value::from(guid)),
    ];
    let mut writer = EntityWriter::new();
    for (name, key) in [("PartitionKey", partition), ("RowKey", row)] {
        writer.property(name, &Value::from(key).as_ref());
    }
    for (name, value) in &properties {
        writer.property(name, &value.as_ref());
    }
    if text_bytes > 0 {
        writer.property("Notes", &Value::from(text(number, text_bytes)).as_ref());
    }
    EntityBody::from_bytes(writer.finish())
}

/// Another one for each number, that can hardly be compressed.
fn text(number: usize, bytes: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(number as u64);
    (0..bytes).map(|_| rng.alphanumeric()).collect()
}

fn partition_of(number: usize) -> String {
    format!("p{:07}", number / ENTITIES_PER_PARTITION)
}

fn row_key(number: usize) -> String {
    format!("{number:010}")
}

/// As wide as a row key.
const HOLE: &str = "~~~~~~~~~~";
/// The partition of what is added while measuring.
const NEW: &str = "new";
const ENTITIES_PER_PARTITION: usize = 1000;
const BATCH: usize = 100;
/// How many different entities are read and written.
const KEYS: usize = 10_000;
/// How many different partitions are read.
const PARTITIONS: usize = 100;
