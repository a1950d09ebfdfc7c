//! Sends changes as one entity group transaction, and reads the response. This module knows neither
//! the purpose of the changes nor how an ambiguous outcome is resolved.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Request as HttpRequest, Response as HttpResponse, StatusCode};
use tablesdk_protocol::ETag;
use tablesdk_protocol::operation::MalformedResponse;
use tablesdk_protocol::operation::batch::{Change, Response};

use super::response::{check_status, malformed_success};
use crate::error::Error;
use crate::pipeline::{Effect, NoSuccess, OperationRun, SendOptions};

/// The changes of a transaction, ready to be sent.
pub(crate) struct BatchRequest<'c> {
    changes: Vec<&'c Change>,
    encoded: HttpRequest<Bytes>,
}

/// The result of a transaction whose changes were all carried out.
pub(crate) struct Done {
    /// The new ETags of the entities, in the order of the changes; `None` for a delete.
    pub(crate) etags: Vec<Option<ETag>>,
    /// An earlier attempt got no response, and may be carried out later.
    pub(crate) is_after_ambiguous: bool,
}

impl<'c> BatchRequest<'c> {
    /// Refuses changes that are too large together.
    pub(crate) fn new(
        run: &OperationRun<'_>,
        changes: impl IntoIterator<Item = &'c Change>,
    ) -> Result<Self, Error> {
        let changes: Vec<_> = changes.into_iter().collect();
        let encoded = run.pipeline().encode_batch(changes.iter().copied());
        let (bytes, limit) = (encoded.body().len(), run.pipeline().batch_bytes_max());
        if bytes > limit {
            return Err(run.annotate(Error::input(TooLarge { bytes, limit })));
        }
        Ok(Self { changes, encoded })
    }

    /// Sends it. The error is [ambiguous](Error::is_ambiguous) when it may have been carried out
    /// all the same.
    pub(crate) async fn send(&self, run: &mut OperationRun<'_>) -> Result<Done, Error> {
        // What was read of a response, so that it is read once.
        let decoded = Mutex::new(None);
        let read_refusal = run.pipeline().refusal_reader();
        let inspect = |response: &HttpResponse<_>| {
            let read = Response::decode_changes(response, self.changes.len());
            let refusal = match &read {
                Ok(Response::Refused(refusal)) => Some(NoSuccess::Refused(read_refusal(refusal))),
                _ => None,
            };
            *decoded.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
            refusal
        };
        let options = SendOptions {
            inspect: &inspect,
            ..SendOptions::default()
        };
        let sent = run.send_with(Effect::Write, &self.encoded, options).await?;
        let decoded = decoded.into_inner().unwrap_or_else(PoisonError::into_inner);
        let etags = self.etags(&sent.response, decoded);
        Ok(Done {
            etags: etags.map_err(|error| run.annotate(error))?,
            is_after_ambiguous: sent.is_after_ambiguous,
        })
    }

    fn etags(
        &self,
        response: &HttpResponse<Bytes>,
        decoded: Option<Result<Response, MalformedResponse>>,
    ) -> Result<Vec<Option<ETag>>, Error> {
        check_status(response, &[StatusCode::ACCEPTED])?;
        match decoded {
            Some(Ok(Response::Changed(etags))) => {
                let etags = self.changes.iter().zip(etags);
                let etags = etags.map(|(change, etag)| change.new_etag(etag));
                etags.collect::<Result<_, _>>().map_err(malformed_success)
            }
            Some(Err(error)) => Err(malformed_success(error)),
            _ => Err(malformed_success(
                "the response is not one to these changes",
            )),
        }
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a batch of {bytes} bytes is larger than {limit}")]
struct TooLarge {
    bytes: usize,
    limit: usize,
}
