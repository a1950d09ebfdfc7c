//! `tables explore` as a browser speaks with it, in raw HTTP: the program, its cookie, and each
//! byte that it has shown.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::STRING;

/// More than any response takes that is not hostile.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, with a configuration folder of its own.
pub(crate) struct Page {
    program: Child,
    pub(crate) port: u16,
    /// The token of the URL that was printed.
    pub(crate) opening: String,
    pub(crate) cookie: String,
    /// The field `token` of the forms.
    pub(crate) token: String,
    home: TempDir,
    /// Standard output and standard error.
    log: Arc<Mutex<Vec<u8>>>,
    /// Heads and bodies of all responses.
    seen: Mutex<Vec<u8>>,
}

/// A response as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// The values of the headers with this name, in lower case.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let lines = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value).collect()
    }

    pub(crate) fn is_refused(&self) -> bool {
        (400..500).contains(&self.status)
    }
}

impl Page {
    /// Starts the program with an account of the environment, and opens the page.
    pub(crate) async fn open(words: &[&str], account: &str) -> Self {
        Self::open_with(words, &[(STRING, account)]).await
    }

    /// Starts the program with these variables of the environment, and opens the page.
    pub(crate) async fn open_with(words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut page = Self::start(words, variables);
        let opened = page.send(&page.get_of(&page.opening_path(), "")).await;
        assert!(matches!(opened.status, 200 | 303), "{opened:?}");
        let set = opened.headers("set-cookie").concat();
        let (_, value) = set.split_once('=').unwrap();
        page.cookie = value.split(';').next().unwrap().to_owned();
        // Each page has the token of the forms.
        let home = page.get("/").await;
        assert_eq!(home.status, 200, "{home:?}");
        let token = elements(&home.body).into_iter();
        let mut token = token.filter(|it| it.get("name") == Some("token"));
        let token = token.next().unwrap();
        let token = token.get("value").or_else(|| token.get("content"));
        token.unwrap().clone_into(&mut page.token);
        page
    }

    /// Starts the program with these variables of the environment. It opens no browser.
    pub(crate) fn start(words: &[&str], variables: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self::start_in(home, &[&["--no-open"], words].concat(), variables)
    }

