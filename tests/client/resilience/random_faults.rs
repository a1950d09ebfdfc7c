//! Random faults for tests with many tasks. The seed determines them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use harness::faults::{Fault, Faults, Op, foreign, refusal};
use tablesdk::transport::Transport;

/// How often each fault was injected, by name.
pub type Counts = BTreeMap<&'static str, u32>;

/// Injects faults into about a sixth of the requests. Without `duplicates`, no request is carried out twice at once. `others` may
/// inject one where a roll of 0 to 99 is 16 or more; other requests are delayed a little. Returns what was injected so far.
pub fn inject<T: Transport + 'static>(
    faults: &Faults<T>,
    seed: u64,
    duplicates: bool,
    others: fn(u32, Op) -> Option<(&'static str, Fault)>,
) -> Arc<Mutex<Counts>> {
    let injected = Arc::new(Mutex::new(Counts::new()));
    let count = Arc::clone(&injected);
    let mut rng = Rng::with_seed(seed);
    faults.choose(move |op| {
        let (name, fault) = match rng.u32(..100) {
            0..4 => ("lost answer", Fault::LoseAnswer),
            4..6 => ("lost request", Fault::LoseRequest),
            6..8 => {
                let late = Duration::from_millis(rng.u64(1..20_000));
                ("straggler", Fault::Straggle(late))
            }
            8..10 if duplicates => ("twice", Fault::Duplicate),
            10..13 => ("503", Fault::Answer(refusal(503, "ServerBusy"))),
            13..16 => ("503 of a proxy", Fault::CarryOutAndAnswer(foreign(503))),
            roll => others(roll, op).unwrap_or_else(|| {
                let late = Duration::from_millis(rng.u64(1..15));
                ("delay", Fault::Delay(late))
            }),
        };
        *count.lock().unwrap().entry(name).or_default() += 1;
        fault
    });
    injected
}

/// Asserts that the faults of every run of [`inject`], and the named others, were injected often.
pub fn assert_injected(counts: &Counts, others: &[&str]) {
    let always = [
        "lost answer",
        "lost request",
        "straggler",
        "503",
        "503 of a proxy",
    ];
    for name in always.iter().chain(others) {
        let times = counts.get(name).copied().unwrap_or_default();
        assert!(times > 50, "{name}: {times}");
    }
}
