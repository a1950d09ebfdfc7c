//! Each operation with encrypted properties.

use futures::stream;
use tablesdk::encryption::Keyring;
use tablesdk::{DynamicEntity, ETag, ErrorKind, Stored, TableClient, TableEntity, Value};

use super::{
    EMAIL, Patient, binary, february, get, insert, january, keyring, start, stored, tables,
    with_email,
};
use crate::on_both_transports;

/// The value under each key, read in every way.
async fn assert_is(table: &TableClient, expected: &Patient) {
    assert_eq!(get(table, &expected.id).await, *expected);
    let of_ward = || table.query::<Patient>().partition("Ward");
    let found = of_ward().filter(|p| p.email.eq(&expected.email));
    let found = found.values().one().await.unwrap();
    assert_eq!(found.as_ref(), Some(expected));
    let columns = of_ward().rows(Patient::rows().id(&expected.id));
    let columns = columns.select(|p| (p.name, p.born, p.email)).one().await;
    let Patient {
        name, born, email, ..
    } = expected.clone();
    assert_eq!(columns.unwrap(), Some((name.clone(), born, email)));
    // A request for one entity, whose keys are not in the response.
    let point = table.query::<Patient>();
    let point = point.filter(|p| p.department.eq("Ward") & p.id.eq(&expected.id));
    assert_eq!(point.select(|p| p.name).one().await.unwrap(), Some(name));
    let read = table.transaction("Ward", async |tx| {
        Ok(tx.get(Patient::key("Ward", &expected.id)).await?)
    });
    let read = read.await.unwrap().map(Stored::into_inner);
    assert_eq!(read.as_ref(), Some(expected));
}

#[derive(Debug, TableEntity)]
#[table(projection, rename_all = "PascalCase")]
struct Contact {
    #[table(row_key)]
    id: String,
    #[table(encrypt(eq))]
    email: String,
}

