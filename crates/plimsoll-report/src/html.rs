//! HTML pages of results, each in one file that needs no network, and charts as pictures.
//!
//! [`RunData::read`] reads a results directory, [`RunData::document`] builds the report with its charts, and
//! [`page::report`] renders reports as a page.
//!
//! # Modules
//! - `loaded_result` reads a run's directory: [`timeline`] from `intervals.csv`, and
//!   [`latency_distribution`] from `histograms.hlog`, for the operations in `op_name`;
//! - [`chart`] is a chart as data, and its drawing as SVG (`draw`, `axis`, `theme`);
//! - [`charts`] makes the charts of a run, a curve, a search and a comparison;
//! - `run_data` contains results of any kind and their charts;
//! - [`page`] renders documents as pages: one module for each part of a page.
//!
//! # Design
//! A chart is data: columns of values and their styles. The drawing, the table below the chart and the values under the
//! pointer all come from these columns; the script of the page reads the values from the table. The browser computes no
//! figures, even during a run: the server sends a new part of the page, including charts, at each interval. To zoom, the
//! script moves the elements of a drawing along the time axis. Charts are drawn in placeholder colours, which are
//! replaced by variables of the page's style sheet or, in a separate picture, by the colours of the light theme.

pub mod chart;
pub mod charts;
pub mod latency_distribution;
mod loaded_result;
mod op_name;
pub mod page;
mod run_data;
pub mod timeline;

pub use loaded_result::LoadedResult;
pub(crate) use loaded_result::name_of;
pub use op_name::{OpName, label};
pub use run_data::RunData;
