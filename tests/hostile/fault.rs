//! The faults that the proxy applies to requests, chosen by a seeded generator.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;

use crate::network::Network;

/// The fault of a request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    Pass,
    /// Nothing, but the connection is closed after the response, without an announcement.
    PassAndClose,
    /// It does not reach the server, and the connection ends.
    Drop(End),
    /// It reaches the server later, and its response the client, if that still waits.
    Delay(Duration),
    /// The connection ends, and the request reaches the server all the same, later.
    Straggle(End, Duration),
    /// It reaches the server once others have passed it.
    Reorder(u64),
    /// It is carried out, and the connection ends.
    LoseResponse(End),
    /// It is carried out, and the connection ends after so many thousandths of the response.
    Cut(usize, End),
    /// It reaches the server twice, the second time after a while. The client gets this one of the
    /// two responses.
    Duplicate(Duration, Which),
    /// The service rejects it because it is busy.
    Busy,
    /// Something else than the service responds.
    Impostor(Passing, Impostor),
    /// Interim responses come for a while, then the connection ends.
    Interim(Passing),
    /// The client gets the response to another request, whose client gets this one's.
    Exchange,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Close,
    Reset,
    /// It stays open, and nothing comes.
    Silence,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    First,
    Second,
}

/// The time at which an impostor passes the request on, if it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Passing {
    Never,
    /// Before it responds.
    Before,
    /// That long after it responded.
    After(Duration),
}

/// A response that is not the service's.
#[derive(Clone, Debug)]
pub(crate) struct Impostor {
    status: u16,
    pub(crate) response: Bytes,
}

impl Impostor {
    fn new(status: u16, headers: &str, body: &[u8]) -> Self {
        let has_body = !matches!(status, 204 | 304);
        let length = format!("Content-Length: {}\r\n", body.len());
        let length = if has_body { &*length } else { "" };
        let head = format!("HTTP/1.1 {status} Made up\r\nServer: gateway\r\n{headers}{length}\r\n");
        let body = if has_body { body } else { b"" };
        Self {
            status,
            response: [head.as_bytes(), body].concat().into(),
        }
    }

    /// The page of a gateway.
    fn page(status: u16) -> Self {
        Self::new(status, "", PAGE)
    }
}

impl Fault {
    /// Its kind, for the summary.
    fn name(&self) -> String {
        if let Self::Impostor(_, impostor) = self {
            return format!("Impostor {}xx", impostor.status / 100);
        }
        let text = format!("{self:?}");
        text.split('(').next().unwrap_or_default().to_owned()
    }
}

/// The generator. What happens to the n-th request is decided by the seed; of some operations, what
/// happens to their n-th request.
pub(crate) struct Faults(Mutex<State>);

struct State {
    network: Network,
    rng: Rng,
    /// The seed of the scripts of operations.
    seed: u64,
    /// The number of requests in 1,000 that go wrong; changes every few requests.
    rate: u32,
    /// The fault of most of the next requests, and how many those are.
    spell: (Fault, u32),
    counts: BTreeMap<String, u64>,
}

impl Faults {
    pub(crate) fn new(network: Network, mut rng: Rng) -> Self {
        Self(Mutex::new(State {
            network,
            seed: rng.u64(..),
            rng,
            rate: 300,
            spell: (Fault::Pass, 0),
            counts: BTreeMap::new(),
        }))
    }

    /// The fault of a request: the one with this number in this operation.
    pub(crate) fn next(&self, operation: u64, number: usize) -> Fault {
        let mut state = self.0.lock().unwrap();
        let State {
            network,
            rng,
            seed,
            rate,
            spell,
            counts,
        } = &mut *state;
        if rng.u8(..) == 0 {
            *rate = [0, 100, 200, 300, 500, 700][rng.usize(..6)];
        }
        if spell.1 == 0 && rng.u32(..500) == 0 {
            *spell = (a_spell(rng), rng.u32(10..80));
        }
        spell.1 = spell.1.saturating_sub(1);
        let script = script(Rng::with_seed(seed.wrapping_add(operation)), number);
        let fault = if let Some(fault) = network.fault(rng).or(script) {
            fault
        } else if spell.1 > 0 && rng.u8(..5) > 0 {
            spell.0.clone()
        } else if rng.u32(..1000) < *rate {
            choose(rng)
        } else {
            Fault::Pass
        };
        *counts.entry(fault.name()).or_default() += 1;
        fault
    }

    /// The time for which the proxy stops listening, if it does.
    pub(crate) fn pause_of_listening(&self) -> Option<Duration> {
        let mut state = self.0.lock().unwrap();
        let refuses = state.network.is_mixed() && state.rng.u8(..60) == 0;
        refuses.then(|| {
            *state
                .counts
                .entry("connections refused".to_owned())
                .or_default() += 1;
            Duration::from_millis(state.rng.u64(1..40))
        })
    }

    /// How the proxy responds while the server is down: with an error page, or by closing the
    /// connection.
    pub(crate) fn without_server(&self) -> Option<Impostor> {
        let mut state = self.0.lock().unwrap();
        let rng = &mut state.rng;
        let status = [502, 503, 504][rng.usize(..3)];
        rng.bool().then(|| Impostor::page(status))
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap().counts.clone()
    }
}

