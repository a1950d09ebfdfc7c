//! `modify`: reads an entity, changes it, and writes it if it has not changed since the read.
//! Otherwise it starts over.

use std::borrow::Borrow;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::{EntityCursor, read_entity};
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, IfMatch};

use super::extend::extension::{Extensions, LeftOut};
use super::get_entity::{RawEntity, fetch, is_hidden, opened};
use super::refusal::check_condition;
use super::write::ambiguous_write::compare;
use super::write::change::{ChangeKind, EntityChange};
use super::write::encoded::EncodedEntity;
use super::write::keep_marker::KeepMarker;
use super::write::own_copies::{Next, OwnCopies, unchanged};
use super::write::unmodelled::{left_as_is, unmodelled};
use crate::entity::{EntityError, Stored, WritableEntity, is_same_version};
use crate::error::{ClosureError, CurrentState, Error};
use crate::pipeline::{Effect, OperationRun, Table};

/// Changes an entity with a closure. See [`TableClient::modify`](crate::TableClient::modify).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::ErrorKind;
///
/// let key = || Employee::key("Sales", "1");
/// let ada = table.modify(key(), |e| {
///     e.name.push_str(" Lovelace");
///     Ok(())
/// });
/// ada.rounds(3).exactly_once().await?;
///
/// // An error of the closure aborts it: nothing is written.
/// let refused = table.modify(key(), |e| {
///     if e.name.ends_with(" Lovelace") {
///         return Err("she has that name".into());
///     }
///     e.name.push_str(" Lovelace");
///     Ok(())
/// });
/// assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::Aborted);
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct Modify<'a, E, T> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    change: Change<'a, E, T>,
    or_insert: Option<Make<'a, E>>,
    if_match: Option<ETag>,
    rounds: u32,
    exactly_once: Option<KeepMarker>,
}

type Make<'a, E> = Box<dyn FnMut() -> E + Send + 'a>;
type Change<'a, E, T> = Box<dyn FnMut(&mut E) -> Result<T, ClosureError> + Send + 'a>;

