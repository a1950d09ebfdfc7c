//! Text that a program itself can write to a log.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt::{Debug, Display};

use tablesdk::{Error, ErrorKind};

/// The values of a program that it can show.
#[derive(Default)]
pub(super) struct Shown {
    /// Once each.
    pub(super) texts: BTreeSet<String>,
    pub(super) errors: Vec<ErrorKind>,
}

impl Shown {
    pub(super) fn debug(&mut self, thing: &impl Debug) {
        self.texts
            .extend([format!("{thing:?}"), format!("{thing:#?}")]);
    }

    pub(super) fn display(&mut self, thing: &(impl Debug + Display)) {
        self.debug(thing);
        self.texts
            .extend([format!("{thing}"), format!("{thing:#}")]);
    }

    pub(super) fn error(&mut self, error: &Error) {
        self.errors.push(error.kind());
        self.display(error);
        let mut source = error.source();
        while let Some(cause) = source {
            self.display(&cause);
            source = cause.source();
        }
        if let Some(current) = error.current() {
            self.display(current);
        }
    }

    /// The error of an action; what it returns otherwise belongs to the program.
    pub(super) fn result<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.error(&error)).ok()
    }
}

/// Shows an action, or a query, and runs it.
macro_rules! run {
    ($shown:ident, $action:expr) => {{
        let action = $action;
        $shown.debug(&action);
        $shown.result(action.await)
    }};
    ($shown:ident, $query:expr => $end:ident $(($argument:expr))?) => {{
        let query = $query;
        $shown.debug(&query);
        $shown.result(query.$end($($argument)?).await)
    }};
}

pub(super) use run;
