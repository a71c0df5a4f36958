//! Results to look at: a page in one file that needs no network, and charts as pictures.
//!
//! [`RunData::read`] reads a results directory, [`RunData::charts`] says what there is to draw, and
//! [`page::report`] makes the page.

pub mod chart;
pub mod charts;
pub mod latency_distribution;
mod loaded_result;
pub mod page;
mod run_data;
pub mod timeline;

pub use loaded_result::{LoadedResult, OpName, label};
pub use run_data::RunData;
