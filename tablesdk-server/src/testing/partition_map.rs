//! [`PartitionMap`]: the ranges of partition keys into which a table is cut, and the load that cuts
//! them further. Knows no requests and no rates.
//!
//! The words are those of the service's documentation: a *range* of partitions that follow each
//! other is served by one server of the service, which may move to another one.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::iter;
use std::time::Duration;

use tablesdk_protocol::{Timestamp, compare_utf16};

use super::place::Place;

/// The maps of the tables whose ranges anyone has asked for, or a throttle limits.
#[derive(Debug, Default)]
pub(super) struct PartitionMaps(HashMap<(String, String), PartitionMap>);

impl PartitionMaps {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The map of the table, if it has one.
    pub(super) fn get_mut(&mut self, place: &Place) -> Option<&mut PartitionMap> {
        self.0.get_mut(&place.table)
    }

    /// The map of a table, which begins with one range.
    pub(super) fn map(&mut self, table: &(String, String)) -> &mut PartitionMap {
        if self.0.len() >= MAPS_MAX && !self.0.contains_key(table) {
            self.0.retain(|_, map| !map.others.is_empty());
        }
        self.0.entry(table.clone()).or_default()
    }

    /// The table was deleted: its map begins again.
    pub(super) fn table_deleted(&mut self, table: &(String, String)) {
        if let Some(map) = self.0.get_mut(table) {
            *map = PartitionMap::default();
        }
    }
}

/// The ranges of a table.
#[derive(Debug)]
pub(super) struct PartitionMap {
    /// Begins with the empty key, which is before all others.
    first: Range,
    /// In order.
    others: Vec<Range>,
}

/// The partitions from a key up to the next range.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) start: String,
    pub(super) requests: u64,
    pub(super) entities: u64,
    /// When it began to move to another server.
    moved_at: Option<Timestamp>,
    load: Load,
}

/// The state of a range, for requests to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    Served,
    /// The server hands the range over.
    Busy,
    /// No server has the range: connections end without a response.
    Gone,
}

/// The load of a range whose rate is limited.
#[derive(Debug, Default)]
struct Load {
    /// Since when its rate has been exceeded, and when that was seen last.
    exceeded: Option<(Timestamp, Timestamp)>,
    /// The partition keys of its last requests.
    keys: VecDeque<String>,
}

impl Default for PartitionMap {
    fn default() -> Self {
        Self {
            first: Range::new(String::new()),
            others: Vec::new(),
        }
    }
}

impl PartitionMap {
    /// The ranges, each with the key before which it ends.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (&Range, Option<&str>)> {
        let ends = self.others.iter().map(|range| Some(&*range.start));
        let ranges = iter::once(&self.first).chain(&self.others);
        ranges.zip(ends.chain([None]))
    }

    /// The number of ranges that begin with a partition or before it, without the first range.
    fn others_until(&self, partition_key: &str) -> usize {
        self.others.partition_point(|range| {
            compare_utf16(&range.start, partition_key) != Ordering::Greater
        })
    }

    /// The range of a partition.
    pub(super) fn range(&mut self, partition_key: &str) -> &mut Range {
        let until = self.others_until(partition_key);
        self.last_of(until)
    }

    /// The last one of so many ranges after the first one.
    fn last_of(&mut self, others: usize) -> &mut Range {
        let others = self.others.iter_mut().take(others);
        others.last().unwrap_or(&mut self.first)
    }

    /// The key before which the range of a partition ends.
    pub(super) fn end_of(&self, partition_key: &str) -> Option<&str> {
        let next = self.others.get(self.others_until(partition_key))?;
        Some(&next.start)
    }

    /// Cuts a range before a partition. The halves are new ranges.
    pub(super) fn split_at(&mut self, partition_key: &str) -> Result<(), &'static str> {
        if partition_key.is_empty() {
            return Err("the first range begins there in any case");
        }
        let is_full = self.others.len() + 1 >= RANGES_MAX;
        let until = self.others_until(partition_key);
        let lower = self.last_of(until);
        if lower.start == partition_key {
            return Err("a range begins there already");
        }
        if is_full {
            return Err("the table has 1,000 ranges, the most that the kit keeps");
        }
        let moved_at = lower.moved_at;
        let half = |start| Range {
            moved_at,
            ..Range::new(start)
        };
        *lower = half(std::mem::take(&mut lower.start));
        self.others.insert(until, half(partition_key.to_owned()));
        Ok(())
    }

    /// Makes one new range of the two that meet before a partition.
    pub(super) fn merge_at(&mut self, partition_key: &str) -> Result<(), &'static str> {
        let mut others = self.others.iter();
        let index = others.position(|range| range.start == partition_key);
        let index = index.ok_or("no two ranges meet there")?;
        let upper = self.others.remove(index);
        let lower = self.last_of(index);
        *lower = Range {
            moved_at: lower.moved_at.max(upper.moved_at),
            ..Range::new(std::mem::take(&mut lower.start))
        };
        Ok(())
    }

    /// Notes a request to a range whose rate is limited, and splits the range if its rate has been
    /// exceeded for long. The upper half moves to another server.
    pub(super) fn loaded(&mut self, partition_key: &str, now: Timestamp, is_exceeded: bool) {
        let load = &mut self.range(partition_key).load;
        if load.keys.len() == SAMPLE_KEYS {
            load.keys.pop_front();
        }
        load.keys.push_back(partition_key.to_owned());
        if !is_exceeded {
            return;
        }
        let since = match load.exceeded {
            Some((since, last)) if now.abs_diff(last) <= PAUSE_MAX => since,
            _ => now,
        };
        load.exceeded = Some((since, now));
        if now.abs_diff(since) < SPLIT_AFTER {
            return;
        }
        load.exceeded = None;
        if let Some(middle) = load.middle()
            && self.split_at(&middle).is_ok()
        {
            self.range(&middle).start_move(now);
        }
    }
}

