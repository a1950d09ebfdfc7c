//! Bodies of requests, within limits of size, time and memory, and bodies of responses, which
//! report when hyper has taken them.

use std::future::poll_fn;
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

use super::connection_state::ConnectionState;
use crate::request::connection::Broken;
use crate::request::memory::{GRACE, RequestMemory, Reservation, SMALL_BYTES_MAX};

/// A complete body, and the memory of the budget that it uses.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    pub(super) memory: Option<Reservation>,
}

/// Reads a body to its end. A body whose announced length exceeds the limit is not read.
///
/// A body holds almost no memory before its bytes arrive. Then all the memory that it may need is
/// reserved at once, because bodies that hold memory while they wait for more could wait for each
/// other. Each limit has a test in `http/tests`: `trickling_bodies_time_out`,
/// `absent_bodies_hold_no_memory`, `stalled_bodies_release_their_memory`.
///
/// # Errors
///
/// `RequestBodyTooLarge`; `InvalidInput` if the body is truncated or malformed; `OperationTimedOut`
/// with status 408 if it arrives too slowly; `ServerBusy` if there is no memory for it for some
/// seconds.
pub(super) async fn read(
    mut body: Incoming,
    memory: &RequestMemory,
) -> Result<Received, ServiceError> {
    if body.is_end_stream() {
        return Ok(Received::default());
    }
    let declared = body.size_hint().exact();
    if declared.is_some_and(exceeds_limit) {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let declared = declared.and_then(|length| usize::try_from(length).ok());
    let first = first_frame(&mut body).await;
    if let Some(Some(Ok(frame))) = &first
        && let Some(data) = frame.data_ref()
        && declared == Some(data.len())
        && data.len() <= SMALL_BYTES_MAX
    {
        // Most small bodies are in the buffer of the connection, with their head. They need neither
        // a copy nor a timer.
        return Ok(Received {
            bytes: data.clone(),
            memory: None,
        });
    }
    Box::pin(read_frames(body, first, declared, memory)).await
}

/// The next frame, as [`Body::poll_frame`] returns it.
type NextFrame = Option<Result<Frame<Bytes>, hyper::Error>>;

/// The first frame, if it was received already.
async fn first_frame(body: &mut Incoming) -> Option<NextFrame> {
    let mut is_asked = false;
    poll_fn(|context| match Pin::new(&mut *body).poll_frame(context) {
        Poll::Ready(frame) => Poll::Ready(Some(frame)),
        Poll::Pending if is_asked => Poll::Ready(None),
        Poll::Pending => {
            // hyper reads a frame in the next step of the task after it was asked for one.
            is_asked = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// Reads a body frame by frame, of which the first one may be there.
async fn read_frames(
    mut body: Incoming,
    mut first: Option<NextFrame>,
    declared: Option<usize>,
    memory: &RequestMemory,
) -> Result<Received, ServiceError> {
    let bytes_max = declared.unwrap_or(REQUEST_BODY_BYTES_MAX);
    // Frames are copied: each may be one byte in a buffer of its own.
    let mut bytes = BytesMut::with_capacity(declared.unwrap_or(0).min(SMALL_BYTES_MAX));
    let mut reserved: Option<Reservation> = None;
    let mut started = Instant::now();
    loop {
        let deadline = started + START_WAIT_MAX + time_for(bytes.len());
        let frame = if let Some(first) = first.take() {
            first
        } else {
            tokio::select! {
                biased;
                frame = timeout_at(deadline, body.frame()) => frame.map_err(|_| too_slow())?,
                () = until_cut(reserved.as_ref()) => return Err(too_slow()),
                // The connection may be needed although its body holds no memory.
                () = sleep_until(started + GRACE), if reserved.is_none() => {
                    let reservation = memory.reserve_body(0).await?;
                    reservation.transfer().begin();
                    reserved = Some(reservation);
                    continue;
                }
            }
        };
        let Some(frame) = frame else { break };
        // Truncated, or malformed chunks.
        let frame = frame.map_err(|_| ServiceError::from(ErrorCode::InvalidInput))?;
        // Trailers are ignored.
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let length = bytes.len().saturating_add(data.len());
        if length > bytes_max {
            return Err(ErrorCode::RequestBodyTooLarge.into());
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

/// Resolves when other bodies need the memory of a stalled one.
async fn until_cut(reserved: Option<&Reservation>) {
    match reserved {
        Some(reserved) => reserved.transfer().until_cut().await,
        None => std::future::pending().await,
    }
}

/// The time limit for so many bytes.
fn time_for(bytes: usize) -> Duration {
    let millis = u64::try_from(bytes)
        .unwrap_or(u64::MAX)
        .saturating_mul(1000)
        / PACE_MIN;
    Duration::from_millis(millis)
}

/// Returns true if a body of that many bytes exceeds the limit of a request.
pub(crate) fn exceeds_limit(bytes: impl TryInto<usize>) -> bool {
    bytes
        .try_into()
        .map_or(true, |bytes| bytes > REQUEST_BODY_BYTES_MAX)
}

// SERVICE: its own code for this has the status 500, but the client was slow here.
fn too_slow() -> ServiceError {
    ServiceError::from(ErrorCode::OperationTimedOut).with_status(StatusCode::REQUEST_TIMEOUT)
}

/// The body of a response. It reports when hyper has taken it over.
#[derive(Debug)]
pub(super) struct ResponseBody {
    bytes: Option<Bytes>,
    /// An injected fault.
    broken: Option<Broken>,
    /// True if the part before the fault is sent.
    is_flushed: bool,
    state: Arc<ConnectionState>,
}

impl ResponseBody {
    /// `memory` is held until all bytes are sent.
    pub(super) fn new(
        bytes: Bytes,
        memory: Option<Reservation>,
        state: Arc<ConnectionState>,
    ) -> Self {
        let bytes = match memory {
            Some(memory) => {
                state.begin_response(Arc::clone(memory.transfer()));
                Bytes::from_owner(Reserved {
                    bytes,
                    _memory: memory,
                })
            }
            None => bytes,
        };
        Self {
            bytes: Some(bytes),
            broken: None,
            is_flushed: false,
            state,
        }
    }

    /// The same body, which ends early.
    pub(super) fn broken(mut self, broken: Option<Broken>) -> Self {
        self.broken = broken;
        self
    }
}

/// Bytes that return their memory when hyper drops them.
struct Reserved {
    bytes: Bytes,
    _memory: Reservation,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let mut bytes = self.bytes.take();
        if let (Some(Broken::Truncated(length)), Some(bytes)) = (self.broken, &mut bytes) {
            bytes.truncate(length);
        }
        let bytes = bytes.filter(|bytes| !bytes.is_empty());
        match self.broken {
            Some(broken) if bytes.is_none() && self.is_flushed => Poll::Ready(Some(Err(broken))),
            Some(_) if bytes.is_none() => {
                // hyper sends what it has before it asks again.
                self.is_flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    /// An empty body does not end before it was polled: otherwise hyper sends no
    /// `Content-Length: 0` with a 204.
    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && self.broken.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.state.end_response();
    }
}

/// By how much a body may lag behind the minimum pace.
const START_WAIT_MAX: Duration = Duration::from_secs(30);
/// The minimum pace: bytes per second, on average from the start. A slower body would hold memory
/// for too long.
const PACE_MIN: u64 = 32 * 1024;
