//! An entity without a struct: both keys, and every property with its exact type.

use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::{RawProperty, read_entity_by};
use tablesdk_protocol::{ETag, EntityKey, KeyKind, ShortString, Timestamp};

use super::attached::{self, Extensions, Facts};
use super::encrypted::check_convertible;
use super::standalone::Standalone;
use super::{
    ColumnScope, EntityError, EntityProblem, EntityVariant, IntoProperty, Properties,
    PropertyReader, PropertyWriter, Schema, TableEntity, ValueError, VariantAccess, WritableEntity,
    variant, write_entity,
};
use crate::filter::{Filter, FilterError};

/// An entity of any shape: both keys, and every property in order with its exact EDM type.
///
/// It goes wherever a derived struct goes, and is made of any or becomes any.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tablesdk::TableServiceClient;
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Employees");
/// # table.create_table().await?;
/// use tablesdk::{DynamicEntity, Value};
///
/// let ada = DynamicEntity::new("Sales", "1").with("Age", 36).with("Badge", 36_i64);
/// table.insert(&ada).await?;
///
/// let read = table.get::<DynamicEntity>(("Sales", "1")).await?.expect("she works here");
/// assert_eq!(read.properties().get("Badge"), Some(&Value::Int64(36)));
///
/// let adults = table.query::<DynamicEntity>().filter(|e| e.property("Age").ge(18));
/// assert_eq!(adults.collect().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicEntity {
    partition_key: ShortString,
    row_key: ShortString,
    etag: Option<ETag>,
    timestamp: Option<Timestamp>,
    properties: Properties,
}

impl DynamicEntity {
    /// An entity without properties yet. What cannot be a key is reported when it is written.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self {
            partition_key: partition_key.into().into(),
            row_key: row_key.into().into(),
            etag: None,
            timestamp: None,
            properties: Properties::new(),
        }
    }

    /// An entity without properties yet.
    pub(crate) fn of_key(key: &EntityKey) -> Self {
        Self::new(key.partition_key().as_str(), key.row_key().as_str())
    }

    /// The same entity with this property: a value of any type that a field may have. `None` leaves
    /// the property out.
    ///
    /// ```
    /// use tablesdk::{DynamicEntity, Value};
    /// use time::macros::datetime;
    ///
    /// let visit = DynamicEntity::new("a", "1")
    ///     .with("At", datetime!(2024-03-15 10:20:30 UTC))
    ///     .with("Guests", 2_i64)
    ///     .with("Remark", None::<String>);
    /// let names: Vec<_> = visit.properties().iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["At", "Guests"]);
    /// ```
    ///
    /// A value that cannot be stored is reported when the entity is written, as [`Properties::set`]
    /// says.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl IntoProperty) -> Self {
        self.properties.set(name, value);
        self
    }

    /// The same entity with these properties, instead of those that it has.
    #[must_use]
    pub fn with_properties(mut self, properties: Properties) -> Self {
        self.properties = properties;
        self
    }

    /// The partition key.
    pub fn partition_key(&self) -> &str {
        self.partition_key.as_str()
    }

    /// The row key.
    pub fn row_key(&self) -> &str {
        self.row_key.as_str()
    }

    /// The version that was read. It is never written.
    pub const fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// When the version that was read was written. It is never written itself.
    pub const fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// The properties, keys and timestamp left out.
    pub const fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The properties, to be changed.
    pub const fn properties_mut(&mut self) -> &mut Properties {
        &mut self.properties
    }

    /// Reads an entity; `push` takes its properties.
    pub(crate) fn read_with(
        reader: &mut PropertyReader<'_, '_>,
        push: impl Fn(&mut Properties, &RawProperty<'_>) -> Result<(), EntityError>,
    ) -> Result<Self, EntityError> {
        let mut properties = Properties::with_capacity(reader.expected_properties());
        properties.note_decrypted(reader.decrypted_by());
        while let Some(property) = reader.next_property() {
            push(&mut properties, property)?;
        }
        Ok(Self {
            partition_key: reader.key(KeyKind::PartitionKey)?.into(),
            row_key: reader.key(KeyKind::RowKey)?.into(),
            etag: reader.etag(),
            timestamp: reader.timestamp()?,
            properties,
        })
    }

    /// Notes that encrypted properties of that type were decrypted.
    pub(crate) const fn note_decrypted(&mut self, schema: Option<&'static Schema>) {
        self.properties.note_decrypted(schema);
    }

    /// The entity as which a struct is stored.
    ///
    /// ```
    /// use tablesdk::{DynamicEntity, TableEntity, Value};
    ///
    /// #[derive(Debug, PartialEq, TableEntity)]
    /// struct Employee {
    ///     #[table(partition_key)]
    ///     department: String,
    ///     #[table(row_key)]
    ///     id: String,
    ///     badge: i64,
    /// }
    ///
    /// let ada = Employee { department: "Sales".into(), id: "1".into(), badge: 7 };
    /// let dynamic = DynamicEntity::from_entity(&ada)?;
    /// assert_eq!(dynamic.properties().get("badge"), Some(&Value::Int64(7)));
    /// assert_eq!(dynamic.to_entity::<Employee>()?, ada);
    /// # Ok::<(), tablesdk::entity::EntityError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the value cannot be stored.
    pub fn from_entity<E: WritableEntity>(entity: &E) -> Result<Self, EntityError> {
        const { check_convertible::<E>() }
        convert(entity, None)
    }

    /// The struct that this entity is read as.
    ///
    /// # Errors
    ///
    /// When it cannot be stored, a property is missing, or is of another type than its field.
    pub fn to_entity<E: TableEntity>(&self) -> Result<E, EntityError> {
        const { check_convertible::<E>() }
        convert(self, self.etag())
    }
}

