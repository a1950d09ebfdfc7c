//! `access_policy` and `set_access_policy`: Get and Set Table ACL.

use http::StatusCode;
use tablesdk_protocol::operation::table_acl::{GetRequest, GetResponse, SetRequest};
use tablesdk_protocol::{SignedIdentifier, check_signed_identifiers};

use super::write::ambiguous_write::resolve_without_entity;
use crate::action::refusal::{malformed, refused};
use crate::error::Error;
use crate::pipeline::{Effect, Table};
use crate::sas::StoredAccessPolicy;

/// Reads the stored access policies of a table.
pub(crate) async fn get_access_policy(table: Table) -> Result<Vec<StoredAccessPolicy>, Error> {
    let name = table.checked_name(GET)?;
    let request = GetRequest { table: name }.encode(table.endpoint());
    let response = table.pipeline.send(GET, Effect::ReadNow, &request).await?;
    let policies = GetResponse::decode(&response).map_err(|error| malformed(GET, error))?;
    let policies = policies.identifiers.into_iter();
    Ok(policies.map(StoredAccessPolicy::from_wire).collect())
}

/// Replaces the stored access policies of a table.
pub(crate) async fn set_access_policy(
    table: Table,
    policies: Vec<StoredAccessPolicy>,
) -> Result<(), Error> {
    let name = table.checked_name(SET)?;
    let policies = policies.into_iter();
    let identifiers = policies.map(StoredAccessPolicy::into_wire);
    let identifiers: Result<Vec<SignedIdentifier>, _> = identifiers.collect();
    let identifiers = identifiers.map_err(|error| error.with_operation(SET))?;
    check_signed_identifiers(&identifiers).map_err(|error| refused(SET, error))?;
    let request = SetRequest {
        table: name,
        identifiers,
    };
    let request = request.encode(table.endpoint());
    let resolve = |sent| resolve_without_entity(SET, sent, &[StatusCode::NO_CONTENT]);
    table.pipeline.write(SET, &request, resolve).await
}

const GET: &str = "get access policy";
const SET: &str = "set access policy";
