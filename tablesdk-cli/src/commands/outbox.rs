//! `tables outbox`: the steps that transactions have left to workers.

use clap::{Args, Subcommand};
use serde_json::{json, to_vec};
use tablesdk::Error;
use tablesdk::outbox::{Outbox as Steps, PoisonedStep};
use tablesdk_cli::own::outbox::{Step, partitions, steps};

use crate::account::Account;
use crate::error::AnyError;
use crate::escape::{harmless, key};
use crate::output::{Output, counted, note, result};

/// Show, apply, retry and discard the steps of outboxes
///
/// A transaction of the client of tablesdk can leave steps: writes in other partitions and
/// tables, and messages, which a worker applies afterwards.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Outbox {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Print the steps that wait, and those that were set aside
    ///
    ///   tables outbox list Company
    #[command(verbatim_doc_comment)]
    List(Place),
    /// Apply the steps that can be applied now
    ///
    /// Messages wait for the worker of the program, which has the code that handles them, and
    /// so do the steps behind them.
    #[command(verbatim_doc_comment)]
    Drain(Place),
    /// Let workers try steps again that were set aside
    ///
    ///   tables outbox retry Company --all
    ///   tables outbox retry Company --partition Sales --number 17
    #[command(verbatim_doc_comment)]
    Retry(Chosen),
    /// Delete steps that were set aside: no worker tries them again
    #[command(verbatim_doc_comment)]
    Discard(Chosen),
}

#[derive(Args)]
struct Place {
    /// The table of the transactions
    table: String,
    /// Only steps of this partition
    #[arg(long, value_name = "KEY")]
    partition: Option<String>,
    #[command(flatten)]
    account: Account,
}

#[derive(Args)]
#[group(required = true, args = ["number", "all"])]
struct Chosen {
    #[command(flatten)]
    place: Place,
    /// The number of the step in its partition, as `list` prints it
    #[arg(long, requires = "partition", conflicts_with = "all")]
    number: Option<u64>,
    /// All steps that were set aside, of the partition or of the table
    #[arg(long)]
    all: bool,
}

impl Outbox {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        match self.command {
            Commands::List(place) => place.list(output).await,
            Commands::Drain(place) => place.drain(output).await,
            Commands::Retry(chosen) => {
                let changed = chosen.each(async |step| step.retry().await).await?;
                let text = format!("{} again", counted(changed, "step waits", "steps wait"));
                Ok(result(output, &json!({ "retried": changed }), &text)?)
            }
            Commands::Discard(chosen) => {
                let changed = chosen.each(async |step| step.discard().await).await?;
                let text = format!("Discarded {}", counted(changed, "step", "steps"));
                Ok(result(output, &json!({ "discarded": changed }), &text)?)
            }
        }
    }
}

impl Place {
    async fn list(self, output: &Output) -> Result<(), AnyError> {
        let table = self.account.connect()?.table(&self.table);
        let partitions = match self.partition {
            Some(partition) => [partition].into(),
            None => partitions(&table).await?,
        };
        let mut found = Vec::new();
        for partition in partitions {
            found.extend(steps(&table, &partition).await?);
        }
        let lines: Vec<_> = found.iter().map(to_vec).collect::<Result<_, _>>()?;
        output
            .printer()
            .rows(lines, HEADER, found.iter().map(row), &[1, 5])?;
        Ok(())
    }

    async fn drain(self, output: &Output) -> Result<(), AnyError> {
        let table = self.account.connect()?.table(&self.table);
        let mut drain = Steps::new(&table).drain();
        if let Some(partition) = &self.partition {
            drain = drain.partition(partition);
        }
        let report = drain.await?;
        let applied = counted(report.applied, "step", "steps");
        let text = format!("Applied {applied}, {} wait", report.waiting);
        let json = json!({
            "applied": report.applied,
            "waiting": report.waiting,
            "failed": report.failed,
            "setAside": report.set_aside,
            "missingTables": report.missing_tables,
        });
        result(output, &json, &text)?;
        for missing in &report.missing_tables {
            note(&format!(
                "the table {missing} does not exist: create it, and retry the steps"
            ));
        }
        match report.failed + report.set_aside {
            0 => Ok(()),
            _ => Err(format!(
                "{} failed, {} set aside: see `tables outbox list {}`",
                counted(report.failed, "attempt", "attempts"),
                counted(report.set_aside, "step was", "steps were"),
                self.table
            )
            .into()),
        }
    }
}

impl Chosen {
    /// Changes each of the steps. Returns their number.
    async fn each(
        self,
        change: impl AsyncFn(&PoisonedStep) -> Result<(), Error>,
    ) -> Result<u64, AnyError> {
        let name = &self.place.table;
        let table = self.place.account.connect()?.table(name);
        let mut changed = 0;
        for step in Steps::new(&table).poisoned().await? {
            let of_partition = self.place.partition.as_deref();
            let is_meant = of_partition.is_none_or(|it| it == step.partition())
                && self.number.is_none_or(|number| number == step.number());
            if is_meant {
                change(&step).await?;
                changed += 1;
            }
        }
        match self.number {
            Some(number) if changed == 0 => {
                let problem = format!("no step {number} of this partition was set aside");
                Err(format!("{problem}: see `tables outbox list {name}`").into())
            }
            _ => Ok(changed),
        }
    }
}

fn row(step: &Step) -> Vec<String> {
    let target = step.target.as_ref();
    let target = target.map(|(table, partition, row)| format!("{table} {}", key(partition, row)));
    let message = step.message.clone();
    vec![
        harmless(&step.partition),
        step.number.to_string(),
        if step.poisoned { "poisoned" } else { "waiting" }.to_owned(),
        harmless(&step.kind),
        harmless(&target.or(message).unwrap_or_default()),
        step.attempts.to_string(),
        harmless(&step.error),
    ]
}

const HEADER: [&str; 7] = [
    "Partition",
    "Number",
    "State",
    "Kind",
    "Entity or message",
    "Attempts",
    "Error",
];
