//! The terms that both kinds of shared access signatures have: times, addresses, protocol.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use tablesdk_protocol::Timestamp;
use tablesdk_protocol::auth::sas::{SasAddresses, SasProtocol, SasTime};

use crate::error::Error;

/// The first invalid option of a builder; `sign` reports it.
pub(super) type OptionProblem = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Default)]
pub(super) struct Terms {
    pub(super) start: Option<When>,
    pub(super) expiry: Option<When>,
    pub(super) addresses: Option<SasAddresses>,
    pub(super) protocol: Option<SasProtocol>,
    pub(super) problem: Option<OptionProblem>,
}

/// A time, or one in relation to that of the signing.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    At(Timestamp),
    In(Duration),
}

impl When {
    fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::In(duration) => now.saturating_add(duration),
        }
    }
}

impl Terms {
    pub(super) fn note<T, P: Into<OptionProblem>>(&mut self, result: Result<T, P>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problem.get_or_insert_with(|| problem.into());
                None
            }
        }
    }

    pub(super) fn time<T: TryInto<Timestamp, Error: Into<OptionProblem>>>(
        &mut self,
        time: T,
    ) -> Option<When> {
        self.note(time.try_into()).map(When::At)
    }

    pub(super) fn ip(&mut self, range: impl IpRange) {
        let (first, last) = range.into_ends();
        let text = if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        };
        let parsed = SasAddresses::parse(&text).map_err(|_| InvalidTerms::Addresses);
        self.addresses = self.note(parsed);
    }

    /// Start and expiry as they are signed. In whole seconds, which every backend reads.
    pub(super) fn times(
        &mut self,
        now: Timestamp,
    ) -> Result<(Option<SasTime>, Option<SasTime>), Error> {
        if let Some(problem) = self.problem.take() {
            return Err(refused(problem));
        }
        let sas_time = |when: When| SasTime::from(when.resolve(now));
        let (start, expiry) = (self.start.map(sas_time), self.expiry.map(sas_time));
        if let Some(expiry) = &expiry {
            if start
                .as_ref()
                .is_some_and(|start| expiry.at() <= start.at())
            {
                return Err(refused(InvalidTerms::ExpiresBeforeStart));
            }
            if expiry.at() <= now {
                return Err(refused(InvalidTerms::Expired));
            }
        }
        Ok((start, expiry))
    }
}

/// The options that the builders of both kinds of signature have.
macro_rules! term_options {
    ($builder:ident) => {
        impl $builder {
            /// Makes the signature valid from that time on; at once by default. Takes a
            /// [`Timestamp`](crate::Timestamp), a [`SystemTime`](std::time::SystemTime) or, with
            /// the feature `time`, an `OffsetDateTime`. Only whole seconds count.
            ///
            /// The service's clock decides, and it can differ from this machine's clock by seconds.
            /// For a signature that is valid at once, do not set this time.
            pub fn starts_at<T>(mut self, time: T) -> Self
            where
                T: TryInto<tablesdk_protocol::Timestamp, Error: Into<super::terms::OptionProblem>>,
            {
                self.terms.start = self.terms.time(time);
                self
            }

            /// Makes the signature valid from that long after the signing on.
            pub fn starts_in(mut self, duration: std::time::Duration) -> Self {
                self.terms.start = Some(super::terms::When::In(duration));
                self
            }

            /// Makes the signature valid until that time. Takes the same types as
            /// [`starts_at`](Self::starts_at).
            pub fn expires_at<T>(mut self, time: T) -> Self
            where
                T: TryInto<tablesdk_protocol::Timestamp, Error: Into<super::terms::OptionProblem>>,
            {
                self.terms.expiry = self.terms.time(time);
                self
            }

            /// Makes the signature valid until that long after the signing, by the client's
            /// [clock](crate::TableServiceClientBuilder::clock).
            pub fn expires_in(mut self, duration: std::time::Duration) -> Self {
                self.terms.expiry = Some(super::terms::When::In(duration));
                self
            }

            /// Makes the signature valid over https only. The service refuses it over http with
            /// `AuthorizationProtocolMismatch`.
            pub fn https_only(mut self) -> Self {
                self.terms.protocol = Some(tablesdk_protocol::auth::sas::SasProtocol::Https);
                self
            }

            /// Makes the signature valid only from that address, or from that range of addresses.
            /// The service refuses it from other addresses with `AuthorizationSourceIPMismatch`.
            /// Behind a proxy, the service sees the address of the proxy.
            pub fn ip(mut self, range: impl super::terms::IpRange) -> Self {
                self.terms.ip(range);
                self
            }
        }
    };
}

pub(super) use term_options;

/// The addresses from which a shared access signature may be used: one, or a range with both ends
/// in it.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use std::net::Ipv4Addr;
/// use tablesdk::sas::Permissions;
///
/// let expiry = std::time::Duration::from_secs(60);
/// let sas = || table.sas().allow(Permissions::READ).expires_in(expiry);
/// let office = Ipv4Addr::new(192, 0, 2, 0)..=Ipv4Addr::new(192, 0, 2, 255);
/// let url = sas().ip(office).sign()?;
/// assert!(url.expose().contains("sip=192.0.2.0-192.0.2.255"));
/// sas().ip(Ipv4Addr::new(192, 0, 2, 7)).sign()?;
/// # Ok(())
/// # }
/// ```
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait IpRange {
    /// The first and the last address.
    fn into_ends(self) -> (IpAddr, IpAddr);
}

impl IpRange for IpAddr {
    fn into_ends(self) -> (IpAddr, IpAddr) {
        (self, self)
    }
}

impl IpRange for Ipv4Addr {
    fn into_ends(self) -> (IpAddr, IpAddr) {
        (self.into(), self.into())
    }
}

impl<A: Into<IpAddr>> IpRange for RangeInclusive<A> {
    fn into_ends(self) -> (IpAddr, IpAddr) {
        let (first, last) = self.into_inner();
        (first.into(), last.into())
    }
}

pub(super) fn refused(problem: impl Into<OptionProblem>) -> Error {
    Error::input(problem).with_operation(OPERATION)
}

/// Why a shared access signature would be useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidTerms {
    #[error("the addresses end before they start, or are of two families")]
    Addresses,
    #[error("Azure Cosmos DB refuses a shared access signature with a range of keys")]
    KeysOnCosmosDb,
    #[error("the user delegation key is one of another account")]
    OtherAccount,
    #[error(
        "the shared access signature is valid longer than the user delegation key that signs it, which expires at {0}"
    )]
    OutlivesKey(Timestamp),
    #[error("a user delegation key cannot sign for a stored access policy")]
    PolicyAndDelegation,
    #[error(
        "a signature of the account's key cannot be for one user: a user delegation key signs it"
    )]
    UserWithoutDelegation,
    #[error("the shared access signature has expired already")]
    Expired,
    #[error("the shared access signature expires before it starts")]
    ExpiresBeforeStart,
    #[error(
        "the shared access signature never expires: give it a time, or a stored access policy that has one"
    )]
    NoExpiry,
    #[error("the shared access signature allows nothing")]
    NoPermission,
    #[error("the shared access signature holds for no kind of resource")]
    NoResourceType,
    #[error("the shared access signature does not hold for tables")]
    NoTables,
    #[error("the id of a stored access policy has 1 to 64 characters, and no control characters")]
    PolicyId,
    #[error(
        "permissions and times come from the stored access policy; with_partial_policy adds what it leaves open"
    )]
    PolicyAndTerms,
}

pub(super) const OPERATION: &str = "sign shared access signature";
