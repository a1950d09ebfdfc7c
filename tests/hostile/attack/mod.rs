//! Attacks on the program's sockets, and what clients that do no harm notice of them.
//!
//! The program runs under a limit of open files, with its tables in memory or in a data directory.
//! While attackers do one thing after another, honest clients insert and read all the time, through
//! kept connections and through new ones.
//!
//! ```sh
//! cargo test --release -p tablesdk-tests --test hostile every_attack -- --ignored --nocapture
//! ```
//!
//! shows for each attack the latencies and failures of the honest clients before, during and after
//! it, how many of them got no response at all, and the memory and the descriptors of the program.
//! It takes some minutes, and has to be allowed 2,000 open files itself. `TABLESDK_ATTACK` names
//! one attack, such as `silent`; `TABLESDK_ATTACK_SECONDS` is how long each takes.

mod attacker;
mod honest;
mod subject;

use std::time::Duration;

use harness::setting;

use self::attacker::{Attack, Attackers};
use self::honest::Honest;
use self::subject::Subject;

/// Open files that the program is allowed.
const LIMITS: [u64; 2] = [256, 1024];
const SECONDS: u64 = 10;
/// How long the program has to recover.
const RECOVERY: Duration = Duration::from_secs(5);
const BEFORE: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes, and measures: by name only"]
async fn every_attack_is_measured() {
    let only = std::env::var("TABLESDK_ATTACK").ok();
    let during = Duration::from_secs(setting("TABLESDK_ATTACK_SECONDS").unwrap_or(SECONDS));
    println!(
        "attack           files  tables   phase   ops/s  failed  p50 ms  p99 ms  max ms  \
         starved    MiB  files"
    );
    for attack in Attack::ALL {
        if only.as_ref().is_some_and(|only| *only != attack.name()) {
            continue;
        }
        for limit in LIMITS {
            for is_durable in [false, true] {
                measure(attack, limit, is_durable, during).await;
            }
        }
    }
}

async fn measure(attack: Attack, limit: u64, is_durable: bool, during: Duration) {
    let subject = Subject::start(limit, is_durable).await;
    let honest = Honest::start(&subject, 8).await;
    let show = |phase: &str, served: &honest::Served, (mib, files): (u64, usize)| {
        let tables = if is_durable { "on disk" } else { "memory" };
        println!(
            "{:<16}{limit:>6}{tables:>8}{phase:>8}{:>8.0}{:>8}{:>8}{:>8}{:>8}{:>9}{mib:>7}{files:>7}",
            attack.name(),
            served.rate(),
            served.failures,
            served.percentile(50),
            served.percentile(99),
            served.percentile(100),
            served.starved(),
        );
    };
    honest.phase(BEFORE).await;
    let before = subject.usage();
    let served = honest.phase(BEFORE).await;
    show("before", &served, before);

    let attackers = Attackers::start(attack, &subject, limit).await;
    let served = honest.phase(during).await;
    // The attackers hold what they have by then.
    show("during", &served, subject.usage());

    drop(attackers);
    let served = honest.phase(RECOVERY).await;
    show("after", &served, subject.usage());
    for error in honest.stop().await {
        println!("    {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_clients_are_served_while_connections_are_held() {
    for attack in [Attack::Silent, Attack::HalfHeads] {
        for is_durable in [false, true] {
            let subject = Subject::start(LIMITS[0], is_durable).await;
            let honest = Honest::start(&subject, 4).await;
            let attackers = Attackers::start(attack, &subject, LIMITS[0]).await;
            attackers.are_many().await;
            // Until each of them has written some more, attacked and not.
            let during = honest.operations(20).await;
            drop(attackers);
            let after = honest.operations(20).await;
            let errors = honest.stop().await;
            let shown = format!("{}, durable: {is_durable}: {errors:?}", attack.name());
            assert_eq!((during.failures, after.failures), (0, 0), "{shown}");
        }
    }
}
