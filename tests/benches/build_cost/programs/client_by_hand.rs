use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use time::macros::format_description;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(dead_code, reason = "it is printed")]
struct Employee {
    partition_key: String,
    row_key: String,
    age: i32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (account, key) = (std::env::var("ACCOUNT")?, std::env::var("KEY")?);
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let date = time::OffsetDateTime::now_utc().format(format)?;
    let path = format!("/people(PartitionKey='Sales',RowKey='1')");
    let mut mac = Hmac::<Sha256>::new_from_slice(&BASE64_STANDARD.decode(key)?)?;
    mac.update(format!("GET\n\n\n{date}\n/{account}{path}").as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    let response = reqwest::Client::new()
        .get(format!("https://{account}.table.core.windows.net{path}"))
        .header("Accept", "application/json;odata=nometadata")
        .header("Authorization", format!("SharedKey {account}:{signature}"))
        .header("x-ms-date", date)
        .header("x-ms-version", "2019-02-02")
        .send()
        .await?
        .error_for_status()?;
    let employee: Employee = serde_json::from_slice(&response.bytes().await?)?;
    println!("{employee:?}");
    Ok(())
}
