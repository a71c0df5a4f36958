//! Final figures of results for monitoring systems.
//!
//! [`Export::read`] makes samples of the final figures from the runs of any results; [`Export::openmetrics`],
//! [`Export::influx`] and [`Export::otlp`] write the samples.
//!
//! Modules, from the lowest: [`openmetrics`] (the text format, also for metrics of the results browser), `metrics` (the
//! list of exported figures), `rows` (samples of results of any kind), `influx` and `otlp`.
//!
//! # Design
//! Samples are made from the rows of operations of the Parquet tables, so that figures, labels and escapes are the same
//! in both exports. A row has the labels and the time of all its samples. Samples whose figures are unknown are left
//! out; a figure that is only a lower bound has the label `bound`.

mod influx;
mod metrics;
pub mod openmetrics;
mod otlp;
mod rows;

pub use rows::Export;
