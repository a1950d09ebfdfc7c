//! What happens to every request, in order: date and version, signature, sending, and a first look at the answer.
//!
//! Knows nothing of what an operation means.

mod sign;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use tablesdk_protocol::wire::{error_body, header as name};
use tablesdk_protocol::{Clock, Endpoint, Transport};

use crate::Error;
use crate::credential::Credential;

/// Sends requests to one account.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) endpoint: Endpoint,
    pub(crate) credential: Credential,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Pipeline {
    /// Sends the request of an operation and gives back the answer of its success.
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        mut request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Error> {
        self.prepare(&mut request);
        let answer = self.transport.send(request).await;
        let response = answer.map_err(|error| Error::transport(error).with_operation(operation))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let request_id = response.headers().get(name::X_MS_REQUEST_ID);
        let request_id = request_id
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let error = error_body::read(response.status(), response.headers(), response.body());
        Err(Error::service(error)
            .with_operation(operation)
            .with_request_id(request_id))
    }

    /// Adds what every request has, and signs it: after this, nothing may change.
    fn prepare(&self, request: &mut Request<Bytes>) {
        let date = self.clock.now().to_http_date();
        let headers = request.headers_mut();
        headers.insert(
            name::X_MS_VERSION,
            HeaderValue::from_static(SERVICE_VERSION),
        );
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(name::X_MS_DATE, ascii(&date));
        headers.insert(name::X_MS_CLIENT_REQUEST_ID, ascii(&client_request_id()));
        sign::sign(&self.credential, request);
    }
}

/// A random GUID of version 4.
fn client_request_id() -> String {
    let mut bytes = fastrand::u128(..).to_be_bytes();
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = *version & 0x0F | 0x40;
    *variant = *variant & 0x3F | 0x80;
    tablesdk_protocol::Guid::from_bytes(bytes).to_string()
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("dates and GUIDs are visible ASCII")
}

/// Known to Azure Table storage, Cosmos DB and every emulator.
const SERVICE_VERSION: &str = "2019-02-02";
const USER_AGENT: &str = concat!("tablesdk/", env!("CARGO_PKG_VERSION"));
