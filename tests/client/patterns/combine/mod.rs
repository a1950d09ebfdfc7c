//! Patterns together with each other, and with verbs that write or read many entities.

mod bulk;
mod entries;
