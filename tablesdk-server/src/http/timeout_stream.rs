//! [`TimeoutStream`]: a stream with time limits for the client, for reading and for writing.
//!
//! A client that sends an incomplete head, or reads none of its response, occupies memory and a
//! connection permit. The limits are here and not around the requests, because only the stream sees
//! whether bytes move. hyper's `header_read_timeout` cannot replace them: it is the same for an
//! idle connection and for an incomplete head. `http/tests` has a test for each limit
//! (`heads_have_a_time_limit`, `long_heads_have_less_time`,
//! `idle_connections_are_closed_after_minutes`, `a_response_that_is_not_read_ends_the_connection`).
//! [`ConnectionState`] is all of HTTP that this module knows.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection_state::{ConnectionState, Phase};
use super::reset::Reset;

#[derive(Debug)]
pub(super) struct TimeoutStream<S> {
    /// Limits a read to a part of the buffer, which is not initialized for that.
    stream: Take<S>,
    /// The bytes that were read before hyper started.
    first: Bytes,
    state: Arc<ConnectionState>,
    head: Head,
    response: Response,
    /// True if hyper sent a response by itself: it could not parse the head, so there was no
    /// request for the handler.
    is_refused: bool,
}

/// How long a head may take.
#[derive(Debug, Default)]
struct Head {
    /// The number of bytes that were received of it.
    bytes: usize,
    /// The phase that the limit applies to.
    awaited: Option<Phase>,
    limit: Option<Pin<Box<Sleep>>>,
}

impl Head {
    /// Counts received bytes. A head that is longer than hyper's first buffer has less time for its
    /// rest.
    fn add(&mut self, bytes: usize) {
        let before = self.bytes;
        self.bytes = before.saturating_add(bytes);
        if before <= HEAD_READ_BYTES_MAX && self.bytes > HEAD_READ_BYTES_MAX {
            restart(&mut self.limit, LONG_HEAD_WAIT_MAX);
            self.awaited = Some(Phase::Head);
        }
    }
}

/// How fast the client must read a response.
#[derive(Debug, Default)]
struct Response {
    /// Runs while the stream accepts no bytes.
    limit: Option<Pin<Box<Sleep>>>,
    /// The number of bytes that were written since the limit began.
    moved: usize,
}

impl<S: AsyncRead> TimeoutStream<S> {
    /// A stream whose first bytes were read already.
    pub(super) fn new(stream: S, first: Vec<u8>, state: Arc<ConnectionState>) -> Self {
        Self {
            stream: stream.take(0),
            first: first.into(),
            state,
            head: Head::default(),
            response: Response::default(),
            is_refused: false,
        }
    }

    /// The stream, and whether it still lacks the response to a head that hyper could not parse.
    pub(super) fn into_parts(self) -> (S, bool) {
        (self.stream.into_inner(), self.is_refused)
    }

    /// Resets the connection when this is dropped.
    pub(super) fn reset(&self)
    where
        S: Reset,
    {
        self.stream.get_ref().reset();
    }

    /// Returns true if hyper writes its own response. It is held back, and the connection sends one
    /// with an error code instead.
    ///
    /// hyper responds with a bare status to a head that it cannot parse, or that has more than 100
    /// headers or 64 KiB, and has no hook for another response. Without a request in flight it
    /// writes nothing else. The bare status remains only for a client that sends requests ahead: it
    /// cannot be distinguished from an earlier response in flight.
    fn is_refusal(&mut self) -> bool {
        self.is_refused |= matches!(self.state.phase(), Phase::Idle | Phase::Head);
        self.is_refused
    }

    /// Returns true if the time limit of this phase has passed.
    fn head_overdue(&mut self, phase: Phase, context: &mut Context<'_>) -> bool {
        if self.head.awaited != Some(phase) {
            self.head.awaited = Some(phase);
            let wait = if phase == Phase::Idle && self.state.is_authenticated() {
                IDLE_MAX
            } else {
                HEAD_WAIT_MAX
            };
            restart(&mut self.head.limit, wait);
        }
        has_passed(&mut self.head.limit, context)
    }

