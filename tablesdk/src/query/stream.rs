//! Items as a stream: the only module that follows continuations, and that knows which errors end a
//! stream.

use std::fmt;
use std::future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::vec;

use futures_core::Stream;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::task::JoinSet;

use crate::error::Error;
use crate::pipeline::{in_current_span, joined_of, read_ahead};

/// The items of a query. Pages are fetched as items are consumed.
///
/// For an entity that cannot be read, the stream yields an error with its key, and continues. It
/// ends after any other error.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use futures::TryStreamExt;
/// use tablesdk::Stored;
/// use tablesdk::query::EntityStream;
///
/// // A stream has a type with a name, and borrows nothing.
/// struct Payroll {
///     employees: EntityStream<Stored<Employee>>,
/// }
///
/// let mut payroll = Payroll { employees: table.query::<Employee>().stream() };
/// while let Some(employee) = payroll.employees.try_next().await? {
///     println!("{}", employee.name);
/// }
/// # Ok(())
/// # }
/// ```
pub struct EntityStream<T> {
    /// The rest of the current page.
    page: vec::IntoIter<Result<T, Error>>,
    rest: Rest<T>,
}

/// The items after those of the current page.
enum Rest<T> {
    Pages(Items<Vec<Result<T, Error>>>),
    Items(Items<T>),
}

type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>;

impl<T: Send + 'static> EntityStream<T> {
    /// Reads page after page, each from the end of the page before, until there are no more items
    /// or `take` items were read.
    ///
    /// `fetch` gets the continuation and the largest `$top` that is still useful.
    pub(crate) fn follow<C, F, R>(pages: Pages, mut fetch: F) -> Self
    where
        C: Send + 'static,
        F: FnMut(Option<usize>, Option<C>) -> R + Send + 'static,
        R: Future<Output = Fetched<T, C>> + Send + 'static,
    {
        // An item may be the error of one entity. An error of a page ends the stream.
        let pages = async_stream::try_stream! {
            let mut left = pages.take;
            let mut continuation = None;
            // The next page, where it is fetched ahead. Dropped, it is given up.
            let mut ahead: JoinSet<Fetched<T, C>> = JoinSet::new();
            while left != Some(0) {
                let (mut page, next) = match ahead.join_next().await {
                    Some(joined) => joined_of(joined)??,
                    None => fetch(pages.top(left), continuation.take()).await?,
                };
                if let Some(left) = &mut left {
                    // A page may hold more than was asked for, on a backend that ignores `$top`.
                    page.truncate(*left);
                    *left -= page.len();
                }
                let is_last = next.is_none();
                if pages.prefetch && !is_last && left != Some(0) {
                    ahead.spawn(in_current_span(fetch(pages.top(left), next)));
                } else {
                    continuation = next;
                }
                yield page;
                // An empty page with a continuation is not the end.
                if is_last {
                    break;
                }
            }
        };
        Self::of(Rest::Pages(Box::pin(pages)))
    }

    fn of(rest: Rest<T>) -> Self {
        Self {
            page: Vec::new().into_iter(),
            rest,
        }
    }

    /// All items, or the first error.
    pub(crate) async fn collect_all(self) -> Result<Vec<T>, Error> {
        let mut pages = match self.rest {
            Rest::Pages(pages) => pages,
            Rest::Items(items) => return items.try_collect().await,
        };
        let mut items = Vec::new();
        while let Some(page) = pages.try_next().await? {
            if items.is_empty() {
                // In the memory of the page.
                items = page.into_iter().collect::<Result<_, _>>()?;
            } else {
                items.reserve(page.len());
                for item in page {
                    items.push(item?);
                }
            }
        }
        Ok(items)
    }

    /// The first `take` items of a stream, or all, up to the first error that is not about one
    /// entity.
    pub(crate) fn first(
        take: Option<usize>,
        items: impl Stream<Item = Result<T, Error>> + Send + 'static,
    ) -> Self {
        let items = async_stream::stream! {
            let mut items = pin!(items);
            let mut left = take;
            while left != Some(0) && let Some(item) = items.next().await {
                left = left.map(|left| left - 1);
                let is_end = matches!(&item, Err(error) if !error.is_about_one_entity());
                yield item;
                if is_end {
                    break;
                }
            }
        };
        Self::of(Rest::Items(Box::pin(items)))
    }

    /// The stream, read in a task of its own, up to that many items ahead of the consumer.
    pub(crate) fn read_ahead(self, items: usize) -> Self {
        Self::of(Rest::Items(Box::pin(read_ahead(self, items))))
    }

    /// A stream of nothing but an error.
    pub(crate) fn failed(error: Error) -> Self {
        let items = stream::once(future::ready(Err(error)));
        Self::of(Rest::Items(Box::pin(items)))
    }
}

