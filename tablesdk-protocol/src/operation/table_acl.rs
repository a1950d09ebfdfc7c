//! Get and Set Table ACL: the stored access policies of a table.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-acl> and
//! <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, ReceivedRequest};
use crate::wire::xml::{XmlError, read_signed_identifiers, write_signed_identifiers};
use crate::{Endpoint, ServiceError, SignedIdentifier, TableName};

/// `GET /people?comp=acl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetRequest {
    /// The table whose policies are asked for.
    pub table: TableName,
}

impl GetRequest {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        message::without_body(message::xml_request(
            Method::GET,
            endpoint,
            self.table.as_str(),
            &options(),
        ))
    }
}

/// 200 with the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetResponse {
    /// The policies, in the order in which they were set.
    pub identifiers: Vec<SignedIdentifier>,
}

impl GetResponse {
    /// The HTTP answer.
    pub fn encode(&self) -> HttpResponse<Bytes> {
        let body = write_signed_identifiers(&self.identifiers);
        Answer::xml(StatusCode::OK, body.into()).into_response()
    }

    /// Reads the HTTP answer of a success.
    ///
    /// # Errors
    ///
    /// When the body is no list of policies.
    pub fn decode(response: &HttpResponse<Bytes>) -> Result<Self, XmlError> {
        let identifiers = read_signed_identifiers(response.body())?;
        Ok(Self { identifiers })
    }
}

/// `PUT /people?comp=acl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRequest {
    /// The table whose policies are replaced.
    pub table: TableName,
    /// All the policies that it has from now on.
    pub identifiers: Vec<SignedIdentifier>,
}

impl SetRequest {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let request = message::xml_request(Method::PUT, endpoint, self.table.as_str(), &options());
        message::with_xml(request, write_signed_identifiers(&self.identifiers).into())
    }

    pub(super) fn decode(
        table: TableName,
        request: &ReceivedRequest,
    ) -> Result<Self, ServiceError> {
        // The Python client sends no body where there are no policies.
        let identifiers = if request.body.is_empty() {
            Vec::new()
        } else {
            read_signed_identifiers(&request.body)?
        };
        Ok(Self { table, identifiers })
    }
}

/// 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetResponse;

impl SetResponse {
    /// The HTTP answer.
    pub fn encode(self) -> HttpResponse<Bytes> {
        Answer::empty().into_response()
    }
}

fn options() -> QueryOptions {
    let mut options = QueryOptions::default();
    options.push("comp", "acl");
    options
}
