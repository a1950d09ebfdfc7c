//! The form of a request's head: size, URI and `Host`.

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use tablesdk_protocol::{ErrorCode, ServiceError};

/// Checks the size of a head, and makes path and query its URI, and the authority its `Host`.
///
/// An authority in the URI replaces a `Host`. `default_host` is for a request that has neither.
pub(crate) fn to_origin_form(
    head: &mut Parts,
    default_host: Option<&HeaderValue>,
) -> Result<(), ServiceError> {
    check_size(head)?;
    // CONNECT has an authority, too, but no scheme: it names no resource.
    if head.uri.scheme().is_some()
        && let Some(authority) = head.uri.authority()
    {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| ErrorCode::InvalidUri)?;
        head.headers.insert(header::HOST, host);
        let root = || PathAndQuery::from_static("/");
        let path_and_query = head.uri.path_and_query().cloned().unwrap_or_else(root);
        head.uri = Uri::from(path_and_query);
    }
    if !head.uri.path().starts_with('/') {
        // A CONNECT, or the `*` of OPTIONS.
        return Err(ErrorCode::InvalidUri.into());
    }
    match (
        head.headers.get_all(header::HOST).iter().count(),
        default_host,
    ) {
        (1, _) => Ok(()),
        (0, Some(host)) => {
            head.headers.insert(header::HOST, host.clone());
            Ok(())
        }
        (0, None) => Err(ErrorCode::Other("HostInformationNotPresent".to_owned()).into()),
        _ => Err(ErrorCode::InvalidHeaderValue.into()),
    }
}

/// Checks URL and headers against limits below those of hyper, which knows no error codes.
// SERVICE: its front end has such limits, but they are not documented, and neither is its response.
fn check_size(head: &Parts) -> Result<(), ServiceError> {
    let url_bytes = head
        .uri
        .path_and_query()
        .map_or(0, |url| url.as_str().len());
    if url_bytes > URL_BYTES_MAX {
        let message = "The request URL is longer than 32 KiB.";
        let error = ServiceError::new(ErrorCode::InvalidUri, message);
        return Err(error.with_status(StatusCode::URI_TOO_LONG));
    }
    let host = head.headers.get(header::HOST).map_or(0, HeaderValue::len);
    let authority = head.uri.authority().map_or(0, |it| it.as_str().len());
    if host.max(authority) > HOST_BYTES_MAX {
        let message = "The host of the request is longer than a host name and a port.";
        return Err(ServiceError::new(ErrorCode::InvalidHeaderValue, message));
    }
    if header_bytes(&head.headers) > HEADER_BYTES_MAX {
        let message = "The headers of the request are longer than 32 KiB.";
        let error = ServiceError::new(ErrorCode::InvalidHeaderValue, message);
        return Err(error.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    if head.headers.len() > HEADERS_MAX {
        let message = "The request has more than 100 headers.";
        let error = ServiceError::new(ErrorCode::InvalidHeaderValue, message);
        return Err(error.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    Ok(())
}

/// The length of the headers as lines.
fn header_bytes(headers: &HeaderMap) -> usize {
    let lines = headers.iter();
    let lengths = lines.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    lengths.sum()
}

/// The longest path and query.
const URL_BYTES_MAX: usize = 32 * 1024;
/// The longest host: a name of 253 bytes and a port. Responses repeat it for each entity.
const HOST_BYTES_MAX: usize = 253 + ":65535".len();
/// The longest headers.
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// The most headers: hyper reads no more.
pub(super) const HEADERS_MAX: usize = 100;
