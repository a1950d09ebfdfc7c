//! Copies: what is computed from an entity, and written together with it. A copy is an entity of
//! its own, or a part of another one.
//!
//! Knows nothing of how copies are written.

use tablesdk_protocol::wire::json::{JsonEntity, read_entity};
use tablesdk_protocol::{ETag, EntityKey, Timestamp, ValueRef};

use super::entry::{Entry, Index, Kind, Owner};
use crate::entity::encrypted::check_not_encrypted;
use crate::entity::{
    EntityError, EntityProblem, PropertyReader, PropertyWriter, Standalone, TableEntity,
    WritableEntity, write, write_entity,
};

/// A copy that is computed from an entity of type `Source`, and written together with it:
/// [`#[table(copy(…))]`](derive@crate::TableEntity#copy) of the source names it.
///
/// Where the implementing type is a whole struct, each copy is an entity of its own, which the
/// program reads, and does not write. Where it is a
/// [projection](derive@crate::TableEntity#projection) with both keys, each copy is merged into the
/// entity that it is a part of.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Company");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
/// use tablesdk::index::CopyOf;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{department}", row_key = "empid_{id:06}", copy(Skilled))]
/// struct Employee {
///     department: String,
///     id: u32,
///     name: String,
///     #[table(json)]
///     skills: Vec<String>,
/// }
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{department}", row_key = "skill_{skill}_{id:06}")]
/// struct Skilled {
///     department: String,
///     skill: String,
///     id: u32,
///     name: String,
/// }
///
/// impl CopyOf<Employee> for Skilled {
///     fn copies_of(employee: &Employee) -> impl IntoIterator<Item = Self> {
///         let Employee { department, id, name, skills } = employee;
///         skills.iter().map(|skill| Self {
///             department: department.clone(),
///             skill: skill.clone(),
///             id: *id,
///             name: name.clone(),
///         })
///     }
/// }
///
/// let skills = vec!["Rust".to_owned(), "Welsh".to_owned()];
/// let mut ada = table.insert(&Employee { department: "Sales".into(), id: 1, name: "Ada".into(), skills }).await?;
/// let welsh = || table.query::<Skilled>().partition("Sales").rows(Skilled::rows().skill("Welsh"));
/// assert_eq!(welsh().select(|s| s.name).collect().await?, ["Ada"]);
///
/// ada.skills.pop();
/// table.replace(&mut ada).await?;
/// assert_eq!(welsh().count().await?, 0);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not computed from `{Source}`",
    label = "no copy of `{Source}`",
    note = "implement `CopyOf<{Source}> for {Self}`"
)]
pub trait CopyOf<Source>: Copied {
    /// The copies of an entity. A pure function of what is stored: it gets the entity as it is read
    /// after the write, and it is called for each entity that is read, because the copies to remove
    /// are computed from it. Copies with the same key are the same. After a change of the function,
    /// the copies that the one before made remain until a [`repair`](crate::TableClient::repair).
    fn copies_of(source: &Source) -> impl IntoIterator<Item = Self>;
}

/// A type that can be a copy: an entity without indexes and copies, or a projection with both keys.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a copy",
    label = "neither an entity without indexes and copies, nor a projection with both keys",
    note = "a copy is written under its key: give the projection both keys of the entity that it is a part of"
)]
pub trait Copied: TableEntity {
    /// True if the copy is a part of an entity.
    #[doc(hidden)]
    const IS_PART: bool;

    #[doc(hidden)]
    fn copy_key(&self) -> Result<EntityKey, EntityError>;

    #[doc(hidden)]
    fn write_copy(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError>;
}

impl<E: Standalone> Copied for E {
    const IS_PART: bool = false;

    fn copy_key(&self) -> Result<EntityKey, EntityError> {
        self.entity_key()
    }

