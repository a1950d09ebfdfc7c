//! `--auth`: tokens from a program in place of the Azure CLI, and from issuers on this machine. The
//! bundled server takes them over https.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use tablesdk_server::{Guid, TableServer, TlsIdentity, TokenGrant, TokenRefusal};
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs};

use super::run::run_with;

const TOKEN: &str = "eyJ0b2tlbiI6InNlY3JldCJ9";
const SECRET: &str = "s3cr3t-of-the-client";

/// A server that takes the token over https, and a directory with its certificate.
struct World {
    place: TempDir,
    server: TableServer,
    identity: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl World {
    async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let identity = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let certificate = identity.cert.pem();
        fs::write(place.path().join("cert.pem"), &certificate).unwrap();
        let key = identity.signing_key.serialize_pem();
        let tls = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let verifier = |_: &str, token: &str| match token {
            TOKEN => Ok(TokenGrant::all().of_user(Guid::default(), Guid::default())),
            _ => Err(TokenRefusal::Invalid),
        };
        let builder = TableServer::builder().tls(tls).token_verifier(verifier);
        Self {
            place,
            server: builder.start().await.unwrap(),
            identity,
        }
    }

    fn directory(&self) -> &Path {
        self.place.path()
    }

    /// Runs the program with `--auth`. Neither the token nor the secret is printed.
    async fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let certificate = self.directory().join("cert.pem");
        let path = format!("{}:/usr/bin:/bin", self.directory().display());
        let own = [
            ("SSL_CERT_FILE", certificate.to_str().unwrap()),
            ("PATH", &path),
        ];
        let ended = run_with(self.directory(), words, &[&own, variables].concat()).await;
        for secret in [TOKEN, SECRET] {
            assert!(
                !ended.1.contains(secret) && !ended.2.contains(secret),
                "{ended:?}"
            );
        }
        ended
    }

    async fn ls(&self, auth: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
        let words = [
            "ls",
            "--table-endpoint",
            self.server.endpoint(),
            "--auth",
            auth,
        ];
        self.run(&words, variables).await
    }

    /// Puts a program in the place of the Azure CLI.
    fn azure_cli(&self, script: &str) {
        let path = self.directory().join("az");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = PrivatePkcs8KeyDer::from(self.identity.signing_key.serialize_der());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth();
        let chain = vec![self.identity.cert.der().clone()];
        let config = config.with_single_cert(chain, key.into()).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Responds to the request of a stream with JSON, and returns the request.
async fn respond(stream: impl AsyncRead + AsyncWrite + Unpin, body: &str) -> String {
    let mut stream = BufStream::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") && stream.read_line(&mut request).await.unwrap() > 0 {}
    let length = request.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse().unwrap())
    });
    let mut sent = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut sent).await.unwrap();
    let length = body.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(response.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    stream.shutdown().await.unwrap();
    request + &String::from_utf8(sent).unwrap()
}

