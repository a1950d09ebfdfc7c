//! One encrypted value: its bytes, and what they are bound to. This module knows neither entities
//! nor where keys come from.
//!
//! ```text
//! envelope    = 01 ‖ 01 ‖ key id (16) ‖ nonce (12) ‖ AES-256-GCM(cell key, nonce, type ‖ canonical value) ‖ tag (16)
//! cell        = lp(table in lower case) ‖ lp(partition key) ‖ lp(row key) ‖ lp(property);  lp(x) = length as u32, big endian ‖ x
//! cell key    = HKDF-SHA-256(data key, no salt, "tablesdk.enc.1" ‖ cell)
//! aad         = 01 ‖ 01 ‖ key id ‖ cell
//! lookup key  = HKDF-SHA-256(data key, no salt, "tablesdk.eq.1")
//! lookup      = HMAC-SHA-256(lookup key, lp(table in lower case) ‖ lp(property) ‖ type ‖ canonical value)
//! ```
//!
//! The guide `stored_forms` describes the same for other programs.

use std::fmt;
use std::sync::Arc;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use tablesdk_protocol::limits::BINARY_BYTES_MAX;
use tablesdk_protocol::{Guid, Timestamp, Value, ValueRef};
use zeroize::Zeroizing;

/// Where a value is stored, which its envelope is bound to.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    /// In lower case: the service does not distinguish the cases of table names.
    pub(super) table: &'a str,
    pub(super) partition_key: &'a str,
    pub(super) row_key: &'a str,
    pub(super) property: &'a str,
}

impl Cell<'_> {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in [self.table, self.partition_key, self.row_key, self.property] {
            push_lp(&mut bytes, text);
        }
        bytes
    }
}

/// The length before the text, so that no two lists of texts are the same bytes.
fn push_lp(bytes: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// A key that encrypts values, with the id that is in their envelopes. `Debug` shows the id alone.
#[derive(Clone)]
pub(crate) struct DataKey {
    pub(crate) id: Guid,
    /// The name of a key that has one.
    name: Option<Arc<str>>,
    secret: Arc<Secret>,
}

/// 32 bytes that are overwritten when they are dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

impl DataKey {
    pub(crate) fn new(id: Guid, secret: Secret) -> Self {
        Self {
            id,
            name: None,
            secret: Arc::new(secret),
        }
    }

    /// A key with a name, which its id is derived from.
    pub(super) fn named(name: &Arc<str>, secret: Arc<Secret>) -> Self {
        let hash = Sha256::new()
            .chain_update(b"tablesdk.key.1")
            .chain_update(name.as_bytes())
            .finalize();
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(hash) {
            *to = from;
        }
        Self {
            id: Guid::from_bytes(id),
            name: Some(Arc::clone(name)),
            secret,
        }
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataKey({self})")
    }
}

impl fmt::Display for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => fmt::Debug::fmt(name, f),
            None => self.id.fmt(f),
        }
    }
}

/// Encrypts a value for its cell.
pub(super) fn encrypt(
    key: &DataKey,
    cell: Cell<'_>,
    value: &ValueRef<'_>,
) -> Result<Vec<u8>, EncryptionProblem> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).expect("the operating system gives random bytes");
    encrypt_with(key, cell, value, nonce)
}

fn encrypt_with(
    key: &DataKey,
    cell: Cell<'_>,
    value: &ValueRef<'_>,
    nonce: [u8; NONCE_BYTES],
) -> Result<Vec<u8>, EncryptionProblem> {
    let plain = canonical(value);
    let bytes = plain.len() - 1;
    if bytes > VALUE_BYTES_MAX {
        return Err(EncryptionProblem::TooLarge { bytes });
    }
    let cell = cell.to_bytes();
    let mut envelope = vec![VERSION, ALGORITHM];
    envelope.extend_from_slice(&key.id.to_bytes());
    let aad = [&*envelope, &cell].concat();
    let payload = Payload {
        msg: &plain,
        aad: &aad,
    };
    let encrypted = cipher(key, &cell).encrypt(&nonce.into(), payload);
    envelope.extend_from_slice(&nonce);
    envelope.extend_from_slice(&encrypted.expect("the value is far shorter than GCM allows"));
    Ok(envelope)
}

