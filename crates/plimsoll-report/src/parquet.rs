//! Results as Parquet tables, so that DuckDB, Spark and pandas read many of them at once.
//!
//! [`write()`] makes three files of any number of results: [`FILES`]. Each row has the columns of its run
//! ([`RunFacts`]), so that the files of different results can be read together.
//!
//! Modules, from the lowest: `table` (columns, and a file written by row groups), `run_facts` (the columns
//! of a run) and `source` (the runs of results of any kind); `operations`, `intervals` and `histograms` are
//! a table each, `windows` and `level` are what they have in common, and `files` makes all three or none.
//!
//! # Design
//! A column is a name, a type and a function of a row, so the schema, the writer and the test of the documentation
//! read one list. A table holds one row group in memory (131 072 rows), because a column is written as a whole.
//! Only the column writer of the crate `parquet` is compiled, without Arrow; compression uses `flate2`, on which
//! histograms depend already.

mod error;
mod files;
mod histograms;
mod intervals;
mod level;
mod operations;
mod run_facts;
mod source;
mod table;
mod windows;

pub use error::ParquetError;
pub use files::{FILES, columns, write};
pub use run_facts::RunFacts;
pub use source::{RunSource, sources};
