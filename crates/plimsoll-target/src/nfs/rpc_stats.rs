//! Statistics of calls and connections, in the rows of the results.

use super::cache::{CACHED_ATTRIBUTES, CACHED_DATA};
use super::client_counts::CountedClient;
use crate::session_types::{RpcRows, SessionSpec};
use plimsoll_measure::{Nanos, OpTimes};
use plimsoll_nfs::rpc;
use std::rc::Rc;

/// Name of the row of retransmitted calls, timed from their first transmission.
const RETRANSMISSIONS_ROW: &str = "retransmissions";

/// Name of the row of re-established connections, timed from the break of the connection.
const RECONNECTS_ROW: &str = "reconnects";

/// Names of all rows of a target that calls `procedures`.
pub(crate) fn row_names(procedures: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    procedures
        .chain([CACHED_ATTRIBUTES, CACHED_DATA])
        .chain([RETRANSMISSIONS_ROW, RECONNECTS_ROW])
        .collect()
}

/// Records each call in the row of its procedure.
pub(crate) struct ProcedureStats {
    rows: RpcRows,
    /// Row by procedure number; `None` for a procedure without a row.
    numbers: Vec<Option<u32>>,
}

impl ProcedureStats {
    /// The statistics of a lane; `None` if the lane has no rows. `procedures` are in the order of
    /// their numbers.
    pub(crate) fn of(
        spec: &SessionSpec,
        procedures: impl Iterator<Item = &'static str>,
    ) -> Option<Self> {
        spec.rpc.as_ref().map(|rows| Self {
            numbers: procedures.map(|name| rows.row(name)).collect(),
            rows: rows.clone(),
        })
    }

    /// Records a call, or the name of its error.
    pub(crate) fn record(
        &self,
        procedure: usize,
        start: Nanos,
        end: Nanos,
        outcome: Result<(), &'static str>,
    ) {
        let Some(row) = self.numbers[procedure] else {
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

/// Counts connections, and records retransmissions and reconnects.
struct ConnectionStats {
    rows: RpcRows,
    client: Rc<CountedClient>,
    retransmissions: Option<u32>,
    reconnects: Option<u32>,
}

/// The observer of a lane's connections; `None` if the lane has no rows.
pub(crate) fn connection_stats(
    spec: &SessionSpec,
    client: &Rc<CountedClient>,
) -> Option<Rc<dyn rpc::ChannelObserver>> {
    let rows = spec.rpc.clone()?;
    Some(Rc::new(ConnectionStats {
        retransmissions: rows.row(RETRANSMISSIONS_ROW),
        reconnects: rows.row(RECONNECTS_ROW),
        client: client.clone(),
        rows,
    }))
}

impl ConnectionStats {
    fn record(&self, row: Option<u32>, start: Nanos, end: Nanos) {
        if let Some(row) = row {
            let times = OpTimes::unpaced(start, end);
            self.rows.recorder.record(row, times, 0);
        }
    }
}

impl rpc::ChannelObserver for ConnectionStats {
    fn connected(&self) {
        self.client.connected();
    }

    fn retransmitted(&self, _: rpc::Target, first: Nanos, now: Nanos) {
        self.record(self.retransmissions, first, now);
    }

    fn reconnected(&self, since: Nanos, now: Nanos) {
        self.record(self.reconnects, since, now);
    }

    fn abandoned(&self, at_end: bool, silent_since: Option<Nanos>) {
        self.rows.recorder.note_abandoned_call(at_end, silent_since);
    }
}
