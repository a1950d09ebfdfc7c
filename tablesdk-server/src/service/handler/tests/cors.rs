//! The CORS rules of an account: responses to preflights, and the CORS headers of other responses.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::storage::{Closed, Commit, Records, Snapshot, StorageError, WriteBatch};

const PROPERTIES: &str = "?restype=service&comp=properties";

/// Origins, methods, headers of requests and headers of answers.
type Rule<'a> = (&'a str, &'a str, &'a str, &'a str);

fn rule((origins, methods, headers, exposed): Rule<'_>) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>"
    )
}

/// Sets the rules.
fn set(client: &Client, rules: &[Rule<'_>]) -> u16 {
    let rules: String = rules.iter().map(|given| rule(*given)).collect();
    let document =
        format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
    let response = client.send("PUT", PROPERTIES, &[], &document);
    response.status().as_u16()
}

fn with_rules(rules: &[Rule<'_>]) -> Client {
    let client = Client::with_table();
    assert_eq!(set(&client, rules), 202);
    client
}

/// Asks, without a credential, for a method and some headers; an empty text is a header that is not there.
fn ask(client: &Client, origin: &str, method: &str, headers: &str) -> Response<Bytes> {
    let mut request = client.request("OPTIONS", "/acct/people", &[("x-ms-date", "")], "");
    for (name, value) in [
        ("origin", origin),
        ("access-control-request-method", method),
        ("access-control-request-headers", headers),
    ] {
        if !value.is_empty() {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().insert(name, value);
        }
    }
    client.call(request)
}

/// The headers of an answer that only browsers care for.
fn told(response: &Response<Bytes>) -> Vec<(&str, &str)> {
    let headers = response.headers().iter();
    let mut told: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .filter(|(name, _)| name.starts_with("access-control-") || *name == "vary")
        .collect();
    told.sort_unstable();
    told
}

const XYZ: &str = "http://www.xyz.com";

#[test]
fn a_preflight_is_answered_by_the_first_rule_that_allows_it_all() {
    let client = with_rules(&[
        ("http://www.ab.com", "GET", "", ""),
        (
            "http://www.ab.com,http://www.xyz.com",
            "GET,PUT",
            "x-ms-meta-data*,x-ms-meta-xyz",
            "x-ms-meta-data*",
        ),
    ]);
    let response = ask(&client, XYZ, "GET", "x-ms-meta-xyz");
    assert_eq!((response.status().as_u16(), body(&response)), (200, ""));
    assert_eq!(
        told(&response),
        [
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-headers", "x-ms-meta-xyz"),
            ("access-control-allow-methods", "GET"),
            ("access-control-allow-origin", XYZ),
            ("access-control-max-age", "500"),
        ]
    );
    assert!(header(&response, "x-ms-request-id").is_some());
    for (origin, method, headers, is_allowed) in [
        (XYZ, "PUT", "", true),
        (XYZ, "GET", "X-MS-META-DATA, x-ms-meta-data-2,,", true),
        // The first rule does not allow headers, but the second one does.
        ("http://www.ab.com", "GET", "x-ms-meta-xyz", true),
        ("http://www.ab.com", "GET", "x-ms-meta-xyz2", false),
        (XYZ, "GET", "x-ms-meta-xyz, x-other", false),
        (XYZ, "GET", "x-ms-meta-dat", false),
        (XYZ, "DELETE", "", false),
        (XYZ, "get", "", false),
        ("http://www.XYZ.com", "GET", "", false),
        ("https://www.xyz.com", "GET", "", false),
        ("http://www.xyz.com:80", "GET", "", false),
        ("null", "GET", "", false),
    ] {
        let response = ask(&client, origin, method, headers);
        let expected = if is_allowed {
            (200, "")
        } else {
            (403, "CorsPreflightFailure")
        };
        assert_eq!(
            status_and_code(&response),
            expected,
            "{origin} {method} {headers}"
        );
        if !is_allowed {
            assert_eq!(told(&response), []);
            let message = "CORS not enabled or no matching rule found for this request.";
            assert!(body(&response).contains(message), "{}", body(&response));
        }
    }
}

#[test]
fn a_star_allows_everything_of_its_kind() {
    let client = with_rules(&[("*", "MERGE,OPTIONS", "*", "*")]);
    let response = ask(&client, XYZ, "MERGE", "authorization,x-anything");
    assert_eq!(
        told(&response),
        [
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-headers", "authorization,x-anything"),
            ("access-control-allow-methods", "MERGE"),
            ("access-control-allow-origin", XYZ),
            ("access-control-max-age", "500"),
        ]
    );
}

#[test]
fn a_preflight_says_who_asks_and_for_what() {
    let client = with_rules(&[("*", "GET", "*", "")]);
    for (origin, method) in [(XYZ, ""), ("", "GET")] {
        let response = ask(&client, origin, method, "");
        assert_eq!(status_and_code(&response), (400, "InvalidHeaderValue"));
        assert!(body(&response).contains("A required CORS header is not present."));
    }
    // Without either it is no preflight, and needs a credential like everything else.
    let response = ask(&client, "", "", "x-ms-date");
    assert_eq!(status_and_code(&response), (403, "AuthenticationFailed"));
    let response = client.send("OPTIONS", "people", &[], "");
    assert_eq!(status_and_code(&response), (405, "MethodNotAllowed"));
}

#[test]
fn without_rules_nothing_is_allowed() {
    let client = Client::with_table();
    let response = ask(&client, XYZ, "GET", "");
    assert_eq!(status_and_code(&response), (403, "CorsPreflightFailure"));
    let response = client.send("GET", "people()", &[("origin", XYZ)], "");
    assert_eq!((response.status().as_u16(), told(&response)), (200, vec![]));
    let mut unknown = client.request("OPTIONS", "/nobody/people", &[("origin", XYZ)], "");
    unknown.headers_mut().insert(
        "access-control-request-method",
        HeaderValue::from_static("GET"),
    );
    let response = client.call(unknown);
    assert_eq!(status_and_code(&response), (404, "ResourceNotFound"));
}

#[test]
fn the_rules_of_one_account_are_not_those_of_another() {
    let client = with_rules(&[("*", "GET", "*", "")]);
    let headers = [("origin", XYZ), ("access-control-request-method", "GET")];
    let response = client.call(client.request("OPTIONS", "/second/people", &headers, ""));
    assert_eq!(status_and_code(&response), (403, "CorsPreflightFailure"));
    // The same account, by its host and at its other location.
    for (host, path) in [
        ("acct.table.localhost", "/people"),
        ("127.0.0.1", "/acct-secondary/people"),
    ] {
        let headers = [("host", host), headers[0], headers[1]];
        let response = client.call(client.request("OPTIONS", path, &headers, ""));
        assert_eq!(response.status(), 200, "{host}");
    }
}

#[test]
fn an_answer_is_shown_to_the_origins_of_a_rule() {
    let client = with_rules(&[
        ("http://www.ab.com", "GET,POST", "", ""),
        (XYZ, "GET,DELETE", "", "x-ms-request-id,x-ms-c*,Custom"),
    ]);
    let id = ("x-ms-client-request-id", "1");
    let shown = [
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", XYZ),
        (
            "access-control-expose-headers",
            "x-ms-request-id,x-ms-client-request-id,Custom",
        ),
        ("vary", "Origin"),
    ];
    let response = client.send("GET", "people()", &[("origin", XYZ), id], "");
    assert_eq!(
        (response.status().as_u16(), told(&response)),
        (200, shown.to_vec())
    );
    // An error is shown as well.
    let response = client.send("GET", "nobody()", &[("origin", XYZ), id], "");
    assert_eq!(
        (response.status().as_u16(), told(&response)),
        (404, shown.to_vec())
    );
    let delete = client.send("DELETE", "Tables('nobody')", &[("origin", XYZ), id], "");
    assert_eq!(
        (delete.status().as_u16(), told(&delete)),
        (404, shown.to_vec())
    );
    let request = client.request("GET", "/acct/people()", &[("origin", XYZ)], "");
    let refused = client.call(request);
    assert_eq!(refused.status(), 403);
    assert_eq!(told(&refused)[1], ("access-control-allow-origin", XYZ));

    let plain = [
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", "http://www.ab.com"),
        ("vary", "Origin"),
    ];
    let origin = [("origin", "http://www.ab.com")];
    let response = client.send("GET", "people()", &origin, "");
    assert_eq!(told(&response), plain);
}

#[test]
fn an_answer_that_could_be_another_one_says_so_to_caches() {
    let varies = vec![("vary", "Origin")];
    let all = vec![("access-control-allow-origin", "*")];
    let exact = vec![
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", XYZ),
        ("vary", "Origin"),
    ];
    let one: &[Rule<'_>] = &[(XYZ, "GET,PUT", "", "")];
    let every: &[Rule<'_>] = &[("*", "GET,PUT", "", "")];
    let both: &[Rule<'_>] = &[(XYZ, "GET,PUT", "", ""), ("*", "GET,PUT", "", "")];
    for (rules, method, origin, expected) in [
        (one, "GET", "", &varies),
        (one, "GET", XYZ, &exact),
        (one, "GET", "http://other", &varies),
        (one, "HEAD", "", &varies),
        (one, "PUT", "", &vec![]),
        (one, "PUT", XYZ, &exact),
        (one, "PUT", "http://other", &vec![]),
        (every, "GET", "", &vec![]),
        (every, "GET", XYZ, &all),
        (every, "PUT", XYZ, &all),
        (every, "HEAD", XYZ, &vec![]),
        (both, "GET", "", &varies),
        (both, "GET", XYZ, &exact),
        (both, "GET", "http://other", &all),
    ] {
        let client = with_rules(rules);
        let response = client.send(method, "people?comp=acl", &[("origin", origin)], "");
        assert!(response.status().is_success(), "{method}");
        assert_eq!(told(&response), *expected, "{rules:?} {method} {origin}");
    }
}

#[test]
fn a_stranger_learns_of_rules_what_a_preflight_tells() {
    let client = with_rules(&[(XYZ, "GET", "", "")]);
    let asked = |method: &str, origin: &str| {
        let refused =
            client.call(client.request(method, "/acct/people()", &[("origin", origin)], ""));
        assert_eq!(refused.status(), 403);
        !told(&refused).is_empty()
    };
    for (method, origin, allowed) in [
        ("GET", XYZ, true),
        ("PUT", XYZ, false),
        ("GET", "http://other", false),
        // A request without an origin is not from a page, so the response has no CORS headers, not even `Vary`.
        ("GET", "", false),
        ("HEAD", "", false),
    ] {
        assert_eq!(asked(method, origin), allowed, "{method} {origin}");
        if !origin.is_empty() {
            let preflight = ask(&client, origin, method, "");
            assert_eq!(preflight.status() == 200, allowed, "{method} {origin}");
        }
    }
}

#[test]
fn a_stranger_costs_one_read_and_a_made_up_account_none() {
    let reads = Arc::new(AtomicUsize::new(0));
    let storage = Counted(MemoryStorage::default(), Arc::clone(&reads));
    let (tokens, paging) = (Tokens::default(), Paging::default());
    let client = Client::with_storage(Duration::ZERO, tokens, paging, Box::new(storage));
    let headers = [("origin", XYZ), ("access-control-request-method", "GET")];
    for (account, expected) in [("acct", 1), ("nobody", 0)] {
        let path = format!("/{account}/people()");
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            reads.store(0, Ordering::Relaxed);
            let response = client.call(client.request(method, &path, &headers, ""));
            assert!(response.status().is_client_error(), "{method} {path}");
            assert_eq!(reads.load(Ordering::Relaxed), expected, "{method} {path}");
        }
    }
}

/// A storage that counts what is read from it.
#[derive(Debug)]
struct Counted(MemoryStorage, Arc<AtomicUsize>);

impl Storage for Counted {
    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(CountedReads(self.0.snapshot(), Arc::clone(&self.1)))
    }

    fn latest(&self) -> Box<dyn Snapshot> {
        self.0.latest()
    }

    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
        self.0.commit(batch)
    }

    fn settle(&self) -> Commit {
        self.0.settle()
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    fn outlives_the_process(&self) -> bool {
        false
    }

    fn closed(&self) -> Closed {
        self.0.closed()
    }
}

#[derive(Debug)]
struct CountedReads(Box<dyn Snapshot>, Arc<AtomicUsize>);

impl Snapshot for CountedReads {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(key)
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.range(start, end)
    }
}

#[test]
fn a_request_is_carried_out_whatever_the_rules_say() {
    let client = with_rules(&[(XYZ, "GET", "", "")]);
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let origin = [("origin", "http://elsewhere")];
    let response = client.send("POST", "people", &origin, entity);
    assert_eq!((response.status().as_u16(), told(&response)), (201, vec![]));
}

#[test]
fn rules_have_limits() {
    let client = Client::with_table();
    let list = |count: usize, item: &str| {
        let items: Vec<_> = (0..count).map(|index| format!("{item}{index}")).collect();
        items.join(",")
    };
    let (origins, headers) = (list(64, "a"), list(64, "h"));
    let longest = "a".repeat(256);
    assert_eq!(set(&client, &[(&origins, "GET", "", "")]), 202);
    assert_eq!(
        set(&client, &[("*", "GET", &format!("{headers},p*,q*"), "")]),
        202
    );
    assert_eq!(set(&client, &[(&longest, "GET", "", &longest)]), 202);
    let every = "DELETE,GET,HEAD,MERGE,PATCH,POST,OPTIONS,PUT";
    assert_eq!(set(&client, &[("*", every, "", ""); 5]), 202);

    let (too_many, too_long) = (list(65, "a"), "a".repeat(257));
    let large = [longest.as_str(); 8].join(",");
    for rules in [
        &[("*", "GET", "", ""); 6][..],
        &[("", "GET", "", "")],
        &[("*", "", "", "")],
        &[("*", "BREW", "", "")],
        &[("*", "get", "", "")],
        &[("*", "*", "", "")],
        &[(&too_many, "GET", "", "")],
        &[(&too_long, "GET", "", "")],
        &[("*", "GET", &too_many, "")],
        &[("*", "GET", "", &too_long)],
        &[("*", "GET", "a*,b*,c*", "")],
        &[("*", "GET", "", "a*,b*,c*")],
        &[("*", "GET", &large, "")],
    ] {
        assert_eq!(set(&client, rules), 400, "{rules:?}");
    }
    for age in ["-1", "", "+5", "4294967296", "1.5"] {
        let rule = rule(("*", "GET", "", ""));
        let rule = rule.replace(">500<", &format!(">{age}<"));
        let document =
            format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
        let response = client.send("PUT", PROPERTIES, &[], &document);
        assert_eq!(
            status_and_code(&response),
            (400, "InvalidXmlDocument"),
            "{age}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_preflight_is_answered(
        origin in "[ -~]{0,20}",
        method in "GET|PUT|[!-~]{0,8}",
        headers in "[a-c*, -]{0,20}",
    ) {
        let client = with_rules(&[("a", "GET", "a*,b", "c*"), ("*", "PUT", "*", "")]);
        let status = ask(&client, origin.trim(), &method, headers.trim()).status().as_u16();
        proptest::prop_assert!([200, 400, 403].contains(&status), "{status}");
    }
}
