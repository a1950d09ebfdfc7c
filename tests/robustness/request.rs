//! Requests of each operation: valid, damaged, and signed in each way.

use std::fmt;
use std::net::SocketAddr;
use std::time::SystemTime;

use fastrand::Rng;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use percent_encoding::percent_decode_str;
use tablesdk::{SharedKey, Timestamp};
use tablesdk_protocol::auth::sas::SignedSas;
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::TableServer;

use crate::garble::{BODY_WORDS, HEADER_NAMES, HEADER_WORDS, URL_WORDS, garble, garble_message};

/// The table that requests are about.
pub(crate) const TABLE: &str = "people";

/// A request as it is sent.
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    pub(crate) framing: Framing,
    /// Its signatures, which must be in no response and in no log.
    pub(crate) signatures: Vec<String>,
}

/// The number of responses that a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One request, one response.
    One,
    /// The same, but its response has no body.
    NoBody,
    /// As many as the server finds.
    Unknown,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.bytes.escape_ascii().to_string();
        write!(f, "{:?} {:.4000}", self.framing, text)
    }
}

/// Makes up one request after the other.
pub(crate) struct Sender {
    account: String,
    key: SharedKey,
    address: SocketAddr,
    rng: Rng,
}

/// A request before it is signed. The target is below the account.
#[derive(Clone)]
struct Draft {
    method: String,
    target: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(server: &TableServer, rng: Rng) -> Self {
        let key = server.credential();
        Self {
            account: key.account().to_owned(),
            address: server.local_addr().unwrap(),
            key,
            rng,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn next(&mut self) -> Request {
        let mut draft = self.draft();
        let mut signatures = Vec::new();
        let account_sas = "ss=t&srt=sco&sp=rwdlau";
        let table_sas = format!("tn={TABLE}&sp=raud");
        let sas = match self.rng.u8(..10) {
            0 => Some(account_sas),
            1 => Some(&*table_sas),
            _ => None,
        };
        if let Some(fields) = sas {
            let query = self.sas(fields, &mut signatures);
            let has_query = draft.target.contains(&b'?');
            draft.target.push(if has_query { b'&' } else { b'?' });
            draft.target.extend(query.bytes());
        }
        for _ in 0..self.rng.usize(..3) {
            self.garble(&mut draft);
        }
        let method = draft.tame();
        if sas.is_none() && self.rng.u8(..20) > 0 {
            self.sign(&mut draft, &mut signatures);
        }
        let is_head = method == Method::HEAD;
        let mut request = Request {
            bytes: self.print(&draft),
            framing: if is_head {
                Framing::NoBody
            } else {
                Framing::One
            },
            signatures,
        };
        if self.rng.u8(..4) == 0 {
            garble_message(&mut self.rng, &mut request.bytes);
            request.framing = Framing::Unknown;
        }
        request
    }

    /// One of every operation there is.
    fn draft(&mut self) -> Draft {
        let row = self.rng.u8(..20);
        let entity = format!("/{TABLE}(PartitionKey='p',RowKey='{row}')");
        let properties = r#""a":1,"b":"text","c@odata.type":"Edm.Int64","c":"7","d":1.5,"e@odata.type":"Edm.Binary","e":"AQID","f@odata.type":"Edm.Guid","f":"c9da6455-213d-42c9-9a79-3e9149a57833","g@odata.type":"Edm.DateTime","g":"2024-01-01T00:00:00Z","h":true"#;
        let insert = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{properties}}}"#);
        let update = format!("{{{properties}}}");
        let json = [("Content-Type", "application/json")];
        let any = [("Content-Type", "application/json"), ("If-Match", "*")];
        let set = format!("/{TABLE}()");
        let filter = "$filter=PartitionKey%20eq%20'p'%20and%20(a%20ge%201%20or%20not%20h)%20and%20c%20lt%2010L";
        let xml = [("Content-Type", "application/xml")];
        let create = format!(r#"{{"TableName":"Made{row}"}}"#);
        let made = format!("/Tables('Made{row}')");
        let (table, acl) = (format!("/{TABLE}"), format!("/{TABLE}?comp=acl"));
        let service = "/?restype=service&comp=properties";
        let select = format!("{entity}?$select=a,b,c");
        let query = format!("{set}?{filter}&$select=a,zz&$top=2");
        let next = format!("{set}?NextPartitionKey=1!4!cA--&NextRowKey=1!4!MQ--");
        let tunnel = [("X-HTTP-Method", "MERGE"), any[0], any[1]];
        let preflight = [
            ("Origin", "http://page"),
            ("Access-Control-Request-Method", "GET"),
        ];
        let (method, target, headers, body): (_, &str, &[_], &str) = match self.rng.u8(..24) {
            0 => (
                "GET",
                "/Tables?$filter=TableName%20ge%20'M'&$top=3",
                &[],
                "",
            ),
            1 => ("POST", "/Tables", &json, &create),
            2 => ("GET", &format!("/Tables('{TABLE}')"), &[], ""),
            3 => ("DELETE", &made, &[], ""),
            4 => ("GET", &acl, &[], ""),
            5 => ("PUT", &acl, &xml, ACL),
            6 => ("GET", service, &[], ""),
            7 => ("PUT", service, &xml, PROPERTIES),
            8 => ("GET", "/?restype=service&comp=stats", &[], ""),
            9 => ("GET", "/$metadata", &[], ""),
            10..=12 => ("POST", &table, &json, &insert),
            13 => ("PUT", &entity, &any, &update),
            14 => ("PUT", &entity, &json, &update),
            15 => ("MERGE", &entity, &any, &update),
            16 => ("PATCH", &entity, &json, &update),
            17 => ("POST", &entity, &tunnel, &update),
            18 => ("DELETE", &entity, &any[1..], ""),
            19 => ("GET", &select, &[], ""),
            20 => ("GET", &query, &[], ""),
            21 => ("GET", &next, &[], ""),
            22 => return self.batch(&insert, &update),
            _ => ("OPTIONS", &set, &preflight, ""),
        };
        Draft::new(method, target, headers, body)
    }

    fn batch(&mut self, insert: &str, update: &str) -> Draft {
        let (account, row) = (&self.account, self.rng.u8(..20));
        let entity = format!("/{account}/{TABLE}(PartitionKey='p',RowKey='{row}')");
        let part = |line: String, headers: &str, body: &str| {
            let length = body.len();
            format!(
                "--change\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 {line} HTTP/1.1\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}\r\n"
            )
        };
        let changes = [
            part(
                format!("POST /{account}/{TABLE}"),
                "Prefer: return-no-content\r\n",
                insert,
            ),
            part(format!("PUT {entity}"), "", update),
            part(format!("DELETE {entity}"), "If-Match: *\r\n", ""),
        ];
        let count = self.rng.usize(..=3);
        let body = format!(
            "--batch\r\nContent-Type: multipart/mixed; boundary=change\r\n\r\n{}--change--\r\n--batch--\r\n",
            changes[..count].concat()
        );
        let content_type = ("Content-Type", "multipart/mixed; boundary=batch");
        Draft::new("POST", "/$batch", &[content_type], &body)
    }

    fn garble(&mut self, draft: &mut Draft) {
        let rng = &mut self.rng;
        match rng.u8(..10) {
            0..=3 => garble(rng, &mut draft.target, URL_WORDS),
            4..=6 => garble(rng, &mut draft.body, BODY_WORDS),
            7 => {
                let index = rng.usize(..draft.headers.len());
                garble(rng, &mut draft.headers[index].1, HEADER_WORDS);
            }
            8 => {
                let name = rng.choice(HEADER_NAMES).unwrap();
                let mut value = Vec::new();
                for _ in 0..rng.usize(1..3) {
                    garble(rng, &mut value, HEADER_WORDS);
                }
                draft.headers.push(((*name).to_owned(), value));
            }
            _ => {
                let methods = [
                    "GET", "PUT", "POST", "PATCH", "MERGE", "DELETE", "HEAD", "OPTIONS", "BREW",
                ];
                draft.method = (*rng.choice(&methods).unwrap()).to_owned();
            }
        }
    }

    fn sas(&mut self, fields: &str, signatures: &mut Vec<String>) -> String {
        let day = self.rng.u32(1..=28);
        let year = self.rng.u32(2100..2900);
        let fields = format!("sv=2019-02-02&{fields}&se={year}-01-{day:02}&sig=x");
        let sas = SignedSas::parse(&fields)
            .unwrap()
            .into_sas()
            .sign(&self.key);
        let query = sas.expose().as_str().to_owned();
        let signature = query.split("sig=").nth(1).unwrap();
        let signature = signature.split('&').next().unwrap();
        signatures.push(
            percent_decode_str(signature)
                .decode_utf8()
                .unwrap()
                .into_owned(),
        );
        query
    }

    /// Adds date and signature, unless the URL cannot be parsed.
    fn sign(&mut self, draft: &mut Draft, signatures: &mut Vec<String>) {
        let now = Timestamp::try_from(SystemTime::now()).unwrap();
        let date = now.to_http_date().into_bytes();
        draft.headers.push(("x-ms-date".to_owned(), date));
        let mut headers = HeaderMap::new();
        for (name, value) in &draft.headers {
            let name: HeaderName = name.parse().unwrap();
            // As they are read: without the space around them.
            let value = HeaderValue::from_bytes(value.trim_ascii()).unwrap();
            headers.append(name, value);
        }
        let Ok(uri) = Uri::try_from(self.url(draft)) else {
            return;
        };
        let scheme = if self.rng.bool() {
            Scheme::SharedKey
        } else {
            Scheme::SharedKeyLite
        };
        let method = draft.method.parse().unwrap();
        let text = string_to_sign(scheme, &self.account, &method, &uri, &headers);
        let signature = self.key.sign(&text).expose().to_owned();
        let credential = format!("{} {}:{signature}", scheme.as_str(), self.account);
        let header = ("Authorization".to_owned(), credential.into_bytes());
        draft.headers.push(header);
        signatures.push(signature);
    }

    fn url(&self, draft: &Draft) -> Vec<u8> {
        let mut url = format!("/{}", self.account).into_bytes();
        url.extend(&draft.target);
        url
    }

    fn print(&mut self, draft: &Draft) -> Vec<u8> {
        let mut bytes = format!("{} ", draft.method).into_bytes();
        bytes.extend(self.url(draft));
        bytes.extend(format!(" HTTP/1.1\r\nHost: {}\r\n", self.address).bytes());
        for (name, value) in &draft.headers {
            bytes.extend(format!("{name}: ").bytes());
            bytes.extend(value);
            bytes.extend(b"\r\n");
        }
        if self.rng.u8(..8) == 0 {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in draft.body.chunks(100) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        } else {
            bytes.extend(format!("Content-Length: {}\r\n\r\n", draft.body.len()).bytes());
            bytes.extend(&draft.body);
        }
        bytes
    }
}

impl Draft {
    fn new(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let usual = [
            ("Accept", "application/json;odata=fullmetadata"),
            ("x-ms-version", "2020-12-06"),
        ];
        let headers = usual.iter().chain(headers);
        let headers = headers.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        Self {
            method: method.to_owned(),
            target: target.as_bytes().to_vec(),
            headers: headers.collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    /// Removes the bytes that would end a line, so that it remains one request.
    fn tame(&mut self) -> Method {
        for byte in &mut self.target {
            if *byte <= b' ' || *byte == 0x7f || *byte == b'#' {
                *byte = b'%';
            }
        }
        for (_, value) in &mut self.headers {
            value.retain(|byte| !matches!(byte, 0..=0x1f | 0x7f));
        }
        self.method.parse().unwrap()
    }
}

const ACL: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
    <Start>2024-01-01T00:00:00Z</Start><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>raud</Permission></AccessPolicy>\
    </SignedIdentifier></SignedIdentifiers>";

const PROPERTIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Cors><CorsRule>\
    <AllowedOrigins>http://page</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-*</AllowedHeaders>\
    <ExposedHeaders>x-*</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
