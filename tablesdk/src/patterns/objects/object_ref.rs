//! The property by which an entity names an object.

use std::fmt;

use object_store::path::Path;
use sha2::{Digest as _, Sha256};
use tablesdk_protocol::{EdmType, Guid, Value, ValueRef};

use crate::entity::{PropertyValue, ValueError};

/// A reference to an object: its path, its length and its SHA-256, as one property.
/// [`Objects::put`](super::Objects::put) returns it.
///
/// Only `put` makes a reference, and a read of an entity that has one. So no entity names an object
/// that was not put before.
///
/// It is stored as a string, `employee-photos/GUID?length=3000000&sha256=…`, with 64 hexadecimal
/// digits. [`Display`](fmt::Display) shows that string.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use object_store::memory::InMemory;
/// use tablesdk::objects::Objects;
///
/// let photo = Objects::new(InMemory::new(), "photos").put("jpeg").await?;
/// assert_eq!(photo.size(), 4);
/// assert!(photo.name().starts_with("photos/"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// The prefix, a slash, and the GUID.
    name: String,
    id: Guid,
    size: u64,
    sha256: [u8; 32],
}

impl ObjectRef {
    /// The reference to a new object.
    pub(super) fn new(prefix: &Path, id: Guid, value: &[u8]) -> Self {
        Self {
            name: format!("{prefix}/{id}"),
            id,
            size: value.len() as u64,
            sha256: Sha256::digest(value).into(),
        }
    }

    /// The path of the object in its store.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The length of the object in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The SHA-256 of the object.
    pub const fn sha256(&self) -> &[u8; 32] {
        &self.sha256
    }

    pub(super) const fn id(&self) -> Guid {
        self.id
    }

    pub(super) fn path(&self) -> Path {
        Path::parse(&self.name).unwrap_or_default()
    }

    pub(super) fn is_below(&self, prefix: &Path) -> bool {
        id_below(prefix, &self.name) == Some(self.id)
    }

    fn parse(text: &str) -> Option<Self> {
        let (name, terms) = text.rsplit_once('?')?;
        let (size, sha256) = terms.strip_prefix("length=")?.split_once("&sha256=")?;
        let (_, id) = name.rsplit_once('/')?;
        let mut digest = [0; 32];
        for (byte, digits) in digest.iter_mut().zip(sha256.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        }
        let object = Self {
            name: name.to_owned(),
            id: id.parse().ok()?,
            size: size.parse().ok()?,
            sha256: digest,
        };
        // Each reference has one form, also in a filter. A path that the store would read as
        // another one is none.
        let is_path = Path::parse(name).is_ok_and(|path| path.as_ref() == name);
        (is_path && object.to_string() == text).then_some(object)
    }
}

/// The GUID of an object below a prefix, if the name is that of one.
pub(super) fn id_below(prefix: &Path, name: &str) -> Option<Guid> {
    let id = name.strip_prefix(prefix.as_ref())?.strip_prefix('/')?;
    let guid: Guid = id.parse().ok()?;
    (guid.to_string() == id).then_some(guid)
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?length={}&sha256=", self.name, self.size)?;
        for byte in self.sha256 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl PropertyValue for ObjectRef {
    const EDM_TYPE: EdmType = EdmType::String;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::String(self.to_string().into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let text = String::from_value(value)?;
        Self::parse(&text).ok_or_else(|| {
            ValueError::unreadable(
                text,
                "a reference to an object is stored as its path with a GUID, its length and its SHA-256: photos/GUID?length=…&sha256=…",
            )
        })
    }
}

/// As the string that is stored.
#[cfg(feature = "serde")]
impl serde::Serialize for ObjectRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
