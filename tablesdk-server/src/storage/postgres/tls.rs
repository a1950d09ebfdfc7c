//! TLS to the database: certificates are verified, and with them the name of the host.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Trusts the certificates in a file, or else those that the system trusts.
pub(super) fn connector(root_certificate: Option<&Path>) -> io::Result<MakeRustlsConnect> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = match root_certificate {
        Some(path) => builder.with_root_certificates(roots(path)?),
        None => builder.with_platform_verifier().map_err(io::Error::other)?,
    };
    Ok(MakeRustlsConnect::new(builder.with_no_client_auth()))
}

fn roots(path: &Path) -> io::Result<RootCertStore> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("sslrootcert {}: {error}", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))? {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"it has no certificate"));
    }
    Ok(roots)
}
