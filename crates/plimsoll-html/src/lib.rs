//! Results to look at: a page in one file that needs no network, and charts as pictures.
//!
//! [`Subject::read`] reads a results directory, [`Subject::charts`] says what there is to draw, and
//! [`page::report`] makes the page.

pub mod chart;
pub mod charts;
mod loaded;
pub mod page;
pub mod spread;
mod subject;
pub mod timeline;

pub use loaded::{Loaded, OpName, label};
pub use subject::Subject;
