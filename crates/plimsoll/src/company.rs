//! The processes that run a Plan together, as the command line joins them.

use crate::exit::{Exit, Stopped};
use plimsoll_engine::{Event, Observer};
use plimsoll_ranks::Ranks;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The ranks of a command.
pub struct Company {
    ranks: Box<dyn Ranks>,
}

/// Hears everything and says nothing: only rank 0 has a screen.
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: Event<'_>) {}
}

impl Company {
    /// Joins the ranks that a launcher or another process started, or starts `processes`.
    pub fn join(processes: Option<u32>) -> Result<Self, Stopped> {
        match plimsoll_ranks::connect(processes) {
            Ok(ranks) => Ok(Self { ranks }),
            Err(e) => {
                let stopped = match e.is_usage() {
                    true => Stopped::usage(&e),
                    false => Stopped::failed(&e),
                };
                Err(match e.is_said_elsewhere() {
                    true => Stopped::silent(stopped.exit),
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
    pub fn leads(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Rank 0 makes something and all have it; what keeps rank 0 from making it ends all.
    pub fn share<T: Serialize + DeserializeOwned>(
        &self,
        make: impl FnOnce() -> Result<T, Stopped>,
    ) -> Result<T, Stopped> {
        if self.size() == 1 {
            return make();
        }
        if !self.leads() {
            let bytes = self.broadcast(vec![])?;
            return match bytes.split_first() {
                Some((0, json)) => serde_json::from_slice(json)
                    .map_err(|e| Stopped::failed(format!("what rank 0 sent is unreadable: {e}"))),
                // Rank 0 says why.
                _ => Err(Stopped::silent(Exit::Valid)),
            };
        }
        let made = make();
        let mut bytes = vec![u8::from(made.is_err())];
        if let Ok(value) = &made {
            serde_json::to_writer(&mut bytes, value).map_err(Stopped::failed)?;
        }
        // An error of making says more than one of sharing it.
        let sent = self.broadcast(bytes);
        let value = made?;
        sent.map(|_| value)
    }

    /// Gives rank 0 a text of every rank, one after the other, in their order.
    pub fn collect(&self, mine: String, mut take: impl FnMut(u32, String)) -> Result<(), Stopped> {
        let mut take = |rank, bytes: Vec<u8>| {
            take(rank, String::from_utf8_lossy(&bytes).into_owned());
        };
        self.ranks
            .collect(mine.into_bytes(), &mut take)
            .map_err(|e| self.lost(&e))
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Stopped> {
        self.ranks.broadcast(bytes).map_err(|e| self.lost(&e))
    }

    /// A rank was lost: rank 0 says so for all, unless it is rank 0 itself.
    fn lost(&self, e: &plimsoll_ranks::RankError) -> Stopped {
        match self.leads() {
            true => Stopped::failed(e),
            false => Stopped::silent(Exit::Failed),
        }
    }
}
