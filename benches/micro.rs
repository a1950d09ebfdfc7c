//! The steps of a request one by one: `cargo bench -p tablesdk-benches`, with a part of a name to
//! run only some.
//!
//! `protocol` is the code that client and server share. `server` calls a server in this process, so
//! that a step of it has no socket. `client` is our client with a transport that returns the same
//! bytes each time.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Method, Uri};
use tablesdk::DynamicEntity;
use tablesdk::transport::Transport as _;
use tablesdk_benches::{Employee, Exchange, PARTITION, Subject, insert_batch, row_key};
use tablesdk_protocol::auth::{Scheme, SharedKey, string_to_sign};
use tablesdk_protocol::continuation::{decode_token, encode_token};
use tablesdk_protocol::filter::Filter;
use tablesdk_protocol::wire::json::{EntityWriter, RawProperty, read_entity};
use tablesdk_protocol::{Guid, Timestamp, Value};
use tokio::runtime::{Builder, Runtime};

criterion_group!(benches, protocol, server, client);
criterion_main!(benches);

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

fn protocol(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("protocol");

    let employee = Employee::new(7);
    let properties = [
        ("PartitionKey", Value::from(employee.partition_key)),
        ("RowKey", Value::from(employee.row_key)),
        ("FirstName", Value::from(employee.first_name)),
        ("LastName", Value::from(employee.last_name)),
        ("Email", Value::from(employee.email)),
        ("Department", Value::from(employee.department)),
        ("Age", Value::from(employee.age)),
        ("Badge", Value::from(employee.badge)),
        ("Salary", Value::from(employee.salary)),
        ("Remote", Value::from(employee.remote)),
        ("Hired", Value::from(employee.hired)),
        ("Office", Value::from(employee.office)),
    ];
    let write = || {
        let mut writer = EntityWriter::new();
        for (name, value) in &properties {
            writer.property(name, &value.as_ref());
        }
        writer.finish()
    };
    group.bench_function("write an entity", |bencher| bencher.iter(write));
    let body = write();
    group.bench_function("read an entity", |bencher| {
        bencher.iter(|| {
            let entity = read_entity(black_box(&body)).expect("an entity");
            entity.properties().flat_map(RawProperty::to_value).count()
        });
    });

    let text = "PartitionKey eq 'sales' and Age gt 30 and (Remote eq true or Salary lt 1000.5)";
    group.bench_function("read a filter", |bencher| {
        bencher.iter(|| black_box(text).parse::<Filter>().expect("a filter"));
    });
    let filter: Filter = text.parse().expect("a filter");
    group.bench_function("print a filter", |bencher| {
        bencher.iter(|| filter.to_string());
    });

    let key = SharedKey::new(
        "devstoreaccount1",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    );
    let key = key.expect("a key");
    let uri =
        Uri::from_static("http://127.0.0.1/devstoreaccount1/people(PartitionKey='a',RowKey='b')");
    let mut headers = HeaderMap::new();
    headers.insert(
        "x-ms-date",
        HeaderValue::from_static("Fri, 15 Mar 2024 10:20:30 GMT"),
    );
    group.bench_function("sign a request", |bencher| {
        bencher.iter(|| {
            let account = key.account();
            key.sign(&string_to_sign(
                Scheme::SharedKey,
                account,
                &Method::GET,
                &uri,
                &headers,
            ))
        });
    });

    group.bench_function("encode and decode a continuation token", |bencher| {
        bencher.iter(|| decode_token(&encode_token(black_box("0000000007"))));
    });
    group.bench_function("print and read a timestamp", |bencher| {
        bencher.iter(|| {
            black_box(Timestamp::UNIX_EPOCH)
                .to_string()
                .parse::<Timestamp>()
        });
    });
    group.bench_function("print and read a GUID", |bencher| {
        bencher.iter(|| black_box(Guid::default()).to_string().parse::<Guid>());
    });
    group.finish();
}

fn server(criterion: &mut Criterion) {
    let runtime = runtime();
    let subject = runtime.block_on(Subject::new(ENTITIES));
    let table = &subject.table;
    let mut group = criterion.benchmark_group("server");

    let mut repeat = |name: &str, exchange: Exchange| {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || exchange.request.clone(),
                |request| {
                    let response = runtime.block_on(subject.server.send(request));
                    let response = response.expect("a response");
                    assert_eq!(response.status(), exchange.response.status());
                    response
                },
                BatchSize::SmallInput,
            );
        });
    };
    let key = (PARTITION, row_key(7));
    runtime
        .block_on(async { table.get::<Employee>(key).await })
        .expect("an entity");
    repeat("point read", subject.last());
    let employee = Employee::new(8);
    runtime
        .block_on(async { table.upsert_replace(&employee).await })
        .expect("an upsert");
    repeat("upsert", subject.last());
    let page = table.query::<Employee>().partition(PARTITION).take(1000);
    runtime
        .block_on(async { page.collect().await })
        .expect("a page");
    repeat("page of 1,000", subject.last());
    let filtered = table.query::<Employee>().partition(PARTITION);
    let filtered = filtered.filter(|employee| employee.age.gt(998));
    runtime
        .block_on(async { filtered.collect().await })
        .expect("a page");
    repeat("filter over 20,000", subject.last());
    runtime.block_on(async {
        let mut batch = table.batch(PARTITION);
        for number in 0..100 {
            batch = batch.upsert_replace(&Employee::new(number));
        }
        batch.await.expect("a batch");
    });
    repeat("batch of 100 upserts", subject.last());
    group.finish();
}

fn client(criterion: &mut Criterion) {
    let runtime = runtime();
    let subject = runtime.block_on(Subject::new(1000));
    let table = &subject.table;
    let canned = || subject.client_of(subject.last().response);
    let mut group = criterion.benchmark_group("client");

    let key = || (PARTITION, row_key(7));
    runtime
        .block_on(async { table.get::<Employee>(key()).await })
        .expect("an entity");
    let reader = canned();
    group.bench_function("point read", |bencher| {
        bencher.iter(|| runtime.block_on(async { reader.get::<Employee>(key()).await }));
    });
    let employee = Employee::new(1000);
    runtime
        .block_on(async { table.insert(&employee).await })
        .expect("an insert");
    let writer = canned();
    group.bench_function("insert", |bencher| {
        bencher.iter(|| runtime.block_on(async { writer.insert(&employee).await }));
    });
    runtime.block_on(subject.insert_batch(1001..1101));
    let batches = canned();
    let employees: Vec<_> = (1001..1101).map(Employee::new).collect();
    group.throughput(Throughput::Elements(100));
    group.bench_function("batch of 100", |bencher| {
        bencher.iter_batched(
            || employees.clone(),
            |employees| runtime.block_on(insert_batch(&batches, employees)),
            BatchSize::SmallInput,
        );
    });
    let page = table.query::<Employee>().partition(PARTITION).take(1000);
    runtime
        .block_on(async { page.collect().await })
        .expect("a page");
    let pages = canned();
    group.throughput(Throughput::Elements(1000));
    group.bench_function("page of 1,000 into structs", |bencher| {
        bencher.iter(|| {
            let query = pages.query::<Employee>().take(1000);
            runtime
                .block_on(async { query.collect().await })
                .expect("a page")
        });
    });
    group.bench_function("page of 1,000 into `DynamicEntity`", |bencher| {
        bencher.iter(|| {
            let query = pages.query::<DynamicEntity>().take(1000);
            runtime
                .block_on(async { query.collect().await })
                .expect("a page")
        });
    });
    group.finish();
}

/// How many entities the server's table has.
const ENTITIES: u32 = 20_000;
