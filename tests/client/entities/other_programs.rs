//! Types as other programs store them: decimals as plain strings, `u64` as Int64, and values of any
//! type by name.

use rust_decimal::Decimal;
use tablesdk::{
    DynamicEntity, ErrorKind, Properties, PropertyValue, TableEntity, Timestamp, Value,
};
use time::OffsetDateTime;
use time::macros::{date, datetime};

use crate::on_both_transports;

#[derive(Debug, Clone, PartialEq, PropertyValue)]
struct Price(Decimal);

#[derive(Debug, Clone, PartialEq, TableEntity)]
struct Product {
    #[table(partition_key)]
    shop: String,
    #[table(row_key)]
    id: String,
    price: Price,
    discount: Option<Decimal>,
    #[table(with = "tablesdk::entity::ordered_decimal::option")]
    weight: Option<Decimal>,
    #[table(with = "tablesdk::entity::u64_as_int64")]
    sold: u64,
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn product(id: &str, price: &str, weight: Option<&str>, sold: u64) -> Product {
    Product {
        shop: "p".into(),
        id: id.into(),
        price: Price(decimal(price)),
        discount: Some(decimal("0.10")),
        weight: weight.map(decimal),
        sold,
    }
}

on_both_transports! {
    async fn a_decimal_keeps_its_scale_and_is_stored_as_plain_digits(subject: Subject) {
        let table = subject.table().await;
        table.insert(&product("1", "1.50", Some("12.50"), 7)).await.unwrap();
        let stored = table.get::<DynamicEntity>(("p", "1")).await.unwrap().unwrap();
        let get = |name: &str| stored.properties().get(name).cloned();
        assert_eq!(get("price"), Some(Value::from("1.50")));
        assert_eq!(get("discount"), Some(Value::from("0.10")));
        assert_eq!(get("weight"), Some(Value::from("00000000000000000000000000012.5000000000000000000000000000")));
        assert_eq!(get("sold"), Some(Value::Int64(7)));
        let read = table.get(Product::key("p", "1")).await.unwrap().unwrap();
        assert_eq!((read.price.0.to_string().as_str(), read.weight), ("1.50", Some(decimal("12.5"))));
    }

    async fn filters_on_decimals_are_right_or_refused(subject: Subject) {
        let table = subject.table().await;
        for (id, weight) in [("1", "-10"), ("2", "-2.5"), ("3", "9.50"), ("4", "10")] {
            table.insert(&product(id, "1.5", Some(weight), 1)).await.unwrap();
        }
        let heavy = table.query::<Product>().filter(|e| e.weight.gt(decimal("-3")) & e.weight.lt(decimal("10.0")));
        assert_eq!(heavy.select(|e| e.id).collect().await.unwrap(), ["2", "3"]);
        let equal = table.query::<Product>().filter(|e| e.weight.eq(decimal("9.5")));
        assert_eq!(equal.count().await.unwrap(), 1);

        // A plain 1.5 may be stored as 1.50.
        for error in [
            table.query::<Product>().filter(|e| e.price.eq(Price(decimal("1.5")))).collect().await.unwrap_err(),
            table.query::<Product>().filter(|e| e.discount.is_in([decimal("0.1")])).collect().await.unwrap_err(),
            table.query::<Product>().filter(|e| !e.discount.ne(decimal("0.1"))).collect().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Input);
            let shown = format!("{error:?}");
            assert!(shown.contains("equal decimals may be stored as different strings"), "{shown}");
        }
        // To set one is no comparison.
        table.patch(Product::key("p", "1")).set(|e| e.discount, decimal("0.20")).await.unwrap();
        let read = table.get(Product::key("p", "1")).await.unwrap().unwrap();
        assert_eq!(read.discount.unwrap().to_string(), "0.20");
    }

    async fn a_u64_as_int64_is_checked_and_ordered(subject: Subject) {
        let table = subject.table().await;
        let most = i64::MAX.unsigned_abs();
        for (id, sold) in [("1", 0), ("2", 9), ("3", 10), ("4", most)] {
            table.insert(&product(id, "1", None, sold)).await.unwrap();
        }
        let many = table.query::<Product>().filter(|e| e.sold.ge(10));
        assert_eq!(many.select(|e| e.id).collect().await.unwrap(), ["3", "4"]);
        let error = table.insert(&product("5", "1", None, most + 1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("out of range: an Int64 is at most 9223372036854775807"), "{error:?}");
        let error = table.query::<Product>().filter(|e| e.sold.eq(u64::MAX)).collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let negative = DynamicEntity::new("p", "6").with("price", "1").with("sold", -1_i64);
        table.insert(&negative).await.unwrap();
        let error = table.get(Product::key("p", "6")).await.unwrap_err();
        assert!(format!("{error:?}").contains("a u64 is not negative"), "{error:?}");
    }

    async fn properties_by_name_take_values_of_any_type(subject: Subject) {
        let table = subject.table().await;
        let at = datetime!(2024-03-15 10:20:30 UTC);
        let name = String::from("Ada");
        let ada = DynamicEntity::new("a", "1")
            .with("At", at)
            .with("Born", Some(date!(1815 - 12 - 10)))
            .with("Name", &name)
            .with("Nick", None::<&str>)
            .with("Price", decimal("1.50"))
            .with("Small", 7_u8)
            .with("Exact", Value::Int64(7))
            .with("Id", uuid::Uuid::from_u128(7));
        table.insert(&ada).await.unwrap();
        let stored = table.get::<DynamicEntity>(("a", "1")).await.unwrap().unwrap();
        let properties = stored.properties();
        assert_eq!(properties, ada.properties());
        assert_eq!(properties.len(), 7);
        assert_eq!(properties.read::<OffsetDateTime>("At").unwrap(), at);
        assert_eq!(properties.get("Born"), Some(&Value::DateTime("1815-12-10T00:00:00Z".parse().unwrap())));
        assert_eq!(properties.get("Small"), Some(&Value::Int32(7)));
        assert_eq!(properties.get("Price"), Some(&Value::from("1.50")));
        // So do filters.
        let found = table.query::<DynamicEntity>().filter(|e| e.property("At").ge(at) & e.property("Exact").eq(7_i64));
        assert_eq!(found.count().await.unwrap(), 1);
        let error = table.query::<DynamicEntity>().filter(|e| e.property("Nick").eq(None::<&str>)).collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }

    async fn a_property_that_cannot_be_stored_is_reported_when_it_is_written(subject: Subject) {
        let table = subject.table().await;
        let early = datetime!(1500-01-01 00:00 UTC);
        let mut ada = DynamicEntity::new("a", "1").with("At", early).with("Age", 36);
        let error = table.insert(&ada).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("property \"At\": the value 1500-01-01"), "{error:?}");
        assert!(serde_json::to_string(&ada).is_err() && serde_json::to_string(&ada.exact()).is_err());
        // A later value of that name counts, as does its removal.
        ada.properties_mut().set("At", Timestamp::UNIX_EPOCH);
        table.insert(&ada).await.unwrap();
        ada.properties_mut().set("At", early);
        assert!(table.upsert_replace(&ada).await.is_err());
        ada.properties_mut().set("At", None::<Timestamp>);
        table.upsert_replace(&ada).await.unwrap();
        let stored = table.get::<DynamicEntity>(("a", "1")).await.unwrap().unwrap();
        assert_eq!(stored.properties(), &Properties::from_iter([("Age", 36)]));
    }
}
