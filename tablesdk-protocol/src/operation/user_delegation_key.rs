//! Get User Delegation Key: a key that signs for tables with the rights of an Entra ID user.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>.
// SERVICE: for tables, all of it is from the documentation.

use bytes::Bytes;
use http::{HeaderValue, Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::auth::sas::{FIRST_VERSION_WITH_DELEGATION, KeyTerms, UserDelegationKey};
use crate::path::Endpoint;
use crate::types::header::X_MS_VERSION;
use crate::types::{ErrorCode, ServiceError};
use crate::wire::xml::{self, XmlError};

/// `POST /?restype=service&comp=userdelegationkey`, with a bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The terms of the key.
    pub terms: KeyTerms,
}

impl Request {
    /// The HTTP request. It has the version of the protocol that knows the operation.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let mut options = QueryOptions::default();
        options.push("restype", "service");
        options.push("comp", "userdelegationkey");
        let mut request = message::xml_request(Method::POST, endpoint, "", &options);
        let version = HeaderValue::from_static(FIRST_VERSION_WITH_DELEGATION);
        request.headers_mut().insert(X_MS_VERSION, version);
        message::with_xml(request, xml::request_body(xml::write_key_info(&self.terms)))
    }

    pub(super) fn decode(request: &RequestParts<'_>) -> Result<Self, ServiceError> {
        let version = request.headers.first(X_MS_VERSION).unwrap_or_default();
        // SERVICE: an older version does not know the value of `comp`.
        if version < FIRST_VERSION_WITH_DELEGATION.as_bytes() {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        let terms = xml::read_key_info(&request.body)?;
        Ok(Self { terms })
    }
}

/// 200 with the key.
#[derive(Clone, Debug)]
pub struct Response {
    /// The key.
    pub key: UserDelegationKey,
}

impl Response {
    /// The HTTP response.
    pub fn encode(&self) -> HttpResponse<Bytes> {
        let body = xml::write_user_delegation_key(&self.key);
        Answer::xml(StatusCode::OK, body.into()).into_response()
    }

    /// Reads the HTTP response of a success: a key of that account.
    ///
    /// # Errors
    ///
    /// When the body holds no key of the table service.
    pub fn decode(account: &str, response: &HttpResponse<Bytes>) -> Result<Self, XmlError> {
        let key = xml::read_user_delegation_key(account, response.body())?;
        Ok(Self { key })
    }
}
