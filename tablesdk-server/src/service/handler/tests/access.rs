//! Credentials at a time that stands still, with two keys and two accounts; requests that are
//! refused by their heads.

use std::sync::atomic::{AtomicUsize, Ordering};

use tablesdk_protocol::auth::sas::SignedSas;

use super::*;
use crate::request::connection::Connection;
use crate::request::handler::Handler as _;
use crate::storage::tests::StorageDouble;
use crate::storage::{Records, Slice, Snapshot, StorageError};

const FAILED: (u16, &str) = (403, "AuthenticationFailed");
const UNTIL: &str = "se=2024-03-15T11:00:00Z";

/// Signs the fields of a SAS with the account's key.
fn sas(client: &Client, fields: &str) -> String {
    let unsigned = SignedSas::parse(&format!("sv=2019-02-02&{fields}&sig=x")).unwrap();
    let sas = unsigned.into_sas().sign(&client.key);
    sas.expose().as_str().to_owned()
}

#[test]
fn both_keys_of_an_account_are_accepted() {
    let mut client = Client::with_table();
    for key in ["c2VjcmV0", "b3RoZXI="] {
        client.key = SharedKey::new("acct", key).unwrap();
        for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
            for path in [
                "/acct/Tables",
                "//acct//Tables?$top=5",
                "http://h:1/acct/Tables",
            ] {
                let mut request = client.request("GET", path, &[], "");
                client.sign(&mut request, scheme);
                assert_eq!(client.call(request).status(), 200, "{path} {scheme:?}");
            }
        }
        let sas = sas(&client, &format!("tn=people&sp=r&{UNTIL}"));
        let query = client.request("GET", &format!("/acct/people()?{sas}"), &[], "");
        assert_eq!(client.call(query).status(), 200);
    }
}

#[test]
fn a_signed_date_differs_by_15_minutes_at_most() {
    let client = Client::new();
    let now = client.clock.now().unix_ticks();
    for (seconds, expected) in [
        (-901, FAILED),
        (-900, (200, "")),
        (900, (200, "")),
        (901, FAILED),
    ] {
        let date = Timestamp::from_unix_ticks(now + seconds * 10_000_000).unwrap();
        let date = date.to_http_date();
        // `Date` counts where `x-ms-date` is absent.
        for headers in [
            &[("x-ms-date", &*date)][..],
            &[("x-ms-date", ""), ("date", &date)],
        ] {
            let response = client.send("GET", "Tables", headers, "");
            assert_eq!(
                status_and_code(&response),
                expected,
                "{seconds} {headers:?}"
            );
        }
    }
    let response = client.send("GET", "Tables", &[("x-ms-date", "")], "");
    assert_eq!(status_and_code(&response), FAILED);
}

#[test]
fn a_sas_is_valid_from_its_start_to_its_expiry() {
    let client = Client::with_table();
    let get = |fields: &str| {
        let sas = sas(&client, &format!("tn=people&sp=r&{fields}"));
        let request = client.request("GET", &format!("/acct/people()?{sas}"), &[], "");
        client.call(request).status().as_u16()
    };
    for (fields, expected) in [
        ("se=2024-03-15T10:20:30Z", 403),
        ("se=2024-03-15T10:20:31Z", 200),
        ("st=2024-03-15T10:20:30Z&se=2025-01-01", 200),
        ("st=2024-03-15T10:20:31Z&se=2025-01-01", 403),
    ] {
        assert_eq!(get(fields), expected, "{fields}");
    }
    assert_eq!(get(UNTIL), 200);
    client.advance(3600);
    assert_eq!(get(UNTIL), 403);
}

#[test]
fn a_sas_limits_the_addresses_of_its_clients() {
    let client = Client::with_table();
    let sas = sas(
        &client,
        &format!("tn=people&sp=r&{UNTIL}&sip=192.0.2.1-192.0.2.9"),
    );
    let other = (403, "AuthorizationSourceIPMismatch");
    for (peer, expected) in [
        ("192.0.2.7", (200, "")),
        ("::ffff:192.0.2.7", (200, "")),
        ("192.0.2.10", other),
        ("::1", other),
    ] {
        let mut request = client.request("GET", &format!("/acct/people()?{sas}"), &[], "");
        request.extensions_mut().insert(Connection {
            peer: Some(peer.parse().unwrap()),
            ..Connection::default()
        });
        assert_eq!(status_and_code(&client.call(request)), expected, "{peer}");
    }
}

