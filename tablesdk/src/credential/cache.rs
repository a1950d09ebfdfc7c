//! The token of a client: requested once for all requests, kept, and renewed before it expires.
//!
//! Knows neither requests nor issuers. Time is the client's clock.

use std::error::Error as StdError;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use http::HeaderValue;
use tablesdk_protocol::{Clock, Endpoint, Timestamp};
use tokio::time::timeout;

use super::Sas;
use super::audience;
use super::challenge::Challenge;
use super::token::{AccessToken, EntraId, TokenCredential, TokenError, TokenRequest};
use crate::error::Error;
use crate::transport::Backend;

/// A token as it is sent.
pub(crate) struct Bearer {
    pub(crate) presented: Presented,
    expires_at: Timestamp,
}

/// Where in a request a token stands.
pub(crate) enum Presented {
    /// The value of `Authorization`.
    Header(HeaderValue),
    /// A part of the query.
    Query(Sas),
}

/// The kind of the tokens of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Bearer,
    Sas,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The token of a client, and the credential that it comes from.
pub(crate) struct TokenCache {
    credential: Arc<dyn TokenCredential>,
    kind: TokenKind,
    endpoint: Endpoint,
    clock: Arc<dyn Clock>,
    /// The program set the audience, and a challenge of the service does not change it.
    is_audience_fixed: bool,
    is_tenant_fixed: bool,
    state: Mutex<TokenState>,
}

struct TokenState {
    request: TokenRequest,
    held: Option<Held>,
    /// The request to the credential that is in flight; there is one at most.
    renewal: Option<Renewal>,
    /// The time of the next renewal ahead of the expiry, after one that failed. The old token is
    /// still valid.
    retry_at: Option<Timestamp>,
    /// Until this time, a refused token is not a reason to request an equal one.
    calm_until: Option<Timestamp>,
}

struct Held {
    bearer: Arc<Bearer>,
    renew_at: Timestamp,
}

type Renewal = Shared<BoxFuture<'static, Result<Arc<Bearer>, NoToken>>>;

impl TokenCache {
    pub(super) fn new(
        entra_id: EntraId,
        kind: TokenKind,
        endpoint: Endpoint,
        backend: Backend,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let EntraId {
            credential,
            audience,
            tenant,
            sas: _,
        } = entra_id;
        let wanted = audience.as_deref();
        let wanted = wanted.unwrap_or_else(|| audience::of(&endpoint, backend));
        let request = TokenRequest {
            scopes: vec![audience::scope(wanted)],
            tenant: tenant.clone(),
        };
        Self {
            credential,
            kind,
            endpoint,
            clock,
            is_audience_fixed: audience.is_some(),
            is_tenant_fixed: tenant.is_some(),
            state: Mutex::new(TokenState {
                request,
                held: None,
                renewal: None,
                retry_at: None,
                calm_until: None,
            }),
        }
    }

