//! Connections that are reset instead of closed: their clients read an error, and not an end.

use tokio::net::TcpStream;

/// A stream that can be reset.
pub(crate) trait Reset {
    /// Resets the connection when the stream is dropped. What was written and not sent yet is lost.
    fn reset(&self);
}

impl Reset for TcpStream {
    fn reset(&self) {
        // If the socket is closed already, its client has read an error anyway.
        let _ = self.set_zero_linger();
    }
}

#[cfg(feature = "tls")]
impl<S: Reset> Reset for tokio_rustls::server::TlsStream<S> {
    fn reset(&self) {
        self.get_ref().0.reset();
    }
}

/// A pipe in memory has no reset: its other side reads the end.
#[cfg(test)]
impl Reset for tokio::io::DuplexStream {
    fn reset(&self) {}
}
