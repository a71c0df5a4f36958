//! The processes that run a Plan together, as the command line joins them.

use crate::exit::{CommandError, Exit};
use plimsoll_engine::{Event, Observer};
use plimsoll_ranks::Ranks;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The ranks of a command.
pub struct Communicator {
    ranks: Box<dyn Ranks>,
}

/// Hears everything and says nothing: only rank 0 has a screen.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

impl Communicator {
    /// Joins the ranks that a launcher or another process started, or starts `processes`.
    pub fn join(processes: Option<u32>) -> Result<Self, CommandError> {
        match plimsoll_ranks::connect(processes) {
            Ok(ranks) => Ok(Self { ranks }),
            Err(e) => {
                let stopped = match e.is_usage() {
                    true => CommandError::usage(&e),
                    false => CommandError::failed(&e),
                };
                Err(match e.is_reported_elsewhere() {
                    true => CommandError::silent(stopped.exit),
                    false => stopped,
                })
            }
        }
    }

    /// The ranks themselves.
    pub fn ranks(&self) -> &dyn Ranks {
        &*self.ranks
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.ranks.size()
    }

    /// Whether this is rank 0, the one that speaks.
    pub fn is_root(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Rank 0 makes something and all have it; what keeps rank 0 from making it ends all.
    pub fn run_on_root_and_broadcast<T: Serialize + DeserializeOwned>(
        &self,
        make: impl FnOnce() -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        if self.size() == 1 {
            return make();
        }
        if !self.is_root() {
            let bytes = self.broadcast(vec![])?;
            return match bytes.split_first() {
                Some((0, json)) => serde_json::from_slice(json).map_err(|e| {
                    CommandError::failed(format!("what rank 0 sent is unreadable: {e}"))
                }),
                // Rank 0 says why.
                _ => Err(CommandError::silent(Exit::Valid)),
            };
        }
        let made = make();
        let mut bytes = vec![u8::from(made.is_err())];
        if let Ok(value) = &made {
            serde_json::to_writer(&mut bytes, value).map_err(CommandError::failed)?;
        }
        // An error of making says more than one of sharing it.
        let sent = self.broadcast(bytes);
        let value = made?;
        sent.map(|_| value)
    }

    /// Gives rank 0 a text of every rank, one after the other, in their order.
    pub fn collect(
        &self,
        mine: String,
        mut take: impl FnMut(u32, String),
    ) -> Result<(), CommandError> {
        let mut take = |rank, bytes: Vec<u8>| {
            take(rank, String::from_utf8_lossy(&bytes).into_owned());
        };
        self.ranks
            .collect(mine.into_bytes(), &mut take)
            .map_err(|e| self.lost(&e))
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, CommandError> {
        self.ranks.broadcast(bytes).map_err(|e| self.lost(&e))
    }

    /// A rank was lost: rank 0 says so for all, unless it is rank 0 itself.
    fn lost(&self, e: &plimsoll_ranks::RankError) -> CommandError {
        match self.is_root() {
            true => CommandError::failed(e),
            false => CommandError::silent(Exit::Failed),
        }
    }
}
