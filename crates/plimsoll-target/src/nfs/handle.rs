//! Open files of a session, and its writes in flight.

use super::backend::PendingWrite;
use super::cache::CachedFile;
use super::open::Open;
use plimsoll_measure::Nanos;
use std::rc::Rc;

/// An open file and its cached attributes and data.
pub(crate) struct NfsHandle<F> {
    pub(super) open: Rc<Open<F>>,
    pub(super) cached: Option<Rc<CachedFile>>,
}

pub(super) struct InFlightWrite<F> {
    pub(super) tag: u32,
    pub(super) start: Nanos,
    pub(super) of: Rc<Open<F>>,
    pub(super) work: PendingWrite,
}
