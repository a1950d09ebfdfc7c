//! The table of the guide to choosing a pattern that says what combines with what.

mod cells;
mod table;
