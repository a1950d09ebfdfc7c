//! The program with `--accept-any-token` and a client in Python that has a credential of Microsoft
//! Entra ID.

use harness::process::{Process, program};
use tablesdk_protocol::Endpoint;
use tokio::process::Command;

use crate::child::run_python_with;

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_is_tested_with_a_token_credential() {
    let place = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (place.path().join("cert.pem"), place.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut command = Command::new(program());
    command.args(["--port", "0", "--accept-any-token", "--tls-cert"]);
    command.arg(&certificate).arg("--tls-key").arg(&key);
    let process = Process::start(command).await.unwrap();
    let endpoint: Endpoint = process.part("TableEndpoint").parse().unwrap();
    assert!(
        endpoint.is_https(),
        "the client sends tokens over HTTPS only"
    );
    let arguments = [endpoint.as_str(), certificate.to_str().unwrap()];
    run_python_with("tokens.py", &arguments).await;
}
