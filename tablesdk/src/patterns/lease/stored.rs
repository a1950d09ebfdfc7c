//! The entity of a lease.

use std::time::Duration;

use tablesdk_protocol::{EntityKey, Guid};

use crate::entity::{DynamicEntity, Properties, Stored};
use crate::error::Error;

/// One acquisition, as the entity of the lease has it.
#[derive(Clone, Debug)]
pub(super) struct Tenure {
    /// Another one for each attempt to acquire the lease. Without it, two contenders whose
    /// responses were lost would both take the token for their own.
    pub(super) id: Guid,
    pub(super) token: i64,
    /// How often this acquisition was written: a client knows its own write by it.
    pub(super) writes: i64,
    /// Zero: the lease was released.
    pub(super) duration: Duration,
    pub(super) holder: String,
}

impl Tenure {
    /// Reads the entity, if there is one.
    pub(super) fn of(
        operation: &'static str,
        entity: Option<&Stored<DynamicEntity>>,
    ) -> Result<Option<Self>, Error> {
        let Some(entity) = entity else {
            return Ok(None);
        };
        let tenure = Self::read(entity.properties()).map_err(|problem| {
            let error = Error::data(problem).with_operation(operation);
            error.with_key(entity.key())
        });
        tenure.map(Some)
    }

    fn read(properties: &Properties) -> Result<Self, NotALease> {
        let problem = |property, expected| NotALease { property, expected };
        let number = |property| {
            let number = properties.read::<i64>(property).ok();
            let number = number.filter(|number| *number >= 0);
            number.ok_or_else(|| problem(property, "an Edm.Int64 of 0 or more"))
        };
        let id = properties.read(ID);
        let holder = properties.read(HOLDER);
        Ok(Self {
            id: id.map_err(|_| problem(ID, "an Edm.Guid"))?,
            token: number(TOKEN)?,
            // Programs in other languages may leave it out.
            writes: properties.read(WRITES).unwrap_or_default(),
            duration: Duration::from_millis(number(DURATION)?.unsigned_abs()),
            holder: holder.map_err(|_| problem(HOLDER, "an Edm.String"))?,
        })
    }

    /// The entity to write. It is merged: other properties are the program's.
    pub(super) fn to_entity(&self, key: &EntityKey) -> Result<DynamicEntity, Error> {
        let mut entity = DynamicEntity::of_key(key)
            .with(HOLDER, self.holder.as_str())
            .with(TOKEN, self.token)
            .with(ID, self.id)
            .with(WRITES, self.writes);
        Milliseconds::of(self.duration)?.set(&mut entity);
        Ok(entity)
    }

    /// Counts one more write, which the entity is to be sent with.
    pub(super) fn count_write(&mut self, entity: &mut DynamicEntity) {
        self.writes = self.writes.saturating_add(1);
        entity.properties_mut().set(WRITES, self.writes);
    }
}

/// A duration as it is stored, rounded up: a contender waits for no less than the duration.
#[derive(Clone, Copy)]
pub(super) struct Milliseconds(i64);

impl Milliseconds {
    pub(super) fn of(duration: Duration) -> Result<Self, Error> {
        let whole = duration.as_nanos().div_ceil(1_000_000);
        let refused = |_| Error::input("the duration of a lease is at most 9223372036854775807 ms");
        i64::try_from(whole).map(Self).map_err(refused)
    }

    pub(super) fn set(self, entity: &mut DynamicEntity) {
        entity.properties_mut().set(DURATION, self.0);
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the entity is not that of a lease: its property {property:?} is not {expected}")]
struct NotALease {
    property: &'static str,
    expected: &'static str,
}

const HOLDER: &str = "Holder";
const TOKEN: &str = "Token";
const ID: &str = "LeaseId";
const WRITES: &str = "Writes";
const DURATION: &str = "DurationMs";
