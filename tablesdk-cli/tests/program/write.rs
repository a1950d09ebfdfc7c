//! `put` and `rm`: what they write, what they refuse, and what they say.

use std::path::Path;

use tablesdk::{DynamicEntity, TableEntity, TableServiceClient};

use crate::run::{run, run_in};
use crate::{STRING, server};

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
    let words = [
        "rm",
        "Employees",
        "--partition",
        "Sales",
        "--force",
        "--dry-run",
    ];
    let (code, _, errors) = run(&words, &account).await;
    assert!(
        code == 0 && !errors.contains("now "),
        "nothing is to be mended: {errors}"
    );
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

/// Runs `put` with an input.
async fn put(words: &[&str], input: &str, account: &str) -> (i32, String) {
    let words = [&["put"], words].concat();
    let account = [(STRING, account)];
    let (code, out, errors) = run_in(Path::new("."), &words, &account, input).await;
    assert!(out.is_empty());
    (code, errors)
}

fn login(person: &str, day: u32, device: &str) -> String {
    format!(r#"{{"PartitionKey":"{person}","RowKey":"2024-03-{day:02}","Device":"{device}"}}"#)
        + "\n"
}

async fn device(service: &TableServiceClient, person: &str, day: u32) -> Option<String> {
    let table = service.table("Logins");
    let row = format!("2024-03-{day:02}");
    let found = table
        .get::<DynamicEntity>((person, row.as_str()))
        .await
        .unwrap();
    found.map(|it| it.properties().read("Device").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_verb_writes_what_it_says() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    for (verb, day, code, problem, after) in [
        ("--insert", 1, 1, "line 1: insert entity", Some("phone")),
        ("--insert", 6, 0, "", Some("watch")),
        ("--merge", 1, 0, "", Some("watch")),
        ("--merge", 7, 1, "ResourceNotFound", None),
        ("--replace", 2, 0, "", Some("watch")),
        ("--replace", 7, 1, "ResourceNotFound", None),
        ("--upsert", 3, 0, "", Some("watch")),
        ("--upsert", 8, 0, "", Some("watch")),
    ] {
        let (found, errors) = put(&["Logins", verb], &login("ann", day, "watch"), &account).await;
        assert!(
            found == code && errors.contains(problem),
            "{verb}: {errors}"
        );
        assert_eq!(
            device(&service, "ann", day).await.as_deref(),
            after,
            "{verb} {day}"
        );
    }
    let (code, errors) = put(&["Logins"], "", &account).await;
    assert!(code == 2 && errors.contains("--insert"), "{errors}");
    let (code, errors) = put(&["Logins", "--merge", "--upsert"], "", &account).await;
    assert!(
        code == 2 && errors.contains("cannot be used with"),
        "{errors}"
    );
    let (code, errors) = put(&["New", "--insert"], &login("ann", 1, "x"), &account).await;
    assert!(code == 1 && errors.contains("TableNotFound"), "{errors}");
    let (code, errors) = put(
        &["New", "--insert", "--create"],
        &login("ann", 1, "x"),
        &account,
    )
    .await;
    assert_eq!(code, 0, "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_of_a_partition_are_written_together_or_not_at_all() {
    let (server, service, account) = server().await;
    logins(&service).await;
    let input = [
        login("ann", 10, "a"),
        login("ann", 11, "a"),
        login("bob", 10, "a"),
        login("ann", 3, "a"),
    ]
    .concat();
    let journal = server.journal();
    let (code, errors) = put(&["Logins", "--insert"], &input, &account).await;
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("line 4: insert entity") && errors.contains("the 3 before are written"),
        "{errors}"
    );
    let requests = journal.requests();
    let writes = requests.iter().filter(|it| !it.entities.is_empty());
    let entities: Vec<_> = writes.map(|it| it.entities.len()).collect();
    assert_eq!(
        entities,
        [2, 1, 1],
        "two entities of ann are one transaction"
    );
    assert!(device(&service, "bob", 10).await.is_some());

    let input = [login("bob", 11, "a"), login("bob", 1, "a")].concat();
    let (code, errors) = put(&["Logins", "--insert"], &input, &account).await;
    assert!(code == 1 && errors.contains("line 2: "), "{errors}");
    assert!(device(&service, "bob", 11).await.is_none());

    let entity = |n| format!("{{\"PartitionKey\":\"carl\",\"RowKey\":\"{n:03}\"}}");
    let many: Vec<_> = (1..=250).map(entity).collect();
    let many = many.join("\n");
    let (code, errors) = put(&["Logins", "--upsert"], &many, &account).await;
    assert!(
        code == 0 && errors.starts_with("Wrote 250 entities of Logins in "),
        "{errors}"
    );
    assert_eq!(row_keys(&service, "carl").await.len(), 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entity_that_changed_since_it_was_printed_is_not_written() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    let get = ["get", "Logins", "ann", "2024-03-01"];
    let (_, printed, _) = run(&get, &account).await;
    let edited = printed.replace("phone", "watch");
    for verb in ["--merge", "--replace"] {
        let changed = DynamicEntity::new("ann", "2024-03-01").with("Device", verb);
        service
            .table("Logins")
            .upsert_merge(&changed)
            .await
            .unwrap();
        let (code, errors) = put(&["Logins", verb], &edited, &account).await;
        assert!(
            code == 1 && errors.contains("UpdateConditionNotSatisfied"),
            "{errors}"
        );
        assert_eq!(device(&service, "ann", 1).await.as_deref(), Some(verb));
    }
    let (code, errors) = put(
        &["Logins", "--replace", "--if-match", "*"],
        &edited,
        &account,
    )
    .await;
    assert_eq!(code, 0, "{errors}");
    assert_eq!(device(&service, "ann", 1).await.as_deref(), Some("watch"));
    let (_, printed, _) = run(&get, &account).await;
    let (code, errors) = put(
        &["Logins", "--replace"],
        &printed.replace("watch", "desk"),
        &account,
    )
    .await;
    assert_eq!(code, 0, "{errors}");
    let two = [printed, login("ann", 2, "x")].concat();
    let (code, errors) = put(&["Logins", "--merge", "--if-match", "*"], &two, &account).await;
    assert!(
        code == 2 && errors.contains("--if-match is the ETag of one entity"),
        "{errors}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_keeps_is_written_by_force_alone() {
    let (_server, service, account) = server().await;
    let table = service.table("Employees");
    table.create_table().await.unwrap();
    let plain = r#"{"PartitionKey":"Sales","RowKey":"empid_000001","email":"a"}"#;
    let entry = r#"{"PartitionKey":"Sales","RowKey":"email_a","TablesdkIndex":"Employee.ByEmail"}"#;
    let part = r#"{"PartitionKey":"Sales","RowKey":"2024","Pages":1}"#;
    assert_eq!(put(&["Employees", "--insert"], plain, &account).await.0, 0);
    let (code, errors) = put(&["Employees", "--insert"], entry, &account).await;
    assert!(
        code == 2 && errors.contains("line 1: (\"Sales\", \"email_a\") is an entry of the index"),
        "{errors}"
    );
    let head = DynamicEntity::new("Sales", "2024").with("TablesdkParts", "b");
    table.insert(&head).await.unwrap();
    let (code, errors) = put(&["Employees", "--upsert"], part, &account).await;
    assert!(
        code == 2 && errors.contains("is a part of a wide entity"),
        "{errors}"
    );

    table
        .insert(&employee(2, Some("b@contoso.com")))
        .await
        .unwrap();
    let (code, errors) = put(&["Employees", "--merge"], plain, &account).await;
    assert!(
        code == 2 && errors.contains("Employees contains an entry of the index Employee.ByEmail"),
        "{errors}"
    );
    let (code, errors) = put(&["Employees", "--merge", "--force"], plain, &account).await;
    assert!(
        code == 0 && errors.contains("now run `table.repair::<Employee>()`"),
        "{errors}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_deleted_with_all_its_entities() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    let (code, _, errors) = run(&["rm", "Logins", "--drop"], &account).await;
    let question = "Delete the table Logins with all its entities? Standard input is no terminal";
    assert!(code == 2 && errors.contains(question), "{errors}");
    let (code, _, errors) = run(&["rm", "Logins", "--drop", "--yes"], &account).await;
    assert!(
        code == 0 && errors.starts_with("Deleted the table Logins in "),
        "{errors}"
    );
    assert!(!service.table("Logins").table_exists().await.unwrap());
    let (code, _, errors) = run(&["rm", "Logins", "--drop", "--yes"], &account).await;
    assert!(code == 1, "{errors}");
    for others in [&["--partition", "ann"][..], &["--if-match", "W/\"x\""]] {
        let words = [&["rm", "Logins", "--drop", "--yes"], others].concat();
        assert_eq!(run(&words, &account).await.0, 2, "{words:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_cannot_be_one_transaction_writes_nothing() {
    let (_server, service, account) = server().await;
    let twice = [
        login("ann", 1, "a"),
        login("ann", 2, "a"),
        login("ann", 1, "b"),
    ]
    .concat();
    let words = ["Logins", "--insert", "--create"];
    let (code, errors) = put(&words, &twice, &account).await;
    assert_eq!(code, 1, "{errors}");
    let problem = "line 3: (\"ann\", \"2024-03-01\") is at line 1, too";
    assert!(errors.contains(problem), "{errors}");
    assert!(row_keys(&service, "ann").await.is_empty());
    let (code, _) = put(&["New", "--insert", "--create"], "x,y", &account).await;
    let is_there = service.table("New").table_exists().await.unwrap();
    assert_eq!((code, is_there), (1, false), "no table is made for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_condition_is_none_that_was_meant() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    for condition in [["--rows", ".."], ["--row-prefix", ""], ["--filter", ""]] {
        let words = ["rm", "Logins", "--partition", "ann", "--yes"];
        let words = [&words[..], &condition[..]].concat();
        let (code, _, errors) = run(&words, &account).await;
        assert_eq!(code, 2, "{words:?}: {errors}");
    }
    assert_eq!(row_keys(&service, "ann").await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_queries_find_what_the_client_stores_for_itself() {
    let (_server, service, account) = server().await;
    logins(&service).await;
    let table = service.table("Logins");
    let own = DynamicEntity::new("ann", "~tablesdk.later");
    table.insert(&own).await.unwrap();
    let words = ["rm", "Logins", "--partition", "ann", "--yes"];
    let (code, _, errors) = run(&words, &account).await;
    assert!(
        code == 0 && errors.contains("Deleted 5 entities"),
        "{errors}"
    );
    let words = [&words[..], &["--force"]].concat();
    let (code, _, errors) = run(&words, &account).await;
    assert!(code == 0 && errors.contains("Deleted 1 entity"), "{errors}");
    let found = table.get::<DynamicEntity>(("ann", "~tablesdk.later")).await;
    assert!(found.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_repeats_nothing_that_acts_on_a_terminal() {
    let (_server, _service, account) = server().await;
    for input in [
        "{\"\\u001b[31mfoo\":1}\n",
        "{\"end\":{\"\\u202etables\":1}}\n",
        "{\"PartitionKey\":\"p\",\"RowKey\":\"\\u001b[2J\",\"A@odata.type\":\"Edm.\\u009b\",\"A\":1}\n",
    ] {
        let (code, errors) = put(&["Logins", "--insert"], input, &account).await;
        let acts = |character: char| character.is_control() && character != '\n';
        assert_eq!(code, 1, "{errors}");
        assert!(
            !errors.contains(acts) && !errors.contains('\u{202e}'),
            "{errors}"
        );
    }
}
