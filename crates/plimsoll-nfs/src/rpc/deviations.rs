//! Replies of a server that are not as its protocol says: longer ones, which are taken all the same,
//! and those that cannot be decoded.

use crate::rpc::RpcError;
use crate::xdr::{FieldPath, XdrError};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A procedure and where it is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcedureName {
    /// Its name, such as `FSSTAT`.
    pub name: &'static str,
    /// What describes it, such as `RFC 1813`.
    pub standard: &'static str,
}

/// How many replies were longer than they may be, and by how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrailingBytes {
    /// Replies that were.
    pub replies: u64,
    /// Fewest bytes that one of them had beyond its result.
    pub min_bytes: u32,
    /// Most bytes.
    pub max_bytes: u32,
}

impl TrailingBytes {
    /// One reply with so many bytes beyond its result.
    #[must_use]
    pub fn of_reply(bytes: u32) -> Self {
        Self {
            replies: 1,
            min_bytes: bytes,
            max_bytes: bytes,
        }
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self.replies, other.replies) {
            (_, 0) => self,
            (0, _) => other,
            (mine, theirs) => Self {
                replies: mine + theirs,
                min_bytes: self.min_bytes.min(other.min_bytes),
                max_bytes: self.max_bytes.max(other.max_bytes),
            },
        }
    }
}

/// Deviations of one procedure's replies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcedureDeviations {
    procedure: ProcedureName,
    surplus: TrailingBytes,
    /// The first reply that could not be decoded.
    malformed: Option<String>,
}

/// What was seen of a server's replies by all who called it.
#[derive(Debug, Default)]
pub struct Deviations {
    state: Mutex<Vec<ProcedureDeviations>>,
}

impl Deviations {
    fn with<R>(
        &self,
        procedure: ProcedureName,
        change: impl FnOnce(&mut ProcedureDeviations) -> R,
    ) -> R {
        let mut state = self.lock();
        let at = match state.iter().position(|p| p.procedure == procedure) {
            Some(at) => at,
            None => {
                state.push(ProcedureDeviations {
                    procedure,
                    surplus: TrailingBytes::default(),
                    malformed: None,
                });
                state.len() - 1
            }
        };
        change(&mut state[at])
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ProcedureDeviations>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts replies of a procedure that were longer than they may be.
    pub fn add_surplus(&self, procedure: ProcedureName, surplus: TrailingBytes) {
        if surplus.replies > 0 {
            self.with(procedure, |p| p.surplus = p.surplus.and(surplus));
        }
    }

    /// Keeps why a reply of a procedure could not be decoded, if it is the first.
    #[cold]
    pub fn add_malformed(&self, procedure: ProcedureName, field: &FieldPath, error: XdrError) {
        self.with(procedure, |p| {
            let why = || malformed(procedure, field, error);
            p.malformed.get_or_insert_with(why);
        });
    }

    /// Keeps why a call of a procedure has no reply that can be read, if it is the first of the
    /// procedure and the server is to blame.
    #[cold]
    pub fn add_error(&self, procedure: ProcedureName, error: RpcError) {
        let why = match error {
            RpcError::NoReply(e) => format!("the server sent what is no RPC reply: {e}"),
            RpcError::GarbageArgs => {
                let ProcedureName { name, standard } = procedure;
                format!("the server does not understand the arguments of {name} ({standard})")
            }
            _ => return,
        };
        self.with(procedure, |p| {
            p.malformed.get_or_insert(why);
        });
    }

    /// Longer replies, by procedure, and counts from nothing again.
    #[must_use]
    pub fn take_surplus(&self) -> Vec<(ProcedureName, TrailingBytes)> {
        let mut state = self.lock();
        let longer = state.iter_mut().filter(|p| p.surplus.replies > 0);
        longer
            .map(|p| (p.procedure, std::mem::take(&mut p.surplus)))
            .collect()
    }

    /// Why replies could not be decoded: a sentence for each procedure that had any, without its
    /// full stop.
    #[must_use]
    pub fn malformed(&self) -> Vec<String> {
        let state = self.lock();
        let mut all: Vec<String> = state.iter().filter_map(|p| p.malformed.clone()).collect();
        all.dedup();
        all
    }
}

/// What is wrong with a reply.
fn malformed(procedure: ProcedureName, field: &FieldPath, error: XdrError) -> String {
    let ProcedureName { name, standard } = procedure;
    match (error, field.is_empty()) {
        (XdrError::Short, false) => {
            format!("the server's {name} reply is too short: it ends in `{field}` ({standard})")
        }
        (error, false) => {
            format!("the server's {name} reply is malformed at `{field}`: {error} ({standard})")
        }
        (error, true) => format!("the server's {name} reply is malformed: {error} ({standard})"),
    }
}

/// Counters of a lane, which are added to those of all when this is dropped.
#[derive(Debug)]
pub struct LaneDeviations {
    all: Arc<Deviations>,
    procedures: Box<[(ProcedureName, Cell<TrailingBytes>)]>,
}

impl LaneDeviations {
    /// Counters of these procedures, in the order of their numbers.
    #[must_use]
    pub fn new(all: Arc<Deviations>, procedures: impl Iterator<Item = ProcedureName>) -> Self {
        Self {
            all,
            procedures: procedures.map(|p| (p, Cell::default())).collect(),
        }
    }

    /// Counts a reply that has bytes beyond its result.
    ///
    /// # Panics
    /// If there is no procedure of this number.
    #[cold]
    pub fn count_surplus(&self, number: usize, bytes: u32) {
        let (_, surplus) = &self.procedures[number];
        surplus.set(surplus.get().and(TrailingBytes::of_reply(bytes)));
    }

    /// Keeps why a reply could not be decoded.
    ///
    /// # Panics
    /// If there is no procedure of this number.
    #[cold]
    pub fn add_malformed(&self, number: usize, field: &FieldPath, error: XdrError) {
        self.all
            .add_malformed(self.procedures[number].0, field, error);
    }

    /// Keeps why a call has no reply, if the server is to blame.
    ///
    /// # Panics
    /// If there is no procedure of this number.
    #[cold]
    pub fn add_error(&self, number: usize, error: RpcError) {
        self.all.add_error(self.procedures[number].0, error);
    }
}

impl Drop for LaneDeviations {
    fn drop(&mut self) {
        for (procedure, surplus) in &self.procedures {
            self.all.add_surplus(*procedure, surplus.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FSSTAT: ProcedureName = ProcedureName {
        name: "FSSTAT",
        standard: "RFC 1813",
    };

    #[test]
    fn counters_of_lanes_are_added_up() {
        let all = Arc::new(Deviations::default());
        let lanes = [4, 12, 8].map(|bytes| {
            let lane = LaneDeviations::new(all.clone(), [FSSTAT].into_iter());
            lane.count_surplus(0, bytes);
            lane
        });
        assert_eq!(all.take_surplus(), []);
        drop(lanes);
        let surplus = TrailingBytes {
            replies: 3,
            min_bytes: 4,
            max_bytes: 12,
        };
        assert_eq!(all.take_surplus(), [(FSSTAT, surplus)]);
        assert_eq!(all.take_surplus(), []);
    }

    #[test]
    fn the_first_malformed_reply_of_a_procedure_is_kept() {
        let all = Deviations::default();
        all.add_malformed(FSSTAT, &FieldPath::default(), XdrError::Short);
        all.add_error(FSSTAT, RpcError::GarbageArgs);
        all.add_error(FSSTAT, RpcError::TimedOut);
        assert_eq!(
            all.malformed(),
            ["the server's FSSTAT reply is malformed: the message ends too early (RFC 1813)"]
        );
    }
}
