//! Results as Parquet tables, so that DuckDB, Spark and pandas read many of them at once.
//!
//! [`write()`] makes three files ([`FILES`]) from any number of results. Each row contains the columns of its run
//! ([`RunFacts`]), so files from different results can be queried together.
//!
//! Modules, from the lowest: `table` (columns, and a file written by row groups), `run_facts` (the columns of a run)
//! and `source` (the runs in results of any kind); `operations`, `intervals` and `histograms` (a table each), with the
//! shared `windows` and `level`; `files` writes all three files or none.
//!
//! # Design
//! A column is a name, a type and a function of a row: schema, writer and the test of the documentation use the same
//! list. A table holds one row group in memory (131 072 rows), because a column is written as a whole. Only the column
//! writer of the crate `parquet` is compiled, without Arrow; compression uses `flate2`, a dependency of the histograms
//! anyway.

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
