//! [`Fault`]: what happens to a request instead of what should.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use tablesdk_protocol::ErrorCode;
use tablesdk_protocol::header::X_MS_RETRY_AFTER_MS;

use crate::flavor::Flavor;
use crate::request::connection::Broken;

/// A fault of a request: if and when the request is carried out, and the response.
///
/// Each of these is a fault that networks and services cause. A fault is injected by a
/// [rule](super::Faults::on).
///
/// | the client sees | and the request | |
/// |---|---|---|
/// | an error of the service | is not carried out | `Fault::error(ErrorCode::ServerBusy)` |
/// | an error of the service | was carried out all the same | `Fault::error(ErrorCode::OperationTimedOut).applied()` |
/// | that the connection is reset | never arrived | `Fault::reset()` |
/// | that the connection is reset | was carried out | `Fault::lost_response()` |
/// | that the connection is reset | is carried out later, when the client may have tried again | `Fault::reset().applied_after(…)` |
/// | no response at all, until it gives up | never arrived | `Fault::no_response()` |
/// | no response at all, until it gives up | was carried out | `Fault::no_response().applied()` |
/// | the response, after a while | is carried out after that while | `Fault::delay(…)` |
/// | the response, after a while | was carried out at once | `Fault::delayed_response(…)` |
/// | the response of the second one | was carried out twice | `Fault::duplicate()` |
/// | the response | is carried out again later | `Fault::late_duplicate(…)` |
/// | a part of the response, and that the connection is reset | was carried out | `Fault::truncated_response(…)` |
/// | a response with other bytes | was carried out | `Fault::corrupted_response()` |
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a fault does nothing until it is injected"]
pub struct Fault {
    pub(super) application: Application,
    pub(super) reaction: Reaction,
}

/// How often and when the request is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Application {
    Never,
    Once,
    /// After this time, whether its client still waits or not.
    After(Duration),
    /// The same request twice, one after the other.
    Twice,
    /// At once, and again after this time.
    Again(Duration),
}

/// The client's view of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// The response of the operation, this long after it.
    Response(Duration),
    Error {
        code: ErrorCode,
        retry_after: Option<Duration>,
    },
    /// The head of the response and this many bytes of its body, and then a reset.
    Truncated(usize),
    /// The response, in whose body some bytes are others.
    Corrupted,
    Reset,
    /// Nothing, as long as the client waits.
    Silence,
}

impl Fault {
    const fn new(application: Application, reaction: Reaction) -> Self {
        Self {
            application,
            reaction,
        }
    }

    /// Responds with an error of the service, with its usual status and message, and does not carry
    /// out the request.
    ///
    /// `ServerBusy` is what the service responds when it throttles; see
    /// [`retry_after`](Self::retry_after).
    pub const fn error(code: ErrorCode) -> Self {
        let reaction = Reaction::Error {
            code,
            retry_after: None,
        };
        Self::new(Application::Never, reaction)
    }

    /// Resets the connection instead of responding. The request is not carried out, but the client
    /// cannot know.
    pub const fn reset() -> Self {
        Self::new(Application::Never, Reaction::Reset)
    }

    /// Carries out the request and resets the connection: the same as `Fault::reset().applied()`.
    ///
    /// The case that decides whether a retry is safe: a client that inserts again gets
    /// `EntityAlreadyExists` for its own entity.
    pub const fn lost_response() -> Self {
        Self::new(Application::Once, Reaction::Reset)
    }

    /// Never responds. The client waits until its own time limit. The request is not carried out.
    ///
    /// [`Faults::clear`](super::Faults::clear) ends the wait with a reset of the connection.
    pub const fn no_response() -> Self {
        Self::new(Application::Never, Reaction::Silence)
    }

    /// Carries out the request after a delay, whether its client still waits or not, and responds
    /// then.
    pub const fn delay(delay: Duration) -> Self {
        Self::new(
            Application::After(delay),
            Reaction::Response(Duration::ZERO),
        )
    }

    /// Carries out the request at once, and responds after a delay.
    pub const fn delayed_response(delay: Duration) -> Self {
        Self::new(Application::Once, Reaction::Response(delay))
    }

    /// Carries out the request twice, and responds to the second one: as if a proxy had sent it
    /// again.
    pub const fn duplicate() -> Self {
        Self::new(Application::Twice, Reaction::Response(Duration::ZERO))
    }

    /// Carries out the request and responds, and carries it out again after a delay: as if a copy
    /// of it had been on its way for so long.
    ///
    /// The client has its response by then. Only a condition of the request itself, such as an
    /// ETag, prevents the second time, or a [reset](crate::TableServer::reset) or shutdown of the
    /// server.
    pub const fn late_duplicate(delay: Duration) -> Self {
        Self::new(
            Application::Again(delay),
            Reaction::Response(Duration::ZERO),
        )
    }

    /// Carries out the request, sends the head of the response and so many bytes of its body, and
    /// resets the connection. A body that is not longer than that loses its last byte. A response
    /// without a body is lost altogether.
    pub const fn truncated_response(bytes: usize) -> Self {
        Self::new(Application::Once, Reaction::Truncated(bytes))
    }

