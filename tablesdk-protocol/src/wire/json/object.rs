//! The rules that all readers of an entity share, so that each accepts the same objects.
//!
//! Knows nothing of how an object is read.

/// The most members that are held of an object. Beside its properties and their annotations a
/// request may name any number of nulls, which are no properties.
// The limit of 252 properties counts what is stored. A body of 4 MiB has room for half a million
// nulls and annotations, which are not stored. A member that cannot be a property is not held at
// all.
pub(super) const MEMBERS_MAX: usize = 4096;

/// How the name ends of a member that holds the type of another.
pub(super) const TYPE_SUFFIX: &str = "@odata.type";
