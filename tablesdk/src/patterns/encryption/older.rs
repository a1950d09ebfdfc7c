//! The form in which Microsoft's older SDKs encrypted entities. It is read, and never written. This
//! module knows neither types nor where the keys are.
//!
//! ```text
//! content key = of the entity; wrapped in the JSON of `_ClientEncryptionMetadata1`
//! iv(name)    = SHA-256(ContentEncryptionIV ‖ row key ‖ partition key ‖ name), the first 16 bytes
//! value       = AES-256-CBC(content key, iv(its name), text in UTF-8), PKCS#7; an `Edm.Binary`
//! names       = `_ClientEncryptionMetadata2`: the value of that name with a JSON array of the names
//! ```
//!
//! Java's SDK has the partition key before the row key, and writes the names as Java shows a list.
//!
//! Nothing authenticates a value. So there is one error for all that can be wrong, and it does not
//! say what is.

use std::collections::BTreeSet;

use aes::Aes256;
use aes_kw::KwAes256;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt as _, KeyInit as _, KeyIvInit as _};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tablesdk_protocol::limits::PROPERTIES_MAX;
use tablesdk_protocol::wire::json::{JsonEntity, RawProperty};
use zeroize::Zeroizing;

use super::envelope::Secret;
use super::{ContentKey, WrappedKey};

/// The property with the wrapped key of an entity.
pub(super) const METADATA: &str = "_ClientEncryptionMetadata1";
/// The property with the names of the properties that are encrypted.
pub(super) const NAMES: &str = "_ClientEncryptionMetadata2";

/// The property that shows that an older SDK encrypted the entity. A projection of another one has
/// null.
pub(super) fn metadata<'e, 'a>(entity: &'e JsonEntity<'a>) -> Option<&'e RawProperty<'a>> {
    let metadata = entity.property(METADATA);
    metadata.filter(|property| !property.is_null())
}

/// The form of an entity is none that an older SDK wrote with this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The description of an entity that an older SDK encrypted.
pub(super) struct Metadata {
    pub(super) key: WrappedKey,
    iv: [u8; IV_BYTES],
    by_java: bool,
}

impl Metadata {
    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        if text.len() > METADATA_BYTES_MAX {
            return Err(Unreadable);
        }
        // The parser refuses JSON that is nested too deeply.
        let json: Json = serde_json::from_str(text).map_err(|_| Unreadable)?;
        let text = |path: &str| json.pointer(path).and_then(Json::as_str).ok_or(Unreadable);
        let bytes = |path: &str| BASE64_STANDARD.decode(text(path)?).map_err(|_| Unreadable);
        if text("/EncryptionAgent/Protocol")? != PROTOCOL
            || text("/EncryptionAgent/EncryptionAlgorithm")? != ALGORITHM
        {
            return Err(Unreadable);
        }
        let library = json.pointer("/KeyWrappingMetadata");
        let library = library.filter(|it| !it.is_null());
        let library = library.map(|it| it.get("EncryptionLibrary").and_then(Json::as_str));
        Ok(Self {
            key: WrappedKey {
                key_id: text("/WrappedContentKey/KeyId")?.to_owned(),
                bytes: bytes("/WrappedContentKey/EncryptedKey")?,
                algorithm: Some(text("/WrappedContentKey/Algorithm")?.to_owned()),
            },
            iv: bytes("/ContentEncryptionIV")?
                .try_into()
                .map_err(|_| Unreadable)?,
            // SERVICE: .NET's SDK takes an entity without that part for one of Java's.
            by_java: library.is_none_or(|name| name.is_some_and(|name| name.contains("Java"))),
        })
    }

    pub(super) fn with_key(self, content_key: ContentKey) -> OlderEntity {
        OlderEntity {
            content_key: content_key.0,
            iv: self.iv,
            by_java: self.by_java,
        }
    }
}

