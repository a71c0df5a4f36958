//! The ranks of a command, and their collective communication outside runs.

use crate::error::SeriesError;
use plimsoll_engine::{Event, Observer, Stop};
use plimsoll_ranks::Ranks;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The ranks of a command, with broadcast and gather of serialised values.
pub struct Communicator {
    ranks: Ranks,
}

/// Observer that ignores all events of the engine: for ranks other than 0, and for runs without results.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

impl Communicator {
    /// A communicator of ranks that are already connected.
    #[must_use]
    pub fn new(ranks: Ranks) -> Self {
        Self { ranks }
    }

    /// The connected ranks, with which the engine executes a run.
    #[must_use]
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Number of ranks, including a coordinator, which has no workers.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.ranks.size()
    }

    /// Number of ranks that have workers: all ranks but a coordinator.
    #[must_use]
    pub fn working(&self) -> u32 {
        self.size() - u32::from(!self.ranks.root_works())
    }

    /// Forwards a stop request of this process to all ranks while this process waits for other ranks.
    pub fn pass_on(&self, stop: &Stop) {
        let stop = stop.clone();
        self.ranks
            .pass_on_stop_request(Box::new(move || stop.is_requested()));
    }

    /// Whether this process is rank 0, the rank that reports.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Calls `make` on rank 0 and broadcasts the value.
    ///
    /// # Errors
    /// The error of `make`, which only rank 0 reports; or a lost rank.
    pub fn run_on_root_and_broadcast<T, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<SeriesError>,
    {
        if self.size() == 1 {
            return make();
        }
        if !self.is_root() {
            let bytes = self.broadcast(vec![])?;
            return match bytes.split_first() {
                Some((0, json)) => serde_json::from_slice(json).map_err(|e| {
                    SeriesError::failed(format!("what rank 0 sent is unreadable: {e}")).into()
                }),
                _ => Err(SeriesError::RefusedAtRoot.into()),
            };
        }
        let made = make();
        let mut bytes = vec![u8::from(made.is_err())];
        if let Ok(value) = &made {
            serde_json::to_writer(&mut bytes, value).map_err(SeriesError::failed)?;
        }
        // An error of `make` is more informative than a broadcast error.
        let sent = self.broadcast(bytes);
        let value = made?;
        sent?;
        Ok(value)
    }

    /// Passes the texts of all ranks to `take` on rank 0, in rank order.
    ///
    /// # Errors
    /// A lost rank.
    pub fn collect(
        &self,
        mine: String,
        mut take: impl FnMut(u32, String),
    ) -> Result<(), SeriesError> {
        let mut take = |rank, bytes: Vec<u8>| {
            take(rank, String::from_utf8_lossy(&bytes).into_owned());
        };
        self.ranks
            .collect(mine.into_bytes(), &mut take)
            .map_err(|e| self.lost(&e))
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, SeriesError> {
        self.ranks.broadcast(bytes).map_err(|e| self.lost(&e))
    }

    /// Error for a lost rank: at rank 0 with the cause, at other ranks without, because only rank 0 reports the cause.
    fn lost(&self, e: &plimsoll_ranks::RankError) -> SeriesError {
        match self.is_root() {
            true => SeriesError::failed(e),
            false => SeriesError::RankLost,
        }
    }
}
