//! `tables put`: entities from standard input into one table.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, IsTerminal as _};

use clap::Args;
use futures::TryStreamExt as _;
use tablesdk::action::Batch;
use tablesdk::{DynamicEntity, ETag, Error, TableClient};
use tablesdk_cli::lines::Line;
use tablesdk_cli::own::{AsStored, Kept, renewed};
use tablesdk_cli::records::{Place, ReadOptions, Records};

use super::Transfer;
use crate::account::Account;
use crate::error::{AnyError, UsageError, with_causes};
use crate::escape::key;
use crate::guard::{Guard, etag};
use crate::output::{Report, Subject, note, of_guesses};
use crate::room::{Room, change_bytes};

/// Write entities from standard input into a table
///
///   tables put Employees --insert < employees.jsonl
///   tables get Employees Sales 000017 | jq -c '.Age = 37' | tables put Employees --replace
///   echo '{"PartitionKey":"Sales","RowKey":"000017","Age":37}' | tables put Employees --merge
///
/// An entity is an object of JSON, as `query` and `get` print it, or a row of CSV, as
/// `--output csv` prints it; `import` takes whole exports. Entities of one partition that
/// follow each other are one transaction, up to 100 of them and 4 MiB: all of it is written,
/// or nothing. The first error ends the command.
///
/// `query` and `get` print the version of an entity as "odata.etag". With it, --merge and
/// --replace write the entity only if that is still its version; without it, whatever the
/// version is.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Put {
    /// The table
    table: String,
    #[command(flatten)]
    verb: Verb,
    /// Write one entity only if this is its ETag; * for any version
    #[arg(long, value_name = "ETAG", value_parser = etag, conflicts_with_all = ["insert", "upsert"])]
    if_match: Option<ETag>,
    /// Create the table if it does not exist
    #[arg(long)]
    create: bool,
    /// Keep a value as a string if its type does not allow it
    #[arg(long)]
    as_string: bool,
    #[command(flatten)]
    guard: Guard,
    #[command(flatten)]
    account: Account,
}

/// How the entities are written
#[derive(Args, Clone, Copy)]
#[group(required = true, multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
struct Verb {
    /// The entities must not exist yet
    #[arg(long)]
    insert: bool,
    /// Change the properties that are given; the entities must exist
    #[arg(long)]
    merge: bool,
    /// Replace all properties; the entities must exist
    #[arg(long)]
    replace: bool,
    /// Insert the entities, or replace them if they exist
    #[arg(long)]
    upsert: bool,
}

/// An entity of the input.
struct Input {
    place: Place,
    entity: AsStored,
    /// The version that it rests on.
    etag: Option<ETag>,
}

impl Transfer for Put {
    async fn run(self) -> Result<Report, AnyError> {
        let Self {
            table: name,
            account,
            verb,
            if_match,
            create,
            as_string,
            mut guard,
        } = self;
        let table = account.connect()?.table(&name);
        let mut options = ReadOptions::default();
        options.table = Some(name.clone());
        options.as_string = as_string;
        if io::stdin().is_terminal() {
            note("reads entities, each a line of JSON; Ctrl-D ends them");
        }
        let mut inputs = Inputs::new(BufReader::new(io::stdin()), &options, if_match);
        let mut report = Report {
            verb: "Wrote",
            subject: Subject::Entities(name),
            ..Report::default()
        };
        // A table is not made for an input that cannot be read.
        inputs.peek()?;
        if create {
            table.create_table().if_missing().await?;
        }
        let written = write(&table, &mut inputs, verb, &mut guard, &mut report).await;
        if report.totals.entities > 0 {
            guard.note_mends();
        }
        if let Some(text) = of_guesses(inputs.records.guessed()) {
            note(&text);
        }
        match written {
            Err(error) if report.totals.entities == 0 => return Err(error),
            Err(error) => {
                let count = report.totals.entities;
                let error = with_causes(&*error);
                report.error = Some(format!("{error}; the {count} before are written"));
            }
            Ok(()) => {}
        }
        Ok(report)
    }
}

async fn write(
    table: &TableClient,
    inputs: &mut Inputs<impl BufRead>,
    verb: Verb,
    guard: &mut Guard,
    report: &mut Report,
) -> Result<(), AnyError> {
    loop {
        let inputs = inputs.transaction()?;
        let Some(first) = inputs.first() else {
            return Ok(());
        };
        let partition = first.entity.0.partition_key();
        guard.check_table(table, Some(partition)).await?;
        check(table, &inputs, verb, guard).await?;
        let sent = match &*inputs {
            [input] => verb.send(table, input).await,
            _ => {
                let batch = table.batch(partition);
                let batch = inputs.iter().fold(batch, |batch, it| verb.add(batch, it));
                batch.await.map(drop)
            }
        };
        sent.map_err(|error| {
            let place = error.batch_index().and_then(|index| inputs.get(index));
            let place = place.unwrap_or(first).place;
            format!("{place}: {}", with_causes(&error))
        })?;
        report.totals.entities += inputs.len() as u64;
    }
}