/// An issuer on this machine: its address, and the requests that it gets.
async fn issuer(tls: Option<TlsAcceptor>, body: String) -> (String, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, requests) = unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let request = match &tls {
                Some(tls) => respond(tls.accept(stream).await.unwrap(), &body).await,
                None => respond(stream, &body).await,
            };
            sender.send(request).unwrap();
        }
    });
    (address, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_delegation_key_signs_where_there_is_no_key_of_the_account() {
    let world = World::new().await;
    let token =
        format!(r#"{{"accessToken":"{TOKEN}","expires_on":4102444800,"tokenType":"Bearer"}}"#);
    world.azure_cli(&format!("echo '{token}'"));
    let sas = async |words: &[&str]| {
        let own = [
            "--table-endpoint",
            world.server.endpoint(),
            "--auth",
            "azure-cli",
        ];
        world.run(&[&["sas"], words, &own].concat(), &[]).await
    };
    let terms = ["--permissions", "raud", "--for", "1h"];
    let (code, out, errors) = sas(&[&["People"][..], &terms].concat()).await;
    assert_eq!((code, &*errors), (0, ""));
    for part in ["tn=People&sp=raud&", "&skoid=00000000-", "&sks=t&", "&sig="] {
        assert!(out.contains(part), "{part} in {out}");
    }
    // The table is missing, which the service says to those that it lets in.
    let words = [
        "query",
        "People",
        "--scan",
        "--table-endpoint",
        world.server.endpoint(),
        "--sas-token",
        out.trim(),
    ];
    let (code, _, errors) = world.run(&words, &[]).await;
    assert!(
        code == 1 && errors.contains("TableNotFound"),
        "{code} {errors}"
    );

    for (words, problem) in [
        (
            &["People", "--permissions", "r", "--for", "8d"][..],
            "seven days",
        ),
        (&["People", "--policy", "readers"], "stored access policy"),
        (
            &["--permissions", "r", "--resource-types", "o", "--for", "1h"],
            "name it",
        ),
    ] {
        let (code, out, errors) = sas(words).await;
        assert!(
            code != 0 && out.is_empty() && errors.contains(problem),
            "{words:?}: {errors}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_of_the_azure_cli_gives_the_token() {
    let world = World::new().await;
    let token =
        format!(r#"{{"accessToken":"{TOKEN}","expires_on":4102444800,"tokenType":"Bearer"}}"#);
    let asked = world.directory().join("asked");
    world.azure_cli(&format!(
        "echo \"$@\" >> {}; echo '{token}'",
        asked.display()
    ));
    // A key in the environment is that of another way to sign.
    let (code, out, errors) = world
        .ls("azure-cli", &[("AZURE_STORAGE_KEY", "a2V5")])
        .await;
    assert_eq!((code, &*out, &*errors), (0, "", ""));
    let asked = fs::read_to_string(asked).unwrap();
    assert!(
        asked.contains("--scope https://storage.azure.com/.default"),
        "{asked}"
    );
    assert_eq!(asked.lines().count(), 1, "{asked}");

    for (script, problem) in [
        ("echo 'ERROR: Please run: az login' >&2; exit 1", "az login"),
        ("echo '{\"accessToken\":'", "gave no token"),
        (
            &format!("echo '{{\"accessToken\":[\"{TOKEN}\"],\"expires_on\":1}}'"),
            "gave no token",
        ),
        (&format!("echo '{}'", token.replace("eyJ0", "eyJ1")), "401"),
    ] {
        world.azure_cli(script);
        let (code, out, errors) = world.ls("azure-cli", &[]).await;
        assert_eq!((code, &*out), (1, ""), "{errors}");
        assert!(errors.contains(problem), "{script}: {errors}");
    }
    fs::remove_file(world.directory().join("az")).unwrap();
    let (code, _, errors) = world.ls("azure-cli", &[]).await;
    assert!(code == 1 && errors.contains("az not found"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_of_a_machine_gives_the_token() {
    let world = World::new().await;
    let body = format!(
        r#"{{"access_token":"{TOKEN}","expires_on":"4102444800","resource":"https://storage.azure.com","token_type":"Bearer"}}"#
    );
    let (address, mut requests) = issuer(None, body).await;
    let endpoint = format!("http://{address}/msi/token");
    let variables = [
        ("IDENTITY_ENDPOINT", &*endpoint),
        ("IDENTITY_HEADER", SECRET),
    ];
    let own = [("AZURE_CLIENT_ID", "11111111-2222-3333-4444-555555555555")];
    for (variables, client) in [
        (&variables[..], None),
        (
            &[&variables[..], &own].concat(),
            Some("client_id=11111111-2222"),
        ),
    ] {
        let (code, out, errors) = world.ls("managed-identity", variables).await;
        assert_eq!((code, &*out, &*errors), (0, "", ""));
        let request = requests.recv().await.unwrap();
        assert!(
            request.contains(SECRET) && request.contains("storage.azure.com"),
            "{request}"
        );
        assert!(
            client.is_none_or(|client| request.contains(client)),
            "{request}"
        );
        assert_eq!(request.contains("client_id"), client.is_some(), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_principal_in_the_environment_gives_the_token() {
    let world = World::new().await;
    let body = format!(r#"{{"token_type":"Bearer","expires_in":3599,"access_token":"{TOKEN}"}}"#);
    let (address, mut requests) = issuer(Some(world.acceptor()), body).await;
    let authority = format!("https://{address}");
    let file = world.directory().join("federated");
    fs::write(&file, "assertion-of-the-cluster").unwrap();
    let principal = [
        ("AZURE_AUTHORITY_HOST", &*authority),
        ("AZURE_TENANT_ID", "contoso"),
        ("AZURE_CLIENT_ID", "the-client"),
    ];
    let by_secret = [("AZURE_CLIENT_SECRET", SECRET)];
    let by_file = [("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap())];
    for (credential, sent) in [
        (&by_secret, "client_secret=s3cr3t-of-the-client"),
        (&by_file, "client_assertion=assertion-of-the-cluster"),
    ] {
        let variables = [&principal[..], credential].concat();
        let (code, out, errors) = world.ls("environment", &variables).await;
        assert_eq!((code, &*out, &*errors), (0, "", ""));
        let request = requests.recv().await.unwrap();
        assert!(
            request.starts_with("POST /contoso/oauth2/v2.0/token"),
            "{request}"
        );
        assert!(
            request.contains("client_id=the-client") && request.contains(sent),
            "{request}"
        );
    }
    for (variables, problem) in [
        (&[][..], "--auth: AZURE_TENANT_ID is not set"),
        (
            &principal,
            "neither AZURE_CLIENT_SECRET nor AZURE_FEDERATED_TOKEN_FILE",
        ),
    ] {
        let (code, _, errors) = world.ls("environment", variables).await;
        assert!(code == 2 && errors.contains(problem), "{code} {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_uses_the_token_for_urls_without_a_signature() {
    let world = World::new().await;
    let token =
        format!(r#"{{"accessToken":"{TOKEN}","expires_on":4102444800,"tokenType":"Bearer"}}"#);
    world.azure_cli(&format!("echo '{token}'"));
    let target = TableServer::start().await.unwrap();
    let to = [("NEW", &*target.connection_string())];
    let words = ["copy", "--from", world.server.endpoint(), "--to", "env:NEW"];
    let (code, _, errors) = world
        .run(&[&words[..], &["--auth", "azure-cli"]].concat(), &to)
        .await;
    assert!(code == 0 && errors.contains("Copied 0 tables"), "{errors}");
    let words = [
        "copy",
        "--from",
        "emulator",
        "--to",
        "env:NEW",
        "--auth",
        "azure-cli",
    ];
    let (code, _, errors) = world.run(&words, &to).await;
    assert!(
        code == 2 && errors.contains("no account is one"),
        "{code} {errors}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_not_combined_with_another_credential() {
    let world = World::new().await;
    for (words, problem) in [
        (
            &["--account-name", "a", "--account-key", "a2V5"][..],
            "--account-key cannot be used with --auth: each of them is a credential",
        ),
        (
            &["--emulator"],
            "--emulator cannot be used with --auth: it says all",
        ),
        (
            &["--table-endpoint", "http://127.0.0.1:1/a"],
            "a token is sent only over https",
        ),
        (&[], "no account is given"),
    ] {
        let words = [&["ls", "--auth", "azure-cli"], words].concat();
        let (code, out, errors) = world.run(&words, &[]).await;
        assert_eq!((code, &*out), (2, ""), "{errors}");
        assert!(errors.contains(problem), "{words:?}: {errors}");
    }
}
