//! The costs of verbs with indexes: requests, and entities that are written or, by a read,
//! examined.

use tablesdk::{DynamicEntity, TableEntity};

use super::{Cost, Costs};

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

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id}")]
#[table(index(
    EmailElsewhere,
    partition_key = "email_{department}",
    row_key = "is_{email}",
    unique
))]
struct WithUniqueElsewhere {
    department: String,
    id: u32,
    email: Option<String>,
}

const VERBS: [&str; 8] = [
    "`insert`",
    "`replace`, same email",
    "`replace`, other email",
    "`delete_stored`",
    "`modify` with `or_insert`, of a new entity",
    "`modify`, other email",
    "find by the email",
    "find by the email, to write it",
];

const OTHER: &str = "lovelace@contoso.com";

/// A column of the table: what each verb costs. The last two are how the entity is found by its
/// email.
macro_rules! column {
    ($costs:ident, $table:ident, $entity:ident, $find:expr, $follow:expr) => {{
        let employee = |id: u32| $entity {
            department: "Sales".into(),
            id,
            email: Some(format!("{id}@contoso.com")),
        };
        let set_other = |e: &mut $entity| {
            e.email = Some(OTHER.into());
            Ok(())
        };
        let modify = || $table.modify($entity::key("Sales", 1), set_other);
        let (stored, insert) = $costs.measure($table.insert(&employee(1)));
        let mut stored = stored.unwrap();
        let same = $costs.cost($table.replace(&mut stored));
        stored.email = Some(OTHER.into());
        let other = $costs.cost($table.replace(&mut stored));
        let (is_deleted, delete) = $costs.measure($table.delete_stored(&stored));
        assert!(is_deleted.unwrap());
        let of_new = $costs.cost(modify().or_insert(|| employee(1)));
        let stored = $costs.run($table.get($entity::key("Sales", 1))).unwrap();
        $costs.run($table.delete_stored(&stored.unwrap())).unwrap();
        $costs.insert(&$table, (1..=100).map(employee));
        let of_other = $costs.cost(modify());
        let (is_found, find) = $costs.measure($find);
        let (is_followed, follow) = $costs.measure($follow);
        assert!(is_found && is_followed);
        [insert, same, other, delete, of_new, of_other, find, follow]
    }};
}

/// By hand, as the design guide describes it: upserts and deletes of copies, in batches.
fn by_hand(costs: &Costs) -> [Cost; 8] {
    const PRIMARY: &str = "empid_1";
    const COPY: &str = "email_ada@contoso.com";
    const MOVED: &str = "email_lovelace@contoso.com";
    let table = costs.table("ByHand");
    let row = |row_key: &str| DynamicEntity::new("Sales", row_key).with("email", "ada@contoso.com");
    let get = |row_key: &str| table.get::<DynamicEntity>(("Sales", row_key));
    let upsert = |copy: &str| {
        let batch = table.batch("Sales").upsert_replace(&row(PRIMARY));
        batch.upsert_replace(&row(copy))
    };
    let modify_new = async {
        assert!(get(PRIMARY).await.unwrap().is_none());
        upsert(COPY).await
    };
    let modify_other = async {
        assert!(get(PRIMARY).await.unwrap().is_some());
        upsert(MOVED).delete(("Sales", COPY)).await
    };
    let find = async { assert!(get(MOVED).await.unwrap().is_some()) };
    let follow = async {
        assert!(get(MOVED).await.unwrap().is_some());
        assert!(get(PRIMARY).await.unwrap().is_some());
    };
    let insert = table.batch("Sales").insert(&row(PRIMARY));
    let delete = table.batch("Sales").delete(("Sales", PRIMARY));
    [
        costs.cost(insert.insert(&row(COPY))),
        costs.cost(upsert(COPY)),
        costs.cost(upsert(MOVED).delete(("Sales", COPY))),
        costs.cost(delete.delete(("Sales", MOVED))),
        costs.cost(modify_new),
        costs.cost(modify_other),
        costs.measure(find).1,
        costs.measure(follow).1,
    ]
}

#[test]
fn the_guide_shows_what_verbs_cost_with_indexes() {
    let head = "\n| verb | no index | an index | a unique index | in other partitions | unique there | by hand |\n|---|---|---|---|---|---|---|\n";
    let mut costs = Costs::new(head);
    // Without an index, a query reads the partition.
    let table = costs.table("Plain");
    let scan = async || {
        let query = table.query::<Plain>().partition("Sales");
        query.filter(|e| e.email.eq(OTHER)).count().await.unwrap() == 1
    };
    let plain = column!(costs, table, Plain, scan(), scan());

    let key = || OneByEmail::key("Sales", 1, OTHER);
    let table = costs.table("WithIndex");
    let find = async || table.get(key()).await.unwrap().is_some();
    let follow = async || table.get(key()).follow().await.unwrap().is_some();
    let of_index = column!(costs, table, WithIndex, find(), follow());

    let key = || UniqueByEmail::key("Sales", OTHER);
    let table = costs.table("WithUnique");
    let find = async || table.get(key()).await.unwrap().is_some();
    let follow = async || table.get(key()).follow().await.unwrap().is_some();
    let unique = column!(costs, table, WithUnique, find(), follow());

    let key = || ElsewhereByEmail::key(OTHER, "Sales", 1);
    let table = costs.table("WithElsewhere");
    let find = async || table.get(key()).unverified().await.unwrap().is_some();
    let follow = async || table.get(key()).follow().await.unwrap().is_some();
    let elsewhere = column!(costs, table, WithElsewhere, find(), follow());

    let key = || EmailElsewhere::key("Sales", OTHER);
    let table = costs.table("WithUniqueElsewhere");
    let find = async || table.get(key()).await.unwrap().is_some();
    let follow = async || table.get(key()).follow().await.unwrap().is_some();
    let unique_elsewhere = column!(costs, table, WithUniqueElsewhere, find(), follow());

    let by_hand = by_hand(&costs);
    let columns = [
        plain,
        of_index,
        unique,
        elsewhere,
        unique_elsewhere,
        by_hand,
    ];
    for (nth, verb) in VERBS.iter().enumerate() {
        let columns = columns.each_ref().map(|costs| {
            let cost = &costs[nth];
            let entities = if cost.written == 0 {
                cost.examined
            } else {
                cost.written
            };
            format!("{}, {entities}", cost.requests)
        });
        costs.text += &format!("| {verb} | {} |\n", columns.join(" | "));
    }
    costs.assert_shown("indexes.md");
}