impl<'a, E: WritableEntity, T: Send + 'a> Modify<'a, E, T> {
    pub(crate) fn new(
        table: Table,
        key: Result<EntityKey, EntityError>,
        change: impl FnMut(&mut E) -> Result<T, ClosureError> + Send + 'a,
    ) -> Self {
        Self {
            table,
            key,
            change: Box::new(change),
            or_insert: None,
            if_match: None,
            rounds: ROUNDS,
            exactly_once: None,
        }
    }

    /// The maximum number of rounds of reading and writing when other clients keep writing the
    /// entity; 16 by default. Must not be 0.
    ///
    /// All rounds together have the [deadline](crate::RetryPolicy::deadline) of the client. The
    /// pause between two rounds is random. Its upper limit is an eighth of
    /// [`RetryPolicy::delay`](crate::RetryPolicy::delay) at first, and doubles each time, up to a
    /// tenth of [`RetryPolicy::max_delay`](crate::RetryPolicy::max_delay).
    ///
    /// A network that delivers each request twice makes each write meet its own copy. The operation
    /// then [ends](crate::guide::errors_and_retries#requests-that-arrive-late-or-twice) after the
    /// second one, with an unknown outcome, unless other clients write the entity in between.
    pub const fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// Where the entity does not exist, changes the one that the closure makes, and inserts it. The
    /// closure runs again if another client inserts the entity meanwhile and it is deleted again.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let count = |name: &'static str| {
    ///     let visit = |e: &mut Employee| {
    ///         e.name.push('I');
    ///         Ok(())
    ///     };
    ///     table.modify(Employee::key("visits", name), visit).or_insert(|| Employee::new("visits", name, ""))
    /// };
    /// assert_eq!(count("home").await?.name, "I");
    /// assert_eq!(count("home").await?.name, "II");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the closure makes an entity with another
    /// key.
    pub fn or_insert(mut self, make: impl FnMut() -> E + Send + 'a) -> Self {
        self.or_insert = Some(Box::new(make));
        self
    }

    /// Changes the entity only if its stored version is the one with that ETag, such as that of the
    /// header `If-Match` of a request; with [`ETag::ANY`], whatever its version.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let ada = table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let rename = || {
    ///     table.modify(Employee::key("Sales", "1"), |e| {
    ///         e.name.push_str(" Lovelace");
    ///         Ok(())
    ///     })
    /// };
    /// let renamed = rename().if_match(ada.etag()).await?;
    /// assert_ne!(renamed.etag(), ada.etag());
    ///
    /// let error = rename().if_match(ada.etag()).await.unwrap_err();
    /// assert!(error.is_precondition_failed());
    /// assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Ada Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The closure runs once, and only for that version: with an ETag, a modification does not
    /// start over. With [`ETag::ANY`], it does, as without this method.
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity has another ETag, and `ResourceNotFound` when
    /// it does not exist. [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent,
    /// together with [`or_insert`](Self::or_insert): an entity that has a version exists.
    pub fn if_match(mut self, etag: impl Borrow<ETag>) -> Self {
        self.if_match = Some(etag.borrow().clone());
        self
    }

    /// Refuses options that cannot be meant.
    fn check(&self) -> Result<(), Error> {
        if self.rounds == 0 {
            return Err(Error::input("a modification needs at least one round"));
        }
        let Some(etag) = &self.if_match else {
            return Ok(());
        };
        if self.or_insert.is_some() {
            return Err(Error::input(
                "`if_match` needs an entity that exists, and `or_insert` makes one that does not: leave one of them out",
            ));
        }
        check_condition(OPERATION, &IfMatch::from(etag))
    }

    async fn run(mut self) -> Result<Modified<E, T>, Error> {
        let refused = |error| Error::input(error).with_operation(OPERATION);
        let key = self.key.clone().map_err(refused)?;
        let checked = self.check();
        checked.map_err(|error| error.with_operation(OPERATION).with_key(&key))?;
        let table = self.table.clone();
        let mut run = table.pipeline.begin(OPERATION);
        let modified = self.in_rounds(&mut run, &key).await;
        run.end(modified)
    }

    async fn in_rounds(
        &mut self,
        run: &mut OperationRun<'_>,
        key: &EntityKey,
    ) -> Result<Modified<E, T>, Error> {
        let extensions = Extensions::of::<E>(LeftOut::NONE);
        extensions.begin(&self.table);
        let mut round = 0;
        let mut own_copies = OwnCopies::default();
        let mut refused = None;
        loop {
            let fetched = match refused.take() {
                None => fetch(run, Effect::ReadNow, &self.table, key, None).await,
                Some(refused) => {
                    let read = read_again(run, &self.table, key, round, &mut own_copies, refused);
                    Box::pin(read).await?
                }
            };
            round += 1;
            let mut sent = None;
            let is_hidden = |found: &RawEntity| {
                extensions.can_hide() && is_hidden(run, &extensions, &found.content)
            };
            let fetched = match fetched {
                Ok(found) if is_hidden(&found) => match self.or_insert.as_mut() {
                    Some(make) => Ok((found, Some(make()))),
                    None => {
                        let error = Error::service(ErrorCode::ResourceNotFound);
                        Err(run.annotate(error).with_key(key))
                    }
                },
                Ok(found) if self.is_other_version(&found) => {
                    let error = Error::service(ErrorCode::UpdateConditionNotSatisfied);
                    return Err(run.annotate(error).with_key(key));
                }
                fetched => fetched.map(|found| (found, None)),
            };
            let done = match fetched {
                Ok((RawEntity { content, etag }, instead)) => {
                    match opened(&self.table, &extensions, key, content).await {
                        Ok(content) => {
                            let replace =
                                self.replace(run, key, &content, &etag, instead, &mut sent);
                            replace.await
                        }
                        Err(error) => Err(run.annotate(error).with_key(key)),
                    }
                }
                Err(error) => match self.or_insert.as_mut().filter(|_| error.is_not_found()) {
                    Some(make) => {
                        run.note_expected_error(&error);
                        let entity = make();
                        self.insert(run, key, entity, &mut sent).await
                    }
                    None => Err(error),
                },
            };
            let error = match done {
                Ok(modified) => return Ok(modified),
                Err(error) => error,
            };
            let starts_over =
                self.is_rival(&error) && round < self.rounds && run.pause_before_round(round).await;
            if !starts_over {
                return Err(error);
            }
            // With a marker, the outcome of the round is known.
            if self.exactly_once.is_none() {
                refused = sent.map(|sent| (error, sent));
            }
        }
    }

    /// The only version that is changed.
    fn version(&self) -> Option<&ETag> {
        self.if_match.as_ref().filter(|etag| **etag != ETag::ANY)
    }

    fn is_other_version(&self, found: &RawEntity) -> bool {
        self.version()
            .is_some_and(|etag| !is_same_version(&found.etag, etag))
    }

    /// Returns true if the error shows that another client has written the entity since it was
    /// read.
    fn is_rival(&self, error: &Error) -> bool {
        if self.version().is_some() {
            // A newer version is not the one that is to be changed.
            return false;
        }
        // A conflict of what goes along with the entity is not a rival write.
        let is_inserted = error.is_conflict() && !error.has_details();
        let is_of_insert = self.or_insert.is_some() && (is_inserted || error.is_not_found());
        error.is_precondition_failed() || is_of_insert
    }

    /// Changes what was read, or what is written instead of it.
    async fn replace(
        &mut self,
        run: &mut OperationRun<'_>,
        key: &EntityKey,
        content: &Bytes,
        etag: &ETag,
        instead: Option<E>,
        sent: &mut Option<EntityChange>,
    ) -> Result<Modified<E, T>, Error> {
        let failed = |run: &OperationRun<'_>, error: Error| run.annotate(error).with_key(key);
        let (mut stored, rest) = {
            let entity =
                read_entity(content).map_err(|error| failed(run, Error::response(error)))?;
            let mut input = EntityCursor::new(&entity);
            let stored = Stored::<E>::read(&mut input, Some(etag))
                .map_err(|error| failed(run, Error::entity(error)))?;
            let rest = unmodelled(&stored, &entity).map_err(|error| failed(run, error))?;
            (stored, rest)
        };
        let is_instead = instead.is_some();
        if let Some(instead) = instead {
            *stored = instead;
        }
        let value = (self.change)(&mut stored);
        let value = value.map_err(|error| failed(run, Error::aborted(error)))?;
        let encoded = if is_instead {
            EncodedEntity::instead(&stored)
        } else {
            EncodedEntity::replaced_with(&stored, |written| left_as_is::<E>(rest, &stored, written))
        };
        let encoded = encoded.map_err(|error| failed(run, Error::input(error)))?;
        let if_match = IfMatch::ETag(stored.etag().clone());
        let kind = ChangeKind::Update(Mode::Replace, Some(if_match));
        let change = EntityChange::new(OPERATION, &self.table, kind, encoded).await;
        let change = sent.insert(change.map_err(|error| run.annotate(error))?);
        let etag = change.write_entity(run, self.exactly_once).await?;
        stored.written(etag);
        Ok(Modified { stored, value })
    }

    /// Changes a new entity.
    async fn insert(
        &mut self,
        run: &mut OperationRun<'_>,
        key: &EntityKey,
        mut entity: E,
        sent: &mut Option<EntityChange>,
    ) -> Result<Modified<E, T>, Error> {
        let failed = |run: &OperationRun<'_>, error: Error| run.annotate(error).with_key(key);
        let value = (self.change)(&mut entity);
        let value = value.map_err(|error| failed(run, Error::aborted(error)))?;
        let encoded = EncodedEntity::inserted(OPERATION, &entity)?;
        if encoded.key != *key {
            return Err(failed(run, Error::input(OtherKey { made: encoded.key })));
        }
        let change = EntityChange::new(OPERATION, &self.table, ChangeKind::Insert, encoded).await;
        let change = sent.insert(change.map_err(|error| run.annotate(error))?);
        let etag = change.write_entity(run, self.exactly_once).await?;
        let mut stored = Stored::new(entity, key.clone(), etag.clone());
        stored.written(etag);
        Ok(Modified { stored, value })
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("the entity to insert has another key, {made}")]
struct OtherKey {
    made: EntityKey,
}

