//! Damage to bytes: random faults, and strings of attacks.

use fastrand::Rng;

/// Damages a message in one place: changes, removes, repeats or inserts bytes.
pub(crate) fn garble(rng: &mut Rng, bytes: &mut Vec<u8>, words: &[&str]) {
    let at = rng.usize(..=bytes.len());
    let end = (at + rng.usize(1..16)).min(bytes.len());
    match rng.u8(..6) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(..8),
        2 if at < bytes.len() => bytes[at] = rng.u8(..),
        3 => {
            bytes.drain(at..end);
        }
        4 => {
            let part = bytes[at..end].to_vec();
            let times = if rng.u8(..50) == 0 { 1000 } else { 1 };
            bytes.splice(at..at, part.repeat(times));
        }
        _ => {
            let word = rng.choice(words).copied().unwrap_or_default();
            let times = if rng.u8(..50) == 0 { 500 } else { 1 };
            bytes.splice(at..at, word.repeat(times).into_bytes());
        }
    }
}

/// Damages a message as a whole, so that its lengths and ends may be wrong.
pub(crate) fn garble_message(rng: &mut Rng, bytes: &mut Vec<u8>) {
    match rng.u8(..6) {
        0 => bytes.truncate(rng.usize(..=bytes.len())),
        1 => bytes.extend_from_within(..),
        2 => swap_lines(rng, bytes),
        3 => {
            // The first part of it, then all of it.
            let part = bytes[..rng.usize(..=bytes.len())].to_vec();
            bytes.splice(..0, part);
        }
        _ => {
            for _ in 0..rng.usize(1..4) {
                garble(rng, bytes, MESSAGE_WORDS);
            }
        }
    }
}

fn swap_lines(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (one, other) = (rng.usize(..lines.len()), rng.usize(..lines.len()));
    lines.swap(one, other);
    *bytes = lines.concat();
}

pub(crate) const URL_WORDS: &[&str] = &[
    "%",
    "%00",
    "%0d%0a",
    "%2F",
    "%25",
    "%FF",
    "%u0041",
    "&",
    "'",
    "''",
    "(",
    "((((",
    ")",
    "$batch",
    "$filter=",
    "$filter=a%20eq%20guid'0'",
    "$filter=not%20",
    "$format=atom",
    "$metadata",
    "$select=*",
    "$skip=1",
    "$top=-1",
    "+",
    ",",
    "-secondary",
    "//",
    "/..",
    ";",
    "=",
    "?",
    "NextPartitionKey=1!4!cGs-",
    "NextRowKey=",
    "NextTableName=1!",
    "PartitionKey='",
    "RowKey=1",
    "Tables('",
    "comp=acl",
    "comp=batch",
    "datetime'2024'",
    "restype=service",
    "se=",
    "sig=",
    "timeout=99999999999999999999",
    "x eq 1",
];

pub(crate) const BODY_WORDS: &[&str] = &[
    "\u{0}",
    "\u{feff}",
    "\"",
    "\"\\ud800\"",
    "\"a\":1,",
    "\"a@odata.type\":\"Edm.Binary\",",
    "\"a@odata.type\":\"Edm.DateTime\",\"a\":\"0001-01-01T00:00:00Z\",",
    "\"a@odata.type\":\"Edm.Int64\",",
    "\r\n",
    "\r\n\r\n",
    ",",
    "--",
    "1e999",
    "123456789012345678901234567890",
    ":",
    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
    "<?xml version=\"1.0\"?>",
    "<a>",
    "&b;",
    "HTTP/1.1",
    "MERGE ",
    "NaN",
    "[",
    "\\",
    "]",
    "null",
    "true",
    "{",
    "{\"a\":",
    "}",
];

pub(crate) const HEADER_WORDS: &[&str] = &[
    "",
    " ",
    "\t",
    "\"",
    "*",
    ",",
    "/",
    ";",
    ";odata=",
    "0",
    "-1",
    "2024-01-01",
    "9999-99-99",
    "W/\"datetime'2024-01-01T00%3A00%3A00Z'\"",
    "application/atom+xml",
    "application/json",
    "boundary=",
    "charset=utf-16",
    "fullmetadata",
    "q=0",
    "ä",
];

/// Names of headers that mean something to the server, but for those that frame a message.
pub(crate) const HEADER_NAMES: &[&str] = &[
    "Accept",
    "Accept-Charset",
    "Access-Control-Request-Headers",
    "Access-Control-Request-Method",
    "Content-Encoding",
    "Content-MD5",
    "Content-Type",
    "DataServiceVersion",
    "Date",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "MaxDataServiceVersion",
    "Origin",
    "Prefer",
    "Range",
    "X-HTTP-Method",
    "x-ms-client-request-id",
    "x-ms-version",
    "x-unknown",
];

const MESSAGE_WORDS: &[&str] = &[
    "\r",
    "\n",
    "\r\n",
    "\r\n\r\n",
    " ",
    ":",
    "%",
    "0\r\n\r\n",
    "Authorization: SharedKey a:b\r\n",
    "Content-Length: 4\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Expect: 100-continue\r\n",
    "GET / HTTP/1.1\r\n",
    "HTTP/1.0",
    "HTTP/2.0",
    "Host: h\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "ffffffffffffffffff\r\n",
    "x-ms-date: now\r\n",
];