    /// Starts the program, with this folder as the home of the user.
    pub(crate) fn start_in(home: TempDir, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tables"));
        command.args(["explore", "--port", "0"]);
        command.args(words).current_dir(&home).env_clear();
        command.envs(variables.iter().copied());
        command.env("HOME", home.path());
        command.env("XDG_CONFIG_HOME", home.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        keep(program.stderr.take().unwrap(), &log);
        let mut out = BufReader::new(program.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("http://127.0.0.1:");
        let Some((port, opening)) = url.and_then(|url| url.split_once("/open?token=")) else {
            // What it says comes until it ends.
            program.wait().unwrap();
            let log = String::from_utf8_lossy(&log.lock().unwrap()).into_owned();
            panic!("no URL but {line:?}: {log}");
        };
        keep(out, &log);
        Self {
            port: port.parse().unwrap(),
            opening: opening.to_owned(),
            cookie: String::new(),
            token: String::new(),
            program,
            home,
            log,
            seen: Mutex::default(),
        }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn opening_path(&self) -> String {
        format!("/open?token={}", self.opening)
    }

    /// The header with the cookie.
    pub(crate) fn cookie_line(&self) -> String {
        format!("Cookie: tables-{}={}\r\n", self.port, self.cookie)
    }

    /// The text of a read with these lines of headers.
    pub(crate) fn get_of(&self, target: &str, lines: &str) -> String {
        let host = self.host();
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{lines}Connection: close\r\n\r\n")
    }

    /// Reads as the page's own link does.
    pub(crate) async fn get(&self, target: &str) -> Response {
        let lines = format!("Sec-Fetch-Site: same-origin\r\n{}", self.cookie_line());
        self.send(&self.get_of(target, &lines)).await
    }

    /// The text of a form that is sent, with these lines of headers.
    pub(crate) fn post_of(&self, target: &str, lines: &str, body: &str) -> String {
        let (host, length) = (self.host(), body.len());
        format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    /// The headers that a browser sends with a form of the page, and the cookie.
    pub(crate) fn form_lines(&self) -> String {
        format!(
            "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n{FORM}{}",
            self.host(),
            self.cookie_line()
        )
    }

    /// A form's body, with its token.
    pub(crate) fn form(&self, fields: &[(&str, &str)]) -> String {
        let fields = [&[("token", &*self.token)], fields].concat();
        encoded(&fields)
    }

    /// Sends a form as the browser does.
    pub(crate) async fn post(&self, target: &str, fields: &[(&str, &str)]) -> Response {
        let text = self.post_of(target, &self.form_lines(), &self.form(fields));
        self.send(&text).await
    }

    /// Sends a request as it is, and checks of each response what must hold of all of them.
    pub(crate) async fn send(&self, request: &str) -> Response {
        let response = self.try_send(request.as_bytes()).await.unwrap();
        check(&response, request);
        response
    }

    /// Sends bytes as they are; `None` if the response is not one of HTTP.
    pub(crate) async fn try_send(&self, request: &[u8]) -> Option<Response> {
        let all = timeout(PATIENCE, async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
            // The program may refuse a request before all of it is sent.
            let _ = stream.write_all(request).await;
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            all
        });
        let all = all.await.expect("no response in time");
        self.seen.lock().unwrap().extend(&all);
        let text = String::from_utf8(all).expect("a response in UTF-8");
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let is_chunked = head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        let body = if is_chunked {
            joined(body)
        } else {
            body.to_owned()
        };
        Some(Response {
            status,
            body,
            head: head.to_owned(),
        })
    }

    /// The path of the stylesheet, which each page names.
    pub(crate) async fn stylesheet(&self) -> String {
        let page = self.get("/history").await;
        let mut links = elements(&page.body).into_iter();
        let link = links.find(|it| it.name == "link" && it.get("rel") == Some("stylesheet"));
        link.unwrap().get("href").unwrap().to_owned()
    }

    /// The bytes of all responses.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// The output of the program after the URL.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned()
    }

    /// The contents of all files in the configuration folder.
    pub(crate) fn files(&self) -> Vec<(PathBuf, String)> {
        let mut folders = vec![self.home.path().to_owned()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
        files
    }

    /// Presses Ctrl-C. Returns the exit code, and what the program has said.
    #[cfg(unix)]
    pub(crate) fn interrupt(mut self) -> (Option<i32>, String) {
        let id = self.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(sent.success());
        let code = self.program.wait().unwrap().code();
        // Its last words may come after its end.
        while Arc::strong_count(&self.log) > 1 {
            thread::yield_now();
        }
        let log = String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned();
        (code, log)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.program.id()
    }

    /// The memory of the program, where the operating system says it.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.id())).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kilobytes * 1024)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The content type of a form.
pub(crate) const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn keep(mut from: impl Read + Send + 'static, log: &Arc<Mutex<Vec<u8>>>) {
    let log = Arc::clone(log);
    thread::spawn(move || {
        let mut bytes = vec![0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let read = bytes.get(..count).unwrap();
            log.lock().unwrap().extend(read);
        }
    });
}

/// Fields as a form sends them.
pub(crate) fn encoded(fields: &[(&str, &str)]) -> String {
    let fields = fields
        .iter()
        .map(|(name, value)| format!("{}={}", percent(name), percent(value)));
    fields.collect::<Vec<_>>().join("&")
}

/// A text in a URL, with everything escaped that can be.
pub(crate) fn percent(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() {
            all.push(char::from(byte));
        } else {
            write!(all, "%{byte:02X}").unwrap();
        }
        all
    })
}

/// The body of a chunked response.
fn joined(mut chunks: &str) -> String {
    let mut body = Vec::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        let (chunk, rest) = rest.as_bytes().split_at(size);
        body.extend(chunk);
        chunks = std::str::from_utf8(rest).unwrap();
        chunks = chunks.strip_prefix("\r\n").unwrap();
    }
    String::from_utf8(body).unwrap()
}

/// An element of a page: its name, its attributes, and the text up to the next tag.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        attributes.find_map(|(known, value)| (known == name).then_some(&**value))
    }
}

/// The elements of a page of ours, in which `<` and `>` are only those of tags.
pub(crate) fn elements(page: &str) -> Vec<Element> {
    let pieces = page.split('<').skip(1);
    let elements = pieces.map(|piece| {
        let (tag, text) = piece
            .split_once('>')
            .unwrap_or_else(|| panic!("a tag without an end: <{piece:.100}"));
        let (name, rest) = tag
            .split_once(|it: char| it.is_ascii_whitespace())
            .unwrap_or((tag, ""));
        Element {
            name: name.to_owned(),
            attributes: attributes(rest),
            text: unescaped(text),
        }
    });
    elements.collect()
}

