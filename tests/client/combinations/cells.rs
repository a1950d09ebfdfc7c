//! The cells of the table that say yes: each pattern with each verb or pattern that takes it, one
//! test a cell.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::SystemTime;

use futures::{TryStreamExt as _, stream};
use tablesdk::chunked::Chunked;
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::entity::Standalone;
use tablesdk::index::CopyOf;
use tablesdk::key::Key;
use tablesdk::outbox::Step;
use tablesdk::{Stored, TableClient, TableEntity, Timestamp, WritableEntity};
use tablesdk_server::TableServer;

/// An instant that is not over during a test.
static UNTIL: LazyLock<Timestamp> = LazyLock::new(|| {
    let now = Timestamp::try_from(SystemTime::now()).unwrap();
    Timestamp::from_unix_ticks(now.unix_ticks() + 36_000_000_000).unwrap()
});

/// A type with one pattern, of whose entities each has a name.
trait Pattern: WritableEntity + Clone + Debug + PartialEq + Send + Sync {
    fn named(department: &str, id: &str, name: &str) -> Self;

    fn name(&mut self) -> &mut String;

    fn key_of(id: &str) -> Key<Self>;

    fn into_row(self) -> Row;
}

macro_rules! patterns {
    ($($(#[$attribute:meta])* $pattern:ident { $($more:tt)* } $(with $($field:ident: $value:expr),+)?;)*) => {
        $(
            #[derive(Clone, Debug, PartialEq, TableEntity)]
            #[table(partition_key = "{department}", row_key = "row_{id}")]
            $(#[$attribute])*
            struct $pattern {
                department: String,
                id: String,
                $($more)*
            }

            impl Pattern for $pattern {
                fn named(department: &str, id: &str, name: &str) -> Self {
                    let [department, id] = [department, id].map(str::to_owned);
                    let name = name.to_owned().into();
                    Self { department, id, name, $($($field: $value),+)? }
                }

                fn name(&mut self) -> &mut String {
                    &mut self.name
                }

                fn key_of(id: &str) -> Key<Self> {
                    Self::key("Sales", id)
                }

                fn into_row(self) -> Row {
                    Row::$pattern(self)
                }
            }
        )*

        #[derive(Clone, Debug, PartialEq, TableEntity)]
        enum Row {
            $($pattern($pattern),)*
        }
    };
}

patterns! {
    #[table(index(ByName, row_key = "name_{name}_{id}"))]
    #[table(entity_type = "Indexed")]
    Indexed { name: String };

    #[table(index(ByUniqueName, row_key = "name_{name}", unique))]
    #[table(entity_type = "Unique")]
    Unique { name: String };

    #[table(index(ByNameOfAll, partition_key = "name_{name}", row_key = "in_{department}_{id}"))]
    #[table(entity_type = "OverPartitions")]
    OverPartitions { name: String };

    #[table(copy(NameOf))]
    #[table(entity_type = "Copied")]
    Copied { name: String };

    #[table(entity_type = "Expiring")]
    Expiring {
        name: String,
        #[table(expires)]
        until: Timestamp
    } with until: *UNTIL;

    #[table(entity_type = "InBuckets")]
    InBuckets {
        name: String,
        #[table(expires(bucket = "1h"))]
        until: Timestamp
    } with until: *UNTIL;

    #[table(entity_type = "Encrypted")]
    Encrypted {
        #[table(encrypt(eq), rename = "Secret")]
        name: String
    };

    #[table(entity_type = "InChunks")]
    InChunks {
        #[table(flatten, prefix = "Name")]
        name: Chunked<String>,
        remark: Option<String>
    } with remark: None;
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    entity_type = "NameOf",
    partition_key = "{department}",
    row_key = "name_of_{id}"
)]
struct NameOf {
    department: String,
    id: String,
    name: String,
}

impl CopyOf<Copied> for NameOf {
    fn copies_of(of: &Copied) -> impl IntoIterator<Item = Self> {
        let Copied {
            department,
            id,
            name,
        } = of.clone();
        [Self {
            department,
            id,
            name,
        }]
    }
}

struct World {
    _server: TableServer,
    table: TableClient,
    archive: TableClient,
}

impl World {
    async fn new() -> Self {
        let server = TableServer::in_process();
        let service = harness::client(&server);
        let keys = Keyring::new(LocalKey::new("2024", [7; 32]));
        let [table, archive] = ["Company", "Archive"].map(|name| service.table(name));
        table.create_table().await.unwrap();
        archive.create_table().await.unwrap();
        Self {
            _server: server,
            table: table.with_encryption(keys),
            archive,
        }
    }
}

/// The stored entities by a query, in the order of their keys, after a check that their entries and
/// copies are right.
async fn all<E: Pattern>(table: &TableClient) -> Vec<E> {
    let report = table.repair::<E>().await.unwrap();
    assert!(report.is_right(), "{report:?}");
    let found = table.query::<E>().collect().await.unwrap();
    found.into_iter().map(Stored::into_inner).collect()
}

async fn find<E: Pattern>(table: &TableClient, id: &str) -> Stored<E> {
    table.get(E::key_of(id)).await.unwrap().unwrap()
}

fn sales<E: Pattern>(names: &[&str]) -> Vec<E> {
    let names = names.iter().enumerate();
    let all = names.map(|(id, name)| E::named("Sales", &(id + 1).to_string(), name));
    all.collect()
}

async fn in_enum<E: Pattern>() {
    let World { table, .. } = World::new().await;
    let [ada, grace] = ["Ada", "Grace"].map(|name| E::named("Sales", "1", name));
    table.insert(&ada.into_row()).await.unwrap();
    let key = || E::key_of("1").of::<Row>();
    let mut read = table.get(key()).await.unwrap().unwrap();
    *read = grace.clone().into_row();
    table.replace(&mut read).await.unwrap();
    assert_eq!(all::<E>(&table).await, [grace]);
    let read = table.get(key()).await.unwrap().unwrap();
    assert!(table.delete_stored(&read).await.unwrap());
    assert!(table.query::<Row>().collect().await.unwrap().is_empty());
}

async fn bulk<E: Pattern>() {
    let World { table, .. } = World::new().await;
    let report = table
        .bulk()
        .insert(stream::iter(sales::<E>(&["Ada", "Grace", "Alan"])));
    assert!(report.await.unwrap().is_success());
    let renamed = table.query::<E>().stream().map_ok(|mut stored| {
        stored.name().push_str(" II");
        stored
    });
    assert!(table.bulk().replace(renamed).await.unwrap().is_success());
    let expected = sales::<E>(&["Ada II", "Grace II", "Alan II"]);
    assert_eq!(all::<E>(&table).await, expected);
    let found = table.query::<E>().stream();
    assert_eq!(
        table
            .bulk()
            .delete_stored(found)
            .await
            .unwrap()
            .progress()
            .written,
        3
    );
    assert!(all::<E>(&table).await.is_empty());
}

async fn batch<E: Pattern>() {
    let World { table, .. } = World::new().await;
    let [ada, grace] = <[E; 2]>::try_from(sales::<E>(&["Ada", "Grace"])).unwrap();
    table
        .batch("Sales")
        .insert(&ada)
        .insert(&grace)
        .await
        .unwrap();
    let (mut one, two) = (find::<E>(&table, "1").await, find::<E>(&table, "2").await);
    one.name().push_str(" II");
    let batch = table.batch("Sales").replace(&mut one).delete_stored(&two);
    batch.await.unwrap();
    assert_eq!(all::<E>(&table).await, sales::<E>(&["Ada II"]));
}

async fn transaction<E: Pattern>() {
    let World { table, .. } = World::new().await;
    for entity in sales::<E>(&["Ada", "Grace"]) {
        table.insert(&entity).await.unwrap();
    }
    let left = table.transaction("Sales", async |tx| {
        let mut one = tx.get(E::key_of("1")).await?.ok_or("inserted")?;
        let two = tx.get(E::key_of("2")).await?.ok_or("inserted")?;
        one.name().push_str(" II");
        tx.replace(one).delete_stored(&two);
        Ok(())
    });
    left.await.unwrap();
    assert_eq!(all::<E>(&table).await, sales::<E>(&["Ada II"]));
}

async fn exactly_once<E: Pattern>() {
    let World { table, .. } = World::new().await;
    let ada = E::named("Sales", "1", "Ada");
    table.insert(&ada).exactly_once().await.unwrap();
    let mut read = find::<E>(&table, "1").await;
    read.name().push_str(" II");
    table.replace(&mut read).exactly_once().await.unwrap();
    assert_eq!(all::<E>(&table).await, sales::<E>(&["Ada II"]));
    assert!(table.delete_stored(&read).exactly_once().await.unwrap());
    assert!(all::<E>(&table).await.is_empty());
}

async fn move_to<E: Pattern>() {
    let World { table, archive, .. } = World::new().await;
    table.insert(&E::named("Sales", "1", "Ada")).await.unwrap();
    let read = find::<E>(&table, "1").await;
    table.move_to(&archive, read).await.unwrap();
    assert_eq!(all::<E>(&archive).await, sales::<E>(&["Ada"]));
    assert!(all::<E>(&table).await.is_empty());
}

async fn move_all<E: Pattern>() {
    let World { table, archive, .. } = World::new().await;
    let both = sales::<E>(&["Ada", "Grace"]);
    for entity in &both {
        table.insert(entity).await.unwrap();
    }
    let report = table.query::<E>().partition("Sales").move_to(&archive);
    assert_eq!(report.await.unwrap().progress().written, 2);
    assert_eq!(all::<E>(&archive).await, both);
    assert!(all::<E>(&table).await.is_empty());
}

/// Two in each partition.
async fn of_two_partitions<E: Pattern>(table: &TableClient) -> Vec<E> {
    let keys = [
        ("Legal", "1"),
        ("Sales", "2"),
        ("Legal", "3"),
        ("Sales", "4"),
    ];
    let all = keys.map(|(department, id)| E::named(department, id, &format!("Ada {id}")));
    for entity in &all {
        table.insert(entity).await.unwrap();
    }
    all.into()
}

async fn merged<E: Pattern>() {
    let World { table, .. } = World::new().await;
    let all = of_two_partitions::<E>(&table).await;
    let query = || table.query::<E>().partitions(["Sales", "Legal"]);
    assert_eq!(query().merged().values().collect().await.unwrap(), all);
    let first = query().merged().values().take(3).page(None).await.unwrap();
    let rest = query()
        .merged()
        .values()
        .take(3)
        .page(first.next)
        .await
        .unwrap();
    assert_eq!([first.items, rest.items].concat(), all);
}

async fn parallel<E: Pattern>() {
    let World { table, .. } = World::new().await;
    let all = of_two_partitions::<E>(&table).await;
    let query = || table.query::<E>().partitions(["Legal", "Sales"]);
    let found = query().in_order().values().collect().await.unwrap();
    let expected = [0, 2, 1, 3].map(|position: usize| all[position].clone());
    assert_eq!(found, expected);
    assert_eq!(query().count().await.unwrap(), 4);
}

async fn upsert<E: Pattern + Standalone>() {
    let World { table, .. } = World::new().await;
    table
        .upsert_replace(&E::named("Sales", "1", "Ada"))
        .await
        .unwrap();
    table
        .upsert_merge(&E::named("Sales", "1", "Ada II"))
        .await
        .unwrap();
    assert_eq!(all::<E>(&table).await, sales::<E>(&["Ada II"]));
}

async fn merge<E: Pattern + Standalone>() {
    let World { table, .. } = World::new().await;
    let mut stored = table.insert(&E::named("Sales", "1", "Ada")).await.unwrap();
    stored.name().push_str(" II");
    table.merge(&mut stored).await.unwrap();
    assert_eq!(all::<E>(&table).await, sales::<E>(&["Ada II"]));
}

trait Patch: Pattern {
    /// Sets a property, and returns the entity as it is then.
    async fn patch(table: &TableClient) -> Self;
}

/// The columns of each type are its own, so that a function for both has none.
macro_rules! patched_by_name {
    ($($entity:ty),+) => {
        $(impl Patch for $entity {
            async fn patch(table: &TableClient) -> Self {
                let patch = table
                    .patch(Self::key("Sales", "1"))
                    .set(|e| e.name, "Grace");
                patch.await.unwrap();
                Self::named("Sales", "1", "Grace")
            }
        })+
    };
}

patched_by_name!(Expiring, Encrypted);

impl Patch for InChunks {
    async fn patch(table: &TableClient) -> Self {
        let patch = table
            .patch(Self::key("Sales", "1"))
            .set(|e| e.remark, "new");
        patch.await.unwrap();
        let remark = Some("new".to_owned());
        Self {
            remark,
            ..Self::named("Sales", "1", "Ada")
        }
    }
}

async fn patch<E: Patch>() {
    let World { table, .. } = World::new().await;
    table.insert(&E::named("Sales", "1", "Ada")).await.unwrap();
    let expected = E::patch(&table).await;
    assert_eq!(all::<E>(&table).await, [expected]);
}

async fn delete<E: Pattern + Standalone>() {
    let World { table, .. } = World::new().await;
    table.insert(&E::named("Sales", "1", "Ada")).await.unwrap();
    assert!(table.delete(E::key_of("1")).await.unwrap());
    assert!(all::<E>(&table).await.is_empty());
}

async fn step<E: Pattern + Standalone>() {
    let World { table, archive, .. } = World::new().await;
    let ada = E::named("Sales", "1", "Ada");
    let batch = table
        .batch("Sales")
        .insert(&E::named("Sales", "1", "Grace"));
    batch
        .step(Step::upsert_replace(&archive, &ada))
        .await
        .unwrap();
    assert_eq!(all::<E>(&archive).await, [ada]);
}

macro_rules! cells {
    ($($module:ident $name:literal $pattern:ident: $($verb:ident)*;)*) => {
        $(
            mod $module {
                $(
                    #[tokio::test]
                    async fn $verb() {
                        super::$verb::<super::$pattern>().await;
                    }
                )*
            }
        )*

        /// The rows of the table, and the functions that test their cells.
        pub(super) const CELLS: &[(&str, &[&str])] = &[$(($name, &[$(stringify!($verb)),*])),*];
    };
}

cells! {
    index "index" Indexed: in_enum bulk batch transaction exactly_once move_to merged parallel;
    unique "unique" Unique: in_enum bulk batch transaction exactly_once move_to merged parallel;
    over_partitions "over partitions" OverPartitions:
        in_enum bulk batch transaction exactly_once move_to merged parallel;
    copy "copy" Copied: in_enum bulk batch transaction exactly_once move_to merged parallel;
    expires "expires" Expiring:
        in_enum bulk batch transaction exactly_once move_to merged parallel
        move_all upsert merge patch delete step;
    buckets "expires in buckets" InBuckets:
        in_enum bulk batch transaction exactly_once move_to merged parallel;
    encrypt "encrypt" Encrypted:
        in_enum bulk batch transaction exactly_once merged parallel upsert merge patch delete;
    chunked "chunked" InChunks:
        in_enum bulk batch transaction exactly_once move_to merged parallel
        move_all upsert merge patch delete step;
}
