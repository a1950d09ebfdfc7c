//! Tests that the guide shows what verbs with indexes cost: requests, and entities that are written or examined, as the server counts
//! them.
//!
//! With `TABLESDK_WRITE_COSTS=1` the test rewrites the table in the guide.

use std::path::Path;

use harness::client;
use harness::generated::assert_generated;
use tablesdk::index::IndexEntry;
use tablesdk::key::Key;
use tablesdk::{DynamicEntity, Stored, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Journal, Op};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
struct Plain {
    department: String,
    id: u32,
    email: Option<String>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
#[table(index(OneByEmail, row_key = "email_{email}_{id}"))]
struct WithIndex {
    department: String,
    id: u32,
    email: Option<String>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
#[table(index(UniqueByEmail, row_key = "email_{email}", unique))]
struct WithUnique {
    department: String,
    id: u32,
    email: Option<String>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
#[table(index(
    ElsewhereByEmail,
    partition_key = "email_{email}",
    row_key = "in_{department}_{id}"
))]
struct WithElsewhere {
    department: String,
    id: u32,
    email: Option<String>,
}

const VERBS: [&str; 8] = [
    "`insert`",
    "`replace`, same email",
    "`replace`, other email",
    "`delete_stored`",
    "`modify`, other email",
    "`modify` with `or_insert`, of a new entity",
    "find by the email",
    "find by the email, to write it",
];

/// Runs a verb, and returns its requests, and the entities that were written or, by a read, examined.
macro_rules! cost {
    ($entity:ident, $name:expr, $by_email:expr, $follow:expr) => {{
        let (table, journal) = company();
        table.create_table().await.unwrap();
        let ada = || $entity {
            department: "Sales".into(),
            id: 1,
            email: Some("ada@contoso.com".into()),
        };
        let key = || $entity::key("Sales", 1);
        let other = |e: &mut $entity| {
            e.email = Some("lovelace@contoso.com".into());
            Ok(())
        };
        let mut stored: Option<Stored<$entity>> = None;
        if !matches!(
            $name,
            "`insert`" | "`modify` with `or_insert`, of a new entity"
        ) {
            stored = Some(table.insert(&ada()).await.unwrap());
        }
        if $name.starts_with("find ") {
            let others = (2..=100).map(|id| $entity {
                department: "Sales".into(),
                id,
                email: Some(format!("{id}@contoso.com")),
            });
            for other in others {
                table.insert(&other).await.unwrap();
            }
        }
        journal.clear();
        match ($name, &mut stored) {
            ("`insert`", _) => drop(table.insert(&ada()).await.unwrap()),
            ("`replace`, same email", Some(stored)) => drop(table.replace(stored).await.unwrap()),
            ("`replace`, other email", Some(stored)) => {
                stored.email = Some("lovelace@contoso.com".into());
                table.replace(stored).await.unwrap();
            }
            ("`delete_stored`", Some(stored)) => {
                assert!(table.delete_stored(stored).await.unwrap())
            }
            ("`modify`, other email", _) => drop(table.modify(key(), other).await.unwrap()),
            ("`modify` with `or_insert`, of a new entity", _) => {
                drop(table.modify(key(), other).or_insert(ada).await.unwrap());
            }
            ("find by the email", _) => $by_email(&table).await,
            ("find by the email, to write it", _) => $follow(&table).await,
            (name, _) => unreachable!("{name}"),
        }
        counted(&journal)
    }};
}

async fn get<I: IndexEntry>(table: &TableClient, key: Key<I>) {
    assert!(table.get(key).await.unwrap().is_some());
}

async fn follow<I: IndexEntry>(table: &TableClient, key: Key<I>) {
    assert!(table.get(key).follow().await.unwrap().is_some());
}

fn company() -> (TableClient, Journal) {
    let server = TableServer::in_process();
    let journal = server.journal();
    (client(&server).table("Company"), journal)
}

fn counted(journal: &Journal) -> String {
    let requests = journal.requests();
    let written: usize = requests
        .iter()
        .filter(|request| request.op.is_some_and(Op::is_write))
        .map(|request| request.entities.len())
        .sum();
    let read: u64 = requests
        .iter()
        .map(|request| request.entities_examined)
        .sum();
    match written {
        0 => format!("{}, {read}", requests.count()),
        _ => format!("{}, {written}", requests.count()),
    }
}

