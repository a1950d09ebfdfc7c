//! Values in an object store, which entities name. See [`Objects`].
//!
//! An object has a new name and is written once, before its entity. One at a fixed name could be
//! read with another version of the entity, whichever of the two is written first.
//!
//! Needs the feature `object-store`. Of tables it knows the queries that a clean-up reads.

mod clean_up_objects;
mod names_objects;
mod object_ref;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};

pub use clean_up_objects::{CleanUpObjects, CleanUpReport};
pub use names_objects::NamesObjects;
pub use object_ref::ObjectRef;

use crate::action::QueryEntities;
use crate::entity::TableEntity;
use crate::error::Error;
use crate::query::Selection;
use crate::random::random_guid;

/// The objects below a prefix of an object store: values that are too large for a table. An entity
/// has an [`ObjectRef`] to its object.
///
/// The store is one of the crate [`object_store`](https://docs.rs/object_store): its `InMemory`,
/// with its feature `fs` a folder, with `azure` Azure Blob Storage, and others. A program that uses
/// `Objects` depends on that crate, too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Employees");
/// # table.create_table().await?;
/// use std::time::Duration;
///
/// use object_store::memory::InMemory;
/// use tablesdk::TableEntity;
/// use tablesdk::objects::{ObjectRef, Objects};
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{department}", row_key = "{id:06}")]
/// struct Employee {
///     department: String,
///     id: u32,
///     photo: Option<ObjectRef>,
/// }
///
/// let photos = Objects::new(InMemory::new(), "employee-photos");
///
/// // The object first, and then the entity that names it.
/// let photo = Some(photos.put(vec![7; 3_000_000]).await?);
/// table.insert(&Employee { department: "Sales".into(), id: 1, photo }).await?;
///
/// let ada = table.get(Employee::key("Sales", 1)).await?.expect("was inserted");
/// if let Some(photo) = &ada.photo {
///     assert_eq!(photos.get(photo).await?.len(), 3_000_000);
/// }
///
/// // Now and then: objects that no entity names any more.
/// let query = table.query::<Employee>().select(|e| e.photo);
/// let report = photos.clean_up_objects(query).older_than(Duration::from_secs(24 * 3600)).await?;
/// assert_eq!(report.deleted, 0);
/// # Ok(())
/// # }
/// ```
///
/// # What readers see
///
/// Store and table have no transaction in common. An object has a new name, a GUID, and is never
/// written again. So an entity that names an object names a complete one, and a reader of an entity
/// never gets the object of another version: what differs from the length and the SHA-256 in the
/// reference is an error. To change a value, put another object and write its reference into the
/// entity.
///
/// A program that ends between the two writes leaves an object that no entity names; so do a
/// replaced or deleted entity, and a lost response to either write. Only
/// [`clean_up_objects`](Self::clean_up_objects) deletes objects. A reader that has an old version
/// of an entity may then find no object: it reads the entity again.
///
/// # Costs
///
/// A write and a read of such a value are one request to the store each, in addition to that of the
/// entity. The value is held in memory as a whole. Retries and time limits are those of the store.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: String,
}

impl Objects {
    /// The objects of a store below a prefix, such as `employee-photos`. Sends nothing.
    ///
    /// Different kinds of objects have different prefixes: a clean-up of a prefix must know all
    /// entities that name its objects. A prefix that is empty, or is no path of the store, is an
    /// error of each operation.
    pub fn new(store: impl ObjectStore, prefix: impl Into<String>) -> Self {
        Self {
            store: Arc::new(store),
            prefix: prefix.into(),
        }
    }

    /// Stores a value as a new object, and returns the reference to it for an entity.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ObjectStore`](crate::ErrorKind::ObjectStore) when the store fails: the object
    /// may exist, and a clean-up deletes it.
    pub async fn put(&self, value: impl Into<Bytes>) -> Result<ObjectRef, Error> {
        let value = value.into();
        let put = async {
            let prefix = self.path()?;
            let object = ObjectRef::new(&prefix, random_guid(), &value);
            // It need not be refused if it exists: the name is a new one, and the same request
            // again writes the same bytes.
            let written = self.store.put(&object.path(), value.into()).await;
            written.map_err(|error| failed(object.name(), error))?;
            Ok(object)
        };
        put.await
            .map_err(|error: Error| error.with_operation("put object"))
    }

