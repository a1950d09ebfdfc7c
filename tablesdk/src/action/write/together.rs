//! Several changes as one transaction: with the entries of indexes, and with a marker. This module knows neither what an index is nor how
//! an ambiguous outcome is resolved.

use std::pin::Pin;

use tablesdk_protocol::ETag;

use super::batch_request::BatchRequest;
use super::change::EntityChange;
use super::exactly_once::{self, KeepMarker};
use crate::error::Error;
use crate::pipeline::OperationRun;

/// Carries out changes together with what belongs to them. A program without it does not contain its function.
pub(in crate::action) struct CommitHook {
    /// Names it, also in an error. Functions cannot be compared.
    pub(in crate::action) name: &'static str,
    pub(in crate::action) carry_out: CarryOut,
}

type CarryOut = for<'r, 'p> fn(
    &'r mut OperationRun<'p>,
    &'r [EntityChange],
    Option<KeepMarker>,
) -> EtagsFuture<'r>;

type EtagsFuture<'r> = Pin<Box<dyn Future<Output = Result<Vec<Option<ETag>>, Error>> + Send + 'r>>;

/// Sends changes as one request, with the entries of indexes, and with a marker if the outcome must be certain. The index in an error is
/// that of the change. An [ambiguous](Error::is_ambiguous) error is not resolved yet.
pub(in crate::action) async fn carry_out(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    exactly_once: Option<KeepMarker>,
) -> Result<Vec<Option<ETag>>, Error> {
    let hooks = changes.iter().filter_map(|change| change.entries.hook());
    match the_hook(hooks) {
        Ok(Some(hook)) => (hook.carry_out)(run, changes, exactly_once).await,
        Ok(None) => send_together(run, changes, exactly_once).await,
        Err(error) => Err(run.annotate(Error::input(error))),
    }
}

/// What carries out all changes. One function gets them all, so it must know what belongs to each.
fn the_hook(
    mut hooks: impl Iterator<Item = &'static CommitHook>,
) -> Result<Option<&'static CommitHook>, SeveralHooks> {
    let Some(first) = hooks.next() else {
        return Ok(None);
    };
    match hooks.find(|other| other.name != first.name) {
        Some(other) => Err(SeveralHooks {
            first: first.name,
            other: other.name,
        }),
        None => Ok(Some(first)),
    }
}

/// As [`carry_out`], without the entries of indexes.
pub(in crate::action) async fn send_together(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    exactly_once: Option<KeepMarker>,
) -> Result<Vec<Option<ETag>>, Error> {
    if let Some(keep) = exactly_once {
        return exactly_once::commit(run, changes, keep).await;
    }
    let request = BatchRequest::new(run, changes.iter().map(|change| &change.change))?;
    request.send(run).await.map(|done| done.etags)
}

#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "a change with {first} and a change with {other} cannot be carried out as one batch: send them separately"
)]
struct SeveralHooks {
    first: &'static str,
    other: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    static ENTRIES: CommitHook = hook("entries of indexes");
    /// Of another type of entities.
    static OTHER_ENTRIES: CommitHook = hook("entries of indexes");
    static WIDE: CommitHook = hook("siblings");

    const fn hook(name: &'static str) -> CommitHook {
        CommitHook {
            name,
            carry_out: |_, _, _| Box::pin(async { Ok(Vec::new()) }),
        }
    }

    fn chosen(hooks: &[&'static CommitHook]) -> Result<Option<&'static str>, SeveralHooks> {
        let hook = the_hook(hooks.iter().copied())?;
        Ok(hook.map(|hook| hook.name))
    }

    #[test]
    fn changes_of_two_kinds_are_not_carried_out_as_those_of_the_first() {
        assert_eq!(chosen(&[]), Ok(None));
        let entries = chosen(&[&ENTRIES, &OTHER_ENTRIES, &ENTRIES]);
        assert_eq!(entries, Ok(Some("entries of indexes")));
        let error = chosen(&[&ENTRIES, &OTHER_ENTRIES, &WIDE]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a change with entries of indexes and a change with siblings cannot be carried out as one batch: send them separately"
        );
    }
}
