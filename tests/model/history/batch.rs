//! Entity group transactions: each is framed by hand, in one of the ways of the known clients, and
//! its response is parsed by hand.

use super::{History, path};
use crate::oracle::{BATCH_ROWS, Key, Write};
use crate::server::{Ask, Response, json};

impl History {
    pub(super) async fn batch(&mut self) {
        let table = self.table();
        let partition_key = self.key().texts().0;
        let changes = self.changes(table, &partition_key);
        let asks: Vec<Ask> = changes
            .iter()
            .map(|(table, key, write)| self.ask(table, key, write))
            .collect();
        let line_end = if self.rng.u8(..8) == 0 { "\n" } else { "\r\n" };
        let account = self.server.account();
        let root = match self.rng.u8(..3) {
            0 => String::new(),
            1 => format!("/{account}"),
            _ => format!("https://{account}.example:1/{account}"),
        };
        let mut text = format!(
            "--batch_1{line_end}Content-Type: multipart/mixed; boundary=changes_1{line_end}{line_end}"
        );
        for ask in &asks {
            text += &part("changes_1", ask, &root, line_end);
        }
        text += &format!("--changes_1--{line_end}{line_end}--batch_1--{line_end}");
        let parts = self.submit(text).await;

        let borrowed: Vec<_> = changes.iter().map(|(t, k, w)| (*t, k, w)).collect();
        match self.oracle.decide_batch(&borrowed) {
            Err((index, (status, code))) => {
                let [response] = &*parts else {
                    panic!("{} parts for one refusal: {changes:?}", parts.len());
                };
                assert_eq!(response.refusal(), Some((status, code)), "{changes:?}");
                let message = response.body["odata.error"]["message"]["value"].as_str();
                let message = message.unwrap();
                // Of the only change, an error about its entity has none.
                let is_about_entity = matches!(status, 404 | 412) && code != "TableNotFound";
                let has_index = changes.len() > 1 || !is_about_entity;
                let is_indexed = message.starts_with(&format!("{index}:"));
                assert_eq!(is_indexed, has_index, "{message}");
            }
            Ok(outcomes) => {
                assert_eq!(parts.len(), changes.len());
                let last = self.last_write;
                for ((response, properties), change) in parts.iter().zip(outcomes).zip(borrowed) {
                    self.written(response, change, properties, last);
                }
            }
        }
    }

    /// Changes of one partition, most of which can be applied together.
    fn changes(
        &mut self,
        table: &'static str,
        partition_key: &str,
    ) -> Vec<(&'static str, Key, Write)> {
        let count = self.rng.usize(1..7);
        let mut rows: Vec<&str> = BATCH_ROWS.to_vec();
        self.rng.shuffle(&mut rows);
        let mut changes = Vec::new();
        for index in 0..count {
            let mut table = table;
            let mut key = Key::new(partition_key, rows[index]);
            match self.rng.u8(..60) {
                0 => table = self.table(),
                1 => key = self.key(),
                2 => key = Key::new(partition_key, rows[self.rng.usize(..count)]),
                _ => {}
            }
            // Mostly valid changes, so that long batches succeed.
            let mut write = self.random_write(table, &key);
            for _ in 0..6 {
                if self.oracle.decide(table, &key, &write).is_ok() {
                    break;
                }
                write = self.random_write(table, &key);
            }
            changes.push((table, key, write));
        }
        changes
    }

    pub(super) async fn batch_of_a_query(&mut self) {
        let (table, key) = (self.table(), self.key());
        let ask = Ask::new("GET", path(table, &key));
        let text = part("batch_1", &ask, "", "\r\n") + "--batch_1--\r\n";
        let parts = self.submit(text).await;
        let [response] = &*parts else {
            panic!("{} parts for one query", parts.len());
        };
        self.assert_found(response, table, &key);
    }

    /// Sends a batch, and returns the response to each operation in it.
    async fn submit(&self, text: String) -> Vec<Response> {
        let ask =
            Ask::new("POST", "/$batch".to_owned()).body("multipart/mixed; boundary=batch_1", text);
        let (status, _, body) = self.server.send_as_is(&ask).await;
        let body = String::from_utf8(body.into()).unwrap();
        assert_eq!(status, 202, "{body}");
        let messages = body.split("\r\n\r\nHTTP/1.1 ").skip(1);
        messages.map(read_part).collect()
    }
}

/// A part of a batch: the request as text.
fn part(boundary: &str, ask: &Ask, root: &str, line_end: &str) -> String {
    let mut lines = vec![
        format!("--{boundary}"),
        "Content-Type: application/http".to_owned(),
        "Content-Transfer-Encoding: binary".to_owned(),
        String::new(),
        format!("{} {root}{} HTTP/1.1", ask.method, ask.path),
        "Accept: application/json;odata=minimalmetadata".to_owned(),
    ];
    let headers = ask.headers.iter();
    lines.extend(headers.map(|(name, value)| format!("{name}: {value}")));
    let mut content = "";
    if let Some((content_type, body)) = &ask.body {
        lines.push(format!("Content-Type: {content_type}"));
        content = body;
    }
    lines.extend([String::new(), content.to_owned(), String::new()]);
    lines.join(line_end)
}

/// A response as text, from the number of its status on.
fn read_part(text: &str) -> Response {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').next().unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse().unwrap(), value.parse().unwrap())
    });
    let body = body.split("\r\n").next().unwrap();
    let body = if body.starts_with("--") { "" } else { body };
    Response {
        status: status.parse().unwrap(),
        headers: headers.collect(),
        body: json(body.as_bytes()),
    }
}