    /// Reads an object, and checks its length and checksum.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ObjectStore`](crate::ErrorKind::ObjectStore) when the object does not exist, is
    /// not what was put, or the store fails. An entity that was read a while ago may name an object
    /// that was replaced and cleaned up: read the entity again.
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the object is not below the prefix.
    pub async fn get(&self, object: &ObjectRef) -> Result<Bytes, Error> {
        let get = async {
            let prefix = self.path()?;
            if !object.is_below(&prefix) {
                return Err(Error::input(ObjectProblem::OtherPrefix {
                    object: object.name().to_owned(),
                    prefix: self.prefix.clone(),
                }));
            }
            let failed = |error| failed(object.name(), error);
            let found = self.store.get(&object.path()).await.map_err(failed)?;
            // Before the bytes are read, which may be many.
            if found.meta.size != object.size() {
                return Err(differs(object));
            }
            let value = found.bytes().await.map_err(failed)?;
            if Sha256::digest(&value)[..] != object.sha256()[..] {
                return Err(differs(object));
            }
            Ok(value)
        };
        get.await
            .map_err(|error| error.with_operation("get object"))
    }

    /// Deletes the objects below the prefix that no entity names. The query returns what names
    /// objects, of *every* entity that does.
    ///
    /// Without [`older_than`](CleanUpObjects::older_than), objects of the last day stay, because
    /// their entity may be written in a moment. See [`CleanUpObjects`] for what else must hold, and
    /// run it as a [`dry_run`](CleanUpObjects::dry_run) first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # let (table, archive) = (service.table("Employees"), service.table("Archive"));
    /// # table.create_table().await?;
    /// # archive.create_table().await?;
    /// # use tablesdk::TableEntity;
    /// # use tablesdk::objects::{ObjectRef, Objects};
    /// # #[derive(TableEntity)]
    /// # #[table(partition_key = "{department}", row_key = "{id:06}")]
    /// # struct Employee { department: String, id: u32, photo: Option<ObjectRef>, scans: Option<ObjectRef> }
    /// # let photos = Objects::new(object_store::memory::InMemory::new(), "employee-photos");
    /// // Two fields name objects, in two tables: employees are moved into the archive.
    /// let report = photos
    ///     .clean_up_objects(table.query::<Employee>().select(|e| (e.photo, e.scans)))
    ///     .also(archive.query::<Employee>().select(|e| (e.photo, e.scans)))
    ///     .dry_run()
    ///     .await?;
    /// println!("{} of {} objects would be deleted", report.deleted, report.objects);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clean_up_objects<'a, E: TableEntity, S: Selection<E, Item: NamesObjects>>(
        &self,
        entities: QueryEntities<E, S>,
    ) -> CleanUpObjects<'a> {
        CleanUpObjects::new(self.clone()).also(entities)
    }

    fn path(&self) -> Result<Path, Error> {
        let prefix = &self.prefix;
        let problem = match Path::parse(prefix) {
            Ok(path) if path.as_ref() == prefix && !path.is_root() => return Ok(path),
            Ok(_) if prefix.is_empty() => {
                "is empty: give the objects a name of their own".to_owned()
            }
            Ok(_) => "starts or ends with a slash".to_owned(),
            Err(error) => format!("is not a path: {error}"),
        };
        let prefix = prefix.clone();
        Err(Error::input(ObjectProblem::Prefix { prefix, problem }))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The `Debug` of a store may have more than its name.
        f.debug_struct("Objects")
            .field("store", &format_args!("{}", self.store))
            .field("prefix", &self.prefix)
            .finish()
    }
}

fn failed(object: &str, error: object_store::Error) -> Error {
    let object = object.to_owned();
    Error::object_store(match error {
        error @ object_store::Error::NotFound { .. } => ObjectProblem::NotFound { object, error },
        error => ObjectProblem::Failed { object, error },
    })
}

fn differs(object: &ObjectRef) -> Error {
    let object = object.name().to_owned();
    Error::object_store(ObjectProblem::Differs { object })
}

#[derive(Debug, thiserror::Error)]
enum ObjectProblem {
    #[error(
        "object {object:?} is not what was put: it does not have the length and the checksum of its reference"
    )]
    Differs { object: String },
    #[error("object {object:?}")]
    Failed {
        object: String,
        #[source]
        error: object_store::Error,
    },
    #[error("the objects below {prefix:?} cannot be listed or deleted")]
    List {
        prefix: String,
        #[source]
        error: object_store::Error,
    },
    #[error(
        "object {object:?} was not found: if its entity was replaced meanwhile, read the entity again"
    )]
    NotFound {
        object: String,
        #[source]
        error: object_store::Error,
    },
    #[error("object {object:?} is not below the prefix {prefix:?}")]
    OtherPrefix { object: String, prefix: String },
    #[error("the prefix {prefix:?} {problem}")]
    Prefix { prefix: String, problem: String },
}
