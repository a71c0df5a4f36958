//! The ranks of a command, and what they tell each other beside runs.

use crate::error::SeriesError;
use plimsoll_engine::{Event, Observer, Stop};
use plimsoll_ranks::Ranks;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The ranks of a command.
pub struct Communicator {
    ranks: Box<dyn Ranks>,
}

/// Observer of ranks other than 0, which report nothing.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

impl Communicator {
    /// The communicator of these ranks.
    #[must_use]
    pub fn new(ranks: Box<dyn Ranks>) -> Self {
        Self { ranks }
    }

    /// The ranks themselves.
    #[must_use]
    pub fn ranks(&self) -> &dyn Ranks {
        &*self.ranks
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.ranks.size()
    }

    /// Number of ranks that have workers.
    #[must_use]
    pub fn working(&self) -> u32 {
        self.size() - u32::from(!self.ranks.root_works())
    }

    /// Passes a stop that is requested from this process on while it waits for other ranks.
    pub fn pass_on(&self, stop: &Stop) {
        let stop = stop.clone();
        self.ranks
            .pass_on_stop_request(Box::new(move || stop.is_requested()));
    }

    /// Whether this is rank 0, which reports.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Calls `make` on rank 0 and broadcasts its value.
    ///
    /// # Errors
    /// The error of `make`, which other ranks do not report again; or a lost rank.
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
        // An error of `make` says more than one of the broadcast.
        let sent = self.broadcast(bytes);
        let value = made?;
        sent?;
        Ok(value)
    }

    /// Passes the texts of all ranks, in their order, to `take` on rank 0.
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

    /// The error of a lost rank, which rank 0 reports for all.
    fn lost(&self, e: &plimsoll_ranks::RankError) -> SeriesError {
        match self.is_root() {
            true => SeriesError::failed(e),
            false => SeriesError::RankLost,
        }
    }
}
