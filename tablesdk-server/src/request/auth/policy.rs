//! Combines a table SAS with the stored access policy that it names.
//!
//! A field may be set in only one of the two. See
//! <https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy>.

use tablesdk_protocol::auth::sas::{Permissions, SasLetters, SasTime, TableSas};
use tablesdk_protocol::{AccessPolicy, SignedIdentifier, Timestamp};

/// The terms of a table SAS, completed by its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) permissions: Permissions,
    pub(super) start: Option<Timestamp>,
    pub(super) expiry: Timestamp,
}

/// The terms of a SAS. `None` if its policy does not exist or repeats a field, or if expiry or
/// permissions are in neither.
pub(super) fn terms(sas: &TableSas, stored: &[SignedIdentifier]) -> Option<Terms> {
    let open = AccessPolicy::default();
    let policy = match &sas.policy {
        Some(id) => &stored.iter().find(|stored| stored.id == *id)?.policy,
        None => &open,
    };
    Some(Terms {
        permissions: one_of(sas.permissions.as_ref(), policy.permissions.as_ref())?
            .map(SasLetters::set)?,
        start: one_of(sas.start.as_ref().map(SasTime::at), policy.start)?,
        expiry: one_of(sas.expiry.as_ref().map(SasTime::at), policy.expiry)??,
    })
}

/// The value that is set; `None` if both are.
#[expect(clippy::option_option, reason = "the outer one is a refusal")]
fn one_of<T>(given: Option<T>, stored: Option<T>) -> Option<Option<T>> {
    match (given, stored) {
        (Some(_), Some(_)) => None,
        (given, stored) => Some(given.or(stored)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_field_is_in_the_sas_or_in_its_policy() {
        let stored = |policy| {
            let id = "id".to_owned();
            [SignedIdentifier { id, policy }]
        };
        let full = stored(AccessPolicy {
            start: Some(time("2024-01-01")),
            expiry: Some(time("2025-01-01")),
            permissions: Some(Permissions::READ.into()),
        });
        let partial = stored(AccessPolicy {
            permissions: Some(Permissions::READ.into()),
            ..AccessPolicy::default()
        });
        let table = || "people".parse().unwrap();
        let named = TableSas::with_policy(table(), "id");
        let mut named_until = named.clone();
        named_until.expiry = Some(time("2026-01-01").into());
        let mut named_from = named.clone();
        named_from.start = Some(time("2026-01-01").into());
        let whole = TableSas::new(table(), Permissions::ADD, time("2026-01-01"));
        let unknown = TableSas::with_policy(table(), "ID");

        let found = terms(&named, &full).unwrap();
        assert_eq!(found.permissions, Permissions::READ);
        assert_eq!(found.start, Some(time("2024-01-01")));
        assert_eq!(found.expiry, time("2025-01-01"));
        let found = terms(&named_until, &partial).unwrap();
        assert_eq!((found.start, found.expiry), (None, time("2026-01-01")));
        // Without a name the policies are no matter.
        assert_eq!(terms(&whole, &full).unwrap().permissions, Permissions::ADD);

        for (sas, stored) in [
            (&named_until, &full),
            (&named_from, &full),
            (&named, &partial),
            (&unknown, &full),
        ] {
            assert_eq!(terms(sas, stored), None, "{sas:?}");
        }
        assert_eq!(terms(&named, &[]), None);
    }
}