/// By way of what would be sent and read, which is what makes it the same.
fn convert<A: WritableEntity, B: TableEntity>(
    entity: &A,
    etag: Option<&ETag>,
) -> Result<B, EntityError> {
    let body = write_entity(entity, &entity.entity_key()?)?;
    let read = read_entity_by(&body, |entity| {
        B::read(&mut PropertyReader::with_schema(
            entity,
            const { &B::SCHEMA },
            etag,
        ))
    });
    read.map_err(|error| EntityProblem::Unreadable {
        reason: error.to_string(),
    })?
}

impl TableEntity for DynamicEntity {
    type Columns = DynamicColumns;

    const SCHEMA: Schema = Schema::new("DynamicEntity", &[]);
    const FACTS: Facts = Facts::PLAIN.extended();

    fn columns() -> DynamicColumns {
        Self::columns_of(ColumnScope::ROOT)
    }

    fn read(reader: &mut PropertyReader<'_, '_>) -> Result<Self, EntityError> {
        Self::read_with(reader, Properties::push)
    }

    fn extensions(extensions: &mut Extensions<'_>) {
        attached::dynamic(extensions);
    }

    fn written_as(&mut self, etag: &ETag) {
        self.timestamp = etag.timestamp();
        self.etag = Some(etag.clone());
    }
}

impl EntityVariant for DynamicEntity {
    type ColumnsOf<E> = DynamicColumns<E>;

    const ACCESS: VariantAccess<Self> = variant::variant::<Self>();

    fn columns_of<E>(scope: ColumnScope) -> DynamicColumns<E> {
        DynamicColumns {
            scope,
            entity: PhantomData,
        }
    }
}

impl Standalone for DynamicEntity {}

impl WritableEntity for DynamicEntity {
    fn entity_key(&self) -> Result<EntityKey, EntityError> {
        Ok(EntityKey::new(self.partition_key(), self.row_key())?)
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        self.properties.write(writer, |_| None)
    }
}