/// The id of the key of an envelope, if the bytes are one of this form.
pub(super) fn key_id(envelope: &[u8]) -> Result<Guid, EncryptionProblem> {
    match envelope {
        [VERSION, ALGORITHM, rest @ ..] if envelope.len() > OVERHEAD => {
            let id = rest.first_chunk().ok_or(EncryptionProblem::Malformed)?;
            Ok(Guid::from_bytes(*id))
        }
        _ => Err(EncryptionProblem::Malformed),
    }
}

/// Decrypts the value of a cell with the key of its envelope.
pub(super) fn decrypt(
    key: &DataKey,
    cell: Cell<'_>,
    envelope: &[u8],
) -> Result<Value, EncryptionProblem> {
    let undecryptable = || EncryptionProblem::Undecryptable {
        key: key.to_string(),
    };
    let (header, rest) = envelope
        .split_at_checked(HEADER_BYTES)
        .ok_or(EncryptionProblem::Malformed)?;
    let (nonce, encrypted) = rest
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or(EncryptionProblem::Malformed)?;
    let cell = cell.to_bytes();
    let aad = [header, &cell].concat();
    let payload = Payload {
        msg: encrypted,
        aad: &aad,
    };
    let plain = cipher(key, &cell).decrypt(&(*nonce).into(), payload);
    let plain = Zeroizing::new(plain.map_err(|_| undecryptable())?);
    parse(&plain).ok_or_else(undecryptable)
}

/// The lookup of a value, which is stored beside its envelope, so that the service can find equal
/// values.
pub(super) fn lookup(
    key: &DataKey,
    table: &str,
    property: &str,
    value: &ValueRef<'_>,
) -> [u8; LOOKUP_BYTES] {
    let mac = lookup_mac(key, table, property, value);
    mac.finalize().into_bytes().into()
}

/// Returns true if the bytes are the lookup of that value. The time does not depend on where they
/// differ.
pub(super) fn is_lookup(
    key: &DataKey,
    table: &str,
    property: &str,
    value: &ValueRef<'_>,
    bytes: &[u8],
) -> bool {
    let mac = lookup_mac(key, table, property, value);
    mac.verify_slice(bytes).is_ok()
}

fn lookup_mac(key: &DataKey, table: &str, property: &str, value: &ValueRef<'_>) -> Hmac<Sha256> {
    let lookup_key = derive(key.secret(), &[b"tablesdk.eq.1"]);
    let mut input = Vec::new();
    push_lp(&mut input, table);
    push_lp(&mut input, property);
    // Equal numbers have one form.
    let value = match value {
        ValueRef::Double(value) if *value == 0.0 => &ValueRef::Double(0.0),
        ValueRef::Double(value) if value.is_nan() => &ValueRef::Double(f64::NAN),
        value => value,
    };
    let mac = Hmac::<Sha256>::new_from_slice(&*lookup_key);
    let mac = mac.expect("HMAC takes a key of any length");
    mac.chain_update(input).chain_update(&*canonical(value))
}

fn cipher(key: &DataKey, cell: &[u8]) -> Aes256Gcm {
    let cell_key = derive(key.secret(), &[b"tablesdk.enc.1", cell]);
    Aes256Gcm::new((&*cell_key).into())
}

pub(super) fn derive(secret: &[u8; 32], info: &[&[u8]]) -> Secret {
    let mut derived = Secret::default();
    let expanded = Hkdf::<Sha256>::new(None, secret).expand_multi_info(info, &mut *derived);
    expanded.expect("HKDF gives 32 bytes");
    derived
}

/// The proof that a content key belongs to that id: only a program with the key can make it.
pub(super) fn proof(key: &Secret, id: Guid) -> Secret {
    derive(key, &[b"tablesdk.key-id.1", &id.to_bytes()])
}

