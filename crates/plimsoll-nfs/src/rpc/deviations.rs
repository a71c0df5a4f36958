//! Server replies that deviate from the protocol: longer replies, which are accepted, and replies
//! that cannot be decoded.

use super::message::{RpcError, result};
use crate::xdr::{Decode, FieldPath, XdrError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The name of a procedure or operation and of its specification, for messages about deviations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcedureName {
    /// The name of the procedure or operation, such as `FSSTAT`.
    pub name: &'static str,
    /// The document that specifies the procedure, such as `RFC 1813`.
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

/// Counters of replies with bytes after the result. Workers of all lanes add to the counters while operations are
/// measured, so the counters are atomic, and workers do not exclude each other.
#[derive(Debug)]
struct SurplusCounters {
    replies: AtomicU64,
    min_bytes: AtomicU32,
    max_bytes: AtomicU32,
}

impl Default for SurplusCounters {
    fn default() -> Self {
        Self {
            replies: AtomicU64::new(0),
            min_bytes: AtomicU32::new(u32::MAX),
            max_bytes: AtomicU32::new(0),
        }
    }
}

impl SurplusCounters {
    fn add(&self, bytes: u32) {
        self.replies.fetch_add(1, Relaxed);
        // Most replies have the surplus of earlier replies: loads leave the memory line shared.
        if bytes < self.min_bytes.load(Relaxed) {
            self.min_bytes.fetch_min(bytes, Relaxed);
        }
        if bytes > self.max_bytes.load(Relaxed) {
            self.max_bytes.fetch_max(bytes, Relaxed);
        }
    }

    fn take(&self) -> TrailingBytes {
        TrailingBytes {
            replies: self.replies.swap(0, Relaxed),
            min_bytes: self.min_bytes.swap(u32::MAX, Relaxed),
            max_bytes: self.max_bytes.swap(0, Relaxed),
        }
    }
}

/// Deviations of one procedure's replies.
#[derive(Debug)]
struct ProcedureDeviations {
    procedure: ProcedureName,
    surplus: SurplusCounters,
    /// Describes the first reply that could not be decoded.
    malformed: OnceLock<String>,
}

/// Maximum number of procedures of a protocol version whose replies can deviate.
const MAX_PROCEDURES: usize = 128;

/// Deviations in the replies of a server to all of its clients.
#[derive(Debug)]
pub struct Deviations {
    /// The procedures whose replies deviated, in the order of their first deviations, then empty entries. Workers find
    /// an entry without a lock, because operations are measured meanwhile.
    procedures: Box<[OnceLock<ProcedureDeviations>]>,
}

impl Default for Deviations {
    fn default() -> Self {
        Self {
            procedures: (0..MAX_PROCEDURES).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl Deviations {
    /// Adds a deviation of a procedure's reply; keeps only the first description of a reply that
    /// cannot be decoded.
    #[cold]
    pub(crate) fn add(&self, procedure: ProcedureName, deviation: Deviation<'_>) {
        match deviation {
            Deviation::Surplus(bytes) => self.with(procedure, |p| p.surplus.add(bytes)),
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
            p.malformed.get_or_init(why);
        });
    }

    fn with(&self, procedure: ProcedureName, change: impl FnOnce(&ProcedureDeviations)) {
        let mut entries = self.procedures.iter().map(|entry| {
            entry.get_or_init(|| ProcedureDeviations {
                procedure,
                surplus: SurplusCounters::default(),
                malformed: OnceLock::new(),
            })
        });
        let known = entries.find(|entry| entry.procedure == procedure);
        change(known.expect("no protocol version has more procedures than the table has entries"));
    }

    /// The statistics since the previous call of replies with bytes after the result, by procedure; procedures without
    /// such replies are left out.
    #[must_use]
    pub fn take_surplus(&self) -> Vec<(ProcedureName, TrailingBytes)> {
        let known = self.procedures.iter().map_while(OnceLock::get);
        let all = known.map(|p| (p.procedure, p.surplus.take()));
        all.filter(|(_, surplus)| surplus.replies > 0).collect()
    }

    /// The reasons why replies could not be decoded, each once: one sentence without a full stop for each affected
    /// procedure.
    #[must_use]
    pub fn malformed(&self) -> Vec<String> {
        let known = self.procedures.iter().map_while(OnceLock::get);
        let mut all = Vec::new();
        for why in known.filter_map(|p| p.malformed.get()) {
            // The replies of several procedures may be malformed in one way, such as data that are no RPC reply.
            if !all.contains(why) {
                all.push(why.clone());
            }
        }
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
    fn surplus_bytes_are_counted_until_they_are_taken() {
        let all = Deviations::default();
        for bytes in [8, 4, 12] {
            all.add(FSSTAT, Deviation::Surplus(bytes));
        }
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
