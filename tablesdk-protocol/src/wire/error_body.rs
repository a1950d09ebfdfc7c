//! [`ServiceError`] as the body of a response.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2>.

use http::{HeaderMap, StatusCode};
use quick_xml::escape::partial_escape;
use serde::{Deserialize, Serialize};

use super::xml::{self, plain};
use crate::types::header::X_MS_ERROR_CODE;
use crate::types::{ErrorCode, ServiceError, Timestamp};

/// How a server writes the message of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are these two forms")]
pub enum ErrorForm {
    /// The request's id and the time follow, each in a line.
    #[default]
    Storage,
    /// A line with the request's id in another spelling follows, behind a line of the gateway if
    /// that refused the request. The language is `en-us`, and a line end follows the body.
    Cosmos,
}

impl ErrorForm {
    const fn language(self) -> &'static str {
        match self {
            Self::Storage => "en-US",
            Self::Cosmos => "en-us",
        }
    }

    fn message(self, error: &ServiceError, request_id: &str, now: &str) -> String {
        let message = error.message();
        match self {
            Self::Storage => format!("{message}{ID_LINE}{request_id}\nTime:{now}"),
            Self::Cosmos => {
                let activity = match error.status() {
                    StatusCode::BAD_REQUEST | StatusCode::NOT_IMPLEMENTED => {
                        format!("{ACTIVITY_LINE}{request_id}{GATEWAY}")
                    }
                    StatusCode::TOO_MANY_REQUESTS => format!("{ACTIVITY_LINE}{request_id}"),
                    _ => String::new(),
                };
                format!("{message}{activity}{COSMOS_ID_LINE}{request_id}\n")
            }
        }
    }
}

/// Prints the error as OData JSON on one line, with the request's id and time at the end of the
/// message.
pub fn write(error: &ServiceError, form: ErrorForm, request_id: &str, now: Timestamp) -> Vec<u8> {
    let message = form.message(error, request_id, &now.to_string());
    let body = Body {
        error: Inner {
            code: error.code().as_str(),
            message: Message {
                lang: form.language(),
                value: &message,
            },
        },
    };
    let mut json = serde_json::to_vec(&body).expect("an error of texts is JSON");
    if form == ErrorForm::Cosmos {
        json.extend_from_slice(b"\r\n");
    }
    json
}

/// Prints the error as XML, for operations whose bodies are XML.
pub fn write_xml(error: &ServiceError, request_id: &str, now: Timestamp) -> Vec<u8> {
    [xml::DECLARATION, &front_end_element(error, request_id, now)]
        .concat()
        .into_bytes()
}

/// Prints the error as XML, for operations on tables and entities that accept any type.
// SERVICE: the declaration is assumed.
pub fn write_data_xml(error: &ServiceError, request_id: &str, now: Timestamp) -> Vec<u8> {
    let element = element("", "", error, request_id, &now.to_string());
    [xml::DECLARATION, &element].concat().into_bytes()
}

/// Prints the error as XML, for a request whose protocol version cannot be read.
pub fn write_unversioned_xml(error: &ServiceError, request_id: &str, now: Timestamp) -> Vec<u8> {
    let element = front_end_element(error, request_id, now);
    [xml::BYTE_ORDER_MARK, STANDALONE, &element]
        .concat()
        .into_bytes()
}

/// The error as the front end prints it.
fn front_end_element(error: &ServiceError, request_id: &str, now: Timestamp) -> String {
    // SERVICE: here the time has all seven digits.
    element("m:", ":m", error, request_id, &now.to_padded_string())
}

/// The error as an element whose names have that prefix. `of_namespace` follows `xmlns`.
fn element(
    prefix: &str,
    of_namespace: &str,
    error: &ServiceError,
    request_id: &str,
    now: &str,
) -> String {
    let form = ErrorForm::Storage;
    let message = form.message(error, request_id, now);
    format!(
        "<{prefix}error xmlns{of_namespace}=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
        <{prefix}code>{}</{prefix}code><{prefix}message xml:lang=\"{}\">{}</{prefix}message></{prefix}error>",
        partial_escape(error.code().as_str()),
        form.language(),
        partial_escape(&message),
    )
}

/// Reads the error of a response, as [`recognise`] does, or else from the status only.
pub fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServiceError {
    recognise(status, headers, body).unwrap_or_else(|| {
        let reason = status
            .canonical_reason()
            .unwrap_or("an answer that is no error of the table service");
        ServiceError::new(ErrorCode::Other(status.as_str().to_owned()), reason).with_status(status)
    })
}

