//! Keys that other clients broke on: each must reach its own entity, and no other.

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
    async fn every_awkward_key_reaches_its_own_entity(subject: Subject) {
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

    async fn rows_come_in_the_order_of_utf16_units(subject: Subject) {
        let table = subject.table().await;
        for id in ["\u{E000}", "b", "😀", "a", "B", "", "ab", "\u{FFFD}"] {
            table.insert(&Employee::new(id, "", 0)).await.unwrap();
        }
        let rows = table.query::<Employee>().select(|e| e.id).collect().await.unwrap();
        assert_eq!(rows, ["", "B", "a", "ab", "b", "😀", "\u{E000}", "\u{FFFD}"]);
    }
}