/// A page and the continuation, if there is one.
type Fetched<T, C> = Result<(Vec<Result<T, Error>>, Option<C>), Error>;

/// How a query is read page by page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pages {
    /// That many items in all.
    pub(crate) take: Option<usize>,
    /// That many a request.
    pub(crate) page_size: Option<usize>,
    /// The next page is fetched while one is consumed.
    pub(crate) prefetch: bool,
    /// A single page is one response, also if that is empty.
    pub(crate) one_response: bool,
}

impl Pages {
    /// The number of items to ask for in a request, when that many are left to read.
    pub(crate) fn top(self, left: Option<usize>) -> Option<usize> {
        match (left, self.page_size) {
            (Some(left), Some(size)) => Some(left.min(size)),
            (left, size) => left.or(size),
        }
    }
}

impl<T> Stream for EntityStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.page.next() {
                return Poll::Ready(Some(item));
            }
            let pages = match &mut self.rest {
                Rest::Pages(pages) => pages,
                Rest::Items(items) => return items.as_mut().poll_next(cx),
            };
            match ready!(pages.as_mut().poll_next(cx)) {
                Some(Ok(page)) => self.page = page.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// No item is pinned.
impl<T> Unpin for EntityStream<T> {}

impl<T> fmt::Debug for EntityStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntityStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    use super::*;

    async fn read(
        take: Option<usize>,
        page_size: Option<usize>,
        pages: &[&[u32]],
    ) -> (Vec<u32>, Vec<Option<usize>>) {
        let pages: Vec<Vec<u32>> = pages.iter().map(|page| page.to_vec()).collect();
        let tops = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&tops);
        let fetch = move |top, position: Option<usize>| {
            seen.lock().unwrap().push(top);
            let position = position.unwrap_or(0);
            let next = (position + 1 < pages.len()).then_some(position + 1);
            let page = pages[position].iter().copied().map(Ok).collect();
            ready(Ok((page, next)))
        };
        let how = Pages {
            take,
            page_size,
            ..Pages::default()
        };
        let stream = EntityStream::follow(how, fetch.clone());
        let items: Vec<_> = stream.try_collect().await.unwrap();
        let one_by_one = std::mem::take(&mut *tops.lock().unwrap());
        // Reading ahead changes neither what is read nor what is asked for.
        let how = Pages {
            prefetch: true,
            ..how
        };
        let ahead: Vec<_> = EntityStream::follow(how, fetch)
            .try_collect()
            .await
            .unwrap();
        assert_eq!((&ahead, &*tops.lock().unwrap()), (&items, &one_by_one));
        (items, one_by_one)
    }

    #[tokio::test]
    async fn empty_pages_are_followed() {
        let (items, tops) = read(None, None, &[&[], &[1], &[], &[], &[2], &[]]).await;
        assert_eq!((items, tops.len()), (vec![1, 2], 6));
    }

    #[tokio::test]
    async fn take_is_exact_and_asks_for_no_more() {
        let (items, tops) = read(Some(3), Some(2), &[&[1, 2], &[3, 4], &[5]]).await;
        assert_eq!((items, tops), (vec![1, 2, 3], vec![Some(2), Some(1)]));
        let (items, tops) = read(Some(2), None, &[&[1, 2], &[3]]).await;
        assert_eq!((items, tops), (vec![1, 2], vec![Some(2)]));
        let (items, tops) = read(Some(0), None, &[&[1]]).await;
        assert_eq!((items, tops), (vec![], vec![]));
    }
}
