//! The table SAS: some operations on the entities of one table, or on some of them.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/create-service-sas>.

use std::cmp::Ordering;

use super::delegation::{Delegation, FIRST_VERSION_WITH_DELEGATION};
use super::{
    Fields, InvalidSasError, Permissions, SasAddresses, SasLetters, SasProtocol, SasTime,
    SasVersion,
};
use crate::types::limits::POLICY_ID_LENGTH_MAX;
use crate::types::{EntityKey, TableName, compare_utf16};

/// The fields of a table SAS, without the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableSas {
    /// `sv`: how it is signed.
    pub version: SasVersion,
    /// `tn`: the table.
    pub table: TableName,
    /// `sp`: what it allows there; `None` where the stored access policy says it.
    pub permissions: Option<SasLetters<Permissions>>,
    /// `st`: from when on.
    pub start: Option<SasTime>,
    /// `se`: until when; `None` where the stored access policy says it.
    pub expiry: Option<SasTime>,
    /// `si`: the id of the stored access policy that completes it.
    pub policy: Option<String>,
    /// `sip`: from which addresses.
    pub addresses: Option<SasAddresses>,
    /// `spr`: over which protocols.
    pub protocol: Option<SasProtocol>,
    /// `spk`, `srk`, `epk` and `erk`: on which entities.
    pub keys: SasKeyRange,
    /// `skoid` to `sduoid`, where a user delegation key signs and not a key of the account.
    pub delegation: Option<Box<Delegation>>,
}

impl TableSas {
    /// One that grants these permissions on the whole table from now on, for every address and
    /// protocol.
    pub fn new(table: TableName, permissions: Permissions, expiry: impl Into<SasTime>) -> Self {
        Self {
            permissions: Some(permissions.into()),
            expiry: Some(expiry.into()),
            ..Self::empty(table)
        }
    }

    /// One that grants what the table's stored access policy of that id grants.
    pub fn with_policy(table: TableName, id: impl Into<String>) -> Self {
        Self {
            policy: Some(id.into()),
            ..Self::empty(table)
        }
    }

    fn empty(table: TableName) -> Self {
        Self {
            version: SasVersion::default(),
            table,
            permissions: None,
            start: None,
            expiry: None,
            policy: None,
            addresses: None,
            protocol: None,
            keys: SasKeyRange::default(),
            delegation: None,
        }
    }

    pub(super) fn parse(fields: &Fields<'_>) -> Result<Self, InvalidSasError> {
        let version = SasVersion::parse(fields.require("sv")?)?;
        if version.is_before(FIRST_VERSION) {
            return Err(InvalidSasError { field: "sv" });
        }
        if version.is_before(FIRST_VERSION_WITH_ADDRESSES) {
            fields.refuse(&["sip", "spr"])?;
        }
        let delegation = Delegation::parse(fields)?.map(Box::new);
        if delegation.is_some() && version.is_before(FIRST_VERSION_WITH_DELEGATION) {
            return Err(InvalidSasError { field: "sv" });
        }
        let table = TableName::new(fields.require("tn")?);
        let policy = fields.get("si")?;
        if policy.is_some_and(|id| id.chars().count() > POLICY_ID_LENGTH_MAX) {
            return Err(InvalidSasError { field: "si" });
        }
        let permissions = fields.parse("sp", SasLetters::parse)?;
        if permissions.as_ref().is_some_and(|sp| !sp.is_in_order()) {
            return Err(InvalidSasError { field: "sp" });
        }
        Ok(Self {
            version,
            table: table.map_err(|_| InvalidSasError { field: "tn" })?,
            permissions,
            start: fields.parse("st", SasTime::parse)?,
            expiry: fields.parse("se", SasTime::parse)?,
            policy: policy.map(str::to_owned),
            addresses: fields.parse("sip", SasAddresses::parse)?,
            protocol: fields.parse("spr", SasProtocol::parse)?,
            keys: SasKeyRange {
                first: bound(fields, "spk", "srk")?,
                last: bound(fields, "epk", "erk")?,
            },
            delegation,
        })
    }

    /// Lines with breaks between them, and none at the end.
    pub(super) fn string_to_sign(&self, account: &str) -> String {
        let [
            version,
            _,
            permissions,
            start,
            expiry,
            policy,
            addresses,
            protocol,
            start_partition,
            start_row,
            end_partition,
            end_row,
        ] = self.fields().map(|(_, value)| value.unwrap_or_default());
        let service = if self.version.is_before(FIRST_VERSION_WITH_SERVICE) {
            ""
        } else {
            "/table"
        };
        let resource = format!("{service}/{account}/{}", self.table.to_lowercase());
        let mut lines = vec![permissions, start, expiry, &resource];
        match &self.delegation {
            Some(delegation) => lines.extend(delegation.signed_values()),
            None => lines.push(policy),
        }
        if !self.version.is_before(FIRST_VERSION_WITH_ADDRESSES) {
            lines.extend([addresses, protocol]);
        }
        if !self.version.is_before(FIRST_VERSION_SIGNED) {
            lines.push(version);
        }
        lines.extend([start_partition, start_row, end_partition, end_row]);
        lines.join("\n")
    }

