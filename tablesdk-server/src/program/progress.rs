//! Progress bars: one line on standard error if that is a terminal, no output elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tablesdk_server::Progress;

/// A bar for work of unknown length, which counts records.
pub(super) fn records(what: &'static str) -> ProgressBar {
    let template = "{spinner} {prefix}: {human_pos} records, {per_sec}";
    start(ProgressBar::new_spinner(), what, template)
}

/// A bar for work with a known number of bytes.
pub(super) fn bytes(what: &'static str, length: u64) -> ProgressBar {
    let template = "{prefix} [{wide_bar}] {bytes} of {total_bytes}, {eta} left";
    start(ProgressBar::new(length), what, template)
}

/// The line disappears when the bar is dropped.
fn start(bar: ProgressBar, what: &'static str, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the templates are those above");
    let bar = bar.with_style(style).with_prefix(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.with_finish(ProgressFinish::AndClear)
}

/// Shows the number of records.
pub(super) fn show(bar: &ProgressBar) -> impl FnMut(Progress) {
    |progress| {
        if let Progress::Records(count) = progress {
            bar.set_position(count);
        }
    }
}
