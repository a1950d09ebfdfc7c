//! Shared access signatures: URLs that grant some operations for a limited time, without a key of
//! the account.
//!
//! Signing needs the account's key and sends no request. Without one, a [`UserDelegationKey`]
//! signs, which a client with tokens gets: see the
//! [guide](crate::guide::credentials#user-delegation).
//! [`TableClient::sas`](crate::TableClient::sas) signs for the entities of a table, or for some of
//! them; [`TableServiceClient::sas`](crate::TableServiceClient::sas) signs for a whole account. The
//! recipient of the [`SasUrl`] makes a client from it with
//! [`TableClient::from_sas_url`](crate::TableClient::from_sas_url).
//!
//! A single signature cannot be revoked: it ends when it expires, or when the key that signed it is
//! replaced. A signature that names a [stored access policy](StoredAccessPolicy) of the table also
//! ends when that policy does.
//!
//! ```
#![doc = include_str!("../docs/employees.md")]
//! use std::time::Duration;
//! use tablesdk::TableClient;
//! use tablesdk::sas::Permissions;
//!
//! let sas = table.sas().allow(Permissions::READ).expires_in(Duration::from_secs(3600));
//! let url = sas.partition("Sales").sign()?;
//! let guest = TableClient::from_sas_url(&url.expose())?;
//! assert_eq!(guest.query::<Employee>().count().await?, 0);
//! # Ok(())
//! # }
//! ```
//!
//! Knows what may be signed, not how: the texts and their signatures are the protocol's. See
//! <https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature>.

mod account;
mod key_range;
mod policy;
mod table;
mod terms;
mod url;

pub use account::AccountSasBuilder;
pub use policy::StoredAccessPolicy;
pub use table::TableSasBuilder;
pub use url::SasUrl;

pub use tablesdk_protocol::auth::sas::{
    AccountPermissions, Permissions, ResourceTypes, Services, UserDelegationKey,
};
