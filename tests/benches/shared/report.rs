//! The end of a bench: its table is printed, and written as JSON where that is asked for.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::machine;
use crate::rows::Results;

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
