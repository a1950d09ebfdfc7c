//! Collects mistakes, so that all of them are reported at once, and finds the word that a misspelt
//! one was meant to be.
//!
//! A collection that is dropped before it is finished panics: no mistake may remain unreported.

use std::fmt::Display;

use proc_macro2::Span;

/// The mistakes found so far.
pub(crate) struct Diagnostics {
    /// `None` once finished.
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

    /// Drops the mistakes, where they have been reported before.
    pub(crate) fn discard(mut self) {
        self.errors = None;
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

/// The known word that was meant: the word itself, one that starts with it, or one that differs in
/// few letters.
pub(crate) fn closest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = word.to_lowercase();
    let begins_so = |known: &&&str| word.len() > 2 && known.to_lowercase().starts_with(&lower);
    let same = known.iter().find(|known| **known == word);
    if let Some(known) = same.or_else(|| known.iter().find(begins_so)) {
        return Some(known);
    }
    let distances = known.iter().map(|known| (distance(word, known), *known));
    let (distance, known) = distances.min()?;
    (distance <= word.len().max(known.len()) / 3).then_some(known)
}

/// How many letters must be added, removed, changed, or swapped with their neighbour, to make one
/// word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    // The previous row, and its letter.
    let mut before: Option<(Vec<usize>, char)> = None;
    for (line, letter) in from.chars().enumerate() {
        let mut previous = line + 1;
        let mut next = vec![previous];
        let mut last = None;
        for (column, other) in to.iter().copied().enumerate() {
            let diagonal = row.get(column).copied().unwrap_or_default();
            let above = row.get(column + 1).copied().unwrap_or_default();
            let changed = diagonal + usize::from(letter != other);
            previous = changed.min(above + 1).min(previous + 1);
            if let (Some((before, before_letter)), Some((start, last))) = (&before, last)
                && (*before_letter, letter) == (other, last)
                && let Some(swapped) = before.get::<usize>(start)
            {
                previous = previous.min(swapped + 1);
            }
            last = Some((column, other));
            next.push(previous);
        }
        before = Some((std::mem::replace(&mut row, next), letter));
    }
    row.last().copied().unwrap_or_default()
}

/// A name for a message, shortened if it is long.
pub(crate) fn abbreviated(name: &str) -> String {
    if name.chars().count() > 60 {
        name.chars().take(20).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_suggested_and_distant_ones_are_not() {
        let known = ["partition_key", "row_key", "rename"];
        assert_eq!(closest("partitionkey", &known), Some("partition_key"));
        assert_eq!(closest("PartitionKey", &known), Some("partition_key"));
        assert_eq!(closest("rowkey", &known), Some("row_key"));
        assert_eq!(closest("renam", &known), Some("rename"));
        assert_eq!(closest("Partition", &known), Some("partition_key"));
        assert_eq!(closest("row", &known), Some("row_key"));
        assert_eq!(closest("alais", &["alias", "skip"]), Some("alias"));
        assert_eq!(closest("rseet", &["reset"]), Some("reset"));
        assert_eq!(distance("ca", "abc"), 3);
        assert_eq!(closest("flatten", &known), None);
        assert_eq!(closest("", &known), None);
    }

    #[test]
    #[should_panic(expected = "diagnostics were not finished")]
    fn no_mistake_is_lost_in_silence() {
        drop(Diagnostics::new());
    }
}
