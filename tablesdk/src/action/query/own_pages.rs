//! The pages of a query of the client's own. Sends nothing.

use bytes::Bytes;
use http::{Request as HttpRequest, Response as HttpResponse};
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::operation::query_entities::Response;
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, read_page};

use super::request::QueryRequest;
use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::query::Continuations;

/// The pages of a query that also finds markers, entries of an outbox and the like, which queries
/// of a program leave out.
pub(crate) struct OwnPages {
    query: QueryRequest,
    sent: Option<EntityContinuation>,
    next: Option<EntityContinuation>,
    continuations: Continuations<EntityContinuation>,
}

impl OwnPages {
    pub(crate) const fn new(query: QueryRequest) -> Self {
        Self {
            query,
            sent: None,
            next: None,
            continuations: Continuations::new(),
        }
    }

    /// The request for the page.
    pub(crate) fn request(&self, pipeline: &Pipeline) -> Result<HttpRequest<Bytes>, Error> {
        self.query.for_page(None, self.sent.clone(), pipeline)
    }

    /// The entities of the page, each as it is read. SERVICE: a page may be empty although others
    /// follow.
    pub(crate) fn read<T>(
        &mut self,
        response: HttpResponse<Bytes>,
        read: impl Fn(&JsonEntity<'_>) -> T,
    ) -> Result<Vec<T>, Error> {
        let Response {
            content,
            continuation,
        } = Response::decode(response);
        let mut entities = Vec::new();
        let listed = read_page(&content, |entity| {
            entities.push(read(entity));
            Ok::<_, JsonError>(())
        });
        listed.map_err(Error::response)?;
        self.next = continuation;
        Ok(entities)
    }

    pub(crate) const fn is_last(&self) -> bool {
        self.next.is_none()
    }

    /// Goes on to the next page. Refuses one that was read.
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        let next = self.next.take();
        let advanced = self
            .continuations
            .advance(self.sent.as_ref(), next.as_ref());
        advanced.map_err(Error::response)?;
        self.sent = next;
        Ok(())
    }
}