/// The columns of filters and projections of [`DynamicEntity`]: any column, by its name. As columns
/// of an enum of entities, `E`, they belong to the rows that its variant marked `other` takes.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::DynamicEntity;
///
/// let rows = table
///     .query::<DynamicEntity>()
///     .filter(|e| e.property("PartitionKey").eq("Sales") & !e.property("Age").gt(64))
///     .select(|e| e.properties(["Name"]));
/// let rows = rows.collect().await?;
/// assert_eq!(rows[0].properties().read::<String>("Name")?, "Ada");
/// # Ok(())
/// # }
/// ```
pub struct DynamicColumns<E = DynamicEntity> {
    scope: ColumnScope,
    entity: PhantomData<fn() -> E>,
}

impl<E> DynamicColumns<E> {
    /// The column of that name. The keys are `PartitionKey` and `RowKey`.
    pub fn property(self, name: impl Into<String>) -> DynamicColumn<E> {
        DynamicColumn {
            columns: self,
            name: name.into(),
        }
    }
}

impl<E> Clone for DynamicColumns<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for DynamicColumns<E> {}

impl<E> fmt::Debug for DynamicColumns<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynamicColumns")
    }
}

impl DynamicColumns {
    /// Reads only these properties, beside the keys: what `select` takes.
    ///
    /// ```
    /// # async fn example(table: tablesdk::TableClient) -> Result<(), tablesdk::Error> {
    /// use tablesdk::DynamicEntity;
    ///
    /// let slim = table.query::<DynamicEntity>().select(|e| e.properties(["Age", "Name"])).collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn properties<N: Into<String>>(
        self,
        names: impl IntoIterator<Item = N>,
    ) -> DynamicSelection {
        DynamicSelection {
            names: names.into_iter().map(Into::into).collect(),
        }
    }
}

/// Some properties of a [`DynamicEntity`], by name.
#[derive(Clone, Debug)]
pub struct DynamicSelection {
    names: Vec<String>,
}

impl DynamicSelection {
    /// The names to ask for: the keys and these, each once.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = vec![
            "PartitionKey".to_owned(),
            "RowKey".to_owned(),
            "Timestamp".to_owned(),
        ];
        for name in &self.names {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// A column by its name. The value says the type: the service compares values of one type.
/// `PartitionKey`, `RowKey` and `Timestamp` are columns, too: keys are strings.
///
/// ```
/// use tablesdk::{DynamicEntity, TableEntity, Timestamp, Value};
///
/// let e = DynamicEntity::columns();
/// let since: Timestamp = "2024-03-15T10:20:30Z".parse()?;
/// for (filter, text) in [
///     (e.property("Age").ge(30), "Age ge 30"),
///     (e.property("Badge").eq(Value::Int64(7)), "Badge eq 7L"),
///     (e.property("Age").between(18..65), "Age ge 18 and Age lt 65"),
///     (e.property("Town").is_in(["Oslo", "Bergen"]), "Town eq 'Oslo' or Town eq 'Bergen'"),
///     (e.property("PartitionKey").eq("Sales"), "PartitionKey eq 'Sales'"),
///     (e.property("RowKey").starts_with("empid_"), "RowKey ge 'empid_' and RowKey lt 'empid`'"),
///     (e.property("Timestamp").ge(since), "Timestamp ge datetime'2024-03-15T10:20:30Z'"),
/// ] {
///     assert_eq!(filter.to_string(), text);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynamicColumn<E = DynamicEntity> {
    columns: DynamicColumns<E>,
    name: String,
}

impl<E> Clone for DynamicColumn<E> {
    fn clone(&self) -> Self {
        Self {
            columns: self.columns,
            name: self.name.clone(),
        }
    }
}

impl<E> fmt::Debug for DynamicColumn<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynamicColumn").field(&self.name).finish()
    }
}

impl<E> DynamicColumn<E> {
    /// A condition on the column, which is made of its name.
    pub(crate) fn condition(
        self,
        condition: impl FnOnce(&str) -> Result<Tree, ValueError>,
    ) -> Filter<E> {
        let Self { columns, name } = self;
        match condition(&name) {
            Ok(tree) => Filter::named(name, |_| columns.scope.within_rows(tree)),
            Err(error) => Filter::new(Err(FilterError::Literal {
                property: name,
                error,
            })),
        }
    }
}
