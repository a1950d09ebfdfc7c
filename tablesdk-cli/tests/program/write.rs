//! `put` and `rm`: what they write, what they refuse, and what they say.

use tablesdk::{DynamicEntity, TableEntity, TableServiceClient};

use crate::server;
use crate::show::run;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
struct Employee {
    department: String,
    id: u32,
    email: Option<String>,
}

fn employee(id: u32, email: Option<&str>) -> Employee {
    Employee {
        department: "Sales".to_owned(),
        id,
        email: email.map(str::to_owned),
    }
}

/// Logins of two persons, five each.
async fn logins(service: &TableServiceClient) {
    let table = service.table("Logins");
    table.create_table().await.unwrap();
    for person in ["ann", "bob"] {
        for day in 1..=5 {
            let login = DynamicEntity::new(person, format!("2024-03-0{day}"));
            table.insert(&login.with("Device", "phone")).await.unwrap();
        }
    }
}

async fn row_keys(service: &TableServiceClient, partition: &str) -> Vec<String> {
    let logins = service.table("Logins");
    let query = logins.query::<DynamicEntity>().partition(partition);
    let found = query.collect().await.unwrap();
    found.iter().map(|it| it.row_key().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_entity_is_deleted_without_a_question() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    let words = ["rm", "Logins", "ann", "2024-03-01"];
    let (code, out, errors) = run(&words, &account).await;
    assert_eq!((code, out.as_str()), (0, ""), "{errors}");
    assert!(
        errors.starts_with("Deleted 1 entity of Logins in "),
        "{errors}"
    );
    let (code, _, errors) = run(&words, &account).await;
    assert_eq!(code, 1, "{errors}");
    let expected = "tables: Logins has no entity (\"ann\", \"2024-03-01\")\n";
    assert_eq!(errors, expected);
    assert_eq!(row_keys(&service, "ann").await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_with_another_etag_stays() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    let table = service.table("Logins");
    let key = ("ann", "2024-03-01");
    let read = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
    let old = read.etag().as_str().to_owned();
    let changed = DynamicEntity::new(key.0, key.1).with("Device", "watch");
    table.upsert_merge(&changed).await.unwrap();
    let words = ["rm", "Logins", key.0, key.1, "--if-match", &old];
    let (code, _, errors) = run(&words, &account).await;
    assert!(
        code == 1 && errors.contains("UpdateConditionNotSatisfied"),
        "{errors}"
    );
    let (code, _, errors) = run(&["rm", "Logins", key.0, key.1, "--if-match", "x"], &account).await;
    assert!(code == 2 && errors.contains("--if-match"), "{errors}");
    let words = ["rm", "Logins", key.0, key.1, "--if-match", "*"];
    assert_eq!(run(&words, &account).await.0, 0);
    assert_eq!(row_keys(&service, "ann").await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_query_finds_is_deleted_after_a_yes() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    let old = [
        "rm",
        "Logins",
        "--partition",
        "ann",
        "--rows",
        "..2024-03-03",
    ];
    let (code, _, errors) = run(&[&old[..], &["--dry-run"]].concat(), &account).await;
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("Would delete 2 entities of Logins"),
        "{errors}"
    );
    let (code, _, errors) = run(&old, &account).await;
    let question = "tables: Delete 2 entities of Logins? Standard input is no terminal: use --yes";
    assert!(code == 2 && errors.contains(question), "{errors}");
    assert_eq!(row_keys(&service, "ann").await.len(), 5);
    let (code, _, errors) = run(&[&old[..], &["--yes"]].concat(), &account).await;
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("Deleted 2 entities of Logins"), "{errors}");
    let left = ["2024-03-03", "2024-03-04", "2024-03-05"];
    assert_eq!(row_keys(&service, "ann").await, left);

    let all = ["rm", "Logins", "--filter", "Device eq 'phone'", "--yes"];
    let (code, _, errors) = run(&all, &account).await;
    assert!(code == 2 && errors.contains("--scan"), "{errors}");
    assert_eq!(run(&[&all[..], &["--scan"]].concat(), &account).await.0, 0);
    assert!(row_keys(&service, "bob").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_indexes_are_deleted_by_force_alone() {
    let (_server, service, account) = server().await;
    let table = service.table("Employees");
    table.create_table().await.unwrap();
    for employee in [employee(1, Some("ada@contoso.com")), employee(2, None)] {
        table.insert(&employee).await.unwrap();
    }
    let index = "an entry of the index Employee.ByEmail";
    let mend = "run `table.repair::<Employee>()`";
    for words in [
        &["Sales", "email_ada@contoso.com"][..],
        &["Sales", "empid_000001"],
        &["Sales", "empid_000002"],
        &["--partition", "Sales", "--row-prefix", "empid_", "--yes"],
    ] {
        let words = [&["rm", "Employees"], words].concat();
        let (code, _, errors) = run(&words, &account).await;
        assert!(
            code == 2
                && errors.contains(index)
                && errors.contains(mend)
                && errors.contains("--force"),
            "{words:?}: {errors}"
        );
    }
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 3);
    let words = ["rm", "Employees", "Sales", "empid_000001", "--force"];
    let (code, _, errors) = run(&words, &account).await;
    assert!(
        code == 0 && errors.contains(&format!("now {mend}")),
        "{errors}"
    );
    let repaired = table.repair::<Employee>().await.unwrap();
    assert_eq!(repaired.orphaned, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_of_the_client_are_deleted_by_force_alone() {
    let (_server, service, account) = server().await;
    let table = service.table("Own");
    table.create_table().await.unwrap();
    for (row, mark, role) in [
        ("~tablesdk.outbox.head", "", "a part of an outbox"),
        (
            "~tablesdk.wide.5be0cd19137e2179",
            "",
            "the intent of a write of a wide entity",
        ),
        (
            "~tablesdk.once.0d5d2d5b-8c0f-4c8b-9d26-2a8c2f1c9a11",
            "",
            "the marker of a write of `exactly_once`",
        ),
        ("~tablesdk.later", "", "an entity of the client"),
        ("2024!5be0cd19137e2179!01", "", "a part of a wide entity"),
        ("2024", "TablesdkParts", "a part of a wide entity"),
        ("skill", "TablesdkCopy", "a copy, Employee.Skilled"),
    ] {
        let mark = (!mark.is_empty()).then_some((mark, "Employee.Skilled"));
        let mut own = DynamicEntity::new("Sales", row);
        if let Some((name, value)) = mark {
            own = own.with(name, value);
        }
        table.insert(&own).await.unwrap();
        let words = ["rm", "Own", "Sales", row];
        let (code, _, errors) = run(&words, &account).await;
        assert!(
            code == 2 && errors.contains(&format!("is {role}: nothing is written")),
            "{errors}"
        );
        let (code, _, errors) = run(&[&words[..], &["--force"]].concat(), &account).await;
        assert!(code == 0 && errors.starts_with("now "), "{errors}");
    }
}
