//! Server replies that deviate from the protocol: longer replies, which are accepted, and replies
//! that cannot be decoded.

use super::message::{RpcError, result};
use crate::lock::lock;
use crate::xdr::{Decode, FieldPath, XdrError};
use std::cell::Cell;
use std::sync::{Arc, Mutex};

/// A procedure and the document that specifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcedureName {
    /// The name of the procedure, such as `FSSTAT`.
    pub name: &'static str,
    /// The document, such as `RFC 1813`.
    pub standard: &'static str,
}

/// A deviation of one reply from its protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deviation<'a> {
    /// The number of bytes after the result.
    Surplus(u32),
    /// The field that cannot be decoded, and the error.
    Malformed(&'a FieldPath, XdrError),
    /// The error of the call; counts only if the server has caused the error.
    Error(RpcError),
}

/// The number of replies with bytes after the result, and the range of the surplus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrailingBytes {
    /// The number of replies with bytes after the result.
    pub replies: u64,
    /// The minimum surplus in bytes.
    pub min_bytes: u32,
    /// The maximum surplus in bytes.
    pub max_bytes: u32,
}

impl TrailingBytes {
    /// The statistics of one reply with a surplus of `bytes` bytes.
    #[must_use]
    pub fn of_reply(bytes: u32) -> Self {
        Self {
            replies: 1,
            min_bytes: bytes,
            max_bytes: bytes,
        }
    }

    /// The merged statistics.
    fn and(self, other: Self) -> Self {
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
    /// Describes the first reply that could not be decoded.
    malformed: Option<String>,
}

/// Deviations in the replies of a server to all of its clients.
#[derive(Debug, Default)]
pub struct Deviations {
    state: Mutex<Vec<ProcedureDeviations>>,
}

impl Deviations {
    /// Adds a deviation of a procedure's reply; keeps only the first description of a reply that
    /// cannot be decoded.
    #[cold]
    pub(crate) fn add(&self, procedure: ProcedureName, deviation: Deviation<'_>) {
        match deviation {
            Deviation::Surplus(bytes) => {
                self.add_surplus(procedure, TrailingBytes::of_reply(bytes));
            }
            Deviation::Malformed(field, error) => {
                self.add_malformed(procedure, || malformed(procedure, field, error));
            }
            Deviation::Error(RpcError::NoReply(e)) => self.add_malformed(procedure, || {
                format!("the server sent something other than an RPC reply: {e}")
            }),
            Deviation::Error(RpcError::GarbageArgs) => self.add_malformed(procedure, || {
                let ProcedureName { name, standard } = procedure;
                format!("the server does not understand the arguments of {name} ({standard})")
            }),
            Deviation::Error(_) => {}
        }
    }

    /// Adds a reply that could not be decoded; keeps only the first description of each procedure.
    fn add_malformed(&self, procedure: ProcedureName, why: impl FnOnce() -> String) {
        self.with(procedure, |p| {
            p.malformed.get_or_insert_with(why);
        });
    }

    /// Adds statistics of replies with a surplus.
    fn add_surplus(&self, procedure: ProcedureName, surplus: TrailingBytes) {
        if surplus.replies > 0 {
            self.with(procedure, |p| p.surplus = p.surplus.and(surplus));
        }
    }

    fn with(&self, procedure: ProcedureName, change: impl FnOnce(&mut ProcedureDeviations)) {
        let mut state = lock(&self.state);
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
        change(&mut state[at]);
    }

    /// Takes the statistics of replies with a surplus by procedure, and resets them.
    #[must_use]
    pub fn take_surplus(&self) -> Vec<(ProcedureName, TrailingBytes)> {
        let mut state = lock(&self.state);
        let longer = state.iter_mut().filter(|p| p.surplus.replies > 0);
        longer
            .map(|p| (p.procedure, std::mem::take(&mut p.surplus)))
            .collect()
    }

