//! `tables ls`: the names of tables.

use clap::Args;
use tablesdk::action::QueryTables;
use tablesdk_cli::lines::Line;

use crate::account::Account;
use crate::error::AnyError;
use crate::output::Output;

/// Print the names of the tables
///
/// The tables of a series, such as Logins20240311 and Logins20240312, are one line:
/// `--output json` prints each of them.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Ls {
    /// Only tables whose names begin so, in the case in which they were created
    prefix: Option<String>,
    #[command(flatten)]
    account: Account,
}

impl Ls {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        let service = self.account.connect()?;
        let prefix = self.prefix.unwrap_or_default();
        let names = names(service.tables().starting_with(prefix)).await?;
        let lines = names.iter().map(|name| {
            let mut line = Vec::new();
            Line::Table(name.clone()).write(&mut line);
            line.truncate(line.trim_ascii_end().len());
            line
        });
        let folded = folded(&names);
        let folded = folded.iter().map(|series| (series.first(), series.note()));
        output.printer().names(lines, folded)?;
        Ok(())
    }
}

/// The names in their order without regard to case.
pub(crate) async fn names(tables: QueryTables) -> Result<Vec<String>, tablesdk::Error> {
    let mut names = tables.collect().await?;
    names.sort_by_cached_key(|name| name.to_ascii_lowercase());
    Ok(names)
}

/// Tables whose names differ in their digits alone, or one table.
#[derive(Debug, PartialEq)]
pub(crate) struct Series<'n> {
    pub(crate) names: &'n [String],
}

impl<'n> Series<'n> {
    fn first(&self) -> &'n str {
        self.names.first().map(String::as_str).unwrap_or_default()
    }

    fn note(&self) -> String {
        match self.names {
            [_, .., last] => format!(" to {last} ({} tables)", self.names.len()),
            _ => String::new(),
        }
    }
}

/// The tables in their order, with those of a series together: the same text before 4, 6, 8 or 10
/// digits.
pub(crate) fn folded(names: &[String]) -> Vec<Series<'_>> {
    let is_one = |one: &String, next: &String| prefix(one).is_some() && prefix(one) == prefix(next);
    let series = names.chunk_by(is_one);
    series.map(|names| Series { names }).collect()
}

/// The text before the digits of a year, month, day or hour, and how many digits there are.
fn prefix(name: &str) -> Option<(&str, usize)> {
    let text = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.len() - text.len();
    matches!(digits, 4 | 6 | 8 | 10).then_some((text, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_a_series_are_one_line() {
        let names = [
            "Logins",
            "Logins2024",
            "Logins20240311",
            "Logins20240312",
            "Logins20240313",
            "Orders1",
            "Orders2",
        ];
        let names = names.map(str::to_owned);
        let lines = folded(&names);
        let lines: Vec<_> = lines
            .iter()
            .map(|it| format!("{}{}", it.first(), it.note()))
            .collect();
        assert_eq!(
            lines,
            [
                "Logins",
                "Logins2024",
                "Logins20240311 to Logins20240313 (3 tables)",
                "Orders1",
                "Orders2"
            ]
        );
    }
}
