//! A request that changes one entity, in the two forms in which a client sends it: alone, and as a
//! part of a batch.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request as HttpRequest, header};

use super::message::{self, Prefer};
use super::update_entity::MergeMethod;
use super::{DATA_SERVICE_VERSION, JSON, QueryOptions};
use crate::path::Endpoint;
use crate::types::header::{self as name, PREFER, X_HTTP_METHOD};
use crate::types::{EntityKey, IfMatch, TableName};
use crate::wire::http_message;
use crate::wire::json::MetadataLevel;

/// The parts of a request that changes an entity.
#[derive(Clone, Debug)]
pub(super) struct EntityChange<'c> {
    pub(super) method: Method,
    pub(super) table: &'c TableName,
    /// The key in the URL; an insert has none.
    pub(super) key: Option<&'c EntityKey>,
    pub(super) prefer: Prefer,
    pub(super) if_match: Option<&'c IfMatch>,
    /// The entity as JSON; a delete has none.
    pub(super) body: Option<&'c Bytes>,
}

impl EntityChange<'_> {
    /// The request that is sent alone.
    ///
    /// # Panics
    ///
    /// When the condition holds a character that no header can.
    pub(super) fn to_request(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let uri = endpoint.entity_uri(self.table, self.key, &QueryOptions::default());
        let mut request = message::request_to(self.method.clone(), uri);
        let headers = request.headers_mut();
        if let Some(prefer) = self.prefer.as_str() {
            headers.insert(PREFER, HeaderValue::from_static(prefer));
        }
        if let Some(if_match) = self.if_match {
            let condition = HeaderValue::from_str(if_match.as_str());
            headers.insert(header::IF_MATCH, condition.expect(NO_HEADER));
        }
        match self.body {
            Some(body) => message::with_json(request, body.clone()),
            None => request,
        }
    }

    /// Appends the request as text.
    ///
    /// # Panics
    ///
    /// When the condition holds a character that no header can.
    pub(super) fn write(&self, out: &mut Vec<u8>, text: &mut ChangeText<'_>) {
        let ChangeText {
            endpoint,
            merge,
            url,
            lines,
            lines_of_body,
        } = text;
        let is_merge_by_post = self.method == Method::PATCH && *merge == MergeMethod::Post;
        let method = if is_merge_by_post {
            Method::POST.as_str()
        } else {
            self.method.as_str()
        };
        url.clear();
        endpoint.write_entity_url(url, self.table, self.key);
        push(out, &[method, " ", url, " HTTP/1.1\r\n"]);
        let lines = if self.body.is_some() {
            lines_of_body
        } else {
            lines
        };
        out.extend_from_slice(lines);
        if let Some(prefer) = self.prefer.as_str() {
            push_header(out, &PREFER, prefer);
        }
        if let Some(if_match) = self.if_match {
            let value = if_match.as_str();
            assert!(http_message::is_value(value.as_bytes()), "{NO_HEADER}");
            push_header(out, &header::IF_MATCH, value);
        }
        if is_merge_by_post {
            push_header(out, &X_HTTP_METHOD, "MERGE");
        }
        out.extend_from_slice(b"\r\n");
        if let Some(body) = self.body {
            out.extend_from_slice(body);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// About as many bytes as the text takes, without its URL up to the table.
    pub(super) fn text_bytes(&self) -> usize {
        let key = self.key.map_or(0, |key| {
            key.partition_key().as_str().len() + key.row_key().as_str().len()
        });
        let if_match = self.if_match.map_or(0, |if_match| if_match.as_str().len());
        self.body.map_or(0, Bytes::len) + key + if_match + HEAD_BYTES
    }
}

/// The parts that the texts of all changes share.
pub(super) struct ChangeText<'c> {
    endpoint: &'c Endpoint,
    merge: MergeMethod,
    /// Memory for a URL.
    url: String,
    /// The headers that every change has.
    lines: Vec<u8>,
    /// The headers of a change with a body.
    lines_of_body: Vec<u8>,
}

impl<'c> ChangeText<'c> {
    pub(super) fn new(endpoint: &'c Endpoint, merge: MergeMethod) -> Self {
        let (mut lines, mut lines_of_body) = (Vec::new(), Vec::new());
        // In the order in which clients of the service write them.
        for out in [&mut lines, &mut lines_of_body] {
            push_header(out, &header::ACCEPT, MetadataLevel::Minimal.accept());
        }
        push_header(&mut lines_of_body, &header::CONTENT_TYPE, JSON);
        for out in [&mut lines, &mut lines_of_body] {
            push_header(out, &name::DATA_SERVICE_VERSION, DATA_SERVICE_VERSION);
        }
        Self {
            endpoint,
            merge,
            url: String::new(),
            lines,
            lines_of_body,
        }
    }
}

fn push_header(out: &mut Vec<u8>, header: &HeaderName, value: &str) {
    push(out, &[name::spelling(header), ": ", value, "\r\n"]);
}

fn push(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// About as many bytes as the fixed part of a head takes.
const HEAD_BYTES: usize = 240;

/// The message of a panic.
const NO_HEADER: &str = "an ETag that no header can hold";
