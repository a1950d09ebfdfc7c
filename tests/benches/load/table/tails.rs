//! The slowest point operations: alone, and while the same server scans a table, writes batches of
//! 4 MiB, or deletes a large table.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::time::sleep;

use super::{CONNECTIONS, Context, Place, Results, Served};
use crate::connection::Connection;
use crate::cores::Cores;
use crate::cpu::Cpu;
use crate::measure::{self, Asked, Measurement};
use crate::requests::Requests;
use crate::servers::Account;
use crate::workload::{Operation, Shape, Workload};

pub(super) async fn measure(
    context: &Context,
    results: &mut Results,
) -> Result<(), Box<dyn Error>> {
    Cores::All.pin();
    let shape = Shape::of(context.entities);
    let ours = Served::start(&context.program, shape, Place::MemoryAllCores).await?;
    let table = async |shape| {
        let account = Account::from_connection_string(ours.child.connection_string())?;
        Workload::create(account, shape).await
    };
    let large = Shape {
        entities: 100,
        entities_per_partition: 100,
        text_bytes: LARGE_TEXT,
    };
    let scanned = table(shape).await?;
    let scan = scanned.requests(Operation::Scan, 0).await?;
    let written = table(large).await?;
    let batches = written.requests(Operation::UpsertBatch, 0).await?;
    let mut deletes = Vec::new();
    for _ in 0..DELETES {
        deletes.push(table(shape).await?.delete_request()?);
    }
    let deletes = Requests::once(deletes);

    let time = 3 * context.time;
    let alone = slowest(&ours, time).await?;
    for (row, requests, pause) in [
        ("tail/scan", scan, Duration::ZERO),
        ("tail/batch", batches, Duration::ZERO),
        ("tail/delete", deletes, time / DELETES),
    ] {
        let disturbance = Disturbance::start(&ours, requests, pause)?;
        let disturbed = slowest(&ours, time).await?;
        disturbance.stop()?;
        results.ratio(row, disturbed, alone);
    }
    Ok(())
}

/// The microseconds within which 99.9 % of the point operations were complete: half reads and half
/// upserts, over 64 connections.
async fn slowest(served: &Served, time: Duration) -> Result<f64, Box<dyn Error>> {
    let asked = async |operation: Operation| {
        Ok::<_, Box<dyn Error>>(Asked {
            address: served.workload.address(),
            others: Vec::new(),
            cpu: Some(Cpu::Process(served.child.id())),
            requests: served.workload.requests(operation, 0).await?,
            status: operation.status(),
        })
    };
    let reads = asked(Operation::PointRead).await?;
    let upserts = asked(Operation::Upsert).await?;
    let (reads, upserts) = tokio::try_join!(
        measure::run(&reads, CONNECTIONS / 2, time),
        measure::run(&upserts, CONNECTIONS / 2, time),
    )?;
    let mut all = Measurement::new();
    all += reads;
    all += upserts;
    Ok(all.quantile(0.999).as_secs_f64() * 1e6)
}

/// Requests that a thread of its own sends over one connection, until it is stopped or has sent
/// all.
struct Disturbance {
    is_stopped: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<(), String>>,
}

impl Disturbance {
    fn start(served: &Served, requests: Requests, pause: Duration) -> Result<Self, Box<dyn Error>> {
        let address = served.workload.address();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_stopped);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = thread::spawn(move || {
            let sent = runtime.block_on(async {
                let mut connection = Connection::open(address).await?;
                let mut buffer = Vec::new();
                while !told.load(Ordering::Relaxed) {
                    let Some(request) = requests.next(&mut buffer) else {
                        break;
                    };
                    let answer = connection.exchange(request).await?;
                    if answer.status >= 400 {
                        return Err(std::io::Error::other(format!("{}", answer.status)));
                    }
                    sleep(pause).await;
                }
                Ok(())
            });
            sent.map_err(|error| format!("the disturbance: {error}"))
        });
        Ok(Self { is_stopped, thread })
    }

    fn stop(self) -> Result<(), Box<dyn Error>> {
        self.is_stopped.store(true, Ordering::Relaxed);
        let result = self.thread.join().map_err(|_| "the disturbance panicked")?;
        Ok(result?)
    }
}

/// The length of the string of each entity, so that a batch of 100 has nearly 4 MiB.
const LARGE_TEXT: usize = 40_000;
/// How many large tables are deleted while point operations are measured.
const DELETES: u32 = 3;
