//! Where the accounts of the program come from: flags, a file, the environment; else the well-known one.
//!
//! A key never gets into a message, whatever is wrong with it.

use std::fs;
use std::path::Path;

use tablesdk_protocol::auth::SharedKey;

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
            return Err(format!("--account-file {shown} has no account in it"));
        }
    }
    let environment = environment.unwrap_or_default().split([',', '\n']);
    for text in environment.map(str::trim).filter(|text| !text.is_empty()) {
        accounts.push(account(text, VARIABLE)?);
    }
    Ok(accounts)
}

fn account(text: &str, place: &str) -> Result<SharedKey, String> {
    let (name, key) = text
        .split_once(':')
        .ok_or_else(|| format!("{place}: an account is NAME:KEY, and there is no colon"))?;
    SharedKey::new(name, key.trim())
        .map_err(|_| format!("{place}: the key of the account {name:?} is not base64"))
}

/// The environment variable with accounts.
pub(crate) const VARIABLE: &str = "TABLESDK_SERVER_ACCOUNTS";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_come_from_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        fs::write(&path, "# ours\n\n two:c2VjcmV0 \n").unwrap();
        let flags = ["one:c2VjcmV0".to_owned()];
        let accounts = all(&flags, Some(&path), Some("three:c2VjcmV0, four:c2VjcmV0\n"));
        let accounts = accounts.unwrap();
        let names: Vec<_> = accounts.iter().map(SharedKey::account).collect();
        assert_eq!(names, ["one", "two", "three", "four"]);
        assert!(all(&[], None, None).unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_without_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        fs::write(&path, "one:c2VjcmV0\ntwo:se!cret\n").unwrap();
        for (refusal, named) in [
            (all(&["one".to_owned()], None, None), "--account: "),
            (all(&["one:se!cret".to_owned()], None, None), "\"one\""),
            (all(&[], Some(&path), None), "line 2 of "),
            (all(&[], None, Some("a:se!cret")), VARIABLE),
            (all(&[], Some(folder.path()), None), "cannot be read"),
        ] {
            let refusal = refusal.unwrap_err();
            assert!(refusal.contains(named), "{refusal}");
            assert!(!refusal.contains("cret"), "{refusal}");
        }
    }
}