/// The type and the bytes of a value.
fn canonical(value: &ValueRef<'_>) -> Zeroizing<Vec<u8>> {
    let of = |edm_type: u8, bytes: &[u8]| {
        let mut canonical = Zeroizing::new(Vec::with_capacity(1 + bytes.len()));
        canonical.push(edm_type);
        canonical.extend_from_slice(bytes);
        canonical
    };
    match value {
        ValueRef::String(text) => of(1, text.as_bytes()),
        ValueRef::Binary(bytes) => of(2, bytes),
        ValueRef::Boolean(value) => of(3, &[u8::from(*value)]),
        ValueRef::DateTime(value) => of(4, &value.unix_ticks().to_be_bytes()),
        ValueRef::Double(value) => of(5, &value.to_bits().to_be_bytes()),
        ValueRef::Guid(value) => of(6, &value.to_bytes()),
        ValueRef::Int32(value) => of(7, &value.to_be_bytes()),
        ValueRef::Int64(value) => of(8, &value.to_be_bytes()),
    }
}

fn parse(plain: &[u8]) -> Option<Value> {
    let (edm_type, bytes) = plain.split_first()?;
    Some(match edm_type {
        1 => Value::String(std::str::from_utf8(bytes).ok()?.to_owned()),
        2 => Value::Binary(bytes.to_vec()),
        3 => Value::Boolean(match bytes {
            [0] => false,
            [1] => true,
            _ => return None,
        }),
        4 => {
            let ticks = i64::from_be_bytes(bytes.try_into().ok()?);
            Value::DateTime(Timestamp::from_unix_ticks(ticks).ok()?)
        }
        5 => Value::Double(f64::from_bits(u64::from_be_bytes(bytes.try_into().ok()?))),
        6 => Value::Guid(Guid::from_bytes(bytes.try_into().ok()?)),
        7 => Value::Int32(i32::from_be_bytes(bytes.try_into().ok()?)),
        8 => Value::Int64(i64::from_be_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

/// Why a property cannot be encrypted or decrypted. No message contains a value or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EncryptionProblem {
    #[error(
        "it is not encrypted: a program without the key wrote it, or it was written before its field was encrypted"
    )]
    Plain,
    #[error("it is not an encrypted value of a form that this client knows")]
    Malformed,
    #[error("it was encrypted with the key {id}, which the keyring does not have")]
    UnknownKey { id: Guid },
    #[error(
        "it cannot be decrypted: it was changed, or was written for another entity or property (key {key})"
    )]
    Undecryptable { key: String },
    #[error("the property {lookup:?}, which finds it, is that of another value")]
    OtherLookup { lookup: String },
    #[error("it has {bytes} bytes, and an encrypted property holds at most {VALUE_BYTES_MAX}")]
    TooLarge { bytes: usize },
    /// Everything that can be wrong with an entity of an older SDK: nothing authenticates it, and
    /// an error that said more would tell who writes the table how near a guess is.
    #[error(
        "the entity cannot be read as an older SDK encrypted it: it was changed, or the keyring does not have its key"
    )]
    Older,
    #[error(
        "an older SDK encrypted it: give the keyring the key of that SDK with `also_older_sdks`"
    )]
    OlderIsOff,
    #[error("an older SDK encrypted the entity: read it to decrypt it")]
    OlderIsUnread,
    #[error(
        "an older SDK encrypted it: mark its field `#[table(encrypt)]`, or let the resolver of the keyring return true for it"
    )]
    OlderIsNotMarked,
    #[error("it describes an entity of an older SDK, and such entities are only read")]
    OlderIsReadOnly,
}

