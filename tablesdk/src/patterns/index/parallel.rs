//! Entries of an index that are read from several partitions at a time, in any order.

use super::entry::IndexEntry;
use super::follow::{Follow, FollowEntries};
use super::unverified::Unverified;
use crate::action::QueryEntities;
use crate::action::query::merged::Merged;
use crate::action::query::parallel::ParallelQuery;
use crate::entity::Stored;
use crate::error::Error;
use crate::query::{EntityStream, Page, PageToken, Selection, Whole};

impl<I: IndexEntry, S: Selection<I>, O> ParallelQuery<I, S, O> {
    /// As [`QueryEntities::unverified`].
    pub fn unverified(self) -> ParallelQuery<I, Unverified<S>, O> {
        self.map(QueryEntities::unverified)
    }
}

impl<I: IndexEntry, O> ParallelQuery<I, Whole<I>, O> {
    /// As [`QueryEntities::follow`]: the entities come in the order in which their entries do.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// # for (department, id, email) in [("Sales", 1, "alan"), ("Legal", 2, "ada"), ("Sales", 3, "grace")] {
    /// #     table.insert(&Employee::new(department, id, email)).await?;
    /// # }
    /// let by_email = table.query::<ByEmail>().partitions(["Sales", "Legal"]).merged();
    /// let page = by_email.take(2).follow().page(None).await?;
    /// assert_eq!((page.items[0].id, page.items[1].id), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(self) -> FollowEntries<I, Self> {
        FollowEntries::new(self)
    }
}

impl<I: IndexEntry, O> FollowEntries<I, ParallelQuery<I, Whole<I>, O>> {
    fn into_parts(self) -> (ParallelQuery<I, Unverified<Whole<I>>, O>, Follow) {
        let mut parts = self.query;
        let follow = Follow::of(&mut parts.query);
        (parts.unverified(), follow)
    }
}

impl<I: IndexEntry> FollowEntries<I, ParallelQuery<I>> {
    /// As [`ParallelQuery::stream`], with up to eight entities that are read at a time.
    pub fn stream(self) -> EntityStream<Stored<I::Entity>> {
        let (entries, follow) = self.into_parts();
        EntityStream::first(None, follow.all(entries.stream()))
    }

    /// All entities at once.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::collect`].
    pub async fn collect(self) -> Result<Vec<Stored<I::Entity>>, Error> {
        self.stream().collect_all().await
    }
}

impl<I: IndexEntry> FollowEntries<I, ParallelQuery<I, Whole<I>, Merged>> {
    /// As the stream of a [merged](ParallelQuery::merged) query, with up to eight entities that are
    /// read at a time.
    pub fn stream(self) -> EntityStream<Stored<I::Entity>> {
        let (entries, follow) = self.into_parts();
        EntityStream::first(None, follow.all(entries.stream()))
    }

    /// All entities at once.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::collect`].
    pub async fn collect(self) -> Result<Vec<Stored<I::Entity>>, Error> {
        self.stream().collect_all().await
    }

    /// The entities of one page of entries. As the page of a query that is
    /// [followed](FollowEntries::page), it may have fewer items than were asked for.
    ///
    /// # Errors
    ///
    /// As the page of a query that is [followed](FollowEntries::page).
    pub async fn page(
        self,
        token: impl Into<Option<PageToken>> + Send,
    ) -> Result<Page<Stored<I::Entity>>, Error> {
        let (entries, follow) = self.into_parts();
        follow.page(entries.page(token).await?).await
    }
}
