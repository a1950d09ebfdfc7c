//! The server without a socket, beside the same server over HTTP.

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use tablesdk_protocol::Transport;

use super::{CONNECTIONS, Context, Peer, Results};
use crate::cores;
use crate::cpu::Cpu;
use crate::servers::{self, Account, OwnServer};
use crate::workload::{Operation, Shape, Workload};

pub(super) async fn measure(
    context: &Context,
    results: &mut Results,
) -> Result<(), Box<dyn Error>> {
    cores::SERVERS.pin();
    let server = OwnServer::start(1)?;
    cores::LOAD.pin();
    let account = Account::from_connection_string(server.connection_string())?;
    let workload = Workload::create(account, Shape::of(context.entities)).await?;
    for (operation, row) in [
        (Operation::PointRead, "in-process/point-read"),
        (Operation::Insert, "in-process/insert"),
    ] {
        let http = Peer {
            workload: &workload,
            address: workload.address(),
            cpu: Cpu::Threads(servers::SERVER),
            is_repeated: false,
        };
        let [http] = context.turns([http], operation, CONNECTIONS).await?;
        let requests = workload.prepared(operation, COUNT)?;
        let ours = call(
            server.transport(),
            requests,
            operation.status(),
            context.time,
        )?;
        results.cost(row, ours, http.cpu());
    }
    Ok(())
}

/// Calls the server from a thread of its own. Returns the microseconds of processor time for a
/// request, with those that the caller needs to clone it.
fn call(
    transport: Arc<dyn Transport>,
    requests: Vec<Request<Bytes>>,
    status: u16,
    time: Duration,
) -> Result<f64, Box<dyn Error>> {
    cores::SERVERS.pin();
    let thread = thread::Builder::new().name(CALLER.to_owned());
    let caller = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let cpu = || Cpu::Threads(CALLER).time().unwrap_or_default();
        runtime.block_on(async {
            let (started, before) = (Instant::now(), cpu());
            let mut count = 0_u32;
            for request in requests.iter().cycle().cloned() {
                // Requests to insert can be sent once.
                if status == 204 && count as usize == requests.len() {
                    break;
                }
                let response = transport.send(request).await;
                let response = response.map_err(|error| error.to_string())?;
                if response.status() != status {
                    return Err(format!("{} in the place of {status}", response.status()));
                }
                count += 1;
                if count.is_multiple_of(64) && started.elapsed() > time {
                    break;
                }
            }
            let used = cpu().saturating_sub(before);
            Ok(used.as_secs_f64() * 1e6 / f64::from(count))
        })
    })?;
    cores::LOAD.pin();
    let result = caller.join().map_err(|_| "the caller panicked")?;
    Ok(result?)
}

/// The name of the thread that calls the server.
const CALLER: &str = "caller";
/// How many requests are made ready.
const COUNT: usize = 20_000;
