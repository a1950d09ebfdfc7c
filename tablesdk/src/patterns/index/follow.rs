//! `follow`: reads entries of an index, and then the entities that have them.

use std::fmt;
use std::future::ready;
use std::marker::PhantomData;
use std::pin::pin;

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use tablesdk_protocol::{ETag, EntityKey};

use super::entry::{IndexEntry, has_entry_in};
use super::unverified::Unverified;
use crate::action::GetEntity;
use crate::action::extend::extension::{Extensions, LeftOut};
use crate::action::get_entity::find;
use crate::action::query::paged::Skip;
use crate::action::query_entities::QueryEntities;
use crate::action::refusal::refused;
use crate::entity::{EntityError, Stored, TableEntity};
use crate::error::Error;
use crate::patterns::order;
use crate::pipeline::{OperationRun, Table};
use crate::query::{EntityStream, Explanation, Page, PageToken, Whole};

impl<E: TableEntity> GetEntity<E> {
    /// Reads the entity that has this entry of an index: it can be written, and the entry cannot.
    /// One request more. The result is `None` as well when the entity no longer has this entry.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// # table.insert(&Employee::new("Sales", 1, "ada@contoso.com")).await?;
    /// let entry = ByEmail::key("Sales", "ada@contoso.com");
    /// let mut ada = table.get(entry).follow().await?.expect("she works here");
    /// ada.email = None;
    /// table.replace(&mut ada).await?;
    /// assert!(table.get(ByEmail::key("Sales", "ada@contoso.com")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(self) -> FollowEntry<E>
    where
        E: IndexEntry,
    {
        FollowEntry { get: self }
    }

    /// Reads the entry of an index as it is, without a look at its entity. In an index with entries
    /// in other partitions, it may be that of an entity which was not written in the end, or has
    /// changed, and have the properties of an earlier version.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed_elsewhere.md")]
    /// # table.insert(&Employee::new("Sales", 1, "Jones")).await?;
    /// let entry = table.get(ByName::key("Jones", "Sales", 1)).unverified().await?;
    /// assert_eq!(entry.expect("was written").id, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unverified(self) -> UnverifiedEntry<E>
    where
        E: IndexEntry,
    {
        UnverifiedEntry { get: self }
    }
}

impl<I: IndexEntry> QueryEntities<I> {
    /// Reads the entities that have the entries which the query finds: they can be written, and the
    /// entries cannot. One request more for each entity. An entity that no longer has its entry is
    /// left out.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// # table.insert(&Employee::new("Sales", 1, "ada@contoso.com")).await?;
    /// # table.insert(&Employee::new("Sales", 2, "alan@contoso.com")).await?;
    /// # table.insert(&Employee::new("Sales", 3, "grace@contoso.com")).await?;
    /// let a_to_b = ByEmail::rows().email("a".."b");
    /// let found = table.query::<ByEmail>().partition("Sales").rows(a_to_b).follow().collect().await?;
    /// for mut employee in found {
    ///     employee.email = None;
    ///     table.replace(&mut employee).await?;
    /// }
    /// assert_eq!(table.query::<ByEmail>().partition("Sales").count().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(self) -> FollowEntries<I> {
        FollowEntries::new(self)
    }
}

/// Reads the entity that has an entry of an index. See
/// [`GetEntity::follow`](crate::action::GetEntity::follow).
#[must_use = "actions do nothing until awaited"]
pub struct FollowEntry<I> {
    get: GetEntity<I>,
}

impl<I: IndexEntry> FollowEntry<I> {
    async fn run(self) -> Result<Option<Stored<I::Entity>>, Error> {
        let GetEntity {
            table,
            key,
            left_out,
            ..
        } = self.get;
        let key = key.map_err(|error| refused(OPERATION, error))?;
        let mut run = table.pipeline.begin(OPERATION);
        // An entry in another partition may be out of date: the entity shows whether it is hidden.
        let entry = match read::<I>(&mut run, &table, &key, AS_STORED).await {
            Ok(Some(entry)) => Followed::of(&entry, left_out),
            Ok(None) => return run.end(Ok(None)),
            Err(error) => return run.end(Err(error)),
        };
        let entity = entry.read::<I>(&mut run, &table).await;
        run.end(entity)
    }
}

/// Reads an entry of an index as it is. See
/// [`GetEntity::unverified`](crate::action::GetEntity::unverified).
#[must_use = "actions do nothing until awaited"]
pub struct UnverifiedEntry<I> {
    get: GetEntity<I>,
}

impl<I: IndexEntry> UnverifiedEntry<I> {
    async fn run(self) -> Result<Option<Stored<I>>, Error> {
        let GetEntity {
            table,
            key,
            left_out,
            ..
        } = self.get;
        let key = key.map_err(|error| refused(READ, error))?;
        let mut run = table.pipeline.begin(READ);
        let left_out = left_out.and(order::INDEX);
        let entry = read::<I>(&mut run, &table, &key, left_out).await;
        run.end(entry)
    }
}

