//! The documented signature vectors, computed by another implementation.

use http::{HeaderMap, HeaderName, Method, Uri};
use serde_json::Value;
use tablesdk_protocol::auth::sas::SignedSas;
use tablesdk_protocol::auth::{
    Scheme, SharedKey, canonicalized_resource, documented_secondary, string_to_sign,
};

const VECTORS: &str = include_str!("../fixtures/auth-vectors.json");
const DELEGATION_VECTORS: &str = include_str!("../fixtures/delegation-vectors.json");

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} in {value}"))
}

/// The account's key, and the vectors of a group.
fn vectors(group: &str, count: usize) -> (SharedKey, Vec<Value>) {
    let mut vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let account = text(&vectors, "account");
    let key = SharedKey::new(account, text(&vectors, "key_base64")).unwrap();
    let Value::Array(group) = vectors[group].take() else {
        panic!("{group} in {vectors}");
    };
    assert_eq!(group.len(), count);
    (key, group)
}

fn check(scheme: Scheme, group: &str) {
    let (key, group) = vectors(group, 20);
    let account = key.account();
    for vector in &group {
        let name = text(vector, "name");
        let method: Method = text(vector, "method").parse().unwrap();
        let uri: Uri = text(vector, "url").parse().unwrap();
        let mut headers = HeaderMap::new();
        for (header, value) in vector["headers"].as_object().unwrap() {
            let header: HeaderName = header.parse().unwrap();
            headers.insert(header, value.as_str().unwrap().parse().unwrap());
        }
        let uri = if name == "stats-secondary-path-style-canonical" {
            documented_secondary(account, &uri).unwrap()
        } else {
            uri
        };
        let resource = canonicalized_resource(account, &uri);
        assert_eq!(resource, text(vector, "canonicalized_resource"), "{name}");
        let string = string_to_sign(scheme, account, &method, &uri, &headers);
        assert_eq!(string, text(vector, "string_to_sign"), "{name}");
        let (word, signed) = text(vector, "authorization").split_once(' ').unwrap();
        let (_, signature) = signed.split_once(':').unwrap();
        assert_eq!(word, scheme.as_str(), "{name}");
        assert_eq!(key.sign(&string).expose(), signature, "{name}");
        assert!(key.sign(&string).matches(signature), "{name}");
        let other = key.sign(&format!("{string} "));
        assert!(!other.matches(signature), "{name}");
    }
}

#[test]
fn shared_key_agrees_with_every_vector() {
    check(Scheme::SharedKey, "shared_key");
}

#[test]
fn shared_key_lite_agrees_with_every_vector() {
    check(Scheme::SharedKeyLite, "shared_key_lite");
}

/// Checks every vector of a group of shared access signatures: read from its query, signed, and
/// printed again.
fn check_sas(group: &str, count: usize) {
    let (key, group) = vectors(group, count);
    let account = key.account();
    let other = SharedKey::new(account, "b3RoZXI=").unwrap();
    for vector in &group {
        let name = text(vector, "name");
        let query = text(vector, "query");
        let parsed = SignedSas::parse(query).unwrap();
        let string = parsed.sas().string_to_sign(account);
        assert_eq!(string, text(vector, "string_to_sign"), "{name}");
        assert!(parsed.is_signed_by(&[other.clone(), key.clone()]), "{name}");
        assert!(!parsed.is_signed_by(std::slice::from_ref(&other)), "{name}");
        assert!(!parsed.is_signed_by(&[]), "{name}");
        let signed = parsed.sas().clone().sign(&key);
        assert_eq!(signed.expose().as_str(), query, "{name}");

        // Whatever else it would grant, it was not signed.
        for (field, value) in vector["fields"].as_object().unwrap() {
            let value = value.as_str().unwrap();
            let without = query.replace(&format!("{field}="), "x=");
            let is_signed = SignedSas::parse(&without)
                .is_ok_and(|sas| sas.is_signed_by(std::slice::from_ref(&key)));
            assert_eq!(is_signed, value.is_empty(), "{name} without {field}");
        }
    }
}

#[test]
fn account_sas_agrees_with_every_vector() {
    check_sas("account_sas", 7);
}

#[test]
fn table_sas_agrees_with_every_vector() {
    check_sas("table_sas", 9);
}

/// The vectors of a program in Python, `tests/fixtures/delegation_vectors.py`: read from their
/// queries, signed, and printed again.
#[test]
fn user_delegation_sas_agrees_with_every_vector() {
    let vectors: Value = serde_json::from_str(DELEGATION_VECTORS).unwrap();
    let account = text(&vectors, "account");
    let key = SharedKey::new(account, text(&vectors, "key_base64")).unwrap();
    let group = vectors["vectors"].as_array().unwrap();
    assert_eq!(group.len(), 9);
    for vector in group {
        let (name, query) = (text(vector, "name"), text(vector, "query"));
        let parsed = SignedSas::parse(query).unwrap();
        let string = parsed.sas().string_to_sign(account);
        assert_eq!(string, text(vector, "string_to_sign"), "{name}");
        assert_eq!(string.split('\n').count(), 19, "{name}");
        assert_eq!(
            key.sign(&string).expose(),
            text(vector, "signature"),
            "{name}"
        );
        assert!(parsed.is_signed_by(std::slice::from_ref(&key)), "{name}");
        let signed = parsed.sas().clone().sign(&key);
        assert_eq!(signed.expose().as_str(), query, "{name}");
        for field in vector["fields"].as_object().unwrap().keys() {
            let without = query.replace(&format!("{field}="), "x=");
            let is_signed = SignedSas::parse(&without)
                .is_ok_and(|sas| sas.is_signed_by(std::slice::from_ref(&key)));
            assert!(!is_signed, "{name} without {field}");
        }
    }
}
