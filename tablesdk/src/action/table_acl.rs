//! `access_policy` and `set_access_policy`: Get and Set Table ACL.

use http::StatusCode;
use tablesdk_protocol::operation::table_acl::{GetRequest, GetResponse, SetRequest};
use tablesdk_protocol::{SignedIdentifier, check_signed_identifiers};

use super::write::ambiguous_write::resolve_without_entity;
use super::{malformed, refused};
use crate::error::Error;
use crate::pipeline::{Effect, Table};
use crate::sas::StoredAccessPolicy;

/// Reads the stored access policies of a table. See [`TableClient::access_policy`](crate::TableClient::access_policy).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct GetAccessPolicy {
    pub(crate) table: Table,
}

impl GetAccessPolicy {
    async fn run(self) -> Result<Vec<StoredAccessPolicy>, Error> {
        let table = self.table.checked_name(GET)?;
        let request = GetRequest { table }.encode(self.table.endpoint());
        let response = self.table.send(GET, Effect::ReadNow, &request).await?;
        let policies = GetResponse::decode(&response).map_err(|error| malformed(GET, error))?;
        let policies = policies.identifiers.into_iter();
        Ok(policies.map(StoredAccessPolicy::from_wire).collect())
    }
}

action!(impl[] GetAccessPolicy, table.pipeline => Vec<StoredAccessPolicy>);

/// Replaces the stored access policies of a table. See [`TableClient::set_access_policy`](crate::TableClient::set_access_policy).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct SetAccessPolicy {
    pub(crate) table: Table,
    pub(crate) policies: Vec<StoredAccessPolicy>,
}

impl SetAccessPolicy {
    async fn run(self) -> Result<(), Error> {
        let table = self.table.checked_name(SET)?;
        let policies = self.policies.into_iter();
        let identifiers = policies.map(StoredAccessPolicy::into_wire);
        let identifiers: Result<Vec<SignedIdentifier>, _> = identifiers.collect();
        let identifiers = identifiers.map_err(|error| error.with_operation(SET))?;
        check_signed_identifiers(&identifiers).map_err(|error| refused(SET, error))?;
        let request = SetRequest { table, identifiers }.encode(self.table.endpoint());
        let sent = self.table.send(SET, Effect::Write, &request).await;
        resolve_without_entity(SET, sent, &[StatusCode::NO_CONTENT])
    }
}

action!(impl[] SetAccessPolicy, table.pipeline => ());

const GET: &str = "get table access policy";
const SET: &str = "set table access policy";
