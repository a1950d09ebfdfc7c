//! The floor: what a program needs that uses reqwest and `serde_json` by hand, without a client for
//! tables.
//!
//! It signs each request with Shared Key, and reads responses into the same struct. It checks only
//! the status.

use std::error::Error;
use std::io::Write as _;
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::{Method, RequestBuilder, Response};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tablesdk::Timestamp;

use crate::entity::Employee;
use crate::fixed::{ACCOUNT, KEY};

pub(crate) struct Floor {
    http: reqwest::Client,
    key: Hmac<Sha256>,
    /// The URL up to the account.
    origin: String,
}

/// The body of a request, with the annotations that the service needs.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    entity: &'a Employee,
    #[serde(rename = "Badge@odata.type")]
    badge: &'static str,
    #[serde(rename = "Hired@odata.type")]
    hired: &'static str,
    #[serde(rename = "Office@odata.type")]
    office: &'static str,
}

impl<'a> Written<'a> {
    const fn of(entity: &'a Employee) -> Self {
        Self {
            entity,
            badge: "Edm.Int64",
            hired: "Edm.DateTime",
            office: "Edm.Guid",
        }
    }
}

#[derive(Deserialize)]
struct Page {
    value: Vec<Employee>,
}

impl Floor {
    pub(crate) fn new(origin: &str) -> Result<Self, Box<dyn Error>> {
        let key = BASE64_STANDARD.decode(KEY)?;
        Ok(Self {
            http: reqwest::Client::builder().build()?,
            key: Hmac::new_from_slice(&key)?,
            origin: origin.to_owned(),
        })
    }

    pub(crate) async fn point_read(&self, row: &str) -> Result<Employee, Box<dyn Error>> {
        let path = format!("/{ACCOUNT}/people(PartitionKey='sales',RowKey='{row}')");
        let response = self.request(Method::GET, &path, "", "")?.send().await?;
        let body = checked(response, 200)?.bytes().await?;
        Ok(serde_json::from_slice(&body)?)
    }

    pub(crate) async fn insert(&self, entity: &Employee) -> Result<String, Box<dyn Error>> {
        let body = serde_json::to_vec(&Written::of(entity))?;
        let path = format!("/{ACCOUNT}/people");
        let request = self.request(Method::POST, &path, "", JSON)?.body(body);
        let response = request.header("Prefer", "return-no-content").send().await?;
        let response = checked(response, 204)?;
        let etag = response.headers().get("etag").ok_or("no ETag")?;
        Ok(etag.to_str()?.to_owned())
    }

    pub(crate) async fn page(&self) -> Result<Vec<Employee>, Box<dyn Error>> {
        let path = format!("/{ACCOUNT}/people()");
        let query = "?$filter=PartitionKey%20eq%20'sales'";
        let response = self.request(Method::GET, &path, query, "")?.send().await?;
        let body = checked(response, 200)?.bytes().await?;
        let page: Page = serde_json::from_slice(&body)?;
        Ok(page.value)
    }

    /// Inserts entities in one transaction. Returns their ETags.
    pub(crate) async fn batch(&self, entities: &[Employee]) -> Result<Vec<String>, Box<dyn Error>> {
        let head = format!(
            "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST {}/{ACCOUNT}/people HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\
             Content-Type: application/json\r\nPrefer: return-no-content\r\nContent-ID: ",
            self.origin
        );
        let mut body = Vec::with_capacity(entities.len() * 1024);
        body.extend_from_slice(
            b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n",
        );
        for (number, entity) in entities.iter().enumerate() {
            body.extend_from_slice(head.as_bytes());
            write!(body, "{number}\r\n\r\n")?;
            serde_json::to_writer(&mut body, &Written::of(entity))?;
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--changeset_1--\r\n--batch_1--\r\n");
        let path = format!("/{ACCOUNT}/$batch");
        let request = self.request(Method::POST, &path, "", "multipart/mixed; boundary=batch_1")?;
        let response = request.body(body).send().await?;
        let body = checked(response, 202)?.bytes().await?;
        let text = std::str::from_utf8(&body)?;
        let mut etags = Vec::with_capacity(entities.len());
        for line in text.split("\r\n") {
            if let Some(etag) = line.strip_prefix("ETag: ") {
                etags.push(etag.to_owned());
            } else if line.starts_with("HTTP/1.1 4") {
                return Err(line.into());
            }
        }
        Ok(etags)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        query: &str,
        content_type: &str,
    ) -> Result<RequestBuilder, Box<dyn Error>> {
        let date = Timestamp::try_from(SystemTime::now())?.to_http_date();
        let mut key = self.key.clone();
        let text = format!("{method}\n\n{content_type}\n{date}\n/{ACCOUNT}{path}");
        key.update(text.as_bytes());
        let signature = BASE64_STANDARD.encode(key.finalize().into_bytes());
        let url = format!("{}{path}{query}", self.origin);
        let mut request = self
            .http
            .request(method, url)
            .header("Accept", "application/json;odata=minimalmetadata")
            .header("Authorization", format!("SharedKey {ACCOUNT}:{signature}"))
            .header("x-ms-date", date)
            .header("x-ms-version", "2019-02-02");
        if !content_type.is_empty() {
            request = request.header("Content-Type", content_type);
        }
        Ok(request)
    }
}

fn checked(response: Response, status: u16) -> Result<Response, Box<dyn Error>> {
    if response.status() == status {
        Ok(response)
    } else {
        Err(format!("{} in the place of {status}", response.status()).into())
    }
}

const JSON: &str = "application/json";
