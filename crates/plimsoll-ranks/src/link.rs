//! How frames get from a rank to its neighbours in the tree.

use std::time::{Duration, Instant};

/// Something that comes from a neighbour.
#[derive(Debug)]
pub enum Incoming {
    /// A frame.
    Frame(Vec<u8>),
    /// The neighbour is no more, and why; nothing more comes from it.
    Gone(String),
}

/// Frames to and from neighbours: in order, none lost, none twice, none invented.
///
/// Neighbours are numbered as in [`TreePosition::neighbours`](crate::tree::TreePosition::neighbours).
pub trait Link {
    /// Whether [`Incoming::Gone`] comes from a neighbour whose process has ended.
    const REPORTS_PEER_EXIT: bool;
    /// Whether [`Self::close`] in order must be called by all ranks or by none.
    const CLOSE_IS_COLLECTIVE: bool;

    /// Sends a short frame without waiting. Frames to a neighbour that is gone vanish.
    fn post(&self, to: usize, frame: Vec<u8>);

    /// Sends a frame, and calls `meanwhile` as long as it waits for the neighbour to take it.
    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut());

    /// The next thing that has come from any neighbour. Does not wait.
    fn receive(&self) -> Option<(usize, Incoming)>;

    /// Waits for something to come, for a posted frame to go, or for a short time. Nothing has
    /// come since `since`.
    fn wait(&self, since: Instant, pace: PollRate);

    /// Whether every posted frame is on its way.
    fn flushed(&self) -> bool;

    /// The end. `in_order`: every neighbour has said its last word, so nothing is on its way.
    fn close(&self, in_order: bool);
}

/// How quickly a wait must notice what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollRate {
    /// Others wait too: at once, or within 0.2 ms.
    Fast,
    /// At the end of the program: within 5 ms.
    Slow,
}

impl PollRate {
    /// Longest sleep between two looks, where a link has to look.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code))]
    pub fn longest_sleep(self) -> Duration {
        match self {
            Self::Fast => Duration::from_micros(200),
            Self::Slow => Duration::from_millis(5),
        }
    }
}
