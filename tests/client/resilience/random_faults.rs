//! Random faults for tests with many tasks. The seed determines them.

use std::collections::BTreeMap;
use std::iter::repeat_with;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use harness::proxy::{Proxy, Reply, foreign};
use tablesdk::ErrorCode;
use tablesdk_server::testing::{Fault, Faults, Op};

/// How often each fault was injected, by name.
pub type Counts = BTreeMap<&'static str, u32>;

/// Injects faults into about a sixth of the requests, and delays the others a little. Without `duplicates`, no request is carried
/// out twice at once. `refuse` may make the proxy respond with a rejection. Returns what was injected so far.
pub fn inject(
    faults: &Faults,
    proxy: &Proxy,
    seed: u64,
    duplicates: bool,
    refuse: fn(Op) -> Option<Reply>,
) -> Arc<Mutex<Counts>> {
    let injected = Arc::new(Mutex::new(Counts::new()));
    let mut rng = Rng::with_seed(seed);
    let count = Arc::clone(&injected);
    let faults_of_all = repeat_with(move || {
        let (name, fault) = match rng.u32(..100) {
            0..4 => ("lost response", Fault::lost_response()),
            4..6 => ("lost request", Fault::reset()),
            6..8 => {
                let late = Duration::from_millis(rng.u64(1..20_000));
                ("late request", Fault::reset().applied_after(late))
            }
            8..10 if duplicates => ("duplicate", Fault::duplicate()),
            10..13 => ("503", Fault::error(ErrorCode::ServerBusy)),
            _ => {
                let late = Duration::from_millis(rng.u64(1..15));
                ("delay", Fault::delay(late))
            }
        };
        *count.lock().unwrap().entry(name).or_default() += 1;
        fault
    });
    faults.on_any().inject_each(faults_of_all);
    let count = Arc::clone(&injected);
    let mut rng = Rng::with_seed(!seed);
    proxy.choose(move |op| {
        let (name, reply) = match (rng.u32(..100), refuse(op)) {
            (0..3, _) => ("503 of a proxy", Reply::Replace(foreign(503))),
            (3..7, Some(refusal)) => ("rejection", refusal),
            _ => return Reply::Forward,
        };
        *count.lock().unwrap().entry(name).or_default() += 1;
        reply
    });
    injected
}

/// Asserts that the faults of every run of [`inject`], and the named others, were injected often.
pub fn assert_injected(counts: &Counts, others: &[&str]) {
    let always = [
        "lost response",
        "lost request",
        "late request",
        "503",
        "503 of a proxy",
    ];
    for name in always.iter().chain(others) {
        let times = counts.get(name).copied().unwrap_or_default();
        assert!(times > 50, "{name}: {times}");
    }
}
