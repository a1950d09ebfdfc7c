//! Collects mistakes, so that all of them are reported at once; and guesses what a misspelt word was meant to be.

use std::fmt::Display;

use proc_macro2::Span;

/// The mistakes found so far. Must be finished: dropping it unfinished would lose them.
pub(crate) struct Diagnostics {
    errors: Option<Vec<syn::Error>>,
}

impl Diagnostics {
    pub(crate) const fn new() -> Self {
        Self {
            errors: Some(Vec::new()),
        }
    }

    pub(crate) fn error(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        self.errors.get_or_insert_default().push(error);
    }

    /// The value, if there was no mistake.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> syn::Result<T> {
        let errors = self.errors.take().unwrap_or_default();
        let all = errors.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        match (all, value) {
            (Some(error), _) => Err(error),
            (None, Some(value)) => Ok(value),
            (None, None) => unreachable!("a value is missing only where a mistake was reported"),
        }
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        assert!(
            self.errors.is_none() || std::thread::panicking(),
            "diagnostics were not finished"
        );
    }
}

/// `, did you mean …?` when one of the words is close to this one, else a full stop; either way a sentence may follow.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    let closest = known.iter().min_by_key(|known| distance(word, known));
    match closest.filter(|known| distance(word, known) <= word.len().max(known.len()) / 3) {
        Some(known) => format!(", did you mean `{known}`?"),
        None => ".".to_owned(),
    }
}

/// How many letters must be added, removed or changed to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut previous = line + 1;
        let mut next = vec![previous];
        for (column, other) in to.iter().enumerate() {
            let diagonal = row.get(column).copied().unwrap_or_default();
            let above = row.get(column + 1).copied().unwrap_or_default();
            let changed = diagonal + usize::from(letter != *other);
            previous = changed.min(above + 1).min(previous + 1);
            next.push(previous);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_suggested_and_distant_ones_are_not() {
        let known = ["partition_key", "row_key", "rename"];
        assert_eq!(
            did_you_mean("partitionkey", &known),
            ", did you mean `partition_key`?"
        );
        assert_eq!(did_you_mean("renam", &known), ", did you mean `rename`?");
        assert_eq!(did_you_mean("flatten", &known), ".");
    }
}