/// Refuses entities that the client keeps, of the input and in the table.
async fn check(
    table: &TableClient,
    inputs: &[Input],
    verb: Verb,
    guard: &mut Guard,
) -> Result<(), AnyError> {
    let keys = |entity: &DynamicEntity| key(entity.partition_key(), entity.row_key());
    for Input { entity, place, .. } in inputs {
        let name = format!("{place}: {}", keys(&entity.0));
        guard.check(&name, Kept::of(&entity.0))?;
    }
    if verb.insert {
        return Ok(());
    }
    let stored = inputs
        .iter()
        .map(|it| (it.entity.0.partition_key(), it.entity.0.row_key()));
    let mut stored = table.get_many::<AsStored, _>(stored).stream();
    while let Some(found) = stored.try_next().await? {
        if let Some(entity) = found {
            guard.check(&keys(&entity.0), Kept::of(&entity.0))?;
        }
    }
    Ok(())
}

impl Verb {
    async fn send(self, table: &TableClient, input: &Input) -> Result<(), Error> {
        let Input { entity, etag, .. } = input;
        let etag = etag.as_ref().unwrap_or(&ETag::ANY);
        if self.insert {
            table.insert(entity).await.map(drop)
        } else if self.merge {
            table.merge_if(entity, etag).await.map(drop)
        } else if self.replace {
            table.replace_if(entity, etag).await.map(drop)
        } else {
            table.upsert_replace(entity).await.map(drop)
        }
    }

    fn add<'e>(self, batch: Batch<'e>, input: &Input) -> Batch<'e> {
        let Input { entity, etag, .. } = input;
        let etag = etag.as_ref().unwrap_or(&ETag::ANY);
        if self.insert {
            batch.insert(entity)
        } else if self.merge {
            batch.merge_if(entity, etag)
        } else if self.replace {
            batch.replace_if(entity, etag)
        } else {
            batch.upsert_replace(entity)
        }
    }
}

/// Reads entities, and puts those together that are one transaction.
struct Inputs<R> {
    records: Records<R>,
    /// The first one of the next transaction.
    next: Option<Input>,
    if_match: Option<ETag>,
}

impl<R: BufRead> Inputs<R> {
    fn new(from: R, options: &ReadOptions, if_match: Option<ETag>) -> Self {
        Self {
            records: Records::new(from, options),
            next: None,
            if_match,
        }
    }

    /// The entities of the next transaction; none at the end.
    fn transaction(&mut self) -> Result<Vec<Input>, AnyError> {
        let mut inputs: Vec<Input> = Vec::new();
        let (mut rows, mut room) = (HashMap::new(), Room::default());
        while let Some(input) = self.take()? {
            let entity = &input.entity.0;
            let partition = inputs.first().map(|it| it.entity.0.partition_key());
            let is_next = partition.is_some_and(|it| it != entity.partition_key())
                || !room.takes(change_bytes(Some(entity)));
            if is_next {
                self.next = Some(input);
                break;
            }
            if let Some(first) = rows.insert(entity.row_key().to_owned(), input.place) {
                let (place, key) = (input.place, key(entity.partition_key(), entity.row_key()));
                let problem = "an entity is at most once in a transaction";
                return Err(format!("{place}: {key} is at {first}, too: {problem}").into());
            }
            inputs.push(input);
        }
        if self.if_match.is_some() && (self.next.is_some() || inputs.len() > 1) {
            let problem = "--if-match is the ETag of one entity, and the input has several";
            return Err(UsageError(problem.into()).into());
        }
        Ok(inputs)
    }

    /// Reads the first entity.
    fn peek(&mut self) -> Result<(), AnyError> {
        self.next = self.take()?;
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Input>, AnyError> {
        if let Some(input) = self.next.take() {
            return Ok(Some(input));
        }
        while let Some((place, line)) = self.records.next().transpose()? {
            if matches!(line, Line::Start) {
                let problem = "this is an export: `tables import` writes it";
                return Err(format!("{place}: {problem}").into());
            }
            if let Line::Entity { entity, .. } = line {
                let etag = self
                    .if_match
                    .clone()
                    .or_else(|| self.records.etag().cloned());
                let entity = AsStored(renewed(entity));
                return Ok(Some(Input {
                    place,
                    entity,
                    etag,
                }));
            }
        }
        Ok(None)
    }
}
