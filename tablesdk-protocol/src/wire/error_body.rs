//! [`ServiceError`] as the body of an answer.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2>.

use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use super::header::X_MS_ERROR_CODE;
use crate::{ErrorCode, ServiceError, Timestamp};

/// Prints the error as OData JSON on one line, with the request's id and time at the end of the message.
pub fn write(error: &ServiceError, request_id: &str, now: Timestamp) -> Vec<u8> {
    let message = format!("{}\nRequestId:{request_id}\nTime:{now}", error.message());
    let body = Body {
        error: Inner {
            code: error.code().as_str(),
            message: Message {
                lang: "en-US",
                value: &message,
            },
        },
    };
    serde_json::to_vec(&body).expect("an error of texts is JSON")
}

/// Reads the error of an answer: from its JSON body; else from the `x-ms-error-code` header; else from the status alone.
pub fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServiceError {
    if let Ok(body) = serde_json::from_slice::<OwnedBody>(body) {
        let error = body.error;
        let message = error.message.value;
        let message = message
            .split("\nRequestId:")
            .next()
            .unwrap_or_default()
            .to_owned();
        return ServiceError::new(ErrorCode::from_wire(&error.code), message).with_status(status);
    }
    let code = headers
        .get(X_MS_ERROR_CODE)
        .and_then(|code| code.to_str().ok());
    match code.map(ErrorCode::from_wire) {
        Some(code) => {
            let message = code.message();
            ServiceError::new(code, message).with_status(status)
        }
        None => {
            let reason = status
                .canonical_reason()
                .unwrap_or("an answer that is no error of the table service");
            ServiceError::new(ErrorCode::Other(status.as_str().to_owned()), reason)
                .with_status(status)
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "odata.error")]
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    code: &'a str,
    message: Message<'a>,
}

#[derive(Serialize)]
struct Message<'a> {
    lang: &'a str,
    value: &'a str,
}

#[derive(Deserialize)]
struct OwnedBody {
    #[serde(rename = "odata.error")]
    error: OwnedInner,
}

#[derive(Deserialize)]
struct OwnedInner {
    code: String,
    message: OwnedMessage,
}

#[derive(Deserialize)]
struct OwnedMessage {
    value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_body_of_the_service_and_reads_it_back() {
        let error = ServiceError::from(ErrorCode::ResourceNotFound);
        let now = "2021-09-21T00:50:21.0781298Z".parse().unwrap();
        let body = write(&error, "f60fc35a-b002-003e-4e82-ae3ae4000000", now);
        assert_eq!(
            String::from_utf8(body.clone()).unwrap(),
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:f60fc35a-b002-003e-4e82-ae3ae4000000\nTime:2021-09-21T00:50:21.0781298Z"}}}"#
        );
        assert_eq!(read(StatusCode::NOT_FOUND, &HeaderMap::new(), &body), error);
    }

    #[test]
    fn falls_back_to_the_header_and_then_to_the_status() {
        let mut headers = HeaderMap::new();
        let html = b"<html>Bad gateway</html>";
        let error = read(StatusCode::BAD_GATEWAY, &headers, html);
        assert_eq!(
            (error.status(), error.code().as_str()),
            (StatusCode::BAD_GATEWAY, "502")
        );
        headers.insert(X_MS_ERROR_CODE, "ServerBusy".parse().unwrap());
        let error = read(StatusCode::SERVICE_UNAVAILABLE, &headers, html);
        assert_eq!(error.code(), &ErrorCode::ServerBusy);
    }
}