on_both_transports! {
    async fn values_are_stored_as_bytes_and_read_as_they_were(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        let ada = Patient::ada();
        let inserted = table.insert(&ada).await.unwrap();
        assert_eq!(*inserted, ada);
        assert_is(&table, &ada).await;
        let stored = stored(&raw, "1").await;
        let names: Vec<_> = stored.properties().iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names.len(), 5, "{names:?}");
        // 46 bytes, the type, and the value.
        assert_eq!(binary(&stored, "Name").len(), 46 + 1 + "Ada Lovelace".len());
        assert_eq!(binary(&stored, "Born").len(), 46 + 1 + 4);
        assert_eq!(binary(&stored, "Email__eq").len(), 32);
        assert_eq!(stored.properties().get("Visits"), Some(&Value::Int64(1)));
        // Equal values have different bytes.
        insert(&table, [2]).await;
        let other = super::stored(&raw, "2").await;
        assert_ne!(binary(&stored, "Name"), binary(&other, "Name"));
        assert_eq!(binary(&stored, "Email__eq"), binary(&other, "Email__eq"));
    }

    async fn each_write_encrypts_what_it_sends(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        let key = || Patient::key("Ward", "1");
        let mut ada = Patient::ada();
        table.upsert_replace(&ada).await.unwrap();
        assert_is(&table, &ada).await;
        // A merge of one property leaves the bytes of the others.
        let before = stored(&raw, "1").await;
        "Ada King".clone_into(&mut ada.name);
        table.patch(key()).set(|p| p.name, "Ada King").await.unwrap();
        assert_is(&table, &ada).await;
        let after = stored(&raw, "1").await;
        assert_eq!(binary(&before, "Email"), binary(&after, "Email"));
        assert_ne!(binary(&before, "Name"), binary(&after, "Name"));

        let mut found = table.get(key()).tracked().await.unwrap().unwrap();
        "ada@fabrikam.com".clone_into(&mut found.email);
        table.merge(&mut found).changed_only().await.unwrap();
        ada.email.clone_from(&found.email);
        assert_is(&table, &ada).await;
        let merged = stored(&raw, "1").await;
        assert_eq!(binary(&after, "Name"), binary(&merged, "Name"));
        assert_ne!(binary(&after, "Email__eq"), binary(&merged, "Email__eq"));
        // Nothing differs, so nothing is sent.
        let etag = found.etag().clone();
        table.merge(&mut found).changed_only().await.unwrap();
        assert_eq!(*found.etag(), etag);
        // A value that became `None` is removed.
        found.born = None;
        table.merge(&mut found).changed_only().await.unwrap();
        ada.born = None;
        assert_is(&table, &ada).await;

        let modified = table.modify(key(), |p| {
            p.visits += 1;
            "ada@contoso.com".clone_into(&mut p.email);
            Ok(())
        });
        ada = modified.exactly_once().await.unwrap().into_inner();
        assert_eq!((ada.visits, ada.email.as_str()), (2, "ada@contoso.com"));
        assert_is(&table, &ada).await;
        assert_eq!(stored(&raw, "1").await.properties().iter().count(), 4);

        let mut found = table.get(key()).await.unwrap().unwrap();
        found.born = Some(1816);
        table.replace(&mut found).await.unwrap();
        found.visits = 3;
        table.merge(&mut found).exactly_once().await.unwrap();
        ada = found.into_inner();
        assert_is(&table, &ada).await;
        table.merge_if(&ada, ETag::ANY).await.unwrap();
        table.replace_if(&ada, ETag::ANY).await.unwrap();
        assert_is(&table, &ada).await;
    }

    async fn batches_and_transactions_encrypt_each_entity(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        let (ada, bob) = (Patient::ada(), Patient::new("2", "bob@contoso.com"));
        table.batch("Ward").insert(&ada).upsert_merge(&bob).exactly_once().await.unwrap();
        assert_is(&table, &ada).await;
        assert_is(&table, &bob).await;
        table.batch("Ward").patch(Patient::key("Ward", "2"), |p| p.set(|p| p.born, 1900)).await.unwrap();
        let renamed = table.transaction("Ward", async |tx| {
            let mut bob = tx.get(Patient::key("Ward", "2")).await?.ok_or("no Bob")?;
            assert_eq!(bob.born, Some(1900));
            "Bob".clone_into(&mut bob.name);
            tx.replace(bob).upsert_replace(&Patient::new("3", "eve@contoso.com"));
            Ok(())
        });
        renamed.await.unwrap();
        let bob = Patient { name: "Bob".to_owned(), born: Some(1900), ..bob };
        assert_is(&table, &bob).await;
        assert_is(&table, &Patient::new("3", "eve@contoso.com")).await;
        let many = (10..130).map(|id| Patient::new(&id.to_string(), &format!("{id}@contoso.com")));
        let report = table.bulk().insert(stream::iter(many)).await.unwrap();
        assert_eq!(report.progress().written, 120);
        assert_is(&table, &Patient::new("99", "99@contoso.com")).await;
        let raw: Vec<_> = raw.query::<DynamicEntity>().collect().await.unwrap();
        assert_eq!(raw.iter().filter(|row| binary(row, "Name").len() > 46).count(), 123);
        // Counts and deletes do not read the properties.
        let plain = subject.service.table("Patients");
        assert_eq!(plain.query::<Patient>().count().await.unwrap(), 123);
        assert_eq!(table.query::<Patient>().delete_all().await.unwrap().progress().written, 123);
    }

    async fn a_projection_reads_one_property(subject: Subject) {
        let (table, _) = tables(&subject.service).await;
        table.insert(&Patient::ada()).await.unwrap();
        let contact = table.query::<Contact>().partition("Ward").one().await.unwrap().unwrap();
        assert_eq!((contact.id.as_str(), contact.email.as_str()), ("1", "ada@contoso.com"));
        let contact = table.get::<Contact>(("Ward", "1")).await.unwrap().unwrap();
        assert_eq!(contact.email, "ada@contoso.com");
        let by_email = table.query::<Contact>().filter(|c| c.email.is_in(["x", "ada@contoso.com"]));
        assert_eq!(by_email.collect().await.unwrap().len(), 1);
        let resolved = table.get::<Patient>(("Ward", "1")).resolve(|row| Ok(row.properties().read::<String>("Name")?));
        assert_eq!(resolved.await.unwrap().as_deref(), Some("Ada Lovelace"));
    }

    async fn decrypted_properties_are_not_written_in_plain_text(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        table.insert(&Patient::ada()).await.unwrap();
        let mut got = table.get::<Patient>(("Ward", "1")).resolve(Ok).await.unwrap().unwrap();
        let queried = table.query::<Patient>().resolve(Ok).one().await.unwrap().unwrap();
        let message = " was encrypted where it was read, and would be stored in plain text: write it as its own type, or remove it";
        for error in [
            raw.upsert_replace(&*queried).await.unwrap_err(),
            raw.batch("Ward").upsert_merge(&*got).await.unwrap_err(),
            raw.insert(&DynamicEntity::new("Ward", "2").with_properties(got.properties().clone())).await.unwrap_err(),
            {
                got.properties_mut().set("Visits", 2_i64);
                raw.replace(&mut got).await.unwrap_err()
            },
        ] {
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.to_string().ends_with(message), "{error}");
        }
        assert!(binary(&stored(&raw, "1").await, "Name").len() > 46);
        // What was not encrypted, and what a program sets itself, is.
        let visits: i64 = got.properties().read("Visits").unwrap();
        raw.insert(&DynamicEntity::new("Ward", "2").with("Visits", visits)).await.unwrap();
    }

    async fn two_keys_are_in_one_entity(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        table.insert(&Patient::ada()).await.unwrap();
        let newer = raw.with_encryption(Keyring::new(february()).also(january()));
        newer.patch(Patient::key("Ward", "1")).set(|p| p.name, "Ada King").await.unwrap();
        let found = get(&newer, "1").await;
        assert_eq!((found.name.as_str(), found.email.as_str()), ("Ada King", EMAIL));
        // What either key has written is found.
        insert(&newer, [2]).await;
        assert_eq!(with_email(&newer).count().await.unwrap(), 2);
        assert_eq!(with_email(&newer).collect().await.unwrap().len(), 2);
        // The older client has only the older key.
        let error = table.get(Patient::key("Ward", "1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("which the keyring does not have"), "{error}");
    }

    async fn without_keys_nothing_is_sent_or_read(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        let message = "`Patient` has encrypted properties, and this client has no keys: give it a keyring with `with_encryption`";
        let writes = [
            raw.insert(&Patient::ada()).await.unwrap_err(),
            raw.batch("Ward").upsert_replace(&Patient::ada()).await.unwrap_err(),
        ];
        assert_eq!(raw.query::<DynamicEntity>().count().await.unwrap(), 0);
        table.insert(&Patient::ada()).await.unwrap();
        let reads = [
            raw.get(Patient::key("Ward", "1")).await.unwrap_err(),
            raw.query::<Patient>().collect().await.unwrap_err(),
            raw.query::<Patient>().filter(|p| p.email.eq("x")).collect().await.unwrap_err(),
            raw.query::<Patient>().filter(|p| p.email.eq("x")).explain().unwrap_err(),
            raw.modify(Patient::key("Ward", "1"), |_| Ok(())).await.unwrap_err(),
        ];
        for error in writes.into_iter().chain(reads) {
            assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
            assert!(error.to_string().ends_with(message), "{error}");
        }
        // The service's client gives its keys to all tables.
        let service = subject.service.with_encryption(keyring());
        assert_eq!(get(&service.table("patients"), "1").await, Patient::ada());
    }
}

#[tokio::test]
async fn limits_are_those_of_the_encrypted_value() {
    let (_server, table, _) = start().await;
    let patient = |name: String| Patient {
        name,
        born: None,
        ..Patient::ada()
    };
    // The longest string that the service stores is no longer. Encrypted, one of 65,489 bytes fits,
    // also one of fewer characters.
    for longest in ["x".repeat(32_768), "€".repeat(21_829) + "xx"] {
        table
            .upsert_replace(&patient(longest.clone()))
            .await
            .unwrap();
        assert_eq!(get(&table, "1").await.name, longest);
    }
    let one_more = patient("€".repeat(21_830));
    let error = table.upsert_replace(&one_more).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let reason =
        r#"property "Name": it has 65490 bytes, and an encrypted property holds at most 65489"#;
    assert!(error.to_string().ends_with(reason), "{error}");
}

#[tokio::test]
async fn modify_all_decrypts_for_the_closure_and_encrypts_what_it_changes() {
    let (_server, table, raw) = start().await;
    insert(&table, 1..=3).await;
    let before = stored(&raw, "2").await;
    let run = with_email(&table).modify_all(|patient| {
        assert_eq!(patient.name, "Ada Lovelace");
        if patient.id != "1" {
            patient.born = Some(1816);
        }
        Ok(())
    });
    let report = run.await.unwrap();
    let progress = report.progress();
    assert_eq!(
        (progress.written, progress.skipped, progress.requests),
        (2, 1, 1)
    );
    assert_eq!(get(&table, "2").await.born, Some(1816));
    assert_eq!(get(&table, "1").await.born, Some(1815));
    let after = stored(&raw, "2").await;
    assert_ne!(binary(&before, "Name"), binary(&after, "Name"), "anew");
}
