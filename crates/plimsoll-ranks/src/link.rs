//! Transport of frames between a rank and its neighbours in the tree.

use std::time::{Duration, Instant};

/// A message that a link has received from a neighbour.
#[derive(Debug)]
pub enum Incoming {
    /// A complete frame from the neighbour, without the length that precedes frames on a stream.
    Frame(Vec<u8>),
    /// The neighbour's process has ended, with the reason; nothing more arrives.
    Gone(String),
    /// The connection to the neighbour is lost, with the reason; the neighbour's process may run for some more seconds.
    Lost(String),
}

/// Frames to and from neighbours: ordered, reliable, without duplicates.
///
/// Neighbours are numbered as in [`TreePosition::neighbours`](crate::TreePosition::neighbours).
pub trait Link {
    /// Whether either all ranks or no ranks must call [`Self::close`] with `in_order`, as with MPI. A link that is
    /// closed collectively never reports the end of a neighbour's process by [`Incoming::Gone`] or [`Incoming::Lost`].
    fn is_closed_collectively(&self) -> bool {
        false
    }

    /// Sends a short frame without waiting, at most [`MAX_POSTS`] times to each neighbour. Frames to a neighbour that
    /// is gone are dropped.
    fn post(&self, to: usize, frame: Vec<u8>);

    /// Sends a frame, and calls `meanwhile` repeatedly until the neighbour accepts the frame.
    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut());

    /// Returns the next received message, with the index of the neighbour that sent the message; `None` without waiting
    /// if no message has arrived.
    fn receive(&self) -> Option<(usize, Incoming)>;

    /// Waits briefly for a received message or a sent frame. `since` is the time of the latest received message.
    fn wait(&self, since: Instant, pace: PollRate);

    /// Whether every posted frame has been sent.
    fn flushed(&self) -> bool;

    /// Closes the link. `in_order`: every neighbour has sent its final message, so nothing is in transit.
    fn close(&self, in_order: bool);
}

/// Maximum number of frames posted to a neighbour in the life of a process: a stop, a failure or an end, and a close.
pub const MAX_POSTS: usize = 3;

/// Maximum latency with which a wait notices received messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollRate {
    /// Rate for collective calls, in which other ranks wait: a received message is noticed within 0.2 ms.
    Fast,
    /// Rate for waits at the end of the program: a received message is noticed within 5 ms.
    Slow,
}

impl PollRate {
    /// Maximum sleep of a polling link.
    #[must_use]
    pub fn max_sleep(self) -> Duration {
        match self {
            Self::Fast => Duration::from_micros(200),
            Self::Slow => Duration::from_millis(5),
        }
    }
}
