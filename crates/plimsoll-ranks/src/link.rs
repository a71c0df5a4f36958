//! The transport of frames from a rank to its neighbours in the tree.

use std::time::{Duration, Instant};

/// Something received from a neighbour.
#[derive(Debug)]
pub enum Incoming {
    /// A frame.
    Frame(Vec<u8>),
    /// The neighbour's process has ended, and why; nothing more comes from it.
    Gone(String),
    /// The connection to the neighbour is lost, and why; its process may still work for some
    /// seconds.
    Lost(String),
}

/// Frames to and from neighbours: in order, none lost, none duplicated, none invented.
///
/// Neighbours are numbered as in [`TreePosition::neighbours`](crate::TreePosition::neighbours).
pub trait Link {
    /// Whether [`Incoming::Gone`] or [`Incoming::Lost`] is received from a neighbour whose process
    /// has ended.
    const REPORTS_PEER_EXIT: bool;
    /// Whether an orderly [`Self::close`] must be called by all ranks or by none.
    const CLOSE_IS_COLLECTIVE: bool;

    /// Sends a short frame without waiting, at most [`MAX_POSTS`] times to each neighbour. Frames to
    /// a neighbour that is gone are dropped.
    fn post(&self, to: usize, frame: Vec<u8>);

    /// Sends a frame, and calls `meanwhile` while it waits for the neighbour to take it.
    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut());

    /// Returns the next thing received from any neighbour. Does not wait.
    fn receive(&self) -> Option<(usize, Incoming)>;

    /// Waits until something is received or a posted frame is sent, but only for a short time.
    /// Nothing has been received since `since`.
    fn wait(&self, since: Instant, pace: PollRate);

    /// Whether every posted frame has been sent.
    fn flushed(&self) -> bool;

    /// Closes the link. `in_order`: every neighbour has sent its final message, so nothing is in
    /// transit.
    fn close(&self, in_order: bool);
}

/// Maximum number of frames posted to a neighbour in the life of a process: a stop, a failure or the
/// end, and a close.
pub const MAX_POSTS: usize = 3;

/// How quickly a wait must notice what is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollRate {
    /// Others wait too: at once, or within 0.2 ms.
    Fast,
    /// At the end of the program: within 5 ms.
    Slow,
}

impl PollRate {
    /// Maximum sleep of a link that polls.
    #[must_use]
    pub fn max_sleep(self) -> Duration {
        match self {
            Self::Fast => Duration::from_micros(200),
            Self::Slow => Duration::from_millis(5),
        }
    }
}
