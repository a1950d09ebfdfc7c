//! The log of the program while a test runs: the spans and events of `tracing`, and the records of
//! the crate `log`, each of the test's own thread.

use std::cell::RefCell;
use std::io::{Result, Write};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use tracing::Dispatch;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// If there is only one subscriber, a thread without a subscriber that enters a span first disables
/// the span for all threads. So there is always another one, which logs nothing.
pub fn keep_another_subscriber() {
    static OTHER: OnceLock<Dispatch> = OnceLock::new();
    OTHER.get_or_init(|| {
        let other = tracing_subscriber::fmt().with_max_level(LevelFilter::OFF);
        Dispatch::new(other.finish())
    });
}

/// Everything that was logged with `tracing`, at every level.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects until the guard is dropped. Tasks on other threads are not seen.
    pub fn start() -> (Self, impl Sized) {
        keep_another_subscriber();
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, subscriber.set_default())
    }

    /// All lines so far.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The ends of the spans of attempts, and of operations, whose line contains `words`. The last
    /// line of a span has all fields.
    pub fn closed(&self, words: &str) -> (Vec<String>, Vec<String>) {
        let text = self.text();
        let closed = text.lines().filter(|line| line.contains("tablesdk: close"));
        let closed = closed
            .filter(|line| line.contains(words))
            .map(str::to_owned);
        closed.partition(|line| line.contains(":attempt{"))
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The records of the crate `log`, at every level, of a thread that collects them.
#[derive(Debug)]
pub struct Records(());

thread_local! {
    static RECORDS: RefCell<Option<String>> = const { RefCell::new(None) };
}

impl Records {
    /// Collects the records of this thread.
    pub fn start() {
        static LOGGER: Once = Once::new();
        LOGGER.call_once(|| {
            log::set_logger(&Self(())).expect("no test sets another logger");
            log::set_max_level(log::LevelFilter::Trace);
        });
        RECORDS.set(Some(String::new()));
    }

    /// The records since [`start`](Self::start), which collects no more.
    pub fn take() -> String {
        RECORDS.take().unwrap_or_default()
    }
}

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        RECORDS.with_borrow_mut(|records| {
            if let Some(records) = records {
                *records += &format!("{} {}\n", record.target(), record.args());
            }
        });
    }

    fn flush(&self) {}
}
