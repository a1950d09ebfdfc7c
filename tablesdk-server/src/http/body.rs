//! Bodies: those of requests, within bounds of size, time and memory, and those of answers, which tell when hyper has them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;
use tablesdk_protocol::{ErrorCode, ServiceError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::progress::Progress;

/// A whole body, and the room that it takes from others for as long as this lives.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// Reads a body to its end, once there is room for it. Nothing is read of one that says it is too long.
///
/// `room` has one permit for each byte. All that a body may need is taken at once: bodies that wait for room while they hold
/// some could wait for each other.
///
/// # Errors
///
/// `RequestBodyTooLarge`; `InvalidInput` for one that is cut off or malformed; `OperationTimedOut`, as the caller's fault, for
/// one that comes too slowly; `ServerBusy` when there is no room for it for a while.
pub(super) async fn read(
    mut body: Incoming,
    room: &Arc<Semaphore>,
) -> Result<Received, ServiceError> {
    if body.is_end_stream() {
        return Ok(Received::default());
    }
    let too_large = || ServiceError::from(ErrorCode::RequestBodyTooLarge);
    let declared = body.size_hint().exact();
    if declared.is_some_and(exceeds_limit) {
        return Err(too_large());
    }
    let bytes_max = declared
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(REQUEST_BODY_BYTES_MAX);
    let permits = u32::try_from(bytes_max).map_err(|_| too_large())?;
    let taken = timeout(ROOM_WAIT_MAX, Arc::clone(room).acquire_many_owned(permits)).await;
    // It is never closed; but others may take their time.
    let Ok(Ok(mut taken)) = taken else {
        return Err(ErrorCode::ServerBusy.into());
    };

    // Frames are copied: each may be a byte in a buffer of its own.
    let mut bytes = match declared {
        Some(_) => BytesMut::with_capacity(bytes_max),
        None => BytesMut::new(),
    };
    let started = Instant::now();
    loop {
        let deadline = started + START_WAIT_MAX + time_for(bytes.len());
        let Ok(frame) = timeout_at(deadline, body.frame()).await else {
            return Err(too_slow());
        };
        let Some(frame) = frame else { break };
        // Cut off, or in chunks that are none.
        let frame = frame.map_err(|_| ServiceError::from(ErrorCode::InvalidInput))?;
        // Trailers mean nothing here.
        if let Some(data) = frame.data_ref() {
            if bytes.len().saturating_add(data.len()) > bytes_max {
                return Err(too_large());
            }
            bytes.extend_from_slice(data);
        }
    }
    let unused = bytes_max.saturating_sub(bytes.len());
    // A share of what was taken, so that it can be given back.
    drop(taken.split(unused));
    Ok(Received {
        bytes: bytes.freeze(),
        room: Some(taken),
    })
}

/// How long so many bytes may take.
fn time_for(bytes: usize) -> Duration {
    let millis = u64::try_from(bytes)
        .unwrap_or(u64::MAX)
        .saturating_mul(1000)
        / PACE_MIN;
    Duration::from_millis(millis)
}

/// Whether a body of that many bytes is more than a request may have.
pub(crate) fn exceeds_limit(bytes: impl TryInto<usize>) -> bool {
    bytes
        .try_into()
        .map_or(true, |bytes| bytes > REQUEST_BODY_BYTES_MAX)
}

// SERVICE: its own code for this goes with a 500, but it is not the server that was slow.
fn too_slow() -> ServiceError {
    ServiceError::from(ErrorCode::OperationTimedOut).with_status(StatusCode::REQUEST_TIMEOUT)
}

/// The body of an answer. It says when hyper has taken it over.
#[derive(Debug)]
pub(super) struct Reply {
    bytes: Option<Bytes>,
    progress: Arc<Progress>,
}

impl Reply {
    pub(super) fn new(bytes: Bytes, progress: Arc<Progress>) -> Self {
        Self {
            bytes: Some(bytes),
            progress,
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.bytes.take().filter(|bytes| !bytes.is_empty());
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    /// An empty body does not end before it was looked at: only then does hyper send a `Content-Length: 0` with a 204.
    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.progress.answered();
    }
}

/// The bodies that are read at a time, all together. Others wait.
pub(crate) const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The longest wait for room.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(30);
/// By how much a body may lag behind the pace.
const START_WAIT_MAX: Duration = Duration::from_secs(30);
/// The pace: the fewest bytes a second, on the average from the start. What comes slower takes room from others for too long.
const PACE_MIN: u64 = 32 * 1024;