action!(impl[I: IndexEntry] UnverifiedEntry<I>, get.table.pipeline => Option<Stored<I>>);
debug_by_fields!(UnverifiedEntry<I> { get });

/// Reads the entities that have the entries of an index which a query finds. See
/// [`QueryEntities::follow`](crate::action::QueryEntities::follow).
#[must_use = "a query does nothing until it is read"]
pub struct FollowEntries<I, Q = QueryEntities<I>> {
    pub(super) query: Q,
    entry: PhantomData<fn() -> I>,
}

impl<I, Q> FollowEntries<I, Q> {
    pub(super) const fn new(query: Q) -> Self {
        let entry = PhantomData;
        Self { query, entry }
    }
}

impl<I: IndexEntry> FollowEntries<I> {
    /// As [`QueryEntities::explain`], with the requests for the entities.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::explain`].
    pub fn explain(&self) -> Result<Explanation, Error> {
        Ok(Explanation {
            more: Some("one for each further page, and one for each entity"),
            ..self.query.explain()?
        })
    }

    /// The entities as a stream, in the order of their entries; up to eight are read at a time. The
    /// stream yields an error for an entry or an entity that cannot be read, and continues. Any
    /// other error ends it.
    pub fn stream(self) -> EntityStream<Stored<I::Entity>> {
        let (entries, follow) = self.into_entries();
        EntityStream::first(None, follow.all(entries.stream()))
    }

    /// All entities at once.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::collect`](crate::action::QueryEntities::collect).
    pub async fn collect(self) -> Result<Vec<Stored<I::Entity>>, Error> {
        self.stream().collect_all().await
    }

    /// The entities of one [page](crate::action::QueryEntities::page) of entries, in the order of
    /// their entries; up to eight are read at a time. The page begins at the token, or at the start
    /// without one.
    ///
    /// [`take`](crate::action::QueryEntities::take) and
    /// [`page_size`](crate::action::QueryEntities::page_size) count entries. An entity that no
    /// longer has its entry is left out, so a page may have fewer items than were asked for, or
    /// none, and still not be the last one: only [`next`](Page::next) says that.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// # for (id, email) in [(3, "ada@contoso.com"), (1, "alan@contoso.com"), (2, "grace@contoso.com")] {
    /// #     table.insert(&Employee::new("Sales", id, email)).await?;
    /// # }
    /// let by_email = || table.query::<ByEmail>().partition("Sales").take(2).follow();
    /// let first = by_email().page(None).await?;
    /// let second = by_email().page(first.next).await?;
    /// let ids = second.map(|employee| employee.id);
    /// assert_eq!((ids.items, ids.next), (vec![2], None));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The token is that of the query of the entries, as
    /// [`QueryEntities::page`](crate::action::QueryEntities::page) returns it.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::page`](crate::action::QueryEntities::page): when an entry or an entity
    /// cannot be read, [`Error::next_page`] returns the token of the next page, unless
    /// [`skip_unreadable`](crate::action::QueryEntities::skip_unreadable) leaves it out.
    pub async fn page(
        self,
        token: impl Into<Option<PageToken>> + Send,
    ) -> Result<Page<Stored<I::Entity>>, Error> {
        let (entries, follow) = self.into_entries();
        follow.page(entries.page(token).await?).await
    }

    /// As [`page`](Self::page), with the token as a string, as
    /// [`QueryEntities::page_after`](crate::action::QueryEntities::page_after) takes it.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the string
    /// is not a page token.
    pub async fn page_after(self, token: Option<&str>) -> Result<Page<Stored<I::Entity>>, Error> {
        let (entries, follow) = self.into_entries();
        follow.page(entries.page_after(token).await?).await
    }

    /// The query of the entries, and how their entities are read.
    fn into_entries(self) -> (QueryEntities<I, Unverified<Whole<I>>>, Follow) {
        let mut query = self.query;
        let follow = Follow::of(&mut query);
        (query.unverified(), follow)
    }
}

/// How the entities of entries are read.
pub(super) struct Follow {
    table: Table,
    left_out: LeftOut,
    skip: Option<Skip>,
}

impl Follow {
    /// Reads the entities that a query of entries finds. The query then finds all of these.
    pub(super) fn of<I: IndexEntry>(query: &mut QueryEntities<I>) -> Self {
        let follow = Self {
            table: query.table.clone(),
            left_out: query.left_out,
            skip: query.skip.clone(),
        };
        // An entry in another partition may be out of date: the entity shows whether it is hidden.
        if I::SCHEMA.is_elsewhere() {
            query.left_out = LeftOut::HIDING;
        }
        follow
    }