/// Reads the error of a response from its body, JSON or XML, or else from the `x-ms-error-code`
/// header. `None` when it has neither: then the response is not the service's, but for example a
/// proxy's.
pub fn recognise(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Option<ServiceError> {
    let in_body = match serde_json::from_slice::<OwnedBody>(body) {
        Ok(body) => Some((body.error.code, body.error.message.value)),
        Err(_) => read_xml(body),
    };
    if let Some((code, message)) = in_body {
        let id_line = [ID_LINE, COSMOS_ID_LINE, ACTIVITY_LINE].into_iter();
        let end = id_line.filter_map(|line| message.find(line)).min();
        let message = message.get(..end.unwrap_or(message.len()));
        let message = message.unwrap_or_default().trim_end().to_owned();
        return Some(ServiceError::new(ErrorCode::from_wire(&code), message).with_status(status));
    }
    let code = headers.get(X_MS_ERROR_CODE)?.to_str().ok()?;
    let code = ErrorCode::from_wire(code);
    let message = code.message();
    Some(ServiceError::new(code, message).with_status(status))
}

/// Code and message of `<m:error><m:code>…`, as the service writes it, or of `<Error><Code>…`, as
/// emulators do.
fn read_xml(body: &[u8]) -> Option<(String, String)> {
    let (root, document) = plain(body).ok()?;
    let error: XmlBody = quick_xml::de::from_str(&document).ok()?;
    root.eq_ignore_ascii_case("error").then(|| {
        (
            error.code.trim().to_owned(),
            error.message.trim().to_owned(),
        )
    })
}

const STANDALONE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>";

/// The line between the message of an error and the request id.
const ID_LINE: &str = "\nRequestId:";
const COSMOS_ID_LINE: &str = "\nRequestID:";
const ACTIVITY_LINE: &str = "\r\nActivityId: ";
/// The text that the gateway of Cosmos DB adds to the id.
const GATEWAY: &str = ", documentdb-dotnet-sdk/2.11.0 Host/64-bit MicrosoftWindowsNT/6.2.9200.0";

#[derive(Deserialize)]
struct XmlBody {
    #[serde(alias = "Code")]
    code: String,
    #[serde(alias = "Message", default)]
    message: String,
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
        let id = "f60fc35a-b002-003e-4e82-ae3ae4000000";
        let body = write(&error, ErrorForm::Storage, id, now);
        assert_eq!(
            String::from_utf8(body.clone()).unwrap(),
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:f60fc35a-b002-003e-4e82-ae3ae4000000\nTime:2021-09-21T00:50:21.0781298Z"}}}"#
        );
        assert_eq!(read(StatusCode::NOT_FOUND, &HeaderMap::new(), &body), error);
    }

    #[test]
    fn prints_the_body_of_cosmos_and_reads_it_back() {
        let shown = |body: &[u8]| {
            let line = body.strip_suffix(b"\r\n").unwrap();
            String::from_utf8(line.to_vec()).unwrap()
        };
        let error = ServiceError::from(ErrorCode::ResourceNotFound);
        let body = write(&error, ErrorForm::Cosmos, "x", Timestamp::UNIX_EPOCH);
        assert_eq!(
            shown(&body),
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-us","value":"The specified resource does not exist.\nRequestID:x\n"}}}"#
        );
        assert_eq!(read(StatusCode::NOT_FOUND, &HeaderMap::new(), &body), error);
        let error = ServiceError::from(ErrorCode::NotImplemented);
        let body = write(&error, ErrorForm::Cosmos, "x", Timestamp::UNIX_EPOCH);
        assert_eq!(
            shown(&body),
            r#"{"odata.error":{"code":"NotImplemented","message":{"lang":"en-us","value":"The requested operation is not implemented on the specified resource.\r\nActivityId: x, documentdb-dotnet-sdk/2.11.0 Host/64-bit MicrosoftWindowsNT/6.2.9200.0\nRequestID:x\n"}}}"#
        );
        let status = StatusCode::NOT_IMPLEMENTED;
        assert_eq!(read(status, &HeaderMap::new(), &body), error);
    }

    #[test]
    fn prints_xml_and_reads_both_shapes_of_it() {
        let error = ServiceError::from(ErrorCode::InvalidXmlDocument);
        let now = "2021-09-21T00:50:22.4180690Z".parse().unwrap();
        let id = "f60fc3ae-b002-003e-1a82-ae3ae4000000";
        let body = write_xml(&error, id, now);
        assert_eq!(
            String::from_utf8(body.clone()).unwrap(),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>InvalidXmlDocument</m:code><m:message xml:lang=\"en-US\">XML specified is not syntactically valid.\nRequestId:f60fc3ae-b002-003e-1a82-ae3ae4000000\nTime:2021-09-21T00:50:22.4180690Z</m:message></m:error>"
        );
        assert_eq!(
            read(StatusCode::BAD_REQUEST, &HeaderMap::new(), &body),
            error
        );
        let azurite = b"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<Error>\n  <Code>InvalidXmlDocument</Code>\n  <Message>XML specified is not syntactically valid.\nRequestId:1\nTime:2</Message>\n</Error>";
        assert_eq!(
            read(StatusCode::BAD_REQUEST, &HeaderMap::new(), azurite),
            error
        );
        let other = b"<html><code>InvalidXmlDocument</code></html>";
        let code = read(StatusCode::BAD_REQUEST, &HeaderMap::new(), other);
        assert_eq!(code.code().as_str(), "400");
    }

    #[test]
    fn the_tables_and_a_request_without_a_version_have_xml_of_their_own() {
        let error = ServiceError::from(ErrorCode::ResourceNotFound);
        let now = "2021-09-21T00:50:22.4180690Z".parse().unwrap();
        let text = |body: Vec<u8>| String::from_utf8(body).unwrap();
        assert_eq!(
            text(write_data_xml(&error, "x", now)),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><code>ResourceNotFound</code><message xml:lang=\"en-US\">The specified resource does not exist.\nRequestId:x\nTime:2021-09-21T00:50:22.418069Z</message></error>"
        );
        assert_eq!(
            text(write_unversioned_xml(&error, "x", now)),
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>ResourceNotFound</m:code><m:message xml:lang=\"en-US\">The specified resource does not exist.\nRequestId:x\nTime:2021-09-21T00:50:22.4180690Z</m:message></m:error>"
        );
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
