//! The value of an option that may be a secret: as it is given, or in an environment variable or a
//! file.
//!
//! An error names the option. It repeats no text that could be the secret itself, in a wrong place.

use std::fs::File;
use std::io::{self, Read as _};

use crate::error::AnyError;

/// The value of an option: the content of `env:NAME` or `file:PATH`, or the text itself.
pub(super) fn value(
    option: &str,
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, AnyError> {
    let value = if let Some(name) = text.strip_prefix("env:") {
        from_variable(name, variable)
    } else if let Some(path) = text.strip_prefix("file:") {
        from_file(path)
    } else {
        Ok(text.trim().to_owned())
    };
    let value = value.map_err(|error| format!("{option}: {error}"))?;
    if value.is_empty() {
        return Err(format!("{option}: the value is empty").into());
    }
    Ok(value)
}

fn from_variable(
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, AnyError> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_part) {
        return Err(
            "env: needs the name of an environment variable: letters, digits and underscores"
                .into(),
        );
    }
    let text = variable(name).unwrap_or_default();
    match text.trim() {
        "" => Err(format!("the environment variable {name} is not set").into()),
        text => Ok(text.to_owned()),
    }
}

fn from_file(path: &str) -> Result<String, AnyError> {
    // A connection string, a URL and a key have some of these.
    let shown = if path.contains(['=', ';', '&', '?']) {
        "after file:"
    } else {
        path
    };
    let text = read(path).map_err(|error| format!("the file {shown} cannot be read: {error}"))?;
    match text.trim() {
        "" => Err(format!("the file {shown} is empty").into()),
        text => Ok(text.to_owned()),
    }
}

fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if read as u64 > BYTES_MAX {
        let problem = format!("it has more than {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

/// More than any connection string has.
const BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "AccountName=a;AccountKey=c2VjcmV0";

    fn read_as(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "GIVEN" => Some(format!("{SECRET}\n")),
            _ => None,
        };
        value("--account-key", text, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_is_in_the_argument_a_variable_or_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("account");
        std::fs::write(&path, format!("\n {SECRET}\n")).unwrap();
        for text in [
            SECRET,
            "env:GIVEN",
            &format!("file:{}", path.to_str().unwrap()),
        ] {
            assert_eq!(read_as(text).as_deref(), Ok(SECRET), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_option_and_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, contents: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, contents).unwrap();
            format!("file:{}", path.to_str().unwrap())
        };
        let long = SECRET.repeat(4_000);
        for (text, problem) in [
            ("", "the value is empty"),
            ("env:OTHER", "the environment variable OTHER is not set"),
            ("env:", "needs the name of an environment variable"),
            (
                &format!("env:{SECRET}"),
                "needs the name of an environment variable",
            ),
            ("file:/nothing/here", "/nothing/here cannot be read"),
            (&format!("file:{SECRET}"), "the file after file: cannot be"),
            (&file("empty", b" \n"), "is empty"),
            (&file("long", long.as_bytes()), "more than 65536 bytes"),
            (&file("bytes", b"c2VjcmV0\xff"), "UTF-8"),
        ] {
            let error = read_as(text).unwrap_err();
            assert!(error.starts_with("--account-key: "), "{error}");
            assert!(error.contains(problem), "{text}: {error}");
            assert!(!error.contains("c2VjcmV0"), "{error}");
        }
    }
}
