//! Indexes in the partition of their entities: every verb keeps the entries right.

use harness::company::indexed::{ByEmail, ByName, Employee, checked, rows};
use tablesdk::{DynamicEntity, ETag, ErrorKind, TableClient};

use super::on_both_transports;

async fn ada(table: &TableClient) -> tablesdk::Stored<Employee> {
    let ada = Employee::new(1, "Lovelace", Some("ada@contoso.com"));
    table.insert(&ada).await.expect("it is new")
}

on_both_transports! {
    async fn every_verb_keeps_the_entries(subject: Subject) {
        let table = subject.table().await;
        let mut stored = ada(&table).await;
        table.insert(&Employee::new(2, "Hopper", None)).await.unwrap();
        assert_eq!(checked(&table).await.len(), 2);
        assert_eq!(rows(&table).await.len(), 5, "an employee without an email has no entry for it");
        let (ada, lovelace) = (Some("ada@contoso.com"), Some("lovelace@contoso.com"));
        for (last_name, age, email) in [("Lovelace", 36, lovelace), ("King", 37, lovelace), ("King", 37, None), ("King", 37, ada)] {
            *stored = Employee { age, ..Employee::new(1, last_name, email) };
            table.replace(&mut stored).await.unwrap();
            assert_eq!(checked(&table).await[0], *stored);
        }
        let modified = table.modify(Employee::key("Sales", 1), |e| {
            e.last_name = "Byron".into();
            e.email = None;
            Ok(())
        });
        let modified = modified.await.unwrap();
        assert_eq!(checked(&table).await[0], modified.into_inner());

        // What was read can be replaced and deleted, too.
        let mut read = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
        read.email = Some("countess@contoso.com".to_owned());
        table.replace(&mut read).exactly_once().await.unwrap();
        checked(&table).await;
        for listed in table.query::<Employee>().partition("Sales").collect().await.unwrap() {
            assert!(table.delete_stored(&listed).await.unwrap());
            assert!(!table.delete_stored(&listed).await.unwrap());
            checked(&table).await;
        }
        let new = Employee::new(3, "Turing", Some("alan@contoso.com"));
        let new = table.insert(&new).exactly_once().await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        assert!(table.delete_stored(&new).exactly_once().await.unwrap());
        assert!(rows(&table).await.is_empty());
    }

    async fn an_entry_is_found_by_its_key_and_range(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        table.insert(&Employee::new(2, "Hopper", Some("grace@contoso.com"))).await.unwrap();
        table.insert(&Employee::new(3, "Hopper", None)).await.unwrap();

        let found = table.get(ByEmail::key("Sales", "ada@contoso.com")).await.unwrap().unwrap();
        assert_eq!((found.id, found.email.as_str(), found.age), (1, "ada@contoso.com", 36));
        assert!(table.get(ByEmail::key("Sales", "alan@contoso.com")).await.unwrap().is_none());

        let hoppers = table.query::<ByName>().partition("Sales").rows(ByName::rows().last_name("Hopper"));
        let ids = hoppers.select(|e| e.id).collect().await.unwrap();
        assert_eq!(ids, [2, 3]);
        let emails = table.query::<ByEmail>().partition("Sales").filter(|e| e.age.gt(30));
        assert_eq!(emails.count().await.unwrap(), 2);
        assert_eq!(table.query::<Employee>().count().await.unwrap(), 3, "entries are not employees");
    }

    async fn an_entry_leads_to_its_entity(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        let key = || ByEmail::key("Sales", "ada@contoso.com");
        let mut followed = table.get(key()).follow().await.unwrap().unwrap();
        followed.email = None;
        table.replace(&mut followed).await.unwrap();
        assert!(table.get(key()).follow().await.unwrap().is_none());
        let by_name = table.get(ByName::key("Sales", 1, "Lovelace")).follow().await.unwrap();
        assert_eq!(by_name, Some(followed));
    }

    async fn a_query_of_entries_leads_to_their_entities(subject: Subject) {
        let table = subject.table().await;
        for id in 1..=30 {
            table.insert(&Employee::new(id, "Doe", Some(&format!("{id:02}@contoso.com")))).await.unwrap();
        }
        // By a program that does not know the index.
        table.delete(("Sales", "empid_000007")).await.unwrap();
        let range = ByEmail::rows().email("05@".."11@");
        let found = table.query::<ByEmail>().partition("Sales").rows(range).page_size(3).follow().collect().await.unwrap();
        let ids: Vec<u32> = found.iter().map(|employee| employee.id).collect();
        assert_eq!(ids, [5, 6, 8, 9, 10]);
        for mut employee in found {
            employee.email = None;
            table.replace(&mut employee).await.unwrap();
        }
        let left = table.query::<ByEmail>().partition("Sales").follow().collect().await.unwrap();
        assert_eq!(left.len(), 24);
    }

    async fn modify_or_insert_is_an_upsert_with_entries(subject: Subject) {
        let table = subject.table().await;
        let upsert = |email: &'static str| {
            let set = move |e: &mut Employee| {
                e.email = Some(email.to_owned());
                Ok(())
            };
            table.modify(Employee::key("Sales", 1), set).or_insert(|| Employee::new(1, "Lovelace", None))
        };
        upsert("ada@contoso.com").await.unwrap();
        checked(&table).await;
        upsert("lovelace@contoso.com").await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        table.insert(&Employee::new(2, "Byron", Some("byron@contoso.com"))).await.unwrap();
        let error = upsert("byron@contoso.com").await.unwrap_err();
        assert_eq!((error.index(), error.operation()), (Some("ByEmail"), Some("modify entity")));
        let taken = table.modify(Employee::key("Sales", 3), |e| {
            e.email = Some("byron@contoso.com".into());
            Ok(())
        });
        let error = taken.or_insert(|| Employee::new(3, "King", None)).await.unwrap_err();
        assert_eq!(error.index(), Some("ByEmail"));
        assert_eq!(checked(&table).await.len(), 2);
    }

    async fn an_entry_without_its_entity_leads_nowhere(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        // By a program that does not know the index.
        let merged = DynamicEntity::new("Sales", "empid_000001").with("Email", "other@contoso.com");
        table.merge_if(&merged, ETag::ANY).await.unwrap();
        assert!(table.get(ByEmail::key("Sales", "ada@contoso.com")).follow().await.unwrap().is_none());
        table.delete(("Sales", "empid_000001")).await.unwrap();
        assert!(table.get(ByName::key("Sales", 1, "Lovelace")).follow().await.unwrap().is_none());
    }

    async fn a_second_owner_is_a_conflict_that_names_the_index(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        let before = rows(&table).await;
        let error = table.insert(&Employee::new(2, "Byron", Some("ada@contoso.com"))).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(error.index(), Some("ByEmail"));
        assert_eq!(error.key().unwrap().row_key().as_str(), "empid_000002");
        let text = error.to_string();
        assert!(text.contains(r#"the index ByEmail has another entity, ("Sales", "empid_000001"), at "email_ada@contoso.com""#), "{text}");
        assert_eq!(rows(&table).await, before);

        let mut byron = table.insert(&Employee::new(2, "Byron", None)).await.unwrap();
        byron.email = Some("ada@contoso.com".to_owned());
        let error = table.replace(&mut byron).await.unwrap_err();
        assert_eq!(error.index(), Some("ByEmail"));
        checked(&table).await;

        // The entity itself is the conflict.
        let error = table.insert(&Employee::new(1, "Byron", None)).await.unwrap_err();
        assert!(error.is_conflict() && error.index().is_none(), "{error}");
    }

    async fn entries_that_were_left_behind_are_taken_over(subject: Subject) {
        let table = subject.table().await;
        let stored = ada(&table).await;
        // By a program that does not know the index.
        table.delete(("Sales", "empid_000001")).await.unwrap();
        table.insert(&Employee::new(2, "Byron", Some("ada@contoso.com"))).await.unwrap();
        // The entry by name has its own key.
        table.delete(("Sales", "name_Lovelace_000001")).await.unwrap();
        checked(&table).await;

        let error = table.insert(&*stored).await.unwrap_err();
        assert_eq!(error.index(), Some("ByEmail"));
        let again = Employee::new(1, "Lovelace", None);
        let mut stored = table.insert(&again).await.unwrap();
        table.delete(("Sales", "name_Lovelace_000001")).await.unwrap();
        // A missing entry is written again, or is already removed.
        table.replace(&mut stored).await.unwrap();
        checked(&table).await;
        table.delete(("Sales", "name_Lovelace_000001")).await.unwrap();
        assert!(table.delete_stored(&stored).await.unwrap());
        checked(&table).await;
    }

    async fn the_entry_of_another_entity_is_left_alone(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        // Both had the email before there was an index.
        let byron = DynamicEntity::new("Sales", "empid_000002")
            .with("LastName", "Byron").with("Email", "ada@contoso.com").with("Age", 30);
        table.insert(&byron).await.unwrap();
        let mut byron = table.get(Employee::key("Sales", 2)).await.unwrap().unwrap();
        byron.age = 31;
        table.replace(&mut byron).await.unwrap();
        let owner = table.get(ByEmail::key("Sales", "ada@contoso.com")).await.unwrap().unwrap();
        assert_eq!(owner.id, 1);
        assert!(table.delete_stored(&byron).await.unwrap());
        checked(&table).await;
    }

    async fn a_batch_counts_the_entries(subject: Subject) {
        let table = subject.table().await;
        let mut first = ada(&table).await;
        let second = table.insert(&Employee::new(2, "Hopper", Some("grace@contoso.com"))).await.unwrap();
        first.age += 1;
        let result = table
            .batch("Sales")
            .replace(&mut first)
            .delete_stored(&second)
            .insert(&Employee::new(3, "Turing", Some("alan@contoso.com")))
            .await
            .unwrap();
        assert_eq!(result.etags().len(), 3);
        assert_eq!(result.etags()[0].as_ref(), Some(first.etag()));
        assert_eq!(checked(&table).await.len(), 2);
        table.replace(&mut first).await.unwrap();

        let batch = |count: u32| {
            let employees = (10..10 + count).map(|id| Employee::new(id, "Doe", Some(&format!("{id}@contoso.com"))));
            employees.fold(table.batch("Sales"), |batch, employee| batch.insert(&employee))
        };
        let error = batch(34).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("at most 100 changes, and these 34 are 102 with the entries"), "{error}");
        batch(33).await.unwrap();
        assert_eq!(checked(&table).await.len(), 35);
        let error = table.batch("Sales").insert(&Employee::new(50, "X", None)).insert(&Employee::new(51, "Doe", Some("12@contoso.com"))).await.unwrap_err();
        assert_eq!((error.batch_index(), error.index()), (Some(1), Some("ByEmail")));
        assert!(error.to_string().starts_with("change 2 of 2: insert entity"), "{error}");
    }

    async fn a_batch_passes_an_entry_on(subject: Subject) {
        let table = subject.table().await;
        let mut first = ada(&table).await;
        first.email = None;
        let second = Employee::new(2, "Byron", Some("ada@contoso.com"));
        table.batch("Sales").insert(&second).replace(&mut first).await.unwrap();
        checked(&table).await;
        let mut second = table.get(Employee::key("Sales", 2)).await.unwrap().unwrap();
        (first.email, second.email) = (second.email.clone(), Some("byron@contoso.com".to_owned()));
        table.batch("Sales").replace(&mut first).replace(&mut second).await.unwrap();
        checked(&table).await;

        let same = |id| Employee::new(id, "Same", Some("same@contoso.com"));
        let error = table.batch("Sales").insert(&same(7)).insert(&same(8)).await.unwrap_err();
        assert_eq!((error.kind(), error.batch_index()), (ErrorKind::Input, Some(1)));
        assert!(error.to_string().contains("two entities of the batch have one entry in the index ByEmail"), "{error}");
    }

    async fn a_transaction_keeps_the_entries(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        let moved = table.transaction("Sales", async |tx| {
            let mut ada = tx.get(Employee::key("Sales", 1)).await?.ok_or("she works here")?;
            let email = ada.email.take();
            tx.replace(ada).insert(&Employee { email, ..Employee::new(2, "Byron", None) });
            Ok(())
        });
        moved.await.unwrap();
        assert_eq!(checked(&table).await.len(), 2);
        let removed = table.transaction("Sales", async |tx| {
            let byron = tx.get(Employee::key("Sales", 2)).await?.ok_or("he works here")?;
            tx.delete_stored(&byron);
            Ok(())
        });
        removed.await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        let taken = table.transaction("Sales", async |tx| {
            assert!(tx.get(Employee::key("Sales", 3)).await?.is_none());
            tx.insert(&Employee::new(3, "Lovelace", Some("x@contoso.com")));
            tx.insert(&Employee::new(4, "Lovelace", Some("y@contoso.com")));
            Ok(())
        });
        taken.await.unwrap();
        assert_eq!(checked(&table).await.len(), 3);
    }

    async fn a_transaction_that_only_reads_the_owner_does_not_take_its_entry(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        let taken = table.transaction("Sales", async |tx| {
            let ada = tx.get(Employee::key("Sales", 1)).await?.ok_or("she works here")?;
            tx.insert(&Employee { email: ada.email.clone(), ..Employee::new(2, "Byron", None) });
            Ok(())
        });
        assert_eq!(taken.await.unwrap_err().index(), Some("ByEmail"));
        checked(&table).await;

        // So does a change that does not know the index.
        let batch = table.batch("Sales");
        let batch = batch.merge_if(&DynamicEntity::new("Sales", "empid_000001").with("LastName", "Lovelace"), ETag::ANY);
        let taken = batch.insert(&Employee::new(2, "Byron", Some("ada@contoso.com"))).await;
        assert_eq!(taken.unwrap_err().index(), Some("ByEmail"));
        checked(&table).await;
    }

    async fn a_transaction_may_find_its_entity_by_an_entry(subject: Subject) {
        let table = subject.table().await;
        ada(&table).await;
        let key = || ByEmail::key("Sales", "ada@contoso.com");
        let rename = async |email: &'static str| {
            let renamed = table.transaction("Sales", async |tx| {
                let entry = tx.get(key()).await?.ok_or("she has an email")?;
                let mut ada = tx.get(Employee::key("Sales", entry.id)).await?.ok_or("she works here")?;
                (ada.age, ada.email) = (ada.age + 1, Some(email.to_owned()));
                tx.replace(ada);
                Ok(())
            });
            renamed.await
        };
        rename("ada@contoso.com").await.unwrap();
        checked(&table).await;
        rename("lovelace@contoso.com").await.unwrap();
        assert_eq!(checked(&table).await[0].age, 38);
    }

    async fn a_delete_needs_the_version_whose_entries_it_deletes(subject: Subject) {
        let table = subject.table().await;
        let old = ada(&table).await;
        let mut new = old.clone();
        new.email = Some("lovelace@contoso.com".to_owned());
        table.replace(&mut new).await.unwrap();
        let error = table.delete_stored(&old).if_match(new.etag()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("the ETag is not that of the entity that was read"), "{error}");
        assert!(table.delete_stored(&new).if_match(new.etag()).await.unwrap());
        checked(&table).await;
    }

    async fn an_entry_that_cannot_be_written_is_refused_before_anything_is_sent(subject: Subject) {
        let table = subject.table().await;
        let error = table.insert(&Employee::new(1, "Lovelace", Some("a/b"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("its entry in the index ByEmail: "), "{error}");
        assert_eq!(error.attempts(), 0);
        assert!(rows(&table).await.is_empty());
    }
}
