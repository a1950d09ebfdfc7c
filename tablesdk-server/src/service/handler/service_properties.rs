//! Get and Set Table Service Properties: the properties are stored and returned. The settings for
//! logging and metrics have no effect; `cors.rs` applies the CORS rules.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties>.

use tablesdk_protocol::operation::service_properties::{GetResponse, SetRequest, SetResponse};

use super::{Handled, commit, read};
use crate::engine::{Command, Engine};
use crate::request::context::Context;

pub(super) async fn get(engine: &Engine, context: &Context) -> Handled {
    let properties = read(engine, context, |view| {
        view.service_properties(context.flavor, context.account())
    });
    let mut properties = properties.await?;
    if context.flavor.has_front_end() {
        // SERVICE: names come back before prefixes.
        for rule in properties.cors.iter_mut().flatten() {
            for list in [&mut rule.allowed_headers, &mut rule.exposed_headers] {
                list.sort_by_key(|header| header.ends_with('*'));
            }
        }
    }
    Ok(GetResponse { properties }.encode())
}

pub(super) async fn set(engine: &Engine, context: &Context, request: &SetRequest) -> Handled {
    let command = Command::SetServiceProperties(&request.properties);
    commit(engine, context, &command).await?;
    Ok(SetResponse.encode())
}
