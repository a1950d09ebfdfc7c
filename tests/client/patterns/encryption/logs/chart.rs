//! An entity with a value of each kind, the values of which are looked for afterwards.

use serde::{Deserialize, Serialize};
use tablesdk::{Guid, TableEntity, Timestamp};

pub(super) const NAME: &str = "Wilhelmina Ottoline Quartermaine";
pub(super) const CITY: &str = "Llanfairpwllgwyngyll";
pub(super) const NOTE: [u8; 24] = *b"\x8e\x1f\xc3\x92\xd4\xa7\x66\x5b\xe0\x99\xf2\x83\xb1\xcd\x9a\xee\x87\xda\xbf\x94\xa3\xc8\xf7\x8d";
pub(super) const NUMBER: i64 = 5_183_920_471_662_038_417;
pub(super) const BORN: i32 = 1_738_204_961;
pub(super) const WEIGHT: f64 = 61.738_204_961_557;
pub(super) const GUID: &str = "c9da6455-213d-42c9-9a79-3e9149a57833";
pub(super) const AT: &str = "1815-12-10T13:14:15.7654321Z";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Home {
    pub(super) city: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{ward}", row_key = "{id}")]
pub(super) struct Chart {
    pub(super) ward: String,
    pub(super) id: String,
    #[table(encrypt(eq))]
    pub(super) name: String,
    #[table(encrypt(eq))]
    pub(super) number: i64,
    #[table(encrypt(eq))]
    pub(super) guid: Guid,
    #[table(encrypt)]
    pub(super) note: Vec<u8>,
    #[table(encrypt)]
    pub(super) born: i32,
    #[table(encrypt)]
    pub(super) weight: f64,
    #[table(encrypt)]
    pub(super) at: Timestamp,
    #[table(encrypt, json)]
    pub(super) home: Home,
    pub(super) visits: i64,
}

/// A program whose type is too small for a value.
#[derive(Debug, TableEntity)]
pub(super) struct Small {
    #[table(partition_key)]
    pub(super) ward: String,
    #[table(row_key)]
    pub(super) id: String,
    #[table(encrypt)]
    pub(super) born: u8,
}

pub(super) const ENCRYPTED: [&str; 11] = [
    "at",
    "born",
    "guid",
    "guid__eq",
    "home",
    "name",
    "name__eq",
    "note",
    "number",
    "number__eq",
    "weight",
];

pub(super) fn chart(id: &str) -> Chart {
    Chart {
        ward: "Ward".to_owned(),
        id: id.to_owned(),
        name: NAME.to_owned(),
        number: NUMBER,
        guid: GUID.parse().unwrap(),
        note: NOTE.to_vec(),
        born: BORN,
        weight: WEIGHT,
        at: AT.parse().unwrap(),
        home: Home {
            city: CITY.to_owned(),
        },
        visits: 1,
    }
}
