//! Each operation with encrypted properties.

use futures::stream;
use harness::proxy::Proxy;
use harness::{client, client_with};
use tablesdk::encryption::Keyring;
use tablesdk::{DynamicEntity, ETag, ErrorKind, TableClient, TableEntity, Value};
use tablesdk_server::TableServer;

use super::{Patient, assert_no_secret, binary, february, january, keyring, stored, tables};
use crate::on_both_transports;

/// The value under each key, read in every way.
async fn assert_is(table: &TableClient, expected: &Patient) {
    let key = || Patient::key("Ward", &expected.id);
    let found = table.get(key()).await.unwrap().expect("it exists");
    assert_eq!(*found, *expected);
    let found = table
        .query::<Patient>()
        .partition("Ward")
        .filter(|p| p.email.eq(&expected.email));
    assert_eq!(
        found
            .one()
            .await
            .unwrap()
            .map(tablesdk::Stored::into_inner)
            .as_ref(),
        Some(expected)
    );
    let columns = table
        .query::<Patient>()
        .partition("Ward")
        .rows(Patient::rows().id(&expected.id));
    let columns = columns
        .select(|p| (p.name, p.born, p.email))
        .one()
        .await
        .unwrap();
    let columns = columns.expect("it exists");
    assert_eq!(
        columns,
        (expected.name.clone(), expected.born, expected.email.clone())
    );
    // A request for one entity, whose keys are not in the response.
    let point = table
        .query::<Patient>()
        .filter(|p| p.department.eq("Ward") & p.id.eq(&expected.id));
    assert_eq!(
        point.select(|p| p.name).one().await.unwrap().as_ref(),
        Some(&expected.name)
    );
    let read = table.transaction("Ward", async |tx| Ok(tx.get(key()).await?));
    assert_eq!(
        read.await
            .unwrap()
            .map(tablesdk::Stored::into_inner)
            .as_ref(),
        Some(expected)
    );
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
        table.insert(&Patient { id: "2".to_owned(), ..Patient::ada() }).await.unwrap();
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
        let found = newer.get(Patient::key("Ward", "1")).await.unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.email.as_str()), ("Ada King", "ada@contoso.com"));
        // What either key has written is found.
        newer.insert(&Patient { id: "2".to_owned(), ..Patient::ada() }).await.unwrap();
        let both = || newer.query::<Patient>().filter(|p| p.email.eq("ada@contoso.com"));
        assert_eq!(both().count().await.unwrap(), 2);
        assert_eq!(both().collect().await.unwrap().len(), 2);
        // The older client has only the older key.
        let error = table.get(Patient::key("Ward", "1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("which the keyring does not have"), "{error}");
    }

    async fn without_keys_nothing_is_sent_or_read(subject: Subject) {
        let (table, raw) = tables(&subject.service).await;
        let message = "`Patient` has encrypted properties, and this client has no keys: give it a keyring with `with_encryption`";
        let error = raw.insert(&Patient::ada()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().ends_with(message), "{error}");
        let error = raw.batch("Ward").upsert_replace(&Patient::ada()).await.unwrap_err();
        assert!(error.to_string().ends_with(message), "{error}");
        assert_eq!(raw.query::<DynamicEntity>().count().await.unwrap(), 0);
        table.insert(&Patient::ada()).await.unwrap();
        for error in [
            raw.get(Patient::key("Ward", "1")).await.unwrap_err(),
            raw.query::<Patient>().collect().await.unwrap_err(),
            raw.query::<Patient>().filter(|p| p.email.eq("x")).collect().await.unwrap_err(),
            raw.query::<Patient>().filter(|p| p.email.eq("x")).explain().unwrap_err(),
            raw.modify(Patient::key("Ward", "1"), |_| Ok(())).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
            assert!(error.to_string().ends_with(message), "{error}");
        }
        // The service's client gives its keys to all tables.
        let service = subject.service.with_encryption(keyring());
        assert_eq!(*service.table("patients").get(Patient::key("Ward", "1")).await.unwrap().unwrap(), Patient::ada());
    }
}

#[tokio::test]
async fn requests_and_debug_show_no_value_and_no_key() {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let service = client_with(&server, |builder| builder.transport(proxy.clone()));
    let (table, _) = tables(&service).await;
    let ada = Patient::ada();
    let mut shown = vec![format!("{table:?} {:?} {:?}", keyring(), january())];
    shown.push(format!("{:?}", table.insert(&ada)));
    shown.push(format!("{:?}", table.batch("Ward").insert(&ada)));
    shown.push(format!("{:?}", table.upsert_merge(&ada)));
    let query = || {
        table
            .query::<Patient>()
            .partition("Ward")
            .filter(|p| p.email.eq(&ada.email))
    };
    shown.push(format!("{:?}", query()));
    shown.push(format!(
        "{:?} {}",
        query().explain(),
        query().explain().unwrap()
    ));
    let other = Patient::new("2", "x@contoso.com");
    let mut inserted = table.insert(&ada).exactly_once().await.unwrap();
    shown.push(format!("{:?}", table.merge(&mut inserted).changed_only()));
    shown.push(format!("{:?}", table.replace(&mut inserted)));
    let error = table.insert(&ada).await.unwrap_err();
    shown.push(format!("{error:?}"));
    table
        .batch("Ward")
        .merge_if(&ada, ETag::ANY)
        .insert(&other)
        .await
        .unwrap();
    query().collect().await.unwrap();
    table
        .patch(Patient::key("Ward", "1"))
        .set(|p| p.email, "ada@contoso.com")
        .await
        .unwrap();
    let sent = proxy.sent();
    assert!(sent.len() > 6);
    for request in sent {
        shown.push(format!(
            "{} {}",
            request.url,
            String::from_utf8_lossy(&request.body)
        ));
    }
    for text in &shown {
        assert_no_secret(text);
    }
    assert!(shown[0].contains("2024-01"), "{}", shown[0]);
}

#[tokio::test]
async fn limits_are_those_of_the_encrypted_value() {
    let server = TableServer::in_process();
    let (table, _) = tables(&client(&server)).await;
    let long = |bytes: usize| Patient {
        name: "x".repeat(bytes),
        ..Patient::ada()
    };
    // The longest string that the service stores is no longer.
    let longest = long(32_768);
    table.insert(&longest).await.unwrap();
    assert_eq!(
        *table.get(Patient::key("Ward", "1")).await.unwrap().unwrap(),
        longest
    );
    let wide = |chars: usize| Patient {
        name: "€".repeat(chars),
        born: None,
        ..Patient::ada()
    };
    let longest = wide(21_829);
    assert_eq!(longest.name.len(), 65_487);
    table.upsert_replace(&longest).await.unwrap();
    let mut one_more = wide(21_829);
    one_more.name.push_str("xx");
    table.upsert_replace(&one_more).await.unwrap();
    assert_eq!(
        *table.get(Patient::key("Ward", "1")).await.unwrap().unwrap(),
        one_more
    );
    one_more.name.push('x');
    let error = table.upsert_replace(&one_more).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let reason =
        r#"property "Name": it has 65490 bytes, and an encrypted property holds at most 65489"#;
    assert!(error.to_string().ends_with(reason), "{error}");
}
