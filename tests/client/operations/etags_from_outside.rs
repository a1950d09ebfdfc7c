//! Conditional writes with an ETag that did not come with a `Stored`: from the `If-Match` header of a request, for instance.

use tablesdk::{ETag, ErrorCode, ErrorKind, Stored, TableEntity};

use crate::{Employee, on_both_transports};

/// The ETag of a stored entity, as another program sends it.
fn sent_back<E>(stored: &Stored<E>) -> ETag {
    stored.etag().to_string().parse().unwrap()
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
struct Versioned {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(etag)]
    version: Option<ETag>,
}

on_both_transports! {
    async fn replace_if_and_merge_if_return_the_new_etag(subject: Subject) {
        let table = subject.table().await;
        let email = Some("ada@contoso.com".to_owned());
        let read = table.insert(&Employee { email: email.clone(), ..Employee::ada() }).await.unwrap();
        let merged = table.merge_if(&Employee::new("1", "Ada", 37), sent_back(&read)).await.unwrap();
        let found = Employee::find(&table).await.unwrap();
        assert_eq!((found.age, &found.email, found.etag()), (37, &email, &merged));
        let replaced = table.replace_if(&Employee::new("1", "Ada", 38), &merged).await.unwrap();
        let found = Employee::find(&table).await.unwrap();
        assert_eq!((found.age, &found.email, found.etag()), (38, &None, &replaced));
    }

    async fn an_old_etag_from_outside_is_a_failed_precondition(subject: Subject) {
        let table = subject.table().await;
        let old = sent_back(&table.insert(&Employee::ada()).await.unwrap());
        table.upsert_replace(&Employee::new("1", "Ada", 37)).await.unwrap();
        let new = Employee::new("1", "Ada", 38);
        let mut stored = Stored::from_parts(new.clone(), old.clone()).unwrap();
        for error in [
            table.replace_if(&new, &old).await.unwrap_err(),
            table.merge_if(&new, &old).await.unwrap_err(),
            table.delete(Employee::key("Sales", "1")).if_match(&old).await.unwrap_err(),
            table.replace(&mut stored).await.unwrap_err(),
        ] {
            assert!(error.is_precondition_failed(), "{error}");
            assert_eq!(error.code(), Some(&ErrorCode::UpdateConditionNotSatisfied));
        }
        assert_eq!(Employee::find(&table).await.unwrap().age, 37);
    }

    async fn writes_with_an_etag_do_not_insert(subject: Subject) {
        let table = subject.table().await;
        let etag = sent_back(&table.insert(&Employee::ada()).await.unwrap());
        assert!(table.delete(Employee::key("Sales", "1")).if_match(&etag).await.unwrap());
        for error in [
            table.replace_if(&Employee::ada(), &etag).await.unwrap_err(),
            table.merge_if(&Employee::ada(), &etag).await.unwrap_err(),
        ] {
            assert!(error.is_not_found(), "{error}");
        }
        assert!(!table.delete(Employee::key("Sales", "1")).if_match(etag).await.unwrap());
    }

    async fn from_parts_makes_what_replace_takes(subject: Subject) {
        let table = subject.table().await;
        let read = table.insert(&Employee::ada()).await.unwrap();
        let mut ada = Stored::from_parts(Employee::new("1", "Ada", 37), sent_back(&read)).unwrap();
        assert_eq!((ada.key(), ada.timestamp()), (read.key(), read.timestamp()));
        table.replace(&mut ada).await.unwrap();
        assert_eq!(Employee::find(&table).await.unwrap(), ada);
        assert!(table.delete_stored(&ada).await.unwrap());
    }

    async fn batches_take_etags_from_outside(subject: Subject) {
        let table = subject.table().await;
        let mut etags = Vec::new();
        for id in ["1", "2", "3"] {
            etags.push(sent_back(&table.insert(&Employee::new(id, "Old", 1)).await.unwrap()));
        }
        let batch = || {
            table
                .batch("Sales")
                .replace_if(&Employee::new("1", "New", 2), &etags[0])
                .merge_if(&Employee::new("2", "New", 2), &etags[1])
                .delete_if(Employee::key("Sales", "3"), &etags[2])
        };
        let result = batch().await.unwrap();
        let left = table.query::<Employee>().collect().await.unwrap();
        let left: Vec<_> = left.iter().map(|row| (row.name.as_str(), Some(row.etag().clone()))).collect();
        assert_eq!(left, [("New", result.etags()[0].clone()), ("New", result.etags()[1].clone())]);
        let error = batch().await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error}");
        assert_eq!(error.batch_index(), Some(0));
    }
}

#[test]
fn from_parts_computes_the_key_and_refuses_a_bad_one() {
    let etag: ETag = "W/\"1\"".parse().unwrap();
    let error = Stored::from_parts(Employee::new("a/b", "Ada", 1), etag.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(format!("{error:?}").contains("'/'"), "{error:?}");

    let entity = Versioned {
        department: "Sales".into(),
        id: "1".into(),
        version: None,
    };
    let stored = Stored::from_parts(entity, etag.clone()).unwrap();
    assert_eq!(stored.version.as_ref(), Some(&etag));
}

on_both_transports! {
    async fn any_is_the_condition_of_an_entity_that_exists(subject: Subject) {
        let table = subject.table().await;
        let key = || Employee::key("Sales", "1");
        let missing = table.patch(key()).set(|e| e.age, 1).if_match(ETag::ANY).await;
        assert!(missing.unwrap_err().is_not_found());
        assert!(!table.delete(key()).if_match(ETag::ANY).await.unwrap());

        table.insert(&Employee::ada()).await.unwrap();
        table.patch(key()).set(|e| e.age, 1).if_match(ETag::ANY).await.unwrap();
        let batch = table.batch("Sales");
        batch.patch_if(key(), ETag::ANY, |patch| patch.set(|e| e.age, 2)).await.unwrap();
        let change = table.transaction("Sales", async |tx| {
            let ada = tx.get(key()).await?.expect("she works here");
            assert_eq!(ada.age, 2);
            tx.merge_if(&Employee { age: 3, ..Employee::ada() }, ETag::ANY);
            Ok(())
        });
        change.await.unwrap();
        assert_eq!(table.get(key()).await.unwrap().unwrap().age, 3);
        table.batch("Sales").delete_if(key(), ETag::ANY).await.unwrap();
        let missing = table.batch("Sales").delete_if(key(), ETag::ANY).await;
        assert!(missing.unwrap_err().is_not_found());
        table.insert(&Employee::ada()).await.unwrap();
        assert!(table.delete(key()).if_match(ETag::ANY).await.unwrap());
    }
}

#[test]
fn a_value_has_the_etag_of_a_version() {
    let error = Stored::from_parts(Employee::ada(), ETag::ANY).unwrap_err();
    assert_eq!(
        (error.kind(), error.key().is_some()),
        (ErrorKind::Input, true)
    );
    assert!(error.to_string().contains("`replace_if`"), "{error}");
}

#[test]
fn an_if_match_header_is_parsed_or_says_what_to_do() {
    for text in [
        "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"",
        "\"0x8D\"",
    ] {
        assert_eq!(text.parse::<ETag>().unwrap().as_str(), text);
    }
    for (text, message) in [
        ("*", "uses `ETag::ANY`"),
        ("\"1\", \"2\"", "this is a list of several"),
        (
            "0x8D",
            "in double quotes, which belong to it, such as `W/\"datetime'",
        ),
        ("", "in double quotes"),
        ("\"a\nb\"", "cannot contain the character '\\n'"),
    ] {
        let error = text.parse::<ETag>().unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
