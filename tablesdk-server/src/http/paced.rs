//! [`Paced`]: a stream that enforces a minimum pace of the client, for reading and for writing.
//!
//! A client that sends an incomplete head, or reads none of its response, occupies memory and a connection slot. The limits are
//! here and not around the requests, because only the stream sees whether bytes move. Of HTTP, this module knows only [`Progress`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::progress::{Phase, Progress};

/// A stream with limits on waiting, and what it was waited for.
#[derive(Debug)]
pub(super) struct Paced<S> {
    stream: S,
    /// What was read before hyper was there.
    first: Bytes,
    progress: Arc<Progress>,
    head: Head,
    answer: Answer,
    /// Whether hyper sent a response by itself: it could not parse the head, so there was no request for the handler.
    refused: bool,
}

/// How long a head may take.
#[derive(Debug, Default)]
struct Head {
    /// How much of it has come.
    bytes: usize,
    /// What the limit is for.
    awaited: Option<Phase>,
    limit: Option<Pin<Box<Sleep>>>,
}

impl Head {
    /// Counts what came. A head that holds more than hyper's first buffer has less time for its rest.
    fn add(&mut self, bytes: usize) {
        let before = self.bytes;
        self.bytes = before.saturating_add(bytes);
        if before <= HEAD_READ_BYTES_MAX && self.bytes > HEAD_READ_BYTES_MAX {
            restart(&mut self.limit, LONG_HEAD_WAIT_MAX);
            self.awaited = Some(Phase::Head);
        }
    }
}

/// How fast an answer must be taken.
#[derive(Debug, Default)]
struct Answer {
    /// Runs while there is no room for what is to be written.
    limit: Option<Pin<Box<Sleep>>>,
    /// How much was written since the limit began.
    moved: usize,
}

impl<S> Paced<S> {
    /// A stream of which the beginning was read already.
    pub(super) fn new(stream: S, first: Vec<u8>, progress: Arc<Progress>) -> Self {
        Self {
            stream,
            first: first.into(),
            progress,
            head: Head::default(),
            answer: Answer::default(),
            refused: false,
        }
    }

    /// The stream, and whether it still lacks the answer to a head that hyper could not read.
    pub(super) fn into_parts(self) -> (S, bool) {
        (self.stream, self.refused)
    }

    /// Whether what is written now is hyper's own: it answers what it cannot read with a bare status, where the service says
    /// what is wrong. The one who serves the connection says that instead.
    fn is_refusal(&mut self) -> bool {
        // hyper responds with a bare status to a head that it cannot parse, or that has more than 100 headers or 64 KiB, and has no
        // hook for another response. Without a request in progress hyper writes nothing else, so this write can be held back. The
        // bare status remains only for a client that sends requests ahead: it cannot be distinguished from an earlier response in
        // flight.
        self.refused |= matches!(self.progress.phase(), Phase::Idle | Phase::Head);
        self.refused
    }

    /// Whether a head has been waited for long enough, in this phase.
    fn head_overdue(&mut self, phase: Phase, context: &mut Context<'_>) -> bool {
        if self.head.awaited != Some(phase) {
            self.head.awaited = Some(phase);
            let wait = if phase == Phase::Idle && self.progress.is_known() {
                IDLE_MAX
            } else {
                HEAD_WAIT_MAX
            };
            restart(&mut self.head.limit, wait);
        }
        has_passed(&mut self.head.limit, context)
    }

    /// What a write has come to; counts what went out.
    fn paced(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let answer = &mut self.answer;
        if let Poll::Ready(Ok(bytes)) = written {
            answer.moved = answer.moved.saturating_add(bytes);
            self.progress.sent(bytes);
        }
        if written.is_ready() {
            return written;
        }
        if answer.limit.is_none() {
            answer.moved = 0;
            restart(&mut answer.limit, STALL_MAX);
        }
        while has_passed(&mut answer.limit, context) {
            if answer.moved < STALL_BYTES_MIN {
                return Poll::Ready(Err(too_slow("the client does not take its answer")));
            }
            answer.moved = 0;
            restart(&mut answer.limit, STALL_MAX);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.first.is_empty() {
            let first = this
                .first
                .split_to(buffer.remaining().min(this.first.len()));
            buffer.put_slice(&first);
            this.progress.received();
            this.head.add(first.len());
            return Poll::Ready(Ok(()));
        }
        let phase = this.progress.phase();
        if !matches!(phase, Phase::Idle | Phase::Head) {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        // hyper doubles its buffer when a read fills it: of a head, no more is taken in than what comes slowly may hold.
        let room = buffer.remaining().min(HEAD_READ_BYTES_MAX);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        let read = Pin::new(&mut this.stream).poll_read(context, &mut part);
        let bytes = part.filled().len();
        // Some clients end a body with a line end more.
        let is_blank = part.filled().iter().all(|byte| b"\r\n".contains(byte));
        buffer.advance(bytes);
        if read.is_pending() && this.head_overdue(phase, context) {
            return Poll::Ready(Err(too_slow("the client does not send its request")));
        }
        if !is_blank && phase == Phase::Idle {
            this.head.awaited = None;
            this.head.bytes = 0;
            this.progress.received();
        }
        this.head.add(bytes);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.paced(written, context)
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.paced(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes once it has nothing left to write. What is encrypted may wait here for room.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        ready!(self.paced(flushed.map_ok(|()| 0), context))?;
        self.answer.limit = None;
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refused {
            // Not before the answer.
            return Poll::Ready(Ok(()));
        }
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        ready!(self.paced(shut.map_ok(|()| 0), context))?;
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

/// The longest wait for a whole head, from its first byte on; for the first head, from the connection on; and for any head on a
/// connection on which no credential was accepted yet.
pub(super) const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// The longest wait for the rest of a head that is longer than hyper's first buffer, from there on: up to 64 KiB are held for it.
// Until it is complete, a head holds as much memory as its length, and a page more.
pub(super) const LONG_HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// The longest wait for the next request. Clients keep connections for minutes, and one that finds them closed fails: idling
/// must be cheap for us, not short. Where places run out, it ends sooner.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// How long an answer may lie while less than [`STALL_BYTES_MIN`] of it are taken.
pub(super) const STALL_MAX: Duration = Duration::from_secs(30);
/// What a client must take of its answer in [`STALL_MAX`]: at this pace, the longest answer takes a quarter of an hour.
pub(super) const STALL_BYTES_MIN: usize = 128 * 1024;
/// What a head may have in the time for a short one.
const HEAD_READ_BYTES_MAX: usize = super::first_head::BYTES_MAX;
