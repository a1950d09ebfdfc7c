//! [`TlsIdentity`]: the certificate chain and private key of an HTTPS server.
//!
//! This module reads certificates and keys, and knows neither sockets nor HTTP.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate chain with its private key, for
/// [`TableServerBuilder::tls`](crate::TableServerBuilder::tls).
///
/// Connections use TLS 1.2 or 1.3, and HTTP/1.1. The server requests no client certificates:
/// requests are authenticated by their credentials.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
}

impl TlsIdentity {
    /// Reads certificates and a key from the contents of PEM files. The server's certificate comes
    /// first, then the intermediate certificates up to a root that clients trust. The key is PKCS
    /// #8, PKCS #1 or SEC 1, without a password.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] when the certificate or the key is missing or malformed, or
    /// the key does not belong to the certificate.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> io::Result<Self> {
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| refused("the certificate", &explain(&error)))?;
        if chain.is_empty() {
            return Err(refused("the certificate", &"there is none in the text"));
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| refused("the private key", &explain(&error)))?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let builder = builder.with_no_client_auth();
                builder.with_single_cert(chain, key)
            });
        let mut config =
            config.map_err(|error| refused("the certificate and its private key", &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
        })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

/// The output contains nothing of the key.
impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

fn explain(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "there is none in the text".to_owned(),
        error => error.to_string(),
    }
}

fn refused(what: &str, why: &dyn fmt::Display) -> io::Error {
    let message = format!("{what} cannot be used: {why}");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_reason_and_show_no_key() {
        let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (one, other) = (made(), made());
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let identity = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(format!("{identity:?}"), "TlsIdentity { .. }");
        let foreign = other.signing_key.serialize_pem();
        let damaged = certificate.replacen("MII", "!II", 1);
        for (certificate, key, expected) in [
            (
                &*certificate,
                "",
                "the private key cannot be used: there is none",
            ),
            ("", &*key, "the certificate cannot be used: there is none"),
            (
                &*key,
                &*key,
                "the certificate cannot be used: there is none",
            ),
            (&*damaged, &*key, "the certificate cannot be used: "),
            (
                &*certificate,
                &*foreign,
                "the certificate and its private key cannot",
            ),
        ] {
            let error = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
