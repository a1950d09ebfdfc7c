//! When and where figures are taken.

use std::time::SystemTime;
use std::{fs, thread};

use tablesdk_protocol::Timestamp;

/// Today, in UTC.
pub(crate) fn date() -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    now.to_string().chars().take(10).collect()
}

/// The processor, its cores and how busy it is, as far as Linux says.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    let model = lines.find(|(name, _)| name.trim() == "model name");
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{model}, {cores} cores, load average {load}")
}
