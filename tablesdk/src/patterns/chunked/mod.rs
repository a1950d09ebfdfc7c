//! A value over 64 KiB in several properties of its entity. See [`Chunked`].
//!
//! Knows nothing of requests: it is a struct that is flattened into an entity.

mod column;

pub use column::ChunkedColumn;

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use sha2::{Digest as _, Sha256};
use tablesdk_protocol::limits::{BINARY_BYTES_MAX, STRING_UNITS_MAX};
use tablesdk_protocol::wire::json::RawProperty;
use tablesdk_protocol::{EdmType, Value, ValueRef};

use crate::entity::flatten::TableProperties;
use crate::entity::schema::SchemaPart;
use crate::entity::{
    ColumnScope, EntityError, EntityProblem, PropertySchema, PropertyValue, PropertyWriter, Schema,
    ValueError, value_of,
};

/// A value of more than 64 KiB, which is stored in several properties: `Text`, `Text__1`, `Text__2`
/// and so on.
///
/// `T` is stored as a string or as binary: a `String`, a `Vec<u8>`, a `Bytes`, a newtype of one, or
/// [`Json`](crate::entity::Json) of any type of serde. It is a field with
/// [`flatten`](derive@crate::TableEntity#flatten), and its prefix is the name of the first
/// property:
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
///
/// #[derive(TableEntity)]
/// #[table(rename_all = "PascalCase", partition_key = "{employee}", row_key = "{year:04}")]
/// struct Review {
///     employee: String,
///     year: u16,
///     #[table(flatten, prefix = "Remarks")]
///     remarks: Chunked<String>,
///     #[table(flatten, prefix = "Scan")]
///     scan: Option<Chunked<Vec<u8>>>,
/// }
///
/// let remarks = "She is punctual. ".repeat(10_000);
/// let review = Review { employee: "ann".into(), year: 2024, remarks: Chunked(remarks), scan: None };
/// table.insert(&review).await?;
///
/// let mut review = table.get(Review::key("ann", 2024)).await?.expect("was inserted");
/// assert_eq!(review.remarks.len(), 170_000);
/// review.remarks.push_str("She sings.");
/// table.replace(&mut review).await?;
///
/// let remarks = table.query::<Review>().select(|r| r.remarks).collect().await?;
/// assert!(remarks[0].ends_with("She sings."));
/// # Ok(())
/// # }
/// ```
///
/// # What fits
///
/// `N` properties are reserved for the value, and two more for the number of its chunks and a
/// checksum. They count towards the 252 properties of an entity. The default of 16, which is the
/// maximum, holds as much as an entity of 1 MiB can hold. An entity with many such fields takes a
/// smaller `N`, such as `Chunked<String, 3>`. A string takes 32,768 UTF-16 units a chunk and is cut
/// between characters, binary 65,536 bytes. A value that needs more chunks is an error before
/// anything is sent. What an entity cannot hold belongs into an [object
/// store](crate::guide::large_values#a-value-in-an-object-store).
///
/// # What is written and read
///
/// A write contains all chunks, the number and the checksum, so it is as atomic as any write of the
/// entity. A merge of a shorter value leaves the last chunks of a longer one behind. The number
/// ignores them, and the next replace removes them. A merge of `None` changes nothing.
///
/// A read checks the number of chunks and the SHA-256 of the value. It fails if the chunks are of
/// different writes, because another program has written some of them and not the others. A plain
/// property `Text`, without a number and a checksum, is read as a value of one chunk: a field that
/// was a `String` can become a `Chunked<String>`.
///
/// Filters cannot compare the value, because no property has all of it. Its column can be selected,
/// which asks for all chunks. A [`patch`](crate::TableClient::patch) cannot set it: use a merge or
/// [`modify`](crate::TableClient::modify). Entries of [indexes](crate::guide::indexes) contain all
/// properties of an entity, so each has a copy of the value. The [stored
/// form](crate::guide::stored_forms#values-in-chunks) is readable for other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Chunked<T, const N: usize = 16>(
    /// The value.
    pub T,
);

/// The names of the properties, without the prefix: the first chunk, the number of chunks, the
/// checksum, and the other chunks.
const NAMES: [&str; CHUNKS_MAX + 2] = [
    "", "__n", "__sha", "__1", "__2", "__3", "__4", "__5", "__6", "__7", "__8", "__9", "__10",
    "__11", "__12", "__13", "__14", "__15",
];
const COUNT: usize = 1;
const CHECKSUM: usize = 2;
const CHUNKS_MAX: usize = 16;

