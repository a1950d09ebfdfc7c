#![doc = include_str!("../README.md")]
//!
//! # The library
//!
//! The program `tables` consists of this library and its command line. [`pages`] reads whole tables, [`lines`] is the format of
//! files, and [`import`] writes such lines into an account.

pub mod import;
pub mod lines;
pub mod pages;
