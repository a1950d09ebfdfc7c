//! The patterns of the table design guide, each in a module of its own, which is public under the
//! name of the crate.
//!
//! Everything below this module knows none of them. A pattern that takes part in the verbs of the
//! core does so through [`extend`](crate::action::extend).

pub mod chunked;
pub mod counter;
#[cfg(feature = "encryption")]
pub mod encryption;
#[cfg(not(feature = "encryption"))]
pub(crate) mod encryption;
pub mod expiry;
pub mod index;
pub mod lease;
pub mod moves;
#[cfg(feature = "object-store")]
pub mod objects;
pub mod outbox;
pub mod rolling;
pub mod sequence;
pub mod series;
pub mod wide;

/// The places of patterns among the layers of a commit, the outermost one first, and among the
/// extensions of a type.
mod order {
    pub(super) const OUTBOX: u8 = 0;
    pub(super) const INDEX: u8 = 1;
    #[cfg_attr(
        not(feature = "encryption"),
        expect(dead_code, reason = "no other pattern needs it")
    )]
    pub(super) const ENCRYPTION: u8 = 2;
    pub(super) const EXPIRY: u8 = 3;
}
