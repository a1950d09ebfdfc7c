//! The message of an error: what failed, where and why. It contains the causes, each once, so that
//! `{}` shows all that is known.

use std::error::Error as StdError;
use std::fmt::{self, Write as _};
use std::iter;

use tablesdk_protocol::{Endpoint, EntityKey};

use super::{Error, ErrorKind, Inner, Source};

impl Error {
    /// The message without the operation and where it took place.
    pub(crate) fn why(&self) -> String {
        let mut text = String::new();
        if self.0.kind == ErrorKind::OutcomeUnknown {
            text.push_str("may have been carried out or not");
            if let Some(current) = &self.0.current {
                let _ = write!(text, " ({current})");
            }
            text.push_str(": ");
        } else if let Some(current) = &self.0.current {
            let _ = write!(text, "{current}: ");
        }
        if let Some(details) = &self.0.details {
            let _ = write!(text, "{details}: ");
        }
        match &self.0.source {
            Source::Message(message) | Source::Timeout(message) => text.push_str(message),
            Source::Foreign(status) => {
                let _ = write!(
                    text,
                    "{status}, in a response that is not from the table service"
                );
            }
            Source::Service(error) => {
                let _ = write!(text, "{error}");
            }
            Source::Transport(error) => push_causes(&mut text, error),
            Source::Credential(error) => {
                text.push_str("the credential gave no token: ");
                push_causes(&mut text, error.as_ref());
            }
            Source::Other(error) => {
                text.push_str(match self.0.kind {
                    ErrorKind::Aborted => "the closure returned an error: ",
                    ErrorKind::OutcomeUnknown | ErrorKind::Response | ErrorKind::Transport => {
                        "the response cannot be read: "
                    }
                    _ => "",
                });
                push_causes(&mut text, error.as_ref());
            }
        }
        one_line(&text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            operation,
            endpoint,
            table,
            key,
            request_id,
            attempts,
            elapsed,
            batch_index,
            batch_size,
            ..
        } = &*self.0;
        if let Some(index) = batch_index {
            write!(f, "change {}", index + 1)?;
            if let Some(size) = batch_size {
                write!(f, " of {size}")?;
            }
            f.write_str(": ")?;
        }
        if let Some(operation) = operation {
            f.write_str(operation)?;
            if let Some(table) = table {
                write!(f, "{} {table:?}", preposition(operation))?;
            }
            if let Some(endpoint) = endpoint {
                write!(f, " at {}", without_scheme(endpoint))?;
            }
            if let Some(key) = key {
                write!(f, " {}", Excerpt(key))?;
            }
            f.write_str(": ")?;
        }
        match (self.why(), self.hint()) {
            (why, Some(hint)) => write!(f, "{}; {hint}", why.trim_end_matches('.'))?,
            (why, None) => f.write_str(&why)?,
        }
        match (attempts, request_id) {
            (0 | 1, None) => Ok(()),
            (0 | 1, Some(id)) => write!(f, " (request id {id})"),
            // All requests of the operation, retries among them.
            (_, None) => write!(f, " ({attempts} requests in {elapsed:.1?})"),
            (_, Some(id)) => write!(
                f,
                " ({attempts} requests in {elapsed:.1?}, request id {id})"
            ),
        }
    }
}

/// As `{}`: it is what `unwrap` and a failing test print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The source is the cause, whose message is a part of `{}`.
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.source {
            Source::Credential(error) | Source::Other(error) => Some(error.as_ref()),
            Source::Service(error) => Some(error),
            Source::Transport(error) => Some(error.as_ref()),
            Source::Foreign(_) | Source::Message(_) | Source::Timeout(_) => None,
        }
    }
}

/// Between an operation and its table.
fn preposition(operation: &str) -> &'static str {
    if operation.ends_with(" table") || operation == "table_exists" {
        ""
    } else if operation.ends_with(" policy") {
        " of"
    } else {
        " in"
    }
}

fn without_scheme(endpoint: &Endpoint) -> &str {
    let url = endpoint.as_str();
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// A key whose parts are cut to a length that fits a line.
pub(crate) struct Excerpt<'k>(pub(crate) &'k EntityKey);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = |text: &str| match text.char_indices().nth(KEY_CHARACTERS_MAX) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        };
        let partition_key = cut(self.0.partition_key().as_str());
        let row_key = cut(self.0.row_key().as_str());
        write!(f, "({partition_key:?}, {row_key:?})")
    }
}

/// Appends an error and its causes. A cause that the messages before it contain is left out.
pub(crate) fn push_causes(text: &mut String, error: &(dyn StdError + 'static)) {
    let mut causes = error.to_string();
    for cause in chain(error).skip(1) {
        let message = cause.to_string();
        if !is_in(&message, &causes) {
            causes.push_str(": ");
            causes.push_str(&message);
        }
    }
    text.push_str(&one_line(&causes));
}

/// Returns true if a message contains the message of a cause. An [`Error`] has it in one line, and
/// a hint after it replaces its full stop.
fn is_in(cause: &str, message: &str) -> bool {
    one_line(message).contains(one_line(cause).trim_end_matches('.'))
}

/// A message is one line of a log, whatever the service or a closure says.
fn one_line(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.join(" ")
}

/// The first of an error and its causes that is a `T`.
pub(crate) fn find_cause<'e, T: StdError + 'static>(
    error: &'e (dyn StdError + 'static),
) -> Option<&'e T> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// An error and its causes.
fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    iter::successors(Some(error), |error| (*error).source())
}

const KEY_CHARACTERS_MAX: usize = 80;
