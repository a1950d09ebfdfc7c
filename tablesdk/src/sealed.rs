//! Seals, which keep other crates from implementing a trait.

/// The type of a constant that each implementation of a sealed trait has. Other crates cannot name
/// it.
#[derive(Clone, Copy, Debug)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub struct Seal;

/// As `Seal`, for traits that derives implement.
#[derive(Clone, Copy, Debug)]
pub struct Derived;
