//! Verifies Shared Key and Shared Key Lite: signs the same string again and compares the
//! signatures.
//!
//! On every failure, the response says only that authentication failed. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>.

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Uri, header};
use tablesdk_protocol::auth::{Scheme, SharedKey, documented_secondary};
use tablesdk_protocol::header::X_MS_DATE;
use tablesdk_protocol::limits::CLOCK_SKEW_SECONDS_MAX;
use tablesdk_protocol::{ErrorCode, ServiceError, Timestamp};

use crate::request::context::Context;

/// Checks that the signature was made with a key of the account, for this account, and recently.
pub(super) fn verify(
    keys: &[SharedKey],
    scheme: Scheme,
    account: &str,
    signature: &str,
    context: &Context,
    head: &Parts,
) -> Result<(), ServiceError> {
    let times = [Some(context.now), context.client_time];
    let is_recent = signed_date(&head.headers).is_some_and(|date| {
        let skews = times.iter().flatten().map(|time| date.abs_diff(*time));
        skews.min() <= Some(Duration::from_secs(CLOCK_SKEW_SECONDS_MAX))
    });
    if account != context.account() || !is_recent {
        return Err(ErrorCode::AuthenticationFailed.into());
    }
    let (method, headers) = (&head.method, &head.headers);
    // Every key is tried, so that the duration does not reveal which key matched.
    let fits = |uri: &Uri| {
        keys.iter().fold(false, |found, key| {
            found | key.has_signed(signature, scheme, account, method, uri, headers)
        })
    };
    // SERVICE: clients sign the URL that they send; the documentation says that a secondary is
    // signed as its primary.
    let documented = documented_secondary(account, &head.uri);
    let primary = behind_secondary(account, &head.uri);
    let uris = [Some(&head.uri), documented.as_ref(), primary.as_ref()];
    let uris = uris.into_iter().flatten();
    if uris.fold(false, |found, uri| found | fits(uri)) {
        Ok(())
    } else {
        Err(ErrorCode::AuthenticationFailed.into())
    }
}

/// The URL of the primary if it follows the name of the secondary, as in `/acct-secondary/acct/…`.
// SERVICE: the Python client signs the URL of the primary and then prefixes the name of the
// secondary.
fn behind_secondary<'u>(account: &str, uri: &'u Uri) -> Option<Uri> {
    let url = uri.path_and_query()?.as_str();
    let below = |url: &'u str| url.strip_prefix('/')?.strip_prefix(account);
    let primary = below(url)?.strip_prefix("-secondary")?;
    let is_primary = below(primary).is_some_and(|rest| rest.starts_with('/'));
    is_primary.then(|| primary.parse().ok()).flatten()
}

/// The date that the signature covers: `x-ms-date`, or `Date` where that is absent.
fn signed_date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers
        .get(X_MS_DATE)
        .or_else(|| headers.get(header::DATE))?;
    Timestamp::parse_http_date(date.to_str().ok()?).ok()
}
