//! Signatures, written from the documentation, without code of ours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The signature of a text with a key in base64.
pub(crate) fn signature(key: &str, text: &str) -> String {
    let key = STANDARD.decode(key).unwrap();
    let mut hmac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    hmac.update(text.as_bytes());
    STANDARD.encode(hmac.finalize().into_bytes())
}

/// The part of a URL that both schemes sign: the path as it is on the wire, and the option `comp`.
pub(crate) fn resource(account: &str, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut options = query.split('&');
    let comp = options.find(|option| option.starts_with("comp="));
    let comp = comp.map(|comp| format!("?{comp}")).unwrap_or_default();
    format!("/{account}{path}{comp}")
}

/// Percent-encodes all bytes except unreserved characters.
pub(crate) fn percent(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// An account SAS for the table service, as a query string.
pub(crate) fn account_sas(account: &str, key: &str, fields: &[(&str, &str)]) -> String {
    let field = |name: &str| value(fields, name);
    let text = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
        .map(field)
        .join("\n");
    let mut text = format!("{account}\n{text}\n");
    if field("sv") >= "2020-12-06" {
        text += "\n";
    }
    query(fields, &signature(key, &text))
}

/// A SAS of a table, as a query string.
pub(crate) fn table_sas(account: &str, key: &str, fields: &[(&str, &str)]) -> String {
    let table = format!("/table/{account}/{}", value(fields, "tn").to_lowercase());
    let names = [
        "sp", "st", "se", "tn", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk",
    ];
    let text = names.map(|name| {
        if name == "tn" {
            &*table
        } else {
            value(fields, name)
        }
    });
    query(fields, &signature(key, &text.join("\n")))
}

fn value<'f>(fields: &[(&str, &'f str)], name: &str) -> &'f str {
    let field = fields.iter().find(|(field, _)| *field == name);
    field.map_or("", |(_, value)| value)
}

fn query(fields: &[(&str, &str)], signature: &str) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        text += &format!("{name}={}&", percent(value));
    }
    text + "sig=" + &percent(signature)
}

const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[test]
fn signs_as_the_documentation_says() {
    let date = "Fri, 15 Mar 2024 10:20:30 GMT";
    let account = "devstoreaccount1";
    let lite = |target: &str| {
        let text = format!("{date}\n{}", resource(account, target));
        signature(KEY, &text)
    };
    assert_eq!(
        lite("/devstoreaccount1/Tables?$top=5"),
        "koRgVbalHfgj3fyoKac4jiJR5/8iJvt8uJf4Ghgju5I="
    );
    let full = |verb: &str, content_type: &str, target: &str| {
        let resource = resource(account, target);
        let text = format!("{verb}\n\n{content_type}\n{date}\n{resource}");
        signature(KEY, &text)
    };
    assert_eq!(
        full("GET", "", "/devstoreaccount1/Tables?$top=5"),
        "+vhodiFJ5YQe9hkhXCqRcYMXN1Szm+sYZQV7Knwm4rU="
    );
    let acl = "/devstoreaccount1/people?comp=acl&timeout=30";
    assert_eq!(
        full("PUT", "application/xml", acl),
        "7B2ceUgMRb4cLyvkZC0PcD81J2xdScvzuoVazgoJT6g="
    );
    let until = ("se", "2030-01-01T00:00:00Z");
    let account_fields = [
        ("sv", "2019-02-02"),
        ("ss", "t"),
        ("srt", "sco"),
        ("sp", "rwdlau"),
        until,
    ];
    let encoded = percent("5tI7rv+QAZXnSgCzkMiIaE/jE065jB0BYdM8PMBV6RU=");
    assert!(account_sas(account, KEY, &account_fields).ends_with(&encoded));
    let mut newer = account_fields;
    newer[0] = ("sv", "2020-12-06");
    let encoded = percent("Z8OmtrdVeZexNBUq2eQaofRIYV+GjBNkt8cf2QG1eLI=");
    assert!(account_sas(account, KEY, &newer).ends_with(&encoded));
    let range = [
        ("sv", "2019-02-02"),
        ("tn", "people"),
        ("sp", "rau"),
        until,
        ("spk", "A"),
        ("srk", "0001"),
        ("epk", "M"),
        ("erk", "9999"),
    ];
    let encoded = percent("5UryG4cVc8F1y1d2JmigSDj4DT5PYMP4/20bfiImBcg=");
    assert!(table_sas(account, KEY, &range).ends_with(&encoded));
}