/// A round that was refused because of its condition, and what it sent.
type Refused = (Error, EntityChange);

/// The entity that a round has read; an error if it does not exist.
type Read = Result<RawEntity, Error>;

/// Reads the entity after a refused round. Fails where the refusal may be that of a copy of the
/// round's own request.
async fn read_again(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    round: u32,
    own_copies: &mut OwnCopies,
    (error, sent): Refused,
) -> Result<Read, Error> {
    let unknown = |run: &OperationRun<'_>, error, current: Option<CurrentState>| {
        let error = run.annotate(error);
        error.into_outcome_unknown(current.unwrap_or(CurrentState::Unread))
    };
    loop {
        let read = fetch(run, Effect::ReadNow, table, key, None).await;
        let found = read.as_ref().ok();
        let current = found.map(|it| compare(&sent, it.content.clone(), Some(it.etag.clone())));
        let is_as_sent = current.as_ref().is_some_and(CurrentState::equals_sent);
        let etag = match (own_copies.after_refusal(is_as_sent), found) {
            (Next::Round, _) | (_, None) => return Ok(read),
            (Next::End, _) => return Err(unknown(run, error, current)),
            (Next::Probe, Some(found)) => &found.etag,
        };
        let probe = unchanged(sent.table(), key, etag)?;
        match probe.send_alone(run).await {
            Ok(_) => {
                own_copies.after_probe(true);
                return Ok(fetch(run, Effect::ReadNow, table, key, None).await);
            }
            Err(refusal) if refusal.is_out_of_date() => own_copies.after_probe(false),
            Err(_) => return Err(unknown(run, error, current)),
        }
        if !run.pause_before_round(round).await {
            return Err(unknown(run, error, current));
        }
    }
}

