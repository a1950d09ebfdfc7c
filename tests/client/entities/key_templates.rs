//! Keys that are composed of several fields: the stored key, the values that are read back, and the
//! entities of a range.

use tablesdk::{DynamicEntity, TableEntity, WritableEntity};

use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "empid_{id:06}"
)]
struct Worker {
    department: String,
    id: u32,
    salary: f64,
}

/// The message behind the operation and its place.
fn cause(error: &tablesdk::Error) -> String {
    let text = error.to_string();
    let table = error.table().expect(&text);
    let endpoint = error.endpoint().expect("an endpoint").as_str();
    let place = endpoint.trim_start_matches("http://");
    let head = format!(" in {table:?} at {place}");
    let (_, reason) = text.split_once(&head).expect("the place");
    let key = error.key().map(|key| format!(" {key}")).unwrap_or_default();
    reason.trim_start_matches(&format!("{key}: ")).to_owned()
}

fn worker(department: &str, id: u32) -> Worker {
    Worker {
        department: department.to_owned(),
        id,
        salary: 50_000.0 + f64::from(id),
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:04}")]
struct Review {
    department: String,
    employee: String,
    #[table(store, rename = "Year")]
    year: u16,
    rating: i32,
}

fn review(employee: &str, year: u16) -> Review {
    Review {
        department: "Sales".to_owned(),
        employee: employee.to_owned(),
        year,
        rating: 4,
    }
}

on_both_transports! {
    async fn parts_of_a_key_are_stored_in_the_key_only(subject: Subject) {
        let table = subject.table().await;
        let ada = worker("Sales", 223);
        table.insert(&ada).await.unwrap();
        let row = table.get::<DynamicEntity>(("Sales", "empid_000223")).await.unwrap().unwrap();
        let names: Vec<_> = row.properties().iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Salary"]);
        let mut stored = table.get(Worker::key("Sales", 223)).await.unwrap().unwrap();
        assert_eq!(*stored, ada);
        stored.salary += 1.0;
        table.replace(&mut stored).await.unwrap();
        stored.id = 224;
        let error = table.replace(&mut stored).await.unwrap_err();
        assert!(cause(&error).contains("row key changed from \"empid_000223\" to \"empid_000224\""), "{error}");
    }

    async fn an_invalid_key_is_rejected_before_it_is_sent(subject: Subject) {
        let table = subject.table().await;
        for (error, words) in [
            (table.insert(&worker("Sales", 1_000_000)).await.unwrap_err(), "the row key cannot be made as \"empid_{id:06}\": `id`: the value 1000000 is out of range"),
            (table.get(Worker::key("Sales", 1_000_000)).await.unwrap_err(), "`id`: the value 1000000 is out of range"),
            (table.insert(&worker("a/b", 1)).await.unwrap_err(), "partition key \"a/b\": the character '/'"),
            (table.insert(&review("a_b", 2024)).await.unwrap_err(), "`employee`: the value cannot be stored: \"a_b\" contains the separator \"_\" that ends it; in a template, `{field:escaped}` takes any string"),
            (table.query::<Worker>().partition("Sales").rows(Worker::rows().id(1_000_000..)).collect().await.unwrap_err(), "the value 1000000 is out of range"),
            (table.query::<Review>().partition("Sales").rows(Review::rows().employee("a".."b")).collect().await.unwrap_err(), "`employee`: the value cannot be stored: it is of variable width and not the last part"),
        ] {
            assert_eq!(error.kind(), tablesdk::ErrorKind::Input, "{error}");
            assert!(cause(&error).contains(words), "{error}");
        }
    }

    async fn a_key_of_another_template_names_both(subject: Subject) {
        let table = subject.table().await;
        for row_key in ["", "empid_", "empid_00022", "empid_0002233", "empid_00022x", "empid_+00223", "000223", "EMPID_000223"] {
            let row = DynamicEntity::new("Sales", row_key).with("Salary", 1.0);
            table.upsert_replace(&row).await.unwrap();
            let error = table.get::<Worker>(("Sales", row_key)).await.unwrap_err();
            let words = format!("the row key {row_key:?} cannot be read as \"empid_{{id:06}}\": ");
            assert!(cause(&error).contains(&words), "{error}");
        }
    }

    async fn a_range_of_row_keys_finds_its_values(subject: Subject) {
        let table = subject.table().await;
        for id in [0, 99, 100, 150, 199, 200, 999_999] {
            table.insert(&worker("Sales", id)).await.unwrap();
            table.insert(&worker("Service", id)).await.unwrap();
        }
        table.insert(&DynamicEntity::new("Sales", "dept").with("Salary", 1.0)).await.unwrap();
        for (rows, ids) in [
            (Worker::rows().id(100..=199), &[100, 150, 199][..]),
            (Worker::rows().id(150).into(), &[150]),
            (Worker::rows().id(151).into(), &[]),
            (Worker::rows().into(), &[0, 99, 100, 150, 199, 200, 999_999]),
        ] {
            let query = table.query::<Worker>().partition(Worker::partition("Sales")).rows(rows);
            assert_eq!(query.select(|e| e.id).collect().await.unwrap(), ids);
        }
    }

    async fn a_separator_ends_a_part_unambiguously(subject: Subject) {
        let table = subject.table().await;
        for (employee, year) in [("ann", 2023), ("ann", 2024), ("anna", 2024), ("an", 2022), ("", 2024)] {
            table.insert(&review(employee, year)).await.unwrap();
        }
        let years = |rows| {
            let query = table.query::<Review>().partition("Sales").rows(rows);
            async move { query.select(|e| (e.employee, e.year)).collect().await.unwrap() }
        };
        let of = |employee: &str, year| (employee.to_owned(), year);
        assert_eq!(years(Review::rows().employee("ann").into()).await, [of("ann", 2023), of("ann", 2024)]);
        assert_eq!(years(Review::rows().employee("").into()).await, [of("", 2024)]);
        assert_eq!(years(Review::rows().employee("ann").year(2024..)).await, [of("ann", 2024)]);
        assert_eq!(years(Review::rows().employee("ann").year(2024).into()).await, [of("ann", 2024)]);
    }

    async fn a_stored_part_is_a_column_and_equals_the_key(subject: Subject) {
        let table = subject.table().await;
        table.insert(&review("ann", 2023)).await.unwrap();
        table.insert(&review("bob", 2024)).await.unwrap();
        let filter = Review::columns().year.ge(2024);
        assert_eq!(filter.to_string(), "Year ge 2024");
        let found = table.query::<Review>().filter(|e| e.year.ge(2024)).collect().await.unwrap();
        assert_eq!(found.len(), 1);
        let error = table.patch(Review::key("Sales", "ann", 2023)).set(|e| e.year, 2025).await.unwrap_err();
        assert!(cause(&error).contains("Year"), "{error}");

        let row = DynamicEntity::new("Sales", "cy_2020").with("Year", 1999).with("rating", 1);
        table.insert(&row).await.unwrap();
        let read = table.get(Review::key("Sales", "cy", 2020)).await.unwrap().unwrap();
        assert_eq!(read.year, 2020);
        assert_eq!(read.entity_key().unwrap(), *read.key());
    }
}
