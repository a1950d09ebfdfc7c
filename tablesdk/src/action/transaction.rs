//! Sends changes as one entity group transaction, and reads the response. This module knows neither the purpose of the changes nor
//! how an ambiguous outcome is resolved.

use bytes::Bytes;
use http::{Request as HttpRequest, Response as HttpResponse, StatusCode};
use tablesdk_protocol::ETag;
use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;
use tablesdk_protocol::operation::batch::{Change, Refusal, Request, Response};
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::operation::{MalformedResponse, insert_entity, update_entity};

use super::ambiguous_write::{check_status, malformed_success};
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, random_guid};

/// The changes of a transaction, ready to be sent.
pub(super) struct Transaction {
    request: Request,
    encoded: HttpRequest<Bytes>,
}

/// What came of a transaction: all of it was carried out.
pub(super) struct Done {
    /// The versions that the entities have now, in the order of the changes; `None` for a delete.
    pub(super) etags: Vec<Option<ETag>>,
    /// An attempt before it was not answered, and may be carried out later still.
    pub(super) is_after_ambiguous: bool,
}

impl Transaction {
    /// Refuses changes that are too large together.
    pub(super) fn new(run: &OperationRun<'_>, changes: Vec<Change>) -> Result<Self, Error> {
        let request = Request::Changes(changes);
        let pipeline = run.pipeline();
        let adapt = |change: &mut _| pipeline.adapt(change);
        let encoded = request.encode_with(&pipeline.endpoint, random_guid(), adapt);
        let bytes = encoded.body().len();
        if bytes > REQUEST_BODY_BYTES_MAX {
            return Err(run.annotate(Error::input(TooLarge { bytes })));
        }
        Ok(Self { request, encoded })
    }

    pub(super) fn changes(&self) -> &[Change] {
        match &self.request {
            Request::Changes(changes) => changes,
            Request::Query(_) => &[],
        }
    }

    /// Sends it. The error is [ambiguous](Error::is_ambiguous) when it may have been carried out all the same.
    pub(super) async fn send(&self, run: &mut OperationRun<'_>) -> Result<Done, Error> {
        let inspect = |answer: &HttpResponse<_>| match Response::decode(answer, &self.request) {
            Ok(Response::Refused(answer)) => Some(Refusal::read(&answer)),
            _ => None,
        };
        let answer = run
            .send_inspected(Effect::Write, &self.encoded, &inspect)
            .await?;
        let etags = check_status(&answer, &[StatusCode::ACCEPTED]).and_then(|()| {
            match Response::decode(&answer.response, &self.request) {
                Ok(Response::Changed(answers)) => {
                    etags(answers, self.changes()).map_err(malformed_success)
                }
                Ok(_) => Err(malformed_success("the answer is not one to these changes")),
                Err(error) => Err(malformed_success(error)),
            }
        });
        Ok(Done {
            etags: etags.map_err(|error| run.annotate(error))?,
            is_after_ambiguous: answer.is_after_ambiguous,
        })
    }
}

/// What should be there after a change, and whether nothing else should.
pub(super) fn content(change: &Change) -> (Option<&Bytes>, bool) {
    match change {
        Change::Delete(_) => (None, true),
        Change::Insert(request) => (Some(request.entity.as_bytes()), true),
        Change::Update(request) => {
            let whole = request.mode == Mode::Replace;
            (Some(request.entity.as_bytes()), whole)
        }
    }
}

fn etags(
    answers: Vec<HttpResponse<Bytes>>,
    changes: &[Change],
) -> Result<Vec<Option<ETag>>, MalformedResponse> {
    let etags = answers.into_iter().zip(changes);
    let etags = etags.map(|(answer, change)| match change {
        Change::Delete(_) => Ok(None),
        Change::Insert(_) => insert_entity::Response::decode(answer).map(|it| Some(it.etag)),
        Change::Update(_) => update_entity::Response::decode(&answer).map(|it| Some(it.etag)),
    });
    etags.collect()
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a batch of {bytes} bytes is larger than {REQUEST_BODY_BYTES_MAX}")]
struct TooLarge {
    bytes: usize,
}
