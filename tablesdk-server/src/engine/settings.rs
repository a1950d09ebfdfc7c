//! The records of a table's stored access policies and of an account's service properties; see
//! `storage/FORMAT.md`.
//!
//! This module knows no keys, no storage and no rules: its input has been validated already.

use tablesdk_protocol::auth::sas::SasLetters;
use tablesdk_protocol::{
    AccessPolicy, CorsRule, Logging, Metrics, ServiceProperties, SignedIdentifier, Timestamp,
};

use crate::storage::StorageError;

/// Writes the stored access policies of a table.
pub(super) fn acl_record(identifiers: &[SignedIdentifier]) -> Vec<u8> {
    let mut out = vec![VERSION];
    for SignedIdentifier { id, policy } in identifiers {
        push_string(&mut out, id);
        push_option(&mut out, policy.start, push_time);
        push_option(&mut out, policy.expiry, push_time);
        let permissions = policy.permissions.as_ref().map(SasLetters::as_str);
        push_option(&mut out, permissions, push_string);
    }
    out
}

/// Reads the stored access policies of a table.
pub(super) fn read_acl(record: &[u8]) -> Result<Vec<SignedIdentifier>, StorageError> {
    let mut input = Input { rest: record };
    let read = |input: &mut Input<'_>| {
        input.version()?;
        let mut identifiers = Vec::new();
        while !input.rest.is_empty() {
            let id = input.text()?.to_owned();
            let policy = AccessPolicy {
                start: input.option(Input::time)?,
                expiry: input.option(Input::time)?,
                permissions: input.option(|input| SasLetters::parse(input.text()?).ok())?,
            };
            identifiers.push(SignedIdentifier { id, policy });
        }
        Some(identifiers)
    };
    read(&mut input).ok_or(StorageError::corrupt("stored access policy"))
}

/// Writes the properties of a service. Absent ones are stored as off.
pub(super) fn properties_record(properties: &ServiceProperties) -> Vec<u8> {
    let mut out = vec![VERSION];
    let logging = properties.logging.unwrap_or_default();
    for flag in [logging.read, logging.write, logging.delete] {
        out.push(flag.into());
    }
    push_option(&mut out, logging.retention_days, push_number);
    for metrics in [properties.hour_metrics, properties.minute_metrics] {
        let metrics = metrics.unwrap_or_default();
        push_option(&mut out, metrics.include_apis, |out, flag| {
            out.push(flag.into());
        });
        push_option(&mut out, metrics.retention_days, push_number);
    }
    for rule in properties.cors.iter().flatten() {
        for list in lists(rule) {
            push_string(&mut out, &list.join(","));
        }
        out.extend_from_slice(&rule.max_age_in_seconds.to_be_bytes());
    }
    out
}

/// Reads the properties of a service.
pub(super) fn read_properties(record: &[u8]) -> Result<ServiceProperties, StorageError> {
    let mut input = Input { rest: record };
    let metrics = |input: &mut Input<'_>| {
        let mut metrics = Metrics::default();
        metrics.include_apis = input.option(Input::flag)?;
        metrics.retention_days = input.option(Input::number)?;
        Some(metrics)
    };
    let read = |input: &mut Input<'_>| {
        input.version()?;
        let mut logging = Logging::default();
        logging.read = input.flag()?;
        logging.write = input.flag()?;
        logging.delete = input.flag()?;
        logging.retention_days = input.option(Input::number)?;
        let properties = ServiceProperties::default()
            .with_logging(logging)
            .with_hour_metrics(metrics(input)?)
            .with_minute_metrics(metrics(input)?);
        let mut cors = Vec::new();
        while !input.rest.is_empty() {
            let mut rule = CorsRule::default();
            rule.allowed_origins = input.list()?;
            rule.allowed_methods = input.list()?;
            rule.allowed_headers = input.list()?;
            rule.exposed_headers = input.list()?;
            rule.max_age_in_seconds = u32::from_be_bytes(input.array()?);
            cors.push(rule);
        }
        Some(properties.with_cors(cors))
    };
    read(&mut input).ok_or(StorageError::corrupt("service properties"))
}

const fn lists(rule: &CorsRule) -> [&Vec<String>; 4] {
    [
        &rule.allowed_origins,
        &rule.allowed_methods,
        &rule.allowed_headers,
        &rule.exposed_headers,
    ]
}

fn push_option<T>(out: &mut Vec<u8>, value: Option<T>, push: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(value.is_some().into());
    if let Some(value) = value {
        push(out, value);
    }
}

fn push_number(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn push_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.unix_ticks().to_be_bytes());
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("checked texts are far below 64 KiB");
    push_number(out, length);
    out.extend_from_slice(text.as_bytes());
}

/// The unread rest of a record.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn version(&mut self) -> Option<()> {
        (self.array()? == [VERSION]).then_some(())
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            [_] => None,
        }
    }

    fn number(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn time(&mut self) -> Option<Timestamp> {
        Timestamp::from_unix_ticks(i64::from_be_bytes(self.array()?)).ok()
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        std::str::from_utf8(self.take(length.into())?).ok()
    }

    /// Strings with commas between them.
    fn list(&mut self) -> Option<Vec<String>> {
        let text = self.text()?;
        let items = text.split(',').filter(|item| !item.is_empty());
        Some(items.map(str::to_owned).collect())
    }

    #[expect(clippy::option_option, reason = "the outer one is a failure")]
    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        Some(if self.flag()? {
            Some(read(self)?)
        } else {
            None
        })
    }
}

/// The version of these layouts.
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_read_back() {
        let identifier = |id: &str, policy| SignedIdentifier {
            id: id.to_owned(),
            policy,
        };
        let policy = AccessPolicy {
            start: None,
            expiry: Some(Timestamp::MAX),
            permissions: Some(SasLetters::parse("ur").unwrap()),
        };
        let acl = [
            identifier("é", policy),
            identifier("empty", AccessPolicy::default()),
        ];
        assert_eq!(read_acl(&acl_record(&acl)).unwrap(), acl);
        assert_eq!(read_acl(&acl_record(&[])).unwrap(), []);

        let mut properties = ServiceProperties::initial();
        assert_eq!(
            read_properties(&properties_record(&properties)).unwrap(),
            properties
        );
        properties.logging = Some(Logging::default().reads().deletes().retain_days(365));
        let rule = CorsRule::new("a").allow_origin("b").allow_method("GET");
        let rule = rule.expose_header("x*").max_age_in_seconds(u32::MAX);
        properties.cors = Some(vec![rule]);
        assert_eq!(
            read_properties(&properties_record(&properties)).unwrap(),
            properties
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>) {
            let _ = (read_acl(&bytes), read_properties(&bytes));
            bytes.insert(0, VERSION);
            let _ = (read_acl(&bytes), read_properties(&bytes));
        }
    }
}
