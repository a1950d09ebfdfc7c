//! The command line of a bench, and its end: its table is printed, and written as JSON where that
//! is asked for.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, value_parser};
use serde_json::json;

use crate::machine;
use crate::rows::Results;

/// The command line of a bench: a flag of its own, with its help, and `--json`.
pub(crate) fn command(
    name: &'static str,
    about: &'static str,
    (flag, help): (&'static str, &'static str),
) -> Command {
    let flag = Arg::new(flag).long(flag).help(help);
    Command::new(name)
        // `cargo bench` passes it.
        .arg(
            Arg::new("bench")
                .long("bench")
                .hide(true)
                .action(ArgAction::SetTrue),
        )
        .about(about)
        .arg(flag.action(ArgAction::SetTrue))
        .arg(
            Arg::new("json")
                .long("json")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the figures of all runs to this file, too"),
        )
}

/// Prints the table, and writes its figures to the file.
pub(crate) fn report(
    results: &Results,
    runs: usize,
    json: Option<&PathBuf>,
) -> Result<(), Box<dyn Error>> {
    let (date, machine) = (machine::date(), machine::machine());
    println!("{date}, {machine}\n\n{}", results.table());
    if let Some(file) = json {
        let text =
            json!({ "date": date, "machine": machine, "runs": runs, "rows": results.json() });
        fs::write(file, format!("{text:#}\n"))?;
    }
    Ok(())
}
