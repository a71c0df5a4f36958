//! Results as Parquet tables, so that DuckDB, Spark and pandas read the results of many runs at once.
//!
//! [`write()`] makes three files ([`FILES`]) from any number of results. Each row contains the cells of its run, so
//! files from different results can be queried together.
//!
//! Modules, from the lowest: `table` (cells, and a file written by row groups), `source` (the runs in results of any
//! kind) and `facts` (the cells of a run and of a window); `operations`, `intervals` and `histograms` (a table each);
//! `files` writes all three files or none.
//!
//! # Design
//! A row is a list of named and typed cells. The cells of a sample row are the schema of the file. A table holds one
//! row group in memory (32 768 rows), because a column is written as a whole. Samples for monitoring systems
//! (`crate::monitoring`) are made of the rows of operations. Only the column writer of the crate
//! `parquet` is compiled, without Arrow; compression uses `flate2`, a dependency of the histograms anyway.

mod error;
pub(crate) mod facts;
mod files;
mod histograms;
mod intervals;
pub(crate) mod operations;
mod source;
pub(crate) mod table;

pub use error::ParquetError;
pub use files::{FILES, write};
pub use source::{RunSource, sources};
