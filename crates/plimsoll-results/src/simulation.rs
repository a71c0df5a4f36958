//! Figures of a simulated storage system.

use crate::run::OperationFigures;
use plimsoll_measure::{
    Bottleneck, BufferFigures, CacheFigures, RowTime, SimulatedWindow, StationFigures,
};
use plimsoll_plan::{OpKind, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a simulated storage system did in the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationFigures {
    /// Name of the system.
    pub system: String,
    /// The station that limits the system; null if none was busy.
    pub bottleneck: Option<Bottleneck>,
    /// Stations, in the order of their names; a link has one for each direction.
    pub stations: Vec<StationFigures>,
    /// Caches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheFigures>,
    /// Logs, and dirty data of caches that write back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferFigures>,
    /// Where the time of each operation went.
    pub operations: Vec<OperationTime>,
}

/// Where the time of an operation went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationTime {
    /// Name the workload gave it.
    pub name: String,
    /// Kind of operation.
    pub kind: OpKind,
    /// Operations that succeeded.
    pub ops: u64,
    /// Requests that they sent to the system: reading a whole file takes several.
    pub requests: u64,
    /// Mean time of an operation at each element of the system that took any.
    pub elements: Vec<ElementTime>,
}

/// Mean time of an operation at an element of a system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementTime {
    /// Name of the element.
    pub element: String,
    /// Milliseconds of an operation.
    pub mean_ms: f64,
}

impl SimulationFigures {
    /// The figures of a window, in which operations of the Plan's rows did `ops`.
    pub(crate) fn of(simulated: &SimulatedWindow, plan: &Plan, ops: impl Fn(u32) -> u64) -> Self {
        let operations = simulated.rows.iter().filter_map(|row| {
            let operation = plan.operations.get(row.row as usize)?;
            let ops = ops(row.row);
            (ops > 0).then(|| OperationTime {
                name: operation.name.clone(),
                kind: operation.kind,
                ops,
                requests: row.requests,
                elements: elements(row, ops),
            })
        });
        Self {
            system: simulated.system.clone(),
            bottleneck: simulated.bottleneck.clone(),
            stations: simulated.stations.clone(),
            caches: simulated.caches.clone(),
            buffers: simulated.buffers.clone(),
            operations: operations.collect(),
        }
    }

    /// Mean time at each element of an operation that counts in the summary, in the order in which the
    /// system has them.
    #[must_use]
    pub fn mean_times(&self, operations: &[OperationFigures]) -> Vec<ElementTime> {
        let all: u64 = operations
            .iter()
            .filter(|o| o.kind.counts())
            .map(|o| o.ops)
            .fold(0, u64::saturating_add);
        let mut sums: Vec<ElementTime> = Vec::new();
        for operation in self.operations.iter().filter(|o| o.kind.counts()) {
            for time in &operation.elements {
                let share = time.mean_ms * operation.ops as f64 / all.max(1) as f64;
                match sums.iter_mut().find(|s| s.element == time.element) {
                    Some(sum) => sum.mean_ms += share,
                    None => sums.push(ElementTime {
                        element: time.element.clone(),
                        mean_ms: share,
                    }),
                }
            }
        }
        sums
    }
}

/// Milliseconds of a mean latency that an operation spent at the client before it was sent: what the
/// elements of the system leave of it.
#[must_use]
pub fn client_ms(mean_ms: f64, elements: &[ElementTime]) -> f64 {
    let sent: f64 = elements.iter().map(|e| e.mean_ms).sum();
    (mean_ms - sent).max(0.0)
}

fn elements(row: &RowTime, ops: u64) -> Vec<ElementTime> {
    let elements = row.elements.iter();
    elements
        .map(|e| ElementTime {
            element: e.name.clone(),
            mean_ms: e.time_ns as f64 / 1e6 / ops as f64,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_has_what_the_elements_leave() {
        let elements = [("line", 1.5), ("disk", 2.0)].map(|(name, mean_ms)| ElementTime {
            element: name.into(),
            mean_ms,
        });
        assert_eq!(client_ms(5.0, &elements), 1.5);
        // The mean is rounded in a histogram, and may be below the sum.
        assert_eq!(client_ms(3.4, &elements), 0.0);
        assert_eq!(client_ms(5.0, &[]), 5.0);
    }
}