/// The key of an entity that an older SDK encrypted.
pub(super) struct OlderEntity {
    content_key: Secret,
    iv: [u8; IV_BYTES],
    by_java: bool,
}

impl OlderEntity {
    /// The names of the properties that are encrypted.
    pub(super) fn names(
        &self,
        keys: (&str, &str),
        encrypted: &[u8],
    ) -> Result<BTreeSet<String>, Unreadable> {
        let list = self.decrypt(keys, NAMES, encrypted)?;
        let names: BTreeSet<String> = if self.by_java {
            list_of_java(&list)?
        } else {
            serde_json::from_slice(&list).map_err(|_| Unreadable)?
        };
        if names.len() > PROPERTIES_MAX {
            return Err(Unreadable);
        }
        Ok(names)
    }

    /// The text of a property.
    pub(super) fn value(
        &self,
        keys: (&str, &str),
        name: &str,
        encrypted: &[u8],
    ) -> Result<String, Unreadable> {
        let text = self.decrypt(keys, name, encrypted)?;
        let text = std::str::from_utf8(&text).map_err(|_| Unreadable)?;
        Ok(text.to_owned())
    }

    fn decrypt(
        &self,
        (partition_key, row_key): (&str, &str),
        name: &str,
        encrypted: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Unreadable> {
        let keys = if self.by_java {
            [partition_key, row_key]
        } else {
            [row_key, partition_key]
        };
        let hash = Sha256::new()
            .chain_update(self.iv)
            .chain_update(keys[0])
            .chain_update(keys[1])
            .chain_update(name)
            .finalize();
        let iv: &[u8; IV_BYTES] = hash.first_chunk().ok_or(Unreadable)?;
        let cipher = Decryptor::<Aes256>::new((&*self.content_key).into(), iv.into());
        let mut plain = Zeroizing::new(encrypted.to_vec());
        let length = cipher.decrypt_padded::<Pkcs7>(&mut plain);
        let length = length.map_err(|_| Unreadable)?.len();
        plain.truncate(length);
        Ok(plain)
    }
}

/// The names in a list as Java shows it: `[First, Second]`.
fn list_of_java(list: &[u8]) -> Result<BTreeSet<String>, Unreadable> {
    let list = std::str::from_utf8(list).map_err(|_| Unreadable)?;
    let list = list
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let names = list.ok_or(Unreadable)?.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

/// Unwraps a content key with a symmetric key (RFC 3394).
pub(super) fn unwrap(secret: &Secret, wrapped: &[u8]) -> Result<ContentKey, Unreadable> {
    let mut key = ContentKey::new([0; 32]);
    let unwrapped = KwAes256::new((&**secret).into()).unwrap_key(wrapped, &mut *key.0);
    match unwrapped {
        Ok(bytes) if bytes.len() == 32 => Ok(key),
        _ => Err(Unreadable),
    }
}

const PROTOCOL: &str = "1.0";
const ALGORITHM: &str = "AES_CBC_256";
const IV_BYTES: usize = 16;
/// A key that an RSA key of 16,384 bits has wrapped takes 2,732 characters.
const METADATA_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cbc::Encryptor;
    use cbc::cipher::BlockModeEncrypt as _;
    use proptest::prelude::*;

    use super::*;

    fn metadata(library: &str) -> String {
        format!(
            r#"{{"WrappedContentKey":{{"KeyId":"key-1","EncryptedKey":"AAAA","Algorithm":"A256KW"}},"EncryptionAgent":{{"Protocol":"1.0","EncryptionAlgorithm":"AES_CBC_256"}},"ContentEncryptionIV":"AAECAwQFBgcICQoLDA0ODw=="{library}}}"#
        )
    }

    fn entity(library: &str) -> OlderEntity {
        let metadata = Metadata::parse(&metadata(library)).unwrap();
        metadata.with_key(ContentKey::new([7; 32]))
    }

    /// A value as an SDK stores it whose initialization vector is made of that text.
    fn encrypted(keys_and_name: &str, plain: &[u8]) -> Vec<u8> {
        let hash = Sha256::new()
            .chain_update(std::array::from_fn::<u8, 16, _>(|index| {
                u8::try_from(index).unwrap()
            }))
            .chain_update(keys_and_name)
            .finalize();
        let iv: [u8; 16] = *hash.first_chunk().unwrap();
        let mut bytes = [plain, &[0; 16]].concat();
        let cipher = Encryptor::<Aes256>::new(&[7; 32].into(), &iv.into());
        cipher
            .encrypt_padded::<Pkcs7>(&mut bytes, plain.len())
            .unwrap()
            .to_vec()
    }

    const JAVA: [&str; 3] = [
        "",
        r#","KeyWrappingMetadata":null"#,
        r#","KeyWrappingMetadata":{"EncryptionLibrary":"Java 4.0.0"}"#,
    ];
    const NET: [&str; 2] = [
        r#","KeyWrappingMetadata":{"EncryptionLibrary":".NET 9.3.2"}"#,
        r#","KeyWrappingMetadata":{}"#,
    ];

    #[test]
    fn javas_sdk_has_the_keys_in_another_order_and_another_list() {
        let keys = ("p", "r");
        for library in JAVA {
            let entity = entity(library);
            let names = encrypted(&format!("pr{NAMES}"), b"[Name, Email]");
            let expected = ["Email", "Name"].map(str::to_owned);
            assert_eq!(entity.names(keys, &names), Ok(BTreeSet::from(expected)));
            let none = encrypted(&format!("pr{NAMES}"), b"[]");
            assert_eq!(entity.names(keys, &none), Ok(BTreeSet::new()));
            let value = encrypted("prName", b"Ada");
            assert_eq!(entity.value(keys, "Name", &value).unwrap(), "Ada");
        }
        for library in NET {
            let entity = entity(library);
            let names = encrypted(&format!("rp{NAMES}"), br#"["Name"]"#);
            assert_eq!(
                entity.names(keys, &names),
                Ok(BTreeSet::from(["Name".to_owned()]))
            );
            let value = encrypted("rpName", b"Ada");
            assert_eq!(entity.value(keys, "Name", &value).unwrap(), "Ada");
        }
    }

    #[test]
    fn metadata_is_bounded() {
        let nested = "[".repeat(10_000);
        let long = metadata(&format!(r#","Other":"{}""#, "x".repeat(METADATA_BYTES_MAX)));
        for text in ["", "null", "{}", "[]", &nested, &long] {
            assert!(Metadata::parse(text).is_err());
        }
        // More names than an entity has properties.
        let names: Vec<_> = (0..=PROPERTIES_MAX)
            .map(|index| index.to_string())
            .collect();
        let names = encrypted(&format!("rp{NAMES}"), &serde_json::to_vec(&names).unwrap());
        assert_eq!(entity(NET[0]).names(("p", "r"), &names), Err(Unreadable));
    }

    #[test]
    fn a_wrapped_key_has_40_bytes() {
        let secret = Secret::default();
        for length in (0..100).filter(|length| *length != 40) {
            assert!(unwrap(&secret, &vec![0; length]).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text: String, bytes: Vec<u8>, at: prop::sample::Index, by in any::<char>()) {
            let _ = Metadata::parse(&text);
            let mut changed: Vec<char> = metadata(NET[0]).chars().collect();
            let at = at.index(changed.len());
            changed[at] = by;
            let _ = Metadata::parse(&changed.into_iter().collect::<String>());
            for library in [JAVA[0], NET[0]] {
                let entity = entity(library);
                let _ = entity.names(("p", "r"), &bytes);
                let _ = entity.value(("p", "r"), "Name", &bytes);
                let plain = encrypted(&format!("rp{NAMES}"), &bytes);
                let _ = entity.names(("p", "r"), &plain);
            }
            let _ = unwrap(&Secret::default(), &bytes);
        }
    }
}
