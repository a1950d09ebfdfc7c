//! Keys that other clients fail on: each key must address its own entity, and no other.

use crate::{Employee, on_both_transports};

const AWKWARD: [&str; 20] = [
    "",
    " ",
    "O'Brien",
    "''",
    "',RowKey='1",
    "a,b",
    "a(b)",
    "a=b&c=d",
    "100%",
    "%27",
    "%2F",
    "a+b",
    "a b",
    "..",
    "\"quoted\"",
    "@:$!*;{}[]|^~`<>",
    "café",
    "cafe\u{301}",
    "😀",
    "\u{FFFD}\u{E000}",
];

on_both_transports! {
    async fn unusual_keys_address_their_own_entities(subject: Subject) {
        let table = subject.table().await;
        for (index, key) in AWKWARD.iter().enumerate() {
            for (department, id) in [(*key, "r"), ("p", *key), (*key, *key)] {
                let age = i32::try_from(index).unwrap();
                let employee = Employee { department: department.to_owned(), ..Employee::new(id, key, age) };
                table.insert(&employee).await.unwrap_or_else(|error| panic!("{key:?}: {error:?}"));
            }
        }
        for (index, key) in AWKWARD.iter().enumerate() {
            for (department, id) in [(*key, "r"), ("p", *key), (*key, *key)] {
                let mut read = table.get(Employee::key(department, id)).await.unwrap().unwrap();
                assert_eq!((read.department.as_str(), read.id.as_str()), (department, id));
                assert_eq!(read.age, i32::try_from(index).unwrap(), "{key:?}");
                read.age = -1;
                table.replace(&mut read).await.unwrap();
            }
            let found = table.query::<Employee>().partition(*key).filter(|e| e.id.eq(*key)).collect().await.unwrap();
            assert_eq!(found.len(), 1, "{key:?}");
            assert!(table.delete((*key, *key)).await.unwrap());
            assert!(!table.delete((*key, *key)).await.unwrap());
            assert!(table.get(Employee::key(*key, "r")).await.unwrap().is_some(), "{key:?}");
        }
    }

    async fn unusual_keys_work_in_batches(subject: Subject) {
        let table = subject.table().await;
        for key in AWKWARD {
            let new = |id: &str, age| Employee { department: key.to_owned(), ..Employee::new(id, key, age) };
            let mut row = table.insert(&new(key, 1)).await.unwrap();
            row.age = 2;
            let batch = table.batch(key).replace(&mut row).upsert_replace(&new("1", 3));
            batch.insert(&new("2", 4)).await.unwrap();
            let found = table.query::<Employee>().partition(key).select(|e| (e.id, e.age)).collect().await.unwrap();
            let mut expected = [("1".to_owned(), 3), ("2".to_owned(), 4), (key.to_owned(), 2)];
            expected.sort();
            assert_eq!(found, expected, "{key:?}");
            table.batch(key).delete_stored(&row).delete((key, "2")).await.unwrap();
            assert_eq!(table.query::<Employee>().partition(key).count().await.unwrap(), 1, "{key:?}");
        }
    }

    async fn entities_are_ordered_by_utf16_units(subject: Subject) {
        let table = subject.table().await;
        for id in ["\u{E000}", "b", "😀", "a", "B", "", "ab", "\u{FFFD}"] {
            table.insert(&Employee::new(id, "", 0)).await.unwrap();
        }
        let rows = table.query::<Employee>().select(|e| e.id).collect().await.unwrap();
        assert_eq!(rows, ["", "B", "a", "ab", "b", "😀", "\u{E000}", "\u{FFFD}"]);
    }
}
