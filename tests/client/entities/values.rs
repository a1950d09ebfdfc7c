//! Newtypes and enums as values: as fields, in filters and as keys.

use tablesdk::{DynamicEntity, PropertyValue, TableEntity, Value};

use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, PropertyValue)]
struct UserId(String);

#[derive(Debug, Clone, Copy, PartialEq, PropertyValue)]
struct Celsius {
    degrees: f64,
}

#[derive(Debug, Clone, PartialEq, PropertyValue)]
struct Wrapped<T>(T);

#[derive(Debug, Clone, Copy, PartialEq, PropertyValue)]
#[table(rename_all = "snake_case")]
enum Status {
    Active,
    #[table(alias = "away")]
    OnLeave,
    #[table(rename = "GONE")]
    Left,
    #[table(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, PropertyValue)]
enum Region {
    North,
    South,
    #[table(other)]
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, PropertyValue)]
enum Strict {
    A,
    r#B,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
struct User {
    #[table(partition_key)]
    region: Region,
    #[table(row_key)]
    id: UserId,
    status: Status,
    body: Option<Celsius>,
    badge: Wrapped<i64>,
    referrer: Option<UserId>,
    strict: Strict,
}

fn user(id: &str, status: Status) -> User {
    User {
        region: Region::North,
        id: UserId(id.into()),
        status,
        body: Some(Celsius { degrees: 36.6 }),
        badge: Wrapped(7),
        referrer: Some(UserId("root".into())),
        strict: Strict::B,
    }
}

on_both_transports! {
    async fn newtypes_and_enums_in_fields_filters_and_keys(subject: Subject) {
        let table = subject.table().await;
        for user in [user("a", Status::Active), user("b", Status::OnLeave), user("c", Status::Left)] {
            table.insert(&user).await.unwrap();
            let read = table.get(User::key(Region::North, user.id.clone())).await.unwrap().unwrap();
            assert_eq!(*read, user);
        }
        let elsewhere = User { region: Region::Other("the moon".into()), ..user("d", Status::Active) };
        table.insert(&elsewhere).await.unwrap();

        let query = table.query::<User>().filter(|e| e.status.eq(Status::OnLeave) & e.body.gt(Celsius { degrees: 30.0 }));
        assert_eq!(query.select(|e| e.id).collect().await.unwrap(), [UserId("b".into())]);
        let query = table.query::<User>().filter(|e| e.status.is_in([Status::Active, Status::Left]) & e.badge.between(Wrapped(5)..));
        assert_eq!(query.collect().await.unwrap().len(), 3);
        let query = table.query::<User>().filter(|e| e.referrer.starts_with("ro") & e.id.ge(UserId("b".into())));
        assert_eq!(query.collect().await.unwrap().len(), 3);
        let query = table.query::<User>().partition(User::partition(Region::Other("the moon".into())));
        assert_eq!(*query.collect().await.unwrap()[0], elsewhere);
    }

    async fn an_unknown_value_of_an_enum_is_an_error_or_other(subject: Subject) {
        let table = subject.table().await;
        let mut row = DynamicEntity::from_entity(&user("a", Status::Active)).unwrap();
        row.properties_mut().set("status", "away");
        table.upsert_replace(&row).await.unwrap();
        let key = || User::key(Region::North, UserId("a".into()));
        assert_eq!(table.get(key()).await.unwrap().unwrap().status, Status::OnLeave);

        row.properties_mut().set("status", "retired");
        table.upsert_replace(&row).await.unwrap();
        let mut read = table.get(key()).await.unwrap().unwrap();
        assert_eq!(read.status, Status::Unknown);
        // What was not kept cannot be written back, which would lose it.
        let error = format!("{:?}", table.replace(&mut read).await.unwrap_err());
        assert!(error.contains("property \"status\": the value cannot be stored: `Status::Unknown` does not keep the unknown string that was read"), "{error}");
        let filter = table.query::<User>().filter(|e| e.status.eq(Status::Unknown));
        assert!(filter.collect().await.is_err());

        row.properties_mut().set("status", "active");
        row.properties_mut().set("strict", "C");
        table.upsert_replace(&row).await.unwrap();
        let error = format!("{:?}", table.get(key()).await.unwrap_err());
        assert!(error.contains("property \"strict\": the value \"C\" cannot be read: a Strict is one of \"A\", \"B\""), "{error}");
    }
}

#[test]
fn a_wrong_type_in_a_newtype_names_the_inner_type() {
    let error = Celsius::from_value(Value::Int32(5)).unwrap_err();
    assert_eq!(error.to_string(), "expected Edm.Double, found Edm.Int32");
}