fn choose(rng: &mut Rng) -> Fault {
    // Past the time of an attempt, and often past the deadline of an operation.
    let late = |rng: &mut Rng| Duration::from_millis(rng.u64(20..1_500));
    match rng.u8(..22) {
        0 => Fault::PassAndClose,
        1..=2 => Fault::Drop(end(rng)),
        3..=4 => Fault::Delay(late(rng)),
        5..=6 => Fault::Straggle(end(rng), late(rng)),
        7 => Fault::Reorder(rng.u64(1..30)),
        8..=10 => Fault::LoseResponse(end(rng)),
        11..=12 => Fault::Cut(rng.usize(..1000), end(rng)),
        13 => {
            let gap = if rng.bool() {
                Duration::ZERO
            } else {
                late(rng)
            };
            Fault::Duplicate(gap, Which::First)
        }
        14 => Fault::Duplicate(Duration::from_millis(rng.u64(..20)), Which::Second),
        15..=18 => {
            let (impostor, passing) = (impostor(rng), passing(rng));
            // The guide: it is taken for what is turned away at the door.
            let is_turned_away = impostor.status == 429;
            let passing = if is_turned_away {
                Passing::Never
            } else {
                passing
            };
            Fault::Impostor(passing, impostor)
        }
        19..=20 => Fault::Busy,
        _ => Fault::Interim(passing(rng)),
    }
}

/// The faults of one operation in eight: the first request has one, some have none, and all others
/// have the same.
fn script(mut rng: Rng, number: usize) -> Option<Fault> {
    if rng.u8(..8) > 0 {
        return None;
    }
    let first = if rng.bool() {
        Fault::LoseResponse(End::Close)
    } else {
        choose(&mut rng)
    };
    let last = a_spell(&mut rng);
    let pass = rng.usize(1..10);
    Some(match number {
        0 => first,
        _ if number <= pass => Fault::Pass,
        _ => last,
    })
}

/// A fault of many requests one after another: an outage, or a service that is busy for a while.
fn a_spell(rng: &mut Rng) -> Fault {
    match rng.u8(..6) {
        0..=2 => Fault::Busy,
        3 => Fault::Drop(End::Reset),
        4 => Fault::LoseResponse(End::Close),
        _ => Fault::Impostor(Passing::Never, Impostor::page(502)),
    }
}

fn end(rng: &mut Rng) -> End {
    [End::Close, End::Reset, End::Silence][rng.usize(..3)]
}

fn passing(rng: &mut Rng) -> Passing {
    match rng.u8(..5) {
        0..=1 => Passing::Never,
        2..=3 => Passing::Before,
        _ => Passing::After(Duration::from_millis(rng.u64(..400))),
    }
}

fn impostor(rng: &mut Rng) -> Impostor {
    const STATUSES: [u16; 26] = [
        200, 200, 201, 201, 202, 204, 204, 204, 301, 302, 304, 400, 403, 404, 405, 407, 408, 409,
        412, 413, 429, 500, 502, 503, 504, 507,
    ];
    let status = STATUSES[rng.usize(..STATUSES.len())];
    let (content_type, body): (_, &[u8]) = match rng.u8(..6) {
        0 => ("text/html", b""),
        1 => ("application/json", b"{}"),
        2 => ("application/json", br#"{"status":"ok"}"#),
        _ => ("text/html", PAGE),
    };
    let mut headers = format!("Content-Type: {content_type}\r\n");
    if status < 400 && rng.bool() {
        // As web servers give to their files.
        headers += "ETag: \"5f3c1a-2b0\"\r\n";
    }
    if status >= 400 && rng.u8(..3) == 0 {
        headers += "Retry-After: 0\r\n";
    }
    if matches!(status, 301 | 302) {
        headers += "Location: http://127.0.0.1:9/login\r\n";
    }
    let mut body = body.to_vec();
    if body.len() > 4 && rng.u8(..4) == 0 {
        garble(rng, &mut body);
    }
    Impostor::new(status, &headers, &body)
}

/// Makes it shorter, or changes bytes of it.
fn garble(rng: &mut Rng, body: &mut Vec<u8>) {
    if rng.bool() {
        body.truncate(rng.usize(..body.len()));
        return;
    }
    for _ in 0..3 {
        let at = rng.usize(..body.len());
        body[at] = rng.u8(..);
    }
}

/// The response of a service that is busy.
pub(crate) const BUSY: &str = concat!(
    "HTTP/1.1 503 Service Unavailable\r\n",
    "x-ms-request-id: 3e315e3a-0002-0066-6584-aee2bb000000\r\n",
    "x-ms-version: 2019-02-02\r\n",
    "Content-Type: application/json;odata=minimalmetadata\r\n",
    "Content-Length: 94\r\n\r\n",
    r#"{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy."}}}"#
);
const PAGE: &[u8] =
    b"<html><head><title>Gateway</title></head><body><h1>Please try again</h1></body></html>";
