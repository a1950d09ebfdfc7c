//! Transports that come with this crate.

#[cfg(feature = "reqwest")]
mod io_thread;
#[cfg(feature = "reqwest")]
mod reqwest;

#[cfg(feature = "reqwest")]
pub use self::reqwest::ReqwestTransport;
