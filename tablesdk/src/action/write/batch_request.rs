//! Sends changes as one entity group transaction, and reads the response. This module knows neither the purpose of the changes nor
//! how an ambiguous outcome is resolved.

use bytes::Bytes;
use http::{Request as HttpRequest, Response as HttpResponse, StatusCode};
use tablesdk_protocol::ETag;
use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;
use tablesdk_protocol::operation::batch::{Change, Refusal, Request, Response};

use super::ambiguous_write::{check_status, malformed_success};
use super::change::etag_of;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, SendOptions};
use crate::random::random_guid;

/// The changes of a transaction, ready to be sent.
pub(in crate::action) struct BatchRequest {
    request: Request,
    encoded: HttpRequest<Bytes>,
}

/// The result of a transaction whose changes were all carried out.
pub(in crate::action) struct Done {
    /// The new ETags of the entities, in the order of the changes; `None` for a delete.
    pub(in crate::action) etags: Vec<Option<ETag>>,
    /// An earlier attempt got no response, and may be carried out later.
    pub(in crate::action) is_after_ambiguous: bool,
}

impl BatchRequest {
    /// Refuses changes that are too large together.
    pub(in crate::action) fn new<'c>(
        run: &OperationRun<'_>,
        changes: impl IntoIterator<Item = &'c Change>,
    ) -> Result<Self, Error> {
        let request = Request::Changes(changes.into_iter().cloned().collect());
        let pipeline = run.pipeline();
        let adapt = |change: &mut _| pipeline.adapt(change);
        let encoded = request.encode_with(&pipeline.endpoint, random_guid(), adapt);
        let bytes = encoded.body().len();
        if bytes > REQUEST_BODY_BYTES_MAX {
            return Err(run.annotate(Error::input(TooLarge { bytes })));
        }
        Ok(Self { request, encoded })
    }

    /// Sends it. The error is [ambiguous](Error::is_ambiguous) when it may have been carried out all the same.
    pub(in crate::action) async fn send(&self, run: &mut OperationRun<'_>) -> Result<Done, Error> {
        let inspect = |response: &HttpResponse<_>| match Response::decode(response, &self.request) {
            Ok(Response::Refused(refusal)) => Some(Refusal::read(&refusal)),
            _ => None,
        };
        let options = SendOptions {
            inspect: &inspect,
            ..SendOptions::default()
        };
        let sent = run.send_with(Effect::Write, &self.encoded, options).await?;
        let etags = self.etags(&sent.response);
        Ok(Done {
            etags: etags.map_err(|error| run.annotate(error))?,
            is_after_ambiguous: sent.is_after_ambiguous,
        })
    }

    fn etags(&self, response: &HttpResponse<Bytes>) -> Result<Vec<Option<ETag>>, Error> {
        check_status(response, &[StatusCode::ACCEPTED])?;
        match (Response::decode(response, &self.request), &self.request) {
            (Ok(Response::Changed(responses)), Request::Changes(changes)) => {
                let etags = changes.iter().zip(responses);
                let etags = etags.map(|(change, response)| etag_of(change, response));
                etags.collect::<Result<_, _>>().map_err(malformed_success)
            }
            (Ok(_), _) => Err(malformed_success(
                "the response is not one to these changes",
            )),
            (Err(error), _) => Err(malformed_success(error)),
        }
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a batch of {bytes} bytes is larger than {REQUEST_BODY_BYTES_MAX}")]
struct TooLarge {
    bytes: usize,
}
