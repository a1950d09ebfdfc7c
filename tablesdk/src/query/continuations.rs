//! The check that the continuation tokens of a scan advance. Knows nothing of the items of the
//! scan.
//!
//! A token says where the next page starts. A scan that meets a token again would read the same
//! pages for ever. Tokens are opaque, on Cosmos DB more than on Azure, so their order says nothing:
//! only equal ones prove a cycle.

use std::sync::{Mutex, PoisonError};

/// The tokens of one scan. Finds a cycle of any length in constant memory: it remembers one token,
/// and another one after 1, 2, 4, 8 … pages (Brent's algorithm).
#[derive(Debug)]
pub(crate) struct Continuations<C>(Mutex<Watch<C>>);

#[derive(Debug)]
struct Watch<C> {
    remembered: Option<C>,
    pages: u64,
    pages_max: u64,
}

impl<C: Clone + PartialEq> Continuations<C> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Watch {
            remembered: None,
            pages: 0,
            pages_max: 1,
        }))
    }

    /// Takes the token of a page that was requested with `sent`.
    ///
    /// # Errors
    ///
    /// When the scan was there before.
    pub(crate) fn advance(&self, sent: Option<&C>, next: Option<&C>) -> Result<(), NoProgress> {
        let Some(next) = next else {
            return Ok(());
        };
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sent == Some(next) || watch.remembered.as_ref() == Some(next) {
            return Err(NoProgress);
        }
        watch.pages += 1;
        if watch.pages == watch.pages_max {
            watch.remembered = Some(next.clone());
            watch.pages = 0;
            watch.pages_max = watch.pages_max.saturating_mul(2);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the continuation token leads back to a page that was read: the list would have no end")]
pub(crate) struct NoProgress;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pages it takes until the cycle is found that begins after that many pages.
    fn pages_until_found(before: u32, cycle: u32) -> u32 {
        let token = |page: u32| {
            if page < before {
                page
            } else {
                before + (page - before) % cycle
            }
        };
        let continuations = Continuations::new();
        let mut sent = None;
        for page in 0.. {
            let next = token(page);
            if continuations.advance(sent.as_ref(), Some(&next)).is_err() {
                return page + 1;
            }
            sent = Some(next);
        }
        unreachable!("the tokens are endless")
    }

    #[test]
    fn a_cycle_is_found_wherever_it_begins() {
        for before in 0..100 {
            assert_eq!(pages_until_found(before, 1), before + 2, "{before}");
            for cycle in 2..100 {
                let pages = pages_until_found(before, cycle);
                let most = 3 * (before + cycle);
                assert!(pages <= most, "{before}, {cycle}: {pages}");
            }
        }
    }

    #[test]
    fn tokens_that_advance_are_never_refused() {
        let continuations = Continuations::new();
        for page in 1..10_000 {
            let outcome = continuations.advance(Some(&(page - 1)), Some(&page));
            assert!(outcome.is_ok(), "{page}");
        }
        assert!(continuations.advance(Some(&1), None).is_ok());
    }
}
