//! What connections did, in the rows of the results.

use crate::session_types::RpcRows;
use plimsoll_measure::{Nanos, OpTimes};
use plimsoll_nfs::rpc;

/// Row of calls that were sent again, timed from when they were first sent.
pub(crate) const RETRANSMISSIONS_ROW: &str = "retransmissions";

/// Row of connections that were made anew, timed from when they broke.
pub(crate) const RECONNECTS_ROW: &str = "reconnects";

/// Writes down what calls did, each kind of call in its row.
pub(crate) struct ProcedureStats {
    rows: RpcRows,
    /// Of each kind by its number, unless it has no row.
    numbers: Vec<Option<u32>>,
}

impl ProcedureStats {
    /// Kinds of these names, in the order of their numbers.
    pub(crate) fn of(rows: &RpcRows, names: impl Iterator<Item = &'static str>) -> Self {
        Self {
            numbers: names.map(|n| rows.row(n)).collect(),
            rows: rows.clone(),
        }
    }

    /// A call of a kind was over; what failed says why.
    pub(crate) fn done(
        &self,
        kind: usize,
        start: Nanos,
        end: Nanos,
        outcome: Result<(), &'static str>,
    ) {
        let Some(row) = self.numbers[kind] else {
            return;
        };
        match outcome {
            Ok(()) => self
                .rows
                .recorder
                .record(row, OpTimes::unpaced(start, end), 0),
            Err(name) => self.rows.recorder.record_error(row, start, end, name),
        }
    }
}

/// Writes it down.
pub(crate) struct ConnectionStats {
    rows: RpcRows,
    sent_again: Option<u32>,
    connected_again: Option<u32>,
}

impl ConnectionStats {
    pub(crate) fn of(rows: &RpcRows) -> Self {
        Self {
            sent_again: rows.row(RETRANSMISSIONS_ROW),
            connected_again: rows.row(RECONNECTS_ROW),
            rows: rows.clone(),
        }
    }
}

impl rpc::ChannelObserver for ConnectionStats {
    fn retransmitted(&self, _: rpc::Target, first: Nanos, now: Nanos) {
        if let Some(row) = self.sent_again {
            self.rows
                .recorder
                .record(row, OpTimes::unpaced(first, now), 0);
        }
    }

    fn reconnected(&self, since: Nanos, now: Nanos) {
        if let Some(row) = self.connected_again {
            self.rows
                .recorder
                .record(row, OpTimes::unpaced(since, now), 0);
        }
    }

    fn abandoned(&self, at_end: bool, silent_since: Option<Nanos>) {
        self.rows.recorder.note_abandoned_call(at_end, silent_since);
    }
}
