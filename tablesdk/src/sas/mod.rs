//! Shared access signatures: URLs that let their bearers do some things for some time, without a key of the account.
//!
//! Signing one takes the account's key and asks nobody. [`TableClient::sas`](crate::TableClient::sas) signs for the entities of a
//! table, or for some of them; [`TableServiceClient::sas`](crate::TableServiceClient::sas) for a whole account. Whoever gets the
//! [`SasUrl`] makes a client of it with [`TableClient::from_sas_url`](crate::TableClient::from_sas_url).
//!
//! A signature cannot be taken back: it ends with its time, or with the key that made it. One that names a [stored access
//! policy](StoredAccessPolicy) of the table also ends when that policy does.
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
mod letters;
mod policy;
mod table;
mod terms;
mod url;

pub use account::AccountSasBuilder;
pub use key_range::SasKeys;
pub use letters::{AccountPermissions, Permissions, ResourceTypes, Services};
pub use policy::StoredAccessPolicy;
pub use table::TableSasBuilder;
pub use terms::IpRange;
pub use url::SasUrl;
