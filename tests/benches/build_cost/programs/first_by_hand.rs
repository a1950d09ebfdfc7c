//! The first program of `README.md` and its test, by hand: with reqwest, `serde_json`, and axum as
//! the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use time::OffsetDateTime;
use time::macros::format_description;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    partition_key: String,
    row_key: String,
    #[serde(rename = "Salary@odata.type", default = "int64")]
    salary_type: String,
    #[serde(with = "text")]
    salary: i64,
}

fn int64() -> String {
    "Edm.Int64".to_owned()
}

mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
struct Page {
    value: Vec<Employee>,
}

struct Table {
    client: reqwest::Client,
    endpoint: String,
    account: String,
    key: Vec<u8>,
}

impl Table {
    fn request(&self, method: reqwest::Method, path: &str) -> Result<reqwest::RequestBuilder> {
        let format = format_description!(
            "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
        );
        let date = OffsetDateTime::now_utc().format(format)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)?;
        let resource = path.split('?').next().unwrap_or_default();
        mac.update(format!("{date}\n/{}{resource}", self.account).as_bytes());
        let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
        let authorization = format!("SharedKeyLite {}:{signature}", self.account);
        let url = format!("{}{path}", self.endpoint);
        Ok(self
            .client
            .request(method, url)
            .header(header::ACCEPT, "application/json;odata=minimalmetadata")
            .header(header::AUTHORIZATION, authorization)
            .header("x-ms-date", date)
            .header("x-ms-version", "2019-02-02"))
    }

    async fn create(&self) -> Result<()> {
        let request = self.request(reqwest::Method::POST, "/Tables")?;
        let response = request.json(&json!({"TableName": "Employees"})).send();
        response.await?.error_for_status()?;
        Ok(())
    }

    async fn insert(&self, employee: &Employee) -> Result<()> {
        let request = self.request(reqwest::Method::POST, "/Employees")?;
        request.json(employee).send().await?.error_for_status()?;
        Ok(())
    }

    async fn get(&self, partition: &str, row: &str) -> Result<(Employee, HeaderValue)> {
        let path = format!("/Employees(PartitionKey='{partition}',RowKey='{row}')");
        let response = self.request(reqwest::Method::GET, &path)?.send().await?;
        let response = response.error_for_status()?;
        let etag = response.headers().get(header::ETAG);
        let etag = etag.ok_or("a response without an ETag")?.clone();
        Ok((response.json().await?, etag))
    }

    async fn raise(&self, name: &str) -> Result<()> {
        let (mut employee, etag) = self.get("Sales", name).await?;
        employee.salary += 1_000;
        let path = format!("/Employees(PartitionKey='Sales',RowKey='{name}')");
        let request = self.request(reqwest::Method::PUT, &path)?;
        let request = request.header(header::IF_MATCH, etag).json(&employee);
        request.send().await?.error_for_status()?;
        Ok(())
    }

    async fn query(&self, filter: &str) -> Result<Vec<Employee>> {
        let request = self.request(reqwest::Method::GET, "/Employees()")?;
        let request = request.query(&[("$filter", filter)]);
        let page: Page = request.send().await?.error_for_status()?.json().await?;
        Ok(page.value)
    }
}

type Entities = Arc<Mutex<BTreeMap<String, Map<String, Value>>>>;

fn key_of(entity: &Map<String, Value>) -> String {
    let key = |name| entity.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("PartitionKey='{}',RowKey='{}'", key("PartitionKey"), key("RowKey"))
}

fn key_in(resource: &str) -> &str {
    let key = resource.trim_start_matches("Employees(");
    key.trim_end_matches(')')
}

async fn insert(State(entities): State<Entities>, Json(entity): Json<Map<String, Value>>) -> StatusCode {
    let mut entities = entities.lock().expect("no one panics");
    match entities.insert(key_of(&entity), entity) {
        None => StatusCode::NO_CONTENT,
        Some(_) => StatusCode::CONFLICT,
    }
}

async fn replace(
    State(entities): State<Entities>,
    Path(resource): Path<String>,
    headers: HeaderMap,
    Json(entity): Json<Map<String, Value>>,
) -> StatusCode {
    if headers.get(header::IF_MATCH).is_none() {
        return StatusCode::BAD_REQUEST;
    }
    let key = key_in(&resource).to_owned();
    entities.lock().expect("no one panics").insert(key, entity);
    StatusCode::NO_CONTENT
}

async fn read(State(entities): State<Entities>, Path(resource): Path<String>) -> Response {
    let entities = entities.lock().expect("no one panics");
    let key = key_in(&resource);
    if key.is_empty() {
        let value: Vec<_> = entities.values().cloned().collect();
        return Json(json!({ "value": value })).into_response();
    }
    match entities.get(key) {
        Some(entity) => ([(header::ETAG, "W/\"1\"")], Json(entity.clone())).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn start() -> Result<Table> {
    let app = Router::new()
        .route("/Tables", post(async || StatusCode::NO_CONTENT))
        .route("/Employees", post(insert))
        .route("/{resource}", get(read).put(replace))
        .with_state(Entities::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(Table {
        client: reqwest::Client::new(),
        endpoint,
        account: "account".to_owned(),
        key: b"key".to_vec(),
    })
}

fn ada() -> Employee {
    Employee {
        partition_key: "Sales".into(),
        row_key: "Ada".into(),
        salary_type: int64(),
        salary: 61_000,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let table = start().await?;
    table.create().await?;
    table.insert(&ada()).await?;
    table.raise("Ada").await?;
    for employee in table.query("PartitionKey eq 'Sales' and Salary ge 50000L").await? {
        println!("{}: {}", employee.row_key, employee.salary);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_raise_is_paid() -> Result<()> {
        let table = start().await?;
        table.create().await?;
        table.insert(&ada()).await?;
        table.raise("Ada").await?;
        let (ada, _) = table.get("Sales", "Ada").await?;
        assert_eq!(ada.salary, 62_000);
        Ok(())
    }
}
