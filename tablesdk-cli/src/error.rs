//! Errors of commands: their texts for people, and which of them are errors in the arguments.

use std::error::Error;

use tablesdk::ErrorKind;

/// An error of any kind.
pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// An error in the arguments, or in the environment variables that replace them.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct UsageError(pub(crate) AnyError);

/// Returns true if the arguments are not valid. The client refuses some of them.
pub(crate) fn is_usage(error: &AnyError) -> bool {
    let of_client = error.downcast_ref().map(tablesdk::Error::kind);
    error.is::<UsageError>() || of_client == Some(ErrorKind::Input)
}

/// The text of an error, for people who use the program.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    all_causes(error).replace(REMEDY, "`tables ls` prints the names")
}

/// The same, for a page that shows the names of the tables.
#[cfg(feature = "explore")]
pub(crate) fn without_remedy(error: &(dyn Error + 'static)) -> String {
    all_causes(error).replace(&format!("; {REMEDY}"), "")
}

/// An error with those causes that its message does not contain. An error of the client contains
/// all of them, in one line.
fn all_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = in_one_line(&cause.to_string());
        if !in_one_line(&text).contains(message.trim_end_matches('.')) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = cause.source();
    }
    text
}

fn in_one_line(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.join(" ")
}

/// The client's advice to a program about a table that does not exist.
const REMEDY: &str = "`create_table().if_missing()` creates it";

#[cfg(test)]
mod tests {
    use tablesdk::ErrorCode;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the table cannot be copied")]
    struct Outer(#[source] tablesdk::Error);

    #[test]
    fn a_cause_is_printed_once() {
        let inner = tablesdk::Error::service(ErrorCode::TableNotFound);
        let text = with_causes(&inner);
        let expected =
            "404 TableNotFound: The table specified does not exist; `tables ls` prints the names";
        assert_eq!(text, expected, "the remedy is one of the program");
        let outer = with_causes(&Outer(inner));
        assert_eq!(outer, format!("the table cannot be copied: {text}"));
    }
}
