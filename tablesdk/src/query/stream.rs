//! Items as a stream: the one place that follows continuations.

use std::fmt;
use std::future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::stream;

use crate::Error;

/// The items of a query, page by page fetched as they are consumed. Ends after the first error.
pub struct EntityStream<T> {
    items: Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>,
}

impl<T: Send + 'static> EntityStream<T> {
    /// Reads page after page, each from where the one before ended, until there is no more or `take` items were read.
    ///
    /// `fetch` gets the largest `$top` that still makes sense, and the continuation.
    pub(crate) fn follow<C, F, R>(
        take: Option<usize>,
        page_size: Option<usize>,
        mut fetch: F,
    ) -> Self
    where
        C: Send + 'static,
        F: FnMut(Option<usize>, Option<C>) -> R + Send + 'static,
        R: Future<Output = Result<(Vec<T>, Option<C>), Error>> + Send,
    {
        let items = async_stream::try_stream! {
            let mut left = take;
            let mut continuation = None;
            while left != Some(0) {
                let top = match (left, page_size) {
                    (Some(left), Some(size)) => Some(left.min(size)),
                    (left, size) => left.or(size),
                };
                let (page, next) = fetch(top, continuation).await?;
                for item in page {
                    // A page may hold more than was asked for, on a backend that ignores `$top`.
                    if left == Some(0) {
                        break;
                    }
                    left = left.map(|left| left - 1);
                    yield item;
                }
                continuation = next;
                // An empty page with a continuation is not the end.
                if continuation.is_none() {
                    break;
                }
            }
        };
        Self {
            items: Box::pin(items),
        }
    }

    /// A stream of nothing but an error.
    pub(crate) fn failed(error: Error) -> Self {
        Self {
            items: Box::pin(stream::once(future::ready(Err(error)))),
        }
    }
}

impl<T> Stream for EntityStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(cx)
    }
}

impl<T> fmt::Debug for EntityStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntityStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::{Arc, Mutex};

    use futures_util::TryStreamExt as _;

    use super::*;

    async fn read(
        take: Option<usize>,
        page_size: Option<usize>,
        pages: &[&[u32]],
    ) -> (Vec<u32>, Vec<Option<usize>>) {
        let pages: Vec<Vec<u32>> = pages.iter().map(|page| page.to_vec()).collect();
        let tops = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&tops);
        let stream = EntityStream::follow(take, page_size, move |top, position: Option<usize>| {
            seen.lock().unwrap().push(top);
            let position = position.unwrap_or(0);
            let next = (position + 1 < pages.len()).then_some(position + 1);
            ready(Ok((pages[position].clone(), next)))
        });
        let items = stream.try_collect().await.unwrap();
        let tops = tops.lock().unwrap().clone();
        (items, tops)
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
