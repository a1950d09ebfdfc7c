//! Values that were changed, swapped or moved by a program that may write the table and has no
//! keys.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use harness::proxy::{Proxy, Reply, service_response};
use harness::{client, client_with};
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy, TableClient, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Op;

use super::{Patient, assert_no_secret, binary, get, insert, keyring, start, stored, tables};

const ENCRYPTED: [&str; 4] = ["Born", "Email", "Email__eq", "Name"];

async fn write(raw: &TableClient, entity: &DynamicEntity) {
    raw.upsert_replace(entity).await.unwrap();
}

/// The entity cannot be read, and the error says which property it is.
async fn assert_detected(table: &TableClient, row: &str, property: &str) {
    let errors = [
        table.get(Patient::key("Ward", row)).await.unwrap_err(),
        table.query::<Patient>().collect().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Data, "{property}: {error}");
        let error = error.to_string();
        let named = format!("property {:?}: ", property.trim_end_matches("__eq"));
        assert!(error.contains(&named), "{property}: {error}");
        assert_no_secret(&error);
    }
}

#[tokio::test]
async fn each_bit_is_protected() {
    let (_server, table, raw) = start().await;
    insert(&table, [1]).await;
    let right = stored(&raw, "1").await;
    for property in ENCRYPTED {
        let bytes = binary(&right, property);
        let flipped = (0..bytes.len() * 8).map(|bit| {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            changed
        });
        let cut = (0..bytes.len()).map(|length| bytes[..length].to_vec());
        let changed = flipped.chain(cut).chain([b"Ada".to_vec()]);
        let plain = [Value::from("Ada"), Value::from(1815)];
        for value in changed.map(Value::Binary).chain(plain) {
            write(&raw, &right.clone().with(property, value)).await;
            assert_detected(&table, "1", property).await;
        }
    }
    write(&raw, &right).await;
    assert_eq!(get(&table, "1").await, Patient::ada());
}

#[tokio::test]
async fn each_swap_is_detected() {
    let server = TableServer::in_process();
    let service = client(&server);
    let (table, raw) = tables(&service).await;
    let other = service.table("Others");
    other.create_table().await.unwrap();
    let encrypted = other.with_encryption(keyring());
    // In two rows, two partitions and two tables.
    insert(&table, [1]).await;
    let bob = Patient::new("2", "bob@contoso.com");
    table.insert(&bob).await.unwrap();
    let elsewhere = Patient {
        department: "Icu".to_owned(),
        ..Patient::ada()
    };
    table.insert(&elsewhere).await.unwrap();
    encrypted.insert(&Patient::ada()).await.unwrap();
    let in_icu = raw.get::<DynamicEntity>(("Icu", "1")).await.unwrap();
    let right = stored(&raw, "1").await;
    let moved = stored(&raw, "2").await;
    let others = [&moved, &*in_icu.unwrap(), &stored(&other, "1").await];
    let all = [&right].into_iter().chain(others);
    let cells = all.flat_map(|entity| ENCRYPTED.map(|property| binary(entity, property)));
    let cells: Vec<_> = cells.collect();
    let mut swaps = 0;
    for property in ENCRYPTED {
        let own = binary(&right, property);
        for bytes in cells.iter().filter(|bytes| **bytes != own) {
            write(&raw, &right.clone().with(property, bytes.clone())).await;
            assert_detected_alone(&table, property).await;
            swaps += 1;
        }
    }
    // The lookup of an equal value is the same in another row of the table.
    assert_eq!(swaps, 4 * 15 - 1);
    // A whole entity under another key.
    let under_another_key = DynamicEntity::new("Ward", "1");
    let properties = moved.properties().clone();
    write(&raw, &under_another_key.with_properties(properties)).await;
    assert_detected_alone(&table, "").await;
}