    /// Carries out the request, and replaces some bytes of the response's body, so that it is not
    /// JSON any more. A response without a body is not changed.
    pub const fn corrupted_response() -> Self {
        Self::new(Application::Once, Reaction::Corrupted)
    }

    /// The same fault, but the request is carried out before the error, the reset or the silence.
    ///
    /// # Panics
    ///
    /// For a fault that says already when the request is carried out, such as [`Fault::delay`].
    #[track_caller]
    pub fn applied(self) -> Self {
        self.applied_when(Application::Once)
    }

    /// The same fault, but the request is carried out after this time, whatever its client does
    /// meanwhile: the error, the reset or the silence does not wait for it. [`Fault::delay`] does.
    ///
    /// [`Faults::clear`](super::Faults::clear) does not prevent that; a
    /// [reset](crate::TableServer::reset) or a shutdown of the server does.
    ///
    /// # Panics
    ///
    /// For a fault that says already when the request is carried out, such as [`Fault::delay`].
    #[track_caller]
    pub fn applied_after(self, delay: Duration) -> Self {
        self.applied_when(Application::After(delay))
    }

    #[track_caller]
    fn applied_when(self, application: Application) -> Self {
        assert!(
            self.application == Application::Never,
            "this fault says already when the request is carried out: {self:?}"
        );
        Self {
            application,
            ..self
        }
    }

    /// The same error with a `Retry-After` header, in whole seconds, rounded up.
    ///
    /// # Panics
    ///
    /// For a fault that is not a [`Fault::error`], because it has no response of its own.
    #[track_caller]
    pub fn retry_after(mut self, after: Duration) -> Self {
        let Reaction::Error { retry_after, .. } = &mut self.reaction else {
            panic!("only an error has a Retry-After header: {self:?}");
        };
        *retry_after = Some(after);
        self
    }

    /// How long after the request it is carried out, or its response is sent.
    pub(crate) const fn longest_delay(&self) -> Duration {
        match (&self.application, &self.reaction) {
            (Application::After(delay) | Application::Again(delay), _)
            | (_, Reaction::Response(delay)) => *delay,
            _ => Duration::ZERO,
        }
    }

    /// Makes of a response what the client gets. What no response can show is an extension of it,
    /// for the connection.
    pub(super) fn damage(&self, flavor: Flavor, response: &mut Response<Bytes>) {
        match &self.reaction {
            Reaction::Response(_) => {}
            Reaction::Error { code, retry_after } => {
                if let Some(after) = retry_after {
                    let part = u64::from(after.subsec_nanos() > 0);
                    let seconds = after.as_secs().saturating_add(part);
                    let headers = response.headers_mut();
                    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                    if flavor.has_retry_after_ms(code) {
                        let milliseconds = after.as_nanos().div_ceil(1_000_000);
                        let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
                        headers.insert(X_MS_RETRY_AFTER_MS, HeaderValue::from(milliseconds));
                    }
                }
            }
            Reaction::Corrupted => {
                let corrupted = response.body().iter().enumerate().map(|(index, byte)| {
                    // A byte that UTF-8 never has.
                    if index % 16 == 0 { 0xff } else { *byte }
                });
                *response.body_mut() = corrupted.collect();
            }
            Reaction::Reset | Reaction::Silence => {
                response.extensions_mut().insert(Broken::Reset);
            }
            Reaction::Truncated(bytes) => {
                let broken = match response.body().len().checked_sub(1) {
                    None => Broken::Reset,
                    Some(most) => Broken::Truncated(most.min(*bytes)),
                };
                response.extensions_mut().insert(broken);
            }
        }
    }
}

/// Shows what becomes of the request, and what the client gets.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.application {
            Application::Never => f.write_str("not carried out"),
            Application::Once => f.write_str("carried out"),
            Application::After(delay) => write!(f, "carried out {delay:?} later"),
            Application::Twice => f.write_str("carried out twice"),
            Application::Again(delay) => write!(f, "carried out, and again {delay:?} later"),
        }?;
        match &self.reaction {
            Reaction::Response(Duration::ZERO) => f.write_str(", response sent"),
            Reaction::Response(delay) => write!(f, ", response {delay:?} later"),
            Reaction::Error { code, .. } => write!(f, ", response {}", code.as_str()),
            Reaction::Truncated(bytes) => {
                write!(f, ", response cut off after {bytes} bytes of its body")
            }
            Reaction::Corrupted => f.write_str(", response corrupted"),
            Reaction::Reset => f.write_str(", connection reset"),
            Reaction::Silence => f.write_str(", no response"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_to_retry_is_a_header() {
        let fault = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::MAX);
        let mut response = Response::default();
        fault.damage(Flavor::CosmosDb, &mut response);
        assert_eq!(
            response.headers()[header::RETRY_AFTER],
            u64::MAX.to_string()
        );
    }

    #[test]
    #[should_panic(expected = "says already when")]
    fn a_lost_response_is_not_applied_late() {
        let _ = Fault::lost_response().applied_after(Duration::ZERO);
    }

    #[test]
    #[should_panic(expected = "says already when")]
    fn a_late_request_is_not_applied_at_once() {
        let _ = Fault::reset().applied_after(Duration::ZERO).applied();
    }
}