    /// In the order in which they stand in a URL.
    pub(super) fn url_fields(&self) -> Vec<(&'static str, Option<&str>)> {
        let mut fields = self.fields().to_vec();
        if let Some(delegation) = &self.delegation {
            let policy = fields.iter().position(|(name, _)| *name == "si");
            let policy = policy.unwrap_or(fields.len());
            fields.splice(policy..policy, delegation.fields());
        }
        fields
    }

    /// Without those of a delegation, which stand where the policy does.
    fn fields(&self) -> [(&'static str, Option<&str>); 12] {
        let (first, last) = (self.keys.first.as_ref(), self.keys.last.as_ref());
        [
            ("sv", Some(self.version.as_str())),
            ("tn", Some(self.table.as_str())),
            ("sp", self.permissions.as_ref().map(SasLetters::as_str)),
            ("st", self.start.as_ref().map(SasTime::as_str)),
            ("se", self.expiry.as_ref().map(SasTime::as_str)),
            ("si", self.policy.as_deref()),
            ("sip", self.addresses.as_ref().map(SasAddresses::as_str)),
            ("spr", self.protocol.map(SasProtocol::as_str)),
            ("spk", first.map(|bound| bound.partition_key.as_str())),
            ("srk", first.and_then(|bound| bound.row_key.as_deref())),
            ("epk", last.map(|bound| bound.partition_key.as_str())),
            ("erk", last.and_then(|bound| bound.row_key.as_deref())),
        ]
    }
}

fn bound(
    fields: &Fields<'_>,
    partition_key: &'static str,
    row_key: &'static str,
) -> Result<Option<SasBound>, InvalidSasError> {
    let row = fields.get(row_key)?.map(str::to_owned);
    match (fields.get(partition_key)?, row) {
        (Some(partition), row_key) => Ok(Some(SasBound {
            partition_key: partition.to_owned(),
            row_key,
        })),
        (None, Some(_)) => Err(InvalidSasError { field: row_key }),
        (None, None) => Ok(None),
    }
}

/// The entities that a table SAS covers: from the first to the last, both included, in the order of
/// keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SasKeyRange {
    /// `spk` and `srk`: where it starts.
    pub first: Option<SasBound>,
    /// `epk` and `erk`: where it ends.
    pub last: Option<SasBound>,
}

impl SasKeyRange {
    /// The keys between two bounds.
    pub const fn new(first: Option<SasBound>, last: Option<SasBound>) -> Self {
        Self { first, last }
    }

    /// Returns true if the key is in the range.
    pub fn contains(&self, key: &EntityKey) -> bool {
        let is_from = |bound: &SasBound| bound.compare(key).is_le();
        let is_to = |bound: &SasBound| bound.compare(key).is_ge();
        self.first.as_ref().is_none_or(is_from) && self.last.as_ref().is_none_or(is_to)
    }
}

/// One end of a range of keys: a partition, or an entity in it. An empty string cannot be
/// distinguished from an absent one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a key has two parts")]
pub struct SasBound {
    /// The partition key.
    pub partition_key: String,
    /// The row key; `None` for the whole partition.
    pub row_key: Option<String>,
}

impl SasBound {
    /// How the bound compares with a key; a whole partition is equal to each of its keys.
    fn compare(&self, key: &EntityKey) -> Ordering {
        let partition = compare_utf16(&self.partition_key, key.partition_key().as_str());
        partition.then_with(|| match &self.row_key {
            Some(row_key) => compare_utf16(row_key, key.row_key().as_str()),
            None => Ordering::Equal,
        })
    }
}

const FIRST_VERSION: &str = "2012-02-12";
/// From this version on the version itself is signed.
const FIRST_VERSION_SIGNED: &str = "2013-08-15";
/// From this version on the resource has its service in front.
const FIRST_VERSION_WITH_SERVICE: &str = "2015-02-21";
/// From this version on there are `sip` and `spr`.
const FIRST_VERSION_WITH_ADDRESSES: &str = "2015-04-05";

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: (&str, Option<&str>), last: (&str, Option<&str>)) -> SasKeyRange {
        let bound = |(partition_key, row_key): (&str, Option<&str>)| SasBound {
            partition_key: partition_key.to_owned(),
            row_key: row_key.map(str::to_owned),
        };
        SasKeyRange::new(Some(bound(first)), Some(bound(last)))
    }

    #[test]
    fn a_range_includes_both_ends() {
        let whole = SasKeyRange::default();
        let partitions = range(("B", None), ("D", None));
        let rows = range(("B", Some("2")), ("D", Some("2")));
        for (partition_key, row_key, in_partitions, in_rows) in [
            ("A", "9", false, false),
            ("B", "", true, false),
            ("B", "1", true, false),
            ("B", "2", true, true),
            ("C", "", true, true),
            ("C", "9", true, true),
            ("D", "2", true, true),
            ("D", "20", true, false),
            ("D", "\u{FFFF}", true, false),
            ("D ", "", false, false),
            ("E", "", false, false),
        ] {
            let key = EntityKey::new(partition_key, row_key).unwrap();
            assert!(whole.contains(&key));
            assert_eq!(partitions.contains(&key), in_partitions, "{key}");
            assert_eq!(rows.contains(&key), in_rows, "{key}");
        }
        // Ordinal means by UTF-16 code units.
        let range = range(("\u{FF5E}", None), ("\u{FFFF}", None));
        assert!(!range.contains(&EntityKey::new("😀", "").unwrap()));
    }
}
