//! `explore` under attack: by other pages, by other hosts, by what is stored in tables, and by
//! services that are hostile.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, iter};

use futures::StreamExt as _;
use tablesdk::{DynamicEntity, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::page::{FORM, Page, Response, elements, encoded, percent};
use crate::{STRING, fill, server};

const MARKUP: &str = "<img src=x onerror=alert(1)>";
const QUOTED: &str = "\"'><svg onload=alert(1)>";
const SCRIPT: &str = "</script></textarea></title><script>alert(1)</script>";
const REVERSED: &str = "user\u{202e}gnp\u{2066}.exe";

/// Entities whose keys, property names and values would act if they were not shown as text.
async fn hostile(service: &TableServiceClient) {
    let table = service.table("Odd");
    table.create_table().await.unwrap();
    for (index, text) in [MARKUP, QUOTED, SCRIPT, REVERSED, "a\u{1}\u{1b}[2Jb"]
        .into_iter()
        .enumerate()
    {
        // Keys have no control characters, and no slash.
        let key: String = text
            .chars()
            .map(|it| match it {
                it if it.is_control() => '·',
                '/' => '·',
                it => it,
            })
            .collect();
        let entity = DynamicEntity::new(&*key, format!("{index} {key}"));
        let entity = entity.with("Text", text).with("Kind", text);
        table.insert(&entity).await.unwrap();
        let entity = DynamicEntity::new("same", format!("{index} {key}"));
        table.insert(&entity.with("Text", text)).await.unwrap();
    }
    // More rows than are shown at once: those that follow take another way into the page.
    let more = (0..150).map(|row| {
        let entity = DynamicEntity::new("same", format!("{row:03} {QUOTED}"));
        entity.with("Text", format!("</noscript>{MARKUP}"))
    });
    let report = table.bulk().upsert_replace(futures::stream::iter(more));
    assert!(report.await.unwrap().is_success());
    let reference = DynamicEntity::new("same", "url").with("Link", "javascript:alert(1)");
    table.insert(&reference).await.unwrap();
}

/// All entities of all tables, with their versions.
async fn contents(service: &TableServiceClient) -> Vec<String> {
    let mut all = Vec::new();
    let mut names = service.tables().stream();
    while let Some(name) = names.next().await {
        let name = name.unwrap();
        let table = service.table(&name);
        let mut entities = table.query::<DynamicEntity>().stream();
        while let Some(entity) = entities.next().await {
            all.push(format!("{name} {:?}", entity.unwrap()));
        }
        all.push(name);
    }
    all
}

/// The paths that take forms, from the source: a new one is attacked like the others.
fn form_routes() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/explore");
    let mut folders = vec![folder];
    let mut routes = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                routes.extend(form_routes_of(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(!routes.is_empty());
    routes
}

fn form_routes_of(source: &str) -> Vec<String> {
    let routes = source.split(".route(").skip(1);
    let routes = routes.filter_map(|route| {
        let (_, route) = route.split_once('"')?;
        let (path, handlers) = route.split_once('"')?;
        let handlers = handlers.split(".fallback(").next()?;
        handlers
            .contains("post(")
            .then(|| path.replace("{table}", "Odd").replace(['{', '}'], ""))
    });
    routes.collect()
}

/// Fields under the names that the forms have, so that a form that is taken would do something.
fn plausible() -> Vec<(&'static str, &'static str)> {
    let key = "[\"same\",\"url\"]";
    vec![
        ("table", "Odd"),
        ("pk", "same"),
        ("rk", "url"),
        ("key", key),
        ("etag", "*"),
        ("name", "Link"),
        ("type", "String"),
        ("value", "forged"),
        ("json", "{\"PartitionKey\":\"same\",\"RowKey\":\"forged\"}"),
        ("action", "delete"),
        ("do", "delete"),
        ("force", "on"),
        ("plan", "1"),
        ("columns", "Link"),
        ("id", "1"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_exact_host_is_answered() {
    let (_server, service, account) = server().await;
    hostile(&service).await;
    let page = Page::start(&[], &[(STRING, &account)]);
    let port = page.port;
    let right = page.host();
    let opening = page.opening_path();
    let hosts = [
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        format!("attacker.example:{port}"),
        format!("127.0.0.1.attacker.example:{port}"),
        "127.0.0.1".into(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        format!("127.0.0.1:0{port}"),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        format!("127.0.0.2:{port}"),
        format!("user@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}, attacker.example"),
        format!("127.0.0.1.:{port}"),
        String::new(),
    ];
    let mut heads: Vec<_> = hosts
        .iter()
        .map(|host| (String::new(), format!("Host: {host}\r\n")))
        .collect();
    // Two hosts, none, and the one of the target, which has precedence for HTTP.
    let twice = format!("Host: {right}\r\nHost: attacker.example\r\n");
    heads.push((String::new(), twice));
    let twice = format!("Host: attacker.example\r\nHost: {right}\r\n");
    heads.push((String::new(), twice));
    heads.push((String::new(), String::new()));
    let attacker = "http://attacker.example".to_owned();
    heads.push((attacker.clone(), format!("Host: {right}\r\n")));
    let own = format!("http://{right}");
    heads.push((own.clone(), "Host: attacker.example\r\n".into()));
    let style = page.stylesheet().await;
    for (before, host) in &heads {
        for target in [&*opening, "/", &*style, "/t/Odd"] {
            let request =
                format!("GET {before}{target} HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
            let response = page.try_send(request.as_bytes()).await;
            let response = response.unwrap_or_else(|| panic!("no response: {request}"));
            assert!(response.is_refused(), "{request}: {response:?}");
            assert!(response.headers("set-cookie").is_empty(), "{request}");
        }
    }
    // The version of HTTP that has no host.
    let old = format!("GET {opening} HTTP/1.0\r\n\r\n");
    assert!(page.try_send(old.as_bytes()).await.unwrap().is_refused());

    // The token was not used up, and the cookie does not help another host.
    let opened = page.send(&page.get_of(&opening, "")).await;
    let set = opened.headers("set-cookie").concat();
    let cookie = set.split(';').next().unwrap();
    assert!(cookie.starts_with(&format!("tables-{port}=")), "{opened:?}");
    for (before, host) in &heads {
        let request = format!(
            "GET {before}/t/Odd HTTP/1.1\r\n{host}Cookie: {cookie}\r\nConnection: close\r\n\r\n"
        );
        let response = page.try_send(request.as_bytes()).await.unwrap();
        assert!(response.is_refused(), "{request}: {response:?}");
        assert!(!response.body.contains("Odd</"), "{response:?}");
    }
    let request = page.get_of(&format!("{own}/t/Odd"), &format!("Cookie: {cookie}\r\n"));
    assert_eq!(page.send(&request).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_reach_no_port() {
    let (_server, _, account) = server().await;
    let page = Page::open(&[], &account).await;
    // The address of this machine in its network: nothing is sent.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let outward = socket
        .connect((Ipv4Addr::new(192, 0, 2, 1), 9))
        .and_then(|()| socket.local_addr());
    let mut addresses = vec![format!("[::1]:{}", page.port)];
    if let Ok(outward) = outward.map(|it| it.ip())
        && !outward.is_loopback()
    {
        addresses.push(format!("{outward}:{}", page.port));
    }
    for address in addresses {
        assert!(TcpStream::connect(&*address).await.is_err(), "{address}");
    }
}

/// The heads of forms that are not sent by the page: what sends them, and the lines. HOST is that
/// of the page, PORT its port.
const HEAD_ATTACKS: [(&str, &str); 21] = [
    (
        "another site",
        "Origin: http://attacker.example|Sec-Fetch-Site: cross-site|FORM|COOKIE",
    ),
    (
        "another site, says the origin alone",
        "Origin: http://attacker.example|FORM|COOKIE",
    ),
    (
        "another site, says the browser alone",
        "Sec-Fetch-Site: cross-site|FORM|COOKIE",
    ),
    (
        "a sandboxed frame",
        "Origin: null|Sec-Fetch-Site: cross-site|FORM|COOKIE",
    ),
    (
        "a sandboxed frame, says the origin alone",
        "Origin: null|FORM|COOKIE",
    ),
    (
        "another port",
        "Origin: http://127.0.0.1:1|Sec-Fetch-Site: same-site|FORM|COOKIE",
    ),
    (
        "another port, says the origin alone",
        "Origin: http://127.0.0.1:1|FORM|COOKIE",
    ),
    ("another scheme", "Origin: https://HOST|FORM|COOKIE"),
    (
        "another name of this machine",
        "Origin: http://localhost:PORT|FORM|COOKIE",
    ),
    (
        "two origins",
        "Origin: http://HOST|Origin: http://attacker.example|SAME|FORM|COOKIE",
    ),
    (
        "an origin with a path",
        "Origin: http://HOST/|SAME|FORM|COOKIE",
    ),
    (
        "two sites",
        "Origin: http://HOST|SAME|Sec-Fetch-Site: cross-site|FORM|COOKIE",
    ),
    ("no cookie", "Origin: http://HOST|SAME|FORM"),
    (
        "another cookie",
        "Origin: http://HOST|SAME|FORM|Cookie: tables-PORT=AAAA",
    ),
    (
        "an empty cookie",
        "Origin: http://HOST|SAME|FORM|Cookie: tables-PORT=",
    ),
    (
        "the cookie under another name",
        "Origin: http://HOST|SAME|FORM|Cookie: tables-1=VALUE",
    ),
    (
        "text",
        "Origin: http://HOST|SAME|Content-Type: text/plain|COOKIE",
    ),
    (
        "JSON",
        "Origin: http://HOST|SAME|Content-Type: application/json|COOKIE",
    ),
    (
        "multipart",
        "Origin: http://HOST|SAME|Content-Type: multipart/form-data; boundary=x|COOKIE",
    ),
    ("no content type", "Origin: http://HOST|SAME|COOKIE"),
    (
        "two content types",
        "Origin: http://HOST|SAME|Content-Type: text/plain|FORM|COOKIE",
    ),
];

fn head_attacks(page: &Page) -> Vec<(&'static str, String)> {
    let lines = |attack: &str| {
        let lines = attack.replace('|', "\r\n") + "\r\n";
        let lines = lines.replace("FORM\r\n", FORM);
        let lines = lines.replace("COOKIE\r\n", &page.cookie_line());
        let lines = lines.replace("SAME", "Sec-Fetch-Site: same-origin");
        let lines = lines.replace("HOST", &page.host());
        let lines = lines.replace("PORT", &page.port.to_string());
        lines.replace("VALUE", &page.cookie)
    };
    let attacks = HEAD_ATTACKS.iter();
    attacks
        .map(|(name, attack)| (*name, lines(attack)))
        .collect()
}

/// The bodies of forms that the page did not make: what they have, and the body.
fn body_attacks(page: &Page) -> Vec<(&'static str, String)> {
    let without = encoded(&plausible());
    let with = |token: &str| format!("token={token}&{without}");
    let shorter = page.token.get(1..).unwrap();
    let swapped = page.token.chars().rev().collect::<String>();
    vec![
        ("no token", without.clone()),
        ("an empty token", with("")),
        (
            "a guessed token",
            with("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        ),
        ("a part of the token", with(shorter)),
        ("a token in reverse", with(&swapped)),
        ("the cookie as the token", with(&page.cookie)),
        ("the token of the URL", with(&page.opening)),
        (
            "a wrong token first",
            format!("token=AAAA&{}", page.form(&plausible())),
        ),
        ("nothing", String::new()),
        ("what is no form", "\u{1F980}%zz&&&===".into()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_other_sites_change_nothing() {
    let (_server, service, account) = server().await;
    hostile(&service).await;
    let page = Page::open(&[], &account).await;
    let before = contents(&service).await;
    let right = page.form_lines();
    let form = page.form(&plausible());
    let without = encoded(&plausible());
    let (head_attacks, body_attacks) = (head_attacks(&page), body_attacks(&page));
    for route in form_routes() {
        for (name, lines) in &head_attacks {
            let response = page.send(&page.post_of(&route, lines, &form)).await;
            assert!(response.is_refused(), "{name}, {route}: {response:?}");
        }
        for (name, body) in &body_attacks {
            let response = page.send(&page.post_of(&route, &right, body)).await;
            assert!(response.is_refused(), "{name}, {route}: {response:?}");
        }
        // A token in the URL is in the history of the browser.
        let target = format!("{route}?token={}", page.token);
        let response = page.send(&page.post_of(&target, &right, &without)).await;
        assert!(response.is_refused(), "{route}: {response:?}");
        // Reads do not stand for forms.
        let target = format!("{route}?{form}");
        let response = page.get(&target).await;
        assert!(
            matches!(response.status, 200 | 400..500),
            "{route}: {response:?}"
        );
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "GETT"] {
            let request = page.post_of(&route, &right, &form);
            let request = request.replacen("POST", method, 1);
            let response = page.send(&request).await;
            assert!(response.is_refused(), "{method} {route}: {response:?}");
        }
    }
    assert_eq!(contents(&service).await, before);
    // What is refused is not so for another reason.
    for route in form_routes() {
        let response = page
            .send(&page.post_of(&route, &right, &page.form(&[])))
            .await;
        assert!(
            !matches!(response.status, 401 | 403 | 404 | 405),
            "{route}: {response:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_opens_the_page_once_and_no_guess_does() {
    let (_server, _, account) = server().await;
    let page = Page::start(&[], &[(STRING, &account)]);
    let right = &page.opening;
    assert!(right.len() >= 43, "256 bits: {right}");
    for guess in [
        "",
        "A",
        right.get(1..).unwrap(),
        &right.to_lowercase(),
        &format!("{right}A"),
        &format!("%20{right}"),
        &format!("&token={right}"),
        &"A".repeat(30_000),
        "%00",
        "%ff",
    ] {
        let response = page
            .send(&page.get_of(&format!("/open?token={guess}"), ""))
            .await;
        assert!(response.is_refused(), "{guess}: {response:?}");
        assert!(response.headers("set-cookie").is_empty());
    }
    // What only looks at the URL, as a preview does, does not use it up.
    let preview = page
        .get_of(&page.opening_path(), "")
        .replacen("GET", "HEAD", 1);
    let preview = page.try_send(preview.as_bytes()).await.unwrap();
    assert!(preview.headers("set-cookie").is_empty(), "{preview:?}");
    let posted = page.post_of(&page.opening_path(), FORM, "");
    assert!(page.send(&posted).await.is_refused());

    let opened = page.send(&page.get_of(&page.opening_path(), "")).await;
    let cookies = opened.headers("set-cookie");
    let [cookie] = &*cookies else {
        panic!("{opened:?}")
    };
    let parts: Vec<_> = cookie.split("; ").collect();
    let (name, value) = parts.first().unwrap().split_once('=').unwrap();
    assert_eq!(name, format!("tables-{}", page.port));
    assert!(value.len() >= 43 && value != right, "{cookie}");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(parts.contains(&part), "{cookie}");
    }
    assert!(!opened.body.contains(&**right) && !opened.body.contains(value));
    for _ in 0..2 {
        let again = page.send(&page.get_of(&page.opening_path(), "")).await;
        assert!(again.is_refused() && again.headers("set-cookie").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_at_once_opens_the_page() {
    let (_server, _, account) = server().await;
    let page = Page::start(&[], &[(STRING, &account)]);
    let request = page.get_of(&page.opening_path(), "");
    let requests = iter::repeat_with(|| page.send(&request)).take(32);
    let responses = futures::future::join_all(requests).await;
    let opened = responses
        .iter()
        .filter(|it| !it.headers("set-cookie").is_empty());
    assert_eq!(opened.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_cookie_there_is_one_link_to_the_page_itself() {
    let (_server, service, account) = server().await;
    hostile(&service).await;
    let page = Page::open(&[], &account).await;
    let (markup, quoted) = (percent(MARKUP), percent(QUOTED));
    for target in [
        "/",
        "/t/Odd",
        &format!("/t/Odd?pk={markup}&filter={quoted}"),
        &format!("/t/{markup}/e?pk={quoted}"),
        "/t/Odd?a=\"'><svg",
    ] {
        // From a link in a chat, and as a stored URL.
        for lines in [
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: none\r\n",
            "",
        ] {
            let response = page.send(&page.get_of(target, lines)).await;
            if response.status == 400 && target.contains('<') {
                continue;
            }
            assert_eq!(response.status, 401, "{target}: {response:?}");
            let links: Vec<_> = elements(&response.body)
                .into_iter()
                .filter(|it| it.name == "a")
                .map(|it| it.get("href").unwrap().to_owned())
                .collect();
            assert_eq!(links, [target], "{response:?}");
            assert!(!response.body.contains("same"), "{response:?}");
        }
        // The cookie of the page, but a link of another site: the browser would not send the
        // cookie, and the program does not trust that.
        let lines = format!("Sec-Fetch-Site: cross-site\r\n{}", page.cookie_line());
        let response = page.send(&page.get_of(target, &lines)).await;
        assert!(response.is_refused(), "{target}: {response:?}");
    }
    for target in [
        "//attacker.example/",
        "//attacker.example",
        "///attacker.example",
        "/\\attacker.example",
        "/%09/attacker.example",
        "/.//attacker.example",
        "/..//attacker.example",
    ] {
        let response = page
            .try_send(page.get_of(target, "").as_bytes())
            .await
            .unwrap();
        assert!(response.is_refused(), "{target}: {response:?}");
        // A browser takes a backslash for a slash.
        let leaves = |it: &str| it.starts_with("//") || it.contains('\\');
        let links = elements(&response.body);
        let mut links = links.iter().filter_map(|it| it.get("href"));
        assert!(!links.any(leaves), "{target}: {response:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_of_another_page_opens_nothing() {
    let (_server, _, account) = server().await;
    let one = Page::open(&[], &account).await;
    let two = Page::open(&[], &account).await;
    assert_ne!(one.cookie, two.cookie);
    assert_ne!(one.token, two.token);
    let same = "Sec-Fetch-Site: same-origin\r\n";
    for cookie in [
        one.cookie_line(),
        format!("Cookie: tables-{}={}\r\n", two.port, one.cookie),
        format!(
            "Cookie: tables-{}={}; {}",
            two.port,
            one.cookie,
            one.cookie_line().trim_start_matches("Cookie: ")
        ),
    ] {
        let response = two.send(&two.get_of("/", &format!("{same}{cookie}"))).await;
        assert_eq!(response.status, 401, "{response:?}");
    }
    // The browser sends both, since cookies ignore ports.
    let both = format!(
        "Cookie: tables-{}={}; tables-{}={}\r\n",
        one.port, one.cookie, two.port, two.cookie
    );
    for page in [&one, &two] {
        let response = page.send(&page.get_of("/", &format!("{same}{both}"))).await;
        assert_eq!(response.status, 200, "{response:?}");
    }
    // The token of the forms of one is not that of the other.
    for route in form_routes() {
        let body = encoded(&[("token", &*one.token)]);
        let response = two
            .send(&two.post_of(&route, &two.form_lines(), &body))
            .await;
        assert!(response.is_refused(), "{route}: {response:?}");
    }
}

/// Each page that a link leads to, from the first one on, is read. Returns their paths.
async fn crawl(page: &Page, most: usize) -> Vec<String> {
    let mut found = vec!["/".to_owned()];
    let mut at = 0;
    while let Some(target) = found.get(at).cloned().filter(|_| at < most) {
        at += 1;
        let response = page.get(&target).await;
        assert!(response.status < 500, "{target}: {response:?}");
        if !response
            .headers("content-type")
            .concat()
            .starts_with("text/html")
        {
            continue;
        }
        let (path, _) = target.split_once('?').unwrap_or((&target, ""));
        for element in elements(&response.body) {
            for name in ["href", "src", "action", "formaction"] {
                let Some(link) = element.get(name) else {
                    continue;
                };
                let link = link.split('#').next().unwrap();
                let link = match link.strip_prefix('?') {
                    Some(_) => format!("{path}{link}"),
                    None => link.to_owned(),
                };
                if !link.is_empty() && !found.contains(&link) {
                    found.push(link);
                }
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_shows_as_text_everywhere() {
    let (_server, service, account) = server().await;
    hostile(&service).await;
    let page = Page::open(&[], &account).await;
    // `send` looks at each response: nothing in it acts.
    for target in [
        "/t/Odd?pk=same",
        "/t/Odd?scan=all",
        "/t/Odd?pk=same&columns=Text",
    ] {
        let response = page.get(target).await;
        assert_eq!(response.status, 200, "{response:?}");
        if target.contains("pk=same") {
            let elements = elements(&response.body);
            for text in [MARKUP, QUOTED, "user\\u{202e}gnp\\u{2066}.exe"] {
                let is_shown = elements.iter().any(|it| it.text.contains(text));
                assert!(is_shown, "{target}: {text} is not shown: {}", response.body);
            }
        }
    }
    let found = crawl(&page, 300).await;
    assert!(
        found.iter().any(|it| it.starts_with("/t/Odd/e?")),
        "{found:?}"
    );
    // What comes with the URL, on each page.
    let paths: BTreeSet<_> = found
        .iter()
        .filter(|it| !it.starts_with("/open"))
        .map(|it| it.split('?').next().unwrap())
        .collect();
    for path in paths {
        for text in [
            MARKUP,
            QUOTED,
            SCRIPT,
            REVERSED,
            "a' or 1 eq 1",
            "\u{1}\u{1b}[2J",
        ] {
            let text = percent(text);
            for name in [
                "pk", "rk", "filter", "columns", "from", "find", "q", "sort", "scan", "take",
                "unknown",
            ] {
                let response = page.get(&format!("{path}?{name}={text}")).await;
                assert!(response.status < 500, "{path} {name}: {response:?}");
            }
            let response = page.get(&format!("{path}/{text}")).await;
            assert!(response.status < 500, "{path}: {response:?}");
        }
    }
    // Now the history has it, too.
    crawl(&page, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_lead_to_no_file_and_no_other_page() {
    let (_server, service, account) = server().await;
    hostile(&service).await;
    let page = Page::open(&[], &account).await;
    let long = format!("/t/{}", "a".repeat(50_000));
    let style = page.stylesheet().await;
    let folder = style.strip_suffix("style.css").unwrap();
    let files = [
        "../Cargo.toml",
        "..%2fCargo.toml",
        "%2e%2e/Cargo.toml",
        "..\\Cargo.toml",
        "%2fetc%2fpasswd",
        "/etc/passwd",
        "style.css%00.js",
        "style.css/",
        "",
        "STYLE.CSS",
    ];
    let files = ["/assets/", folder].map(|folder| files.map(|name| format!("{folder}{name}")));
    let targets = [
        "/assets",
        "/assets/style.css",
        "/assets/0/style.css",
        "/t",
        "/t/",
        "/t//e",
        "/t/..",
        "/t/%2e%2e",
        "/t/..%2f..%2fetc%2fpasswd",
        "/t/%00",
        "/t/Odd%00",
        "/t/Odd%0d%0aSet-Cookie:%20x=y",
        "/t/Odd%2fe",
        "/t/Odd;x",
        "/t/$batch",
        "/t/Odd('a')",
        "/t/%ff%fe",
        "/t/Odd/../../open",
        "//",
        "/%2f%2fattacker.example",
        "/%00",
        "/.git/config",
        "/open/",
        "/index.html",
        &*long,
    ];
    for target in targets
        .into_iter()
        .chain(files.as_flattened().iter().map(String::as_str))
    {
        let response = page
            .try_send(page.get_of(target, &page.cookie_line()).as_bytes())
            .await;
        let response = response.unwrap_or_else(|| panic!("no response: {target:.100}"));
        assert!(
            response.is_refused() || is_problem(&response),
            "{target:.100}: {response:?}"
        );
        assert!(
            response.headers("set-cookie").is_empty(),
            "{target:.100}: {response:?}"
        );
        assert!(!response.body.contains("[package]") && !response.body.contains("root:"));
    }
}

/// Returns true if a page with status 200 reports that there is no such thing: its content comes
/// after its beginning.
fn is_problem(response: &Response) -> bool {
    let elements = elements(&response.body);
    elements.iter().any(|it| it.get("role") == Some("alert"))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_write_no_form_changes_a_table() {
    let (server, service, account) = server().await;
    hostile(&service).await;
    let before = contents(&service).await;
    // An address of this machine that does not look like one.
    let remote = account.replace("//127.0.0.1:", "//0.0.0.0:");
    assert_ne!(remote, account);
    for (words, account) in [(&["--read-only"][..], &account), (&[], &remote)] {
        let page = Page::open(words, account).await;
        let home = page.get("/").await;
        assert!(home.body.contains("read only"), "{}", home.body);
        let mut refused = 0;
        for route in form_routes() {
            for field in plausible().iter().map(|(name, _)| *name) {
                for value in ["delete", "merge", "replace", "insert", "send", "restore"] {
                    // Each field once as the one that says what to do.
                    let mut fields = plausible();
                    fields.insert(0, (field, value));
                    let response = page.post(&route, &fields).await;
                    assert!(response.status < 500, "{route}: {response:?}");
                    refused += usize::from(response.status == 403);
                    if response.status != 403 {
                        // It is a form that does not change tables, whatever its fields are.
                        break;
                    }
                }
            }
        }
        println!("{words:?}: {refused} forms were refused");
        assert!(refused > 0);
        // Nothing is staged that a later start could send, either.
        let review = page.get("/review").await;
        assert!(!review.body.contains("forged"), "{}", review.body);
        assert_eq!(contents(&service).await, before, "{words:?}");
    }
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_every_page_changes_no_table() {
    let (server, service, account) = server().await;
    hostile(&service).await;
    fill(&service, "People", 30).await;
    let before = contents(&service).await;
    let page = Page::open(&[], &account).await;
    let found = crawl(&page, 400).await;
    assert!(found.len() > 20, "{found:?}");
    for target in &found {
        let request = page.get_of(target, &page.cookie_line());
        let request = request.replacen("GET", "HEAD", 1);
        let response = page.try_send(request.as_bytes()).await.unwrap();
        assert!(response.status < 500, "{target}: {response:?}");
    }
    assert_eq!(contents(&service).await, before);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_columns_are_a_page() {
    let (_server, service, account) = server().await;
    let table = service.table("Wide");
    table.create_table().await.unwrap();
    let entities = (0..50_u32).map(|row| {
        let entity = DynamicEntity::new("wide", format!("{row:03}"));
        (0..200).fold(entity, |entity, column| {
            entity.with(&*format!("Column{:05}", row * 200 + column), MARKUP)
        })
    });
    let report = table.bulk().upsert_replace(futures::stream::iter(entities));
    assert!(report.await.unwrap().is_success());
    let page = Page::open(&[], &account).await;
    let began = Instant::now();
    for target in [
        "/t/Wide?pk=wide",
        "/t/Wide?pk=wide&columns=Column00000",
        "/t/Wide/schema",
    ] {
        let response = page.get(target).await;
        assert!(response.status == 200, "{target}: {}", response.head);
        let bytes = response.body.len();
        println!("{target}: {bytes} bytes, {:?}", began.elapsed());
        assert!(bytes < 8 << 20, "{target}: {bytes} bytes");
    }
    let memory = page.memory().unwrap_or_default();
    assert!(memory < 400 << 20, "{memory} bytes");
}

/// A service that sends these bytes for each request, and then these again and again.
async fn sending(head: &'static [u8], again: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = vec![0; 65_536];
                let _ = stream.read(&mut request).await;
                if stream.write_all(head).await.is_err() {
                    return;
                }
                while !again.is_empty() && stream.write_all(again).await.is_ok() {}
            });
        }
    });
    format!(
        "AccountName=acct;AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0;TableEndpoint=http://{address}/acct"
    )
}

/// A chunk of 64 KiB.
fn chunk(byte: u8) -> &'static [u8] {
    let chunk = [&b"10000\r\n"[..], &vec![byte; 65_536], b"\r\n"].concat();
    Box::leak(chunk.into_boxed_slice())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_service_ends_in_a_message_and_the_page_goes_on() {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let heads =
        |rest: &[u8]| -> &'static [u8] { Box::leak([OK, rest].concat().into_boxed_slice()) };
    let endless = b"Transfer-Encoding: chunked\r\n\r\n";
    let markup = br"<img src=x onerror=alert(1)><script>alert(1)</script>";
    let error = br#"{"odata.error":{"code":"<img src=x onerror=alert(1)>","message":{"value":"\u202e<script>alert(1)</script>"}}}"#;
    let refused = format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nx-ms-request-id: <svg onload=alert(1)>\r\nContent-Length: {}\r\n\r\n",
        error.len()
    );
    let refused = [refused.as_bytes(), error].concat();
    for (name, head, again) in [
        ("spaces without end", heads(endless), chunk(b' ')),
        ("a text without end", heads(&[&endless[..], b"b\r\n{\"value\":[\"\r\n"].concat()), chunk(b'a')),
        ("depth without end", heads(endless), chunk(b'[')),
        ("a length of petabytes", heads(b"Content-Length: 9007199254740991\r\n\r\n"), chunk(b'{')),
        ("no JSON", heads(&[&b"Content-Length: 53\r\n\r\n"[..], markup].concat()), b""),
        ("an empty body", heads(b"Content-Length: 0\r\n\r\n"), b""),
        ("a body that ends early", heads(b"Content-Length: 1000\r\n\r\n{\"value\":["), b""),
        ("no HTTP", markup, b""),
        ("nothing", b"", b""),
        ("an error of markup", Box::leak(refused.into_boxed_slice()), b""),
        ("a redirect", b"HTTP/1.1 302 Found\r\nLocation: http://attacker.example/\r\nContent-Length: 0\r\n\r\n", b""),
    ] {
        let account = sending(head, again).await;
        let page = Page::open(&[], &account).await;
        let style = page.stylesheet().await;
        let began = Instant::now();
        for target in ["/t/People?pk=a", "/t/People/e?pk=a&rk=b", "/"] {
            let response = page.get(target).await;
            assert!(is_problem(&response), "{name}, {target}: {response:?}");
            assert!(!response.body.contains("attacker.example"), "{name}: {response:?}");
        }
        println!("{name}: {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(45), "{name}");
        let memory = page.memory().unwrap_or_default();
        assert!(memory < 400 << 20, "{name}: {memory} bytes");
        assert_eq!(page.get(&style).await.status, 200, "{name}");
        no_secrets(&page, &["c2VjcmV0c2VjcmV0c2VjcmV0"]);
    }
}

/// None of these texts, and no secret of the page itself, is where it could be read.
fn no_secrets(page: &Page, secrets: &[&str]) {
    let log = page.log();
    let files = page.files();
    let seen = page.seen();
    for secret in secrets.iter().copied().chain([&*page.opening]) {
        assert!(
            !seen.contains(secret),
            "a response has it: {}",
            around(&seen, secret)
        );
        assert!(
            !log.contains(secret),
            "the log has it: {}",
            around(&log, secret)
        );
        for (path, text) in &files {
            assert!(
                !text.contains(secret),
                "{} has it: {}",
                path.display(),
                around(text, secret)
            );
        }
    }
    for secret in [&page.cookie, &page.token] {
        assert!(!log.contains(&**secret), "{}", around(&log, secret));
        for (path, text) in &files {
            assert!(!text.contains(&**secret), "{}", path.display());
        }
    }
    // The cookie is where it is set, and nowhere else.
    assert_eq!(seen.matches(&*page.cookie).count(), 1);
    // The token of the forms is in no URL.
    assert!(!seen.contains(&format!("token={}", page.token)));
}

fn around(text: &str, secret: &str) -> String {
    let (before, after) = text.split_once(secret).unwrap();
    let before: String = before.chars().rev().take(80).collect();
    let before: String = before.chars().rev().collect();
    format!("{before}***{}", after.chars().take(80).collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_the_page_or_of_its_log_has_a_secret() {
    let (_server, service, account) = server().await;
    hostile(&service).await;
    let key = account
        .split(';')
        .find_map(|it| it.strip_prefix("AccountKey="));
    // Whatever escapes a text has, its longest run of letters and digits stays.
    let run = |text: &str| {
        let runs = text.split(|it: char| !it.is_ascii_alphanumeric());
        runs.max_by_key(|it| it.len()).unwrap().to_owned()
    };
    let key = run(key.unwrap());
    let sas = service.table("Odd").sas();
    let sas = sas.allow(tablesdk::sas::Permissions::READ);
    let url = sas.expires_in(Duration::from_secs(3600)).sign().unwrap();
    let url = url.expose().to_string();
    let (_, signature) = url.split_once("sig=").unwrap();
    let signature = run(signature.split('&').next().unwrap());
    assert!(key.len() > 8 && signature.len() > 4);

    let wrong = account.replace(&key, &"A".repeat(key.len()));
    let nowhere =
        "AccountName=a;AccountKey=c2VjcmV0c2VjcmV0c2VjcmV0;TableEndpoint=http://127.0.0.1:1/a";
    for (words, variables) in [
        (&[][..], [(STRING, &*account)]),
        // The signature allows reads of one table, so that the others are errors.
        (&["--sas-url", "env:URL"], [("URL", &*url)]),
        (&[], [(STRING, &*wrong)]),
        (&[], [(STRING, nowhere)]),
    ] {
        let page = Page::open_with(words, &variables).await;
        page.get("/t/Odd?pk=same").await;
        crawl(&page, 100).await;
        for route in form_routes() {
            page.post(&route, &plausible()).await;
            page.post(&route, &[]).await;
        }
        crawl(&page, 100).await;
        let secrets = [
            &*key,
            &*signature,
            "c2VjcmV0c2VjcmV0c2VjcmV0",
            "AAAAAAAAAAAAAAAAAAAA",
        ];
        no_secrets(&page, &secrets);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_file_that_opens_the_browser_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_server, _, account) = server().await;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_owned();
    // A browser that keeps what it was started with. The last line makes it known to be complete.
    let browser = path.join("xdg-open");
    let script = "#!/bin/sh\nexec >\"$HOME/part\"\nstat -c %a \"$1\"\ncat \"$1\"\necho\necho \"$@\"\nmv \"$HOME/part\" \"$HOME/opened\"\n";
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:/usr/bin:/bin", path.display());
    let page = Page::start_in(home, &[], &[(STRING, &account), ("PATH", &search)]);
    let opened = wait_for(&path.join("opened")).await;
    let (mode, rest) = opened.split_once('\n').unwrap();
    let (file, arguments) = rest.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(mode, "600");
    assert!(file.contains(&page.opening), "{file}");
    assert!(!arguments.contains(&page.opening), "{arguments}");
    let started = fs::read(format!("/proc/{}/cmdline", page.id())).unwrap();
    assert!(!String::from_utf8_lossy(&started).contains(&page.opening));
    assert!(!page.log().contains(&page.opening));
}

/// The text of a file, once it is there.
#[cfg(target_os = "linux")]
async fn wait_for(path: &Path) -> String {
    let began = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(path) {
            return text;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{}",
            path.display()
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_end_is_refused() {
    let (_server, _, account) = server().await;
    let page = Page::open(&[], &account).await;
    for route in form_routes() {
        let lines = page.form_lines();
        let big = page.form(&[("value", &"a".repeat(17 << 20))]);
        let response = page
            .try_send(page.post_of(&route, &lines, &big).as_bytes())
            .await;
        // It may close the connection before all was sent.
        assert!(response.is_none_or(|it| it.is_refused()), "{route}");
        let many = page.form(&vec![("key", "a"); 200_000]);
        let response = page
            .try_send(page.post_of(&route, &lines, &many).as_bytes())
            .await;
        assert!(response.is_none_or(|it| it.status < 500), "{route}");
    }
    let memory = page.memory().unwrap_or_default();
    assert!(memory < 400 << 20, "{memory} bytes");
    assert_eq!(page.get("/").await.status, 200);
}

/// A server that looks at one entity for each request, with a table of 30 entities.
async fn slow() -> (TableServer, TableServiceClient, String) {
    let server = TableServer::builder().max_query_time(Duration::ZERO);
    let server = server.start().await.unwrap();
    let account = server.connection_string();
    let service = TableServiceClient::from_connection_string(&account).unwrap();
    fill(&service, "People", 30).await;
    (server, service, account)
}

#[tokio::test]
async fn a_scan_with_a_few_requests_takes_no_more() {
    let (server, _service, account) = slow().await;
    let page = Page::open(&[], &account).await;
    let journal = server.journal();
    let queries = || journal.requests().op(Op::QueryEntities).count();
    for (path, requests) in [
        ("/t/People?filter=Age+eq+1&scan=some", 5),
        ("/t/People?pk=p&filter=Age+eq+1", 5),
        ("/t/People?filter=Age+eq+1&scan=all", 30),
    ] {
        journal.clear();
        let shown = page.get(path).await;
        assert_eq!(queries(), requests, "{path}");
        let is_open = shown.body.contains("Look further");
        assert_eq!(is_open, requests == 5, "{}", shown.body);
    }
}
