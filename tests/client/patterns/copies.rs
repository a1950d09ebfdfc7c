//! Copies of entities: every verb keeps them right, and what cannot be kept right is refused.

use harness::Subject;
use tablesdk::index::CopyOf;
use tablesdk::{DynamicEntity, ErrorKind, TableEntity};

use super::on_both_transports;
use super::staff::{Badge, Department, ManagerOf, Skilled, Staff, ada, checked, department, open};

/// Its tag is not stored. The copy of a topic with capitals is in another partition.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{topic}", row_key = "note_{id}", copy(Tagged))]
struct Note {
    topic: String,
    id: u32,
    #[table(skip)]
    tag: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{topic}", row_key = "tag_{tag}_{id}")]
struct Tagged {
    topic: String,
    tag: String,
    id: u32,
}

impl CopyOf<Note> for Tagged {
    fn copies_of(note: &Note) -> impl IntoIterator<Item = Self> {
        let Note { topic, id, tag } = note.clone();
        let topic = topic.to_lowercase();
        [Self { topic, tag, id }]
    }
}

on_both_transports! {
    async fn every_verb_keeps_the_copies(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Staff { badge: Some(7), ..Staff::new(1, "Ada", &["Maths", "Welsh"]) }).await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
        let maths = table.query::<Skilled>().partition("Sales").rows(Skilled::rows().skill("Maths"));
        assert_eq!(maths.select(|s| s.name).collect().await.unwrap(), ["Ada"]);
        assert_eq!(table.get(Badge::key("Sales", 7)).await.unwrap().unwrap().owner, "Ada");

        // One goes, one stays, one comes, and all that stay have the new name.
        ada.skills = vec!["Welsh".into(), "Rust".into()];
        (ada.name, ada.badge) = ("Ada Lovelace".into(), Some(8));
        table.replace(&mut ada).await.unwrap();
        checked(&table).await;

        let modified = table.modify(Staff::key("Sales", 1), |staff| {
            staff.skills.clear();
            staff.badge = None;
            Ok(())
        });
        modified.await.unwrap();
        checked(&table).await;
        let add = |staff: &mut Staff| {
            staff.skills.push("Cobol".into());
            Ok(())
        };
        let new = || Staff { badge: Some(9), ..Staff::new(2, "Grace", &["Navy"]) };
        table.modify(Staff::key("Sales", 2), add).or_insert(new).await.unwrap();
        let mut staff = checked(&table).await;
        assert_eq!(staff.pop().unwrap().skills, ["Navy", "Cobol"]);

        let mut ada = table.get(Staff::key("Sales", 1)).await.unwrap().unwrap();
        let mut grace = table.get(Staff::key("Sales", 2)).await.unwrap().unwrap();
        ada.badge = grace.badge.take();
        table.batch("Sales").replace(&mut ada).replace(&mut grace).insert(&Staff::new(3, "Alan", &["Maths"])).await.unwrap();
        assert_eq!(checked(&table).await[0].badge, Some(9), "a batch passes a copy on");
        let passed_on = table.transaction("Sales", async |tx| {
            let ada = tx.get(Staff::key("Sales", 1)).await?.ok_or("inserted")?;
            let mut grace = tx.get(Staff::key("Sales", 2)).await?.ok_or("inserted")?;
            grace.badge = ada.badge;
            tx.delete_stored(&ada).replace(grace);
            Ok(())
        });
        passed_on.await.unwrap();
        assert_eq!(checked(&table).await.len(), 2);
        let mut alan = table.get(Staff::key("Sales", 3)).await.unwrap().unwrap();
        alan.skills.push("Running".into());
        table.replace(&mut alan).exactly_once().await.unwrap();
        checked(&table).await;
        let all = table.query::<Staff>().partition("Sales").collect().await.unwrap();
        for staff in &all {
            assert!(table.delete_stored(staff).await.unwrap());
        }
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_part_is_merged_into_its_entity(subject: Subject) {
        let table = subject.table().await;
        open(&table).await;
        let manager = Staff { email: Some("ada@contoso.com".into()), is_manager: true, ..Staff::new(1, "Ada", &[]) };
        let mut ada = table.insert(&manager).await.unwrap();
        let found = department(&table).await;
        assert_eq!((found.manager_name.as_deref(), found.manager_email.as_deref()), (Some("Ada"), Some("ada@contoso.com")));
        // A merge would leave the email.
        ada.email = None;
        table.replace(&mut ada).await.unwrap();
        checked(&table).await;
        assert_eq!(department(&table).await.manager_email, None);
        ada.name = "Lovelace".into();
        table.replace(&mut ada).await.unwrap();
        checked(&table).await;
        ada.email = Some("lovelace@contoso.com".into());
        table.replace(&mut ada).exactly_once().await.unwrap();
        checked(&table).await;
        // It stays until the next manager is written.
        ada.is_manager = false;
        table.replace(&mut ada).await.unwrap();
        table.delete_stored(&ada).await.unwrap();
        assert_eq!(department(&table).await.manager_name.as_deref(), Some("Lovelace"));
        table.insert(&Staff { is_manager: true, ..Staff::new(2, "Grace", &[]) }).await.unwrap();
        checked(&table).await;
        let part = table.get(ManagerOf::key("Sales")).await.unwrap().unwrap().into_inner();
        assert_eq!(part, ManagerOf { department: "Sales".into(), manager_name: "Grace".into(), manager_email: None });
    }

    async fn a_part_without_its_entity_is_refused(subject: Subject) {
        let table = subject.table().await;
        for email in [None, Some("ada@contoso.com".to_owned())] {
            let manager = Staff { email, is_manager: true, ..Staff::new(1, "Ada", &["Maths"]) };
            let error = table.insert(&manager).await.unwrap_err();
            assert_eq!((error.kind(), error.index()), (ErrorKind::Input, Some("ManagerOf")));
            assert!(error.to_string().contains(r#"the copy ManagerOf has no entity ("Sales", "dept_") to go into"#), "{error}");
            let new = table.modify(Staff::key("Sales", 1), |_| Ok(())).or_insert(|| manager.clone()).await.unwrap_err();
            assert_eq!(new.index(), Some("ManagerOf"));
            let batch = table.batch("Sales").insert(&Staff::new(2, "Grace", &[])).insert(&manager).await.unwrap_err();
            assert_eq!((batch.batch_index(), batch.index()), (Some(1), Some("ManagerOf")), "{batch}");
        }
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn what_the_batch_changes_itself_is_no_copy(subject: Subject) {
        let table = subject.table().await;
        open(&table).await;
        let manager = Staff { is_manager: true, ..Staff::new(1, "Ada", &[]) };
        let mut sales = table.get(Department::key("Sales")).await.unwrap().unwrap();
        let error = table.batch("Sales").replace(&mut sales).insert(&manager).await.unwrap_err();
        let message = r#"the copy ManagerOf at "dept_" is an entity that the batch changes, or that the transaction has read"#;
        assert_eq!(error.batch_index(), Some(1));
        assert!(error.to_string().contains(message), "{error}");
        // Its ETag would not be compared.
        let after_read = table.transaction("Sales", async |tx| {
            tx.get(Department::key("Sales")).await?;
            tx.insert(&manager);
            Ok(())
        });
        let error = after_read.await.unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(checked(&table).await, []);
    }

    async fn what_belongs_to_another_source_is_neither_replaced_nor_removed(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Staff { badge: Some(7), ..Staff::new(1, "Ada", &[]) }).await.unwrap();
        // By programs that do not know the copies.
        let grace = DynamicEntity::new("Sales", "staff_000002")
            .with("name", "Grace")
            .with("skills", r#"["Rust"]"#)
            .with("badge", 7)
            .with("is_manager", false);
        table.insert(&grace).await.unwrap();
        table.insert(&DynamicEntity::new("Sales", "skill_Rust_000002").with("Level", 3)).await.unwrap();
        let mut grace = table.get(Staff::key("Sales", 2)).await.unwrap().unwrap();
        grace.name = "Hopper".into();
        table.replace(&mut grace).await.unwrap();
        let owner = async || table.get(Badge::key("Sales", 7)).await.unwrap().unwrap().owner.clone();
        assert_eq!(owner().await, "Ada");
        table.delete_stored(&grace).await.unwrap();
        assert_eq!(owner().await, "Ada");
        let kept = table.get::<DynamicEntity>(("Sales", "skill_Rust_000002")).await.unwrap().unwrap();
        assert_eq!(kept.properties().read::<i32>("Level").unwrap(), 3);
    }

    async fn copies_are_computed_from_what_is_stored(subject: Subject) {
        let table = subject.table().await;
        let mut note = table.insert(&Note { topic: "t".into(), id: 1, tag: "a".into() }).await.unwrap();
        note.tag = "b".into();
        table.replace(&mut note).await.unwrap();
        note.tag = "c".into();
        table.replace(&mut note).await.unwrap();
        let tagged = table.query::<Tagged>().partition("t").collect().await.unwrap();
        assert_eq!(tagged.iter().map(|tagged| tagged.tag.as_str()).collect::<Vec<_>>(), [""]);
        assert!(table.delete_stored(&note).await.unwrap());
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_copy_in_another_partition_is_refused(subject: Subject) {
        let table = subject.table().await;
        let note = Note { topic: "T".into(), id: 1, tag: "a".into() };
        let error = table.insert(&note).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let message = r#"its copy Tagged: it is in the partition "t", and one transaction writes one partition: see the guide `outbox`"#;
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }

    async fn a_copy_that_is_computed_twice_is_one_copy(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Staff::new(1, "Ada", &["Rust", "Rust"])).await.unwrap();
        assert_eq!(table.query::<Skilled>().partition("Sales").count().await.unwrap(), 1);
        ada.skills.pop();
        table.replace(&mut ada).await.unwrap();
        assert_eq!(checked(&table).await.len(), 1);
    }

    async fn two_entities_cannot_have_one_copy(subject: Subject) {
        let table = subject.table().await;
        let with_badge = |id, name| Staff { badge: Some(7), ..Staff::new(id, name, &[]) };
        table.insert(&with_badge(1, "Ada")).await.unwrap();
        let error = table.insert(&with_badge(2, "Grace")).await.unwrap_err();
        assert!(error.is_conflict());
        assert_eq!(error.index(), Some("Badge"));
        assert!(error.to_string().contains(r#"the copy Badge has another entity, ("Sales", "staff_000001"), at "badge_0007""#), "{error}");
        let both = table.batch("Sales").insert(&Staff { badge: Some(8), ..Staff::new(3, "Alan", &[]) }).insert(&Staff { badge: Some(8), ..Staff::new(4, "Kurt", &[]) });
        let error = both.await.unwrap_err();
        assert!(error.to_string().contains(r#"two entities of the batch have one copy Badge, at "badge_0008""#), "{error}");
        assert_eq!(checked(&table).await.len(), 1);
        // An entity of another type is not overwritten.
        table.insert(&DynamicEntity::new("Sales", "skill_Rust_000005").with("Level", 3)).await.unwrap();
        let error = table.insert(&Staff::new(5, "Alonzo", &["Rust"])).await.unwrap_err();
        assert_eq!(error.index(), Some("Skilled"));
        let kept = table.get::<DynamicEntity>(("Sales", "skill_Rust_000005")).await.unwrap().unwrap();
        assert_eq!(kept.properties().read::<i32>("Level").unwrap(), 3);
    }
}

/// Requests of writes: with copies as without, but for those that are read before they are replaced
/// or removed.
#[tokio::test]
async fn a_write_with_copies_costs_a_read_for_each_that_was_stored() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    open(&table).await;
    let journal = subject.server().journal();
    let requests = || {
        let count = journal.requests().count();
        journal.clear();
        count
    };
    let manager = Staff {
        badge: None,
        ..ada()
    };
    let mut ada = table.insert(&manager).await.unwrap();
    assert_eq!(requests(), 1);
    ada.skills.push("Rust".into());
    table.replace(&mut ada).await.unwrap();
    assert_eq!(requests(), 4, "two skills, and the entry of a unique index");
    ada.email = None;
    table.replace(&mut ada).await.unwrap();
    assert_eq!(requests(), 6, "three skills, the entry, and the department");
}
