//! Get and Set Table ACL: the stored access policies of a table.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-acl> and
//! <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::auth::SignedIdentifier;
use crate::path::Endpoint;
use crate::types::{ServiceError, TableName};
use crate::wire::xml::{self, XmlError, read_signed_identifiers, write_signed_identifiers};

/// `GET /people?comp=acl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetRequest {
    /// The table whose policies are asked for.
    pub table: TableName,
}

impl GetRequest {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        message::xml_request(Method::GET, endpoint, self.table.as_str(), &options())
    }
}

/// 200 with the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetResponse {
    /// The policies, in the order in which they were set.
    pub identifiers: Vec<SignedIdentifier>,
}

impl GetResponse {
    /// The HTTP response.
    pub fn encode(&self) -> HttpResponse<Bytes> {
        let body = write_signed_identifiers(&self.identifiers);
        Answer::xml(StatusCode::OK, body.into()).into_response()
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When the body is not a list of policies.
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
        let document = write_signed_identifiers(&self.identifiers);
        message::with_xml(request, xml::request_body(document))
    }

    pub(super) fn decode(
        table: TableName,
        request: &RequestParts<'_>,
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
    /// The HTTP response.
    pub fn encode(self) -> HttpResponse<Bytes> {
        Answer::empty().into_response()
    }
}

fn options() -> QueryOptions {
    let mut options = QueryOptions::default();
    options.push("comp", "acl");
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::AccessPolicy;
    use crate::auth::sas::SasLetters;

    #[test]
    fn policies_are_sent_as_clients_send_them() {
        let endpoint: Endpoint = "https://acct.table.core.windows.net".parse().unwrap();
        let request = |identifiers| {
            let table = TableName::new("people").unwrap();
            SetRequest { table, identifiers }.encode(&endpoint)
        };
        let policy = AccessPolicy {
            start: Some("2021-06-08T02:05:09Z".parse().unwrap()),
            expiry: None,
            permissions: Some(SasLetters::parse("ra").unwrap()),
        };
        let sent = request(vec![
            SignedIdentifier {
                id: "a&b".to_owned(),
                policy,
            },
            SignedIdentifier {
                id: "open".to_owned(),
                ..SignedIdentifier::default()
            },
        ]);
        assert_eq!(sent.method(), Method::PUT);
        let url = "https://acct.table.core.windows.net/people?comp=acl";
        assert_eq!(sent.uri(), url);
        assert_eq!(sent.headers()["content-type"], "application/xml");
        let body = concat!(
            r#"<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>"#,
            "<SignedIdentifier><Id>a&amp;b</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start>",
            "<Permission>ra</Permission></AccessPolicy></SignedIdentifier>",
            "<SignedIdentifier><Id>open</Id></SignedIdentifier></SignedIdentifiers>",
        );
        assert_eq!(sent.body(), body);
        let body = r#"<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />"#;
        assert_eq!(request(Vec::new()).body(), body);
    }
}
