//! `tables sas`: a shared access signature for a table or an account. The account's key signs it;
//! nothing is sent. With tokens, a user delegation key signs, which the service gives.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tablesdk::sas::{
    AccountPermissions, AccountSasBuilder, Permissions, ResourceTypes, SasUrl, TableSasBuilder,
};
use tablesdk::{ErrorKind, Timestamp};
use tablesdk_protocol::auth::sas::LetterSet;

use crate::account::Account;
use crate::error::{AnyError, UsageError};
use crate::output::{Output, note};

/// Sign a shared access signature
///
/// It is for the entities of a table, or without TABLE for the account. A key of the account
/// signs it: it ends when it expires, or when the key is replaced. With --auth, a user
/// delegation key signs it, for a table and at most seven days.
///
///   tables sas Employees --permissions r --for 7d
///   tables sas Employees --permissions raud --partition Sales --for 12h --url
///   tables sas Employees --permissions r --for 1h --from-partition A --to-partition M
///   tables sas Employees --policy readers
///   tables sas --permissions rl --resource-types sco --expires 2099-12-31
///
/// Every program that has the signature can do what it permits. --sas-token and --sas-url
/// take it.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Sas {
    /// The table. Without it, the signature is for the account
    table: Option<String>,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    keys: Keys,
    /// Print the URL with the signature, as --sas-url takes it
    #[arg(long)]
    url: bool,
    #[command(flatten)]
    account: Account,
}

/// The permissions of the signature
#[derive(Args)]
struct Grant {
    /// The letters of what it permits
    ///
    /// For a table: r read, a add, u update, d delete. An upsert needs au.
    /// For an account also: l list tables, c create tables, w create tables and set the
    /// properties of the service; d also deletes tables.
    #[arg(
        long,
        help_heading = "Signature",
        value_name = "LETTERS",
        required_unless_present = "policy",
        verbatim_doc_comment
    )]
    permissions: Option<String>,
    /// For an account, on what: s service properties, c tables, o entities
    #[arg(
        long,
        help_heading = "Signature",
        value_name = "LETTERS",
        conflicts_with = "table",
        required_unless_present = "table"
    )]
    resource_types: Option<String>,
    /// A stored access policy of the table, which gives permissions and times
    ///
    /// Permissions and times that are given as well are those that the policy leaves open.
    #[arg(
        long,
        help_heading = "Signature",
        value_name = "ID",
        verbatim_doc_comment
    )]
    policy: Option<String>,
}

/// When and from where it is valid
#[derive(Args)]
struct Terms {
    /// How long it is valid, such as 90s, 30m, 12h or 7d
    #[arg(long = "for", help_heading = "Signature", value_name = "DURATION", value_parser = duration, required_unless_present_any = ["expires", "policy"])]
    lifetime: Option<Duration>,
    /// Until when it is valid, such as 2099-12-31 or 2099-12-31T12:00:00Z
    #[arg(
        long,
        help_heading = "Signature",
        value_name = "TIME",
        conflicts_with = "lifetime"
    )]
    expires: Option<Timestamp>,
    /// From when on it is valid. Default: at once
    #[arg(long, help_heading = "Signature", value_name = "TIME")]
    starts: Option<Timestamp>,
    /// Only from this address, or from a range such as 192.0.2.0-192.0.2.255
    #[arg(long, help_heading = "Signature", value_name = "ADDRESS", value_parser = addresses)]
    ip: Option<RangeInclusive<IpAddr>>,
    /// Only over https
    #[arg(long, help_heading = "Signature")]
    https_only: bool,
}

/// Which entities of a table it covers
#[derive(Args)]
struct Keys {
    /// Only this partition
    #[arg(long, help_heading = "Signature", value_name = "KEY", conflicts_with_all = ["from_partition", "to_partition"])]
    partition: Option<String>,
    /// Only from this partition on
    #[arg(long, help_heading = "Signature", value_name = "KEY")]
    from_partition: Option<String>,
    /// Only from this row key of the first partition on
    #[arg(long, help_heading = "Signature", value_name = "KEY")]
    from_row: Option<String>,
    /// Only up to this partition, which is included
    #[arg(long, help_heading = "Signature", value_name = "KEY")]
    to_partition: Option<String>,
    /// Only up to this row key of the last partition, which is included
    #[arg(long, help_heading = "Signature", value_name = "KEY")]
    to_row: Option<String>,
}

impl Sas {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        let url = self.url;
        let signed = self.sign().await?;
        let (address, token) = (signed.expose(), signed.sas().expose());
        let mut out = io::stdout().lock();
        match output.is_json() {
            true => writeln!(out, "{}", json!({ "token": token, "url": &*address }))?,
            false if url => writeln!(out, "{}", &*address)?,
            false => writeln!(out, "{token}")?,
        }
        Ok(())
    }

    async fn sign(self) -> Result<SasUrl, AnyError> {
        let has_tokens = self.account.has_tokens();
        let service = self.account.connect()?;
        if self.terms.https_only && !service.endpoint().is_https() {
            note(&format!(
                "the signature is for https only, and {} is not",
                service.endpoint()
            ));
        }
        let signed = match &self.table {
            Some(table) => {
                let builder = self
                    .grant
                    .on_table(service.table(table).sas(), &self.terms)?;
                let builder = self.keys.limit(with_terms!(builder, self.terms))?;
                if has_tokens {
                    return Ok(builder.delegate().await?);
                }
                builder.sign()
            }
            None if self.grant.policy.is_some() || self.keys.is_limited() => {
                return Err(usage("a policy and keys are those of a table: name it"));
            }
            None if has_tokens => {
                return Err(usage("a user delegation key signs for a table: name it"));
            }
            None => {
                let builder = self.grant.on_account(service.sas())?;
                with_terms!(builder, self.terms).sign()
            }
        };
        signed.map_err(|error| match error.kind() {
            ErrorKind::Configuration => usage("a shared access signature is signed with a key of the account: use --account-key, a connection string that has an AccountKey, or --auth"),
            _ => error.into(),
        })
    }
}

