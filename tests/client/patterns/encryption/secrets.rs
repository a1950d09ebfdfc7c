//! Finds a secret in a text, in any of the forms in which a program may write it.

use std::collections::HashSet;

use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac};
use sha2::Sha256;

/// Secrets, and the texts that would show a part of one.
#[derive(Default)]
pub(crate) struct Secrets(Vec<(String, String)>);

/// A part of this length counts as shown, wherever it begins.
const PART: usize = 16;
const START: usize = 6;

impl Secrets {
    /// A text that occurs nowhere else.
    pub(crate) fn text(&mut self, text: &str) {
        self.add(text, text.to_owned());
        self.bytes(text, text.as_bytes());
    }

    /// Bytes: a key, or what is encrypted.
    pub(crate) fn bytes(&mut self, name: &str, bytes: &[u8]) {
        // Each part of `PART` bytes contains one of these whole.
        for part in bytes.chunks_exact(bytes.len().min(PART / 2)) {
            let list = |form: &dyn Fn(u8) -> String| {
                let numbers: Vec<_> = part.iter().map(|byte| form(*byte)).collect();
                numbers.join(",")
            };
            let joined = |form: &dyn Fn(u8) -> String| {
                part.iter().map(|byte| form(*byte)).collect::<String>()
            };
            for shown in [
                list(&|byte| byte.to_string()),
                list(&|byte| format!("{byte:x}")),
                list(&|byte| format!("0x{byte:02x}")),
                joined(&|byte| format!("{byte:02x}")),
                joined(&|byte| format!("{byte:02X}")),
                joined(&|byte| format!("%{byte:02X}")),
                part.escape_ascii().to_string(),
            ] {
                self.add(name, shown);
            }
            if let Ok(text) = str::from_utf8(part) {
                self.add(name, text.to_owned());
            }
        }
        // Base64 depends on how many bytes are before the secret.
        for skipped in 0..3.min(bytes.len()) {
            let whole = &bytes[skipped..];
            let whole = &whole[..whole.len() / 3 * 3];
            for engine in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
                let encoded = engine.encode(whole);
                let part = encoded.len().clamp(1, 8);
                for part in encoded.as_bytes().chunks_exact(part) {
                    self.add(name, String::from_utf8_lossy(part).into_owned());
                }
            }
        }
    }

    /// A key, and those that are derived from it.
    pub(crate) fn key(&mut self, name: &str, secret: &[u8; 32], cells: &[[&str; 4]]) {
        self.bytes(name, secret);
        for label in ["tablesdk.eq.1", "tablesdk.wrap.1"] {
            self.bytes(label, &derived(secret, label.as_bytes()));
        }
        for cell in cells {
            let mut info = b"tablesdk.enc.1".to_vec();
            for text in cell {
                info.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
                info.extend(text.as_bytes());
            }
            self.bytes("the key of a cell", &derived(secret, &info));
        }
    }

    fn add(&mut self, name: &str, shown: String) {
        // A shorter one may occur by chance.
        if shown.len() >= START {
            self.0.push((name.to_owned(), shown));
        }
    }

    /// The first secret of which the text shows a part.
    pub(crate) fn found_in(&self, text: &str) -> Option<String> {
        // `Debug` may break a list into lines.
        let joined: String = text.chars().filter(|char| !char.is_whitespace()).collect();
        [text, &joined].into_iter().find_map(|text| {
            // Few secrets need a search.
            let starts: HashSet<_> = text.as_bytes().windows(START).collect();
            let mut found = self.0.iter().filter(|(_, shown)| {
                starts.contains(&shown.as_bytes()[..START]) && text.contains(shown)
            });
            found
                .next()
                .map(|(name, shown)| format!("{name}, as {shown}"))
        })
    }
}

/// HKDF with SHA-256 for one block, without salt.
fn derived(secret: &[u8], info: &[u8]) -> [u8; 32] {
    let mac = |key: &[u8], parts: &[&[u8]]| -> [u8; 32] {
        let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        let mac = parts.iter().fold(mac, Mac::chain_update);
        mac.finalize().into_bytes().into()
    };
    mac(&mac(&[0; 32], &[secret]), &[info, &[1]])
}

#[test]
fn a_secret_is_found_in_each_form() {
    let key: [u8; 32] = std::array::from_fn(|index| u8::try_from(index * 37 % 251).unwrap());
    let mut secrets = Secrets::default();
    secrets.key("key", &key, &[["t", "p", "r", "n"]]);
    secrets.text("Ada Lovelace");
    let derived_key = derived(&key, b"tablesdk.eq.1");
    for shown in [
        format!("{key:?}"),
        format!("{key:#?}"),
        format!("{:02x?}", &key[5..20]),
        format!("{}", key[3..19].escape_ascii()),
        format!("{derived_key:?}"),
        BASE64_STANDARD_NO_PAD.encode(key),
        BASE64_URL_SAFE_NO_PAD.encode([b"ab", &key[..]].concat()),
        BASE64_STANDARD_NO_PAD.encode("<Ada Lovelace>"),
        "name eq 'Ada Lovelace'".to_owned(),
        "X'416461204c6f76656c616365'".to_owned(),
        format!("{:?}", b"Ada Lovelace".to_vec()),
    ] {
        assert!(secrets.found_in(&shown).is_some(), "{shown}");
    }
    assert_eq!(secrets.found_in("Ada, and [1, 2, 3]"), None);
}
