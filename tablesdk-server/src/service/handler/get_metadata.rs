//! The metadata document of the service: the same for every account except for the account's name.

use bytes::Bytes;
use http::Response as HttpResponse;
use tablesdk_protocol::operation::get_metadata::Response;

use crate::request::context::Context;

pub(super) fn handle(context: &Context) -> HttpResponse<Bytes> {
    let account = context.account().to_owned();
    Response { account }.encode()
}
