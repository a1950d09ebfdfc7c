#![doc = include_str!("../README.md")]
//!
//! # The library
//!
//! The program `tables` consists of this library and its command line. [`pages`] reads whole
//! tables, [`lines`] is the format of files, [`records`] reads it and the formats of other
//! programs, whose files [`dump`] finds, [`sheet`] writes CSV, [`import`] writes records into an
//! account, [`sampling`] reads some entities of a table, [`schema`] says what they have in common,
//! [`infer`] makes structs of them, and [`own`] is about what the client stores for purposes of its
//! own.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod dump;
pub mod import;
pub mod infer;
pub mod lines;
pub mod own;
pub mod pages;
pub mod records;
pub mod sampling;
pub mod schema;
pub mod sheet;
