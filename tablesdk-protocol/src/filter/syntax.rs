//! Which filters are read: those of the service, and what others accept beyond them.

/// Which filters are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete: who reads a filter knows who sends it"
)]
pub enum FilterSyntax {
    /// What Azurite accepts: integers without their suffix, keys as conditions, `null`, and the comparison of two properties.
    Azurite,
    /// What Cosmos DB accepts, as far as it is known: what the service accepts. A key is compared with the string whose bytes a binary
    /// literal has.
    CosmosDb,
    /// What the service accepts, and an integer beyond 32 bits without its suffix `L`, which the string form of the filter has. A program
    /// that repairs filters reads this; [`str::parse`] does.
    Repaired,
    /// What the service accepts. An integer beyond 32 bits has the suffix `L`. The keys and the `Timestamp` have types, so that none of
    /// them is a condition by itself.
    #[default]
    Service,
}

impl FilterSyntax {
    /// Whether an integer beyond 32 bits needs its suffix.
    // SERVICE: what Cosmos DB says to an integer without it is not known.
    pub(super) const fn requires_suffix(self) -> bool {
        matches!(self, Self::CosmosDb | Self::Service)
    }
}
