//! A table's stored access policies, as a program sees them.

use tablesdk_protocol::auth::sas::Permissions;
use tablesdk_protocol::{AccessPolicy, SignedIdentifier, Timestamp};

use super::terms::OptionProblem;
use crate::error::Error;

/// A stored access policy: what the table says about shared access signatures that name it.
///
/// A signature that was given away cannot be taken back, but the policy it names can: change it, or
/// leave it out of [`set_access_policy`](crate::TableClient::set_access_policy), and every
/// signature that names it follows, within 30 seconds.
///
/// A table has up to five of them. What a policy leaves open, the signature says.
///
/// ```
/// use tablesdk::sas::{Permissions, StoredAccessPolicy};
///
/// let readers = StoredAccessPolicy::new("readers").allow(Permissions::READ);
/// assert_eq!(readers.id(), "readers");
/// assert_eq!(readers.permissions(), Some(Permissions::READ));
/// assert_eq!(readers.expiry(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAccessPolicy {
    id: String,
    start: Option<Timestamp>,
    expiry: Option<Timestamp>,
    permissions: Option<Permissions>,
    /// The first mistake in the input.
    problem: Option<String>,
}

impl StoredAccessPolicy {
    /// A policy that says nothing yet. The id is what signatures name it by: 1 to 64 characters,
    /// none of them a control character, and no other policy's of the table.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            start: None,
            expiry: None,
            permissions: None,
            problem: None,
        }
    }

    /// Allows this as well.
    #[must_use]
    pub fn allow(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(self.permissions.unwrap_or_default() | permissions);
        self
    }

    /// Signatures hold from that time on. Takes a [`Timestamp`], a
    /// [`SystemTime`](std::time::SystemTime) or, with the feature `time`, an `OffsetDateTime`.
    #[must_use]
    pub fn starts_at<T: TryInto<Timestamp, Error: Into<OptionProblem>>>(mut self, time: T) -> Self {
        self.start = self.note(time.try_into());
        self
    }

    /// Signatures hold until that time. Takes what [`starts_at`](Self::starts_at) takes.
    #[must_use]
    pub fn expires_at<T: TryInto<Timestamp, Error: Into<OptionProblem>>>(
        mut self,
        time: T,
    ) -> Self {
        self.expiry = self.note(time.try_into());
        self
    }

    fn note<T, P: Into<OptionProblem>>(&mut self, result: Result<T, P>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problem
                    .get_or_insert_with(|| problem.into().to_string());
                None
            }
        }
    }

    /// The id by which signatures name the policy.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The permissions of the policy; `None` where the signature has them.
    pub const fn permissions(&self) -> Option<Permissions> {
        self.permissions
    }

    /// From when on; `None` where the signature says it, or from the beginning.
    pub const fn start(&self) -> Option<Timestamp> {
        self.start
    }

    /// Until when; `None` where the signature says it.
    pub const fn expiry(&self) -> Option<Timestamp> {
        self.expiry
    }

    /// For the wire, if it can be sent.
    pub(crate) fn into_wire(self) -> Result<SignedIdentifier, Error> {
        if let Some(problem) = self.problem {
            return Err(Error::input(problem));
        }
        if let (Some(start), Some(expiry)) = (self.start, self.expiry)
            && expiry <= start
        {
            return Err(Error::input(ExpiresBeforeStart { id: self.id }));
        }
        let permissions = self
            .permissions
            .filter(|permissions| !permissions.is_empty());
        Ok(SignedIdentifier {
            id: self.id,
            policy: AccessPolicy {
                start: self.start,
                expiry: self.expiry,
                permissions: permissions.map(Into::into),
            },
        })
    }

    pub(crate) fn from_wire(identifier: SignedIdentifier) -> Self {
        let SignedIdentifier { id, policy } = identifier;
        Self {
            id,
            start: policy.start,
            expiry: policy.expiry,
            permissions: policy.permissions.map(|permissions| permissions.set()),
            problem: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored access policy {id:?} expires before it starts")]
struct ExpiresBeforeStart {
    id: String,
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_policy_survives_the_wire() {
        let start: Timestamp = "2030-01-01T00:00:00.1234567Z".parse().unwrap();
        let policy = StoredAccessPolicy::new("x")
            .allow(Permissions::DELETE)
            .allow(Permissions::READ)
            .starts_at(start)
            .expires_at(SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000));
        let wire = policy.clone().into_wire().unwrap();
        assert_eq!(wire.policy.permissions.as_ref().unwrap().as_str(), "rd");
        assert_eq!(StoredAccessPolicy::from_wire(wire), policy);
        let open = StoredAccessPolicy::new("open");
        let wire = open.clone().into_wire().unwrap();
        assert!(wire.policy.is_empty());
        assert_eq!(StoredAccessPolicy::from_wire(wire), open);
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let start: Timestamp = "2030-01-01".parse().unwrap();
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(400_000_000_000);
        for policy in [
            StoredAccessPolicy::new("x")
                .starts_at(start)
                .expires_at(start),
            StoredAccessPolicy::new("x").expires_at(far),
        ] {
            let error = policy.into_wire().unwrap_err();
            assert_eq!(error.kind(), crate::error::ErrorKind::Input, "{error:?}");
        }
    }
}
