//! Values that are compressed before they are stored.

use std::io::{self, Read as _};
use std::ops::{Deref, DerefMut};

use tablesdk_protocol::{EdmType, Value, ValueRef};
use zstd::stream::read::Decoder;

use super::{PropertyValue, ValueError, wrong_type};

/// A value that is compressed by zstd and stored as binary, alone as a property or in [`Chunked`](crate::chunked::Chunked).
///
/// `T` is a `String`, a `Vec<u8>`, a `Bytes`, a newtype of one, or [`Json`](super::Json) of any type of serde. Needs the feature `zstd`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Reviews");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
/// use tablesdk::chunked::Chunked;
/// use tablesdk::entity::Compressed;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{employee}", row_key = "{year:04}")]
/// struct Review {
///     employee: String,
///     year: u16,
///     summary: Option<Compressed<String>>,
///     #[table(flatten, prefix = "remarks")]
///     remarks: Chunked<Compressed<String>>,
/// }
///
/// let remarks = "She is punctual. ".repeat(300_000);
/// let remarks = Chunked(Compressed(remarks));
/// table.insert(&Review { employee: "ann".into(), year: 2024, summary: None, remarks }).await?;
/// let review = table.get(Review::key("ann", 2024)).await?.expect("was inserted");
/// assert_eq!(review.remarks.len(), 5_100_000);
/// # Ok(())
/// # }
/// ```
///
/// # Limits
///
/// A few compressed bytes can stand for gigabytes. A read therefore ends with an error once the value has more than `MAX_BYTES`, 16 MiB by default
/// and at most 128 MiB, and a write refuses such a value. A property holds 64 KiB of what is left after compression.
/// The limit is that of one value: a page has up to 1,000 entities. A program that reads values of writers that it does not trust makes the limit or the
/// [page](crate::action::QueryEntities::page_size) smaller.
///
/// The stored bytes are a frame of the [Zstandard format](https://www.rfc-editor.org/rfc/rfc8878), which programs in all languages read. The service sees
/// only these bytes, so filters cannot compare the value. A client that chooses a part of a value
/// and sees the stored length can learn about the rest of it: do not compress secrets together with the input of such clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Compressed<T, const MAX_BYTES: usize = { 16 << 20 }>(
    /// The value.
    pub T,
);

impl<T: PropertyValue, const MAX_BYTES: usize> PropertyValue for Compressed<T, MAX_BYTES> {
    const EDM_TYPE: EdmType = {
        assert!(
            matches!(T::EDM_TYPE, EdmType::Binary | EdmType::String),
            "`Compressed` is for values that are stored as a string or as binary: a `String`, a `Vec<u8>`, a `Bytes`, a newtype of one, or `Json` of another type"
        );
        assert!(
            MAX_BYTES >= 1 && MAX_BYTES <= 1 << WINDOW_LOG_MAX,
            "the limit of a `Compressed` is 1 byte to 128 MiB"
        );
        EdmType::Binary
    };

    const INCOMPARABLE: Option<&'static str> =
        Some("it is compressed, and the service sees only the compressed bytes");

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        let value = self.0.to_value()?;
        let bytes = match &value {
            ValueRef::Binary(bytes) => bytes,
            ValueRef::String(text) => text.as_bytes(),
            other => {
                return Err(ValueError::WrongType {
                    expected: T::EDM_TYPE,
                    found: other.edm_type(),
                });
            }
        };
        if bytes.len() > MAX_BYTES {
            let size = bytes.len();
            return Err(ValueError::unwritable(format_args!(
                "its {size} bytes are more than the {MAX_BYTES} that are read"
            )));
        }
        let compressed = zstd::bulk::compress(bytes, zstd::DEFAULT_COMPRESSION_LEVEL);
        let compressed = compressed.map_err(ValueError::unwritable)?;
        Ok(ValueRef::Binary(compressed.into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let compressed = match value {
            Value::Binary(bytes) => bytes,
            other => return Err(wrong_type::<Self>(&other)),
        };
        let unreadable = |reason: &dyn std::fmt::Display| {
            ValueError::unreadable(format_args!("of {} bytes", compressed.len()), reason)
        };
        let too_large = || {
            unreadable(&format_args!(
                "decompressed, it has more than {MAX_BYTES} bytes"
            ))
        };
        let declared = zstd::zstd_safe::get_frame_content_size(&compressed);
        if declared.is_ok_and(|size| size.is_some_and(|size| size > MAX_BYTES as u64)) {
            return Err(too_large());
        }
        let bytes = decompress(&compressed, MAX_BYTES);
        let bytes = bytes.map_err(|error| unreadable(&format_args!("decompression: {error}")))?;
        if bytes.len() > MAX_BYTES {
            return Err(too_large());
        }
        let value = match T::EDM_TYPE {
            EdmType::String => match String::from_utf8(bytes) {
                Ok(text) => Value::String(text),
                Err(error) => return Err(unreadable(&error.utf8_error())),
            },
            _ => Value::Binary(bytes),
        };
        T::from_value(value).map(Self)
    }
}

/// The first bytes of what was compressed: all if they are not more than a limit, and else one more than it.
fn decompress(compressed: &[u8], max: usize) -> io::Result<Vec<u8>> {
    if compressed.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut decoder = Decoder::with_buffer(compressed)?;
    // The memory that a frame demands. All levels but those that zstd calls ultra need 8 MiB or less.
    let window = (max.ilog2() + 1).clamp(23, WINDOW_LOG_MAX);
    decoder.window_log_max(window)?;
    let mut bytes = Vec::new();
    decoder.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// That of the format's reference implementation.
const WINDOW_LOG_MAX: u32 = 27;

impl<T, const MAX_BYTES: usize> Deref for Compressed<T, MAX_BYTES> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T, const MAX_BYTES: usize> DerefMut for Compressed<T, MAX_BYTES> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T, const MAX_BYTES: usize> From<T> for Compressed<T, MAX_BYTES> {
    fn from(value: T) -> Self {
        Self(value)
    }
}