action!(
    impl['a, E: WritableEntity, T: Send + 'a]
    Modify<'a, E, T>, table.pipeline => 'a, Modified<E, T>
);
exactly_once_options!(
    impl[E, T] Modify<'_, E, T>;
    /// Determines the outcome of each write even when responses are lost. The change is made once
    /// if the operation succeeds, and not at all if it fails. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
);

debug_by_fields!(Modify<'a, E, T> { table, key, if_match, rounds });

// A type that derefs, because most closures return nothing: a tuple would put `.0` into each call.
/// The result of [`modify`](crate::TableClient::modify): the entity as it was written, to which it
/// derefs, and the value that the closure returned.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// let renamed = table
///     .modify(Employee::key("Sales", "1"), |e| {
///         Ok(std::mem::replace(&mut e.name, "Ada Lovelace".to_owned()))
///     })
///     .await?;
/// assert_eq!(renamed.name, "Ada Lovelace");
///
/// let (ada, before) = renamed.into_parts();
/// assert_eq!((ada.name.as_str(), before.as_str()), ("Ada Lovelace", "Ada"));
/// # Ok(())
/// # }
/// ```
// Not a tuple: most closures return nothing, and `modify(…).await?.name` is the entity's.
#[derive(Clone, Debug, PartialEq)]
pub struct Modified<E, T = ()> {
    stored: Stored<E>,
    value: T,
}

impl<E, T> Modified<E, T> {
    /// The entity alone, with its new ETag.
    pub fn into_stored(self) -> Stored<E> {
        self.stored
    }

    /// The value of the entity alone, as that of a [`Stored`].
    pub fn into_inner(self) -> E {
        self.stored.into_inner()
    }

    /// The entity, and the value that the closure returned in the round that was written.
    pub fn into_parts(self) -> (Stored<E>, T) {
        (self.stored, self.value)
    }
}

impl<E, T> Deref for Modified<E, T> {
    type Target = Stored<E>;

    fn deref(&self) -> &Stored<E> {
        &self.stored
    }
}

impl<E, T> DerefMut for Modified<E, T> {
    fn deref_mut(&mut self) -> &mut Stored<E> {
        &mut self.stored
    }
}

const OPERATION: &str = "modify entity";
const ROUNDS: u32 = 16;