/// The place of the name of a chunk.
const fn place_of(chunk: usize) -> usize {
    if chunk == 0 { 0 } else { CHECKSUM + chunk }
}

fn name_of(chunk: usize) -> &'static str {
    NAMES.get(place_of(chunk)).copied().unwrap_or_default()
}

impl<T: PropertyValue, const N: usize> Chunked<T, N> {
    #[expect(
        clippy::indexing_slicing,
        reason = "at compile time, and within the bounds by the condition of the loop"
    )]
    const PARTS: &'static [SchemaPart; NAMES.len()] = &{
        assert!(
            matches!(T::EDM_TYPE, EdmType::Binary | EdmType::String),
            "`Chunked` is for values that are stored as a string or as binary: a `String`, a `Vec<u8>`, a `Bytes`, a newtype of one, or `Json` of another type"
        );
        assert!(
            N >= 1 && N <= CHUNKS_MAX,
            "a `Chunked` has 1 to 16 chunks of 64 KiB: an entity has at most 1 MiB"
        );
        let chunk = PropertySchema::new("", T::EDM_TYPE, false);
        let mut parts = [SchemaPart::Property(chunk); NAMES.len()];
        let mut place = 1;
        while place < NAMES.len() {
            let edm_type = edm_type_at::<T>(place);
            let schema = PropertySchema::new(NAMES[place], edm_type, true);
            parts[place] = SchemaPart::Property(schema);
            place += 1;
        }
        parts
    };

    /// The names of the properties of this type.
    fn names() -> &'static [&'static str] {
        NAMES.split_at(N + 2).0
    }
}

const fn edm_type_at<T: PropertyValue>(place: usize) -> EdmType {
    match place {
        COUNT => EdmType::Int32,
        CHECKSUM => EdmType::Binary,
        _ => T::EDM_TYPE,
    }
}

impl<T: PropertyValue + Send + 'static, const N: usize> TableProperties for Chunked<T, N> {
    type Columns<E> = ChunkedColumn<E, Self>;
    /// The values that came, with the places of their names.
    type Slots = Vec<(usize, Option<Value>)>;

    const SCHEMA: Schema = Schema::new("Chunked", Self::PARTS.split_at(N + 2).0);

    fn columns<E>(scope: ColumnScope) -> Self::Columns<E> {
        ChunkedColumn::new(scope)
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        let value = self.0.to_value();
        let value = value.map_err(|error| writer.refused("", error))?;
        let (chunks, bytes) = match &value {
            ValueRef::Binary(bytes) => (chunks_of_bytes(bytes), &**bytes),
            ValueRef::String(text) => (chunks_of_text(text), text.as_bytes()),
            other => {
                let error = ValueError::WrongType {
                    expected: T::EDM_TYPE,
                    found: other.edm_type(),
                };
                return Err(writer.refused("", error));
            }
        };
        if chunks.len() > N {
            let error = ValueError::unwritable(TooLong {
                bytes: bytes.len(),
                chunks: chunks.len(),
                most: N,
            });
            return Err(writer.refused("", error));
        }
        for (index, chunk) in chunks.iter().enumerate() {
            writer.value(name_of(index), chunk)?;
        }
        let count = i32::try_from(chunks.len()).unwrap_or(i32::MAX);
        writer.value(NAMES[COUNT], &ValueRef::Int32(count))?;
        let checksum = Sha256::digest(bytes);
        writer.value(NAMES[CHECKSUM], &ValueRef::Binary(checksum[..].into()))
    }

    fn slots() -> Self::Slots {
        Vec::new()
    }

    fn fill(
        slots: &mut Self::Slots,
        name: &str,
        property: &RawProperty<'_>,
    ) -> Result<bool, EntityError> {
        let Some(place) = Self::names().iter().position(|known| *known == name) else {
            return Ok(false);
        };
        if slots.iter().any(|(known, _)| *known == place) {
            return Err(EntityProblem::duplicate(property.name()).into());
        }
        slots.push((place, value_of(property, edm_type_at::<T>(place))?));
        Ok(true)
    }

    fn finish(slots: Self::Slots, scope: ColumnScope) -> Result<Self, EntityError> {
        let stored = StoredChunks {
            values: slots,
            scope,
            edm_type: T::EDM_TYPE,
            most: N,
        };
        let value = T::from_value(stored.join()?);
        let value = value.map_err(|error| EntityProblem::value(&scope.name(NAMES[0]), error))?;
        Ok(Self(value))
    }
}

/// The properties of a value that is read.
struct StoredChunks {
    values: Vec<(usize, Option<Value>)>,
    scope: ColumnScope,
    edm_type: EdmType,
    most: usize,
}

