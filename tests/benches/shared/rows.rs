//! The rows of a table of targets, and the figures that the runs add to them: as Markdown for
//! people, as JSON for machines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// One figure, and what it should be.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    path: &'static str,
    against: &'static str,
    /// The two figures of a ratio, or the unit of a figure that is not a ratio.
    figure: &'static str,
    goal: Goal,
}

/// The goal for the median of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Shown for comparison.
    None,
}

impl Goal {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(goal) => figure >= goal,
            Self::AtMost(goal) => figure <= goal,
            Self::None => true,
        }
    }
}

/// The figure of one run, and the two numbers it is made of.
struct Sample {
    figure: f64,
    ours: f64,
    theirs: f64,
}

/// The figures of all runs.
pub(crate) struct Results {
    rows: &'static [Row],
    samples: BTreeMap<&'static str, Vec<Sample>>,
    /// Why a row has no figure.
    missing: BTreeMap<&'static str, String>,
}

impl Results {
    /// The results of rows, in the order in which they are shown.
    pub(crate) fn of(rows: &'static [Row]) -> Self {
        Self {
            rows,
            samples: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Adds `theirs / ours`, for numbers of which fewer are better.
    pub(crate) fn cost(&mut self, row: &'static str, ours: f64, theirs: f64) {
        self.add(row, theirs / ours, ours, theirs);
    }

    /// Adds `ours / theirs`, for numbers of which more are better, and for times that have a limit.
    pub(crate) fn ratio(&mut self, row: &'static str, ours: f64, theirs: f64) {
        self.add(row, ours / theirs, ours, theirs);
    }

    /// Adds a figure that is no ratio.
    pub(crate) fn figure(&mut self, row: &'static str, figure: f64) {
        self.add(row, figure, figure, f64::NAN);
    }

    /// Says why a row has no figure, or not one of each run.
    pub(crate) fn missing(&mut self, row: &'static str, reason: impl Into<String>) {
        self.check(row);
        self.missing.insert(row, reason.into());
    }

    fn check(&self, row: &str) {
        let is_known = self.rows.iter().any(|known| known.name == row);
        assert!(is_known, "the table has no row {row}");
    }

    fn add(&mut self, row: &'static str, figure: f64, ours: f64, theirs: f64) {
        self.check(row);
        let samples = self.samples.entry(row).or_default();
        samples.push(Sample {
            figure,
            ours,
            theirs,
        });
    }

    fn rows(&self) -> impl Iterator<Item = (&'static Row, &[Sample])> {
        let rows = self.rows.iter();
        rows.filter_map(|row| Some((row, self.samples.get(row.name)?.as_slice())))
    }

    /// A table in Markdown. A row that misses its goal has a cross.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        text += "| path | against | figure | median | min–max | at least | ours | theirs |\n";
        text += "|---|---|---|--:|--:|--:|--:|--:|\n";
        for (row, samples) in self.rows() {
            let figures = sorted(samples.iter().map(|sample| sample.figure));
            let ours = median(&sorted(samples.iter().map(|sample| sample.ours)));
            let theirs = median(&sorted(samples.iter().map(|sample| sample.theirs)));
            let figure = median(&figures);
            let goal = match row.goal {
                Goal::AtLeast(goal) => short(goal),
                Goal::AtMost(goal) => format!("at most {}", short(goal)),
                Goal::None => String::new(),
            };
            let mark = if row.goal.is_met(figure) { "" } else { " ✗" };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {}{mark} | {}–{} | {goal} | {} | {} |",
                row.path,
                row.against,
                row.figure,
                short(figure),
                short(figures.first().copied().unwrap_or(f64::NAN)),
                short(figures.last().copied().unwrap_or(f64::NAN)),
                short(ours),
                short(theirs),
            );
        }
        for (row, reason) in &self.missing {
            let _ = writeln!(text, "\nA figure of {row} is missing: {reason}");
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let rows = self.rows().map(|(row, samples)| {
            let figures = sorted(samples.iter().map(|sample| sample.figure));
            let (at_least, at_most) = match row.goal {
                Goal::AtLeast(goal) => (Some(goal), None),
                Goal::AtMost(goal) => (None, Some(goal)),
                Goal::None => (None, None),
            };
            let runs = samples.iter().map(|sample| {
                json!({"figure": sample.figure, "ours": sample.ours, "theirs": sample.theirs})
            });
            json!({
                "name": row.name,
                "path": row.path,
                "against": row.against,
                "figure": row.figure,
                "median": median(&figures),
                "min": figures.first(),
                "max": figures.last(),
                "at_least": at_least,
                "at_most": at_most,
                "is_met": row.goal.is_met(median(&figures)),
                "runs": runs.collect::<Vec<_>>(),
            })
        });
        let missing = self.missing.iter();
        let missing = missing.map(|(row, reason)| json!({"name": row, "missing": reason}));
        rows.chain(missing).collect()
    }
}

pub(crate) fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// The median of sorted figures. With an even number of runs, it is the lower one of the two in the
/// middle.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let middle = figures.len().saturating_sub(1) / 2;
    figures.get(middle).copied().unwrap_or(f64::NAN)
}

/// Three digits, or a dash for a number that is not known.
pub(crate) fn short(number: f64) -> String {
    match number.abs() {
        _ if !number.is_finite() => "–".to_owned(),
        size if size >= 1e6 => format!("{:.2} M", number / 1e6),
        size if size >= 1e4 => format!("{:.0} k", number / 1e3),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// A row: its name in the JSON, what is measured, against what, and what its figure is.
pub(crate) const fn row(
    name: &'static str,
    path: &'static str,
    against: &'static str,
    figure: &'static str,
    goal: Goal,
) -> Row {
    Row {
        name,
        path,
        against,
        figure,
        goal,
    }
}