const VERSION: u8 = 1;
/// AES-256-GCM.
const ALGORITHM: u8 = 1;
const HEADER_BYTES: usize = 2 + 16;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
pub(super) const LOOKUP_BYTES: usize = 32;
/// The number of bytes of an envelope beside the value and its type.
const OVERHEAD: usize = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;
/// The type takes one byte.
const VALUE_BYTES_MAX: usize = BINARY_BYTES_MAX - OVERHEAD - 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::*;

    fn key() -> DataKey {
        let mut secret = Secret::default();
        secret
            .iter_mut()
            .zip(0..)
            .for_each(|(byte, index)| *byte = index);
        DataKey::named(&Arc::from("2024-01"), Arc::new(secret))
    }

    const CELL: Cell<'static> = Cell {
        table: "company",
        partition_key: "Sales",
        row_key: "empid_000223",
        property: "Email",
    };

    fn values() -> Vec<Value> {
        vec![
            Value::from("ada@contoso.com"),
            Value::from("é😀"),
            Value::Binary(vec![0, 255]),
            Value::Boolean(true),
            Value::DateTime("2024-03-15T10:20:30.1234567Z".parse().unwrap()),
            Value::Double(-1.5),
            Value::Guid("c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap()),
            Value::Int32(-5),
            Value::Int64(3_000_000_000),
        ]
    }

    fn hex(bytes: &[u8]) -> String {
        bytes
            .iter()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
    }

    /// The forms are those of the file, which `tests/foreign/encryption.py` reads with another
    /// library.
    #[test]
    fn forms_are_those_that_other_programs_read() {
        let file: Json = serde_json::from_str(include_str!("vectors.json")).unwrap();
        let vectors = file["values"].as_array().unwrap();
        let values = values();
        assert_eq!(vectors.len(), values.len());
        assert_eq!(file["key_id"], hex(&key().id.to_bytes()));
        for ((value, vector), nonce) in values.iter().zip(vectors).zip(0..) {
            let value = value.as_ref();
            let envelope = encrypt_with(&key(), CELL, &value, [nonce; NONCE_BYTES]).unwrap();
            let lookup = lookup(&key(), CELL.table, CELL.property, &value);
            let found = [hex(&envelope), hex(&lookup)];
            assert_eq!(vector["envelope"], found[0], "{found:?}");
            assert_eq!(vector["lookup"], found[1], "{found:?}");
            assert_eq!(decrypt(&key(), CELL, &envelope).unwrap().as_ref(), value);
        }
    }

    #[test]
    fn equal_numbers_have_one_lookup() {
        let lookup = |value| lookup(&key(), "t", "p", &ValueRef::Double(value));
        assert_eq!(lookup(0.0), lookup(-0.0));
        assert_eq!(lookup(f64::NAN), lookup(-f64::NAN));
        assert_ne!(lookup(1.0), lookup(-1.0));
        // The sign is kept where it is encrypted.
        let envelope = encrypt(&key(), CELL, &ValueRef::Double(-0.0)).unwrap();
        assert_eq!(decrypt(&key(), CELL, &envelope), Ok(Value::Double(-0.0)));
        assert!(
            matches!(decrypt(&key(), CELL, &envelope), Ok(Value::Double(zero)) if zero.is_sign_negative())
        );
    }

    #[test]
    fn cells_with_the_same_characters_differ() {
        let cell = |partition_key, row_key, property| Cell {
            table: "t",
            partition_key,
            row_key,
            property,
        };
        let envelope = encrypt(&key(), cell("ab", "c", "d"), &ValueRef::Int32(1)).unwrap();
        for other in [
            cell("a", "bc", "d"),
            cell("", "abc", "d"),
            cell("ab", "", "cd"),
        ] {
            assert!(decrypt(&key(), other, &envelope).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_other_bytes_are_opened(changed in any::<Vec<u8>>(), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let envelope = encrypt(&key(), CELL, &ValueRef::String("ada@contoso.com".into())).unwrap();
            prop_assert!(decrypt(&key(), CELL, &changed).is_err());
            let mut one = envelope.clone();
            let at = at.index(one.len());
            one[at] ^= 1_u8 << bit;
            prop_assert!(key_id(&one) != key_id(&envelope) || decrypt(&key(), CELL, &one).is_err());
        }
    }
}