    fn write_copy(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        self.write(writer)
    }
}

impl<E: WritableEntity> Index<E> {
    /// The copies of that type, and what they are stored under.
    pub const fn copy<C: CopyOf<E>>(mark: &'static str) -> Self {
        const { check_not_encrypted::<C>() }
        let kind = if C::IS_PART { Kind::Part } else { Kind::Copies };
        Self::new(
            const { &C::SCHEMA },
            kind,
            mark,
            keys::<E, C>,
            copies::<E, C>,
            source,
            as_stored,
        )
    }
}

/// Refuses at compile time a copy that cannot be marked, and a name for a part, which is not
/// marked.
#[track_caller]
pub const fn check_copy<C: Copied>(is_named: bool) {
    if !C::IS_PART {
        return C::SCHEMA.check_beside(&[MARK, SOURCE]);
    }
    assert!(
        !is_named,
        "a copy that is a part of an entity is not stored under a name: remove `name`"
    );
}

/// The value as it is read after a write: fields may be skipped, and times are rounded.
fn as_stored<E: WritableEntity>(entity: &E) -> Option<E> {
    let key = entity.entity_key().ok()?;
    let body = write_entity(entity, &key).ok()?;
    let written = read_entity(&body).ok()?;
    // For fields that contain it. Copies cannot depend on it: it is not known before the write.
    let etag = ETag::from_timestamp(Timestamp::UNIX_EPOCH);
    E::read(&mut PropertyReader::new(&written, Some(&etag))).ok()
}

/// The keys of the copies of a stored entity, which may have to be removed. Parts remain.
fn keys<E: WritableEntity, C: CopyOf<E>>(entity: &E) -> Vec<EntityKey> {
    let Ok(source) = entity.entity_key() else {
        return Vec::new();
    };
    if C::IS_PART {
        return Vec::new();
    }
    // What cannot be a key is not stored.
    let keys = C::copies_of(entity).into_iter();
    let keys = keys.filter_map(|copy| copy.copy_key().ok());
    keys.filter(|key| key.partition_key() == source.partition_key())
        .collect()
}

fn copies<E: WritableEntity, C: CopyOf<E>>(
    entity: &E,
    mark: &str,
) -> Result<Vec<Entry>, EntityError> {
    let source = entity.entity_key()?;
    let copies = C::copies_of(entity).into_iter();
    let copies = copies.map(|copy| entry(&source, &copy, mark));
    copies.collect()
}

fn entry<C: Copied>(source: &EntityKey, copy: &C, mark: &str) -> Result<Entry, EntityError> {
    let key = copy.copy_key()?;
    if key.partition_key() != source.partition_key() {
        return Err(EntityProblem::CopyElsewhere {
            partition: key.partition_key().as_str().to_owned(),
        }
        .into());
    }
    let body = write(&key, |writer| {
        copy.write_copy(writer)?;
        if C::IS_PART {
            return Ok(());
        }
        writer.value(MARK, &ValueRef::String(mark.into()))?;
        writer.value(SOURCE, &ValueRef::String(source.row_key().as_str().into()))
    })?;
    let absent = if C::IS_PART {
        absent::<C>(&body)
    } else {
        Vec::new()
    };
    Ok(Entry { key, body, absent })
}

/// The properties of a part that have no value: a merge does not remove them.
fn absent<C: TableEntity>(body: &[u8]) -> Vec<String> {
    let properties = C::SCHEMA.properties().into_iter();
    let names = properties.map(|property| property.name().into_owned());
    match read_entity(body) {
        Ok(written) => names
            .filter(|name| written.property(name).is_none())
            .collect(),
        Err(_) => names.collect(),
    }
}

/// The entity that has a copy.
fn source(copy: &JsonEntity<'_>, mark: &str) -> Owner {
    let text = |name| copy.text(name).ok().flatten();
    if text(MARK) != Some(mark) {
        return Owner::NoEntry;
    }
    let key = text("PartitionKey").zip(text(SOURCE));
    let key = key.and_then(|(partition, row)| EntityKey::new(partition, row).ok());
    key.map_or(Owner::Damaged, Owner::Entity)
}

/// The property that marks a copy, and the property with the row key of its source.
pub(super) const MARK: &str = "TablesdkCopy";
const SOURCE: &str = "TablesdkSource";
