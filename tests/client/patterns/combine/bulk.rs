//! Bulk runs of entities that are written together with others.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use harness::company::indexed::{self, Employee};
use tablesdk::action::BulkReport;
use tablesdk::{DynamicEntity, ErrorKind, Stored, TableClient, TableEntity};
use tablesdk_server::TableServer;

use super::super::staff::{self, Department, Staff, department};
use super::super::{on_both_transports, other_partitions, unique_over_partitions};

fn employees(ids: impl IntoIterator<Item = u32>) -> Vec<Employee> {
    let of_id = |id| Employee::new(id, "Jones", Some(&format!("{id}@contoso.com")));
    ids.into_iter().map(of_id).collect()
}

async fn insert(table: &TableClient, employees: &[Employee]) -> BulkReport {
    table.bulk().insert(stream::iter(employees)).await.unwrap()
}

async fn stored(table: &TableClient) -> Vec<Stored<Employee>> {
    let stored = table.query::<Employee>().partition("Sales");
    stored.collect().await.unwrap()
}

/// The indexes in the input, and the codes of the errors.
fn failures(report: &BulkReport) -> Vec<(u64, String)> {
    let failures = report.failures().iter();
    let code = |error: &tablesdk::Error| error.code().map(ToString::to_string).unwrap_or_default();
    failures.map(|it| (it.index(), code(it.error()))).collect()
}