#[test]
fn each_account_has_its_own_tables_keys_and_rules() {
    let mut client = Client::with_table();
    let rule = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    client.send("PUT", "?restype=service&comp=properties", &[], rule);
    let origin = [
        ("origin", "http://page"),
        ("access-control-request-method", "GET"),
    ];
    for (account, status) in [("acct", 200), ("second", 403)] {
        let path = format!("/{account}/people");
        let preflight = client.call(client.request("OPTIONS", &path, &origin, ""));
        assert_eq!(preflight.status(), status, "{account}");
    }
    let host = [("host", "second.table.localhost")];
    let own = sas(&client, &format!("ss=t&srt=sco&sp=rl&{UNTIL}"));
    let by_sas = client.request("GET", &format!("/second/Tables?{own}"), &[], "");
    // The keys of the accounts are equal, but the name of the account is signed, too.
    for request in [
        client.signed("GET", "/Tables", &host, ""),
        client.signed("GET", "/second/Tables", &[], ""),
        client.signed("GET", "/second-secondary/Tables", &[], ""),
        by_sas,
    ] {
        let response = client.call(request);
        assert_eq!(status_and_code(&response), FAILED);
    }
    client.key = SharedKey::new("second", "c2VjcmV0").unwrap();
    for (path, headers) in [("/Tables", &host[..]), ("/second/Tables", &[])] {
        let found = client.call(client.signed("GET", path, headers, ""));
        assert_eq!(
            (found.status().as_u16(), body(&found)),
            (200, r#"{"value":[]}"#)
        );
    }
    // Below a host with one account, the name of the other one is a table's.
    let found = client.call(client.signed("GET", "/acct()", &host, ""));
    assert_eq!(status_and_code(&found), (404, "TableNotFound"));
}

#[test]
fn a_refused_head_has_the_usual_response() {
    let client = Client::new();
    let (head, _) = client.request("PUT", "/acct/people", &[], "").into_parts();
    let code = tablesdk_protocol::ErrorCode::RequestBodyTooLarge;
    let (connection, error) = (Connection::default(), code.into());
    let response = wait_for(client.service.refuse_head(&head, &connection, &error));
    assert_eq!(status_and_code(&response), (413, "RequestBodyTooLarge"));
    assert_eq!(header(&response, "x-ms-version"), Some("2019-02-02"));
}

type Call<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

/// Requests with bodies.
const CALLS: [Call<'_>; 8] = [
    (
        "POST",
        "people",
        &[],
        r#"{"PartitionKey":"C","RowKey":"9"}"#,
    ),
    (
        "PUT",
        "people(PartitionKey='C',RowKey='1')",
        &[("if-match", "*")],
        "{}",
    ),
    (
        "MERGE",
        "people(PartitionKey='C',RowKey='1')",
        &[("if-match", "*")],
        "{}",
    ),
    (
        "POST",
        "people(PartitionKey='C',RowKey='1')",
        &[("if-match", "*"), ("x-http-method", "MERGE")],
        "{}",
    ),
    ("PUT", "people(PartitionKey='C',RowKey='8')", &[], "{}"),
    ("POST", "Tables", &[], r#"{"TableName":"more"}"#),
    (
        "PUT",
        "?restype=service&comp=properties",
        &[],
        "<StorageServiceProperties />",
    ),
    ("PUT", "people?comp=acl", &[], "<SignedIdentifiers />"),
];

/// The outcome of a request from its head alone, which announces a body of that many bytes.
fn refused_by_head(
    client: &Client,
    mut request: Request<Bytes>,
    length: u32,
) -> Option<(u16, String)> {
    request
        .headers_mut()
        .insert("content-length", length.into());
    let (head, _) = request.into_parts();
    let connection = Connection::default();
    let response = wait_for(client.service.admit(head, &connection)).err()?;
    let (status, code) = status_and_code(&response);
    Some((status, code.to_owned()))
}

#[test]
fn large_bodies_are_refused_by_their_heads() {
    let mut fields = vec!["tn=people&sp=raud&spk=D&epk=E".to_owned()];
    for sp in ["r", "a", "u", "au", "raud"] {
        fields.extend(["people", "other"].map(|table| format!("tn={table}&sp={sp}")));
    }
    for srt in ["s", "c", "o", "sco"] {
        for sp in ["r", "w", "a", "c", "u", "au", "rwdlacu"] {
            fields.push(format!("ss=t&srt={srt}&sp={sp}"));
        }
    }
    let mut refusals = 0;
    for fields in &fields {
        for (method, resource, headers, content) in CALLS {
            let client = Client::with_table();
            client.insert("C", "1", 1);
            let sas = sas(&client, &format!("{fields}&{UNTIL}"));
            let separator = if resource.contains('?') { '&' } else { '?' };
            let path = format!("/acct/{resource}{separator}{sas}");
            let request = client.request(method, &path, headers, content);
            let response = client.call(request.clone());
            let (status, code) = status_and_code(&response);
            // The keys of an insert are in its body.
            let is_by_key = resource == "people" && fields.contains("spk=");
            let expected = (status == 403 && !is_by_key).then(|| (status, code.to_owned()));
            refusals += usize::from(expected.is_some());
            let by_head = refused_by_head(&client, request.clone(), 4 << 20);
            assert_eq!(by_head, expected, "{method} {resource} with {fields}");
            // A small body is read, so that its connection can go on.
            assert_eq!(
                refused_by_head(&client, request, 99),
                None,
                "{method} {resource}"
            );
        }
    }
    assert!(refusals > 100, "{refusals}");
}

/// A storage that counts the reads of its snapshots.
struct Counted(MemoryStorage, Arc<AtomicUsize>);

impl StorageDouble for Counted {
    fn inner(&self) -> &dyn Storage {
        &self.0
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(CountedReads(self.0.snapshot(), Arc::clone(&self.1)))
    }
}

struct CountedReads(Box<dyn Snapshot>, Arc<AtomicUsize>);

impl Snapshot for CountedReads {
    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(key)
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.range(start, end)
    }
}

#[test]
fn unauthenticated_requests_read_one_record_at_most() {
    let reads = Arc::new(AtomicUsize::new(0));
    let storage = Counted(MemoryStorage::default(), Arc::clone(&reads));
    let client = Client::on(storage, |_| {});
    let headers = [
        ("origin", "http://page"),
        ("access-control-request-method", "GET"),
    ];
    for (account, expected) in [("acct", 1), ("unknown", 0)] {
        let path = format!("/{account}/people()");
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            reads.store(0, Ordering::Relaxed);
            let response = client.call(client.request(method, &path, &headers, ""));
            assert!(response.status().is_client_error(), "{method} {path}");
            assert_eq!(reads.load(Ordering::Relaxed), expected, "{method} {path}");
        }
    }
}