impl Range {
    const fn new(start: String) -> Self {
        Self {
            start,
            requests: 0,
            entities: 0,
            moved_at: None,
            load: Load {
                exceeded: None,
                keys: VecDeque::new(),
            },
        }
    }

    pub(super) const fn start_move(&mut self, now: Timestamp) {
        self.moved_at = Some(now);
    }

    pub(super) fn availability(&self, now: Timestamp) -> Availability {
        let Some(moved_at) = self.moved_at else {
            return Availability::Served;
        };
        let is_gone_at = moved_at.saturating_add(MOVE_BUSY);
        if now < is_gone_at {
            Availability::Busy
        } else if now < is_gone_at.saturating_add(MOVE_GONE) {
            Availability::Gone
        } else {
            Availability::Served
        }
    }
}

impl Load {
    /// The partition with which the upper half of the load begins. `None` if the load is that of
    /// one partition, which cannot be divided.
    fn middle(&self) -> Option<String> {
        let mut keys: Vec<_> = self.keys.iter().collect();
        keys.sort_unstable_by(|a, b| compare_utf16(a, b));
        let first = *keys.first()?;
        let upper = keys.get(keys.len() / 2..)?;
        upper.iter().find(|key| **key != first).copied().cloned()
    }
}

/// SERVICE: not documented. A range is handed over within seconds, says the paper of the service.
const MOVE_BUSY: Duration = Duration::from_secs(3);
/// SERVICE: not documented. Until the front ends have learned which server has the range.
const MOVE_GONE: Duration = Duration::from_secs(2);
/// SERVICE: not documented. The service waits before it splits a range, for the load to last.
const SPLIT_AFTER: Duration = Duration::from_secs(60);
/// The longest time without an excess during a load that lasts.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How many requests show where the load of a range is.
const SAMPLE_KEYS: usize = 128;
const RANGES_MAX: usize = 1_000;
/// How many tables have a map before those with one range are forgotten.
const MAPS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(map: &PartitionMap) -> Vec<&str> {
        map.ranges().map(|(range, _)| &*range.start).collect()
    }

    #[test]
    fn every_key_is_in_exactly_one_range() {
        let mut map = PartitionMap::default();
        for key in ["m", "\u{10000}", "d", "\u{e000}"] {
            map.split_at(key).unwrap();
        }
        // UTF-16: a surrogate is less than U+E000.
        assert_eq!(starts(&map), ["", "d", "m", "\u{10000}", "\u{e000}"]);
        for (key, start) in [
            ("", ""),
            ("c", ""),
            ("d", "d"),
            ("lzz", "d"),
            ("\u{10000}", "\u{10000}"),
            ("\u{ffff}", "\u{e000}"),
        ] {
            assert_eq!(map.range(key).start, start, "{key:?}");
        }
        assert_eq!(map.end_of("e"), Some("m"));
        assert_eq!(map.end_of("\u{ffff}"), None);
    }

    #[test]
    fn borders_that_are_there_are_merged_and_no_others() {
        let mut map = PartitionMap::default();
        map.split_at("d").unwrap();
        for key in ["", "d"] {
            assert!(map.split_at(key).is_err(), "{key}");
        }
        for key in ["", "e"] {
            assert!(map.merge_at(key).is_err(), "{key}");
        }
        map.merge_at("d").unwrap();
        assert_eq!(starts(&map), [""]);
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut map = PartitionMap::default();
        let splits = (0..2_000).map(|number| map.split_at(&format!("{number:04}")));
        assert_eq!(splits.flatten().count(), RANGES_MAX - 1);
    }

    #[test]
    fn the_number_of_maps_is_bounded() {
        let mut maps = PartitionMaps::default();
        let table = |number: usize| ("acct".to_owned(), format!("table{number}"));
        maps.map(&table(0)).split_at("d").unwrap();
        for number in 1..5 * MAPS_MAX {
            maps.map(&table(number));
        }
        assert!(maps.0.len() <= MAPS_MAX, "{}", maps.0.len());
        assert_eq!(starts(maps.map(&table(0))), ["", "d"]);
    }

    #[test]
    fn a_load_of_one_partition_splits_nothing() {
        let at = |second| Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(second));
        let mut map = PartitionMap::default();
        for second in 0..300 {
            map.loaded("hot", at(second), true);
        }
        assert_eq!(starts(&map), [""]);
        for second in 300..360 {
            map.loaded("hotter", at(second), true);
        }
        assert_eq!(starts(&map), ["", "hotter"]);
    }

    #[test]
    fn a_load_with_pauses_splits_nothing() {
        let at = |second| Timestamp::UNIX_EPOCH.saturating_add(Duration::from_secs(second));
        let mut map = PartitionMap::default();
        for second in 0..50 {
            for key in ["a", "b"] {
                map.loaded(key, at(10 * second), true);
                map.loaded(key, at(10 * second + 1), false);
            }
        }
        assert_eq!(starts(&map), [""]);
    }
}