    /// The reasons why replies could not be decoded: one sentence without a full stop for each
    /// affected procedure.
    #[must_use]
    pub fn malformed(&self) -> Vec<String> {
        let state = lock(&self.state);
        let mut all: Vec<String> = state.iter().filter_map(|p| p.malformed.clone()).collect();
        all.dedup();
        all
    }
}

/// Describes a reply that cannot be decoded.
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

/// Decodes the result of a procedure (RFC 5531, 9). Ignores bytes after the result, as other
/// clients do. `note` receives the reply's deviations from the protocol.
///
/// # Errors
/// The error of the call, or [`RpcError::BadResult`].
pub(crate) fn read_reply<'a, T: Decode<'a>>(
    reply: Result<&'a [u8], RpcError>,
    note: impl Fn(Deviation<'_>),
) -> Result<T, RpcError> {
    let whole = reply
        .and_then(result)
        .inspect_err(|e| note(Deviation::Error(*e)))?;
    let mut from = whole;
    let value = from.get().map_err(|error| {
        let field = FieldPath::of_failure::<T>(whole);
        note(Deviation::Malformed(&field, error));
        RpcError::BadResult(error)
    })?;
    if from.surplus() > 0 {
        note(Deviation::Surplus(from.surplus()));
    }
    Ok(value)
}

/// Counters of a lane; added to the server's [`Deviations`] when dropped.
#[derive(Debug)]
pub(crate) struct LaneDeviations {
    all: Arc<Deviations>,
    procedures: Box<[(ProcedureName, Cell<TrailingBytes>)]>,
}

impl LaneDeviations {
    /// Counters of `procedures`, in the order of their numbers.
    pub(crate) fn new(
        all: Arc<Deviations>,
        procedures: impl Iterator<Item = ProcedureName>,
    ) -> Self {
        Self {
            all,
            procedures: procedures.map(|p| (p, Cell::default())).collect(),
        }
    }

    /// Counts a deviation of a reply to procedure number `number`.
    #[cold]
    pub(crate) fn add(&self, number: usize, deviation: Deviation<'_>) {
        let (procedure, surplus) = &self.procedures[number];
        match deviation {
            Deviation::Surplus(bytes) => {
                surplus.set(surplus.get().and(TrailingBytes::of_reply(bytes)));
            }
            other => self.all.add(*procedure, other),
        }
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
    fn bytes_after_a_result_are_a_deviation() {
        let reply_of =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
        let good = reply_of(&[5, 1, 0, 0, 0, 0, 42]);
        let good = Ok(&good[..]);
        assert_eq!(read_reply(good, |_| panic!("no deviation")), Ok(42u32));
        let long = reply_of(&[5, 1, 0, 0, 0, 0, 42, 43]);
        let surplus = |d: Deviation<'_>| assert!(matches!(d, Deviation::Surplus(4)));
        assert_eq!(read_reply(Ok(&long), surplus), Ok(42u32));
        let malformed = |d: Deviation<'_>| assert!(matches!(d, Deviation::Malformed(..)));
        let short = read_reply::<u64>(good, malformed);
        assert_eq!(short, Err(RpcError::BadResult(XdrError::Short)));
    }

    #[test]
    fn counters_of_lanes_are_added_up() {
        let all = Arc::new(Deviations::default());
        let lanes = [4, 12, 8].map(|bytes| {
            let lane = LaneDeviations::new(all.clone(), [FSSTAT].into_iter());
            lane.add(0, Deviation::Surplus(bytes));
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
        let short = FieldPath::default();
        all.add(FSSTAT, Deviation::Malformed(&short, XdrError::Short));
        all.add(FSSTAT, Deviation::Error(RpcError::GarbageArgs));
        all.add(FSSTAT, Deviation::Error(RpcError::TimedOut));
        assert_eq!(
            all.malformed(),
            ["the server's FSSTAT reply is malformed: the message ends too early (RFC 1813)"]
        );
    }
}