async fn assert_detected_alone(table: &TableClient, property: &str) {
    let error = table.get(Patient::key("Ward", "1")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{property}: {error}");
    assert_no_secret(&error.to_string());
}

/// Also if a later version means something else by the bytes that follow.
#[tokio::test]
async fn a_value_of_another_version_or_algorithm_is_not_decrypted() {
    let (_server, table, raw) = start().await;
    insert(&table, [1]).await;
    let right = stored(&raw, "1").await;
    for at in [0, 1] {
        let mut name = binary(&right, "Name");
        name[at] = 2;
        write(&raw, &right.clone().with("Name", name)).await;
        let error = table.get(Patient::key("Ward", "1")).await.unwrap_err();
        let reason = "it is not an encrypted value of a form that this client knows";
        assert!(error.to_string().ends_with(reason), "{error}");
    }
}

/// A program between client and service, without keys, that returns another entity than was asked
/// for.
#[tokio::test]
async fn another_entity_in_a_response_is_detected() {
    let server = TableServer::in_process();
    let proxy = Proxy::new(server.transport());
    let service = client_with(&server, |builder| builder.transport(proxy.clone()));
    let (table, raw) = tables(&service).await;
    insert(&table, [1]).await;
    let bob = Patient::new("2", "bob@contoso.com");
    table.insert(&bob).await.unwrap();
    let other = stored(&raw, "2").await;
    let mut body =
        r#"{"PartitionKey":"Ward","RowKey":"2","Visits@odata.type":"Edm.Int64","Visits":"1""#
            .to_owned();
    for property in ENCRYPTED {
        let bytes = BASE64_STANDARD.encode(binary(&other, property));
        body += &format!(r#","{property}@odata.type":"Edm.Binary","{property}":"{bytes}""#);
    }
    body.push('}');
    let under_own_key = body.replace(r#""RowKey":"2""#, r#""RowKey":"1""#);
    let plan = |body: &str| {
        let response = service_response(200).header("etag", "\"x\"");
        let response = response.body(body.to_owned().into()).unwrap();
        proxy.plan(Op::QueryEntity, [Reply::Respond(response)]);
    };
    let once = RetryPolicy::none;
    plan(&body);
    assert_eq!(get(&table, "2").await, bob, "the response is well-formed");
    let point = || {
        let query = table.query::<Patient>();
        query.filter(|p| p.department.eq("Ward") & p.id.eq("1"))
    };
    // Under its own key, it is the response to another request.
    plan(&body);
    let get = table.get(Patient::key("Ward", "1")).retry(once());
    assert_eq!(get.await.unwrap_err().kind(), ErrorKind::Transport);
    plan(&body);
    let error = point().retry(once()).one().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    // Under the key that was asked for, it cannot be decrypted.
    plan(&under_own_key);
    assert_detected_alone(&table, "").await;
    plan(&under_own_key);
    assert_eq!(point().one().await.unwrap_err().kind(), ErrorKind::Data);
}

#[tokio::test]
async fn one_changed_entity_does_not_hide_the_others() {
    let (_server, table, raw) = start().await;
    insert(&table, 1..=3).await;
    let bytes = binary(&stored(&raw, "1").await, "Name");
    write(&raw, &stored(&raw, "2").await.with("Name", bytes)).await;
    let readable = table.query::<Patient>().skip_unreadable(|error| {
        let key = error.key().expect("it is about one entity");
        assert_eq!(key.row_key().as_str(), "2");
    });
    assert_eq!(readable.collect().await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_not_detected_is_what_the_guide_says() {
    let (_server, table, raw) = start().await;
    insert(&table, [1]).await;
    let old = stored(&raw, "1").await;
    let patch = table.patch(Patient::key("Ward", "1"));
    patch.set(|p| p.name, "Ada King").await.unwrap();
    // An older value of the same property.
    let rolled_back = stored(&raw, "1").await.with("Name", binary(&old, "Name"));
    write(&raw, &rolled_back).await;
    assert_eq!(get(&table, "1").await, Patient::ada());
    // A property that was removed.
    let mut removed = old.clone();
    removed.properties_mut().remove("Born");
    removed.properties_mut().remove("Email__eq");
    write(&raw, &removed).await;
    assert_eq!(get(&table, "1").await.born, None);
}
