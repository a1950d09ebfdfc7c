//! [`Witness`]: sees every response, every line of the log and every panic, and checks that none
//! contains a secret.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode;
use tablesdk::SharedKey;

use crate::request::{Framing, Request};

/// The part of the database's password that is the same in its URL.
const DATABASE_PASSWORD: &[u8] = b"battery";

pub(crate) struct Witness {
    key: Vec<u8>,
    decoded_key: Vec<u8>,
    /// The hashes of all signatures without their padding: there are many of them.
    signatures: Mutex<HashSet<u64>>,
    hasher: RandomState,
    lines: AtomicUsize,
    problems: Mutex<Vec<String>>,
}

impl Witness {
    fn new(key: &SharedKey) -> Self {
        let key = key.expose().as_str().to_owned();
        Self {
            decoded_key: STANDARD.decode(&key).unwrap(),
            key: key.into_bytes(),
            signatures: Mutex::default(),
            hasher: RandomState::new(),
            lines: AtomicUsize::new(0),
            problems: Mutex::default(),
        }
    }

    /// Observes responses, logs and panics of this process from now on.
    pub(crate) fn install(key: &SharedKey) -> Arc<Self> {
        let witness = Arc::new(Self::new(key));
        let log = Arc::clone(&witness);
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || Log(Arc::clone(&log)))
            .init();
        let panics = Arc::clone(&witness);
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            panics.report(format!("panicked: {panic}"));
            usual(panic);
        }));
        witness
    }

    pub(crate) fn must_not_see(&self, signature: &str) {
        let hash = self.hasher.hash_one(&signature.as_bytes()[..SIGNATURE]);
        self.signatures.lock().unwrap().insert(hash);
    }

    /// The statuses of the responses; 0 if there is none.
    pub(crate) fn check_response(&self, request: &Request, response: &[u8]) -> Vec<u16> {
        let report = |what: &str| {
            let response = String::from_utf8_lossy(response);
            self.report(format!("{what} in the response to {request}: {response}"));
        };
        if self.is_secret_in(response) {
            report("a secret");
        }
        let text = String::from_utf8_lossy(response);
        let mut statuses = Vec::new();
        for part in text.split("HTTP/1.1 ").skip(1) {
            let status = part.get(..3).and_then(|status| status.parse().ok());
            let status = status.unwrap_or(599);
            // Responses in batches are counted, too.
            statuses.push(status);
            if status == 501 && part.contains("NotImplemented") {
                continue;
            }
            if status >= 500 {
                report("a server error");
            }
        }
        if statuses.is_empty() {
            // Only a request without an end may have no response.
            if request.framing != Framing::Unknown {
                report("nothing");
            }
            statuses.push(0);
        }
        statuses
    }

    fn see_line(&self, line: &[u8]) {
        self.lines.fetch_add(1, Ordering::Relaxed);
        if self.is_secret_in(line) {
            let line = String::from_utf8_lossy(line);
            self.report(format!("a secret in the log: {line}"));
        }
    }

    fn is_secret_in(&self, bytes: &[u8]) -> bool {
        let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // A part of the key is a secret, too.
        holds(&self.key[..20])
            || holds(&self.decoded_key[..12])
            || holds(DATABASE_PASSWORD)
            || self.is_signature_in(bytes)
            || bytes.contains(&b'%') && self.is_signature_in(&Cow::from(percent_decode(bytes)))
    }

    fn is_signature_in(&self, bytes: &[u8]) -> bool {
        let is_base64 =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let mut runs = bytes.split(|byte| !is_base64(byte));
        runs.any(|run| {
            let mut candidates = run.windows(SIGNATURE);
            candidates.any(|candidate| {
                let hash = self.hasher.hash_one(candidate);
                self.signatures.lock().unwrap().contains(&hash)
            })
        })
    }

    fn report(&self, what: String) {
        self.problems.lock().unwrap().push(what);
    }

    /// Fails if a problem was reported.
    pub(crate) fn assert_no_problems(&self) {
        let problems = self.problems.lock().unwrap();
        assert!(
            problems.is_empty(),
            "{} problems, the first of them: {}",
            problems.len(),
            problems[0]
        );
    }

    /// The number of lines in the log.
    pub(crate) fn lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }
}

/// The writer of `tracing`, which gets each event as a whole.
struct Log(Arc<Witness>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.see_line(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The resident memory of this process, if the system reports it.
pub(crate) fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The length of a signature in base64, without its padding.
const SIGNATURE: usize = 43;

#[test]
fn the_witness_recognises_secrets() {
    let key = tablesdk_server::TableServer::in_process().credential();
    let witness = Witness::new(&key);
    let signature = key.sign("text").expose().to_owned();
    let is_seen = |text: &str| witness.is_secret_in(format!("before {text} after").as_bytes());
    assert!(!is_seen(&signature));
    witness.must_not_see(&signature);
    assert!(is_seen(&signature));
    assert!(is_seen(signature.trim_end_matches('=')));
    assert!(is_seen(&format!("x{signature}")));
    let encoded = signature.replace('+', "%2B").replace('/', "%2F");
    assert!(is_seen(&encoded.replace('=', "%3D")));
    assert!(is_seen(key.expose().as_str()));
    assert!(!is_seen(key.account()));
    let decoded = STANDARD.decode(key.expose().as_str()).unwrap();
    let again = SharedKey::from_bytes(key.account(), decoded.clone());
    assert_eq!(again.expose(), key.expose());
    assert!(witness.is_secret_in(&decoded));
}
