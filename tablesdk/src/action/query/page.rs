//! `page`: one page of a query, for programs that show a page at a time.

use crate::action::QueryEntities;
use crate::action::refusal::refused;
use crate::entity::TableEntity;
use crate::error::Error;
use crate::query::{Page, PageToken, Selection, of_token};

use super::request::OPERATION;

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// Reads one page: as many items as [`page_size`](Self::page_size) or the service puts into a
    /// page, or exactly [`take`](Self::take) items, if there are as many. The page begins at the
    /// token, or at the start without one. Empty responses are skipped, unless a page is
    /// [`one_response`](Self::one_response).
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// use tablesdk::query::PageToken;
    ///
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let query = || table.query::<Employee>().partition("Sales").take(2);
    /// let page = query().page(None).await?;
    /// assert_eq!(page.items.len(), 2);
    ///
    /// let text = page.next.expect("there is a third").to_string();
    /// let token: PageToken = text.parse()?;
    /// let page = query().page(token).await?;
    /// assert_eq!(page.items[0].id, "3");
    /// assert!(page.next.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the
    /// token comes from a query of another table, filter or projection.
    ///
    /// When an entity cannot be read, the page is an error, and no item of it is returned: a page
    /// without the entity would hide the loss. [`Error::next_page`] then returns the token of the
    /// next page. [`skip_unreadable`](Self::skip_unreadable) returns the other items of the page.
    #[doc(alias("by_page", "as_pages", "execute_query_segmented"))]
    pub async fn page(
        self,
        token: impl Into<Option<PageToken>> + Send,
    ) -> Result<Page<S::Item>, Error> {
        let token: Option<PageToken> = token.into();
        if token.is_some() {
            self.load().await?;
        }
        let (query, pages) = self.into_paged()?;
        let take = pages.take;
        let fingerprints = query.fingerprints()?;
        let fingerprint = fingerprints.first().copied().unwrap_or_default();
        let mut is_of_token = token.is_some();
        let mut continuation = token
            .map(|token| token.into_continuation_of(&fingerprints))
            .transpose()
            .map_err(|error| query.refuse(error))?;
        if take == Some(0) {
            return Err(query.refuse("a page of no items leads nowhere"));
        }
        let mut items = Vec::new();
        loop {
            let left = take.map(|take| take - items.len());
            let page = Box::pin(query.page::<E>(pages.top(left), continuation));
            let (more, next) = match page.await {
                Err(error) if is_of_token => {
                    return Err(query.locate(of_token(error)));
                }
                page => page?,
            };
            is_of_token = false;
            if left.is_some_and(|left| more.len() > left) {
                // The token would be after items that the caller does not get.
                return Err(query.fail(Error::response(TooManyError)));
            }
            let token_of_next = || {
                let next = next.clone();
                next.map(|next| PageToken::new(fingerprint, next))
            };
            let more = more
                .into_iter()
                .map(|item| item.map_err(|error| error.with_next_page(token_of_next())));
            if items.is_empty() {
                // In the memory of the page.
                items = more.collect::<Result<_, _>>()?;
            } else {
                for item in more {
                    items.push(item?);
                }
            }
            let is_full = match take {
                Some(take) => items.len() == take,
                None => !items.is_empty(),
            };
            if is_full || pages.one_response || next.is_none() {
                let next = token_of_next();
                return Ok(Page { items, next });
            }
            continuation = next;
        }
    }

    /// As [`page`](Self::page), with the token as a string: for a web handler that gets it from the
    /// query string of its URL. Without a token, or with an empty one (`?next=`), the page is the
    /// first one.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// use tablesdk::TableClient;
    /// use tablesdk::query::Page;
    ///
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// // GET /employees?next=…
    /// async fn employees(table: &TableClient, next: Option<String>) -> Result<Page<Employee>, tablesdk::Error> {
    ///     table.query().partition("Sales").values().take(2).page_after(next.as_deref()).await
    /// }
    /// let first = employees(&table, Some(String::new())).await?;
    /// let next = first.next.expect("there is a third employee").to_string();
    /// assert_eq!(employees(&table, Some(next)).await?.items[0].id, "3");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the string
    /// is not a page token.
    pub async fn page_after(self, token: Option<&str>) -> Result<Page<S::Item>, Error> {
        let token = PageToken::optional(token).map_err(|error| {
            let error = refused(OPERATION, error);
            self.table.pipeline.locate(error)
        })?;
        self.page(token).await
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the service returned more items than were requested")]
struct TooManyError;
