//! Get and Set Table ACL: stores the access policies of a table and returns them unchanged.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/set-table-acl>. `auth/policy.rs`
//! applies them to shared access signatures.
// SERVICE: a change there takes up to 30 seconds to take effect; here it takes effect at once.

use http::{Response, StatusCode};
use tablesdk_protocol::AccessPolicy;
use tablesdk_protocol::operation::table_acl::{GetRequest, GetResponse, SetRequest, SetResponse};

use super::{Handled, commit, read};
use crate::engine::{Command, Engine, Failure};
use crate::request::context::Context;

pub(super) async fn get(engine: &Engine, context: &Context, request: &GetRequest) -> Handled {
    let identifiers = read(engine, context, |view| {
        let table = view.require_table(context.account(), &request.table)?;
        Ok::<_, Failure>(view.table_acl(table)?)
    });
    let identifiers = identifiers.await?;
    Ok(GetResponse { identifiers }.encode())
}

pub(super) async fn set(engine: &Engine, context: &Context, request: &SetRequest) -> Handled {
    let mut policies = request.identifiers.iter().map(|stored| &stored.policy);
    if !context.flavor.has_partial_policies() && policies.any(is_partial) {
        // Azurite responds without an error.
        let mut response = Response::default();
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    }
    let command = Command::SetTableAcl(&request.table, &request.identifiers);
    commit(engine, context, &command).await?;
    Ok(SetResponse.encode())
}

/// Returns true if a policy leaves out one of its fields.
const fn is_partial(policy: &AccessPolicy) -> bool {
    policy.start.is_none() || policy.expiry.is_none() || policy.permissions.is_none()
}