on_both_transports! {
    async fn entities_are_inserted_replaced_and_deleted_with_their_entries(subject: Subject) {
        let table = subject.table().await;
        let report = insert(&table, &employees(0..70)).await;
        // Two entries each: 33 entities fill a batch.
        assert_eq!((report.progress().written, report.progress().requests), (70, 3));
        assert_eq!(indexed::checked(&table).await.len(), 70);

        let left = table.query::<Employee>().partition("Sales").stream().map_ok(|mut employee| {
            employee.email = employee.email.take().filter(|_| employee.id % 2 == 0);
            employee.last_name = "King".into();
            employee
        });
        let report = table.bulk().replace(left).await.unwrap();
        assert!(report.is_success());
        let found = indexed::checked(&table).await;
        assert_eq!(found.iter().filter(|it| it.email.is_none()).count(), 35);
        assert!(found.iter().all(|it| it.last_name == "King"));

        let found = stored(&table).await;
        let report = table.bulk().delete_stored(stream::iter(&found)).await.unwrap();
        assert_eq!(report.progress().written, 70);
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_closure_changes_entities_with_their_entries(subject: Subject) {
        let table = subject.table().await;
        let _ = insert(&table, &employees(0..70)).await;
        let all = || table.query::<Employee>().partition("Sales");
        let report = all().modify_all(|e| {
            e.email = match e.id {
                // The entry is that of another entity, which is in the same batch.
                3 => Some("5@contoso.com".to_owned()),
                id if id % 2 == 0 => None,
                _ => e.email.take(),
            };
            Ok(())
        });
        let report = report.await.unwrap();
        assert_eq!(failures(&report), [(2, "EntityAlreadyExists".to_owned())]);
        assert_eq!(report.failures()[0].error().index(), Some("ByEmail"));
        // The index counts what is written: 0, 2, and then the entity that is refused.
        assert_eq!((report.progress().written, report.progress().skipped), (35, 34));
        let found = indexed::checked(&table).await;
        assert_eq!(found.iter().filter(|it| it.email.is_none()).count(), 35);
    }

    async fn a_taken_entry_is_the_failure_of_its_entity(subject: Subject) {
        let table = subject.table().await;
        table.insert(&employees([100])[0]).await.unwrap();
        let mut input = employees(0..20);
        input[3].email = Some("100@contoso.com".to_owned());
        // The first of two entities with one entry has it.
        input[17].email = Some("5@contoso.com".to_owned());
        let report = insert(&table, &input).await;
        let conflict = |index| (index, "EntityAlreadyExists".to_owned());
        assert_eq!(failures(&report), [conflict(3), conflict(17)]);
        for failure in report.failures() {
            assert_eq!(failure.error().index(), Some("ByEmail"), "{}", failure.error());
        }
        assert_eq!(indexed::checked(&table).await.len(), 19);
    }

    async fn an_entry_is_passed_on_within_a_run(subject: Subject) {
        let table = subject.table().await;
        let _ = insert(&table, &employees(0..3)).await;
        let mut found = stored(&table).await;
        // Each gets the email of the one before, which gave it up.
        let mut email = None;
        for employee in &mut found {
            std::mem::swap(&mut employee.email, &mut email);
        }
        let report = table.bulk().replace(stream::iter(found)).await.unwrap();
        assert!(report.is_success(), "{:?}", report.failures());
        let emails: Vec<_> = indexed::checked(&table).await.into_iter().map(|it| it.email).collect();
        let [zero, one] = ["0@contoso.com", "1@contoso.com"].map(|it| Some(it.to_owned()));
        assert_eq!(emails, [None, zero, one]);
    }

    async fn what_has_changed_since_it_was_read_stays(subject: Subject) {
        let table = subject.table().await;
        let _ = insert(&table, &employees(0..5)).await;
        let mut read = stored(&table).await;
        table.modify(Employee::key("Sales", 1), |e| { e.age = 50; Ok(()) }).await.unwrap();
        assert!(table.delete_stored(&read[2]).await.unwrap());

        for employee in &mut read {
            employee.email = Some(format!("{}@example.com", employee.id));
        }
        let report = table.bulk().replace(stream::iter(&read)).await.unwrap();
        let expected = [(1, "UpdateConditionNotSatisfied"), (2, "ResourceNotFound")];
        assert_eq!(failures(&report), expected.map(|(index, code)| (index, code.to_owned())));
        let found = indexed::checked(&table).await;
        assert_eq!(found.iter().filter(|it| it.email.as_ref().unwrap().ends_with("@example.com")).count(), 3);

        let again = stored(&table).await;
        table.modify(Employee::key("Sales", 3), |e| { e.age = 50; Ok(()) }).await.unwrap();
        assert!(table.delete_stored(&again[0]).await.unwrap());
        let deletes = again.into_iter().map(Ok::<_, std::io::Error>);
        let report = table.bulk().delete_stored(stream::iter(deletes)).await.unwrap();
        let progress = report.progress();
        assert_eq!((progress.written, progress.changed, progress.missing), (2, 1, 1), "{report:?}");
        assert_eq!(indexed::checked(&table).await.len(), 1);
    }

    async fn entries_in_other_partitions_are_written_around_the_batch(subject: Subject) {
        let table = subject.table().await;
        let all = (0..60).map(|id| {
            let department = ["Sales", "Legal"][id as usize % 2];
            other_partitions::employee(department, id, ["Jones", "King", "Smith"][id as usize % 3])
        });
        let report = table.bulk().insert(stream::iter(all)).await.unwrap();
        assert_eq!(report.progress().written, 60);
        other_partitions::exact(&table).await;

        let found = table.query::<other_partitions::Employee>().stream().map_ok(|mut employee| {
            employee.last_name = Some("Lovelace".to_owned()).filter(|_| employee.id % 3 > 0);
            employee
        });
        let report = table.bulk().replace(found).await.unwrap();
        assert!(report.is_success(), "{:?}", report.failures());
        other_partitions::exact(&table).await;

        let found = table.query::<other_partitions::Employee>().stream();
        let report = table.bulk().delete_stored(found).await.unwrap();
        assert_eq!(report.progress().written, 60);
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn copies_are_written_in_bulk(subject: Subject) {
        let table = subject.table().await;
        staff::open(&table).await;
        let staff = (1..=30).map(|id| Staff {
            badge: i32::try_from(id).ok(),
            is_manager: id == 30,
            ..Staff::new(id, &format!("Ada {id}"), &["Maths", "Welsh"])
        });
        let report = table.bulk().insert(stream::iter(staff)).await.unwrap();
        assert!(report.is_success(), "{:?}", report.failures());
        assert_eq!(staff::checked(&table).await.len(), 30);
        let found = table.query::<Staff>().stream().map_ok(|mut staff| {
            staff.skills.pop();
            staff
        });
        assert!(table.bulk().replace(found).await.unwrap().is_success());
        assert_eq!(staff::checked(&table).await.len(), 30);
    }

    async fn parts_of_one_entity_are_written_by_one_batch(subject: Subject) {
        let table = subject.table().await;
        staff::open(&table).await;
        let managers = (1..=40).map(|id| Staff { is_manager: true, ..Staff::new(id, "Ada", &[]) });
        let report = table.bulk().insert(stream::iter(managers)).await.unwrap();
        assert!(report.is_success(), "{:?}", report.failures());
        assert_eq!(report.progress().requests, 1);
        assert_eq!(department(&table).await.manager_name.as_deref(), Some("Ada"));
    }

    async fn more_entries_than_a_batch_has_fail_alone(subject: Subject) {
        let table = subject.table().await;
        let skills: Vec<String> = (0..120).map(|id| format!("Skill {id:03}")).collect();
        let able = Staff { skills, ..Staff::new(2, "Grace", &[]) };
        let input = [Staff::new(1, "Ada", &["Maths"]), able, Staff::new(3, "Alan", &["Welsh"])];
        let report = table.bulk().insert(stream::iter(&input)).await.unwrap();
        let [failure] = report.failures() else { panic!("{report:?}") };
        assert_eq!((failure.index(), failure.error().kind()), (1, ErrorKind::Input));
        assert!(failure.error().to_string().contains("121 with the entries"), "{}", failure.error());
        assert_eq!(staff::checked(&table).await.len(), 2);
    }

    async fn an_enum_with_indexed_variants_is_written_in_bulk(subject: Subject) {
        let table = subject.table().await;
        let department = Department {
            department: "Sales".to_owned(),
            title: "Sales and marketing".to_owned(),
            manager_name: None,
            manager_email: None,
        };
        // The department is stored before the staff that goes into it.
        let rows = [Row::Department(department), Row::Staff(staff::ada())];
        let report = table.bulk().insert(stream::iter(rows)).await.unwrap();
        assert!(report.is_success(), "{:?}", report.failures());
        assert_eq!(staff::checked(&table).await, [staff::ada()]);

        let found = table.query::<Row>().stream().map_ok(|mut row| {
            if let Row::Staff(staff) = &mut *row {
                staff.badge = None;
            }
            row
        });
        let report = table.bulk().replace(found).await.unwrap();
        assert!(report.is_success(), "{:?}", report.failures());
        assert_eq!(staff::checked(&table).await[0].badge, None);
    }
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(by = "row_key")]
enum Row {
    Department(Department),
    Staff(Staff),
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{shelf}", row_key = "book_{id}")]
#[table(index(ByTitle, row_key = "title_{title}_{id}"))]
struct Book {
    shelf: String,
    id: u32,
    title: String,
    text: Vec<u8>,
}

/// A batch has at most 4 MiB, with the entries.
#[tokio::test]
async fn entries_count_for_the_size_of_a_batch() {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Library");
    table.create_table().await.unwrap();
    let books = (0..40).map(|id| Book {
        shelf: "A".to_owned(),
        id,
        title: "Sketch".to_owned(),
        text: vec![7; 60_000],
    });
    let journal = server.journal();
    journal.clear();
    let report = table.bulk().insert(stream::iter(books)).await.unwrap();
    assert!(report.is_success(), "{:?}", report.failures());
    // Each is 80,000 bytes as text, twice. None was refused and sent again.
    assert_eq!(journal.requests().count(), 2);
    assert!(table.repair::<Book>().await.unwrap().is_right());
}

/// The ticket of a batch is one of its 100 changes.
#[tokio::test]
async fn entities_with_a_unique_value_over_partitions_fill_batches() {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Company");
    table.create_table().await.unwrap();
    let email = |id| format!("{id}@contoso.com");
    let all = (0..150).map(|id| unique_over_partitions::employee(id, &email(id)));
    let report = table.bulk().insert(stream::iter(all)).await.unwrap();
    assert!(report.is_success(), "{:?}", report.failures());
    assert_eq!(report.progress().requests, 2);
    unique_over_partitions::exact(&table).await;

    // One of them is taken. The others are written.
    let mut more: Vec<_> = (150..180)
        .map(|id| unique_over_partitions::employee(id, &email(id)))
        .collect();
    more[7].email = Some(email(3));
    let report = table.bulk().insert(stream::iter(&more)).await.unwrap();
    assert_eq!(failures(&report), [(7, "EntityAlreadyExists".to_owned())]);
    assert_eq!(report.failures()[0].error().index(), Some("ByEmail"));
    unique_over_partitions::exact(&table).await;
    let found = table.query::<unique_over_partitions::Employee>();
    assert_eq!(found.count().await.unwrap(), 179);
}

/// `batch_size(1)` sends each entity alone: with entries, that is a batch.
#[tokio::test]
async fn entities_with_entries_are_sent_one_by_one() {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Company");
    table.create_table().await.unwrap();
    let run = table.bulk().insert(stream::iter(employees(0..5)));
    assert_eq!(run.batch_size(1).await.unwrap().progress().requests, 5);
    let found = table.query::<Employee>().stream().map_ok(|mut employee| {
        employee.email = None;
        employee
    });
    let run = table.bulk().replace(found).batch_size(1);
    assert!(run.await.unwrap().is_success());
    let found = table.query::<Employee>().stream().boxed();
    let run = table.bulk().delete_stored(found.take(3)).batch_size(1);
    assert_eq!(run.await.unwrap().progress().written, 3);
    assert_eq!(indexed::checked(&table).await.len(), 2);
}
