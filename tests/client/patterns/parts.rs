//! Copies of every kind beside each other: two parts of one other entity, an entity, and the entry
//! of an index in another partition.

use harness::Subject;
use tablesdk::index::CopyOf;
use tablesdk::{DynamicEntity, TableEntity};

use super::staff::open;

/// Two parts of the department, which have one property in common, and a copy.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "boss_{id}")]
#[table(copy(Named), copy(Reached), copy(Initial))]
#[table(index(
    Everywhere,
    partition_key = "name_{name}",
    row_key = "in_{department}_{id}"
))]
struct Boss {
    department: String,
    id: u32,
    name: String,
    email: Option<String>,
    #[table(json)]
    since: [Option<u32>; 2],
}

#[derive(TableEntity)]
#[table(projection, partition_key = "{department}", row_key = "dept_")]
struct Named {
    department: String,
    manager_name: String,
    since: Option<u32>,
}

#[derive(TableEntity)]
#[table(projection, partition_key = "{department}", row_key = "dept_")]
struct Reached {
    department: String,
    manager_email: Option<String>,
    since: Option<u32>,
}

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "initial_{letter}")]
struct Initial {
    department: String,
    letter: String,
}

impl CopyOf<Boss> for Named {
    fn copies_of(boss: &Boss) -> impl IntoIterator<Item = Self> {
        [Self {
            department: boss.department.clone(),
            manager_name: boss.name.clone(),
            since: boss.since[0],
        }]
    }
}

impl CopyOf<Boss> for Reached {
    fn copies_of(boss: &Boss) -> impl IntoIterator<Item = Self> {
        [Self {
            department: boss.department.clone(),
            manager_email: boss.email.clone(),
            since: boss.since[1],
        }]
    }
}

impl CopyOf<Boss> for Initial {
    fn copies_of(boss: &Boss) -> impl IntoIterator<Item = Self> {
        boss.name.chars().next().map(|letter| Self {
            department: boss.department.clone(),
            letter: letter.to_string(),
        })
    }
}

fn boss(name: &str) -> Boss {
    Boss {
        department: "Sales".into(),
        id: 1,
        name: name.into(),
        email: Some("ada@contoso.com".into()),
        since: [Some(1843); 2],
    }
}

/// Both are merged at once, and a value that one of them does not have is removed.
#[tokio::test]
async fn two_parts_of_one_entity_are_merged_together() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    open(&table).await;
    let parts = async || {
        let found = table.get::<DynamicEntity>(("Sales", "dept_")).await;
        let found = found.unwrap().unwrap();
        let string = |name| found.properties().read::<String>(name).ok();
        assert_eq!(string("title").as_deref(), Some("Sales and marketing"));
        let since = found.properties().read::<i64>("since").ok();
        (string("manager_name"), string("manager_email"), since)
    };
    let some = |text: &str| Some(text.to_owned());
    let mut boss = table.insert(&boss("Ada")).await.unwrap();
    let expected = (some("Ada"), some("ada@contoso.com"), Some(1843));
    assert_eq!(parts().await, expected);
    (boss.name, boss.email, boss.since) = ("Grace".into(), None, [None; 2]);
    table.replace(&mut boss).await.unwrap();
    assert_eq!(parts().await, (some("Grace"), None, None));
    let report = table.repair::<Boss>().dry_run().await.unwrap();
    assert!(report.is_right(), "{report:?}");

    for since in [[Some(1), Some(2)], [Some(1), None], [None, Some(1)]] {
        boss.since = since;
        let error = table.replace(&mut boss).await.unwrap_err();
        let message = r#"the copy Named and the copy Reached have different values, at "dept_""#;
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(parts().await, (some("Grace"), None, None));
}

/// Entries in other partitions are written before the transaction of the copies, and withdrawn if
/// it is refused.
#[tokio::test]
async fn copies_and_entries_in_other_partitions_go_together() {
    let table = Subject::in_process().table().await;
    let keys = async || -> Vec<String> {
        let rows = table.query::<DynamicEntity>().values().collect().await;
        let rows = rows.unwrap().into_iter();
        let keys = rows.map(|row| format!("{} {}", row.partition_key(), row.row_key()));
        keys.collect()
    };
    let error = table.insert(&boss("Ada")).await.unwrap_err();
    assert_eq!(error.index(), Some("Named"));
    assert_eq!(keys().await, [""; 0]);

    open(&table).await;
    let mut ada = table.insert(&boss("Ada")).await.unwrap();
    ada.name = "Lovelace".into();
    table.replace(&mut ada).await.unwrap();
    let all = [
        "Sales boss_0000000001",
        "Sales dept_",
        "Sales initial_L",
        "name_Lovelace in_Sales_0000000001",
    ];
    assert_eq!(keys().await, all);
    let report = table.repair::<Boss>().dry_run().await.unwrap();
    assert!(report.is_right(), "{report:?}");
    assert!(table.delete_stored(&ada).await.unwrap());
    assert_eq!(keys().await, ["Sales dept_"]);
}
