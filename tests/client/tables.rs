//! Creating, listing and deleting tables.

use tablesdk::ErrorCode;

use crate::{Employee, on_both_transports};

on_both_transports! {
    async fn a_table_is_created_once(subject: Subject) {
        let table = subject.service.table("People");
        assert!(table.create().if_missing().await.unwrap());
        assert!(!table.create().if_missing().await.unwrap());
        let error = subject.service.table("PEOPLE").create().await.unwrap_err();
        assert_eq!(error.code(), Some(&ErrorCode::TableAlreadyExists));
    }

    async fn a_deleted_table_is_gone_with_its_rows(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::new("1", "Ada", 36)).await.unwrap();
        assert!(table.delete_table().await.unwrap());
        assert!(!table.delete_table().await.unwrap());
        table.create().await.unwrap();
        assert!(table.query::<Employee>().collect().await.unwrap().is_empty());
    }

    async fn tables_are_listed_by_prefix_in_order(subject: Subject) {
        for name in ["beta", "Alpha2", "alpha1", "alpha3"] {
            subject.service.table(name).create().await.unwrap();
        }
        let all = subject.service.tables().collect().await.unwrap();
        assert_eq!(all, ["alpha1", "Alpha2", "alpha3", "beta"]);
        let some = subject.service.tables().starting_with("alpha").collect().await.unwrap();
        assert_eq!(some, ["alpha1", "alpha3"]);
    }

    async fn names_of_tables_ignore_case(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::new("1", "Ada", 36)).await.unwrap();
        let same = subject.service.table("TESTS");
        assert!(same.get(Employee::key("Sales", "1")).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn more_tables_than_a_page_are_all_listed() {
    let subject = harness::Subject::in_process();
    for index in 0..1001 {
        subject
            .service
            .table(format!("table{index:04}"))
            .create()
            .await
            .unwrap();
    }
    assert_eq!(
        subject.service.tables().collect().await.unwrap().len(),
        1001
    );
}
