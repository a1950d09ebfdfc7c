//! Nothing but the home of the examples, each of which is a program of its own in this folder.
