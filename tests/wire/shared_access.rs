//! Shared access signatures over a socket: only over a socket does the server see the client's address.

use tablesdk_protocol::auth::sas::SignedSas;
use tablesdk_server::TableServer;

use crate::raw::send;

fn signed(server: &TableServer, fields: &str) -> String {
    let sas = SignedSas::parse(&format!("{fields}&sig=x")).unwrap();
    let sas = sas.into_sas().sign(&server.credential());
    sas.expose().as_str().to_owned()
}

#[tokio::test]
async fn the_address_and_the_protocol_of_a_request_are_checked() {
    let server = TableServer::start().await.unwrap();
    for (field, status, code) in [
        ("", 200, ""),
        ("&sip=127.0.0.1", 200, ""),
        ("&sip=127.0.0.0-127.255.255.255", 200, ""),
        ("&spr=https,http", 200, ""),
        ("&sip=127.0.0.2", 403, "AuthorizationSourceIPMismatch"),
        ("&spr=https", 403, "AuthorizationProtocolMismatch"),
    ] {
        let fields = format!("sv=2019-02-02&ss=t&srt=c&sp=l&se=2099-01-01{field}");
        let request = format!("GET /Tables?{}", signed(&server, &fields));
        let answer = send(&server, false, &request, &[], "").await;
        assert_eq!(answer.status, status, "{field} {answer:?}");
        if status != 200 {
            assert_eq!(answer.code(), code);
            assert_eq!(answer.header("x-ms-error-code"), Some(code));
        }
    }
}