    /// The entities that have the entries, in their order.
    pub(super) fn all<I: IndexEntry>(
        self,
        entries: impl Stream<Item = Result<Stored<I>, Error>> + Send,
    ) -> impl Stream<Item = Result<Stored<I::Entity>, Error>> + Send {
        let Self {
            table,
            left_out,
            skip,
        } = self;
        let entities = entries.map(move |entry| {
            let table = table.clone();
            let entry = entry.map(|entry| Followed::of(&entry, left_out));
            async move {
                let entry = entry?;
                let mut run = table.pipeline.begin(OPERATION);
                let entity = entry.read::<I>(&mut run, &table).await;
                run.end(entity)
                    .map_err(|error| table.pipeline.locate(error))
            }
        });
        let entities = entities.buffered(PARALLEL);
        entities.filter_map(move |entity| {
            ready(match (entity.transpose(), &skip) {
                (Some(Err(error)), Some(skip)) if error.is_about_one_entity() => {
                    skip(error);
                    None
                }
                (entity, _) => entity,
            })
        })
    }

    pub(super) async fn page<I: IndexEntry>(
        self,
        entries: Page<Stored<I>>,
    ) -> Result<Page<Stored<I::Entity>>, Error> {
        let Page { items, next } = entries;
        let mut entities = Vec::with_capacity(items.len());
        let mut followed = pin!(self.all(stream::iter(items.into_iter().map(Ok))));
        while let Some(entity) = followed.next().await {
            let entity = entity.map_err(|error| {
                if error.is_about_one_entity() {
                    error.with_next_page(next.as_ref())
                } else {
                    error
                }
            });
            entities.push(entity?);
        }
        Ok(Page::new(entities, next))
    }
}

impl<I, Q> fmt::Debug for FollowEntries<I, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowEntries").finish_non_exhaustive()
    }
}

/// An entry, and the key of the entity to which it leads.
struct Followed {
    entry: EntityKey,
    etag: ETag,
    entity: Result<EntityKey, EntityError>,
    left_out: LeftOut,
}

impl Followed {
    fn of<I: IndexEntry>(entry: &Stored<I>, left_out: LeftOut) -> Self {
        Self {
            entry: entry.key().clone(),
            etag: entry.etag().clone(),
            entity: entry.key_of_entity(),
            left_out,
        }
    }

    /// The entity, if there is one that has the entry.
    async fn read<I: IndexEntry>(
        mut self,
        run: &mut OperationRun<'_>,
        table: &Table,
    ) -> Result<Option<Stored<I::Entity>>, Error> {
        for _ in 0..ROUNDS {
            let Self {
                entry,
                etag,
                entity,
                left_out,
            } = self;
            let key =
                entity.map_err(|error| run.annotate(Error::entity(error)).with_key(&entry))?;
            let entity = entity_of::<I>(run, table, &key, left_out).await?;
            if let Some(entity) = entity.filter(|entity| has_entry_in::<I>(entity, &entry)) {
                return Ok(Some(entity));
            }
            // Another entity may have got the entry since it was read.
            self = match read::<I>(run, table, &entry, AS_STORED).await? {
                Some(again) if *again.etag() != etag => Self::of(&again, left_out),
                _ => break,
            };
        }
        Ok(None)
    }
}

/// The entity of an entry in a table. The operation is about the table of the entry.
async fn entity_of<I: IndexEntry>(
    run: &mut OperationRun<'_>,
    entries: &Table,
    key: &EntityKey,
    left_out: LeftOut,
) -> Result<Option<Stored<I::Entity>>, Error> {
    if const { I::SCHEMA.table().is_none() } {
        return read(run, entries, key, left_out).await;
    }
    let mut table = entries.belongs_to(const { &I::SCHEMA });
    table.pipeline.deadline = run.deadline().remaining();
    let mut run = table.pipeline.begin(OPERATION);
    let entity = read(&mut run, &table, key, left_out).await;
    run.end(entity)
}

async fn read<E: TableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    left_out: LeftOut,
) -> Result<Option<Stored<E>>, Error> {
    let found = find(run, table, key, None, &Extensions::of::<E>(left_out)).await?;
    Ok(found.map(|(entity, _)| entity))
}

action!(impl[I: IndexEntry] FollowEntry<I>, get.table.pipeline => Option<Stored<I::Entity>>);
debug_by_fields!(FollowEntry<I> { get });

/// The entity shows whether it is hidden, and has the entry.
const AS_STORED: LeftOut = LeftOut::HIDING.and(order::INDEX);
const OPERATION: &str = "follow entry";
const READ: &str = "get entity";
/// How many entities are read at a time.
const PARALLEL: usize = 8;
/// How often an entry is read that other clients pass on.
const ROUNDS: usize = 16;
