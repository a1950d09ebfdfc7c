//! When an entity expires: the condition of queries, the look at what was read, and the entry by
//! which expired entities are found.
//!
//! Knows nothing of clocks and requests.

use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::wire::json::JsonEntity;
use tablesdk_protocol::{EntityKey, Timestamp, Value, ValueRef};

use crate::entity::key::{escape, unescaped};
use crate::entity::{EntityError, PropertyReader, Schema, WritableEntity, write};
use crate::patterns::index::entry::{Entry, Index, Kind, Owner};

/// An entity that expires: a struct with a field marked
/// [`#[table(expires)]`](derive@crate::TableEntity#expires).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not expire",
    label = "no struct with a field marked `expires`",
    note = "mark a field that is an instant: `#[table(expires)]`"
)]
pub trait Expires: WritableEntity {
    /// The seconds of a bucket, where expired entities are found by an index.
    #[doc(hidden)]
    const BUCKET: Option<i64> = None;

    /// The name under which the entries are stored.
    #[doc(hidden)]
    const NAME: &'static str;

    /// The instant at which the entity expires; `None` if it never does.
    fn expires_at(&self) -> Option<Timestamp>;
}

impl Schema {
    #[doc(hidden)]
    #[must_use]
    pub const fn expires(mut self, property: &'static str) -> Self {
        self.expires = Some(property);
        self
    }

    /// The condition for expired entities. An absent property satisfies no comparison.
    pub(crate) fn expired(&self, now: Timestamp) -> Option<Tree> {
        let compare = |property, operator, instant| {
            Tree::comparison(property, operator, Value::DateTime(instant))
        };
        let expired = |property| {
            // SERVICE: a value of another type is less than any instant. It is to be reported, and
            // not hidden.
            compare(
                property,
                ComparisonOperator::GreaterThanOrEqual,
                Timestamp::MIN,
            )
            .and(compare(property, ComparisonOperator::LessThanOrEqual, now))
        };
        let of_variants = self.variants().filter_map(|(variant, is_variant)| {
            let expired = variant.expired(now)?;
            Some(match is_variant {
                Some(is_variant) => is_variant.and(expired),
                None => expired,
            })
        });
        let own = self.expires.into_iter().map(expired);
        own.chain(of_variants).reduce(Tree::or)
    }

    /// Returns true if an entity that was read is expired. An entity that cannot be read is not.
    pub(crate) fn is_expired(&self, entity: &JsonEntity<'_>, now: Timestamp) -> bool {
        if let Some(property) = self.expires {
            return instant_of(entity, property).is_some_and(|at| at <= now);
        }
        let variant = PropertyReader::new(entity, None).variant(self);
        let variant = variant.ok().flatten();
        let variant = variant.and_then(|index| self.variants().nth(index));
        variant.is_some_and(|(variant, _)| variant.is_expired(entity, now))
    }
}

fn instant_of(entity: &JsonEntity<'_>, property: &str) -> Option<Timestamp> {
    match entity.property(property)?.to_value().ok()? {
        Some(Value::DateTime(instant)) => Some(instant),
        _ => None,
    }
}

impl<E: Expires> Index<E> {
    /// The entries by which expired entities are found: without properties of the entity, in
    /// partitions by time.
    pub const fn expiry() -> Self {
        Self::new(
            const { &SCHEMA },
            Kind::Expiry,
            E::NAME,
            |entity| key_of(entity).ok().flatten().into_iter().collect(),
            |entity, _| entries(entity),
            |entry, _| owner::<E>(entry),
            |_| None,
        )
    }
}

const SCHEMA: Schema = Schema::new("expiry", &[]).entry_elsewhere();

/// The key of the entry of an entity; `None` if the entity never expires.
fn key_of<E: Expires>(entity: &E) -> Result<Option<EntityKey>, EntityError> {
    let (Some(instant), Some(seconds)) = (entity.expires_at(), E::BUCKET) else {
        return Ok(None);
    };
    let ticks = seconds * TICKS_PER_SECOND;
    let start = instant.unix_ticks().div_euclid(ticks) * ticks;
    // The bucket of the first instants begins before the first one.
    let start = Timestamp::from_unix_ticks(start).unwrap_or(Timestamp::MIN);
    let key = entity.entity_key()?;
    let (partition, row) = (key.partition_key().as_str(), key.row_key().as_str());
    let row_key = format!("{PREFIX}{}_{}", escape(partition, "_"), escape(row, ""));
    let partition_key = format!(
        "{}{start}.{:02}",
        partitions_of::<E>(),
        shard_of(&row_key) % SHARDS
    );
    Ok(Some(EntityKey::new(partition_key, row_key)?))
}

fn entries<E: Expires>(entity: &E) -> Result<Vec<Entry>, EntityError> {
    let (Some(key), Some(instant)) = (key_of(entity)?, entity.expires_at()) else {
        return Ok(Vec::new());
    };
    let body = write(&key, |writer| {
        writer.value(MARK, &ValueRef::String(mark::<E>().into()))?;
        writer.value(INSTANT, &ValueRef::DateTime(instant))
    })?;
    let absent = Vec::new();
    Ok(vec![Entry { key, body, absent }])
}

/// The entity that has an entry.
fn owner<E: Expires>(entry: &JsonEntity<'_>) -> Owner {
    if entry.text(MARK).ok().flatten() != Some(&mark::<E>()) {
        return Owner::NoEntry;
    }
    let row_key = entry.text("RowKey").ok().flatten();
    let key = row_key.and_then(owner_of_key);
    key.map_or(Owner::Damaged, Owner::Entity)
}

/// The key of the entity whose entry has that row key.
pub(crate) fn owner_of_key(row_key: &str) -> Option<EntityKey> {
    let (partition, row) = row_key.strip_prefix(PREFIX)?.split_once('_')?;
    EntityKey::new(unescaped(partition).ok()?, unescaped(row).ok()?).ok()
}

/// The filter for the entries of entities that expire before an instant, or at it. The size of the
/// buckets does not matter, since it may have been changed.
pub(crate) fn entries_until<E: Expires>(instant: Timestamp) -> Tree {
    let partition =
        |operator, text: String| Tree::comparison("PartitionKey", operator, Value::from(text));
    let partitions = partitions_of::<E>();
    let second = instant.unix_ticks().div_euclid(TICKS_PER_SECOND) * TICKS_PER_SECOND;
    let second = Timestamp::from_unix_ticks(second).unwrap_or(Timestamp::MIN);
    // Above the dot before the shard.
    let last = format!("{partitions}{second}/");
    partition(ComparisonOperator::GreaterThanOrEqual, partitions)
        .and(partition(ComparisonOperator::LessThan, last))
        .and(Tree::comparison(
            INSTANT,
            ComparisonOperator::LessThanOrEqual,
            Value::DateTime(instant),
        ))
}

/// With what the partition keys of the entries of a type begin.
fn partitions_of<E: Expires>() -> String {
    format!("{PREFIX}{}.", E::NAME)
}

fn mark<E: Expires>() -> String {
    format!("{}.{}", E::NAME, SCHEMA.entity())
}

/// FNV-1a. Spreads the entries of a bucket over partitions.
fn shard_of(row_key: &str) -> u32 {
    row_key.bytes().fold(0x811C_9DC5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The prefix of both keys of the entries.
pub(crate) const PREFIX: &str = "~tablesdk.expiry.";
const MARK: &str = "TablesdkIndex";
pub(crate) const INSTANT: &str = "TablesdkExpires";
const SHARDS: u32 = 16;
const TICKS_PER_SECOND: i64 = 10_000_000;
