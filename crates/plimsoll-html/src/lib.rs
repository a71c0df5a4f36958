//! Results to look at: a page in one file that needs no network, and charts as pictures.
//!
//! [`Loaded::read`] reads a results directory, [`charts::of_run`] says what there is to draw, and
//! [`page::report`] makes the page.

pub mod chart;
pub mod charts;
mod loaded;
pub mod page;
pub mod spread;
pub mod timeline;

pub use loaded::{Loaded, OpName, label};