/// By hand, as the design guide describes it: upserts and deletes of copies, in batches.
async fn by_hand(verb: &str) -> String {
    let (table, journal) = company();
    table.create_table().await.unwrap();
    let row = |row_key: &str| DynamicEntity::new("Sales", row_key).with("email", "ada@contoso.com");
    if !matches!(
        verb,
        "`insert`" | "`modify` with `or_insert`, of a new entity"
    ) {
        let batch = table
            .batch("Sales")
            .insert(&row("empid_1"))
            .insert(&row("email_ada@contoso.com"));
        batch.await.unwrap();
    }
    journal.clear();
    let get = async || {
        table
            .get::<DynamicEntity>(("Sales", "empid_1"))
            .await
            .unwrap()
    };
    let (primary, copy, moved) = (
        row("empid_1"),
        row("email_ada@contoso.com"),
        row("email_lovelace@contoso.com"),
    );
    match verb {
        "`insert`" => drop(
            table
                .batch("Sales")
                .insert(&primary)
                .insert(&copy)
                .await
                .unwrap(),
        ),
        "`replace`, same email" => {
            drop(
                table
                    .batch("Sales")
                    .upsert_replace(&primary)
                    .upsert_replace(&copy)
                    .await
                    .unwrap(),
            );
        }
        "`replace`, other email" => {
            let batch = table
                .batch("Sales")
                .upsert_replace(&primary)
                .upsert_replace(&moved);
            drop(
                batch
                    .delete(("Sales", "email_ada@contoso.com"))
                    .await
                    .unwrap(),
            );
        }
        "`delete_stored`" => {
            let batch = table.batch("Sales").delete(("Sales", "empid_1"));
            drop(
                batch
                    .delete(("Sales", "email_ada@contoso.com"))
                    .await
                    .unwrap(),
            );
        }
        "`modify`, other email" => {
            get().await.expect("was inserted");
            let batch = table
                .batch("Sales")
                .upsert_replace(&primary)
                .upsert_replace(&moved);
            drop(
                batch
                    .delete(("Sales", "email_ada@contoso.com"))
                    .await
                    .unwrap(),
            );
        }
        "`modify` with `or_insert`, of a new entity" => {
            assert!(get().await.is_none());
            drop(
                table
                    .batch("Sales")
                    .upsert_replace(&primary)
                    .upsert_replace(&moved)
                    .await
                    .unwrap(),
            );
        }
        "find by the email" => {
            table
                .get::<DynamicEntity>(("Sales", "email_ada@contoso.com"))
                .await
                .unwrap()
                .expect("was inserted");
        }
        "find by the email, to write it" => {
            table
                .get::<DynamicEntity>(("Sales", "email_ada@contoso.com"))
                .await
                .unwrap()
                .expect("was inserted");
            get().await.expect("was inserted");
        }
        _ => unreachable!("{verb}"),
    }
    counted(&journal)
}

#[tokio::test]
async fn the_guide_shows_what_writes_cost() {
    let mut table =
        "\n| verb | no index | an index | a unique index | in other partitions | by hand |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for verb in VERBS {
        // Without an index, a query reads the partition.
        let scan = async |table: &TableClient| {
            let query = table.query::<Plain>().partition("Sales");
            assert_eq!(
                query
                    .filter(|e| e.email.eq("ada@contoso.com"))
                    .collect()
                    .await
                    .unwrap()
                    .len(),
                1
            );
        };
        let plain = cost!(Plain, verb, scan, scan);
        let key = || OneByEmail::key("Sales", 1, "ada@contoso.com");
        let of_index = cost!(WithIndex, verb, |table| get(table, key()), |table| follow(
            table,
            key()
        ));
        let key = || UniqueByEmail::key("Sales", "ada@contoso.com");
        let unique = cost!(WithUnique, verb, |table| get(table, key()), |table| follow(
            table,
            key()
        ));
        let key = || ElsewhereByEmail::key("ada@contoso.com", "Sales", 1);
        let unverified = async |table: &TableClient| {
            let entry = table.get(key()).unverified().await.unwrap();
            assert!(entry.is_some());
        };
        let elsewhere = cost!(WithElsewhere, verb, unverified, |table| follow(
            table,
            key()
        ));
        let by_hand = by_hand(verb).await;
        table +=
            &format!("| {verb} | {plain} | {of_index} | {unique} | {elsewhere} | {by_hand} |\n");
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide/indexes.md");
    assert_generated(&guide, [START, END], &table, "TABLESDK_WRITE_COSTS");
}

const START: &str = "<!-- costs -->\n";
const END: &str = "<!-- end of costs -->";
