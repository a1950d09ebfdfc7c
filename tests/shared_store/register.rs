//! The effect of an operation on one entity, and the meaning of its result. This file knows nothing
//! of time and of other entities.

/// The number of the operation that wrote something. No two operations have the same.
pub(crate) type Token = i64;

/// The time in an ETag. Each write of an entity has a later one than the write before it, also if
/// the entity was deleted between.
pub(crate) type Version = i64;

/// In place of the number of a write whose content was never read.
pub(crate) const UNSEEN: Token = -1;

/// An entity as it was read: the last write, the last write of the whole, and the last write of a
/// part since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) token: Token,
    pub(crate) a: Option<Token>,
    pub(crate) b: Option<Token>,
    pub(crate) version: Version,
}

impl Seen {
    /// The content after a write of the whole.
    pub(crate) const fn whole(token: Token, version: Version) -> Self {
        Self {
            token,
            a: Some(token),
            b: None,
            version,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    Replace,
    Merge,
    Delete,
}

/// The condition of a write on the stored entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    /// Nothing: an upsert.
    Any,
    /// That there is none: an insert.
    Absent,
    /// That there is one: `If-Match: *`.
    Present,
    /// That it is of this version.
    Version(Version),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Read,
    Write(Effect, Condition),
}

/// Why the service rejected a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    /// 409: the entity exists.
    Exists,
    /// 404: there is none.
    Missing,
    /// 412: it is of another version.
    Changed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// A read found this.
    Saw(Option<Seen>),
    /// A write was applied. Deletes have no version.
    Done(Option<Version>),
    /// A write was rejected because of this entity.
    Refused(Refusal),
    /// A write was not applied, for a reason that says nothing of this entity.
    Failed,
    /// A write may have been applied at any time since it was called, may still be, or never.
    Unknown,
}

/// The entity at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    entity: Option<Entity>,
    /// The latest version so far that is known.
    newest: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entity {
    token: Token,
    a: Option<Token>,
    b: Option<Token>,
    /// `None` if no response had it.
    version: Option<Version>,
}

impl State {
    /// Returns true if the entity is of this version, or may still become so.
    pub(crate) fn may_reach(&self, version: Version) -> bool {
        let is_there = || self.entity.is_some_and(|it| it.version == Some(version));
        version > self.newest || is_there()
    }

    /// Returns true if a write may still give the entity this version.
    pub(crate) const fn may_get(&self, version: Version) -> bool {
        version > self.newest
    }

    /// Returns true if a read finds this.
    pub(crate) fn shows(&self, seen: Option<Seen>) -> bool {
        let shown = seen.map(|seen| Entity {
            token: seen.token,
            a: seen.a,
            b: seen.b,
            version: Some(seen.version),
        });
        shown == self.entity
    }

    /// Returns true if a write with that condition is rejected like this.
    pub(crate) fn refuses(&self, condition: Condition, refusal: Refusal) -> bool {
        match (refusal, self.entity) {
            (Refusal::Exists, Some(_)) => condition == Condition::Absent,
            (Refusal::Missing, None) => {
                matches!(condition, Condition::Present | Condition::Version(_))
            }
            (Refusal::Changed, Some(entity)) => {
                matches!(condition, Condition::Version(_)) && !entity.satisfies(condition)
            }
            _ => false,
        }
    }

    /// The entity after a write, whose version is not always known. `None` if this state does not
    /// allow the write.
    pub(crate) fn after(
        &self,
        effect: Effect,
        condition: Condition,
        token: Token,
        version: Option<Version>,
    ) -> Option<Self> {
        let is_satisfied = match self.entity {
            None => matches!(condition, Condition::Any | Condition::Absent),
            Some(entity) => entity.satisfies(condition),
        };
        if !is_satisfied || version.is_some_and(|version| version <= self.newest) {
            return None;
        }
        let old = self.entity;
        let entity = match effect {
            Effect::Delete => None,
            Effect::Replace => Some(Entity {
                token,
                a: Some(token),
                b: None,
                version,
            }),
            Effect::Merge => Some(Entity {
                token,
                a: old.and_then(|old| old.a),
                b: Some(token),
                version,
            }),
        };
        Some(Self {
            entity,
            newest: version.unwrap_or(self.newest),
        })
    }
}

impl Entity {
    fn satisfies(&self, condition: Condition) -> bool {
        match condition {
            Condition::Any | Condition::Present => true,
            Condition::Absent => false,
            // A version that no response had is in no condition.
            Condition::Version(version) => self.version == Some(version),
        }
    }
}