    /// Counts the written bytes, or fails if the client reads too slowly.
    fn limit_write(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let response = &mut self.response;
        if let Poll::Ready(Ok(bytes)) = written {
            response.moved = response.moved.saturating_add(bytes);
            self.state.sent(bytes);
        }
        if written.is_ready() {
            return written;
        }
        if response.limit.is_none() {
            response.moved = 0;
            restart(&mut response.limit, STALL_MAX);
        }
        while has_passed(&mut response.limit, context) {
            if response.moved < STALL_BYTES_MIN {
                return Poll::Ready(Err(too_slow("the client does not read its response")));
            }
            response.moved = 0;
            restart(&mut response.limit, STALL_MAX);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let phase = this.state.phase();
        if !matches!(phase, Phase::Idle | Phase::Head) {
            return Pin::new(this.stream.get_mut()).poll_read(context, buffer);
        }
        // hyper doubles its buffer when a read fills it: an incomplete head must not occupy more
        // than its first buffer.
        let room = buffer.remaining().min(HEAD_READ_BYTES_MAX);
        let filled = buffer.filled().len();
        let read = if this.first.is_empty() {
            this.stream.set_limit(HEAD_READ_BYTES_MAX as u64);
            Pin::new(&mut this.stream).poll_read(context, buffer)
        } else {
            buffer.put_slice(&this.first.split_to(room.min(this.first.len())));
            Poll::Ready(Ok(()))
        };
        let part = buffer.filled().get(filled..).unwrap_or_default();
        let bytes = part.len();
        // Some clients send an additional line end after a body.
        let is_blank = part.iter().all(|byte| b"\r\n".contains(byte));
        if read.is_pending() && this.head_overdue(phase, context) {
            return Poll::Ready(Err(too_slow("the client does not send its request")));
        }
        if !is_blank && phase == Phase::Idle {
            // On an unauthenticated connection, the limit of the idle phase goes on.
            let goes_on = this.head.awaited == Some(Phase::Idle) && !this.state.is_authenticated();
            this.head.awaited = goes_on.then_some(Phase::Head);
            this.head.bytes = 0;
            this.state.begin_head();
        }
        this.head.add(bytes);
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(self.stream.get_mut()).poll_write(context, bytes);
        self.limit_write(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            let lengths = slices.iter().map(|slice| slice.len());
            return Poll::Ready(Ok(lengths.sum()));
        }
        let written = Pin::new(self.stream.get_mut()).poll_write_vectored(context, slices);
        self.limit_write(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when it has nothing left to write. Encrypted bytes may wait here.
        let flushed = Pin::new(self.stream.get_mut()).poll_flush(context);
        ready!(self.limit_write(flushed.map_ok(|()| 0), context))?;
        self.response.limit = None;
        self.state.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_refused {
            // Not before the response.
            return Poll::Ready(Ok(()));
        }
        let shut = Pin::new(self.stream.get_mut()).poll_shutdown(context);
        ready!(self.limit_write(shut.map_ok(|()| 0), context))?;
        Poll::Ready(Ok(()))
    }
}

fn restart(limit: &mut Option<Pin<Box<Sleep>>>, wait: Duration) {
    let deadline = Instant::now() + wait;
    match limit {
        Some(limit) => limit.as_mut().reset(deadline),
        None => *limit = Some(Box::pin(sleep_until(deadline))),
    }
}

fn has_passed(limit: &mut Option<Pin<Box<Sleep>>>, context: &mut Context<'_>) -> bool {
    limit
        .as_mut()
        .is_some_and(|limit| limit.as_mut().poll(context).is_ready())
}

fn too_slow(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

/// The time limit for a complete head, from its first byte on; on a connection without an accepted
/// credential, from the end of the request before it, or from the connection on.
pub(super) const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// The time limit for the rest of a head that is longer than hyper's first buffer, which may occupy
/// up to 64 KiB.
pub(super) const LONG_HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// The time limit for the next request. Clients keep connections for minutes, and a request on a
/// closed connection fails. If connections are needed, idle ones end sooner.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// The time in which a client must read at least [`STALL_BYTES_MIN`] of a response.
pub(super) const STALL_MAX: Duration = Duration::from_secs(30);
/// At this pace, the longest response takes a quarter of an hour.
pub(super) const STALL_BYTES_MIN: usize = 128 * 1024;
/// One byte less than hyper's first buffer.
pub(super) const HEAD_READ_BYTES_MAX: usize = 8191;
