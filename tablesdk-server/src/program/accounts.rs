//! Reads the accounts of the program from flags, a file or the environment; the default is the
//! well-known account.
//!
//! Error messages never contain a key, not even an invalid one.

use std::fs;
use std::path::Path;

use tablesdk_protocol::auth::SharedKey;

/// The accounts of the program: at least one.
pub(crate) struct Accounts {
    pub(crate) keys: Vec<SharedKey>,
    /// No account was given: this is the well-known one.
    pub(crate) is_default: bool,
}

impl Accounts {
    /// The accounts that are given, or else the well-known one.
    pub(crate) fn new(mut keys: Vec<SharedKey>) -> Self {
        let is_default = keys.is_empty();
        if is_default {
            let key = SharedKey::new(WELL_KNOWN_ACCOUNT, WELL_KNOWN_KEY);
            keys.push(key.expect("the well-known key is base64"));
        }
        Self { keys, is_default }
    }

    /// The name of an account with the well-known key, given or not.
    pub(crate) fn with_well_known_key(&self) -> Option<&str> {
        let mut keys = self.keys.iter();
        let found = keys.find(|key| key.expose().as_str() == WELL_KNOWN_KEY);
        found.map(SharedKey::account)
    }
}

/// The accounts that are given, in the order of flags, file and environment.
pub(crate) fn all(
    flags: &[String],
    file: Option<&Path>,
    environment: Option<&str>,
) -> Result<Vec<SharedKey>, String> {
    let mut accounts = Vec::new();
    for text in flags {
        accounts.push(account(text, "--account")?);
    }
    if let Some(path) = file {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| format!("--account-file {shown} cannot be read: {error}"))?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let place = format!("line {} of --account-file {shown}", index + 1);
                accounts.push(account(line, &place)?);
            }
        }
        if accounts.len() == flags.len() {
            return Err(format!("--account-file {shown} contains no account"));
        }
    }
    let environment = environment.unwrap_or_default().split([',', '\n']);
    for text in environment.map(str::trim).filter(|text| !text.is_empty()) {
        accounts.push(account(text, VARIABLE)?);
    }
    Ok(accounts)
}

fn account(text: &str, place: &str) -> Result<SharedKey, String> {
    let (name, key) = text.split_once(':').ok_or_else(|| {
        format!("{place}: an account has the form NAME:KEY, but the colon is missing")
    })?;
    SharedKey::new(name, key.trim())
        .map_err(|_| format!("{place}: the key of the account {name:?} is not base64"))
}

/// The environment variable with accounts.
pub(crate) const VARIABLE: &str = "TABLESDK_SERVER_ACCOUNTS";
const WELL_KNOWN_ACCOUNT: &str = "devstoreaccount1";
/// Public: every emulator of the service has it.
/// See <https://learn.microsoft.com/azure/storage/common/storage-connect-azurite>.
pub(crate) const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_come_from_options_file_and_environment() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("accounts");
        fs::write(&path, "# ours\n\n two:c2VjcmV0 \n").unwrap();
        let flags = ["one:c2VjcmV0".to_owned()];
        let accounts = all(&flags, Some(&path), Some("three:c2VjcmV0, four:c2VjcmV0\n"));
        let accounts = accounts.unwrap();
        let names: Vec<_> = accounts.iter().map(SharedKey::account).collect();
        assert_eq!(names, ["one", "two", "three", "four"]);
        assert!(all(&[], None, None).unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_source_without_the_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("accounts");
        fs::write(&path, "one:c2VjcmV0\ntwo:se!cret\n").unwrap();
        for (refusal, named) in [
            (all(&["one".to_owned()], None, None), "--account: "),
            (all(&["one:se!cret".to_owned()], None, None), "\"one\""),
            (all(&[], Some(&path), None), "line 2 of "),
            (all(&[], None, Some("a:se!cret")), VARIABLE),
            (all(&[], Some(directory.path()), None), "cannot be read"),
        ] {
            let refusal = refusal.unwrap_err();
            assert!(refusal.contains(named), "{refusal}");
            assert!(!refusal.contains("cret"), "{refusal}");
        }
    }
}
