//! Bodies of requests, within limits of size, time and memory, and bodies of responses, which report when hyper has taken them.

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
use tokio::time::{Instant, sleep_until, timeout_at};

use super::progress::Progress;
use crate::request::memory::{GRACE, RequestMemory, Reservation, SMALL_BYTES_MAX};

/// A whole body, and the memory that it takes from others for as long as this lives.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    pub(super) memory: Option<Reservation>,
}

/// Reads a body to its end. Nothing is read of one that says it is too long.
///
/// A body holds next to nothing before its bytes come. Once they do, all that the body may need is taken at once: bodies that wait
/// for memory while they hold much of it could wait for each other.
///
/// # Errors
///
/// `RequestBodyTooLarge`; `InvalidInput` for one that is cut off or malformed; `OperationTimedOut`, as the caller's fault, for
/// one that comes too slowly; `ServerBusy` when there is no memory for it for a while.
pub(super) async fn read(
    mut body: Incoming,
    memory: &RequestMemory,
) -> Result<Received, ServiceError> {
    if body.is_end_stream() {
        return Ok(Received::default());
    }
    let too_large = || ServiceError::from(ErrorCode::RequestBodyTooLarge);
    let declared = body.size_hint().exact();
    if declared.is_some_and(exceeds_limit) {
        return Err(too_large());
    }
    let declared = declared.and_then(|length| usize::try_from(length).ok());
    let bytes_max = declared.unwrap_or(REQUEST_BODY_BYTES_MAX);

    // Frames are copied: each may be a byte in a buffer of its own.
    let mut bytes = BytesMut::with_capacity(declared.unwrap_or(0).min(SMALL_BYTES_MAX));
    let mut reserved: Option<Reservation> = None;
    let mut started = Instant::now();
    loop {
        let deadline = started + START_WAIT_MAX + time_for(bytes.len());
        let frame = tokio::select! {
            biased;
            frame = timeout_at(deadline, body.frame()) => frame.map_err(|_| too_slow())?,
            () = until_cut(reserved.as_ref()) => return Err(too_slow()),
            // Its connection may be needed, though it has no memory.
            () = sleep_until(started + GRACE), if reserved.is_none() => {
                let reservation = memory.reserve_body(0).await?;
                reservation.transfer().begin();
                reserved = Some(reservation);
                continue;
            }
        };
        let Some(frame) = frame else { break };
        // Cut off, or malformed chunks.
        let frame = frame.map_err(|_| ServiceError::from(ErrorCode::InvalidInput))?;
        // Trailers mean nothing here.
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let length = bytes.len().saturating_add(data.len());
        if length > bytes_max {
            return Err(too_large());
        }
        if length > SMALL_BYTES_MAX && reserved.as_ref().is_none_or(Reservation::is_empty) {
            let waits = Instant::now();
            let reservation = memory.reserve_body(bytes_max).await?;
            reservation.transfer().begin();
            reserved = Some(reservation);
            started += waits.elapsed();
            if declared.is_some() {
                bytes.reserve(bytes_max - bytes.len());
            }
        }
        if let Some(reserved) = &reserved {
            reserved.transfer().moved(data.len());
        }
        bytes.extend_from_slice(data);
    }
    if let Some(reserved) = &mut reserved {
        reserved.try_resize(bytes.len());
        reserved.end_transfer();
    }
    Ok(Received {
        bytes: bytes.freeze(),
        memory: reserved,
    })
}

/// Resolves when others need the memory of a body that has stalled.
async fn until_cut(reserved: Option<&Reservation>) {
    match reserved {
        Some(reserved) => reserved.transfer().until_cut().await,
        None => std::future::pending().await,
    }
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
    /// `memory` is held until all bytes are with the system.
    pub(super) fn new(bytes: Bytes, memory: Option<Reservation>, progress: Arc<Progress>) -> Self {
        let bytes = match memory {
            Some(memory) => {
                progress.sends(Arc::clone(memory.transfer()));
                Bytes::from_owner(Reserved {
                    bytes,
                    _memory: memory,
                })
            }
            None => bytes,
        };
        Self {
            bytes: Some(bytes),
            progress,
        }
    }
}

/// Bytes that give their memory back when hyper lets go of them.
struct Reserved {
    bytes: Bytes,
    _memory: Reservation,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
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

/// By how much a body may lag behind the pace.
const START_WAIT_MAX: Duration = Duration::from_secs(30);
/// The pace: the fewest bytes a second, on the average from the start. What comes slower takes room from others for too long.
const PACE_MIN: u64 = 32 * 1024;
