//! How requests reach the service: transports, clocks and endpoints.
//!
//! The client sends by [`ReqwestTransport`] unless it gets a [`Transport`] of your own.

mod backend;
mod clock;
#[cfg(feature = "reqwest")]
mod io_thread;
#[cfg(feature = "reqwest")]
mod reqwest;

pub use self::backend::Backend;
pub use self::clock::SystemClock;
#[cfg(feature = "reqwest")]
pub use self::reqwest::ReqwestTransport;
pub use tablesdk_protocol::{
    Clock, Delivery, Endpoint, InProcessServer, Transport, TransportError, TransportFuture,
};