impl StoredChunks {
    /// The whole value.
    fn join(mut self) -> Result<Value, EntityError> {
        let missing = |this: &Self| {
            let property = this.scope.name(NAMES[0]);
            EntityError::from(EntityProblem::missing(&property, this.edm_type))
        };
        let (count, checksum) = match (self.take(COUNT), self.take(CHECKSUM)) {
            (Some(count), Some(checksum)) => (count, checksum),
            // What a program writes that has one property for the value.
            (None, None)
                if self
                    .values
                    .iter()
                    .all(|(place, it)| *place == 0 || it.is_none()) =>
            {
                return self.take(0).ok_or_else(|| missing(&self));
            }
            (count, _) => {
                let absent = if count.is_none() {
                    NAMES[COUNT]
                } else {
                    NAMES[CHECKSUM]
                };
                let absent = self.scope.name(absent);
                return Err(self.torn(format!("{absent:?} is missing")));
            }
        };
        let count = i32::from_value(count);
        let count =
            count.map_err(|error| EntityProblem::value(&self.scope.name(NAMES[COUNT]), error))?;
        let chunks = usize::try_from(count).unwrap_or_default();
        if chunks == 0 || chunks > self.most {
            let most = self.most;
            return Err(self.torn(format!("there are {count}, and the field has 1 to {most}")));
        }
        let mut whole = self.chunk(0, chunks)?;
        for index in 1..chunks {
            match (&mut whole, self.chunk(index, chunks)?) {
                (Value::Binary(whole), Value::Binary(chunk)) => whole.extend(chunk),
                (Value::String(whole), Value::String(chunk)) => whole.push_str(&chunk),
                (_, other) => {
                    let error = ValueError::WrongType {
                        expected: self.edm_type,
                        found: other.edm_type(),
                    };
                    let property = self.scope.name(name_of(index));
                    return Err(EntityProblem::value(&property, error).into());
                }
            }
        }
        let bytes = match &whole {
            Value::Binary(bytes) => bytes.as_slice(),
            Value::String(text) => text.as_bytes(),
            // The type of the field refuses it.
            _ => return Ok(whole),
        };
        if checksum != Value::Binary(Sha256::digest(bytes).to_vec()) {
            let problem = "they do not match the checksum: they are of different writes, or a program has changed one of them alone";
            return Err(self.torn(problem.to_owned()));
        }
        Ok(whole)
    }

    fn chunk(&mut self, index: usize, of: usize) -> Result<Value, EntityError> {
        let value = self.take(place_of(index));
        value.ok_or_else(|| {
            let name = self.scope.name(name_of(index));
            self.torn(format!("{name:?} is missing, and there are {of}"))
        })
    }

    fn take(&mut self, place: usize) -> Option<Value> {
        let mut values = self.values.iter_mut();
        values.find(|(known, _)| *known == place)?.1.take()
    }

    fn torn(&self, problem: String) -> EntityError {
        let property = self.scope.name(NAMES[0]).into_owned();
        EntityProblem::Chunks { property, problem }.into()
    }
}

fn chunks_of_bytes(bytes: &[u8]) -> Vec<ValueRef<'_>> {
    if bytes.is_empty() {
        return vec![ValueRef::Binary(Cow::Borrowed(bytes))];
    }
    let chunks = bytes.chunks(BINARY_BYTES_MAX);
    chunks
        .map(|chunk| ValueRef::Binary(Cow::Borrowed(chunk)))
        .collect()
}

fn chunks_of_text(mut text: &str) -> Vec<ValueRef<'_>> {
    let mut chunks = Vec::new();
    loop {
        let mut units = 0;
        let end = text.char_indices().find(|(_, character)| {
            units += character.len_utf16();
            units > STRING_UNITS_MAX
        });
        let end = end.map_or(text.len(), |(end, _)| end);
        let (chunk, rest) = text.split_at(end);
        chunks.push(ValueRef::String(Cow::Borrowed(chunk)));
        if rest.is_empty() {
            return chunks;
        }
        text = rest;
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "its {bytes} bytes take {chunks} chunks of 64 KiB, and the field has {most}: an entity of 1 MiB holds at most 16, and an object store holds larger values"
)]
struct TooLong {
    bytes: usize,
    chunks: usize,
    most: usize,
}

impl<T, const N: usize> Deref for Chunked<T, N> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Chunked<T, N> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T, const N: usize> From<T> for Chunked<T, N> {
    fn from(value: T) -> Self {
        Self(value)
    }
}
