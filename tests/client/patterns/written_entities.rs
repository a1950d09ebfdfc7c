//! The entities that a batch or a transaction has written, of types with patterns: what goes along
//! with them is not among the results, and they can be written again.

use harness::company::indexed::{Employee, checked};
use tablesdk::encryption::{Keyring, LocalKey};
use tablesdk::outbox::Step;
use tablesdk::{TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

use super::on_both_transports;
use super::outbox::{company, title};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{ward}", row_key = "{id}")]
struct Patient {
    ward: String,
    id: String,
    #[table(encrypt(eq))]
    name: String,
}

fn ada() -> Employee {
    Employee::new(1, "Lovelace", Some("ada@contoso.com"))
}

/// Gives the employee another email: the old entry goes only if the version is known to have it.
async fn write_again(table: &TableClient, mut ada: tablesdk::Stored<Employee>) {
    ada.email = Some("countess@contoso.com".to_owned());
    table.replace(&mut ada).await.unwrap();
    assert_eq!(checked(table).await[0], *ada);
}

on_both_transports! {
    async fn entries_are_not_among_the_results(subject: Subject) {
        let table = subject.table().await;
        let hopper = Employee::new(2, "Hopper", Some("grace@contoso.com"));
        let hire = table.transaction("Sales", async |tx| {
            tx.insert(&ada()).insert(&hopper);
            Ok(())
        });
        let ((), result) = hire.with_etags().await.unwrap();
        assert_eq!(result.etags().len(), 2);
        let written = result.stored(Employee::key("Sales", 1)).unwrap().unwrap();
        assert_eq!(*written, ada());
        write_again(&table, written).await;

        let mut hopper = result.stored(Employee::key("Sales", 2)).unwrap().unwrap();
        hopper.email = None;
        let result = table.batch("Sales").replace(&mut hopper).exactly_once().await.unwrap();
        let mut hopper = result.stored(Employee::key("Sales", 2)).unwrap().unwrap();
        hopper.age = 37;
        table.replace(&mut hopper).await.unwrap();
        assert_eq!(checked(&table).await[1], *hopper);
    }
}

#[tokio::test]
async fn steps_are_not_among_the_results_even_if_the_response_was_lost() {
    let (server, table, titles) = company().await;
    for fault in [None, Some(Fault::lost_response()), Some(Fault::duplicate())] {
        let rule = fault.map(|fault| server.faults().on(Op::Batch).nth(1).inject(fault));
        let hire = table.transaction("Sales", async |tx| {
            tx.insert(&ada())
                .step(Step::upsert_replace(&titles, &title("a")));
            Ok(())
        });
        let ((), result) = hire.with_etags().await.unwrap();
        assert_eq!(result.etags().len(), 1);
        let written = result.stored(Employee::key("Sales", 1)).unwrap().unwrap();
        let read = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        assert_eq!(written, read);
        assert!(table.delete_stored(&written).await.unwrap());
        drop(rule);
    }
}

/// The request is encrypted; the result has the values.
#[tokio::test]
async fn encrypted_fields_are_those_of_the_program() {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Patients");
    table.create_table().await.unwrap();
    let table = table.with_encryption(Keyring::new(LocalKey::new("2024-01", [7; 32])));
    let patient = Patient {
        ward: "North".to_owned(),
        id: "1".to_owned(),
        name: "Wilhelmina".to_owned(),
    };
    let result = table.batch("North").insert(&patient).await.unwrap();
    let mut written = result.stored(Patient::key("North", "1")).unwrap().unwrap();
    assert_eq!(*written, patient);
    assert!(!format!("{result:?}").contains("Wilhelmina"), "{result:?}");
    written.name = "Florence".to_owned();
    table.replace(&mut written).await.unwrap();
    let found = table.query::<Patient>().partition("North");
    let found = found.filter(|e| e.name.eq("Florence"));
    assert_eq!(found.count().await.unwrap(), 1);
}