    /// A token that is valid now.
    ///
    /// The renewal runs on its own task: a dropped request does not cancel the renewal that other
    /// requests wait for.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Arc<Bearer>, Error> {
        // At most one task requests a token, before the first request and ahead of the expiry.
        // Requests wait for it only without a valid token.
        let renewal = {
            let now = self.clock.now();
            let mut state = self.lock();
            let good = state.held.as_ref();
            let good = good.filter(|held| now < held.bearer.expires_at);
            let good = good.map(|held| (Arc::clone(&held.bearer), now >= held.renew_at));
            if let Some((bearer, is_due)) = good {
                let may_try = state.retry_at.is_none_or(|retry_at| now >= retry_at);
                if is_due && may_try && state.renewal.is_none() {
                    // It runs in the background; no request waits for it.
                    drop(self.renew(&mut state));
                }
                return Ok(bearer);
            }
            match &state.renewal {
                Some(renewal) => renewal.clone(),
                None => self.renew(&mut state),
            }
        };
        renewal.await.map_err(Error::credential)
    }

    /// Learns from the challenge of a response with status 401, by which the service refused this
    /// token. Returns true if a retry with another token may succeed.
    pub(crate) fn learn(&self, refused: &Arc<Bearer>, challenge: Option<&str>) -> bool {
        let Some(challenge) = challenge.and_then(Challenge::parse) else {
            return false;
        };
        let audience = challenge.audience.as_deref();
        let is_untrusted =
            audience.is_some_and(|wanted| !audience::is_trusted(wanted, &self.endpoint));
        if is_untrusted || challenge.has_untrusted_login_page() {
            return false;
        }
        let now = self.clock.now();
        let mut state = self.lock();
        let mut request = state.request.clone();
        if let Some(audience) = audience.filter(|_| !self.is_audience_fixed) {
            request.scopes = vec![audience::scope(audience)];
        }
        if let Some(tenant) = challenge.tenant().filter(|_| !self.is_tenant_fixed) {
            request.tenant = Some(tenant.to_owned());
        }
        let is_another = request != state.request;
        let is_held = state
            .held
            .as_ref()
            .is_some_and(|held| Arc::ptr_eq(&held.bearer, refused));
        if !is_another && !is_held {
            // Another request was refused with the same token, and has asked for a new one.
            return true;
        }
        if !is_another && state.calm_until.is_some_and(|until| now < until) {
            return false;
        }
        state.request = request;
        state.held = None;
        state.retry_at = None;
        state.calm_until = Some(now.saturating_add(PAUSE));
        if is_another {
            // The renewal in flight is for the wrong tenant or audience.
            state.renewal = None;
        }
        true
    }

    /// Learns that the service refused a token without a word on what it wants. Returns true if a
    /// retry with another token may succeed.
    pub(crate) fn learn_refusal(&self, refused: &Arc<Bearer>) -> bool {
        let now = self.clock.now();
        let mut state = self.lock();
        let held = state.held.as_ref();
        if !held.is_some_and(|held| Arc::ptr_eq(&held.bearer, refused)) {
            // Another request was refused with the same token, and has asked for a new one.
            return true;
        }
        if state.calm_until.is_some_and(|until| now < until) {
            return false;
        }
        state.held = None;
        state.retry_at = None;
        state.calm_until = Some(now.saturating_add(PAUSE));
        true
    }

    /// Asks the credential for a token.
    fn renew(self: &Arc<Self>, state: &mut TokenState) -> Renewal {
        let cache = Arc::clone(self);
        let request = state.request.clone();
        let asked = request.clone();
        let task = tokio::spawn(async move {
            let asked = request.clone();
            let asking = async { cache.credential.token(asked).await };
            let asking = AssertUnwindSafe(asking).catch_unwind();
            let fetched = match timeout(TIME_MAX, asking).await {
                Ok(Ok(fetched)) => fetched,
                Ok(Err(_)) => Err(Panicked.into()),
                Err(_) => Err(Silent.into()),
            };
            cache.finish(&request, fetched)
        });
        // Not the cache itself, which holds the renewal.
        let cache = Arc::downgrade(self);
        let renewal = task.map(move |ended| match ended {
            Ok(result) => result,
            // The runtime of the task has ended: the next request starts a new task.
            Err(_) => match cache.upgrade() {
                Some(cache) => cache.finish(&asked, Err(Gone.into())),
                None => Err(NoToken::from(TokenError::from(Gone))),
            },
        });
        let renewal = renewal.boxed().shared();
        state.renewal = Some(renewal.clone());
        renewal
    }

    fn finish(
        &self,
        request: &TokenRequest,
        fetched: Result<AccessToken, TokenError>,
    ) -> Result<Arc<Bearer>, NoToken> {
        let fetched = fetched
            .and_then(|token| present(&token, self.kind))
            .map(Arc::new);
        let now = self.clock.now();
        let mut state = self.lock();
        if state.request != *request {
            // The service has asked for another one in the meantime.
            return fetched.map_err(NoToken::from);
        }
        state.renewal = None;
        match fetched {
            Ok(bearer) => {
                state.retry_at = None;
                state.held = Some(Held {
                    renew_at: renew_at(now, bearer.expires_at),
                    bearer: Arc::clone(&bearer),
                });
                Ok(bearer)
            }
            Err(error) => {
                state.retry_at = Some(now.saturating_add(PAUSE));
                Err(error.into())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, TokenState> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache")
            .field("request", &self.lock().request)
            .finish_non_exhaustive()
    }
}

fn present(token: &AccessToken, kind: TokenKind) -> Result<Bearer, TokenError> {
    let presented = match kind {
        TokenKind::Bearer => Presented::Header(authorization(&token.secret)?),
        TokenKind::Sas => Presented::Query(Sas::new(&token.secret)?),
    };
    Ok(Bearer {
        presented,
        expires_at: token.expires_at,
    })
}

fn authorization(text: &str) -> Result<HeaderValue, TokenError> {
    // A header allows more characters, but a token does not.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Malformed.into());
    }
    let mut authorization = HeaderValue::try_from(format!("Bearer {text}"))?;
    // Keeps the token out of the `Debug` of the headers, here and in every transport.
    authorization.set_sensitive(true);
    Ok(authorization)
}

/// When to ask for the next token: five minutes before this one expires, or a fifth of its time,
/// and up to half as much earlier, so that programs that were started together do not ask together.
fn renew_at(now: Timestamp, expires_at: Timestamp) -> Timestamp {
    if expires_at <= now {
        return now;
    }
    let lifetime = expires_at.abs_diff(now);
    let ahead = (lifetime / 5).min(AHEAD_MAX);
    let ahead = ahead + (ahead / 2).mul_f64(fastrand::f64());
    now.saturating_add(lifetime.saturating_sub(ahead))
}

/// The reason why there is no token, for every request that waits for it.
type NoToken = Arc<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("the credential returned a malformed token")]
struct Malformed;

#[derive(Debug, thiserror::Error)]
#[error("the credential gave no token within {} seconds", TIME_MAX.as_secs())]
struct Silent;

#[derive(Debug, thiserror::Error)]
#[error("the runtime that the credential was asked on is gone")]
struct Gone;

#[derive(Debug, thiserror::Error)]
#[error("the credential panicked")]
struct Panicked;

const AHEAD_MAX: Duration = Duration::from_secs(300);
/// Between two attempts that the requests themselves do not need.
const PAUSE: Duration = Duration::from_secs(30);
const TIME_MAX: Duration = Duration::from_secs(60);
