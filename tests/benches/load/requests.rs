//! Requests as bytes, ready to be sent.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests of one operation. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    source: Source,
    /// How many entities a request reads, examines or writes.
    entities: f64,
}

#[derive(Clone, Debug)]
enum Source {
    /// Each in its turn, and again from the start.
    Cycle(Arc<[Vec<u8>]>, Arc<AtomicUsize>),
    /// The same request with new keys in it each time.
    Fresh(Arc<Template>, Arc<AtomicUsize>),
    /// Each once.
    Once(Arc<[Vec<u8>]>, Arc<AtomicUsize>),
}

impl Requests {
    /// Requests that can be sent again and again.
    pub(crate) fn cycle(requests: Vec<Vec<u8>>, entities: f64) -> Self {
        Self {
            source: Source::Cycle(requests.into(), Arc::default()),
            entities,
        }
    }

    /// A request for the entities of the next numbers.
    pub(crate) fn fresh(template: Template, next: &Arc<AtomicUsize>) -> Self {
        Self {
            entities: u32::try_from(template.holes.len()).map_or(0.0, f64::from),
            source: Source::Fresh(template.into(), Arc::clone(next)),
        }
    }

    /// Requests for one entity each that can be sent once.
    pub(crate) fn once(requests: Vec<Vec<u8>>) -> Self {
        Self {
            source: Source::Once(requests.into(), Arc::default()),
            entities: 1.0,
        }
    }

    /// How many entities a request reads, examines or writes.
    pub(crate) const fn entities(&self) -> f64 {
        self.entities
    }

    /// The next request, which may be written into the buffer.
    pub(crate) fn next<'a>(&'a self, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match &self.source {
            Source::Cycle(requests, next) => {
                let place = next.fetch_add(1, Ordering::Relaxed) % requests.len();
                requests.get(place).map(Vec::as_slice)
            }
            Source::Fresh(template, next) => {
                let count = template.holes.len();
                template.fill(next.fetch_add(count, Ordering::Relaxed), buffer);
                Some(buffer)
            }
            Source::Once(requests, next) => {
                let place = next.fetch_add(1, Ordering::Relaxed);
                requests.get(place).map(Vec::as_slice)
            }
        }
    }

    /// The same for a server that does not mind being asked the same twice.
    pub(crate) fn repeated(self) -> Self {
        let source = match self.source {
            Source::Once(requests, _) => Source::Cycle(requests, Arc::default()),
            source => source,
        };
        Self { source, ..self }
    }
}

/// A request with holes for numbers. The scheme signs no bodies, so filling them leaves the
/// signature good.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
}

impl Template {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let windows = bytes.windows(HOLE.len()).enumerate();
        let holes = windows
            .filter(|(_, window)| *window == HOLE.as_bytes())
            .map(|(place, _)| place)
            .collect();
        Self { bytes, holes }
    }

    /// Writes the request with the numbers from `first` on.
    fn fill(&self, first: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&self.bytes);
        for (number, place) in (first..).zip(&self.holes) {
            let mut hole = buffer.get_mut(*place..*place + HOLE.len());
            if let Some(hole) = &mut hole {
                let _ = write!(hole, "{number:010}");
            }
        }
    }
}

/// As wide as a row key.
pub(crate) const HOLE: &str = "~~~~~~~~~~";
