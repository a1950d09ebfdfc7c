//! HTTPS over real sockets: credentials that need an encrypted connection work, and a server with
//! an untrusted certificate gets no request. The tests use rustls, and with the feature
//! `native-tls` also the operating system's library.

use std::time::Duration;

use futures::stream;
use tablesdk::credential::{AccessToken, TokenRequest};
use tablesdk::sas::Permissions;
use tablesdk::transport::ReqwestTransport;
use tablesdk::{
    EntraId, ErrorKind, RetryPolicy, TableServiceClient, TableServiceClientBuilder, Timestamp,
};
use tablesdk_server::{TableServer, TlsIdentity, TokenGrant, TokenRefusal};

use crate::Employee;

const TOKEN: &str = "a-token";

/// The bundled server with a certificate of its own.
struct TlsServer {
    server: TableServer,
    certificate: Vec<u8>,
}

impl TlsServer {
    async fn start() -> Self {
        let verify = |_: &str, token: &str| match token {
            TOKEN => Ok(TokenGrant::all()),
            _ => Err(TokenRefusal::Invalid),
        };
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
        let identity = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let server = TableServer::builder().token_verifier(verify).tls(identity);
        let server = server.start().await.unwrap();
        assert!(server.endpoint().starts_with("https://127.0.0.1:"));
        Self {
            server,
            certificate: own.cert.der().to_vec(),
        }
    }

    /// The builders of a program's own clients, each for one library for TLS.
    fn clients(&self) -> Vec<(&'static str, reqwest::ClientBuilder)> {
        let builder = || {
            let certificate = reqwest::Certificate::from_der(&self.certificate).unwrap();
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .tls_certs_only([certificate])
        };
        vec![
            ("rustls", builder().tls_backend_rustls()),
            #[cfg(feature = "native-tls")]
            ("native-tls", builder().tls_backend_native()),
        ]
    }
}

async fn use_table(name: &str, builder: TableServiceClientBuilder) {
    let service = builder.build().unwrap();
    let table = service.table("Tests");
    table.create_table().if_missing().await.unwrap();
    let rows = (0..250).map(|id| Employee::new(&id.to_string(), name, id));
    let bulk = table.bulk().upsert_replace(stream::iter(rows));
    let report = bulk.await.unwrap();
    assert!(report.is_success(), "{name}: {report:?}");
    let ada = table.get(Employee::key("Sales", "7")).await.unwrap();
    let mut ada = ada.unwrap();
    ada.age = 36;
    table.replace(&mut ada).await.unwrap();
    let query = table.query::<Employee>().partition("Sales").page_size(100);
    assert_eq!(query.collect().await.unwrap().len(), 250, "{name}");
    table.delete_table().await.unwrap();
}

#[tokio::test]
async fn keys_tokens_and_sas_work_over_https() {
    let server = TlsServer::start().await;
    for (name, client) in server.clients() {
        let transport = ReqwestTransport::from_client(client.build().unwrap());
        let builder =
            || TableServiceClient::builder(server.server.endpoint()).transport(transport.clone());
        use_table(name, builder().credential(server.server.credential())).await;
        let token = |_: TokenRequest| async {
            let expires_at: Timestamp = "2100-01-01T00:00:00Z".parse()?;
            AccessToken::new(TOKEN, expires_at)
        };
        use_table(name, builder().credential(EntraId::new(token))).await;

        // Signed for HTTPS only.
        let service = builder().credential(server.server.credential());
        let table = service.build().unwrap().table("Shared");
        table.create_table().await.unwrap();
        let sas = table.sas().allow(Permissions::ADD);
        let sas = sas.expires_in(Duration::from_secs(3600)).https_only();
        let url = sas.sign().unwrap();
        let guest = url.builder().transport(transport.clone());
        let guest = guest.build().unwrap().table("Shared");
        guest.insert(&Employee::ada()).await.unwrap();
        table.delete_table().await.unwrap();
    }
}

/// The default transport trusts the certificates that the operating system trusts.
#[tokio::test]
async fn a_server_with_an_untrusted_certificate_gets_no_request() {
    let server = TlsServer::start().await;
    let table = TableServiceClient::builder(server.server.endpoint())
        .credential(server.server.credential())
        .retry(RetryPolicy::none())
        .build()
        .unwrap()
        .table("Tests");
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    // Nothing was sent, so the outcome is not ambiguous.
    assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
    let message = format!("{error:?}").to_lowercase();
    assert!(message.contains("certificate"), "{message}");
}