/// The builder with the terms: those of tables and of accounts are methods of two types.
macro_rules! with_terms {
    ($builder:expr, $terms:expr) => {{
        let (mut builder, terms) = ($builder, &$terms);
        if let Some(lifetime) = terms.lifetime {
            builder = builder.expires_in(lifetime);
        }
        if let Some(time) = terms.expires {
            builder = builder.expires_at(time);
        }
        if let Some(time) = terms.starts {
            builder = builder.starts_at(time);
        }
        if let Some(addresses) = &terms.ip {
            builder = builder.ip(addresses.clone());
        }
        if terms.https_only {
            builder = builder.https_only();
        }
        builder
    }};
}
use with_terms;

impl Terms {
    fn has_time(&self) -> bool {
        self.lifetime.is_some() || self.expires.is_some() || self.starts.is_some()
    }
}

impl Grant {
    fn on_table(
        &self,
        mut builder: TableSasBuilder,
        terms: &Terms,
    ) -> Result<TableSasBuilder, AnyError> {
        if let Some(permissions) = &self.permissions {
            builder = builder.allow(letters(PERMISSIONS, permissions, Permissions::all())?);
        }
        Ok(match &self.policy {
            Some(id) if self.permissions.is_some() || terms.has_time() => {
                builder.with_partial_policy(id)
            }
            Some(id) => builder.with_policy(id),
            None => builder,
        })
    }

    fn on_account(&self, mut builder: AccountSasBuilder) -> Result<AccountSasBuilder, AnyError> {
        if let Some(permissions) = &self.permissions {
            builder = builder.allow(letters(
                PERMISSIONS,
                permissions,
                AccountPermissions::all(),
            )?);
        }
        if let Some(types) = &self.resource_types {
            builder = builder.on(letters("--resource-types", types, ResourceTypes::all())?);
        }
        Ok(builder)
    }
}

impl Keys {
    fn is_limited(&self) -> bool {
        let partitions = [&self.partition, &self.from_partition, &self.to_partition];
        let rows = [&self.from_row, &self.to_row];
        partitions.iter().any(|it| it.is_some()) || rows.iter().any(|it| it.is_some())
    }

    fn limit(self, builder: TableSasBuilder) -> Result<TableSasBuilder, AnyError> {
        let from = self.from_partition.or_else(|| self.partition.clone());
        let to = self.to_partition.or(self.partition);
        Ok(match (from, self.from_row, to, self.to_row) {
            (None, None, None, None) => builder,
            (None, Some(_), ..) => {
                return Err(usage("--from-row needs --from-partition or --partition"));
            }
            (.., None, Some(_)) => {
                return Err(usage("--to-row needs --to-partition or --partition"));
            }
            (Some(from), None, Some(to), None) => builder.partitions(from..=to),
            (Some(from), row, None, None) => builder.keys((from, row.unwrap_or_default())..),
            (None, None, Some(to), Some(row)) => builder.keys(..=(to, row)),
            (Some(from), row, Some(to), Some(last)) => {
                builder.keys((from, row.unwrap_or_default())..=(to, last))
            }
            (_, _, Some(_), None) => {
                return Err(usage(
                    "a signature that ends with a whole partition starts with one: give --from-partition without --from-row, or --to-row",
                ));
            }
        })
    }
}

/// The set of the letters, each of which is one of those of `all`.
fn letters<S: LetterSet>(option: &str, text: &str, all: S) -> Result<S, AnyError> {
    let known = all.to_string();
    if text.is_empty() || !text.chars().all(|letter| known.contains(letter)) {
        return Err(usage(&format!(
            "{option} has letters of {known}, with nothing between them"
        )));
    }
    Ok(S::from_letters(text))
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    const PROBLEM: &str = "a duration is a number with s, m, h or d, such as 7d";
    let unit = text.chars().next_back().ok_or(PROBLEM)?;
    let number = text.strip_suffix(unit).unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(PROBLEM),
    };
    // A plus sign would be read as well.
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|it| is_number && *it > 0);
    let seconds = number.and_then(|number| number.checked_mul(seconds));
    seconds.map(Duration::from_secs).ok_or(PROBLEM)
}

fn addresses(text: &str) -> Result<RangeInclusive<IpAddr>, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => Ok(first..=last),
        _ => Err("not an IP address, or two with a hyphen between them"),
    }
}

fn usage(problem: &str) -> AnyError {
    UsageError(problem.into()).into()
}

const PERMISSIONS: &str = "--permissions";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let day = Duration::from_secs(24 * 60 * 60);
        for (text, expected) in [
            ("90s", Duration::from_secs(90)),
            ("30m", Duration::from_secs(1_800)),
            ("24h", day),
            ("7d", day * 7),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "7",
            "d",
            "-7d",
            "+7d",
            "0d",
            "7w",
            "7ä",
            "1.5h",
            "18446744073709551615d",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
