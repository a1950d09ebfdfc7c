//! A line that shows how far a transfer has come, and how fast it is.

use std::fmt;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// The bar: of a known number of bytes, or of a number of tables that is known as they go.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    pub fn of_bytes(bytes: u64) -> Self {
        Self::new(
            bytes,
            "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left: {msg}",
        )
    }

    pub fn of_tables() -> Self {
        Self::new(0, "{bar:30} {pos}/{len} tables, {elapsed}: {msg}")
    }

    fn new(length: u64, template: &str) -> Self {
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::new(length);
        Self {
            // The template is a constant, and bars are only drawn on terminals.
            bar: match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            },
            started: Instant::now(),
        }
    }

    pub fn bytes(&self, done: u64, entities: u64) {
        self.bar.set_position(done);
        self.bar.set_message(format!("{entities} entities"));
    }

    pub fn tables(&self, begun: u64, left: usize, entities: u64) {
        self.bar.set_length(begun + left as u64);
        self.bar.set_position(begun);
        self.bar.set_message(format!("{entities} entities"));
    }

    pub fn done(self, verb: &'static str, tables: u64, entities: u64) -> Done {
        self.bar.finish_and_clear();
        Done {
            verb,
            tables,
            entities,
            seconds: self.started.elapsed().as_secs_f64(),
        }
    }
}

/// What came of a transfer.
pub struct Done {
    verb: &'static str,
    pub tables: u64,
    pub entities: u64,
    seconds: f64,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            tables,
            entities,
            seconds,
        } = self;
        write!(
            f,
            "{verb} {tables} tables with {entities} entities in {seconds:.1} s"
        )
    }
}
