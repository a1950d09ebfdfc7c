//! An entity with an encrypted field of each kind, the values of which are looked for afterwards.

use serde::{Deserialize, Serialize};
use tablesdk::{Guid, Properties, TableEntity, TableProperties, Timestamp};

use super::EMAIL;

pub(super) const NAME: &str = "Wilhelmina Ottoline Quartermaine";
pub(super) const CITY: &str = "Llanfairpwllgwyngyll";
pub(super) const NOTE: [u8; 24] = *b"\x8e\x1f\xc3\x92\xd4\xa7\x66\x5b\xe0\x99\xf2\x83\xb1\xcd\x9a\xee\x87\xda\xbf\x94\xa3\xc8\xf7\x8d";
pub(super) const NUMBER: i64 = 5_183_920_471_662_038_417;
pub(super) const BORN: i32 = 1_738_204_961;
pub(super) const WEIGHT: f64 = 61.738_204_961_557;
pub(super) const GUID: &str = "c9da6455-213d-42c9-9a79-3e9149a57833";
const AT: &str = "1815-12-10T13:14:15.7654321Z";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) city: String,
}

#[derive(Clone, Debug, PartialEq, TableProperties)]
pub(super) struct Contact {
    #[table(encrypt(eq))]
    pub(super) email: String,
    #[table(encrypt)]
    pub(super) phone: Option<String>,
}

/// Instants as the seconds since 1970.
mod seconds {
    use tablesdk::Timestamp;
    use tablesdk::entity::ValueError;

    pub(super) type Property = i64;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        clippy::unnecessary_wraps,
        reason = "the derive calls it so"
    )]
    pub(super) fn to_property(at: &Timestamp) -> Result<i64, ValueError> {
        Ok(at.unix_ticks() / 10_000_000)
    }

    pub(super) fn from_property(seconds: i64) -> Result<Timestamp, ValueError> {
        Timestamp::from_unix_ticks(seconds * 10_000_000).map_err(ValueError::unwritable)
    }
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(entity_type = "Every", partition_key = "Ward", row_key = "{id}")]
pub(super) struct Every {
    pub(super) id: String,
    #[table(encrypt(eq))]
    pub(super) binary: Vec<u8>,
    #[table(encrypt(eq))]
    pub(super) boolean: bool,
    #[table(encrypt(eq))]
    pub(super) date_time: Timestamp,
    #[table(encrypt(eq))]
    pub(super) double: f64,
    #[table(encrypt(eq))]
    pub(super) guid: Guid,
    #[table(encrypt(eq))]
    pub(super) int32: i32,
    #[table(encrypt(eq))]
    pub(super) int64: i64,
    #[table(encrypt(eq))]
    pub(super) string: String,
    #[table(encrypt, json)]
    pub(super) address: Address,
    #[table(encrypt, with = "seconds")]
    pub(super) at: Timestamp,
    #[table(flatten, prefix = "work_")]
    pub(super) work: Contact,
    #[table(encrypt, default, alias = "older")]
    pub(super) newer: String,
    pub(super) visits: i64,
    #[table(rest)]
    pub(super) rest: Properties,
}

/// The properties of [`every`] that are encrypted, and those that are compared.
pub(super) const ENCRYPTED: [&str; 21] = [
    "address",
    "at",
    "binary",
    "binary__eq",
    "boolean",
    "boolean__eq",
    "date_time",
    "date_time__eq",
    "double",
    "double__eq",
    "guid",
    "guid__eq",
    "int32",
    "int32__eq",
    "int64",
    "int64__eq",
    "newer",
    "string",
    "string__eq",
    "work_email",
    "work_email__eq",
];

pub(super) fn every(id: &str) -> Every {
    Every {
        id: id.to_owned(),
        binary: NOTE.to_vec(),
        boolean: true,
        date_time: AT.parse().unwrap(),
        double: WEIGHT,
        guid: GUID.parse().unwrap(),
        int32: BORN,
        int64: NUMBER,
        string: NAME.to_owned(),
        address: Address {
            city: CITY.to_owned(),
        },
        at: "1815-12-10T13:14:15Z".parse().unwrap(),
        work: Contact {
            email: EMAIL.to_owned(),
            phone: None,
        },
        newer: CITY.to_owned(),
        visits: 1,
        rest: Properties::default(),
    }
}

/// A program whose type is too small for a value.
#[derive(Debug, TableEntity)]
#[table(partition_key = "Ward", row_key = "{id}")]
pub(super) struct Small {
    pub(super) id: String,
    #[table(encrypt)]
    pub(super) int32: u8,
}
