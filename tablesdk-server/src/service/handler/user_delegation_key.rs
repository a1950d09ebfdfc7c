//! Get User Delegation Key: a key for the user whose token the request has.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key>.

use tablesdk_protocol::ErrorCode;
use tablesdk_protocol::operation::user_delegation_key::{Request, Response};

use super::Handled;
use crate::request::auth::Principal;
use crate::request::context::Context;

pub(super) fn handle(context: &Context, principal: &Principal, request: &Request) -> Handled {
    let account_key = context.account_key.as_ref();
    let account_key = account_key.ok_or(ErrorCode::InternalError)?;
    let key = principal.issue(account_key, context.version(), context.now, &request.terms)?;
    Ok(Response { key }.encode())
}
