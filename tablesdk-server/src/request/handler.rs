//! [`Handler`]: what a connection needs of the service.

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use tablesdk_protocol::ServiceError;

use crate::request::connection::Connection;

/// Processes requests: the service, or a simpler handler in tests.
pub(crate) trait Handler: Send + Sync + 'static {
    /// The state of a request between its head and its body.
    type Admitted: Send;

    /// Decides whether the body of a request is read. The URI of the head is in origin form, and
    /// the head has a `Host`.
    fn admit(
        &self,
        head: Parts,
        connection: &Connection,
    ) -> impl Future<Output = Result<Self::Admitted, Box<Response<Bytes>>>> + Send;

    /// Responds to a request. Dropped unfinished when the connection breaks.
    fn respond(
        &self,
        admitted: Self::Admitted,
        body: Bytes,
    ) -> impl Future<Output = Response<Bytes>> + Send;

    /// The response to a request whose body was not received completely.
    fn refuse(&self, admitted: Self::Admitted, error: &ServiceError) -> Response<Bytes>;

    /// The response to a request whose head is not valid.
    fn refuse_head(
        &self,
        head: &Parts,
        connection: &Connection,
        error: &ServiceError,
    ) -> impl Future<Output = Response<Bytes>> + Send;

    /// The response to a head that could not be parsed.
    fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes>;
}
