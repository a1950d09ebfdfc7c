//! The page for browsers: who gets it, and what it contains.

use super::*;

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
/// Removes what only clients of the service send.
const BROWSER: [(&str, &str); 3] = [HTML, ("x-ms-date", ""), ("x-ms-version", "")];

impl Client {
    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
        self.call(self.request("GET", path, headers, ""))
    }
}

fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

#[test]
fn a_browser_gets_a_page_at_the_url_of_the_server_and_of_an_account() {
    let client = Client::new();
    for (path, host, expected) in [
        ("/", "127.0.0.1:10002", "http://127.0.0.1:10002/ACCOUNT"),
        ("/acct", "127.0.0.1:10002", "http://127.0.0.1:10002/acct"),
        ("/acct/", "[::1]:7", "http://[::1]:7/acct"),
        (
            "/",
            "acct.table.localhost:10002",
            "http://acct.table.localhost:10002",
        ),
    ] {
        let response = client.get(path, &[&BROWSER[..], &[("host", host)]].concat());
        let page = text(&response);
        assert_eq!(response.status(), 200, "{path} {page}");
        assert_eq!(
            response.headers()["content-type"],
            "text/html; charset=utf-8"
        );
        assert!(
            page.contains(&format!("TableEndpoint={expected}'")),
            "{page}"
        );
        assert!(page.contains("\ntables ls</pre>"), "{page}");
        // Nothing is loaded, run or given away.
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src"),
            "{policy}"
        );
        for absent in [
            "{version}",
            "{account}",
            "{endpoint}",
            "{emulator}",
            "<script",
            "src=",
            "href=",
            "c2VjcmV0",
            "b3RoZXI=",
        ] {
            assert!(!page.contains(absent), "{absent}: {page}");
        }
    }
}

#[test]
fn the_account_of_emulators_is_named_where_it_is_served() {
    let key = SharedKey::new("devstoreaccount1", "c2VjcmV0").unwrap();
    let client = Client::with(|options| options.accounts.push(key));
    let response = client.get("/", &BROWSER);
    let expected = "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1'";
    assert!(text(&response).contains(expected), "{}", text(&response));
}

#[test]
fn every_other_request_has_the_answer_of_the_service() {
    let client = Client::new();
    let with = |header| [&BROWSER[..], &[header]].concat();
    for (path, headers, status) in [
        ("/", with(("accept", "*/*")), 404),
        ("/", with(("accept", "")), 404),
        ("/", with(("accept", "application/json;text/html")), 404),
        ("/", with(("x-ms-version", "2019-02-02")), 404),
        ("/", with(("origin", "http://evil.example")), 404),
        ("/acct", with(("authorization", "SharedKey acct:c2ln")), 403),
        ("/acct", with(("host", "a<script>")), 403),
        ("/acct?comp=list", BROWSER.to_vec(), 403),
        ("/acct/Tables", BROWSER.to_vec(), 403),
        ("/acct/people()", BROWSER.to_vec(), 403),
        ("/acct-secondary", BROWSER.to_vec(), 403),
        ("/other", BROWSER.to_vec(), 404),
        ("/favicon.ico", BROWSER.to_vec(), 404),
    ] {
        let response = client.get(path, &headers);
        assert_eq!(response.status(), status, "{path} {headers:?}");
        assert!(!text(&response).contains("<html"), "{path} {headers:?}");
    }
    for method in ["HEAD", "POST", "PUT", "DELETE"] {
        let response = client.call(client.request(method, "/acct", &BROWSER, ""));
        assert_eq!(response.status(), 403, "{method}");
    }
}
