//! `tables infer`: a Rust module for the entities of a table.

use std::io::{self, Write as _};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use tablesdk_cli::infer::{LeftOut, Sample, TypeName};

use crate::account::Account;
use crate::error::{AnyError, UsageError};
use crate::output::{Output, counted, note, of_sample};

/// Print structs of Rust that read the entities of a table
///
/// The table has no schema: this looks at some of its entities, and prints a module with
/// #[derive(TableEntity)] that reads each of them without an error. Most of them are the
/// first ones, and a part is from further behind.
///
///   tables infer Employees > src/employees.rs
///   tables infer Employees --sample 100000 --name Employee
///
/// Keys are templates if all of them follow one, such as "empid_{id:06}", else strings. A
/// property that some entities lack is an Option. Properties with several types, and names
/// that no field can have, are in a field for all other properties. Entities of several
/// kinds are an enum: a property names the kind, or the row keys of each kind begin with
/// a word of their own.
///
/// The module holds for the entities that were looked at. Read it before you use it, and
/// give its fields better names.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Infer {
    /// The table
    table: String,
    /// Look at this number of entities
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    sample: usize,
    /// The name of the struct, or of the enum. Default: the table's, such as Employee
    #[arg(long, value_name = "NAME")]
    name: Option<TypeName>,
    #[command(flatten)]
    account: Account,
}

impl Infer {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        if output.has_form() {
            return Err(UsageError("a module has one form: leave --output out".into()).into());
        }
        let table = self.account.connect()?.table(&self.table);
        let sample = Sample::read(&table, self.sample).await?;
        note_left_out(sample.left_out());
        if sample.is_empty() {
            return Err(nothing_in(&self.table, sample.left_out()).into());
        }
        let (count, partitions) = (sample.len() as u64, sample.schema().partitions());
        note(&of_sample(count, partitions, sample.is_complete()));
        let module = sample.module(&self.table, self.name)?;
        let mut out = io::stdout().lock();
        write!(out, "{module}")?;
        out.flush()?;
        Ok(())
    }
}

fn nothing_in(table: &str, left_out: LeftOut) -> String {
    let reason = match left_out {
        LeftOut { wide: 1.., .. } => ": wide entities have a struct with `#[table(wide)]`",
        _ => "",
    };
    format!("{table} has no entities to infer a struct from{reason}")
}

fn note_left_out(left_out: LeftOut) {
    for (count, kind) in [
        (
            left_out.reserved,
            "of the client itself, which no query returns",
        ),
        (left_out.index_entries, "with an entry of an index"),
        (left_out.wide, "with a part of a wide entity"),
    ] {
        if count > 0 {
            let entities = counted(count, "entity", "entities");
            note(&format!("left out: {entities} {kind}"));
        }
    }
}
