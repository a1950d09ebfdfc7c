//! Progress bars: one line on a terminal, no output elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tablesdk_server::Progress;

/// A line that goes when this does.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar for work of unknown length, on standard error.
    pub(super) fn records(what: &'static str) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {prefix}: {human_pos} records, {per_sec}"));
        Self::start(bar, what)
    }

    /// A bar for work with a known number of bytes.
    pub(super) fn bytes(what: &'static str, length: u64) -> Self {
        let bar = ProgressBar::new(length);
        bar.set_style(style(
            "{prefix} [{wide_bar}] {bytes} of {total_bytes}, {eta} left",
        ));
        Self::start(bar, what)
    }

    fn start(bar: ProgressBar, what: &'static str) -> Self {
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    pub(super) fn show(&self, progress: Progress) {
        if let Progress::Records(count) = progress {
            self.0.set_position(count);
        }
    }

    /// So many bytes more.
    pub(super) fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are those above.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