fn attributes(mut tag: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    loop {
        tag = tag.trim_start();
        if tag.is_empty() || tag == "/" {
            return all;
        }
        let end = tag.find([' ', '\n', '=']).unwrap_or(tag.len());
        let (name, rest) = tag.split_at(end);
        let quoted = rest.strip_prefix("=\"");
        match quoted.and_then(|rest| rest.split_once('"')) {
            Some((value, rest)) => {
                all.push((name.to_owned(), unescaped(value)));
                tag = rest;
            }
            None => {
                assert!(!rest.starts_with('='), "a value without quotes: {tag:.100}");
                all.push((name.to_owned(), String::new()));
                tag = rest;
            }
        }
    }
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

/// Checks the rules for each response: the headers, that nothing in a page acts, and that no link
/// leaves it.
fn check(response: &Response, request: &str) {
    let about = request.lines().next().unwrap_or_default();
    if response.head.starts_with("HTTP/1.1 400") && response.body.is_empty() {
        // What is not HTTP does not get as far as the page.
        return;
    }
    let is_file = about.starts_with("GET /assets/") && response.status == 200;
    let cache = if is_file {
        "private, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    for (name, value) in [("cache-control", cache)].into_iter().chain(HEADERS) {
        assert_eq!(
            response.headers(name),
            [value],
            "{about}: {}",
            response.head
        );
    }
    assert!(
        response.headers("access-control-allow-origin").is_empty(),
        "{about}"
    );
    let kind = response.headers("content-type").concat();
    if kind.starts_with("text/html") {
        assert_eq!(kind, "text/html; charset=utf-8", "{about}");
        check_elements(&response.body, about);
    }
}

const HEADERS: [(&str, &str); 3] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

/// The elements that a page may have. Each other one would come from a value.
const NAMES: &str = "!DOCTYPE a aside body button caption code col colgroup datalist dd details div dl dt em fieldset footer form g h1 h2 h3 \
    head header hr html img input kbd label legend li line link main meta nav noscript ol optgroup option output p path pattern polyline pre \
    rect script section select small span strong summary svg table tbody td template text textarea tfoot th thead time title tr ul use wbr \
    b br circle defs del dfn ins";

fn check_elements(page: &str, about: &str) {
    let names: Vec<_> = NAMES.split(' ').collect();
    let mut is_edited = false;
    for element in elements(page) {
        let name = element.name.strip_prefix('/').unwrap_or(&element.name);
        assert!(
            names.contains(&name.trim_end_matches('/')),
            "{about}: <{name}> {element:?}"
        );
        for (attribute, value) in &element.attributes {
            assert!(
                attribute
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'-'),
                "{about}: {element:?}"
            );
            let acts = attribute.starts_with("on")
                || matches!(&**attribute, "style" | "srcdoc" | "srcset" | "ping");
            assert!(!acts, "{about}: {element:?}");
            if matches!(&**attribute, "href" | "src" | "action" | "formaction") {
                let stays = value.starts_with('#')
                    || value.starts_with('?')
                    || value.starts_with('/') && !value.starts_with("//");
                assert!(
                    stays && !value.contains('\\'),
                    "{about}: leaves the page: {element:?}"
                );
                assert!(harmless(value), "{about}: {element:?}");
            }
            if matches!(&**attribute, "title" | "aria-label" | "placeholder" | "alt") {
                assert!(harmless(value), "{about}: {element:?}");
            }
        }
        if matches!(&*element.name, "script" | "img") {
            let source = element.get("src").unwrap_or_default();
            assert!(source.starts_with("/assets/"), "{about}: {element:?}");
        }
        if element.name == "script" {
            assert!(element.text.is_empty(), "{about}: {element:?}");
        }
        // The text of a field is the value itself, to be changed.
        is_edited = match &*element.name {
            "textarea" => true,
            "/textarea" => false,
            _ => is_edited,
        };
        assert!(
            is_edited || harmless(&element.text),
            "{about}: {:?}",
            element.text
        );
    }
}

/// Returns true if no character of a text acts where it is shown.
fn harmless(text: &str) -> bool {
    let acts = |it: char| {
        matches!(it, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || it.is_control() && it != '\n'
    };
    !text.contains(acts)
}
