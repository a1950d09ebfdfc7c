//! Which filters are read: those of the service, and what others accept beyond them.

/// Which filters are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete: who reads a filter knows who sends it"
)]
pub enum FilterSyntax {
    /// The syntax of Azurite: integers without their suffix, keys as conditions, `null`, and the
    /// comparison of two properties.
    Azurite,
    /// The syntax of Cosmos DB: that of the service, as far as it is known. A key is compared with
    /// the string whose bytes a binary literal has.
    CosmosDb,
    /// The syntax of the service, and an integer beyond 32 bits without its suffix `L`, as the
    /// string form of a filter has it. A program that repairs filters reads this syntax, and so
    /// does [`str::parse`].
    Repaired,
    /// The syntax of the service. An integer beyond 32 bits has the suffix `L`. The keys and the
    /// `Timestamp` have types, so that none of them is a condition by itself.
    #[default]
    Service,
}

impl FilterSyntax {
    /// Returns true if an integer beyond 32 bits needs its suffix.
    // SERVICE: what Cosmos DB says to an integer without it is not known.
    pub(super) const fn requires_suffix(self) -> bool {
        matches!(self, Self::CosmosDb | Self::Service)
    }
}
